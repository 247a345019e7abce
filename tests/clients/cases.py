# SPDX-License-Identifier: BSD-2-Clause
"""The client programs and their options, in one table.

A case is a command line; the server gets it unchanged, the client with the server's address after it, or in place of
{address}. The caller fills in {port}, {directory}. GID 3 is RoCE v2 over IPv4 in the table of a host with one interface.
"""
import re
from dataclasses import dataclass, field

SHM, UDP = 'shm', 'udp'
# Signs that the server is ready: it listens to TCP, or to rdma_cm at {port}; it has a UDP socket there; it has joined a
# multicast group.
TCP, CM, DATAGRAMS, GROUP = 'tcp', 'cm', 'datagrams', 'group'
MULTICAST = '239.1.2.3'
# Parts of names of cases with programs that create files with fixed names in /tmp.
LITTERING = ('xsrq_pingpong', '-c XRC')
EVERY = 1 << 23 # perftest -a goes up to 8 MiB


@dataclass
class Case:
    name: str
    command: str                # of the server, and of the client unless it has its own
    judge: object               # judge(case, server output, client output) -> error, or None
    client: str = ''            # the client's, if different
    links: tuple = (SHM, UDP)
    seconds: int = 40           # time limit, on a slow machine
    env: dict = field(default_factory=dict)
    presence: bool = False      # looks for /dev/infiniband
    ranks: int = 0              # number of ranks of an MPI program
    program: str = 'mpi_program'    # name and arguments of the MPI program
    batch: str = ''             # of ucx_perftest
    ready: str = TCP            # TCP, CM, DATAGRAMS, GROUP
    member: str = ''            # command of a third program, on the other host: ready by the same sign as the server
    files: bool = False         # {directory}/sent exists, and {directory}/received is made like it
    built: bool = False         # our own program
    endless: bool = False       # the server runs until it is killed
    port: int = 0               # fixed port of the program
    alone: bool = False         # one program without a peer
    preload: str = ''           # our own library to preload
    cpus: int = 1               # number of processors that it occupies
    status: int = 0             # its exit status
    migration: tuple = None     # capabilities of the migration of a QEMU guest
    launcher: str = 'openmpi'   # of an MPI program: suffix of its mpirun and mpicc
    regions: bool = False       # registered memory is kept, and judged by `moved`
    race: str = ''              # output when it loses a race of its own: it is then run again


# ---- judges: a program's own output ---------------------------------------------------------------------------------

def pingpong(case, server, client):
    """Both ends print their bytes and round trips."""
    rounds = int(re.search(r'-n (\d+)', case.command)[1])
    if 'xsrq' in case.command:
        return None if server.endswith('success\n') and client.endswith('success\n') else 'an end reports no success'
    for end in (server, client):
        found = re.search(r'(?m)^(\d+) iters in [\d.]+ seconds = ', end)
        if not found or int(found[1]) != rounds:
            return 'an end does not report its iterations'
        if re.search(r'(?i)invalid data|failed', end):
            return 'an end reports wrong data'
    return None


def rows(output):
    """Returns perftest's table: a list per size. A deviation may be -nan, where it loses digits."""
    return [[float(word) for word in line.split()]
            for line in output.splitlines() if re.fullmatch(r'\s*\d+\s+\d+(\s+-?([\d.]+|nan))+\s*', line)]


def perftest(case, _, client):
    """One row per size, or one, of all iterations, with a rate or time. From the client: a passive server prints no
    figures."""
    table = rows(client)
    if not table:
        return 'the client prints no results'
    if ' -a' in case.command:
        largest = 4096 if '-c UD' in case.command else EVERY
        wanted = [float(1 << i) for i in range(1, 24) if 1 << i <= largest]
        if [row[0] for row in table] != wanted:
            return f'not the sizes that -a has: {[row[0] for row in table]}'
    elif len(table) != 1:
        return f'{len(table)} rows instead of one'
    wanted = int(re.search(r'-n (\d+)', case.command)[1])
    if any(row[1] < wanted for row in table):
        return 'fewer iterations than were asked for'
    # The rate in MB/s of a few bytes may be 0.00 on a busy machine; the largest size has a rate, and all sizes have a
    # time.
    rates = [row[3] for row in table[-1:]] if '_bw' in case.command else [row[5] for row in table]
    return None if all(rate > 0 for rate in rates) else 'a rate or time is not positive'


def batch(case, _, client):
    """The batch has as many results as lines."""
    results = len(re.findall(r'(?m)^Final: +\d+', client))
    return None if results == len(BATCHES[case.batch].splitlines()) else f'the client prints {results} results'


def mpi(case, output, _):
    """The program itself checks the data that it receives."""
    return None if re.search(rf'(?m)^{case.ranks} ranks: .* are right$', output) else \
        'the program does not say that all is right'


def lines(count, pattern, output, end):
    """Expects @count lines of the @output of @end that begin with @pattern."""
    found = len(re.findall(f'(?m)^{pattern}', output))
    return None if found == count else f'the {end} prints {found} lines "{pattern}" instead of {count}'


def moved(case, server, client):
    """Returns the problem in the memory that the ends of a perftest had registered, or None.

    perftest fills a buffer at random. The client's first half and the server's second half belong together: a READ copies to the
    former, other requests to the latter.
    """
    size = int(re.search(r'-s (\d+)', case.command)[1])
    if len(client) < 2 * size or len(client) != len(server):
        return f'memory of {len(client)} and {len(server)} bytes was kept, which is not two halves of {size} each'
    half = len(client) // 2
    near, far = client[:size], server[half:]
    unused = server[:size] if '_read' in case.command else client[half:half + size]
    if near == unused or len(set(near)) < 2:
        return 'both halves are alike, so they prove nothing'
    return None if near == far[:size] else 'the target has other bytes than the source'


def demo(case, _, client):
    """io_demo -q verifies each buffer and ends at a wrong one. The client reports all iterations, and a successful
    end."""
    wanted = int(re.search(r'-i (\d+)', case.client)[1])
    found = sum(map(int, re.findall(r'\[DEMO\] total min:\d+ max:\d+ total:(\d+) ', client)))
    if found != wanted:
        return f'the client reports {found} iterations instead of {wanted}'
    return None if "Client exit with status 'OK'" in client else 'the client does not say that it ends well'


def devinfo(_, output, __):
    """The port is usable, and the adapter is that of the mlx5 driver."""
    return lines(1, r'\s+state:\s+PORT_ACTIVE \(4\)$', output, 'program') or lines(1, r'hca_id:\s+mlx5_0$', output, 'program')


def transports(_, output, __):
    """UCX has all transports of an adapter of this class."""
    found = set(re.findall(r'(?m)^#\s+Transport: (\S+)\n#\s+Device: mlx5_0:1$', output))
    wanted = {'rc_verbs', 'ud_verbs', 'rc_mlx5', 'dc_mlx5', 'ud_mlx5'}
    return None if found == wanted else f'not the transports {sorted(wanted)}: {sorted(found)}'


def rping(case, _, client):
    """The client shows the returned data: a line for each ping, shifted by one letter each (with -V it compares,
    too)."""
    count, size = (int(re.search(rf'-{option} (\d+)', f'{case.client} -S 64')[1]) for option in 'CS')
    letters = ''.join(map(chr, range(ord('A'), ord('z') + 1)))
    wanted = []
    for i in range(count):
        begin = f'rdma-ping-{i}: '
        start = i % len(letters)
        text = letters[start:] + letters * (size // len(letters) + 1)
        wanted.append(f'ping data: {begin}{text[:size - 1 - len(begin)]}')
    return None if client.splitlines() == wanted else 'the client does not print the pings that were asked for'


def messages(case, server, client):
    """ucmatose and udaddy: all messages of all connections arrived at both ends."""
    for end, output in (('server', server), ('client', client)):
        wrong = lines(1, 'test complete$', output, end) or lines(1, 'return status 0$', output, end)
        if wrong:
            return wrong
    return None


def mckey(_, server, client, member):
    """All have the same group, and the receivers have the sender's data."""
    joined = [re.findall(r'(?m)^mckey: joined dgid: (\S+) mlid 0x[0-9a-f]+ sl \d+$', output)
              for output in (server, client, member)]
    if joined != [[f'::ffff:{MULTICAST}']] * 3:
        return f'not the group that was asked for: {joined}'
    return (lines(1, 'data transfers complete$', server, 'receiver') or
            lines(1, 'data transfers complete$', member, 'receiver of the other host') or
            lines(1, 'test complete$', client, 'sender'))


def cmtime(case, _, client):
    """A row per step with its times; each connection has completed all of them."""
    steps = ('create id', 'resolve addr', 'resolve route', 'create qp', 'connect', 'disconnect', 'destroy')
    table = dict(re.findall(r'(?m)^([a-z ]+?)\s*:\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+[\d.]+$', client))
    absent = [step for step in steps if step not in table]
    return f'no row for {absent}' if absent else None


def ends(case, server, client):
    """The examples print their exit status."""
    program = case.command.split()[0].removesuffix('server')
    return lines(1, f'{program}server: end 0$', server, 'server') or lines(1, f'{program}client: end 0$', client, 'client')


def qperf(case, _, client):
    tests = case.client.split()[-2:]
    rates = dict(re.findall(r'(?m)^(\w+):\n {4}\w+ +=? +([\d.]+) ', client))
    return None if all(float(rates.get(test, 0)) > 0 for test in tests) else f'no rate or time of {tests}'


def streams(case, server, client):
    """rstream and riostream: a row at both ends; -T v has compared the bytes."""
    size, transfers, count = (int(re.search(rf'-{option} (\d+)', case.command)[1]) for option in 'SCI')
    size = f'{size >> 10}k' if size >= 1024 else size
    wanted = rf'custom +{size} +{transfers} +{count} +\S+ +[\d.]+s +[\d.]+ +[\d.]+$'
    return lines(1, wanted, server, 'server') or lines(1, wanted, client, 'client')


def udpong(case, _, client):
    """A row; with echo all datagrams came back."""
    count = 2 * int(re.search(r'-C (\d+)', case.command)[1]) if '-T e' in case.command else '[1-9][0-9]*'
    return lines(1, rf'custom +64 +{count} +\S+ +[\d.]+s +[\d.]+ +[\d.]+$', client, 'client')


def rcopy(case, _, client):
    return lines(1, rf'{RCOPY_BYTES} bytes in ', client, 'client')


def sockets(case, server, client):
    """Neither end had a kernel socket, and each connection got its data back."""
    wanted = '4 connections, 8388608 bytes each, right; descriptors that are not sockets$'
    return lines(1, wanted, client, 'client') or \
        lines(1, 'served 4 connections; descriptors that are not sockets$', server, 'server')


def fio(case, server, client):
    """All bytes, without an error; the receiver counts sent data too, and compares its checksums."""
    for end, output in (('receiver', server), ('sender', client)):
        wrong = lines(1, rf'{end}: \(groupid=0, jobs=1\): err= 0:', output, end)
        if wrong:
            return wrong
    done = r' +{}: bw=.*, io=4096KiB '
    return lines(1, done.format('WRITE'), client, 'sender') or \
        ('send' in case.name and lines(1, done.format('READ'), server, 'receiver')) or None


def fi_pingpong(case, _, client):
    """A row for each size; -c has compared the bytes."""
    count = re.search(r'-I (\d+)', case.command)[1]
    sizes = re.findall(rf'(?m)^(\d+[km]?)\s+{count}\s', client)
    return None if {'64', '4k', '1m'} <= set(sizes) else f'not all sizes: {sizes}'


def vectors(case, output, _):
    """dpdk-test-crypto-perf always exits successfully; the last figure of its row counts operations with wrong
    results."""
    length, count = (re.search(rf'--{option} (\d+)', case.command)[1] for option in ('buffer-sz', 'total-ops'))
    wrong = count if 'another-tweak' in case.command else 0
    return lines(1, rf' *\d+, +{length},16,{count},{count},\d+,\d+,{wrong}$', output, 'program')


def autotest(_, output, __):
    """Its cases of AES-XTS by wrapped keys pass, except for four with a bug of their own: they append to a full
    buffer."""
    results = dict(re.findall(r'(?m)^ \+ TestCase \[ *\d+\] : (.*) (succeeded|failed)$', output))
    wanted = {f'AES-256-XTS {way} ({length}-byte plaintext Dataunit {unit}){form}':
              'failed' if form and length == 4096 else 'succeeded'
              for way in ('Encryption', 'Decryption') for length in (512, 4096) for unit in (length, 0)
              for form in ('', ' Scatter gather OOP')}
    wanted |= {f'test_{name}': 'succeeded'
               for name in ('device_configure_invalid_dev_id', 'queue_pair_descriptor_setup', 'device_configure_invalid_queue_pair_ids')}
    different = {name for name, result in (wanted.items() ^ results.items())}
    return f'not what is expected of {sorted(different)}' if different else None


# ---- the table ------------------------------------------------------------------------------------------------------

def pingpongs(program, *option_lines):
    return [Case(f'ibv_{program}_pingpong {options}'.strip(),
                 f'ibv_{program}_pingpong -d mlx5_0 -g 3 -p {{port}} -n 1000 {options}'.strip(), pingpong)
            for options in option_lines]


# perftest takes 200 samples of the time and the cycle counter. If its thread waits for a processor between the two of one
# sample, they do not fit a line, and all rates are 0.00 (sample_get_cpu_mhz() in its get_clock.c).
NO_FREQUENCY = 'Correlation coefficient r^2: '


def perftests(programs, *option_lines, **more):
    """Returns every program of @programs with every line of options."""
    return [Case(f'ib_{program} {options.split(" --credentials")[0]}'.strip(), f'ib_{program} -F -d mlx5_0 -x 3 -p {{port}} {options}'.strip(),
                 perftest, race=NO_FREQUENCY, **more)
            for program in programs for options in option_lines]


# Tests of ucx_perftest, run one after the other over one pair of processes: a name, then the options. Those of UCP, and
# those of UCT, which writes the WQEs of its atomics and READs itself.
BATCHES = {
    'ucp': """\
tag_lat -t tag_lat -s 8 -n 40 -w 4
tag_bw -t tag_bw -s 1048576 -n 4 -w 1
tag_sync -t tag_sync_lat -n 10 -w 2
put_lat -t ucp_put_lat -s 8 -n 20 -w 2
put_bw -t ucp_put_bw -s 8 -n 200 -w 10
put_large -t ucp_put_bw -s 1048576 -n 4 -w 1
get -t ucp_get -s 48 -n 40 -w 4
get_large -t ucp_get -s 262144 -n 4 -w 1
add -t ucp_add -n 40 -w 4
fadd -t ucp_fadd -n 10 -w 2
swap -t ucp_swap -n 10 -w 2
cswap -t ucp_cswap -n 10 -w 2
am -t ucp_am_lat -n 20 -w 2
stream -t stream_lat -n 20 -w 2
""",
    'uct': """\
am_lat -t am_lat -s 8 -n 40 -w 4
am_zcopy -t am_bw -s 2048 -D zcopy -n 100 -w 10
put_lat -t put_lat -s 8 -n 40 -w 4
put_bcopy -t put_bw -s 1024 -D bcopy -n 100 -w 10
put_zcopy -t put_bw -s 65536 -D zcopy -n 20 -w 2
get_32 -t get -s 32 -D bcopy -n 40 -w 4
get_64 -t get -s 64 -D bcopy -n 40 -w 4
get_65 -t get -s 65 -D bcopy -n 40 -w 4
get_zcopy -t get -s 4096 -D zcopy -n 40 -w 4
add_lat -t add_lat -n 20 -w 2
add_mr -t add_mr -n 100 -w 10
fadd -t fadd -n 40 -w 4
cswap -t cswap -n 40 -w 4
""",
}
RCOPY_BYTES = 256 << 20
# Without relaxed ordering UCX has no use for KSM keys.
DEVX = {'UCX_IB_MLX5_DEVX': 'y', 'UCX_IB_PCI_RELAXED_ORDERING': 'off'}
PCI = '/sys/devices/pci5348:00'
# Bytes of the key, and of the data unit, one per operation.
DPDK_VECTORS = [(key, length) for key in (32, 64) for length in (512, 4096)]
DPDK_OPERATIONS = 64
PRELOAD = {'LD_PRELOAD': '/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so'}
DEMO = '-p {port} -q -d 64:262144 -o read,write'
BANDWIDTH = ['write_bw', 'read_bw', 'send_bw', 'atomic_bw']
LATENCY = ['write_lat', 'read_lat', 'send_lat', 'atomic_lat']
SHORT = '-n 500'
FEW = '-n 20' # of all sizes up to 8 MiB
FIO = '--ioengine=rdma --port={port} --bs=65536 --size=4m --iodepth=64'
AES = ('--aes_xts --credentials_path {directory}/credential --kek_path {directory}/kek '
       '--data_enc_key_app_path {directory}/wrap --aes_block_size 512')


def rdmacm():
    def pair(command, judge, client, *option_lines, **more):
        return [Case(f'{command.split()[0]} {options}'.strip(), command.replace('{options}', options), judge,
                     client=client.replace('{options}', options), **{'ready': CM, **more})
                for options in option_lines]

    return (
        pair('rping -s -a {address} -p {port} -C 20 {options}', rping, 'rping -c -a {address} -p {port} -C 20 -v {options}',
             '', '-V -S 4000') +
        # It moves its QP to ERR itself.
        pair('rping -s -a {address} -p {port} -C 20 {options}', rping, 'rping -c -a {address} -p {port} -C 20 -v {options}', '-q') +
        pair('rping -s {options} -a {address} -p {port} -C 20', rping, 'rping -c -a {address} -p {port} -C 20 -v', '-P', endless=True) +
        pair('ucmatose -p {port} {options}', messages, 'ucmatose -p {port} {options} -s', '', '-m', '-c 100', '-t 8 -S 4000',
             '-P ib') +
        pair('udaddy {options}', messages, 'udaddy {options} -s', '', '-c 10', port=7174) +
        pair(f'mckey -m {MULTICAST} -b {{address}}', mckey, f'mckey -m {MULTICAST} -s -b {{client_address}}', '', ready=GROUP,
             member=f'mckey -m {MULTICAST} -b {{other_address}}') +
        pair('cmtime -p {port}', cmtime, 'cmtime -p {port} -c 1000 -s', '', endless=True) +
        pair('rdma_server -p {port}', ends, 'rdma_client -p {port} -s', '') +
        pair('rdma_xserver -p {port} {options}', ends, 'rdma_xclient -p {port} {options} -s', '-c r', '-c x') +
        # perftest refuses UC.
        [case for options, tools, links in (('-R', ['write_bw', 'send_lat', 'read_bw', 'atomic_lat'], (SHM, UDP)),
                                            ('-R', ['write_lat', 'send_bw', 'read_lat', 'atomic_bw'], (UDP,)),
                                            ('-c UD -R', ['send_lat'], (SHM, UDP)), ('-z', ['read_bw'], (SHM, UDP)))
         for case in perftests(tools, f'{options} {SHORT}', ready=CM, links=links)] +
        # Its server announces its port before it listens (docs/inside/rdma-cm.md).
        pair('qperf -lp {port}', qperf, 'qperf -lp {port} -cm1 -t 1 {address} rc_bw rc_lat', '', ready=TCP, endless=True,
             race='unexpected event from RDMA CM: Event rejected') +
        # One-sided writes, for which the other end spins: each costs a wake-up there, so there are few.
        pair('riostream -p {port} {options}', streams, 'riostream -p {port} {options} -s', '-T v -S 4096 -C 10 -I 20',
             '-T b -S 64 -C 1 -I 20') +
        pair('rstream -p {port} {options}', streams, 'rstream -p {port} {options} -s', '-T v -S 65536 -C 10 -I 20',
             '-T b -S 64 -C 1 -I 200', '-T a -S 4096 -C 10 -I 20') +
        pair('udpong -p {port} -b {address} -S 64 {options}', udpong, 'udpong -p {port} -S 64 {options} -s', '-C 100', '-T b -T e -C 5',
             ready=DATAGRAMS, endless=True) +
        pair('rcopy -p {port}', rcopy, 'rcopy {directory}/sent {address}:{directory}/received -p {port}', '', endless=True, files=True) +
        pair('sockets {port}', sockets, 'sockets {port}', '', built=True, env=PRELOAD) +
        [Case(f'fio {verb}', f'fio --name=receiver {FIO} --rw=read {check}', fio, ready=CM, links=links,
              client=f'fio --name=sender {FIO} --rw=write --hostname={{address}} --verb={verb} {check} --do_verify=0')
         # Its receiver allows no RNR retries (rdma-cm 4.1), so all receives are posted before anything is sent.
         # Starting and ending are slow.
         for verb, check, links in (('write', '', (SHM,)), ('read', '', (UDP,)), ('send', '--verify=crc32c', (SHM, UDP)))] +
        # libfabric: a connected endpoint, and datagrams over connections that it makes itself.
        [Case(f'fi_pingpong {provider} {end}', f'fi_pingpong -B {{port}} -p "{provider}" -e {end} -I 10 -c', fi_pingpong,
              client=f'fi_pingpong -P {{port}} -p "{provider}" -e {end} -I 10 -c', presence=True)
         for provider, end in (('verbs', 'msg'), ('verbs;ofi_rxm', 'rdm'))])


def ucx_batches(tls, links=(SHM, UDP), **env):
    """All tests of UCP, over the transports @tls."""
    options = ' '.join(f'{name.removeprefix("UCX_")}={value}' for name, value in env.items())
    return [Case(f'ucx_perftest {tls} {options}'.strip(), 'ucx_perftest -p {port} -b {directory}/ucp', batch, presence=True, links=links,
                 batch='ucp', env={'UCX_TLS': f'{tls},self', 'UCX_NET_DEVICES': 'mlx5_0:1', 'UCX_WARN_UNUSED_ENV_VARS': 'n', **env})]


def uct_batches(transport, links):
    line = f'ucx_perftest -p {{port}} -d mlx5_0:1 -x {transport} -b {{directory}}/uct'
    return [Case(f'ucx_perftest -x {transport}', line, batch, presence=True, batch='uct', links=links)]


def dpdk():
    """DPDK's crypto driver, which creates its objects by commands and writes its WQEs itself."""
    common = '--no-huge --no-shconf --no-telemetry -a 5348:00:00.0,class=crypto'

    def perf(vector, key, length, way, options='', operations=DPDK_OPERATIONS):
        return Case(f'dpdk-test-crypto-perf {vector} {way} {options}'.strip(),
                    f'dpdk-test-crypto-perf {common} -m 64 -l {{cpus}} -- --silent --csv-friendly --devtype mlx5_pci --ptest verify '
                    f'--optype cipher-only --cipher-algo aes-xts --cipher-op {way} --cipher-key-sz {key} --cipher-iv-sz 16 '
                    f'--buffer-sz {length} --burst-sz 16 --total-ops {operations} --pool-sz 1024 --desc-nb 64 '
                    f'--test-file {{directory}}/{vector} {options}', vectors, alone=True, cpus=2, presence=True, links=(SHM,),
                    env={'SYSFS_PCI_DEVICES': PCI})

    return ([perf(f'xts-{key}-{length}', key, length, way) for key, length in DPDK_VECTORS for way in ('encrypt', 'decrypt')] +
            [perf('xts-64-4096', 64, 4096, 'encrypt', options) for options in ('--out-of-place --segment-sz 8192', '--segment-sz 700')] +
            [perf('another-tweak', 32, 512, 'encrypt')] +
            # Its consumer index has 16 bits.
            [perf('xts-32-512', 32, 512, 'encrypt', operations=70000)] +
            [Case('dpdk-test cryptodev_mlx5_autotest', f'dpdk-test {common},wcs_file={{directory}}/wcs -m 512 -l {{cpus}}', autotest, alone=True,
                  presence=True, links=(SHM,), preload='queue_pairs', status=255,
                  env={'SYSFS_PCI_DEVICES': PCI, 'DPDK_TEST': 'cryptodev_mlx5_autotest', 'SOFTHCA_CRYPTO': 'wrapped',
                       'SOFTHCA_CRYPTO_FILE': '{directory}/import_kek'})])


def io_demos(tls, options=''):
    """UCX's example of a storage server, which connects by rdma_cm and verifies the data that it reads and writes."""
    return [Case(f'io_demo {tls} {options}'.strip(), f'io_demo {DEMO} {options}', demo, endless=True, presence=True,
                 client=f'io_demo {DEMO} {options} -i 200 -w 8 {{address}}:{{port}}',
                 env={'UCX_TLS': f'{tls},self', 'UCX_NET_DEVICES': 'mlx5_0:1', 'UCX_WARN_UNUSED_ENV_VARS': 'n'})]


def checked_perftests():
    """perftest with a comparison of both ends' memory."""
    def checked(tools, options, **more):
        return perftests(tools, f'{options} -n 50'.strip(), preload='regions', regions=True, **more)

    return (checked(['write_bw', 'read_bw', 'send_bw'], '-s 65536') + checked(['write_bw', 'send_bw'], '-c UC -s 4096') +
            [case for transport in ('XRC', 'DC') for case in checked(['write_bw', 'read_bw', 'send_bw'], f'-c {transport} -s 65536')] +
            checked(['write_bw'], '-R -s 65536', ready=CM))


def migrations(*capabilities):
    return [Case(' '.join(['qemu-system-x86_64 migrate rdma:', *chosen]), 'qemu-system-x86_64', None, migration=chosen, presence=True,
                 seconds=90)
            for chosen in capabilities]


def mpis(program, ranks, tls, links=(SHM, UDP), **env):
    options = ' '.join(f'{name.removeprefix("UCX_")}={value}' for name, value in env.items())
    return [Case(f'mpirun {program}, {ranks} ranks, {tls} {options}'.strip(), '', mpi, ranks=ranks, program=program, presence=True,
                 links=links, env={'UCX_TLS': f'{tls},self', 'UCX_NET_DEVICES': 'mlx5_0:1', 'UCX_WARN_UNUSED_ENV_VARS': 'n', **env})]


# Justified warnings about programs: the clients of ib_send_* and of DC destroy one of their two CQs; the SRQ ping-pong
# ends with sends on some of its queue pairs without polling their completion, and sometimes its peer fails for that;
# ucx_perftest writes a number into the buffer of each put, while the previous put may still read it; -m 4096 of
# ibv_rc_pingpong is more than the interface carries.
EXPECTED = (('ib_', 'ibv_close_device: 1 objects of kind CQ still exist when their context is closed.'),
            ('ibv_srq_pingpong', '[901 SENDS_ABANDONED; '),
            ('ucx_perftest', ', +1048576) of lkey'),
            ('ibv_rc_pingpong', 'path_mtu is 4096 bytes, and a packet to another host has at most 1024 '))

# Mistakes of programs that pass nevertheless, with expected explanations: prefix of the names of cases, then the rules.
OWN_MISTAKES = (
    # It asks for a path MTU that the interface does not have.
    ('ibv_rc_pingpong -c -s 65536 -m 4096', ('225 UDP_TOO_LONG',)),
    # It destroys the PD before what it created over it, and ends with status 255 since four of its tests fail (autotest()).
    ('dpdk-test cryptodev', ('321 PD_IN_USE_ELSEWHERE',)),
)


def right():
    """Correct programs, as a sample of all: they must get no warning about misuse (run.py --lint runs any group that
    way)."""
    return (pingpongs('rc', '', '-N -e') + pingpongs('ud', '') + pingpongs('xsrq', '') +
            perftests(['write_bw', 'send_lat', 'atomic_bw'], SHORT) + perftests(['send_bw'], f'-r 20 --use-srq {SHORT}') +
            [case for case in rdmacm() if case.name in ('rping', 'ucmatose', 'rdma_server')] +
            ucx_batches('rc_v') + mpis('mpi_program', 2, 'ud_v'))


# Debian's package of each program, by the beginning of its name. The first match counts.
PACKAGES = (('ibv_', 'ibverbs-utils'), ('ib_', 'perftest'), ('ucx_', 'ucx-utils'), ('io_demo', 'ucx-utils'), ('mpirun.mpich', 'mpich'),
            ('mpirun', 'openmpi-bin'), ('fi_', 'libfabric-bin'), ('fio', 'fio'), ('qperf', 'qperf'), ('dpdk-test', 'dpdk-dev'),
            ('qemu-system-x86_64', 'qemu-system-x86'), ('', 'rdmacm-utils'))


def program_name(case):
    """Returns the program of the distribution that @case runs. `sockets` is ours, over librspreload of librdmacm."""
    if case.ranks:
        return f'mpirun.{case.launcher}'
    return 'librspreload' if case.built else case.command.split()[0]


def package(case):
    """Returns Debian's package of the program of @case."""
    name = program_name(case)
    return 'librdmacm1' if case.built else next(package for start, package in PACKAGES if name.startswith(start))


GROUPS = {
    'pingpong':
        pingpongs('rc', '', '-e', '-c', '-N', '-o', '-t', '-c -o -P', '-c -o -O', '-c -j', '-c -N -e',
                  '-c -s 65536 -m 4096') +
        pingpongs('uc', '', '-e', '-m 256') +
        pingpongs('ud', '', '-e', '-s 1024') +
        pingpongs('srq', '', '-e', '-q 4') +
        pingpongs('xsrq', '', '-e'),
    'perftest-rc':
        perftests(['write_bw', 'read_bw', 'send_bw'], f'-b {SHORT}', f'-q 16 {SHORT}', '-l 10 -n 500',
                  f'--use_old_post_send {SHORT}', f'--odp {SHORT}') +
        perftests(['read_bw', 'send_bw'], f'-e {SHORT}') +
        perftests(['send_bw'], f'-r 20 --use-srq {SHORT}') +
        perftests(['atomic_bw'], SHORT, f'-A CMP_AND_SWAP {SHORT}', f'-b {SHORT}', f'-e {SHORT}', f'-q 16 {SHORT}',
                  f'--use_old_post_send {SHORT}') +
        perftests(LATENCY, SHORT) +
        perftests(['read_lat', 'send_lat'], f'-e {SHORT}') +
        perftests(['atomic_lat'], f'-A CMP_AND_SWAP {SHORT}') +
        # Each size takes perftest half a second, so not every program runs on every link.
        perftests(['write_bw'], f'-a {FEW}', links=(UDP,)) +
        perftests(['send_bw'], f'-a {FEW}', links=(SHM,)) +
        perftests(['read_bw'], f'-a -b {FEW}', links=(SHM,)) +
        perftests(['write_lat', 'send_bw'], f'-s 8388608 {FEW}', links=(UDP,)) +
        perftests(['write_bw', 'send_bw'], f'-I 64 -s 64 {SHORT}', links=(SHM,)) +
        perftests(['write_bw', 'send_bw'], f'-Q 10 -m 1024 {SHORT}', f'-q 4 --mr_per_qp {SHORT}', links=(UDP,)) +
        # More at once than a socket holds, both ways; and very little, from as many queue pairs.
        perftests(['write_bw', 'send_bw'], '-q 64 -s 64 -b -n 500', '-q 64 -s 64 -b -t 1 -n 50', links=(UDP,)) +
        perftests(['write_bw'], '-q 64 -s 64 -b -t 2 -n 50', links=(UDP,)) +
        perftests(['read_bw'], '-q 64 -s 65536 -b -n 10', links=(UDP,)),
    'perftest-uc-ud':
        perftests(['write_bw'], f'-c UC {SHORT}', f'-c UC -q 4 {SHORT}') +
        # Messages for which the receiver has no room are lost, and the program waits for them: few bytes at a time.
        perftests(['send_bw'], f'-c UC -s 1024 {SHORT}', f'-c UC -s 1024 -q 4 {SHORT}') +
        perftests(['send_bw'], f'-c UC -s 8 -e {SHORT}') +
        perftests(['write_lat', 'send_lat'], f'-c UC {SHORT}') +
        perftests(['send_bw'], f'-c UD -s 1024 {SHORT}', f'-c UD -e -s 64 {SHORT}', f'-c UD -b -s 1024 {SHORT}') +
        perftests(['send_lat'], f'-c UD {SHORT}'),
    # Programs that depend on the interface, repeated on larger ones (place.py).
    'mtu':
        perftests(['write_bw', 'read_bw', 'send_bw'], SHORT, links=(UDP,)) +
        perftests(['send_bw'], f'-c UD -s 4096 {SHORT}', links=(UDP,)) +
        [case for case in pingpongs('rc', '-c -s 65536 -m 4096') + pingpongs('ud', '-s 4096')
         for case.links in [(UDP,)]],
    'perftest-xrc-dc':
        perftests(BANDWIDTH, f'-c XRC {SHORT}', f'-c DC {SHORT}') +
        perftests(LATENCY, f'-c XRC {SHORT}', f'-c DC {SHORT}') +
        perftests(['write_bw', 'send_bw'], f'-c XRC -q 4 {SHORT}', f'-c DC -q 4 {SHORT}') +
        perftests(['send_bw'], f'-c XRC -a {FEW}', links=(SHM,)) +
        perftests(['write_bw'], f'-c DC -s 8388608 {FEW}', links=(UDP,)) +
        perftests(['write_bw', 'send_bw', 'read_bw'], f'-c DC --log_dci_streams=2 {SHORT}') +
        perftests(['write_bw'], f'-c DC --log_dci_streams=2 -b -q 4 {SHORT}'),
    'perftest-aes':
        perftests(['write_bw', 'read_bw', 'send_bw'], f'-s 65536 {SHORT} {AES}', env={'SOFTHCA_CRYPTO': 'wrapped'}) +
        perftests(['write_bw'], f'-s 65536 --encrypt_on_tx {SHORT} {AES}', env={'SOFTHCA_CRYPTO': 'wrapped'}),
    'ucx': ucx_batches('rc_v') + ucx_batches('ud_v'),
    # UCX drives the queues of the device directly.
    'ucx-mlx5':
        ucx_batches('rc_x') + ucx_batches('dc_x', links=(UDP,)) + ucx_batches('ud_x', links=(SHM,)) +
        ucx_batches('rc_x', links=(UDP,), UCX_IB_MLX5_DEVX='n', UCX_RC_MLX5_SRQ_TOPO='list', UCX_RC_MLX5_TM_ENABLE='y') +
        uct_batches('rc_mlx5', (SHM, UDP)) + uct_batches('dc_mlx5', (SHM,)) +
        mpis('mpi_onesided', 2, 'rc_x', links=(SHM,)) + mpis('mpi_onesided', 4, 'dc_x', links=(UDP,)) +
        mpis('mpi_program 5', 4, 'rc_x', links=(SHM,), UCX_RC_MLX5_MMIO_MODE='bf_post') +
        mpis('mpi_program 2', 8, 'rc_x', links=(SHM,)) +
        mpis('mpi_program 5', 2, 'dc_x', links=(SHM,), UCX_DC_MLX5_TX_POLICY='rand') +
        mpis('mpi_program 5', 2, 'ud_x', links=(UDP,)) +
        # Objects by command, requested explicitly: UCX has no such transport on a device that it considers to lack
        # DEVX.
        ucx_batches('rc_x', links=(SHM,), **DEVX, SOFTHCA_DOORBELLS='trap') +
        mpis('mpi_program 5', 2, 'rc_x', links=(UDP,), **DEVX, SOFTHCA_DOORBELLS='trap') +
        mpis('mpi_program 5', 2, 'dc_x', links=(UDP,), **DEVX) +
        mpis('mpi_program 5', 2, 'ud_x', links=(SHM,), **DEVX) + mpis('mpi_program 5', 2, 'all', links=(UDP,), UCX_TLS='all', **DEVX) +
        mpis('mpi_program 5', 2, 'dc_x', links=(SHM,), **DEVX, UCX_IB_MLX5_DEVX_OBJECTS='rcqp,dct'),
    'dpdk': dpdk(),
    'right': right(),
    'mpi': [Case(f'mpirun, {ranks} ranks, {tls}', '', mpi, ranks=ranks, presence=True, seconds=40,
                 env={'UCX_TLS': f'{tls},self', 'UCX_NET_DEVICES': 'mlx5_0:1'})
            for ranks, tls in ((2, 'ud_v'), (4, 'rc_v'))],
    'more':
        [Case('ibv_devinfo', 'ibv_devinfo -v', devinfo, alone=True, links=(SHM,)),
         Case('ucx_info', 'ucx_info -d', transports, alone=True, presence=True, links=(SHM,))] +
        checked_perftests() + io_demos('rc_v') + io_demos('rc_x', '-A') +
        # Ranks of one host use the network as well.
        [Case(case.name.replace('mpirun', 'mpirun.mpich'), '', mpi, ranks=case.ranks, program=case.program, presence=True,
              launcher='mpich', env={**case.env, 'MPIR_CVAR_NOLOCAL': '1'})
         for case in mpis('mpi_program', 2, 'rc_v') + mpis('mpi_program 20', 4, 'rc_x') + mpis('mpi_onesided', 2, 'rc_x')] +
        migrations((), ('rdma-pin-all',)),
    # Through librdmacm; each program uses a feature that others do not (rdma-cm 1.2 of the reference).
    'rdmacm': rdmacm(),
}

# `make clients`: the correct ones are among the others already, and larger packets need other interfaces.
ALL = [name for name in GROUPS if name not in ('right', 'mtu')]

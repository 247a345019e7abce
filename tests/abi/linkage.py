# SPDX-License-Identifier: BSD-2-Clause
"""
Programs and libraries of the distribution find every symbol they import in our front-ends.

linkage.py LIBRARY_DIRECTORY EMPTY_DIRECTORY: has the dynamic linker bind all symbols of each installed client at once,
as ldd -r does with several processes. It names and skips programs that are not installed. EMPTY_DIRECTORY holds a
libibverbs.so.1 and a librdmacm.so.1 without symbols: the same check must fail there, or it would prove nothing. Exit status 0,
1, or 77 when nothing is installed.
"""
import functools
import glob
import os
import platform
import re
import subprocess
import sys

# Not those of other processors, which may be installed besides.
LIB = f'/usr/lib/{platform.machine()}-linux-gnu/'
PYVERBS = '/usr/lib/python3*/*-packages/pyverbs/'
CLIENTS = {
    'ibverbs-utils': ['/usr/bin/ibv_*'],
    'perftest': ['/usr/bin/ib_*_bw', '/usr/bin/ib_*_lat', '/usr/bin/raw_ethernet_*'],
    'python3-pyverbs': [PYVERBS + '*.so', PYVERBS + 'providers/*/*.so'],
    'fio': ['/usr/bin/fio'],
    'qperf': ['/usr/bin/qperf'],
    'libucx0': [LIB + 'ucx/libuct_ib*.so*', LIB + 'ucx/libuct_rdmacm*.so*'],
    'libfabric1': [LIB + 'libfabric.so.1'],
    'librdmacm1': [LIB + 'librdmacm.so.1', LIB + 'rsocket/librspreload.so'],
    'rdmacm-utils': ['/usr/bin/' + name for name in (
        'cmtime', 'mckey', 'rcopy', 'rdma_client', 'rdma_server', 'rdma_xclient', 'rdma_xserver', 'riostream',
        'rping', 'rstream', 'ucmatose', 'udaddy', 'udpong')],
    'ibverbs-providers': [LIB + 'libefa.so.1', LIB + 'libmlx4.so.1', LIB + 'libmana.so.1',
                          LIB + 'libibverbs/*-rdmav*.so'],
    'librados2': [LIB + 'ceph/libceph-common.so.*'],
    'openmpi': [LIB + 'openmpi/lib/openmpi3/mca_btl_openib.so', LIB + 'openmpi/lib/libmca_common_verbs.so.*'],
}
# The path in each program's header, here in that of python.
with open(sys.executable, 'rb') as program:
    LINKER = re.search(rb'/lib[^\0]*/ld-linux[^\0]*', program.read(4096))[0]
OURS = ('libibverbs.so.1', 'libmlx5.so.1', 'librdmacm.so.1')
# Undefined symbols that another library provides (the interpreter provides those of an extension module).
RELEVANT = re.compile(r'\b_*(ibv_|mlx5dv_|verbs_|execute_ioctl|mult_to_ibv|mbps_to_ibv|rdma_|softhca_)|IBVERBS_|MLX5_|RDMACM_')


@functools.cache
def imports(path):
    """Number of symbols that @path imports from our libraries."""
    text = subprocess.run(['readelf', '--wide', '--dyn-syms', path], capture_output=True, text=True).stdout
    return len(re.findall(r' UND \S+@(?:IBVERBS|MLX5|RDMACM)_', text))


def problems(path, directory):
    """Errors that the dynamic linker reports for @path with our libraries in @directory."""
    environment = dict(os.environ, LD_LIBRARY_PATH=directory, LC_ALL='C', LD_TRACE_LOADED_OBJECTS='1', LD_WARN='yes',
                       LD_BIND_NOW='yes')
    run = subprocess.run([LINKER, path], capture_output=True, text=True, env=environment, timeout=60)
    found = []
    for line in (run.stdout + run.stderr).splitlines():
        resolved = re.match(r'\s*(\S+) => (\S+)', line)
        if resolved and resolved.group(1) in OURS and not resolved.group(2).startswith(directory + '/'):
            found.append('%s is %s' % resolved.groups())
        elif 'undefined symbol' in line and RELEVANT.search(line):
            found.append(line.strip())
        elif 'not found' in line or 'symbol lookup error' in line:
            found.append(line.strip())
    if run.returncode and not run.stdout:
        found.append(run.stderr.strip())
    return found


def main():
    directory, empty = (os.path.realpath(path) for path in sys.argv[1:3])
    failed, checked = 0, 0
    for package, patterns in CLIENTS.items():
        paths = sorted({p for pattern in patterns for p in glob.glob(pattern)
                        if open(p, 'rb').read(4) == b'\x7fELF'})
        if not paths:
            print('skip %s: not installed' % package)
            continue
        symbols = 0
        for path in paths:
            symbols += imports(path)
            for problem in problems(path, directory):
                print('FAIL %s: %s' % (path, problem))
                failed += 1
        checked += len(paths)
        print('ok   %s: %d files, %d symbols' % (package, len(paths), symbols))
        # Check that a missing symbol is detected, on the file that imports most.
        witness = max(paths, key=imports)
        if imports(witness) and not problems(witness, empty):
            print('FAIL %s: nothing is missed when the libraries are empty' % witness)
            failed += 1
    if not checked:
        return 77
    return 1 if failed else 0


sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures two processes, on one host (shm) and on two that are network namespaces (udp), each row in turn with the
alternatives, so that a figure is a ratio within one run rather than between two machines.

    links.py BUILD [--quick] [--rounds N] [--only TEXT] [--json FILE]

Peers that are not installed are reported as absent. Needs two CPUs, and root or user namespaces.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f'{SOURCE}/tests/clients')
import place # pylint: disable=wrong-import-position
from place import A, ADDRESS, B # pylint: disable=wrong-import-position

KIB, MIB = 1 << 10, 1 << 20
# UCX takes a number of messages instead of a time: about a fifth of a second each.
UCX_COUNTS = {8: 300000, 4 * KIB: 150000, 64 * KIB: 15000, MIB: 1500}
UCX_TCP_COUNTS = {8: 5000, 64 * KIB: 4000, MIB: 500}
# By calls of libibverbs, and by rings that UCX drives directly.
UCX_OVER_SOFTHCA = ('rc_v', 'rc_x', 'dc_x', 'ud_x')
UCX_COUNTS_OVER_SOFTHCA = {8: 20000}


class Absent(Exception):
    """A program to be measured is not installed."""


class Bench:
    """Runs pairs of programs and reads a figure."""

    def __init__(self, hosts, options):
        self.hosts = hosts
        self.options = options
        self.programs = f'{options.build}/bench/links'
        self.cpus = sorted(os.sched_getaffinity(0))[:2]

    def wait(self, programs, seconds=30):
        deadline = time.monotonic() + seconds
        try:
            while any(program.poll() is None for program in programs):
                bad = [program for program in programs if program.poll()]
                if bad or time.monotonic() > deadline:
                    failed = (bad or [program for program in programs if program.poll() is None])[0]
                    raise RuntimeError(f'{os.path.basename(failed.command[0])}: ' +
                                       ((failed.read('err') or failed.read('out')).strip().splitlines() or ['time limit'])[-1])
                time.sleep(0.02) # each look takes a processor from a program that is measured
        finally:
            output = programs[-1].read('out')
            self.hosts.stop()
        return output

    def listen(self, server, port):
        deadline = time.monotonic() + 10
        while server.poll() is None and time.monotonic() < deadline:
            if self.hosts.listens(A, port):
                return
            time.sleep(0.002)

    def pair(self, link, test, name, *arguments, env=None):
        """Returns a figure of our own program."""
        port = self.hosts.port()
        common = [f'{self.programs}/softhca-bench-pair', test, '--port', str(port), '--seconds', str(self.options.slice),
                  *map(str, arguments)]
        env = {'SOFTHCA_EXPLAIN': 'off', **(env or {})}
        server = self.hosts.start(A, [*common, '--cpu', str(self.cpus[1])], env)
        self.listen(server, port)
        client = self.hosts.start(A if link == 'shm' else B,
                                  [*common, '--cpu', str(self.cpus[0]), '--connect', ADDRESS[A]], env)
        return figure(self.wait([server, client]), name)

    def recorded(self, link, test, name, *arguments):
        """As pair(), with a timeline of both processes."""
        with tempfile.TemporaryDirectory() as directory:
            return self.pair(link, test, name, *arguments, env={'SOFTHCA_TIMELINE': f'{directory}/trace.json'})

    def ucx(self, link, transports, test, size, lat=False):
        """Runs UCX over its own transports, or over softhca by those that need an adapter."""
        need('ucx_perftest')
        port = self.hosts.port()
        env = {'UCX_TLS': transports, 'UCX_WARN_UNUSED_ENV_VARS': 'n'}
        if transports in UCX_OVER_SOFTHCA:
            program = [f'{self.options.build}/src/tool/softhca', 'run', '--', 'ucx_perftest']
            env |= {'UCX_NET_DEVICES': 'mlx5_0:1', 'SOFTHCA_EXPLAIN': 'off'}
            counts = UCX_COUNTS_OVER_SOFTHCA
        else:
            program = ['ucx_perftest']
            env |= {'LD_LIBRARY_PATH': None}
            counts = UCX_TCP_COUNTS if transports == 'tcp' else UCX_COUNTS
        server = self.hosts.start(A, [*program, '-p', str(port), '-c', str(self.cpus[1])], env)
        self.listen(server, port)
        client = self.hosts.start(A if link == 'shm' else B,
                                  [*program, '-p', str(port), '-c', str(self.cpus[0]), '-t', test, '-s', str(size),
                                   '-n', str(counts[size]), '-w', str(min(counts[size] // 10, 10000)), '-f',
                                   ADDRESS[A]], env)
        return self.ucx_figure(self.wait([server, client]), lat)

    def ucx_alone(self, transports, test, lat=False, devx=True):
        """Runs UCX in one process, over softhca. @devx: with queues by commands, which are in umems."""
        need('ucx_perftest')
        count = 100000
        env = {'UCX_TLS': transports, 'UCX_WARN_UNUSED_ENV_VARS': 'n', 'UCX_NET_DEVICES': 'mlx5_0:1',
               'SOFTHCA_EXPLAIN': 'off', 'UCX_IB_MLX5_DEVX': 'y' if devx else 'n'}
        program = self.hosts.start(A, [f'{self.options.build}/src/tool/softhca', 'run', '--', 'ucx_perftest', '-l', '-t', test,
                                       '-s', '8', '-n', str(count), '-w', str(count // 10), '-f'], env)
        return self.ucx_figure(self.wait([program]), lat)

    @staticmethod
    def ucx_figure(output, lat):
        numbers = [line.split() for line in output.splitlines() if re.fullmatch(r'\s*\d+(\s+[\d.]+){7}\s*', line)]
        if not numbers:
            raise RuntimeError('ucx_perftest prints no result')
        # iterations, latency: typical, average, overall; MB/s: average, overall; messages/s: average, overall
        return float(numbers[-1][3]) if lat else float(numbers[-1][5]) * MIB

    def mpi(self, test, size):
        need('mpirun')
        program = f'{self.programs}/mpi_pair'
        if not os.path.exists(program):
            raise Absent('mpicc')
        mpirun = self.hosts.start(A, ['mpirun', '--allow-run-as-root', '--oversubscribe', '-np', '2', '--bind-to', 'none',
                                      '--mca', 'pml', 'ob1', '--mca', 'btl', 'self,vader', '--mca',
                                      'btl_vader_single_copy_mechanism', 'none', '--mca', 'mpi_yield_when_idle', '0',
                                      program, test, str(size), str(self.options.slice), *map(str, self.cpus)],
                                  {'LD_LIBRARY_PATH': None})
        return figure(self.wait([mpirun]), 'bytes_per_second' if test == 'bandwidth' else 'half_round_trip_us')

    def raw(self, test, name, *arguments):
        port = self.hosts.port()
        common = [f'{self.programs}/softhca-bench-raw-udp', test, '--port', str(port), '--seconds',
                  str(self.options.slice), *map(str, arguments)]
        server = self.hosts.start(A, [*common, '--cpu', str(self.cpus[1])])
        client = self.hosts.start(B, [*common, '--cpu', str(self.cpus[0]), '--connect', ADDRESS[A]])
        return figure(self.wait([server, client]), name)

    def cm(self, link, kind, name):
        """Measures connections of rdma_cm or of TCP."""
        port = self.hosts.port()
        common = [f'{self.programs}/softhca-bench-cm', kind, '--port', str(port), '--count', str(self.options.connections)]
        server = self.hosts.start(A, common, {'SOFTHCA_EXPLAIN': 'off'})
        deadline = time.monotonic() + 10
        ready = self.hosts.listens_cm if kind == 'rdma' else self.hosts.listens
        while server.poll() is None and time.monotonic() < deadline and not ready(A, port):
            time.sleep(0.002)
        client = self.hosts.start(A if link == 'shm' else B, [*common, '--connect', ADDRESS[A]], {'SOFTHCA_EXPLAIN': 'off'})
        return figure(self.wait([server, client]), name)

    def notice(self, means):
        """Returns the time that a thread on a busy processor takes to notice something, in us."""
        done = subprocess.run([f'{self.programs}/softhca-bench-notice', means, *map(str, self.cpus)], stdout=subprocess.PIPE,
                              text=True, check=True)
        return figure(done.stdout, f'{means}_us')

    def c2c(self):
        done = subprocess.run([f'{self.programs}/softhca-bench-c2c', *map(str, self.cpus)], stdout=subprocess.PIPE,
                              text=True, check=True)
        return figure(done.stdout, 'half_round_trip_us')

    def set_link_mtu(self, mtu):
        place.ip('link', 'set', 'a0', 'mtu', str(mtu))
        subprocess.run([*self.hosts.enter(B), 'ip', 'link', 'set', 'b0', 'mtu', str(mtu)], check=True)


def need(program):
    if not shutil.which(program):
        raise Absent(program)


def figure(output, name):
    found = re.search(rf'(?m)^{name} ([\d.]+)$', output)
    if not found:
        raise RuntimeError(f'no {name} in the output')
    return float(found[1])


# ---- the rows -------------------------------------------------------------------------------------------------------

class Row:
    """A measurement, its peers, and the goals of the comparison."""

    def __init__(self, group, name, unit, subject, peers=(), limit=None, prepare=None):
        self.group, self.name, self.unit, self.subject = group, name, unit, subject
        self.peers = peers      # (name, function, '<=' or '>=' or None, ratio)
        self.limit = limit      # ('<=' or '>=', value), in units
        self.prepare = prepare
        self.values = []
        self.peer_values = [[] for _ in peers]
        self.wrong = {}


def size_name(size):
    return f'{size // MIB} MiB' if size >= MIB else f'{size // KIB} KiB' if size >= KIB else f'{size} B'


def shm_rows(bench):
    tag_lat = ('UCX tag_lat, posix', lambda: bench.ucx('shm', 'posix', 'tag_lat', 8, lat=True))
    put_lat = ('UCX put_lat, posix', lambda: bench.ucx('shm', 'posix', 'ucp_put_lat', 8, lat=True), '<=', 2.5)
    yield Row('shm, latency', 'SEND 8 B, both poll', 'us',
              lambda: bench.pair('shm', 'send-latency', 'half_round_trip_us', '--size', 8), [(*tag_lat, '<=', 1.5)])
    yield Row('shm, latency', 'WRITE 8 B, target polls memory and CQ', 'us',
              lambda: bench.pair('shm', 'write-latency', 'half_round_trip_us', '--size', 8),
              [(*tag_lat, None, None), put_lat])
    yield Row('shm, latency', 'WRITE 8 B, target polls memory alone', 'us',
              lambda: bench.pair('shm', 'write-latency', 'half_round_trip_us', '--size', 8, '--passive'), limit=('<=', 5.0))
    yield Row('shm, latency', 'SEND 8 B, events', 'us',
              lambda: bench.pair('shm', 'send-latency', 'half_round_trip_us', '--size', 8, '--events'))
    yield Row('shm, rate', 'WRITE 64 B, 32 outstanding', 'M/s',
              lambda: bench.pair('shm', 'write-bandwidth', 'messages_per_second', '--size', 64, '--outstanding', 32) / 1e6,
              limit=('>=', 10.0))
    yield Row('shm, rate', 'WRITE 64 B, 32 outstanding, timeline', 'M/s',
              lambda: bench.recorded('shm', 'write-bandwidth', 'messages_per_second', '--size', 64, '--outstanding', 32) / 1e6,
              [('without', lambda: bench.pair('shm', 'write-bandwidth', 'messages_per_second', '--size', 64,
                                              '--outstanding', 32) / 1e6, '>=', 0.85)])
    for size in (4 * KIB, 64 * KIB, MIB):
        tag_bw = ('UCX tag_bw, posix,cma', lambda size=size: bench.ucx('shm', 'posix,cma', 'tag_bw', size) / 1e9)
        vader = ('Open MPI, no CMA', lambda size=size: bench.mpi('bandwidth', size) / 1e9)
        yield Row('shm, bandwidth', f'WRITE {size_name(size)}, both poll', 'GB/s',
                  lambda size=size: bench.pair('shm', 'write-bandwidth', 'bytes_per_second', '--size', size) / 1e9,
                  [(*tag_bw, '>=', 1.0)] if size == 4 * KIB else [(*vader, '>=', 0.8), (*tag_bw, '>=', 1.0)])
        yield Row('shm, bandwidth', f'WRITE {size_name(size)}, target makes no call', 'GB/s',
                  lambda size=size: bench.pair('shm', 'write-bandwidth', 'bytes_per_second', '--size', size, '--passive') / 1e9,
                  [(*tag_bw, '>=', 0.5 if size == 4 * KIB else 1.0)])


def udp_rows(bench):
    goals = {(4096, 64 * KIB): 0.5, (4096, MIB): 0.6, (1024, 64 * KIB): 0.35, (1024, MIB): 0.4}
    for mtu, link_mtu in ((4096, 4500), (1024, 1500)):
        def prepare(link_mtu=link_mtu):
            bench.set_link_mtu(link_mtu)

        for size in (64 * KIB, MIB):
            yield Row(f'udp, bandwidth, MTU {mtu}', f'WRITE {size_name(size)}', 'GB/s',
                      lambda size=size, mtu=mtu: bench.pair('udp', 'write-bandwidth', 'bytes_per_second', '--size', size,
                                                            '--mtu', mtu) / 1e9,
                      [('UCX tag_bw, tcp', lambda size=size: bench.ucx('udp', 'tcp', 'tag_bw', size) / 1e9, '>=', 1.2),
                       ('raw UDP, GSO and GRO', lambda mtu=mtu: bench.raw('stream', 'bytes_per_second', '--size',
                                                                          mtu) / 1e9, '>=', goals[mtu, size]),
                       ('raw UDP, what arrives is read', lambda mtu=mtu: bench.raw('stream', 'bytes_per_second', '--read',
                                                                                   '--size', mtu) / 1e9, None, None),
                       ('raw UDP, in calls as short', lambda size=size, mtu=mtu: bench.raw(
                           'stream', 'bytes_per_second', '--message', size, '--size', mtu) / 1e9, None, None)],
                      prepare=prepare)
    yield Row('udp, latency', 'SEND 8 B, both poll', 'us',
              lambda: bench.pair('udp', 'send-latency', 'half_round_trip_us', '--size', 8),
              [('raw UDP, spinning', lambda: bench.raw('ping-pong', 'half_round_trip_us'), '<=', 1.8),
               ('raw UDP, addresses and ACKs', lambda: bench.raw('ping-pong', 'half_round_trip_us', '--addressed', '--size', 24),
                None, None)])
    yield Row('udp, latency', 'SEND 8 B, events', 'us',
              lambda: bench.pair('udp', 'send-latency', 'half_round_trip_us', '--size', 8, '--events'),
              [('raw UDP, blocking', lambda: bench.raw('ping-pong', 'half_round_trip_us', '--blocking'), '<=', 1.3)])


    yield Row('udp, rate', 'WRITE 64 B, 32 outstanding', 'M/s',
              lambda: bench.pair('udp', 'write-bandwidth', 'messages_per_second', '--size', 64, '--outstanding', 32) / 1e6,
              [('UCX tag_bw 8 B, tcp', lambda: bench.ucx('udp', 'tcp', 'tag_bw', 8) / 8 / 1e6, '>=', 2.0)])


def ucx_rows(bench):
    """UCX over softhca, compared with UCX alone: half round trips, and streams of messages. Rings of rc_x are watched by a
    thread, which has to share a processor with a program that polls."""
    for link, alone, times, most_us, least in (('shm', 'posix', 12, 20, 0.6), ('udp', 'tcp', 5, 35, 0.2)):
        for transports in ('rc_v', 'rc_x', 'dc_x', 'ud_x'):
            def latency(transports, link=link):
                return bench.ucx(link, transports, 'tag_lat', 8, lat=True)

            def rate(transports, link=link):
                return bench.ucx(link, transports, 'tag_bw', 8) / 8 / 1e6

            watched = transports == 'rc_x'
            peers = [(f'UCX {alone}', lambda latency=latency, alone=alone: latency(alone), None, None)]
            if watched:
                peers += [('UCX rc_v over softhca', lambda latency=latency: latency('rc_v'), '<=', times),
                          ('a look beside a polling thread', lambda: bench.notice('look'), None, None),
                          ('a wake-up beside a polling thread', lambda: bench.notice('wake'), None, None)]
            yield Row(f'{link}, UCX over softhca', f'{transports}, tag_lat 8 B', 'us',
                      lambda latency=latency, transports=transports: latency(transports), peers,
                      limit=('<=', most_us) if watched else None)
            yield Row(f'{link}, UCX over softhca', f'{transports}, tag_bw 8 B', 'M/s',
                      lambda rate=rate, transports=transports: rate(transports),
                      [(f'UCX {alone}', lambda rate=rate, alone=alone: rate(alone),
                        *(('>=', 2.0) if (link, transports) == ('udp', 'rc_v') else (None, None)))],
                      limit=('>=', least) if watched else None)


def umem_rows(bench):
    """Queues by commands, in umems, compared with the same queues in memory of the library."""
    yield Row('UCX over softhca, one process', 'rc_x by commands, tag_lat 8 B', 'us',
              lambda: bench.ucx_alone('rc_x', 'tag_lat', lat=True),
              [('rc_x, rings of mlx5dv_init_obj', lambda: bench.ucx_alone('rc_x', 'tag_lat', lat=True, devx=False), '<=', 1.5)])
    yield Row('UCX over softhca, one process', 'rc_x by commands, tag_bw 8 B', 'M/s',
              lambda: bench.ucx_alone('rc_x', 'tag_bw') / 8 / 1e6,
              [('rc_x, rings of mlx5dv_init_obj', lambda: bench.ucx_alone('rc_x', 'tag_bw', devx=False) / 8 / 1e6, '>=', 0.7)])


def connection_rows(bench):
    for link in ('shm', 'udp'):
        group = f'{link}, connections'
        yield Row(group, 'connecting 1000 QPs', 's',
                  lambda link=link: bench.pair(link, 'connect', 'seconds'), limit=('<=', 2.0))
        yield Row(group, 'memory per connection', 'bytes',
                  lambda link=link: bench.pair(link, 'connect', 'bytes_per_connection'))
        yield Row(group, 'memory per pair of processes', 'bytes',
                  lambda link=link: bench.pair(link, 'connect', 'bytes_per_process_pair'))
        count = bench.options.connections
        yield Row(group, f'rdma_cm, {count} with QPs, each', 'us',
                  lambda link=link: bench.cm(link, 'rdma', 'us_per_connection'),
                  [('TCP connect and accept', lambda link=link: bench.cm(link, 'tcp', 'us_per_connection'), '<=', 5.0)])
        yield Row(group, f'rdma_cm, memory of each of {count}', 'bytes',
                  lambda link=link: bench.cm(link, 'rdma', 'bytes_per_connection'))
        yield Row(group, 'CPU of a silent pair', '%',
                  lambda link=link: 100 * bench.pair(link, 'idle', 'cpu_share', '--seconds', bench.options.idle),
                  limit=('<=', 0.1))


# ---- measuring and printing -----------------------------------------------------------------------------------------

def attempt(row, name, function, values):
    try:
        values.append(function())
    except (RuntimeError, Absent) as error:
        row.wrong[name] = f'not installed: {error}' if isinstance(error, Absent) else f'failed: {error}'


def measure(row, rounds):
    """Measures the row and its peers in turn."""
    if row.prepare:
        row.prepare()
    for _ in range(rounds):
        attempt(row, '', row.subject, row.values)
        for (name, function, _, _), values in zip(row.peers, row.peer_values):
            if name not in row.wrong:
                attempt(row, name, function, values)


def number(value, unit):
    return f'{value:.0f} {unit}' if unit == 'bytes' else f'{value:.3g} {unit}' if value < 100 else f'{value:.0f} {unit}'


def holds(relation, value, limit):
    return value <= limit if relation == '<=' else value >= limit


def verdict(met):
    return 'met' if met else 'MISSED'


def report(row):
    """Prints the row; returns it for JSON."""
    data = {'group': row.group, 'name': row.name, 'unit': row.unit, 'peers': []}
    if not row.values:
        print(f'  {row.name:<40} {row.wrong.get("", "")}', flush=True)
        data['wrong'] = row.wrong.get('')
        return data
    median = statistics.median(row.values)
    data.update(median=median, min=min(row.values), max=max(row.values))
    line = f'  {row.name:<40} {number(median, row.unit):>12}'
    if '' in row.wrong:
        data['wrong'] = row.wrong['']
        line += f'  ({len(row.values)} rounds; {row.wrong[""]})'
    if row.limit:
        met = holds(row.limit[0], median, row.limit[1])
        data.update(goal=f'{row.limit[0]} {row.limit[1]}', met=met)
        line += f'  {row.limit[0]} {number(row.limit[1], row.unit)}  {verdict(met)}'
    print(line)
    for (name, _, relation, limit), values in zip(row.peers, row.peer_values):
        if not values:
            print(f'    {name:<38} {row.wrong.get(name, "")}')
            data['peers'].append({'name': name, 'wrong': row.wrong.get(name)})
            continue
        ratios = [own / peer for own, peer in zip(row.values, values)]
        ratio = statistics.median(ratios)
        peer = {'name': name, 'median': statistics.median(values), 'ratio': ratio, 'min': min(ratios), 'max': max(ratios)}
        line = f'    {name:<38} {number(peer["median"], row.unit):>12}  {ratio:6.2f} [{min(ratios):.2f}-{max(ratios):.2f}]'
        if relation:
            peer.update(goal=f'{relation} {limit}', met=holds(relation, ratio, limit))
            line += f'  {relation} {limit:.2f}  {verdict(peer["met"])}'
        print(line)
        data['peers'].append(peer)
    sys.stdout.flush()
    return data


def run(options):
    results = {'rounds': options.rounds, 'rows': []}
    with place.Hosts(4500) as hosts:
        bench = Bench(hosts, options)
        if len(bench.cpus) < 2:
            print('links: not measured: two processes that poll need two CPUs')
            return
        print(f'\n{options.rounds} rounds, processes on CPUs {bench.cpus[0]} and {bench.cpus[1]}; '
              'a ratio is ours to the peer\'s, the median of the rounds\' [min-max]')
        group = ''
        for row in [*shm_rows(bench), *udp_rows(bench), *ucx_rows(bench), *umem_rows(bench), *connection_rows(bench)]:
            if options.only and options.only not in f'{row.group}: {row.name}':
                continue
            if row.group != group:
                group = row.group
                lines = bench.c2c()
                print(f'\n{group}   (cache line from CPU to CPU: {lines * 1e3:.0f} ns)')
            measure(row, options.rounds if 'connections' not in group else min(3, options.rounds))
            results['rows'].append(report(row) | {'c2c_us': lines})
    if options.json:
        with open(options.json, 'w', encoding='ascii') as file:
            json.dump(results, file, indent=1)
        print(f'\n{options.json}')


def forbidden(reason):
    print(f'\nlinks: not measured: {reason}')
    sys.exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--rounds', type=int)
    parser.add_argument('--only', help='rows with this text in "group: name"')
    parser.add_argument('--json')
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.slice = 0.05 if options.quick else 0.2
    options.connections = 1000 if options.quick else 10000
    options.idle = 1 if options.quick else 3
    place.LIBRARIES = f'{options.build}/lib'
    run(options)


if __name__ == '__main__':
    place.enter(forbidden)
    main()

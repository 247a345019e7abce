# SPDX-License-Identifier: BSD-2-Clause
"""
The front-ends export what Debian 12's libraries export, symbol by symbol and version by version, and nothing else.

exports.py LIBRARY_DIRECTORY: compares with the lists *.symbols beside this file and, where the
distribution's libraries are installed, those files with them. Also holds the tables to the lists, and libsofthca.so.0
to the tables. Exit status 0 or 1.
"""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../../scripts'))
import abi_tables  # noqa: E402

failures = []


def readelf(option, path):
    return subprocess.run(['readelf', '--wide', option, path], capture_output=True, text=True, check=True).stdout


def exported(path):
    """{'name@@version': kind} of the defined symbols that a program can link with."""
    found = {}
    for line in readelf('--dyn-syms', path).splitlines():
        fields = line.split()
        # ABS: the linker's own symbols, one per version node.
        if len(fields) == 8 and fields[0].endswith(':') and fields[6] not in ('UND', 'ABS'):
            if fields[4] in ('GLOBAL', 'WEAK') and fields[5] in ('DEFAULT', 'PROTECTED'):
                found[fields[7]] = fields[3].lower()
    return found


def undefined(path):
    return {f[7].split('@')[0] for f in map(str.split, readelf('--dyn-syms', path).splitlines())
            if len(f) == 8 and f[6] == 'UND'}


def nodes(path):
    """{node: [parents]} of the version definitions, without the one that names the file."""
    found, name = {}, None
    text = readelf('--version-info', path).split('Version needs section')[0]
    for line in text.splitlines():
        definition = re.search(r'Rev: .* Flags: (\w+) .*Name: (\S+)', line)
        parent = re.search(r'Parent \d+: (\S+)', line)
        if definition:
            name = None if definition.group(1) == 'BASE' else definition.group(2)
            if name:
                found[name] = []
        elif parent and name:
            found[name].append(parent.group(1))
    return found


def dynamic(path, tag):
    return re.findall(r'\(%s\).*\[(.*)\]' % tag, readelf('--dynamic', path))


def read_list(path):
    """The distribution's symbols, those of later libraries that ours have besides, and the versions."""
    symbols, beyond, graph, graph_beyond = {}, {}, {}, {}
    for line in open(path):
        fields = line.split()
        if fields and fields[0] in ('symbol', 'beyond'):
            (symbols if fields[0] == 'symbol' else beyond)[fields[1]] = fields[2]
        elif fields and fields[0] in ('node', 'beyond-node'):
            (graph if fields[0] == 'node' else graph_beyond)[fields[1]] = fields[2:]
    return symbols, beyond, graph, graph_beyond


def same(what, got, wanted):
    for key in sorted(wanted.keys() - got.keys()):
        failures.append('%s: %s is missing' % (what, key))
    for key in sorted(got.keys() - wanted.keys()):
        failures.append('%s: %s is too much' % (what, key))
    for key in sorted(got.keys() & wanted.keys()):
        if got[key] != wanted[key]:
            failures.append('%s: %s is %s, not %s' % (what, key, got[key], wanted[key]))


def check(directory, library, table):
    symbols, beyond, graph, graph_beyond = read_list(os.path.join(HERE, library + '.symbols'))
    path = os.path.join(directory, library + '.so.1')
    ours = exported(path)
    same(path, ours, {**symbols, **beyond})
    same(path + ' versions', nodes(path), {**graph, **graph_beyond})
    print('%s: %d symbols, %d versions' % (path, len(ours), len(nodes(path))))

    if dynamic(path, 'SONAME') != [library + '.so.1']:
        failures.append('%s: soname %s' % (path, dynamic(path, 'SONAME')))
    if [entry.rstrip('/') for entry in dynamic(path, 'RUNPATH')] != ['$ORIGIN']:
        failures.append('%s: RUNPATH %s is not $ORIGIN' % (path, dynamic(path, 'RUNPATH')))
    if dynamic(path, 'RPATH'):
        failures.append('%s: RPATH %s' % (path, dynamic(path, 'RPATH')))

    same('table of ' + library, {s.versioned: s.elf_kind for s in table}, {**symbols, **beyond})

    installed = glob.glob('/usr/lib/*/%s.so.1' % library) + glob.glob('/usr/lib64/%s.so.1' % library)
    for path in installed[:1]:
        same(path + ' against the list', exported(path), symbols)
        same(path + ' versions against the list', nodes(path), graph)
        print('%s: compared' % path)
    if not installed:
        print('%s of the distribution is not installed: not compared' % library)


def check_bodies(directory, tables):
    """Each body has a symbol that leads to it, each forward a body."""
    path = os.path.join(directory, 'libsofthca.so.0')
    have = {name.split('@')[0] for name in exported(path)}
    wanted = {s.body for s in tables if s.state == 'IMPLEMENTED'}
    for name in sorted(have - wanted):
        if re.match(r'softhca_(_*(ibv|mlx5dv|verbs|ioctl|rdma)_|\w+_ibv_rate$)', name):
            failures.append('%s: %s is exported, but no symbol of a front-end calls it' % (path, name))
    missing = sorted(wanted - have)
    for library in ('libibverbs', 'libmlx5', 'librdmacm'):
        needed = undefined(os.path.join(directory, library + '.so.1'))
        for name in sorted(n for n in needed if n.startswith('softhca_')):
            if name not in have and name not in missing:
                missing.append(name)
    for name in missing:
        failures.append('%s: %s has no body' % (path, name))


def main():
    directory = sys.argv[1]
    verbs, mlx5dv, rdmacm = abi_tables.verbs(), abi_tables.mlx5dv(), abi_tables.rdmacm()
    check(directory, 'libibverbs', verbs)
    check(directory, 'libmlx5', mlx5dv)
    check(directory, 'librdmacm', rdmacm)
    check_bodies(directory, verbs + mlx5dv + rdmacm)
    for line in failures:
        print('FAIL', line)
    return 1 if failures else 0


sys.exit(main())

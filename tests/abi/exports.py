# SPDX-License-Identifier: BSD-2-Clause
"""
The front-ends export the symbols and versions of the libraries of all releases of rdma-core from 44 on, and nothing else.

exports.py LIBRARY_DIRECTORY: compares the front-ends with the lists *.symbols in this directory and, if the distribution's
libraries are installed, the lists of their release with those libraries. Also compares the tables with the lists, and
libsofthca.so.0 with the tables. Exit status 0 or 1.
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


LATEST = 10 ** 6
MOST_THREAD_VARIABLES = 128


class Exports:
    """A list of the exports of rdma-core, release by release."""

    def __init__(self, path):
        self.symbols, self.nodes, self.private, self.private_nodes = [], [], [], []
        for line in open(path):
            fields = line.split()
            word = fields.pop(0) if fields else '#'
            if word in ('symbol', 'node'):
                fields.insert(0, '44')
            if word in ('symbol', 'later'):
                self.symbols.append((int(fields[0]), *fields[1:]))
            elif word in ('node', 'later-node'):
                self.nodes.append((int(fields[0]), fields[1], fields[2:]))
            elif word == 'private':
                self.private.append((int(fields[0]), *fields[1:]))
            elif word == 'private-nodes':
                self.private_nodes = [int(number) for number in fields]
            elif word[0] != '#':
                raise ValueError('%s: %s' % (path, line))

    def until(self, release):
        """Public symbols {name@@version: kind} and nodes {node: [parents]} of releases up to @release."""
        return ({name: kind for since, name, kind in self.symbols if since <= release},
                {node: parents for since, node, parents in self.nodes if since <= release})

    def private_of(self, node, release):
        """{name: kind} of one private node, in its last release up to @release."""
        last = min([later - 1 for later in self.private_nodes if later > node] + [release])
        return {**{name: kind for since, name, kind in self.private if since <= last},
                'verbs_register_driver_%d' % node: 'func'}

    def all(self):
        """Exports of our library: every symbol of every release; a private one is current in its first node."""
        symbols, graph = self.until(LATEST)
        current = set()
        for node in self.private_nodes:
            graph['IBVERBS_PRIVATE_%d' % node] = []
            for name, kind in self.private_of(node, LATEST).items():
                symbols['%s%sIBVERBS_PRIVATE_%d' % (name, '@' if name in current else '@@', node)] = kind
                current.add(name)
        return symbols, graph

    def of(self, release):
        """Exports of the library of @release."""
        symbols, graph = self.until(release)
        for node in [number for number in self.private_nodes if number <= release][-1:]:
            graph['IBVERBS_PRIVATE_%d' % node] = []
            symbols.update({'%s@@IBVERBS_PRIVATE_%d' % (name, node): kind
                            for name, kind in self.private_of(node, release).items()})
        return symbols, graph


def installed_release():
    """Release of the installed rdma-core, 56 for libibverbs 1.14.56.1; None if unknown."""
    run = subprocess.run(['pkg-config', '--modversion', 'libibverbs'], capture_output=True, text=True, check=False)
    version = re.match(r'1\.\d+\.(\d+)\.', run.stdout + '.')
    return int(version.group(1)) if version else None


def same(what, got, wanted):
    for key in sorted(wanted.keys() - got.keys()):
        failures.append('%s: %s is missing' % (what, key))
    for key in sorted(got.keys() - wanted.keys()):
        failures.append('%s: %s is too much' % (what, key))
    for key in sorted(got.keys() & wanted.keys()):
        if got[key] != wanted[key]:
            failures.append('%s: %s is %s, not %s' % (what, key, got[key], wanted[key]))


def check(directory, library, table):
    exports = Exports(os.path.join(HERE, library + '.symbols'))
    symbols, graph = exports.all()
    path = os.path.join(directory, library + '.so.1')
    ours = exported(path)
    same(path, ours, symbols)
    same(path + ' versions', nodes(path), graph)
    print('%s: %d symbols, %d versions' % (path, len(ours), len(nodes(path))))

    if dynamic(path, 'SONAME') != [library + '.so.1']:
        failures.append('%s: soname %s' % (path, dynamic(path, 'SONAME')))
    if [entry.rstrip('/') for entry in dynamic(path, 'RUNPATH')] != ['$ORIGIN']:
        failures.append('%s: RUNPATH %s is not $ORIGIN' % (path, dynamic(path, 'RUNPATH')))
    if dynamic(path, 'RPATH'):
        failures.append('%s: RPATH %s' % (path, dynamic(path, 'RPATH')))

    same('table of ' + library, {s.versioned: s.elf_kind for s in table}, symbols)

    installed = glob.glob('/usr/lib/*/%s.so.1' % library) + glob.glob('/usr/lib64/%s.so.1' % library)
    release = installed_release()
    for path in installed[:1] if release else []:
        symbols, graph = exports.of(release)
        same(path + ' against the list', exported(path), symbols)
        same(path + ' versions against the list', nodes(path), graph)
        print('%s: compared, as release %d' % (path, release))
    if not installed or not release:
        print('%s of the distribution, or its release, was not found: not compared' % library)


def check_bodies(directory, tables):
    """Checks that each body has a symbol that leads to it, and each forward a body."""
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


def check_thread_variables(directory):
    """
    Checks that the variables of threads are small. Those of a library with DF_STATIC_TLS share some 1.6 kB with those of all
    other such libraries that a program loads by dlopen(3), which fails without room.
    """
    path = os.path.join(directory, 'libsofthca.so.0')
    sizes = [int(fields[5], 16) for fields in map(str.split, readelf('--program-headers', path).splitlines())
             if fields[:1] == ['TLS']]
    print('%s: %s bytes of thread variables' % (path, sizes))
    if len(sizes) != 1 or sizes[0] > MOST_THREAD_VARIABLES:
        failures.append('%s: %s bytes of thread variables, at most %d' % (path, sizes, MOST_THREAD_VARIABLES))


def main():
    directory = sys.argv[1]
    verbs, mlx5dv, rdmacm = abi_tables.verbs(), abi_tables.mlx5dv(), abi_tables.rdmacm()
    check(directory, 'libibverbs', verbs)
    check(directory, 'libmlx5', mlx5dv)
    check(directory, 'librdmacm', rdmacm)
    check_bodies(directory, verbs + mlx5dv + rdmacm)
    check_thread_variables(directory)
    for line in failures:
        print('FAIL', line)
    return 1 if failures else 0


sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Checks the examples in the documents. Each block of code is a list of commands, run here one after the other as by a reader, or
has a row in a table below that names its kind.

shown.py COMMAND LIBRARIES SOURCE BUILD

A command must end with status 0. If its output is shown, as the lines below a prompt or as a block named in LIKE, it must print
these lines; figures stand for any figures, and … for omitted text. A new block is run; a row of a table that matches no
block is an error.

A complete command in a sentence, `softhca …`, is run as well.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from documents_text import CODE, DOCUMENTS, SOURCE, read
from harness import TOOL, clean_environment, main

BUILD = os.path.abspath(sys.argv[4])
PATIENCE = 60

# ---- what a reader has ---------------------------------------------------------------------------------------------------

# The reader's program, by document: one of ours that triggers each command's output. {path: the file copied there, or
# the command of a script there}; build/ is the build directory, and tests, examples, scripts are there as well.
PLACED = {
    'README.md': {'program': 'build/examples/tutorial'},
    'docs/use/faq.md': {'program': 'build/examples/lent_window', 'program-with-asan': 'build/examples/tutorial'},
    'docs/use/faults.md': {'program': 'build/examples/ping_pong 50'},
    'docs/use/howto.md': {'program': 'build/examples/lent_window'},
    'docs/use/inspecting.md': {'program': 'build/examples/lent_window'},
    'docs/use/keys.md': {'program': 'build/examples/lent_window', 'scattered_records': 'build/examples/scattered_records'},
    'docs/use/lint.md': {'program': 'build/tests/tool/tool-misuse'},
    'docs/use/report.md': {'program': 'build/examples/lent_window'},
    'docs/use/timeline.md': {name: 'build/examples/lent_window' for name in ('program', 'server', 'client')},
}
# RDMA_WRITE of 256 bytes.
RING = bytes.fromhex('0000000800004003000000080000000000001000000000000000a1b200000000000001000000c3d40000000000002000') + bytes(16)
FILES = {
    'docs/use/howto.md': {'ring.bin': RING, 'Makefile': b'check:\n\t./program\n'},
    'docs/use/faults.md': {'faults.txt': b'drop 1%\n'},
    'docs/use/inspecting.md': {'ring.bin': RING},
    # Linked with softhca by pkg-config, and with verbs and a sanitizer.
    'docs/use/install.md': {'program.c': b'''
#ifdef __SANITIZE_ADDRESS__
#include <infiniband/verbs.h>
int main(void) { int count = 0; ibv_free_device_list(ibv_get_device_list(&count)); return count != 1; }
#else
const char *softhca_version(void);
int main(void) { return !*softhca_version(); }
#endif
'''},
    'docs/use/report.md': {'run/.keep': b''},
}

# ---- other blocks --------------------------------------------------------------------------------------------------------

PICTURE, OUTPUT_OF_OTHERS, SCRIPT = 'a picture', 'output, which another test compares', 'a fault script, which manual.py tries'
C, EXPLANATION, GDB = 'C', 'an explanation', 'gdb'
# {document: {beginning of the block: its kind}}. C is compiled, an explanation compared with its rule, commands of gdb
# given to gdb.
OTHER = {
    'README.md': {'mlx5_0 qp 0x40 RDMA_WRITE': EXPLANATION},
    'docs/inside/architecture.md': {' program': PICTURE, ' ibv_post_send()': PICTURE},
    'docs/reference/explanations.md': {'mlx5_0 qp 0x40 RDMA_WRITE': EXPLANATION},
    'docs/use/faults.md': {'script    =': 'a grammar', 'drop 1%; duplicate': SCRIPT, 'at packet 1000': SCRIPT, 'on rc of ack': SCRIPT,
                           'of write, read': SCRIPT, 'on rc rnr 3': SCRIPT, 'of cm rep': SCRIPT, 'of write at packet 5000': SCRIPT},
    'docs/use/howto.md': {'mlx5dv_wr_mkey_configure(': C, 'mlx5dv_wr_set_mkey_sig_block(': C, 'mlx5dv_wr_set_mkey_crypto(': C,
                      'ibv_wr_rdma_write(': C},
    'docs/use/inspecting.md': {'mlx5_0 qp 0x40 RDMA_WRITE': EXPLANATION, 'struct softhca_explanation last[16];': C,
                               '(gdb) x/64xb sq.buf': 'what decode.py does'},
    'docs/use/install.md': {'find_package(': 'what install.py does'},
    'docs/use/keys.md': {'keys/9272-mlx5_0-': PICTURE, 'softhca_draw_mkey(': C, '(gdb) call': GDB, 'define key': GDB},
    'docs/use/lint.md': {'mlx5_0 ibv_close_device:': EXPLANATION},
    'docs/inside/rdma-cm.md': {'IDLE --bind_addr-->': PICTURE},
}
# {document: {beginning of a block: beginning of the block that prints it}}
LIKE = {
    'docs/use/faults.md': {'softhca: mlx5_0: faults: 5021 frames': "softhca run --faults 'drop 1%"},
    'docs/use/keys.md': {'mlx5_0 layout key 0xce90a800': 'head -c 64000'},
    'docs/use/lint.md': {'softhca: lint: 2 warnings': 'softhca run --lint -- ./program'},
    'docs/use/timeline.md': {'2000 requests, median': 'softhca run --timeline trace.json -- build/examples/ping_pong'},
}

# ---- how commands are run ------------------------------------------------------------------------------------------------

LONG, CHANGES_THE_MACHINE = 'takes minutes; CI and `make` do it', 'installs packages, with those of the distribution'
# {document: {beginning of the command: why it is not run}}
NOT_HERE = {
    'README.md': {'make demo': 'examples/demo.sh is a test', 'make test': LONG, 'make install': 'builds anew; install.py installs'},
    'CONTRIBUTING.md': {'make': LONG},
    'docs/inside/benchmarks.md': {'make bench': LONG, 'bench/bench.sh build': LONG, 'make bench-count': LONG},
    'docs/use/install.md': {'make install': 'builds anew; install.py installs', 'make uninstall': 'install.py removes', 'meson': 'builds anew; install.py installs',
                        'ninja': 'builds anew', 'make deb': LONG, 'make distro': LONG, 'apt install': CHANGES_THE_MACHINE},
    'docs/use/howto.md': {'make clients': LONG, 'softhca on': 'hosts.py does', 'mpirun --mca plm_rsh_agent': 'hosts.py does',
                      'softhca env --format=github': 'GitHub sets the variable'},
    'docs/use/tutorial.md': {'': 'tutorial.py does, and compares all of the output'},
}
# Commands with an exit status other than 0.
STATUS = {('docs/use/faults.md', "softhca run --faults 'drop 1%; delay 5' true"): 2}
# Commands that run until they are interrupted.
ENDLESS = ('softhca top',)
# Commands for one terminal; the next one is for another.
TWO_TERMINALS = ('softhca run -- ibv_rc_pingpong', 'softhca run -- ib_write_bw', 'softhca run -- rping -s')
# Programs that a reader need not have, and shell builtins.
CLIENTS = ('gdb', 'valgrind', 'tshark', 'mpirun', 'rping', 'ib_write_bw', 'ibv_rc_pingpong', 'ibv_devices', 'dpdk-test-crypto-perf')
BUILT_IN = ('export', 'eval')
# Commands in sentences with placeholders.
OPEN = re.compile(r'[A-Z]{3,}|…|\*|^softhca (?:run|hosts|on|env|top|report|decode|encode|timeline|completion)(?: (?:--)?[a-z]+)?$')


# ---- blocks --------------------------------------------------------------------------------------------------------------

class Block:
    """A block of code of a document."""

    def __init__(self, document, line, text):
        self.document, self.line = document, line
        self.lines = text.rstrip('\n').split('\n')

    def __str__(self):
        return f'{self.document}:{self.line}'

    def begins(self, beginnings):
        return next((begin for begin in beginnings if self.lines[0].startswith(begin)), None)

    def commands(self):
        """Returns [(command, lines of output)]; without prompts all lines are commands."""
        found, prompted = [], any(line.startswith('$ ') for line in self.lines)
        document, joined = None, False
        for line in self.lines:
            if line.lstrip().startswith('#') and not document:
                continue
            if joined or document:
                found[-1][0] += '\n' + line
            elif prompted and not line.startswith('$ '):
                found[-1][1].append(line)
            elif line:
                found.append([line.removeprefix('$ ') if prompted else line, []])
                here = re.search(r"<<'?(\w+)'?$", line)
                document = here and here[1]
            if line == document:
                document = None
            joined = line.endswith('\\')
        return [(re.sub(r'\s+#.*$', '', command) if '\n' not in command else command, output) for command, output in found]


def blocks(document):
    text = read(os.path.join(SOURCE, document))
    for match in CODE.finditer(text):
        inner = match[1] if match[1] is not None else re.sub(r'(?m)^(?: {4}|\t)', '', match[0])
        yield Block(document, text.count('\n', 0, match.start()) + 1, inner)


def masked(line):
    """Returns the line with all figures masked."""
    line = re.sub(r'0x[0-9a-f]+|\b[0-9][0-9,.]*\b|(?<=\d)(?:ns|us|ms|s)\b', 'N', line)
    return re.sub(r'\s+', ' ', line).strip()


def first_missing(shown, printed):
    """Returns the first of the lines `shown` that is not in `printed` after those before it, or None."""
    printed = [masked(line) for line in printed]
    for line in shown:
        if masked(line) in ('', '…'):
            continue
        pattern = re.escape(masked(line)).replace('…', '.*')
        place = next((place for place, other in enumerate(printed) if re.fullmatch(pattern, other)), None)
        if place is None:
            return line
        printed = printed[place + 1:]
    return None


def may(*command):
    return subprocess.run([*command, 'true'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


# A separate network, with an interface of 1500 bytes: no port is in use there, whatever else runs.
ALONE = ['unshare', '--user', '--map-root-user', '--net', 'sh', '-ec',
         'printf "%s\\n" "link set lo up" "link add a0 type veth peer name b0" "addr add 10.77.0.1/24 dev a0" "link set a0 up" '
         '"link set b0 up" | ip -batch -; exec "$@"', 'sh']
CAN_BE_ALONE = may(*ALONE)


class Reader:
    """A user typing commands in a directory."""

    def __init__(self, document):
        self.document = document
        self.place = tempfile.TemporaryDirectory()
        self.environment = clean_environment(
            PATH=f'{os.path.dirname(TOOL)}:{self.place.name}:{os.environ["PATH"]}', HOME=self.place.name,
            PKG_CONFIG_PATH=f'{BUILD}/meson-uninstalled', LIBRARY_PATH=f'{BUILD}/lib', OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
            OMPI_MCA_rmaps_base_oversubscribe='1')
        os.symlink(BUILD, self.path('build'))
        for name in ('bench', 'examples', 'scripts', 'tests', 'docs'):
            os.symlink(f'{SOURCE}/{name}', self.path(name))
        for name, program in PLACED.get(document, {}).items():
            program, *words = program.replace('build', BUILD, 1).split()
            if words:
                with open(self.path(name), 'w', encoding='utf-8') as file:
                    file.write(f'#!/bin/sh\nexec {program} {" ".join(words)} "$@"\n')
                os.chmod(self.path(name), 0o755)
            else:
                shutil.copy(program, self.path(name))
        for name, content in FILES.get(document, {}).items():
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            with open(self.path(name), 'wb') as file:
                file.write(content)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.place.cleanup()

    def path(self, name):
        return os.path.join(self.place.name, name)

    def has(self, program):
        return shutil.which(program, path=f'{self.environment["PATH"]}:{self.place.name}') or os.path.exists(self.path(program))

    def arguments(self, script):
        return [*(ALONE if CAN_BE_ALONE else []), 'sh', '-ec', script]

    def run(self, script, **options):
        return subprocess.run(self.arguments(script), cwd=self.place.name, env=self.environment, text=True, timeout=PATIENCE,
                              check=False, **{'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT,
                                              **options})


def not_here(document, command):
    return max((begin for begin in NOT_HERE.get(document, {}) if command.startswith(begin)), key=len, default=None)


# Declarations that fragments of C in the documents assume.
PROLOGUE = '''
#include <stdio.h>
#include <unistd.h>
#include <infiniband/mlx5dv.h>
#include <softhca.h>
extern struct ibv_context *context; extern struct ibv_wc wc; extern struct ibv_qp_ex *qp; extern struct mlx5dv_qp_ex *builder, *dv;
extern struct mlx5dv_mkey *mkey; extern struct mlx5dv_mkey_conf_attr attr; extern struct mlx5dv_mkey_err error;
extern struct mlx5dv_dek *dek; extern struct ibv_sge *sge; extern struct mlx5dv_mr_interleaved *interleaved;
extern struct mlx5dv_sig_block_domain t10dif; extern uint16_t pieces, columns; extern uint32_t rows; extern uint8_t mask;
extern uint32_t rkey, lkey, dct_number, length; extern uint64_t remote_addr, addr, dc_access_key; extern struct ibv_ah *ah;
void shown(void);
void shown(void)
{
'''


class Shown(unittest.TestCase):
    maxDiff = None

    def one(self, reader, command, shown):
        """Runs a command. Returns the lines of its output."""
        if command.startswith(ENDLESS):
            command = f'timeout -s INT 2 {command} || test $? = 124'
        done = reader.run(command)
        wanted = STATUS.get((reader.document, command), 0)
        self.assertEqual(done.returncode, wanted, f'{reader.document}: {command}\n{done.stdout}')
        self.assertIsNone(first_missing(shown, done.stdout.splitlines()), f'{reader.document}: {command}\n{done.stdout}')
        return done.stdout.splitlines()

    def two(self, reader, first, second):
        """Runs the first one in one terminal, then the second one, which is repeated until the first one listens."""
        script = f'({first}) >first 2>&1 & first=$!\n' \
                 f'for i in $(seq 100); do if ({second}) >second 2>&1; then wait $first; exit; fi; sleep 0.1; done; kill $first; exit 1'
        done = reader.run(script)
        said = ''.join(read(reader.path(name)) for name in ('first', 'second'))
        self.assertEqual(done.returncode, 0, f'{reader.document}: {first}; {second}\n{done.stdout}{said}')

    def commands(self, reader, block, used):
        """Runs the commands of a block. Returns the lines of their output."""
        commands = block.commands()
        printed = []
        waiting = None
        for number, (command, shown) in enumerate(commands):
            reason = not_here(block.document, command)
            if reason is not None:
                used.add((block.document, reason))
                continue
            first = re.sub(r'^(\w+=\S* )+', '', command).split()[0]
            if first not in BUILT_IN and not reader.has(first):
                self.fail(f'{block}: {first} is not installed, or "{command}" is not a command')
            lacking = [word for word in CLIENTS if re.search(rf'(^|\s){word}(\s|$)', command) and not reader.has(word)]
            if lacking:
                print(f'# {block}: left out, there is no {lacking[0]}: {command}')
                continue
            if waiting:
                self.two(reader, waiting, command)
                waiting = None
                continue
            if command.startswith(TWO_TERMINALS):
                waiting = command
                continue
            if any('softhca env' in before for before, _ in commands[:number]):
                command = f'eval "$(softhca env)"; {command}'
            printed += self.one(reader, command, shown)
        return printed

    def other(self, reader, block, kind):
        if kind == GDB and not reader.has('gdb'):
            print(f'# {block}: left out, there is no gdb')
        elif kind == C:
            source = PROLOGUE + '\n'.join(block.lines).replace('…', '') + '\n}\n'
            done = subprocess.run(['cc', '-Wall', '-Werror', '-fsyntax-only', '-I', f'{SOURCE}/include', '-x', 'c', '-'], input=source,
                                  text=True, capture_output=True, check=False, timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, f'{block}\n{done.stderr}')
        elif kind == EXPLANATION:
            number, name, advice = re.search(r'\[(\d+) ([A-Z0-9_]+); [^\]]*\] (.*?)(?: …)?$', ' '.join(block.lines)).groups()
            done = reader.run(f'softhca explain {number}').stdout
            self.assertRegex(done, rf'(?m)^{number} {name}$', block)
            self.assertIn(advice, done, block)
        elif kind == GDB:
            script = '\n'.join(line.removeprefix('(gdb) ') for line in block.lines)
            if script.startswith('define '):
                script += '\nkey mkey->lkey'
            with open(reader.path('script'), 'w', encoding='utf-8') as file:
                # The function of the tutorial that has a key, by its name in the document.
                file.write(f'break tutorial.c:check\nrun\n{script.replace("mkey->lkey", "key->lkey")}\n')
            done = reader.run('cc -g -o tutorial examples/tutorial.c examples/common.c -lmlx5 -libverbs; '
                              'softhca run -- gdb -q -batch -x script ./tutorial').stdout
            self.assertIn('layout       list of 1 entry', done, block)

    def check(self, document):
        used, printed, known = set(), {}, OTHER.get(document, {})
        with Reader(document) as reader:
            for block in blocks(document):
                begin = block.begins(known)
                like = block.begins(LIKE.get(document, {}))
                if begin:
                    used.add((document, begin))
                    self.other(reader, block, known[begin])
                elif like:
                    of = LIKE[document][like]
                    used.add((document, like))
                    self.assertIsNone(first_missing(block.lines, printed[of]), f'{block}\n' + '\n'.join(printed[of]))
                else:
                    lines = self.commands(reader, block, used)
                    for of in LIKE.get(document, {}).values():
                        if block.lines[0].startswith(of):
                            printed.setdefault(of, lines)
            sentences = CODE.sub('', read(os.path.join(SOURCE, document)))
            for command in sorted(set(re.findall(r'`(softhca [^`\n]+)`', sentences))):
                if not OPEN.search(command):
                    self.one(reader, command, [])
        rows = {(document, begin) for table in (OTHER, LIKE, NOT_HERE) for begin in table.get(document, {})}
        self.assertEqual(rows - used, set())

    def test_marks(self):
        self.assertIsNone(first_missing(['a 0x12 of 3,000  x', '…', 'two …'], ['z', 'a 0xff of 7 x', 'three', 'two or more']))
        self.assertEqual(first_missing(['two', 'one'], ['one', 'two']), 'one')
        self.assertEqual(first_missing(['a 1 b'], ['a 1 c']), 'a 1 b')

    def test_what_is_new_and_wrong_fails(self):
        with Reader('docs/new.md') as reader:
            for lines, words in ((['softhca explain 99999'], 'no rule'), (['no-such-command'], 'is not a command'),
                                 (['$ softhca explain 7', '7 KEY_RANGE', 'gone'], 'KEY_RANGE')):
                with self.assertRaisesRegex(AssertionError, words):
                    self.commands(reader, Block('docs/new.md', 1, '\n'.join(lines)), set())
            with self.assertRaisesRegex(AssertionError, 'implicit declaration'):
                self.other(reader, Block('docs/new.md', 1, 'mlx5dv_wr_gone(qp);'), C)


def make_test(document):
    return lambda self: self.check(document)


for path in DOCUMENTS:
    name = os.path.relpath(path, SOURCE)
    if name != 'CHANGELOG.md':
        setattr(Shown, 'test_of_' + name.replace('/', '_'), make_test(name))

main()

# SPDX-License-Identifier: BSD-2-Clause
"""
Checks that scripts/check-layers reports errors. For includes and the list, each case breaks a copy of the tree at
one place; for symbols, each case is a small tree that this test compiles.

layers.py SOURCE BUILD COMPILER...
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(name) for name in sys.argv[1:3])
COMPILER = sys.argv[3:]

# (description, file, text appended to it, output of the check)
CASES = [
    ('an include that leads upwards', 'src/wire/link.h', '#include "transport/qp/qp.h"\n',
     'wire may not include transport/qp/qp.h'),
    ('an include that leads aside', 'src/link/shm/send.c', '\n#  include "link/udp/udp.h"\n',
     'link/shm may not include link/udp/udp.h'),
    ('core that includes the public header', 'src/core/epoch.c', '#include "softhca.h"\n',
     'core may not include softhca.h'),
    ('a header next door that is a layer of its own', 'src/transport/run/run.c', '#include "../process/commands.h"\n',
     'transport/run may not include ../process/commands.h'),
    ('a circle in the list', 'scripts/layers', 'fly: tool\nflue: fly chimney\nchimney: flue\n',
     'flue may include chimney, which is not below it'),
    ('a directory that is not in the list', 'src/chimney/smoke.c', '', 'src/chimney is not in the list'),
    ('a line for a directory that is not there', 'scripts/layers', 'chimney: core\n', 'there is no src/chimney'),
    ('a circle line for a directory that is not there', 'scripts/layers', 'circle chimney: 7\n',
     'there is no src/chimney'),
    ('two lines for a directory', 'scripts/layers', 'core: include\n', 'a second one'),
]




def circle(count):
    """@count files of a directory, each of which uses the next one, and the last one the first."""
    return {f'low/f{i}.c': f'int f{(i + 1) % count}(void); int f{i}(void) {{ return f{(i + 1) % count}(); }}'
            for i in range(count)}


# Layers of the compiled trees.
LAYERS = 'include:\nlow:\nmiddle: low\nhigh: middle\naside: low\n'
# (the fault, or None; {file: text}; the message)
COMPILED = [
    (None, {'low/a.c': 'int a(void) { return 1; }', 'high/b.c': 'int a(void); int b(void) { return a(); }'}, ''),
    (None, {'low/a.c': 'int (*hook)(void); int a(void) { return hook ? hook() : 0; }',
            'high/b.c': 'extern int (*hook)(void); static int c(void) { return 2; } void b(void) { hook = c; }'}, ''),
    ('a function of an upper directory',
     {'low/a.c': 'int b(void); int a(void) { return b(); }', 'high/b.c': 'int b(void) { return 1; }'},
     'src/low/a.c: low may not use b of high/b.c'),
    ('a variable of an upper directory', {'low/a.c': 'extern int b; int a(void) { return b; }', 'high/b.c': 'int b;'},
     'src/low/a.c: low may not use b of high/b.c'),
    ('a function with its address in a table of a lower directory',
     {'low/a.c': 'int b(void); int (*const table[])(void) = {b};', 'middle/b.c': 'int b(void) { return 1; }'},
     'src/low/a.c: low may not use b of middle/b.c'),
    ('a function of a directory beside',
     {'aside/a.c': 'int b(void); int a(void) { return b(); }', 'middle/b.c': 'int b(void) { return 1; }'},
     'src/aside/a.c: aside may not use b of middle/b.c'),
    (None, circle(6), ''),
    ('a circle of seven files', circle(7),
     'src/low: 7 files use each other in a circle, 6 may: f0.c f1.c f2.c f3.c f4.c f5.c f6.c'),
    ('a circle of seven files next to a file that is not part of it',
     {**circle(7), 'low/g.c': 'int f0(void); int g(void) { return f0(); }'}, 'src/low: 7 files'),
    ('a build without objects', {}, 'has no objects of the library'),
]


def check(tree, *options):
    return subprocess.run([SOURCE / 'scripts/check-layers', tree, *options], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def compile_tree(tree, files):
    """Writes @files, and compiles them to tree/build as a build of the library would."""
    (tree / 'scripts').mkdir(parents=True)
    (tree / 'scripts/layers').write_text(LAYERS)
    build = tree / 'build'
    commands = []
    for directory in ('low', 'middle', 'high', 'aside'):
        (tree / 'src' / directory).mkdir(parents=True)
        (tree / 'src' / directory / 'some.h').touch()
    for file, text in files.items():
        (tree / 'src' / file).write_text(text + '\n')
        output = f'lib/libsofthca-internal.a.p/{file.replace("/", "_")}.o'
        (build / output).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*COMPILER, '-c', tree / 'src' / file, '-o', build / output], check=True)
        commands.append({'directory': str(build), 'file': f'../src/{file}', 'output': output})
    build.mkdir(exist_ok=True)
    (build / 'compile_commands.json').write_text(json.dumps(commands))


def compiled_cases(scratch):
    for number, (what, files, said) in enumerate(COMPILED):
        tree = pathlib.Path(scratch) / f'compiled{number}'
        compile_tree(tree, files)
        result = check(tree, '--build', tree / 'build')
        assert result.returncode == bool(what) and said in result.stdout, f'{what}: {result.stdout}'
        assert what or not result.stdout, result.stdout
        print('reported:' if what else 'passed:', what or list(files))


def main():
    result = check(SOURCE, '--build', BUILD)
    assert result.returncode == 0 and not result.stdout, result.stdout
    with tempfile.TemporaryDirectory() as scratch:
        for number, (what, file, text, said) in enumerate(CASES):
            tree = pathlib.Path(scratch) / str(number)
            shutil.copytree(SOURCE / 'src', tree / 'src')
            (tree / 'scripts').mkdir()
            shutil.copy(SOURCE / 'scripts/layers', tree / 'scripts')
            (tree / file).parent.mkdir(exist_ok=True)
            with open(tree / file, 'a', encoding='utf-8') as broken:
                broken.write(text)
            result = check(tree)
            assert result.returncode == 1 and said in result.stdout, f'{what}: {result.stdout}'
            print('noticed:', what)
        compiled_cases(scratch)


main()

# SPDX-License-Identifier: BSD-2-Clause
"""scripts/check-layers notices what it is for: each case breaks a copy of the tree at one place."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])

# (what is broken, file, text that is added at its end, what the check says)
CASES = [
    ('an include that leads upwards', 'src/wire/link.h', '#include "transport/qp.h"\n',
     'wire may not include transport/qp.h'),
    ('an include that leads aside', 'src/link/shm/send.c', '\n#  include "link/udp/udp.h"\n',
     'link/shm may not include link/udp/udp.h'),
    ('core that includes the public header', 'src/core/epoch.c', '#include "softhca.h"\n',
     'core may not include softhca.h'),
    ('a header next door that is a layer of its own', 'src/transport/run.c', '#include "../hca/hca.h"\n',
     'transport may not include ../hca/hca.h'),
    ('a circle in the list', 'scripts/layers', 'fly: tool\nflue: fly chimney\nchimney: flue\n',
     'flue may include chimney, which is not below it'),
    ('a directory that is not in the list', 'src/chimney/smoke.c', '', 'src/chimney is not in the list'),
    ('a line for a directory that is not there', 'scripts/layers', 'chimney: core\n', 'there is no src/chimney'),
    ('two lines for a directory', 'scripts/layers', 'core: include\n', 'a second one'),
]


def check(tree):
    return subprocess.run([SOURCE / 'scripts/check-layers', tree], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def main():
    result = check(SOURCE)
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


main()

# SPDX-License-Identifier: BSD-2-Clause
"""Checks that scripts/check-citations detects errors: each case is a tree of both sheets and one file that cites
them."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
SHEETS = ['docs/inside/mlx5-formats.md', 'docs/inside/rdma-cm.md']
# Prevents the script from treating the cases as citations of this file.
FORMATS, MANAGER = 'mlx5-formats', 'rdma-cm'
GOOD = f'/* {FORMATS} 1.1; {MANAGER} 2.4 */\n'

# (citation, text of the file, output of the check: empty for a correct tree)
CASES = [
    ('sections that exist', GOOD, ''),
    ('several sections', f'{GOOD}/* {MANAGER} 2.5 and 2.6; {FORMATS} 1.9 and 1.10 */\n', ''),
    ('points that exist', f'{GOOD}/* {FORMATS} 6, points 33 to 37; {FORMATS} 6 no. 51 */\n', ''),
    ('a section with its sign', f'{GOOD}/* {FORMATS} §3.5 */\n', ''),
    ('a chapter', f'{GOOD}/* {MANAGER} 5 */\n', ''),
    ('a citation over two lines', f'{GOOD}/*\n * Wild ({MANAGER}\n * 2.4).\n */\n', ''),
    ('a section that mlx5-formats does not have', f'{GOOD}/* {FORMATS} 1.99 */\n',
     f'file.c: "{FORMATS} 1.99": docs/inside/mlx5-formats.md does not have 1.99'),
    ('a section that rdma-cm does not have', f'{GOOD}/* {MANAGER} 2.99 */\n',
     f'file.c: "{MANAGER} 2.99": docs/inside/rdma-cm.md does not have 2.99'),
    ('a section of the other sheet', f'{GOOD}/* {MANAGER} 1.14 */\n', 'docs/inside/rdma-cm.md does not have 1.14'),
    ('one of several', f'{GOOD}/* {MANAGER} 2.5, 2.99 and 2.6 */\n', 'docs/inside/rdma-cm.md does not have 2.99'),
    ('one over two lines', f'{GOOD}/*\n * Wild ({MANAGER}\n * 2.99).\n */\n', 'docs/inside/rdma-cm.md does not have 2.99'),
    ('one in a string over two lines', f'{GOOD}"IBTA A11; {MANAGER} "\n\t"2.99"\n',
     'docs/inside/rdma-cm.md does not have 2.99'),
    ('a point that does not exist', f'{GOOD}/* {FORMATS} 6, points 33 and 999 */\n', 'does not have point 999'),
    ('a point of a sheet without points', f'{GOOD}/* {MANAGER} 2.4 no. 3 */\n', 'does not have point 3'),
    ('a sheet that nothing cites', f'/* {FORMATS} 1.1 */\n', 'docs/inside/rdma-cm.md: nothing cites it'),
]


def check(tree):
    return subprocess.run([SOURCE / 'scripts/check-citations', tree], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for number, (what, text, said) in enumerate(CASES):
            tree = pathlib.Path(scratch) / str(number)
            (tree / 'docs/inside').mkdir(parents=True)
            for sheet in SHEETS:
                shutil.copy(SOURCE / sheet, tree / sheet)
            (tree / 'file.c').write_text(text, encoding='utf-8')
            subprocess.run(['git', 'init', '-q', tree], check=True)
            subprocess.run(['git', '-C', tree, 'add', '.'], check=True)
            result = check(tree)
            assert said in result.stdout and bool(result.stdout) == bool(said), f'{what}: {result.stdout}'
            assert result.returncode == (1 if said else 0), f'{what}: {result.returncode}'
            print('judged:', what)


main()

# SPDX-License-Identifier: BSD-2-Clause
"""
Prints docs/reference/api.md: every symbol of the front-ends, its state and its test.

api_md.py BUILD: BUILD is a configured build directory, whose list of tests is compared with the tables. A symbol whose
test does not exist, or does not mention it, is an error.
"""
import glob
import json
import os
import re
import sys
from collections import Counter

sys.dont_write_bytecode = True
import abi_tables  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
STATES = {'IMPLEMENTED': 'implemented', 'LATER': 'later', 'UNSUPPORTED': 'unsupported', 'PROBED': 'unsupported'}
KINDS = {
    'ERRNO': 'errno value',
    'NEGATIVE_ERRNO': 'negated errno value',
    'MINUS_ONE': '-1, errno',
    'NULL_ERRNO': 'NULL, errno',
    'ZERO': '0, errno',
    'NOTHING': '',
    'VALUE': '',
    'DATA': 'data object',
}
HEAD = '''# Symbols of libibverbs.so.1, libmlx5.so.1 and librdmacm.so.1

Made by `make docs` from `src/abi/verbs.def`, `src/abi/mlx5dv.def` and `src/abi/rdmacm.def`; do not edit.

The libraries export what those of rdma-core 44 (Debian 12) to 65 export, under the same versions, on whatever release they are
built. The private nodes `IBVERBS_PRIVATE_N` are those of rdma-core's own programs and providers; N is the release that brought
the node, and 44, 50 and 56 all have 34. The states:

- **implemented**: does what its man page says.
- **later**: answers EOPNOTSUPP until it is built.
- **unsupported**: answers EOPNOTSUPP; steering, scheduling, VFIO and the interface of other adapters' providers are
  no part of this device. A version after one `@` is there for programs linked long ago.

"Error" says how the call tells an error, EOPNOTSUPP included; empty where it cannot. Inline functions of `verbs.h` that
lead to a context's function table (`ibv_post_send`, `ibv_create_qp_ex`, …) are not symbols and are not listed.
'''


def table(library, symbols):
    count = Counter(STATES[s.state] for s in symbols)
    lines = ['## %s.so.1' % library, '',
             '%d symbols: %s.' % (len(symbols), ', '.join('%d %s' % (count[s], s) for s in dict.fromkeys(STATES.values()))), '',
             '| symbol | version | state | error | test |', '|--|--|--|--|--|']
    for s in symbols:
        lines.append('| `%s` | %s | %s | %s | %s |' % (
            s.name, s.versioned[len(s.name):].replace('@@', ''), STATES[s.state], KINDS[s.kind], s.test))
    return '\n'.join(lines) + '\n'


def mentions(test, symbol):
    """Returns True if the text of the test names the symbol, or the inline function of the header that calls it."""
    for path in glob.glob(os.path.join(ROOT, 'tests', test + '.*')):
        if re.search(r'(?<![a-z0-9])_*%s\b' % symbol.lstrip('_'), open(path).read()):
            return True
    return False


def mistakes(build, symbols):
    tests = {suite.split(':')[-1] + '/' + t['name']
             for t in json.load(open(os.path.join(build, 'meson-info/intro-tests.json'))) for suite in t['suite']}
    for s in symbols:
        if s.test not in tests:
            yield '%s: there is no test %s' % (s.versioned, s.test)
        elif s.state == 'IMPLEMENTED' and not mentions(s.test, s.name):
            # Stubs are called directly from the table.
            yield '%s: the test %s does not mention it' % (s.versioned, s.test)


def main():
    verbs, mlx5dv, rdmacm = abi_tables.verbs(), abi_tables.mlx5dv(), abi_tables.rdmacm()
    wrong = list(mistakes(sys.argv[1], verbs + mlx5dv + rdmacm))
    for line in wrong:
        print(line, file=sys.stderr)
    print(HEAD)
    print(table('libibverbs', verbs))
    print(table('libmlx5', mlx5dv))
    print(table('librdmacm', rdmacm), end='')
    return 1 if wrong else 0


sys.exit(main())

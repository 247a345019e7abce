# SPDX-License-Identifier: BSD-2-Clause
"""Reads the tables of symbols, src/abi/*.def, for scripts and tests."""
import os
import re
from collections import namedtuple

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../src/abi')

# versioned: name@@version or name@version; body: the function in libsofthca.so.0; test: the test that exercises it
Symbol = namedtuple('Symbol', 'name version versioned state kind test body elf_kind')


def arguments(text, start):
    """Returns the top-level arguments of the macro call with its opening parenthesis at text[start], and the end of the call."""
    parts, depth, quoted, begin = [], 0, False, start + 1
    for position in range(start, len(text)):
        character = text[position]
        if character == '"':
            quoted = not quoted
        elif not quoted:
            depth += character == '('
            depth -= character == ')'
            if (character == ',' and depth == 1) or depth == 0:
                parts.append(text[begin:position].strip())
                begin = position + 1
                if depth == 0:
                    return parts, position + 1
    raise ValueError('no end: ' + text[start:start + 60])


# Private version nodes of libibverbs.so.1, in order.
PRIVATE_NODES = re.findall(r'^#define AFTER_(\d+)', open(os.path.join(DIRECTORY, 'private_nodes.h')).read(), re.M)


def read(name):
    text = open(os.path.join(DIRECTORY, name)).read()
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'^#.*$', '', text, flags=re.M)
    table, position = [], 0
    call = re.compile(r'\s*(SYMBOL|STUB|DATA|OLD|OLD_STUB|PRIVATE_SYMBOL|PRIVATE_STUB|PRIVATE_DATA)(?=\()')
    while match := call.match(text, position):
        macro = match.group(1)
        fields, position = arguments(text, match.end())
        symbol = fields.pop(0)
        suffix = '_' + fields.pop(0) if macro.startswith('OLD') else ''
        version = fields.pop(0).strip('"')
        later = []
        if macro.startswith('PRIVATE_'):
            macro = macro.removeprefix('PRIVATE_')
            later = PRIVATE_NODES[PRIVATE_NODES.index(version) + 1:]
            version = 'IBVERBS_PRIVATE_' + version
        state = fields.pop(0) if macro in ('SYMBOL', 'OLD') else 'UNSUPPORTED'
        kind = 'DATA' if macro == 'DATA' else fields.pop(0)
        test = fields.pop(0).strip('"')
        table.append(Symbol(symbol, version, symbol + ('@' if suffix else '@@') + version, state, kind, test,
                            'softhca_' + symbol + suffix, 'object' if macro == 'DATA' else 'func'))
        for node in later:
            again = 'IBVERBS_PRIVATE_' + node
            table.append(table[-1]._replace(version=again, versioned=symbol + '@' + again))
    rest = text[position:].strip()
    if rest:
        raise ValueError('%s: cannot read %s' % (name, rest[:60]))
    return table


def verbs():
    return read('verbs.def')


def mlx5dv():
    return read('mlx5dv.def')


def rdmacm():
    return read('rdmacm.def')

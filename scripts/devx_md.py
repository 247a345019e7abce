#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints docs/inside/devx.md with tables from src/devx/commands.def, src/devx/capabilities.def and tests/api/devx_clients.def."""
import re
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
OFFERS = {'ENCRYPTION': 'not with `SOFTHCA_CRYPTO=off`', 'WRAPPED_KEYS': '`SOFTHCA_CRYPTO=wrapped`',
          'LOGINS': '`SOFTHCA_CRYPTO=wrapped`, with keys',
          'TWEAK_LE': '`SOFTHCA_CRYPTO_TWEAK=le`, not with `SOFTHCA_CRYPTO=off`',
          'TWEAK_BE': '`SOFTHCA_CRYPTO_TWEAK=be`, not with `SOFTHCA_CRYPTO=off`'}


def entries(path, macro):
    """Returns the arguments of each line of @macro in a table, as lists of strings."""
    text = re.sub(r'/\*.*?\*/', '', path.read_text(), flags=re.S)
    for found in re.finditer(rf'^{macro}\((.*)\)$', text, re.M):
        yield [word.strip().strip('"') for word in found[1].split(',')]


def commands():
    table = TREE / 'src/devx/commands.def'
    lines = ['| command | call, object | bytes in, out |', '|--|--|--|']
    for opcode, name, call, kind, in_bytes, out_bytes, _ in entries(table, 'COMMAND'):
        about = '' if kind == 'NONE' else f' {kind.replace("_", " ")}'
        lines.append(f'| {name} ({opcode}) | {call.lower()}{about} | {in_bytes}, {out_bytes} |')
    refused = [row for row in entries(table, 'UNSERVED') if row[2] in ('GENERAL', 'CREATE') or row[3] != 'NONE']
    absent = [row for row in entries(table, 'UNSERVED') if row not in refused]
    return '\n'.join(lines) + f'''

Refused by the device with status 2 (rule 952), as by one that lacks them, like all other general commands from 0xb00 to 0xcff: {names(refused)}.

Refused with EOPNOTSUPP (rule 952), after which rdma-core's tests skip what needs them: {names(entries(table, 'STEERING'))}.

Refused with EINVAL (rule 953), because no object of their kind can exist: {names(absent)}.'''


def names(rows):
    return ', '.join(f'{name} ({opcode})' for opcode, name, *_ in rows)


def clients():
    table = TREE / 'tests/api/devx_clients.def'
    answers = {'ANSWERED': 'answered', 'ZEROS': 'zeros', 'UNSUPPORTED': 'EOPNOTSUPP', 'INVALID': 'EINVAL',
               'BY_STATUS(2)': 'EREMOTEIO, status 2', 'BY_STATUS(3)': 'EREMOTEIO, status 3'}
    names_of_clients = {'K': 'Linux', 'D': 'DPDK', 'U': 'UCX', 'S': 'SPDK', 'N': 'NVSHMEM', 'R': 'rdma-core'}
    asked = {}
    rows = [(f'group {number} ({name})', answer, clients) for number, name, answer, clients in entries(table, 'GROUP')]
    rows += [(f'{name} ({opcode})', answer, clients) for opcode, name, _, _, answer, clients in entries(table, 'PROBE')]
    for name, answer, clients in rows:
        # The kernel passes commands on, whether or not a client requests them.
        if clients.strip('K') or (clients and name.startswith('group')):
            by = ', '.join(client for letter, client in names_of_clients.items() if letter in clients)
            asked.setdefault(answers[answer], {}).setdefault(by, []).append(name)
    check(table)
    lines = ['| answer | clients | commands and groups of QUERY_HCA_CAP |', '|--|--|--|']
    lines += [f'| {answer} | {by} | {", ".join(which)} |' for answer, callers in asked.items() for by, which in callers.items()]
    return '\n'.join(lines)


def check(table):
    """Checks that both tables have the same commands, so that every command has an expected answer."""
    tested = {(int(opcode, 16), call) for opcode, _, call, *_ in entries(table, 'PROBE')}
    here = TREE / 'src/devx/commands.def'
    known = {(int(row[0], 16), row[2]) for macro in ('COMMAND', 'UNSERVED') for row in entries(here, macro)}
    known |= {(int(row[0], 16), 'CREATE') for row in entries(here, 'STEERING')}
    missing = known - tested - {(0x100, 'GENERAL')}
    if missing:
        raise SystemExit(f'{table} lacks {sorted((hex(opcode), call) for opcode, call in missing)}')


def capabilities():
    table = TREE / 'src/devx/capabilities.def'
    fields = {}
    for line in entries(table, 'CAPABILITY(?:_IF)?'):
        *offer, group, _, _, _, value, name = line
        when = f' ({OFFERS[offer[0]]})' if offer else ''
        fields.setdefault(group, []).append(f'`{name}` {value}{when}')
    lines = ['| group | op_mod | fields that are not 0 |', '|--|--|--|']
    for number, name, about in entries(table, 'GROUP'):
        lines.append(f'| {about} | {2 * int(number, 16):#x}, {2 * int(number, 16) + 1:#x} | {", ".join(fields[name])} |')
    empty = ', '.join(f'{about} ({2 * int(number, 16):#x})' for number, about in entries(table, 'EMPTY_GROUP'))
    return '\n'.join(lines) + f'\n\nAnswered with zeros, as nothing of them is offered: {empty}.'


def main():
    text = (TREE / 'docs/inside/devx.md').read_text()
    tables = (('commands', 'src/devx/commands.def', commands()), ('capabilities', 'src/devx/capabilities.def', capabilities()),
              ('clients', 'tests/api/devx_clients.def', clients()))
    for name, source, made in tables:
        begin, end = f'<!-- {name}: {source} -->\n', f'\n<!-- end of {name} -->'
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        if not rest or not after:
            raise SystemExit(f'docs/inside/devx.md has no place for {name}')
        text = before + begin + made + end + after
    print(text, end='')


main()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints docs/devx.md with the tables of commands and capabilities as src/devx/commands.def and capabilities.def have them."""
import re
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
OFFERS = {'ENCRYPTION': 'not with `SOFTHCA_CRYPTO=off`', 'WRAPPED_KEYS': '`SOFTHCA_CRYPTO=wrapped`',
          'LOGINS': '`SOFTHCA_CRYPTO=wrapped`, with keys',
          'TWEAK_LE': '`SOFTHCA_CRYPTO_TWEAK=le`, not with `SOFTHCA_CRYPTO=off`',
          'TWEAK_BE': '`SOFTHCA_CRYPTO_TWEAK=be`, not with `SOFTHCA_CRYPTO=off`'}


def entries(path, macro):
    """The arguments of each line of @macro in a table, as a list of strings."""
    text = re.sub(r'/\*.*?\*/', '', path.read_text(), flags=re.S)
    for found in re.finditer(rf'^{macro}\((.*)\)$', text, re.M):
        yield [word.strip().strip('"') for word in found[1].split(',')]


def commands():
    table = TREE / 'src/devx/commands.def'
    lines = ['| command | opcode | call | object | bytes in, out |', '|--|--|--|--|--|']
    for opcode, name, call, kind, in_bytes, out_bytes, _ in entries(table, 'COMMAND'):
        about = '' if kind == 'NONE' else kind.replace('_', ' ')
        lines.append(f'| {name} | {opcode} | {call.lower()} | {about} | {in_bytes}, {out_bytes} |')
    unserved = ', '.join(f'{name} ({opcode})' for opcode, name, _ in entries(table, 'UNSERVED'))
    return '\n'.join(lines) + f'\n\nRefused by the device with status 2 (rule 952), as by one that lacks them: {unserved}.'


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
    text = (TREE / 'docs/devx.md').read_text()
    for name, made in (('commands', commands()), ('capabilities', capabilities())):
        begin, end = f'<!-- {name}: src/devx/{name}.def -->\n', f'\n<!-- end of {name} -->'
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        if not rest or not after:
            raise SystemExit(f'docs/devx.md has no place for {name}')
        text = before + begin + made + end + after
    print(text, end='')


main()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints docs/reference/explanations.md from src/explain/rules*.def; `make docs`. Exit status 1 if the table, or a place in the
sources that uses it, breaks one of these rules:

- numbers are unique, within the range that the file names, and not retired; no rule is 147 (mlx5-formats 2.2);
- the figures of a text are 0, 1, …, of a format that the renderer knows, and at most eight;
- a text does not end with a full stop, an advice is a sentence;
- every rule is used, and each use passes as many figures as the text has.
"""
import collections
import itertools
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STRING = r'"(?:[^"\\]|\\.)*"'
STRINGS = rf'(?:{STRING}\s*)+'
RULE = re.compile(rf'RULE\((\d+),\s*(\w+),\s*({STRINGS}),\s*({STRINGS}),\s*({STRINGS})\)|/\*(.*?)\*/', re.S)
# Macros that make an explanation: the figures are the arguments after the rule. Functions get FIGURES(…) after the rule.
MAKERS = {'EXPLAIN', 'EXPLAIN_LIMITED', 'REFUSE', 'REFUSAL'}
FIGURES = re.compile(r'\bRULE_(\w+),\s*FIGURES\(')
# Macros that name a rule without making an explanation.
MENTION = re.compile(r'(?:[!=<>]=|misuse_bit\(|vendor_syndrome =|\.rule =|\{MLX5_CQE_SYNDROME_\w+,|LINT\(profile_differs, [^;]*,)\s*RULE_(\w+)')
MAX_FIGURES = 8
# Formats of more than one argument: EXPLAIN_ORIGIN and EXPLAIN_USERS of src/explain/explain.h, and a range with an address.
WIDE = {'origin': 3, 'users': 3, 'hint': 3}

Rule = collections.namedtuple('Rule', 'number name text source advice')
faults = []


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def fault(text, *arguments):
    faults.append(text % arguments)


def joined(literals):
    return ''.join(part[1:-1].replace('\\"', '"') for part in re.findall(STRING, literals))


def rule_files():
    return ['src/' + name for name in re.findall(r'#include "(explain/rules_\w+\.def)"', read('src/explain/rules.def'))]


def parse(path):
    """Returns (sections, retired). Sections are [title, [Rule, …]]; each begins with a separate comment line."""
    sections, retired = [], set()
    text = read(path)
    title = text.split('\n')[1].strip('/* ').rstrip(' */')
    low, high = map(int, re.search(r'Rules (\d+)\.\.(\d+)', title).groups())
    for match in RULE.finditer(text):
        comment = match[6]
        if comment is None:
            rule = Rule(int(match[1]), match[2], *(joined(match[i]) for i in (3, 4, 5)))
            if not low <= rule.number <= high:
                fault('%s: rule %d is outside of %d..%d', path, rule.number, low, high)
            if not sections:
                sections.append([None, []])
            sections[-1][1].append(rule)
        elif re.match(r'\s*\d+ is retired', comment):
            retired.add(int(comment.split()[0]))
        elif 'SPDX' not in comment and not comment.strip().startswith('Rules '):
            sections.append([' '.join(comment.split()), []])
    return sections, retired


def figures_of(rule, formats):
    """Checks the placeholders of the text; returns how many figures it has."""
    placeholders = re.findall(r'\{([^}]*)\}', rule.text)
    numbers = set()
    for placeholder in placeholders:
        number, _, form = placeholder.partition(':')
        if not number.isdigit() or form not in formats:
            fault('rule %d: {%s} is not a figure', rule.number, placeholder)
        else:
            numbers.update(range(int(number), int(number) + WIDE.get(form, 1)))
    if numbers != set(range(len(numbers))) or len(numbers) > MAX_FIGURES:
        fault('rule %d: its figures are %s', rule.number, sorted(numbers))
    return len(numbers)


def check_sentences(rule):
    if rule.text.endswith('.'):
        fault('rule %d: the text has a final stop', rule.number)
    if not re.match(r'[A-Z`]', rule.advice) or not rule.advice.endswith('.'):
        fault('rule %d: the advice is not a sentence: %s', rule.number, rule.advice)


def sources():
    for directory, _, names in sorted(os.walk(os.path.join(ROOT, 'src'))):
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                path = os.path.relpath(os.path.join(directory, name), ROOT)
                # Replaces comments, and the contents of strings, by as many blanks.
                token = re.compile(r'/\*.*?\*/|//[^\n]*|' + STRING, re.S)
                yield path, token.sub(lambda m: re.sub(r'[^\n]', ' ', m[0]) if m[0][0] == '/' else
                                      '"' + ' ' * (len(m[0]) - 2) + '"', read(path))


def arguments(text, start):
    """Returns the arguments of the list that begins at text[start - 1], and the end of the list."""
    depth, last, found = 1, start, []
    for at in range(start, len(text)):
        if text[at] in '([{':
            depth += 1
        elif text[at] in ')]}':
            depth -= 1
        if depth == 0 or depth == 1 and text[at] == ',':
            found.append(text[last:at].strip())
            last = at + 1
        if depth == 0:
            return found, at
    return found, len(text)


def rule_argument(list_, counts):
    """Returns the index of the argument that names the rule, or None. Macros get the full name, so that grep finds it."""
    for at, argument in enumerate(list_):
        if argument.startswith('RULE_') and argument[5:] in counts:
            return at
    return None


def check_use(path, text, at, rule_name, passed, counts, used):
    line = text.count('\n', 0, at) + 1
    used.add(rule_name)
    if len(passed) != counts[rule_name] and not (counts[rule_name] == 0 and passed == ['0']):
        fault('%s:%d: %s is given %d figures; its text has %d', path, line, rule_name, len(passed), counts[rule_name])


def check_uses(counts):
    used = set()
    for path, text in sources():
        if path.startswith('src/explain/') and path.endswith('.h'):
            continue
        understood = set()
        for match in re.finditer(r'\b(\w+)\(', text):
            if match[1] not in MAKERS:
                continue
            list_, end = arguments(text, match.end())
            at = rule_argument(list_, counts)
            if at is None:
                continue
            check_use(path, text, match.start(), list_[at].removeprefix('RULE_'), list_[at + 1:], counts, used)
            understood.update(range(match.start(), end))
        for match in itertools.chain(FIGURES.finditer(text), re.finditer(r'\{\s*RULE_(\w+)\s*,\s*\{', text)):
            if match[1] in counts and match.start() not in understood:
                check_use(path, text, match.start(), match[1], arguments(text, match.end())[0], counts, used)
                understood.update(range(match.start(), match.end()))
        for match in MENTION.finditer(text):
            used.add(match[1])
            understood.update(range(match.start(), match.end()))
        for match in re.finditer(r'\bRULE_(\w+)', text):
            if match[1] in counts and match.start() not in understood:
                fault('%s:%d: RULE_%s is used in a way that scripts/explanations_md.py does not know', path,
                      text.count('\n', 0, match.start()) + 1, match[1])
    for name in counts:
        if name not in used:
            fault('rule %s is used nowhere', name)


def cell(text):
    """Returns text for a cell of a table, with placeholders in italics: {0:x} as 0, {1:access} as 1:access."""
    for mark in '|*<':
        text = text.replace(mark, '\\' + mark)
    return re.sub(r'\{(\d):(\w+)\}', lambda m: '*' + m[1] + (':' + m[2] if m[2] not in 'xud' else '') + '*', text)


def heading(comment):
    """Converts a comment of the table to a heading, without the range of numbers and the full stop."""
    comment = re.sub(r'^\d+\.\.\d+: ', '', comment).rstrip('.')
    return comment if '_' in comment.split()[0] else comment[0].upper() + comment[1:]


INTRODUCTION = '''# Explanations

<!-- Generated by `make docs` from src/explain/rules*.def. Edit those. -->

Every call that softhca refuses, packet that it drops and request that fails leaves an explanation. `softhca run` prints it,
`SOFTHCA_EXPLAIN` writes it to a file, and a program reads it with `softhca_explanations()` of [softhca.h](../../include/softhca.h). A line looks like this:

    mlx5_0 qp 0x40 RDMA_WRITE wr_id 7 → REM_ACCESS_ERR: key 0x1001 is a memory region of [0x5000, +100); the request covers [0x5064, +16). [7 KEY_RANGE; IBTA C10-57] Keep the request inside the key's range; an mkey is zero-based, its addresses are offsets.

From the left:

- the device;
- the QP and its request: a send request by its opcode and wr_id, or `receive`; or the call that was refused;
- the result: the status of the completion, or the errno value; nothing if there is neither, for example for a dropped
  datagram or a warning;
- what was wrong, with figures;
- the number of the rule, its name, and its source: a manual page, a statement of the InfiniBand
  architecture specification (IBTA), [mlx5-formats](../inside/mlx5-formats.md), the sheet on the
  formats of WQEs, CQEs and keys and on the behaviour of drivers, or
  [rdma-cm](../inside/rdma-cm.md), the sheet on librdmacm and the communication manager of the kernel;
- what to do about it.

A request that the peer refused has an explanation on both QPs: the one that posted it, and the one that refused it. A
request that was flushed names the explanation of the failure that began it by its serial number.

Numbers are stable: none is reused for another rule. Numbers 1 to 255 are also the vendor syndrome of a failed
completion, `vendor_err` of `struct ibv_wc`.

In the tables, *0*, *1*, … stand for the figures, in the order of `struct softhca_explanation`; a word after the number says
what the figure is if it is not simply a number.'''

TITLES = {
    'device': 'Requests, packets, states of QPs',
    'objects': 'Queries, domains, regions, windows, device memory, addresses',
    'queues': 'Completion queues and shared receive queues',
    'posting': 'Creating queue pairs, posting, builders',
    'mlx5dv': 'mlx5dv',
    'abi': 'Calls that do not exist yet',
    'devx': 'Commands of the device',
    'cm': 'Communication management',
    'rdmacm': 'librdmacm',
    'misuse': 'Misuse that works here: warnings of `softhca run --lint`',
}


def main():
    formats = set(re.findall(r'IS\("(\w+)"\)', read('src/explain/render.c')))
    files = [(path, *parse(path)) for path in rule_files()]
    rules = [rule for _, sections, _ in files for _, section in sections for rule in section]
    retired = set().union(*(numbers for _, _, numbers in files))
    for number, count in collections.Counter(rule.number for rule in rules).items():
        if count > 1 or number in retired or number == 147:
            fault('rule %d: the number is taken', number)
    for name, count in collections.Counter(rule.name for rule in rules).items():
        if count > 1:
            fault('rule %s: the name is taken', name)
    for rule in rules:
        check_sentences(rule)
    check_uses({rule.name: figures_of(rule, formats) for rule in rules})

    print(INTRODUCTION)
    for path, sections, _ in files:
        print('\n##', TITLES[re.search(r'rules_(\w+)\.def', path)[1]])
        for title, section in sections:
            if not section:
                continue
            if title:
                print('\n###', heading(title))
            print('\n| no. | name | what it says | source | what to do |\n|--|--|--|--|--|')
            for rule in section:
                print(f'| {rule.number} | {rule.name} | {cell(rule.text)} | {cell(rule.source)} | {cell(rule.advice)} |')
    for line in faults:
        print('scripts/explanations_md.py:', line, file=sys.stderr)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())

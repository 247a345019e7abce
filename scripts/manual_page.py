#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Prints a manual page of section 7 from the document with its text: softhca-faults(7) from docs/use/faults.md, softhca-settings(7)
from docs/reference/limits.md; `make docs`.

    scripts/manual_page.py softhca-faults|softhca-settings

It supports the Markdown that these documents use: headings, paragraphs, tables of two columns, indented blocks, code, and links.
"""
import os
import re
import sys

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ESCAPES = {'\\': '\\e', "'": '\\(aq', '^': '\\(ha', '~': '\\(ti', '`': '\\(ga', '…': '...'}
PAGES = {'docs/use/faults.md': ('softhca-faults', 7), 'softhca.h': ('softhca.h', 3)}


class Page:
    """Properties of a page: source, date, description, synopsis, omitted headings, pages named at the end."""

    def __init__(self, source, date, summary, synopsis, see_also, closing=''):
        self.source, self.date, self.summary, self.synopsis = source, date, summary, synopsis
        self.see_also, self.closing = see_also, closing


FAULTS = Page(
    'docs/use/faults.md', '2026-11-28', 'language of the fault scripts of softhca',
    r'''\fBsofthca run \-\-faults\fP \fIscript\fP|\fIfile\fP [\fB\-\-\fP] \fIprogram\fP [\fIargument\fP ...]
\fBSOFTHCA_FAULTS=\fP\fIscript\fP|\fIfile\fP
\fBint softhca_set_faults(struct ibv_context *\fP\fIcontext\fP\fB, const char *\fP\fIscript\fP\fB, char *\fP\fIerror\fP\fB, size_t\fP \fIsize\fP\fB);\fP''',
    [('softhca', 1), ('softhca.h', 3), ('softhca-settings', 7)])
SETTINGS = Page(
    'docs/reference/limits.md', '2026-11-28', 'settings of the RDMA adapter in software',
    r'''\fBsofthca run \-\-\fP\fIname value\fP ... [\fB\-\-\fP] \fIprogram\fP [\fIargument\fP ...]
\fBSOFTHCA_\fP\fINAME\fP\fB=\fP\fIvalue\fP \fIprogram\fP [\fIargument\fP ...]''',
    [('softhca', 1), ('softhca.h', 3), ('softhca-faults', 7), ('mlx5dv', 7), ('environ', 7)],
    '.PP\ndocs/reference/limits.md has the limits of the device as well.')


def escaped(text, code=False):
    """Escapes text for roff. A hyphen within code, or before a word, becomes an ASCII minus."""
    text = ''.join(ESCAPES.get(letter, letter) for letter in text)
    return text.replace('-', '\\-') if code else re.sub(r'(?<!\S)-', r'\\-', text)


def inline(text):
    """Converts a paragraph to one line: code in bold, links as their text, pages by name and section."""
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', text).replace('\\|', '|').replace('\\*', '*')
    parts = []
    for number, part in enumerate(re.split('`', text)):
        if number % 2:
            parts.append(f'\\fB{escaped(part, True)}\\fP')
            continue
        part = escaped(part)
        for name, (page, section) in PAGES.items():
            title = page.replace('-', '\\-')
            part = re.sub(rf'(?<![\w/]){re.escape(name)}(?![\w(])', lambda _, t=title, s=section: f'\\fB{t}\\fP({s})', part)
        parts.append(re.sub(r'\*\*([^*]+)\*\*', r'\\fB\1\\fP', part))
    return ''.join(parts)


def sentences(text):
    """Splits text into one line per sentence, as man-pages(7) requires."""
    lines = re.sub(r'(?<=[.?]) (?=[A-Z0-9`\\])', '\n', inline(text)).split('\n')
    return '\n'.join('\\&' + line if line.startswith(('.', "'")) else line for line in lines)


def code(lines, picture):
    text = '\n'.join(escaped(line, True) for line in lines)
    return f'.PP\n.RS\n.EX\n{text}\n.EE\n.RE' if not picture else f'.PP\n.nf\n.RS\n{text}\n.RE\n.fi'


def table(rows):
    """Converts the rows below the heading to a list: the first cell is the tag, with words outside code in italics."""
    for row in rows[2:]:
        head, *rest = [cell.strip() for cell in re.split(r'(?<!\\)\|', row.strip().strip('|'))]
        words = [f'\\fI{part.lower()}\\fP' if part.isupper() else part for part in re.split(r'\b([A-Z]{3,})\b', head)]
        yield f'.TP\n{inline("".join(words)) if "`" not in head else heading(head)}\n{capital(sentences(" ".join(rest)))}.'


def heading(head):
    """Formats the first cell of a row: code in bold, words in capitals in italics."""
    parts = []
    for number, part in enumerate(re.split('`', head)):
        if number % 2:
            parts.append(f'\\fB{escaped(part, True)}\\fP')
        else:
            parts.append(re.sub(r'[A-Z]{3,}', lambda match: f'\\fI{match[0].lower()}\\fP', escaped(part)))
    return ''.join(parts)


def capital(text):
    return text[0].upper() + text[1:] if text[0].islower() else text


def blocks(text):
    """Yields (kind, lines) of each block: heading, code, table, item or paragraph."""
    kind, lines = None, []
    for line in text.split('\n') + ['# end']:
        if kind == 'code' and not line:
            lines.append('')
            continue
        here = ('heading' if line.startswith('#') else 'code' if line.startswith('    ') else 'table' if line.startswith('|') else
                'item' if re.match(' *- ', line) else None if not line else 'item' if kind == 'item' else 'paragraph')
        if lines and (here != kind or here in ('heading', 'item')):
            yield kind, lines if kind != 'code' else [row[4:] for row in '\n'.join(lines).rstrip('\n').split('\n')]
            lines = []
        kind = here
        if here:
            lines.append(line)


def body(text):
    """Converts the blocks of a document to roff."""
    for kind, lines in blocks(text):
        if kind == 'heading':
            yield '.SH ' + lines[0].lstrip('# ').upper()
        elif kind == 'code':
            yield code(lines, lines[0].startswith(('script ', 'softhca: ')))
        elif kind == 'table':
            yield from table(lines)
        else:
            yield '.PP\n' + sentences(' '.join(line.strip() for line in lines))


def setting(text):
    """Formats one setting: a heading, its meaning, and a list of its properties, the last with the words of a choice."""
    name, _, rest = text.partition('\n')
    meaning, _, items = rest.strip().partition('\n\n')
    properties = dict(re.findall(r'(?m)^- ([\w ]+): (.*)$', items))
    words = re.findall(r'(?m)^  - `([^`]+)`: (.*)$', items)
    yield f'.TP\n\\fB{name.strip()}\\fP, \\fB{escaped(properties["option"].strip("`"), True)}\\fP\n{sentences(meaning)}'
    if words:
        yield '.RS'
        for word, doc in words:
            yield f'.TP\n.B {escaped(word, True)}\n{inline(doc)}'
        yield '.PP'
    else:
        yield f'.br\nValues: {inline(properties["values"])}.\n.br'
    yield f'Default: {inline(properties["default"])}.\n.br\nUsed by: {inline(properties["used by"])}.'
    if words:
        yield '.RE'


def variables(rows):
    for row in rows[2:]:
        name, values, default, used_by, meaning = [cell.strip() for cell in row.strip().strip('|').split('|')]
        yield (f'.TP\n.B {name.strip("`")}\n{sentences(meaning)}\n.br\nValues: {inline(values)}.\n.br\n'
               f'Default: {inline(default)}.\n.br\nUsed by: {inline(used_by)}.')


def settings(text):
    chapters = {part.partition('\n')[0]: part.partition('\n')[2] for part in text.split('\n## ')}
    introduction, *parts = chapters['Settings'].split('\n### ')
    yield from body(introduction.strip())
    yield '.SH SETTINGS'
    for part in parts:
        yield from setting(part)
    real = 'Variables of the real libraries'
    yield '.SH ' + real.upper()
    for kind, lines in blocks(chapters[real].strip()):
        yield from variables(lines) if kind == 'table' else [sentences(' '.join(lines))]
    yield '.SH EXAMPLES'
    yield from body(chapters['Examples'].strip())


def faults(text):
    yield from body(re.sub(r'\A.*?\n# Faults\n', '', '\n' + text, flags=re.S).strip())


def main():
    name = sys.argv[1]
    page, convert = {'softhca-faults': (FAULTS, faults), 'softhca-settings': (SETTINGS, settings)}[name]
    with open(os.path.join(TREE, page.source), encoding='utf-8') as file:
        text = re.sub(r'<!--.*?-->', '', file.read(), flags=re.S)
    title = name.replace('-', '\\-')
    print(f'''.\\" SPDX-License-Identifier: BSD-2-Clause
.\\" Generated by `make docs` from {page.source}. Edit that, or its source.
.TH {name.upper()} 7 {page.date} softhca "Miscellaneous Information Manual"
.nh
.SH NAME
{title} \\- {page.summary}
.SH SYNOPSIS
.nf
{page.synopsis}
.fi
.SH DESCRIPTION''')
    roff = '\n'.join(convert(text))
    # The first paragraph of a section needs no macro.
    print(re.sub(r'(?m)(\A|^\.SH .*\n)\.PP\n(?!\.)', r'\1', roff))
    print('.SH SEE ALSO\n' + ',\n'.join(f'.BR {other.replace("-", chr(92) + "-")} ({section})' for other, section in page.see_also))
    if page.closing:
        print(page.closing)


main()

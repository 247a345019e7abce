# SPDX-License-Identifier: BSD-2-Clause
"""
The page of a report: one HTML file that loads nothing. All data from files is escaped; drawings are images, in which nothing
runs.
"""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
# Most rows shown in a section; the others are counted.
MOST_ROWS = 1000
# Control characters, and bytes that are not UTF-8 (surrogateescape).
HIDDEN = re.compile('[\x00-\x08\x0b-\x1f\x7f\udc80-\udcff]')
MARKUP = str.maketrans({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})
HEAD = '''<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
'''


def escape(text):
    """Escapes @text for HTML."""
    return HIDDEN.sub('?', text).translate(MARKUP)


def duration(ns):
    """Formats @ns with a unit that leaves three to four digits."""
    for unit, size in ('s', 10**9), ('ms', 10**6), ('µs', 10**3):
        if ns >= size:
            return f'{ns / size:.4g} {unit}'
    return f'{ns:.4g} ns'


class Section:
    """Section of the page; collects rows until all files are read."""

    def __init__(self, name, title, most=MOST_ROWS):
        self.name, self.title, self.most = name, title, most
        self.html, self.rows, self.left_out = [], 0, 0

    def put(self, html):
        self.html.append(html)

    def row(self):
        """Counts one more row. Returns False if it is not shown."""
        if self.rows < self.most:
            self.rows += 1
            return True
        self.left_out += 1
        return False

    def table(self, columns, rows):
        """Adds a table of @rows, lists of HTML cells, if there are any. On a narrow page the table scrolls separately."""
        shown = [f'<tr class="row"><td>{"</td><td>".join(row)}</td></tr>\n' for row in rows if self.row()]
        if shown:
            head = f'<tr><th>{"<th>".join(columns)}</tr>\n' if columns else ''
            self.put(f'<div class="wide"><table>\n{head}{"".join(shown)}</table></div>\n')


def read(name):
    with open(os.path.join(HERE, name), encoding='utf-8') as file:
        return file.read()


def write(out, title, header, sections, sources):
    """Writes the page with the HTML @header and the non-empty @sections. @sources: HTML that names the input."""
    sections = [section for section in sections if section.rows]
    out.write(f'{HEAD}<title>{title}</title>\n<style>\n{read("page.css")}</style>\n</head>\n<body>\n<h1>softhca report</h1>\n{header}')
    out.write('<header><input id="filter" type="search" placeholder="filter" aria-label="filter">\n<nav>')
    for section in sections:
        out.write(f'<a href="#{section.name}">{section.title}</a> <span class="soft">{section.rows + section.left_out}</span>\n')
    out.write('</nav></header>\n')
    for section in sections:
        out.write(f'<section id="{section.name}">\n<h2>{section.title} <span class="soft shown">{section.rows}</span></h2>\n')
        out.write(''.join(section.html))
        if section.left_out:
            out.write(f'<p class="soft">… {section.left_out} more</p>\n')
        out.write('</section>\n')
    if not sections:
        out.write('<p>Nothing was recorded: no process used the device, or the files are empty.</p>\n')
    out.write(f'<p class="soft">{sources}</p>\n<script>\n{read("page.js")}</script>\n</body>\n</html>\n')

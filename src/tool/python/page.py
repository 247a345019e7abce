# SPDX-License-Identifier: BSD-2-Clause
"""
The page of a report: one file of HTML that loads nothing. All that comes from files is escaped, drawings are images, in which nothing
runs.
"""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
# Rows of a section that a page shows; the others are counted.
MOST_ROWS = 1000
# Controls, and bytes that are not UTF-8 (surrogateescape).
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
    """@text as HTML that shows it and obeys nothing in it."""
    return HIDDEN.sub('?', text).translate(MARKUP)


def duration(ns):
    """@ns with a unit that leaves three to four digits."""
    for unit, size in ('s', 10**9), ('ms', 10**6), ('µs', 10**3):
        if ns >= size:
            return f'{ns / size:.4g} {unit}'
    return f'{ns:.4g} ns'


class Section:
    """A part of the page; its rows are collected until all files are read."""

    def __init__(self, name, title, most=MOST_ROWS):
        self.name, self.title, self.most = name, title, most
        self.html, self.rows, self.left_out = [], 0, 0

    def put(self, html):
        self.html.append(html)

    def row(self):
        """Counts one more row. False if it is not to be shown."""
        if self.rows < self.most:
            self.rows += 1
            return True
        self.left_out += 1
        return False

    def table(self, columns, rows):
        """Puts a table of @rows, lists of cells in HTML, if there are any. The table scrolls by itself where the page is narrow."""
        shown = [f'<tr class="row"><td>{"</td><td>".join(row)}</td></tr>\n' for row in rows if self.row()]
        if shown:
            head = f'<tr><th>{"<th>".join(columns)}</tr>\n' if columns else ''
            self.put(f'<div class="wide"><table>\n{head}{"".join(shown)}</table></div>\n')


def read(name):
    with open(os.path.join(HERE, name), encoding='utf-8') as file:
        return file.read()


def write(out, title, header, sections, sources):
    """Writes the page with the HTML @header and those of @sections that have rows. @sources: HTML that says what it was made from."""
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

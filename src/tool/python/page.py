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


def escape(text):
    """@text as HTML that shows it and obeys nothing in it."""
    return HIDDEN.sub('?', text).translate(MARKUP)


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


def read(name):
    with open(os.path.join(HERE, name), encoding='utf-8') as file:
        return file.read()


def write(out, version, sections, sources):
    """Writes the page of @sections, with HTML that says what it was made from."""
    out.write('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
              '<meta name="viewport" content="width=device-width">\n<meta name="color-scheme" content="light dark">\n'
              '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
              'style-src \'unsafe-inline\'; script-src \'unsafe-inline\'">\n<title>softhca report</title>\n'
              f'<style>\n{read("page.css")}</style>\n</head>\n<body>\n<h1>softhca report</h1>\n')
    out.write('<header><input id="filter" type="search" placeholder="filter" aria-label="filter">\n<nav>')
    for section in sections:
        out.write(f'<a href="#{section.name}">{section.title}</a> <span class="soft">{section.rows + section.left_out}</span>\n')
    out.write(f'</nav></header>\n<p class="soft">softhca {version}, from {sources}</p>\n')
    for section in sections:
        out.write(f'<section id="{section.name}">\n<h2>{section.title} <span class="soft shown">{section.rows}</span></h2>\n')
        out.write(''.join(section.html))
        if not section.rows:
            out.write('<p class="soft">None.</p>\n')
        if section.left_out:
            out.write(f'<p class="soft">… {section.left_out} more</p>\n')
        out.write('</section>\n')
    out.write(f'<script>\n{read("page.js")}</script>\n</body>\n</html>\n')

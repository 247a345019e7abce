#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
make docs-html: every document is a page, every link resolves, and the index of the search has the rules.

docs_html.py SOURCE
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.abspath(sys.argv[1])


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def broken(page, text):
    """Returns the broken links of a page."""
    for link in re.findall(r'\b(?:href|src)="([^"]*)"', text):
        name, _, anchor = link.partition('#')
        there = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
        if re.match(r'[a-z]+:', name) or (os.path.exists(there) and not anchor):
            continue
        if link == '#' or not os.path.exists(there) or (there.endswith('.html') and f'id="{anchor}"' not in read(there)):
            yield link


def main():
    if not shutil.which('cmark-gfm'):
        print('skipped: cmark-gfm is not installed')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([f'{SOURCE}/scripts/docs-html', directory], check=True)
        pages = [os.path.join(where, name) for where, _, names in os.walk(directory) for name in names if name.endswith('.html')]
        for name in ('index.html', 'docs/use/tutorial.html', 'docs/reference/explanations.html', 'src/transport/DESIGN.html'):
            assert os.path.join(directory, name) in pages, name
        wrong = [(os.path.relpath(page, directory), link) for page in pages for link in broken(page, read(page))]
        assert not wrong, wrong
        search = read(f'{directory}/search.js')
        index = json.loads(search[len('const INDEX = '):search.index(';\n')])
        assert any('KEY_RANGE' in text for _, _, _, text in index)
        assert all(os.path.exists(os.path.join(directory, place.partition('#')[0])) for place, *_ in index)
        print('pages:', len(pages))


main()

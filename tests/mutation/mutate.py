#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Breaks the source on purpose, place by place, and checks that tests fail.

mutations.txt has the places. Each is broken in a copy of the tree, and the tests that it names are run there: if all of
them pass, the mutation has survived, and either a test is missing or the place has no purpose. The exit status is 1
if one survived, or if a place is not found.

    tests/mutation/mutate.py [--list] [NAME…]      (`make mutate` runs all)
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(HERE, 'mutations.txt')
# A mutation may make a test wait forever.
SECONDS = 300
# Exit status of `meson test` if the build failed.
BUILD_FAILED = 125


@dataclass
class Mutation:
    name: str
    promise: str = ''
    file: str = ''
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)
    tests: list = field(default_factory=list)

    def missing(self):
        return [name for name in ('promise', 'file', 'old', 'tests') if not getattr(self, name)]


def table():
    """Returns the mutations of mutations.txt; its head describes the format."""
    found = []
    with open(TABLE, encoding='utf-8') as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip('\n')
            if not line.strip() or line.startswith('#'):
                continue
            kind, rest = line[0], line[1:]
            word, _, value = line.partition(' ')
            if kind == '=':
                found.append(Mutation(rest.strip()))
            elif kind in '-+' and found:
                (found[-1].old if kind == '-' else found[-1].new).append(rest)
            elif word in ('promise', 'file') and found:
                setattr(found[-1], word, value.strip())
            elif word == 'tests' and found:
                found[-1].tests = value.split()
            else:
                sys.exit(f'{TABLE}:{number}: not understood: {line}')
    for mutation in found:
        if mutation.missing():
            sys.exit(f'{TABLE}: {mutation.name} lacks {", ".join(mutation.missing())}')
    return found


class Copy:
    """A copy of the tracked files, as in the work tree, with its own build."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix='softhca-mutation-')
        files = subprocess.run(['git', '-C', SOURCE, 'ls-files', '-z'], stdout=subprocess.PIPE, check=True).stdout
        for name in filter(None, files.decode().split('\0')):
            if os.path.exists(os.path.join(SOURCE, name)):
                target = os.path.join(self.directory, name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy2(os.path.join(SOURCE, name), target)
        self.build = os.path.join(self.directory, 'build')
        # A mutation may leave a variable unused.
        subprocess.run(['meson', 'setup', self.build, self.directory, '-Dtests=true', '-Dwerror=false',
                        '-Doptimization=1'], stdout=subprocess.DEVNULL, check=True)

    def read(self, name):
        with open(os.path.join(self.directory, name), encoding='utf-8') as file:
            return file.read()

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        # Ninja compares times: use one that is later than any before.
        later = time.time() + 2
        os.utime(path, (later, later))

    def run(self, tests):
        """Builds the dependencies of @tests and runs them. Returns ('passed' or 'failed' or 'broken', a line with
        details)."""
        try:
            done = subprocess.run(['meson', 'test', '-C', self.build, *tests], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return 'failed', 'time-out'
        failures = re.findall(r'softhca:(\S+) / (\S+) +(?:FAIL|TIMEOUT|ERROR)', done.stdout)
        if not done.returncode:
            return 'passed', ''
        if done.returncode == BUILD_FAILED:
            return 'broken', '; '.join(re.findall(r'error: .*', done.stdout)[:2]) or done.stdout[-300:]
        return 'failed', ', '.join('/'.join(failure) for failure in failures) or done.stdout[-300:]

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)


def try_one(copy, mutation):
    """Returns true if the mutation was detected."""
    text = copy.read(mutation.file)
    old, new = '\n'.join(mutation.old), '\n'.join(mutation.new)
    if text.count(old) != 1:
        print(f'STALE     {mutation.name}: {mutation.file} has its text {text.count(old)} times, not once', flush=True)
        return False
    copy.write(mutation.file, text.replace(old, new))
    verdict, detail = copy.run(mutation.tests)
    copy.write(mutation.file, text)
    word = {'failed': 'caught', 'passed': 'SURVIVED', 'broken': 'NO BUILD'}[verdict]
    print(f'{word:9} {mutation.name} ({mutation.promise}) {detail}'.rstrip(), flush=True)
    return verdict == 'failed'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--list', action='store_true', help='print the mutations and their tests, and run nothing')
    parser.add_argument('name', nargs='*', help='mutations to try; all of them by default')
    options = parser.parse_args()

    mutations = [mutation for mutation in table() if not options.name or mutation.name in options.name]
    if options.list:
        for mutation in mutations:
            print(f'{mutation.name} ({mutation.promise}): {" ".join(mutation.tests)}')
        return 0
    if not mutations:
        sys.exit('there is no such mutation')
    copy = Copy()
    try:
        verdict, detail = copy.run(sorted({test for mutation in mutations for test in mutation.tests}))
        if verdict != 'passed':
            sys.exit(f'without a mutation the tests do not pass: {detail}')
        caught = sum(try_one(copy, mutation) for mutation in mutations)
    finally:
        copy.remove()
    print(f'{caught} caught, {len(mutations) - caught} not')
    return 0 if caught == len(mutations) else 1


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: BSD-2-Clause
"""Reports of a run: as TAP for Meson, or as a table of clients and links for readers."""
import subprocess

import cases


class Tap:
    """One line per case, in the Test Anything Protocol."""

    def __init__(self):
        self.count = self.failures = 0

    def line(self, wrong, name, report):
        self.count += 1
        self.failures += bool(wrong)
        print(f'{"not ok" if wrong else "ok"} {self.count} - {name}', flush=True)
        for line in ([wrong] if wrong else []) + report:
            print('#', line, flush=True)

    def skipped(self, case, link, reason):
        self.count += 1
        print(f'ok {self.count} # SKIP {link}: {case.name}: {reason}', flush=True)

    def ended(self, case, link, wrong, report):
        self.line(wrong, f'{link}: {case.name}', report)

    def left(self, names):
        self.line(', '.join(names), 'nothing is left', [])

    def finish(self):
        print(f'1..{self.count}')
        return self.failures


def version(package):
    """The version of @package without the revisions of the distribution, or '' if it is not installed."""
    query = subprocess.run(['dpkg-query', '-W', '-f=${Version}', package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True, check=False)
    return query.stdout.split(':')[-1].split('-')[0].split('+')[0]


class Table:
    """Failures as they happen; then a row per client, a column per link, and the sums."""

    def __init__(self):
        self.rows = {}      # (program, package) -> link -> [passed, failed]
        self.reasons = {}   # reason for skipping cases -> their number
        self.failures = self.passes = 0

    def place(self, case, link):
        row = self.rows.setdefault((cases.program_name(case), cases.package(case)), {})
        return row.setdefault(link, [0, 0])

    def skipped(self, case, link, reason):
        self.place(case, link)
        self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def ended(self, case, link, wrong, report):
        self.place(case, link)[bool(wrong)] += 1
        self.failures += bool(wrong)
        self.passes += not wrong
        print(f'{"FAILED" if wrong else "passed"} {link} {case.name}', flush=True)
        for line in ([wrong] if wrong else []) + report:
            print(f'    {line}', flush=True)

    def left(self, names):
        if names:
            self.failures += 1
            print('FAILED: left:', ', '.join(names))

    def cell(self, row, link):
        if link not in row:
            return '-'
        passed, failed = row[link]
        if failed:
            return f'{failed} of {passed + failed} FAILED'
        return f'{passed} passed' if passed else 'skipped'

    def finish(self):
        """Prints the table. Returns the number of failed cases."""
        lines = [('client', 'package', cases.SHM, cases.UDP)]
        lines += [(program, f'{package} {version(package)}'.strip(), self.cell(row, cases.SHM), self.cell(row, cases.UDP))
                  for (program, package), row in sorted(self.rows.items(), key=lambda item: item[0][::-1])]
        widths = [max(map(len, column)) for column in zip(*lines)]
        print()
        for line in lines:
            print('  '.join(word.ljust(width) for word, width in zip(line, widths)).rstrip())
        print()
        for reason, count in self.reasons.items():
            print(f'skipped {count}: {reason}')
        print(f'{self.passes} passed, {self.failures} failed')
        return self.failures

# SPDX-License-Identifier: BSD-2-Clause
"""Notices when the whole machine stood still: a virtual machine that its host stopped, a laptop that slept.

Deadlines of tests are moments of a clock that goes on meanwhile, so a test that ran then fails whatever it tests. A
thread sleeps for a moment again and again, and notes when it woke up much later than it should have; a busy machine, with
a load of some dozens, makes that tenths of a second.
"""
import threading
import time

LOOK_S = 0.25
STILL_S = 5


class Watch:
    """Use with `with`; afterwards `gaps` has (begin, end) of each standstill, in seconds of time.time()."""

    def __init__(self, still=STILL_S):
        self.gaps = []
        self._still = still
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _watch(self):
        before = time.monotonic()
        while not self._end.wait(LOOK_S):
            now = time.monotonic()
            if now - before > self._still:
                end = time.time()
                self.gaps.append((end - (now - before), end))
            before = now

    def during(self, begin, end):
        """For how many seconds the machine stood still between the two times."""
        return sum(max(0, min(end, gap_end) - max(begin, gap_begin)) for gap_begin, gap_end in self.gaps)

# SPDX-License-Identifier: BSD-2-Clause
"""Detects standstills of the whole machine: a virtual machine stopped by its host, a laptop that slept.

The clock of test deadlines continues during a standstill, so running tests fail for no other reason. A thread sleeps for
short times and records each wake-up that is much too late; on a busy machine, with a load of some dozens, delays are tenths
of a second.
"""
import threading
import time

LOOK_S = 0.25
STILL_S = 5


class Watch:
    """Context manager; afterwards `gaps` has (begin, end) of each standstill, in seconds of time.time()."""

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
        """Returns the seconds for which the machine stood still between the two times."""
        return sum(max(0, min(end, gap_end) - max(begin, gap_begin)) for gap_begin, gap_end in self.gaps)

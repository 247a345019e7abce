# SPDX-License-Identifier: BSD-2-Clause
"""Detects times in which a processor did not run a thread that was ready.

The clock of deadlines continues meanwhile, so tests may fail for no other reason. The whole machine may stand still: a
virtual machine stopped by its host, a laptop that slept. Or the scheduler favours others: Linux 6.18 with
sched_autogroup_enabled leaves threads of a session waiting for seconds while another session, such as a test with polling
processes, keeps both of two processors busy.

A thread on each processor sleeps for short times and records each wake-up that is much too late. With a fair scheduler and a
load of some dozens, delays are a tenth of a second.
"""
import os
import threading
import time

LOOK_S = 0.05
LATE_S = 0.3


class Watch:
    """Context manager; afterwards `gaps` has (begin, end) of each delay, in seconds of time.time()."""

    def __init__(self, late=LATE_S):
        self.gaps = []
        self._late = late
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(cpu,), daemon=True) for cpu in os.sched_getaffinity(0)]
        self._begun = threading.Barrier(len(self._threads) + 1)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        # On a busy machine a thread may start late.
        self._begun.wait()
        return self

    def __exit__(self, *_):
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _watch(self, cpu):
        before = time.monotonic()
        self._begun.wait()
        os.sched_setaffinity(0, {cpu})
        while not self._end.wait(LOOK_S):
            now = time.monotonic()
            if now - before - LOOK_S > self._late:
                end = time.time()
                self.gaps.append((end - (now - before), end))
            before = now

    def during(self, begin, end):
        """Returns true if a delay overlaps the time between the two."""
        return any(begin < gap_end and gap_begin < end for gap_begin, gap_end in self.gaps)

    def __str__(self):
        longest = max((end - begin for begin, end in self.gaps), default=0)
        return f'{len(self.gaps)} times a thread waited too long for a processor, up to {longest:.1f} s'

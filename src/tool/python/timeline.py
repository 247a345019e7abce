# SPDX-License-Identifier: BSD-2-Clause
"""`softhca timeline`, and the trace of a run: merges files of records and traces of several hosts into one trace."""
import glob
import os
import re

import timeline_maker
from common import Failure, Progress, say
from timeline_records import Reader
from timeline_tracks import TRACE_BEGIN, TRACE_BEGUN, TRACE_END, Trace

# Above all PIDs that Linux assigns.
PROCESS_STEP = 10_000_000
LINES_OFTEN = 1024
FIRST_LINE = re.compile(re.escape(TRACE_BEGIN) + r'(-?\d{1,19})' + re.escape(TRACE_BEGUN) + r'\n')
EVENT = re.compile(r'\{"ts":(-?)(\d{1,19})\.(\d{3}),"pid":(\d{1,19})(,.*\}),?\n?')


class Processes:
    """Assigns unique numbers: processes of several hosts or containers may have the same PID."""

    def __init__(self):
        self.used = set()

    def unique(self, process):
        """Returns @process if it is unused, otherwise a similar number."""
        process &= 0x7fffffff
        while process in self.used:
            process = process + PROCESS_STEP & 0x7fffffff
        self.used.add(process)
        return process


def write_records(reader, events, trace, processes):
    for source in reader.sources:
        source.process = processes.unique(source.process)
    timeline_maker.write(reader.tables, reader.sources, events, trace)


class Made:
    """An existing trace."""

    def __init__(self, path):
        self.path = path
        try:
            self.file = open(path, encoding='latin-1', newline='\n')
            first = FIRST_LINE.fullmatch(self.file.readline(4096))
        except OSError as error:
            raise Failure(f'{path}: {error.strerror}') from error
        if not first:
            raise Failure(f'{path} is neither the records of a process nor a trace of softhca')
        self.base_ns = int(first[1])

    def copy(self, trace, processes):
        """Copies all its events into @trace."""
        progress, known = Progress('copying the trace', trace.out), {}
        size, done = os.fstat(self.file.fileno()).st_size, 0
        with self.file:
            for number, line in enumerate(self.file):
                done += len(line)
                if number % LINES_OFTEN == 0 and size:
                    progress.tell(done, size)
                if line.startswith(TRACE_END):
                    progress.end()
                    return
                event = EVENT.fullmatch(line)
                if line == '\n':
                    continue
                if not event:
                    break
                sign, us, fraction, process, rest = event.groups()
                if process not in known:
                    known[process] = processes.unique(int(process))
                ns = int(us) * 1000 + int(fraction)
                trace.event((-ns if sign else ns) + self.base_ns, known[process], rest[:-1])
        progress.end()
        raise Failure(f'{self.path} is damaged, or not complete')


def merge(tool, paths, out):
    """Writes one trace of all files to @out."""
    reader, processes, made = Reader(tool.data('timeline')), Processes(), []
    for path in paths:
        if reader.started(path) is None:
            made.append(Made(path))
        else:
            reader.add(path)
    events = reader.events()
    bases = [one.base_ns for one in made] + ([timeline_maker.base_of(events)] if events or not made else [])
    trace = Trace(out, min(bases))
    write_records(reader, events, trace, processes)
    for one in made:
        one.copy(trace, processes)
    trace.end()


def tell_losses(reader):
    for source in reader.sources:
        head, name = source.head, f'process {source.head.process} ({source.program})'
        if source.lost:
            say(f'timeline: the oldest {source.lost} records of {name} are lost; --timeline-records keeps more')
        if head.qps > head.qp_rows:
            say(f'timeline: {name} has {head.qps} queue pairs, and only of the first {head.qp_rows} the arrows lead to other processes')


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def collect(tool, path, started, out):
    """
    Writes the trace of the processes that recorded next to @path since @started, ns of CLOCK_REALTIME, and removes the records of
    those that have ended. Returns False if a file could not be read.
    """
    reader, processes, good, taken = Reader(tool.data('timeline')), Processes(), True, []
    for found in sorted(glob.glob(glob.escape(path) + '.*' + reader.tables['suffix'])):
        # Records of an earlier run, without a trace.
        began = reader.started(found)
        if began is None or began < started:
            continue
        try:
            reader.add(found)
            taken.append((found, reader.sources[-1].process))
        except Failure as failure:
            say(f'timeline: {failure}')
            good = False
    if not reader.sources and good:
        say('timeline: no process has used the device')
    tell_losses(reader)
    events = reader.events()
    trace = Trace(out, timeline_maker.base_of(events))
    write_records(reader, events, trace, processes)
    trace.end()
    out.flush()
    for found, process in taken if good else ():
        # A process that still runs continues to record.
        if not is_alive(process):
            os.unlink(found)
    return good

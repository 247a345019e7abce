# SPDX-License-Identifier: BSD-2-Clause
"""
The parts of the softhca command that are written in Python: `softhca timeline`, `softhca report`, and the trace and the page of a run. The command
starts them (src/tool/scripts.c) by

    python3 -I DIRECTORY TOOL COMMAND [ARGUMENT...]

They need only Python's standard library.
"""
import os
import signal
import sys

from common import Failure, Tool, say


def run(tool, command, *arguments):
    # Copies the bytes of traces unchanged.
    sys.stdout.reconfigure(encoding='latin-1', errors='replace', newline='\n')
    # Only what the command needs: to load the other one takes a fifth of the time of a short trace.
    if command in ('timeline', 'collect'):
        import timeline
    else:
        import report
    if command == 'timeline':
        timeline.merge(tool, arguments, sys.stdout)
    elif command == 'collect':
        path, started = arguments
        if not timeline.collect(tool, path, int(started), sys.stdout):
            return 1
    elif command == 'report':
        output, version, *paths = arguments
        report.make(tool, output, version, paths)
    elif command == 'report-json':
        output, _, *paths = arguments
        report.make_json(tool, output, paths)
    elif command == 'run-report':
        report.make_of_run(tool, *arguments)
    sys.stdout.flush()
    return 0


def main():
    # Signals end this process as they end a C program: unread output, interrupts.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return run(Tool(sys.argv[1]), *sys.argv[2:])
    except Failure as failure:
        say(str(failure))
    except MemoryError:
        say('out of memory')
    except OSError as error:
        say(f'cannot write the output: {error.strerror}')
    return 1


status = main()
sys.stderr.flush()
# Skips freeing of objects, and a second attempt to write failed output.
os._exit(status)

# SPDX-License-Identifier: BSD-2-Clause
"""
Checks that scripts/standstill.py detects only that its process was stopped; scripts/test then repeats failed tests and prints
the reasons of the failures.
"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / 'scripts'))
import standstill  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader('runner', str(SOURCE / 'scripts/test'))
RUNNER = importlib.util.module_from_spec(importlib.util.spec_from_loader('runner', LOADER))
LOADER.exec_module(RUNNER)

WATCHER = '''
import sys, time
sys.path.insert(0, sys.argv[1])
import standstill
with standstill.Watch(late=1) as watch:
    print('ready', flush=True)
    sys.stdin.readline()
print(watch.gaps)
'''


def gaps(stop):
    """Checks the gaps reported by a watcher that is stopped for a while, or is not."""
    with subprocess.Popen([sys.executable, '-c', WATCHER, str(SOURCE / 'scripts')], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout.readline() == 'ready\n'
        begin = time.time()
        if stop:
            os.kill(watcher.pid, signal.SIGSTOP)
        time.sleep(1.8)
        os.kill(watcher.pid, signal.SIGCONT)
        end = time.time()
        time.sleep(0.5)
        said, _ = watcher.communicate('\n')
    return json.loads(said.replace('(', '[').replace(')', ']')), begin, end


def overlap():
    watch = standstill.Watch()
    watch.gaps = [(100, 140), (200, 210)]
    assert not watch.during(90, 100)
    assert watch.during(90, 105)
    assert watch.during(110, 120)
    assert watch.during(130, 205)
    assert not watch.during(140, 200)
    assert str(watch) == '2 times a thread waited too long for a processor, up to 40.0 s', watch


def chosen():
    """Checks which tests are run again: those that failed while threads waited too long for a processor."""
    watch = standstill.Watch()
    watch.gaps = [(100, 140)]
    results = [
        {'name': 'softhca:api / a', 'result': 'FAIL', 'starttime': 95, 'duration': 46},
        {'name': 'softhca:api / b', 'result': 'OK', 'starttime': 95, 'duration': 46},
        {'name': 'softhca:api / c', 'result': 'FAIL', 'starttime': 141, 'duration': 5},
        {'name': 'softhca:unit / d', 'result': 'TIMEOUT', 'starttime': 99, 'duration': 60},
        {'name': 'softhca:unit / e', 'result': 'SKIP', 'starttime': 99, 'duration': 60},
    ]
    with tempfile.NamedTemporaryFile('w', suffix='.json') as log:
        log.write('\n'.join(map(json.dumps, results)))
        log.flush()
        assert RUNNER.disturbed(log.name, watch) == ['softhca:api / a', 'softhca:unit / d']
        watch.gaps = []
        assert not RUNNER.disturbed(log.name, watch)


def counted_again():
    """Tests that were to run again and did not, or failed again, count as failed."""
    again = ['softhca:api / a', 'softhca:unit / d', 'softhca:unit / e']
    results = [{'name': 'softhca:api / a', 'result': 'OK', 'starttime': 0, 'duration': 1},
               {'name': 'softhca:api / a-shm', 'result': 'FAIL', 'starttime': 0, 'duration': 1},
               {'name': 'softhca:unit / d', 'result': 'TIMEOUT', 'starttime': 0, 'duration': 1}]
    tally = RUNNER.Tally()
    with tempfile.NamedTemporaryFile('w', suffix='.json') as log:
        log.write('\n'.join(map(json.dumps, results)))
        log.flush()
        RUNNER.count_again(log.name, 'plain', tally, again)
    assert (tally.passed, tally.failed) == (1, 2), vars(tally)
    assert any('unit / e' in name for name in tally.broken) and any('unit / d' in name for name in tally.broken), tally.broken


def reasons():
    """The summary repeats the lines with the reason of a failure, or the last lines if there are none."""
    tap = 'ok 1 - a\nnot ok 2 - b\n# 0x1 != 0\n# ../tests/x.c:383: error: Failure!\nnot ok 3 # SKIP c\n'
    assert RUNNER.reasons_of({'stdout': tap}) == ['not ok 2 - b', '# 0x1 != 0', '# ../tests/x.c:383: error: Failure!']
    assert RUNNER.reasons_of({'stdout': '# 5 cases\nDIFFERENCE: a\nb\n', 'stderr': ''}) == ['DIFFERENCE: a']
    assert RUNNER.reasons_of({'stdout': '', 'stderr': 'a\n' * 9 + 'b\n'}) == ['a'] * (RUNNER.REASONS - 1) + ['b']
    client = 'not ok 7 - udp: ib_x\n# exit status 1\n# on a: ib_x -n 5\n# out | a\n# err | b\n# why | c\nok 8 - udp: ib_y\n# 1 s\n'
    assert RUNNER.reasons_of({'stdout': client}) == ['not ok 7 - udp: ib_x', '# exit status 1', '# err | b', '# why | c']
    assert not RUNNER.reasons_of({})


def main():
    stood, begin, end = gaps(stop=True)
    # On each processor.
    assert len(stood) == len(os.sched_getaffinity(0)), stood
    assert all(begin - 1 < first < begin + 0.5 and end - 0.5 < last < end + 1 for first, last in stood), stood
    assert not gaps(stop=False)[0]
    overlap()
    chosen()
    counted_again()
    reasons()


main()

# SPDX-License-Identifier: BSD-2-Clause
"""First process of a guest: runs commands for the host.

A connection to PORT of the control network is one command: a line of JSON with a shell command; the answer is a line of JSON
with its exit status, its output and its errors. A command ends with its connection: the host closes it to end a server.
"""
import json
import os
import resource
import select
import signal
import socket
import subprocess
import tempfile
import threading

PORT = 7000
CONTROL = ('eth1', '10.0.2.15/24')


def text_of(file):
    file.seek(0)
    return file.read().decode('utf-8', 'replace')


def serve(connection):
    with connection, connection.makefile('rw', encoding='utf-8') as stream:
        command = json.loads(stream.readline())
        # Files instead of pipes, because children that outlive the command would keep a pipe open.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            program = subprocess.Popen(['sh', '-c', command], stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                       start_new_session=True)
            ended = os.pidfd_open(program.pid)
            poller = select.poll()
            poller.register(ended, select.POLLIN)
            poller.register(connection, select.POLLIN)
            if ended not in dict(poller.poll()):
                os.killpg(program.pid, signal.SIGKILL)
            os.close(ended)
            answer = [program.wait(), text_of(output), text_of(errors)]
        try:
            stream.write(json.dumps(answer) + '\n')
            stream.flush()
        except OSError:
            pass


def main():
    os.environ.update(PATH='/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL='C', HOME='/tmp')
    os.chdir('/tmp')
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for command in ('mount -o remount,rw /', 'ip link set lo up', f'ip addr add {CONTROL[1]} dev {CONTROL[0]}',
                    f'ip link set {CONTROL[0]} up'):
        subprocess.run(command.split(), check=True)
    listener = socket.create_server(('', PORT))
    print('agent: ready')
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


main()

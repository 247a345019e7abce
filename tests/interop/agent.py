# SPDX-License-Identifier: BSD-2-Clause
"""The first process of a guest: runs commands for the host that the virtual machine runs on.

A connection to PORT of the control network is one command: a line of JSON with a shell command; the answer is a line of JSON
with its exit status and its output. A command ends with its connection: the host closes it to end a server.
"""
import json
import os
import resource
import select
import signal
import socket
import subprocess
import threading

PORT = 7000
CONTROL = ('eth1', '10.0.2.15/24')


def serve(connection):
    with connection, connection.makefile('rw', encoding='utf-8') as stream:
        command = json.loads(stream.readline())
        # Output to a file: a command may leave children behind that hold a pipe open.
        with open(f'/tmp/output.{connection.fileno()}.{threading.get_ident()}', 'w+b') as output:
            program = subprocess.Popen(['sh', '-c', command], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            ended = os.pidfd_open(program.pid)
            poller = select.poll()
            poller.register(ended, select.POLLIN)
            poller.register(connection, select.POLLIN)
            if ended not in dict(poller.poll()):
                os.killpg(program.pid, signal.SIGKILL)
            os.close(ended)
            status = program.wait()
            output.seek(0)
            text = output.read().decode('utf-8', 'replace')
        try:
            stream.write(json.dumps([status, text]) + '\n')
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

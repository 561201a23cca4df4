"""A program that runs in a node says what it says on the host: the same kernel interfaces, the same answers."""

from __future__ import annotations

import json
import subprocess

from tests.conftest import PYTHON, RunLab

PROGRAM = """
import array, fcntl, hashlib, mmap, os, select, signal, socket, struct, subprocess, sys, tempfile, threading, time

def files(directory):
    path = os.path.join(directory, "file")
    with open(path, "wb") as file:
        file.write(bytes(range(256)) * 4096)
    os.truncate(path, 1_000_000)
    os.link(path, path + ".link")
    os.rename(path + ".link", path + ".renamed")
    os.symlink("file", path + ".symbolic")
    with open(path, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with mmap.mmap(file.fileno(), 0) as memory:
            memory[10:14] = b"mmap"
        os.lseek(file.fileno(), 2_000_000, os.SEEK_SET)
        os.write(file.fileno(), b"after a hole")
    os.chmod(path, 0o640)
    status = os.stat(path + ".symbolic")
    digest = hashlib.sha256(open(path + ".renamed", "rb").read()).hexdigest()
    yield sorted(os.listdir(directory)), oct(status.st_mode), status.st_size, status.st_nlink, digest
    for bad in (lambda: os.open(directory + "/none", 0), lambda: os.rmdir(directory), lambda: os.mkdir(directory)):
        try:
            bad()
        except OSError as error:
            yield error.errno

def sockets():
    server = socket.create_server(("127.0.0.1", 0))
    def echo():
        connection, _ = server.accept()
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)
    thread = threading.Thread(target=echo)
    thread.start()
    payload = bytes(i * 7 % 251 for i in range(300_000))
    with socket.create_connection(server.getsockname()) as client:
        sender = threading.Thread(target=lambda: (client.sendall(payload), client.shutdown(socket.SHUT_WR)))
        sender.start()
        got = b"".join(iter(lambda: client.recv(65536), b""))
        sender.join()
    thread.join()
    yield got == payload
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reading, writing = os.pipe()
    socket.send_fds(left, [b"descriptor"], [writing])
    message, (received,), *_ = socket.recv_fds(right, 100, 1)
    os.write(received, b"through it")
    yield message, os.read(reading, 100)
    try:
        socket.create_connection(("127.0.0.1", 1))
    except OSError as error:
        yield error.errno
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    udp.sendto(b"datagram", udp.getsockname())
    poller = select.epoll()
    poller.register(udp, select.EPOLLIN)
    yield [event for _, event in poller.poll(5)], udp.recvfrom(100)[0]
    poller.close()

def signals():
    seen = []
    signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    signal.signal(signal.SIGALRM, lambda number, _: seen.append(number))
    os.kill(os.getpid(), signal.SIGUSR1)
    # It goes on until the program has waited for it, should one come before that.
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    signal.pause()
    signal.setitimer(signal.ITIMER_REAL, 0)
    yield sorted(set(seen))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    os.kill(os.getpid(), signal.SIGUSR2)
    yield sorted(signal.sigpending()), signal.sigwait([signal.SIGUSR2])
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)
    yield os.WTERMSIG(os.waitpid(child, 0)[1])
    for command in (["sh", "-c", "exit 3"], ["sh", "-c", "kill -9 $$"]):
        yield subprocess.run(command).returncode

def threads():
    total, lock = [0], threading.Lock()
    def count():
        for _ in range(5000):
            with lock:
                total[0] += 1
    workers = [threading.Thread(target=count) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    yield total
    condition, order = threading.Condition(), []
    def turn(mine):
        with condition:
            condition.wait_for(lambda: len(order) == mine)
            order.append(mine)
            condition.notify_all()
    workers = [threading.Thread(target=turn, args=(mine,)) for mine in (2, 1, 0)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    yield order

def floats():
    numbers = array.array("d", (i / 7 for i in range(10_000)))
    yield sum(numbers), hashlib.blake2b(numbers.tobytes()).hexdigest()
    begin = time.monotonic()
    time.sleep(0.02)
    yield 0.02 <= time.monotonic() - begin < 1, time.get_clock_info("monotonic").resolution

with tempfile.TemporaryDirectory() as directory:
    for part in (files(directory), sockets(), signals(), threads(), floats()):
        for line in part:
            print(line, flush=True)
"""


def test_a_program_gives_the_same_output_in_a_node_as_on_the_host(run_lab: RunLab) -> None:
    command = [str(PYTHON), "-c", PROGRAM]
    native = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(native.splitlines()) > 15
    outcome = run_lab(f"name: twin\nnodes: {{a: {{}}}}\nrun:\n  - {{on: a, name: twin, exec: {json.dumps(command)}}}\n")
    assert outcome.status == 0
    assert outcome.stdout("a", "twin").splitlines() == native.splitlines()

"""What a kernel asks of the host that the clock leaves out, or puts off, since it knows the answer."""

from __future__ import annotations

from tests.host.clock.small_kernel import output_of_kernel

HOST_REFUSES_GETPID = """
GETPID, NO_NEW_PRIVS, SECCOMP, FILTER = 39, 38, 22, 2
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 6
REFUSED, ALLOWED = 0x00050001, 0x7fff0000
steps = [(LOAD, 0, 0, 0), (IF_EQUAL, 0, 1, GETPID), (RETURN, 0, 0, REFUSED), (RETURN, 0, 0, ALLOWED)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
pid = os.getpid()
libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
libc.prctl(SECCOMP, FILTER, struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
print(os.getpid() == pid, libc.syscall(GETPID) == pid)
"""


def test_the_host_is_not_asked_for_the_number_of_the_kernel_s_process() -> None:
    # Python's own question goes to the host, which refuses it.
    assert output_of_kernel(HOST_REFUSES_GETPID).split() == ["False", "True"]


TRACES = """
TRACEME, CONT, GETREGS, SETREGS = 0, 7, 12, 13
NOTHING = ctypes.c_void_p()
stub = os.fork()
if stub == 0:
    libc.ptrace(TRACEME, 0, NOTHING, NOTHING)
    while True:
        os.kill(os.getpid(), signal.SIGSTOP)
libc.waitpid(stub, None, 0)
registers = (ctypes.c_uint64 * 27)()
libc.ptrace(GETREGS, stub, NOTHING, registers)
made_up = (ctypes.c_uint64 * 27)(*registers)
made_up[21] = 1 << 63  # the base of thread-local storage, beyond all that a process can have
ask = ctypes.CDLL(None, use_errno=True).ptrace
def run_with(registers):
    answers = [ask(SETREGS, stub, NOTHING, registers), ask(CONT, stub, NOTHING, NOTHING)]
    return answers, ctypes.get_errno() if answers[1] else 0
print(*run_with(made_up))
print(*run_with(registers))
libc.waitpid(stub, None, 0)
os.kill(stub, signal.SIGKILL)
"""


def test_registers_that_the_host_refuses_are_refused_when_their_process_is_to_run() -> None:
    # 5: EIO, as the host says of registers that cannot be.
    assert output_of_kernel(TRACES).splitlines() == ["[0, -1] 5", "[0, 0] 0"]

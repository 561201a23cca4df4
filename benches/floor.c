/* What a stop of a guest's program costs its host at least: prints a name and microseconds of CPU time of both processes,
 * of the best of several batches. The same calls as of a guest that is asked getppid(2), and nothing else:
 *
 *     switch     two processes on one core that hand over to each other by a futex, there and back
 *     traced     a stop as of ptrace(2): one call resumes, two read, one sets; and wait4(2)
 *     metered    the same with three readings of clocks
 *     trapped    a stop as of seccomp(2): a signal in the program, which hands over by a futex and returns from it
 *
 *     cc -O2 -o /tmp/floor benches/floor.c && /tmp/floor
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/elf.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 9, STOPS = 20000, TO_PROGRAM = 1, TO_KERNEL = 2 };

static int *turn;

static void fail_if(int failed, const char *what) {
    if (failed) {
        perror(what);
        exit(1);
    }
}

static double clock_us(clockid_t clock) {
    struct timespec now;
    fail_if(syscall(SYS_clock_gettime, clock, &now), "clock_gettime");
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static clockid_t clock_of(pid_t process) {
    clockid_t clock;
    fail_if((errno = clock_getcpuclockid(process, &clock)), "clock_getcpuclockid");
    return clock;
}

/* Gives the turn to the other and waits until it is given back. */
static void hand_over(int to, int back) {
    __atomic_store_n(turn, to, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) != back) syscall(SYS_futex, turn, FUTEX_WAIT, to, NULL, NULL, 0);
}

static void on_trap(int number) {
    (void)number;
    hand_over(TO_KERNEL, TO_PROGRAM);
}

static void trap_getppid(void) {
    struct sigaction action = {.sa_handler = on_trap};
    sigfillset(&action.sa_mask);
    fail_if(sigaction(SIGSYS, &action, NULL), "sigaction");
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    fail_if(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
    fail_if(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

/* Starts the program of a kind, which does nothing but what stops it. */
static pid_t start(char kind) {
    *turn = TO_KERNEL;
    pid_t child = fork();
    fail_if(child < 0, "fork");
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (kind == 't') {
        fail_if(ptrace(PTRACE_TRACEME, 0, NULL, NULL), "PTRACE_TRACEME");
        raise(SIGSTOP);
    }
    if (kind == 's') trap_getppid();
    for (;;) {
        if (kind == 'f') hand_over(TO_KERNEL, TO_PROGRAM);
        else syscall(SYS_getppid);
    }
}

static void stop_traced(pid_t child, int is_metered, clockid_t clock) {
    struct user_regs_struct registers;
    struct user_fpregs_struct extended;
    struct iovec room = {&extended, sizeof extended};
    fail_if(ptrace(PTRACE_SYSEMU, child, NULL, NULL), "PTRACE_SYSEMU");
    fail_if(waitpid(child, NULL, __WALL) < 0, "waitpid");
    fail_if(ptrace(PTRACE_GETREGS, child, NULL, &registers), "PTRACE_GETREGS");
    fail_if(ptrace(PTRACE_GETREGSET, child, NT_PRFPREG, &room), "PTRACE_GETREGSET");
    registers.rax = 1;
    fail_if(ptrace(PTRACE_SETREGS, child, NULL, &registers), "PTRACE_SETREGS");
    if (is_metered) {
        clock_us(clock);
        clock_us(CLOCK_PROCESS_CPUTIME_ID);
        clock_us(CLOCK_MONOTONIC);
    }
}

static void measure(const char *name, char kind, int is_metered) {
    pid_t child = start(kind);
    if (kind == 't') fail_if(waitpid(child, NULL, 0) < 0, "waitpid");
    clockid_t clock = clock_of(child);
    double best_us = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        double before_us = clock_us(CLOCK_PROCESS_CPUTIME_ID) + clock_us(clock);
        for (int stop = 0; stop < STOPS; stop++) {
            if (kind == 't') stop_traced(child, is_metered, clock);
            else hand_over(TO_PROGRAM, TO_KERNEL);
        }
        double spent_us = (clock_us(CLOCK_PROCESS_CPUTIME_ID) + clock_us(clock) - before_us) / STOPS;
        if (spent_us < best_us) best_us = spent_us;
    }
    printf("%s %.2f\n", name, best_us);
    fail_if(kill(child, SIGKILL), "kill");
    fail_if(waitpid(child, NULL, __WALL) < 0, "waitpid");
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fail_if(turn == MAP_FAILED, "mmap");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    fail_if(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
    measure("switch", 'f', 0);
    measure("traced", 't', 0);
    measure("metered", 't', 1);
    measure("trapped", 's', 0);
    return 0;
}

/* What a stop of a guest's program costs its host at least: prints a name and microseconds of CPU time of both processes,
 * of the best of several batches. The same calls as of a guest that is asked getppid(2), or whose program touches a page
 * for the first time, and nothing else:
 *
 *     switch           two processes on one core that hand over to each other by a futex, there and back
 *     traced           a stop as of ptrace(2): one call resumes, two read, one sets; and wait4(2)
 *     metered          the same with three readings of clocks
 *     trapped          a stop as of seccomp(2): a signal in the program, which hands over by a futex and returns from it
 *     trapped-metered  the same with three readings of clocks
 *     fault-...        the same for a page that is not there. Traced: where the fault was is asked, too, and the program's
 *                      process is made to map the page, which is a second stop. Trapped: it is sent the memory's descriptor
 *                      and maps the page as it goes on
 *     cpuid-...        the same for CPUID, where the host can make it fault: the instruction is read, and its result set
 *     map, unmap       one of many pages that a process maps, one by one, and takes away again
 *     touch            one of many pages of one mapping that it writes to for the first time
 *     reading          a clock of CPU time that is read
 *     timer            a timer that is set
 *     process          a process that comes of one with as many mappings as a small program has, which is traced and ended
 *
 *     cc -O2 -o /tmp/floor benches/floor.c && /tmp/floor [STOPS OF A BATCH]
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* What the program does again and again. */
enum doing { CALLS, FAULTS, CPUIDS };

enum { ARCH_SET_CPUID = 0x1012, CPUID_BYTES = 2, MAPPINGS = 60, PROCESSES = 200 };
enum { BATCHES = 9, TO_PROGRAM = 1, TO_KERNEL = 2, PAGE = 4096, PAGES = 500 };

static int *turn;
static int stops = 20000;
/* Where the program touches pages, and the memory that is mapped there, as a guest's is. */
static char *room;
static int memory;
/* By which a program that is not traced gets that memory each time that it is to map a page: the kernel's end and its own. */
static int line[2];

/* What a process runs that is made to do a system call: the call, and a breakpoint. */
extern const char call_and_stop[];
__asm__(".text\ncall_and_stop: syscall\nint3\n");

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

/* Sends the memory's descriptor to the program, or receives it there: the descriptor. */
static int pass_memory(int is_sent) {
    char byte = 0, room_for_one[CMSG_SPACE(sizeof memory)] = {0};
    struct iovec content = {&byte, sizeof byte};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1, .msg_control = room_for_one};
    message.msg_controllen = sizeof room_for_one;
    if (!is_sent) fail_if(recvmsg(line[1], &message, 0) != sizeof byte, "recvmsg");
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!is_sent) return *(int *)CMSG_DATA(header);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof memory);
    *(int *)CMSG_DATA(header) = memory;
    fail_if(sendmsg(line[0], &message, 0) != sizeof byte, "sendmsg");
    return memory;
}

static void on_trap(int number, siginfo_t *found, void *context) {
    hand_over(TO_KERNEL, TO_PROGRAM);
    if (number != SIGSEGV) return;
    if (found->si_code == SI_KERNEL) {
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += CPUID_BYTES;
        return;
    }
    char *at = found->si_addr;
    int sent = pass_memory(0);
    void *got = mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, sent, at - room);
    fail_if(got == MAP_FAILED || close(sent), "mmap");
}

static void trap_getppid(void) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    fail_if(sigaction(SIGSYS, &action, NULL) || sigaction(SIGSEGV, &action, NULL), "sigaction");
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

static void touch_pages(void) {
    for (char *at = room; at < room + PAGES * PAGE; at += PAGE) *(volatile char *)at = 1;
    munmap(room, PAGES * PAGE);
}

/* Starts the program of a kind, which does nothing but what stops it. */
static pid_t start(char kind, enum doing doing) {
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
        else if (doing == FAULTS) touch_pages();
        else if (doing == CPUIDS) __asm__ volatile("cpuid" ::: "rax", "rbx", "rcx", "rdx");
        else syscall(SYS_getppid);
    }
}

static void read_clocks(clockid_t clock) {
    clock_us(clock);
    clock_us(CLOCK_PROCESS_CPUTIME_ID);
    clock_us(CLOCK_MONOTONIC);
}

/* Resumes the program until it stops again: by what signal. */
static int resume(enum __ptrace_request how, pid_t child) {
    int status;
    fail_if(ptrace(how, child, NULL, NULL), "resume");
    fail_if(waitpid(child, &status, __WALL) < 0, "waitpid");
    return WSTOPSIG(status);
}

/* Has the program's process do a system call of its own: mmap(2) of one page, or munmap(2) of all. */
static void call_in(pid_t child, struct user_regs_struct registers, char *at) {
    registers.rip = (unsigned long)call_and_stop;
    registers.rax = at ? SYS_mmap : SYS_munmap;
    registers.rdi = (unsigned long)(at ? at : room);
    registers.rsi = at ? PAGE : PAGES * PAGE;
    registers.rdx = PROT_READ | PROT_WRITE;
    registers.r10 = MAP_SHARED | MAP_FIXED;
    registers.r8 = memory;
    registers.r9 = at - room;
    fail_if(ptrace(PTRACE_SETREGS, child, NULL, &registers), "PTRACE_SETREGS");
    fail_if(resume(PTRACE_CONT, child) != SIGTRAP, "system call in the program");
}

static void stop_traced(pid_t child, int is_metered, clockid_t clock) {
    struct user_regs_struct registers;
    struct user_fpregs_struct extended;
    struct iovec into = {&extended, sizeof extended};
    int stopped_by = resume(PTRACE_SYSEMU, child);
    fail_if(ptrace(PTRACE_GETREGS, child, NULL, &registers), "PTRACE_GETREGS");
    fail_if(ptrace(PTRACE_GETREGSET, child, NT_PRFPREG, &into), "PTRACE_GETREGSET");
    if (is_metered) read_clocks(clock);
    if (stopped_by == SIGSEGV) {
        siginfo_t found;
        fail_if(ptrace(PTRACE_GETSIGINFO, child, NULL, &found), "PTRACE_GETSIGINFO");
        if (found.si_code == SI_KERNEL) {
            ptrace(PTRACE_PEEKDATA, child, registers.rip & -8, NULL);
            registers.rip += CPUID_BYTES;
            fail_if(ptrace(PTRACE_SETREGS, child, NULL, &registers), "PTRACE_SETREGS");
            return;
        }
        call_in(child, registers, found.si_addr);
        if (is_metered) read_clocks(clock);
    } else {
        if (registers.orig_rax == SYS_munmap) call_in(child, registers, NULL);
        registers.rax = 1;
    }
    fail_if(ptrace(PTRACE_SETREGS, child, NULL, &registers), "PTRACE_SETREGS");
}

/* Keeps the least of what batches took, each of so many turns. */
static void keep_least(double *least_us, double spent_us, int turns) {
    if (spent_us / turns < *least_us) *least_us = spent_us / turns;
}

static void measure(const char *name, char kind, enum doing doing, int is_metered) {
    pid_t child = start(kind, doing);
    if (kind == 't') fail_if(waitpid(child, NULL, 0) < 0, "waitpid");
    clockid_t clock = clock_of(child);
    double best_us = 1e9;
    /* The first fault stops it before it is told to map a page. */
    int is_first = 1;
    long word;
    struct iovec ours = {&word, sizeof word}, theirs = {(void *)measure, sizeof word};
    for (int batch = 0; batch < BATCHES; batch++) {
        double before_us = clock_us(CLOCK_PROCESS_CPUTIME_ID) + clock_us(clock);
        for (int stop = 0; stop < stops; stop++) {
            if (kind == 't') {
                stop_traced(child, is_metered, clock);
            } else {
                if (doing == FAULTS && !is_first) pass_memory(1);
                is_first = 0;
                hand_over(TO_PROGRAM, TO_KERNEL);
                if (is_metered) read_clocks(clock);
                if (doing == CPUIDS) process_vm_readv(child, &ours, 1, &theirs, 1, 0);
            }
        }
        keep_least(&best_us, clock_us(CLOCK_PROCESS_CPUTIME_ID) + clock_us(clock) - before_us, stops);
    }
    printf("%s %.2f\n", name, best_us);
    fail_if(kill(child, SIGKILL), "kill");
    fail_if(waitpid(child, NULL, __WALL) < 0, "waitpid");
}

/* CPU time of a process and of what it has waited for. */
static double all_us(void) {
    struct rusage own, others;
    fail_if(getrusage(RUSAGE_SELF, &own) || getrusage(RUSAGE_CHILDREN, &others), "getrusage");
    struct timeval times[] = {own.ru_utime, own.ru_stime, others.ru_utime, others.ru_stime};
    double sum_us = 0;
    for (int i = 0; i < 4; i++) sum_us += times[i].tv_sec * 1e6 + times[i].tv_usec;
    return sum_us;
}

/* Pages that are mapped one by one, and taken away one by one; and those of one mapping that are touched one by one. */
static void measure_mappings(void) {
    double map_us = 1e9, unmap_us = 1e9, touch_us = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin_us = clock_us(CLOCK_PROCESS_CPUTIME_ID);
        /* Neighbours would become one mapping where they are one in the memory, too. */
        for (int page = 0; page < PAGES; page++) {
            off_t at = (PAGES - 1 - page) * PAGE;
            void *got = mmap(room + page * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, at);
            fail_if(got == MAP_FAILED, "mmap");
        }
        double middle_us = clock_us(CLOCK_PROCESS_CPUTIME_ID);
        for (int page = 0; page < PAGES; page++) fail_if(munmap(room + page * PAGE, PAGE), "munmap");
        keep_least(&map_us, middle_us - begin_us, PAGES);
        keep_least(&unmap_us, clock_us(CLOCK_PROCESS_CPUTIME_ID) - middle_us, PAGES);
        void *got = mmap(room, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0);
        fail_if(got == MAP_FAILED, "mmap");
        begin_us = clock_us(CLOCK_PROCESS_CPUTIME_ID);
        for (int page = 0; page < PAGES; page++) *(volatile char *)(room + page * PAGE) = 1;
        keep_least(&touch_us, clock_us(CLOCK_PROCESS_CPUTIME_ID) - begin_us, PAGES);
        fail_if(munmap(room, PAGES * PAGE), "munmap");
    }
    printf("map %.2f\nunmap %.2f\ntouch %.2f\n", map_us, unmap_us, touch_us);
}

/* A clock of CPU time that is read, and a timer that is set, as for when a program is to be interrupted. */
static void measure_clocks(void) {
    timer_t timer;
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    struct itimerspec later = {.it_value = {.tv_sec = 1}};
    fail_if(timer_create(CLOCK_MONOTONIC, &none, &timer), "timer_create");
    double read_us = 1e9, set_us = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin_us = clock_us(CLOCK_PROCESS_CPUTIME_ID);
        for (int turn = 0; turn < stops; turn++) clock_us(CLOCK_PROCESS_CPUTIME_ID);
        double read_at_us = clock_us(CLOCK_PROCESS_CPUTIME_ID);
        for (int turn = 0; turn < stops; turn++) timer_settime(timer, 0, &later, NULL);
        keep_least(&read_us, read_at_us - begin_us, stops);
        keep_least(&set_us, clock_us(CLOCK_PROCESS_CPUTIME_ID) - read_at_us, stops);
    }
    timer_delete(timer);
    printf("reading %.2f\ntimer %.2f\n", read_us, set_us);
}

/* A process that comes of one with so many mappings, asks to be traced, stops, and is ended. */
static void measure_processes(void) {
    char *maps[MAPPINGS];
    for (int i = 0; i < MAPPINGS; i++) {
        maps[i] = mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, memory, (i * 7 % PAGES) * PAGE);
        fail_if(maps[i] == MAP_FAILED, "mmap");
    }
    double best_us = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        double before_us = all_us();
        for (int process = 0; process < PROCESSES; process++) {
            pid_t child = fork();
            fail_if(child < 0, "fork");
            if (child == 0) {
                ptrace(PTRACE_TRACEME, 0, NULL, NULL);
                raise(SIGSTOP);
            }
            fail_if(waitpid(child, NULL, 0) < 0 || kill(child, SIGKILL) || waitpid(child, NULL, __WALL) < 0, "a process");
        }
        keep_least(&best_us, all_us() - before_us, PROCESSES);
    }
    printf("process %.2f\n", best_us);
    for (int i = 0; i < MAPPINGS; i++) munmap(maps[i], PAGE);
}

int main(int count, char **words) {
    if (count > 1) stops = atoi(words[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fail_if(turn == MAP_FAILED, "mmap");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    fail_if(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
    memory = memfd_create("memory", 0);
    fail_if(memory < 0 || ftruncate(memory, PAGES * PAGE), "memfd_create");
    room = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
    fail_if(room == MAP_FAILED || munmap(room, PAGES * PAGE), "mmap");
    fail_if(socketpair(AF_UNIX, SOCK_STREAM, 0, line), "socketpair");
    measure("switch", 'f', CALLS, 0);
    measure("traced", 't', CALLS, 0);
    measure("metered", 't', CALLS, 1);
    measure("trapped", 's', CALLS, 0);
    measure("trapped-metered", 's', CALLS, 1);
    measure("fault-traced", 't', FAULTS, 0);
    measure("fault-metered", 't', FAULTS, 1);
    measure("fault-trapped", 's', FAULTS, 0);
    measure("fault-trapped-metered", 's', FAULTS, 1);
    measure_mappings();
    measure_clocks();
    measure_processes();
    /* In this process, too, as in a guest's kernel: to switch to one that differs in it is dear. */
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) == 0) {
        measure("cpuid-metered", 't', CPUIDS, 1);
        measure("cpuid-trapped-metered", 's', CPUIDS, 1);
    }
    return 0;
}

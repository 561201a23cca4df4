/* A kernel of a few calls, which looks at what each of them leaves below its stack pointer: instants of the host? It prints,
 * for each kind of call, how many words it has found that are one. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#define WORDS 600 /* more than the library's deepest call takes */
#define SECOND_NS 1000000000UL
#define STACK_BYTES (1 << 16)

/* Neither function nor stack is used between a call and the look at what it has left. */
#define INLINE static inline __attribute__((always_inline))

static struct timespec host;
static uint64_t begin_ns, begin_ticks;

INLINE uint64_t host_ns(void)
{
    long number = SYS_clock_gettime;
    __asm__ volatile("syscall" : "+a"(number) : "D"(CLOCK_MONOTONIC), "S"(&host) : "rcx", "r11", "memory");
    return host.tv_sec * SECOND_NS + host.tv_nsec;
}

INLINE volatile uint64_t *stack_pointer(void)
{
    uint64_t *here;
    __asm__ volatile("mov %%rsp, %0" : "=r"(here));
    return here;
}

/* What was there before is no instant since then. */
INLINE void begin(void)
{
    begin_ns = host_ns();
    begin_ticks = __rdtsc();
}

INLINE void look(int *instants)
{
    uint64_t end_ticks = __rdtsc(), end_ns = host_ns();
    volatile uint64_t *here = stack_pointer();
    for (int word = 1; word <= WORDS; word++) {
        uint64_t left = here[-word];
        int is_ns = left >= begin_ns && left <= end_ns;
        int is_ticks = left >= begin_ticks && left <= end_ticks;
        /* Both words: the seconds alone may be the number of a process. */
        uint64_t both_ns = left * SECOND_NS + (word > 1 ? here[-word + 1] : 0);
        int is_timespec = left < end_ns && both_ns >= begin_ns && both_ns <= end_ns;
        *instants += is_ns || is_ticks || is_timespec;
    }
}

static void handle(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
}

static void call(int line, int sender)
{
    int resumed = 0, stopped = 0, jumped = 0, idled = 0;
    stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigset_t alarm, before;
    timer_t timer;

    sigaltstack(&stack, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGIO, &action, NULL);
    fcntl(line, F_SETOWN, getpid());
    fcntl(line, F_SETFL, O_ASYNC | O_NONBLOCK);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    timer_create(CLOCK_MONOTONIC, NULL, &timer);

    pid_t stub = fork();
    if (stub == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        for (;;)
            kill(getpid(), SIGSTOP);
    }
    waitpid(stub, NULL, 0);
    for (int turn = 0; turn < 5000; turn++) {
        begin();
        ptrace(PTRACE_CONT, stub, NULL, NULL);
        look(&resumed);
        begin();
        waitpid(stub, NULL, 0);
        look(&stopped);
    }
    for (int turn = 0; turn < 20; turn++) {
        struct itimerspec hour = {.it_value = {.tv_sec = 3600}}, off = {0};
        timer_settime(timer, 0, &hour, NULL);
        sigprocmask(SIG_BLOCK, &alarm, &before);
        begin();
        sigsuspend(&before);
        look(&jumped);
        sigprocmask(SIG_UNBLOCK, &alarm, NULL);
        timer_settime(timer, 0, &off, NULL);
        if (fork() == 0) {
            struct timespec a_while = {.tv_nsec = 3000000};
            syscall(SYS_nanosleep, &a_while, NULL);
            syscall(SYS_write, sender, "x", 1);
            _exit(0);
        }
        sigprocmask(SIG_BLOCK, &alarm, &before);
        begin();
        sigsuspend(&before);
        look(&idled);
        sigprocmask(SIG_UNBLOCK, &alarm, NULL);
        char byte;
        syscall(SYS_read, line, &byte, 1);
        waitpid(-1, NULL, 0);
    }
    printf("resumed %d\nstopped %d\njumped %d\nidled %d\n", resumed, stopped, jumped, idled);
    kill(stub, SIGKILL);
}

/* The calls are made on a stack like a kernel's, which begins at a multiple of its size: by its address the library knows how
 * much of it there is. */
int main(int count, char **arguments)
{
    ucontext_t back, task;

    getcontext(&task);
    task.uc_stack.ss_sp = aligned_alloc(STACK_BYTES, STACK_BYTES);
    task.uc_stack.ss_size = STACK_BYTES;
    task.uc_link = &back;
    makecontext(&task, (void (*)(void))call, 2, atoi(arguments[count - 2]), atoi(arguments[count - 1]));
    return swapcontext(&back, &task);
}

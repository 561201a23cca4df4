// Waits: everything that returns, or sends a signal, when some time is over.
#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// Waits that end with a tick, or are measured in ticks.
enum { TICKS_NS = 5 * TICK_NS };

static struct timespec spec(ns_t ns) { return (struct timespec){ns / SECOND_NS, ns % SECOND_NS}; }
static struct timeval val(ns_t ns) { return (struct timeval){ns / SECOND_NS, ns % SECOND_NS / 1000}; }
static struct timespec instant(clockid_t clock, ns_t after) {
    struct timespec now;
    clock_gettime(clock, &now);
    return spec(now.tv_sec * (ns_t)SECOND_NS + now.tv_nsec + after);
}

// Waits end by a timeout, of which libraries and the kernel speak in many ways.
static bool over(bool failed) { return !failed || errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR; }

static bool by_nanosleep(ns_t ns) {
    struct timespec t = spec(ns);
    return nanosleep(&t, NULL) == 0;
}
static bool by_usleep(ns_t ns) { return usleep((useconds_t)(ns / 1000)) == 0; }
static bool clock_sleep(clockid_t clock, bool absolute, ns_t ns) {
    struct timespec t = absolute ? instant(clock, ns) : spec(ns);
    errno = clock_nanosleep(clock, absolute ? TIMER_ABSTIME : 0, &t, NULL);
    return errno == 0;
}
#define SLEEP(name)                                                                      \
    static bool until_##name(ns_t ns) { return clock_sleep(CLOCK_##name, true, ns); }    \
    static bool sleep_##name(ns_t ns) { return clock_sleep(CLOCK_##name, false, ns); }
SLEEP(MONOTONIC) SLEEP(REALTIME) SLEEP(BOOTTIME) SLEEP(TAI)

static bool by_poll(ns_t ns) { return poll(NULL, 0, (int)(ns / 1000000)) == 0; }
static bool by_ppoll(ns_t ns) {
    struct timespec t = spec(ns);
    return ppoll(NULL, 0, &t, NULL) == 0;
}
static bool by_select(ns_t ns) {
    struct timeval t = val(ns);
    return select(0, NULL, NULL, NULL, &t) == 0;
}
static bool by_pselect(ns_t ns) {
    struct timespec t = spec(ns);
    return pselect(0, NULL, NULL, NULL, &t, NULL) == 0;
}
static bool by_epoll(ns_t ns) {
    struct epoll_event event;
    int file = epoll_create1(0);
    bool done = epoll_wait(file, &event, 1, (int)(ns / 1000000)) == 0;
    close(file);
    return done;
}
static bool by_epoll_pwait2(ns_t ns) {
    struct timespec t = spec(ns);
    struct epoll_event event;
    int file = epoll_create1(0);
    bool done = syscall(SYS_epoll_pwait2, file, &event, 1, &t, NULL, 8) == 0;
    close(file);
    return done;
}
static bool futex(int operation, struct timespec t) {
    uint32_t word = 0;
    return over(syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, 0, &t, NULL, ~0) != 0);
}
static bool by_futex(ns_t ns) { return futex(FUTEX_WAIT, spec(ns)); }
static bool by_futex_monotonic(ns_t ns) { return futex(FUTEX_WAIT_BITSET, instant(CLOCK_MONOTONIC, ns)); }
static bool by_futex_realtime(ns_t ns) {
    return futex(FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, instant(CLOCK_REALTIME, ns));
}
static bool by_semaphore(ns_t ns) {
    sem_t semaphore;
    struct timespec t = instant(CLOCK_REALTIME, ns);
    sem_init(&semaphore, 0, 0);
    return over(sem_timedwait(&semaphore, &t) != 0);
}
static bool by_condition(ns_t ns) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec t = instant(CLOCK_REALTIME, ns);
    pthread_mutex_lock(&mutex);
    errno = pthread_cond_timedwait(&condition, &mutex, &t);
    return over(errno != 0);
}
static bool by_semop(ns_t ns) {
    struct timespec t = spec(ns);
    struct sembuf take = {.sem_num = 0, .sem_op = -1};
    int set = semget(IPC_PRIVATE, 1, 0600);
    if (set < 0) return false;
    bool done = over(semtimedop(set, &take, 1, &t) != 0);
    semctl(set, 0, IPC_RMID);
    return done;
}
static bool by_mqueue(ns_t ns) {
    struct mq_attr shape = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char message[8];
    struct timespec t;
    mqd_t queue = mq_open("/what-time-is-it", O_RDWR | O_CREAT, 0600, &shape);
    if (queue < 0) return false;
    t = instant(CLOCK_REALTIME, ns);
    bool done = over(mq_timedreceive(queue, message, sizeof message, NULL, &t) < 0);
    mq_close(queue);
    mq_unlink("/what-time-is-it");
    return done;
}
static bool by_sigtimedwait(ns_t ns) {
    struct timespec t = spec(ns);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return over(sigtimedwait(&set, NULL, &t) < 0);
}
static bool by_receive_timeout(ns_t ns) {
    struct timeval t = val(ns);
    char byte;
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    bool done = over(recv(ends[0], &byte, 1, 0) < 0);
    close(ends[0]);
    close(ends[1]);
    return done;
}
static bool by_aio(ns_t ns) {
    struct timespec t = spec(ns);
    struct io_event event;
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, 1, &context) != 0) return false;
    bool done = syscall(SYS_io_getevents, context, 1, 1, &event, &t) == 0;
    syscall(SYS_io_destroy, context);
    return done;
}
static bool by_io_uring(ns_t ns) {
    struct io_uring_params p = {0};
    struct __kernel_timespec t = {ns / SECOND_NS, ns % SECOND_NS};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &p);
    if (ring < 0) return false;
    char *submitted = mmap(NULL, p.sq_off.array + 64, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry =
        mmap(NULL, sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (uint64_t)&t, .len = 1, .off = 0};
    *(uint32_t *)(submitted + p.sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(submitted + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    bool done = syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1;
    close(ring);
    return done;
}
static bool by_timerfd(clockid_t clock, ns_t ns) {
    struct itimerspec t = {.it_value = spec(ns)};
    uint64_t count;
    int file = timerfd_create(clock, 0);
    if (file < 0) return false;
    timerfd_settime(file, 0, &t, NULL);
    bool done = read(file, &count, sizeof count) == sizeof count;
    close(file);
    return done;
}
static bool timer(clockid_t clock, bool busy, ns_t ns) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec t = {.it_value = spec(ns)};
    sigset_t set;
    timer_t id;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (timer_create(clock, &event, &id) != 0) return false;
    timer_settime(id, 0, &t, NULL);
    while (busy && sigpending(&set) == 0 && !sigismember(&set, SIGUSR1)) {
    }
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    bool done = sigwait(&set, &got) == 0;
    timer_delete(id);
    return done;
}
#define TIMER(name) static bool timer_##name(ns_t ns) { return timer(CLOCK_##name, false, ns); }
#define TIMERFD(name) static bool timerfd_##name(ns_t ns) { return by_timerfd(CLOCK_##name, ns); }
TIMER(MONOTONIC) TIMER(REALTIME) TIMER(BOOTTIME) TIMER(TAI) TIMER(REALTIME_ALARM) TIMER(BOOTTIME_ALARM)
TIMERFD(MONOTONIC) TIMERFD(REALTIME) TIMERFD(BOOTTIME) TIMERFD(REALTIME_ALARM) TIMERFD(BOOTTIME_ALARM)
static bool timer_PROCESS(ns_t ns) { return timer(CLOCK_PROCESS_CPUTIME_ID, true, ns); }
static bool timer_THREAD(ns_t ns) { return timer(CLOCK_THREAD_CPUTIME_ID, true, ns); }

static volatile sig_atomic_t fired;
static void fire(int signal) { (void)signal, fired = 1; }
static bool interval_timer(int which, int signal_number, ns_t ns) {
    struct itimerval v = {.it_value = val(ns)};
    fired = 0;
    signal(signal_number, fire);
    if (setitimer((__itimer_which_t)which, &v, NULL) != 0) return false;
    while (!fired) {
        if (which == ITIMER_REAL) pause();
    }
    return true;
}
static bool itimer_real(ns_t ns) { return interval_timer(ITIMER_REAL, SIGALRM, ns); }
static bool itimer_virtual(ns_t ns) { return interval_timer(ITIMER_VIRTUAL, SIGVTALRM, ns); }
static bool itimer_prof(ns_t ns) { return interval_timer(ITIMER_PROF, SIGPROF, ns); }

static const struct {
    const char *source;
    bool (*wait)(ns_t);
    ns_t granularity;
} SOURCES[] = {
    {"nanosleep", by_nanosleep, 0},
    {"usleep", by_usleep, 0},
    {"clock_nanosleep MONOTONIC", sleep_MONOTONIC, 0},
    {"clock_nanosleep REALTIME", sleep_REALTIME, 0},
    {"clock_nanosleep BOOTTIME", sleep_BOOTTIME, 0},
    {"clock_nanosleep TAI", sleep_TAI, 0},
    {"clock_nanosleep MONOTONIC, until", until_MONOTONIC, 0},
    {"clock_nanosleep REALTIME, until", until_REALTIME, 0},
    {"clock_nanosleep BOOTTIME, until", until_BOOTTIME, 0},
    {"clock_nanosleep TAI, until", until_TAI, 0},
    {"poll", by_poll, 0},
    {"ppoll", by_ppoll, 0},
    {"select", by_select, 0},
    {"pselect", by_pselect, 0},
    {"epoll_wait", by_epoll, 0},
    {"epoll_pwait2", by_epoll_pwait2, 0},
    {"futex", by_futex, 0},
    {"futex, until MONOTONIC", by_futex_monotonic, 0},
    {"futex, until REALTIME", by_futex_realtime, 0},
    {"sem_timedwait", by_semaphore, 0},
    {"pthread_cond_timedwait", by_condition, 0},
    {"semtimedop", by_semop, TICKS_NS},
    {"mq_timedreceive", by_mqueue, 0},
    {"sigtimedwait", by_sigtimedwait, 0},
    {"SO_RCVTIMEO", by_receive_timeout, TICKS_NS},
    {"io_getevents", by_aio, 0},
    {"io_uring", by_io_uring, 0},
    {"timer MONOTONIC", timer_MONOTONIC, 0},
    {"timer REALTIME", timer_REALTIME, 0},
    {"timer BOOTTIME", timer_BOOTTIME, 0},
    {"timer TAI", timer_TAI, 0},
    {"timer REALTIME_ALARM", timer_REALTIME_ALARM, 0},
    {"timer BOOTTIME_ALARM", timer_BOOTTIME_ALARM, 0},
    {"timerfd MONOTONIC", timerfd_MONOTONIC, 0},
    {"timerfd REALTIME", timerfd_REALTIME, 0},
    {"timerfd BOOTTIME", timerfd_BOOTTIME, 0},
    {"timerfd REALTIME_ALARM", timerfd_REALTIME_ALARM, 0},
    {"timerfd BOOTTIME_ALARM", timerfd_BOOTTIME_ALARM, 0},
    {"setitimer REAL", itimer_real, 0},
    {"setitimer VIRTUAL", itimer_virtual, TICKS_NS},
    {"setitimer PROF", itimer_prof, TICKS_NS},
    {"timer PROCESS_CPUTIME_ID", timer_PROCESS, TICKS_NS},
    {"timer THREAD_CPUTIME_ID", timer_THREAD, TICKS_NS},
};

// How long a wait took; of one that took noticeably longer than asked, the least of some: a host that takes its core away
// makes one late, a clock that is not virtual all of them. ABSENT where there is no such source.
static ns_t took(bool (*wait)(ns_t), ns_t asked) {
    ns_t least = ABSENT;
    for (int tries = 0; tries < 4 && (least == ABSENT || least > asked + asked / 4); tries++) {
        ns_t begin = reference(MONOTONIC);
        errno = 0;
        if (!wait(asked))
            return ABSENT;
        ns_t value = reference(MONOTONIC) - begin;
        least = least == ABSENT || value < least ? value : least;
    }
    return least;
}

void waits(ns_t asked) {
    for (unsigned i = 0; i < sizeof SOURCES / sizeof *SOURCES; i++) {
        reading_t reading = {.before = asked, .value = took(SOURCES[i].wait, asked)};
        if (reading.value != ABSENT) {
            report(SOURCES[i].source, "wait", SOURCES[i].granularity, &reading, 1);
        } else {
            absent(SOURCES[i].source);
        }
    }
}

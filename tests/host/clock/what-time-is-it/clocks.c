// Clocks: what can be read at any instant.
#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/rtc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static ns_t of_spec(int failed, struct timespec t) { return failed ? ABSENT : t.tv_sec * (ns_t)SECOND_NS + t.tv_nsec; }
static ns_t of_val(int failed, struct timeval t) { return failed ? ABSENT : t.tv_sec * (ns_t)SECOND_NS + t.tv_usec * 1000; }
static ns_t ticks(ns_t count) { return count == -1 ? ABSENT : count * (SECOND_NS / sysconf(_SC_CLK_TCK)); }

// Every clock, by the library (and the vDSO, where there is one) and by the bare system call.
#define CLOCK(name)                                                                    \
    static ns_t library_##name(void) {                                                 \
        struct timespec t = {0};                                                       \
        return of_spec(clock_gettime(CLOCK_##name, &t), t);                            \
    }                                                                                  \
    static ns_t call_##name(void) {                                                    \
        struct timespec t = {0};                                                       \
        return of_spec(syscall(SYS_clock_gettime, CLOCK_##name, &t) != 0, t);          \
    }
CLOCK(REALTIME) CLOCK(REALTIME_COARSE) CLOCK(REALTIME_ALARM) CLOCK(TAI)
CLOCK(MONOTONIC) CLOCK(MONOTONIC_RAW) CLOCK(MONOTONIC_COARSE) CLOCK(BOOTTIME) CLOCK(BOOTTIME_ALARM)
CLOCK(PROCESS_CPUTIME_ID) CLOCK(THREAD_CPUTIME_ID)

static ns_t library_gettimeofday(void) {
    struct timeval t;
    return of_val(gettimeofday(&t, NULL), t);
}
static ns_t call_gettimeofday(void) {
    struct timeval t;
    return of_val(syscall(SYS_gettimeofday, &t, NULL) != 0, t);
}
static ns_t library_time(void) { return time(NULL) * (ns_t)SECOND_NS; }
static ns_t call_time(void) { return syscall(SYS_time, NULL) * (ns_t)SECOND_NS; }
static ns_t adjusted(void) {
    struct timex t = {0};
    int state = adjtimex(&t);
    return of_spec(state < 0, (struct timespec){t.time.tv_sec, t.time.tv_usec * (t.status & STA_NANO ? 1 : 1000)});
}
static ns_t rtc(void) {
    int file = open("/dev/rtc0", O_RDONLY);
    struct rtc_time t;
    if (file < 0) return ABSENT;
    int failed = ioctl(file, RTC_RD_TIME, &t);
    close(file);
    struct tm date = {.tm_year = t.tm_year, .tm_mon = t.tm_mon, .tm_mday = t.tm_mday,
                      .tm_hour = t.tm_hour, .tm_min = t.tm_min, .tm_sec = t.tm_sec};
    return failed ? ABSENT : timegm(&date) * (ns_t)SECOND_NS;
}
static ns_t boot_and_uptime(void) {
    FILE *file = fopen("/proc/stat", "r");
    char line[4096];
    long boot = 0;
    while (file && fgets(line, sizeof line, file)) sscanf(line, "btime %ld", &boot);
    if (file) fclose(file);
    return boot * (ns_t)SECOND_NS + library_BOOTTIME();
}
static ns_t number_in(const char *path, const char *format, double factor) {
    FILE *file = fopen(path, "r");
    char line[512];
    double number = 0;
    bool found = false;
    if (!file) return ABSENT;
    while (!found && fgets(line, sizeof line, file)) found = sscanf(line, format, &number) == 1;
    fclose(file);
    errno = ENODATA;
    return found ? (ns_t)(number * factor) : ABSENT;
}
static ns_t uptime(void) { return number_in("/proc/uptime", "%lf", 1e9); }
static ns_t timer_list(void) { return number_in("/proc/timer_list", "now at %lf nsecs", 1); }
static ns_t rtc_sysfs(void) { return number_in("/sys/class/rtc/rtc0/since_epoch", "%lf", 1e9); }
static ns_t sched_debug(void) { return number_in("/sys/kernel/debug/sched/debug", "ktime : %lf", 1e6); }
static ns_t info(void) {
    struct sysinfo i;
    return sysinfo(&i) ? ABSENT : i.uptime * (ns_t)SECOND_NS;
}
static ns_t times_result(void) {
    struct tms t;
    return ticks(times(&t));
}
static ns_t timer_left(void) {
    // A timer that was set once and shows what is left of a thousand seconds.
    static int timer = -1;
    struct itimerspec s = {.it_value = {.tv_sec = 1000}};
    if (timer < 0) {
        timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        timerfd_settime(timer, 0, &s, NULL);
    }
    return timerfd_gettime(timer, &s) ? ABSENT : -of_spec(0, s.it_value);
}
static ns_t cpu_of_times(void) {
    struct tms t;
    times(&t);
    return ticks(t.tms_utime + t.tms_stime);
}
static ns_t usage(int who) {
    struct rusage u;
    return getrusage(who, &u) ? ABSENT : of_val(0, u.ru_utime) + of_val(0, u.ru_stime);
}
static ns_t usage_process(void) { return usage(RUSAGE_SELF); }
static ns_t usage_thread(void) { return usage(RUSAGE_THREAD); }
static ns_t clock_result(void) { return clock() * (SECOND_NS / CLOCKS_PER_SEC); }
static ns_t schedstat(void) { return number_in("/proc/self/schedstat", "%lf", 1); }
static ns_t sched(void) { return number_in("/proc/self/sched", "se.sum_exec_runtime : %lf", 1e6); }
static ns_t stat_cpu(void) {
    FILE *file = fopen("/proc/self/stat", "r");
    long user = -1, kernel = 0;
    if (!file) return ABSENT;
    if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &kernel) != 2) user = -1;
    fclose(file);
    return ticks(user < 0 ? -1 : user + kernel);
}
static ns_t perf(uint64_t event) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = event};
    static int counters[8];
    int64_t count = ABSENT;
    if (!counters[event]) counters[event] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (counters[event] < 0) return errno = ENOSYS, ABSENT;
    return read(counters[event], &count, sizeof count) == sizeof count ? count : ABSENT;
}
static ns_t perf_cpu(void) { return perf(PERF_COUNT_SW_CPU_CLOCK); }
static ns_t perf_task(void) { return perf(PERF_COUNT_SW_TASK_CLOCK); }

// Instructions that read a counter; one that is not there, or is not allowed, faults.
static sigjmp_buf fault;
static void faulted(int signal) { siglongjmp(fault, signal); }
static ns_t instruction(uint64_t (*run)(void)) {
    signal(SIGSEGV, faulted);
    signal(SIGILL, faulted);
    if (sigsetjmp(fault, 1)) return errno = EPERM, ABSENT;
    return (ns_t)run();
}
#define INSTRUCTION(name, bytes, index, clobbers...)                                         \
    static uint64_t run_##name(void) {                                                       \
        uint32_t low, high;                                                                  \
        __asm__ volatile(bytes : "=a"(low), "=d"(high) : "c"(index) : clobbers);             \
        return (uint64_t)high << 32 | low;                                                   \
    }                                                                                        \
    static ns_t name(void) { return instruction(run_##name); }
static uint64_t run_rdtscp(void) {
    uint32_t low, high, core;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(core));
    return (uint64_t)high << 32 | low;
}
static ns_t rdtscp(void) { return instruction(run_rdtscp); }
INSTRUCTION(rdtsc, "rdtsc", 0)
INSTRUCTION(rdpmc, "rdpmc", 1 << 30 | 2)
INSTRUCTION(rdpru, ".byte 0x0f, 0x01, 0xfd", 0)

typedef struct {
    const char *source, *kind;
    reference_t of;
    ns_t granularity;
    ns_t (*read)(void);
} clock_source_t;

#define BOTH(name, kind, of, granularity) \
    {"clock_gettime " #name, kind, of, granularity, library_##name}, {"clock_gettime " #name " (system call)", kind, of, granularity, call_##name}

static const clock_source_t SOURCES[] = {
    BOTH(REALTIME, "date", REALTIME, 0),
    BOTH(REALTIME_COARSE, "date", REALTIME, COARSE_NS),
    BOTH(REALTIME_ALARM, "date", REALTIME, 0),
    BOTH(TAI, "elapsed", REALTIME, 0),
    BOTH(MONOTONIC, "date", MONOTONIC, 0),
    BOTH(MONOTONIC_COARSE, "date", MONOTONIC, COARSE_NS),
    BOTH(MONOTONIC_RAW, "elapsed", MONOTONIC, 1000000),
    BOTH(BOOTTIME, "elapsed", MONOTONIC, 0),
    BOTH(BOOTTIME_ALARM, "elapsed", MONOTONIC, 0),
    {"gettimeofday", "date", REALTIME, 1000, library_gettimeofday},
    {"gettimeofday (system call)", "date", REALTIME, 1000, call_gettimeofday},
    {"time", "date", REALTIME, WHOLE_NS, library_time},
    {"time (system call)", "date", REALTIME, WHOLE_NS, call_time},
    {"adjtimex", "date", REALTIME, 1000, adjusted},
    {"/dev/rtc0", "date", REALTIME, WHOLE_NS, rtc},
    {"/sys/class/rtc", "date", REALTIME, WHOLE_NS, rtc_sysfs},
    {"/proc/stat btime", "date", REALTIME, WHOLE_NS, boot_and_uptime},
    {"/proc/uptime", "elapsed", MONOTONIC, COARSE_NS, uptime},
    {"/proc/timer_list", "elapsed", MONOTONIC, 0, timer_list},
    {"/sys/kernel/debug/sched", "elapsed", MONOTONIC, COARSE_NS, sched_debug},
    {"sysinfo", "elapsed", MONOTONIC, WHOLE_NS, info},
    {"times", "elapsed", MONOTONIC, COARSE_NS, times_result},
    {"timerfd_gettime", "elapsed", MONOTONIC, 0, timer_left},
    {"rdtsc", "ticks", MONOTONIC, 0, rdtsc},
    {"rdtscp", "ticks", MONOTONIC, 0, rdtscp},
    {"rdpmc", "ticks", MONOTONIC, 0, rdpmc},
    {"rdpru", "ticks", MONOTONIC, 0, rdpru},
    BOTH(PROCESS_CPUTIME_ID, "cpu", MONOTONIC, COARSE_NS),
    BOTH(THREAD_CPUTIME_ID, "cpu", MONOTONIC, COARSE_NS),
    {"times, CPU", "cpu", MONOTONIC, COARSE_NS, cpu_of_times},
    {"getrusage process", "cpu", MONOTONIC, COARSE_NS, usage_process},
    {"getrusage thread", "cpu", MONOTONIC, COARSE_NS, usage_thread},
    {"clock", "cpu", MONOTONIC, COARSE_NS, clock_result},
    {"/proc/self/stat, CPU", "cpu", MONOTONIC, COARSE_NS, stat_cpu},
    {"/proc/self/schedstat", "cpu", MONOTONIC, COARSE_NS, schedstat},
    {"/proc/self/sched", "cpu", MONOTONIC, COARSE_NS, sched},
    {"perf cpu-clock", "cpu", MONOTONIC, COARSE_NS, perf_cpu},
    {"perf task-clock", "cpu", MONOTONIC, COARSE_NS, perf_task},
};
enum { COUNT = sizeof SOURCES / sizeof *SOURCES };

static const ns_t SPIN_NS = 200000000;

void clocks(bool begin) {
    static reading_t readings[COUNT][2];
    for (int i = 0; i < COUNT; i++) {
        const clock_source_t *source = &SOURCES[i];
        if (strcmp(source->kind, "cpu") != 0) {
            readings[i][begin ? 0 : 1] = take(source->of, source->read);
            if (!begin) report(source->source, source->kind, source->granularity, readings[i], 2);
        }
    }
    if (begin) return;
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < COUNT; i++) {
            if (strcmp(SOURCES[i].kind, "cpu") == 0) readings[i][half] = take(MONOTONIC, SOURCES[i].read);
        }
        if (half == 0) spin(SPIN_NS);
    }
    for (int i = 0; i < COUNT; i++) {
        if (strcmp(SOURCES[i].kind, "cpu") == 0) report(SOURCES[i].source, "cpu", SOURCES[i].granularity, readings[i], 2);
    }
}

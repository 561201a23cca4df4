/* What asking for the time costs, and what a program notices of what interrupts it.
 *
 *     calls ask BATCHES     prints the nanoseconds of a gettimeofday(2) by the C library, and of one by the kernel, for each
 *                           batch: on a host with other work, most batches are not interrupted
 *     calls watch SECONDS   reads the clock all the time, and prints how often and for how long, in nanoseconds, it was
 *                           kept from that: the sum of all readings that took thrice as long as most, beyond that time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 20001, BATCH = 500 };

static long long now_ns(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void by_library(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
}

static void by_kernel(void) {
    struct timeval now;
    syscall(SYS_gettimeofday, &now, NULL);
}

static double each_ns(void (*ask)(void)) {
    long long begin = now_ns();
    for (int number = 0; number < BATCH; number++)
        ask();
    return (double)(now_ns() - begin) / BATCH;
}

static int by_size(const void *one, const void *other) {
    long long a = *(const long long *)one, b = *(const long long *)other;
    return (a > b) - (a < b);
}

static void watch(double seconds) {
    static long long first[FIRST];
    long long last = now_ns(), end = last + (long long)(seconds * 1e9), lost = 0;
    for (int number = 0; number < FIRST; number++) {
        long long now = now_ns();
        first[number] = now - last;
        last = now;
    }
    qsort(first, FIRST, sizeof *first, by_size);
    long long usual = first[FIRST / 2];
    long times = 0, all = 0;
    while (last < end) {
        long long now = now_ns();
        if (now - last > 3 * usual) {
            times++;
            lost += now - last - usual;
        }
        all++;
        last = now;
    }
    printf("%ld %lld %ld %lld\n", times, lost, all, usual);
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    if (strcmp(arguments[1], "watch") == 0)
        watch(atof(arguments[2]));
    else
        for (int batch = 0; batch < atoi(arguments[2]); batch++)
            printf("%.1f %.1f\n", each_ns(by_library), each_ns(by_kernel));
}

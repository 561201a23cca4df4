// what-time-is-it: asks everything that a program can learn the time from, and prints what it said, one JSON object a
// line, beside the raw system call clock_gettime(2). It judges nothing: tests/host/clock/test_time_sources.py does.
//
//     what-time-is-it WAIT_MS SPAN_S [DIRECTORY ...]
//
// Clocks are read twice, SPAN_S seconds apart; everything that waits waits for WAIT_MS. Files are made in each DIRECTORY.
// Without any, what would change the machine (its log, its process accounting) is left out too.
#include "report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

ns_t reference(reference_t of) {
    struct timespec now;
    syscall(SYS_clock_gettime, of == REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
    return now.tv_sec * (ns_t)SECOND_NS + now.tv_nsec;
}

reading_t take(reference_t of, ns_t (*read)(void)) {
    reading_t reading = {.before = reference(of)};
    errno = 0;
    reading.value = read();
    int error = errno;
    reading.after = reference(of);
    errno = error;
    return reading;
}

void report(const char *source, const char *kind, ns_t granularity, const reading_t *readings, int count) {
    for (int i = 0; i < count; i++) {
        if (readings[i].value == ABSENT) {
            absent(source);
            return;
        }
    }
    printf("{\"source\": \"%s\", \"kind\": \"%s\", \"granularity_ns\": %ld, \"readings\": [", source, kind, granularity);
    for (int i = 0; i < count; i++) {
        printf("%s[%ld, %ld, %ld]", i ? ", " : "", readings[i].before, readings[i].value, readings[i].after);
    }
    puts("]}");
}

void absent(const char *source) {
    printf("{\"source\": \"%s\", \"kind\": \"absent\", \"why\": \"%s\"}\n", source, strerror(errno));
}

void spin(ns_t span) {
    for (ns_t end = reference(MONOTONIC) + span; reference(MONOTONIC) < end;) {
    }
}

static void awake(int signal) { (void)signal; }

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: what-time-is-it WAIT_MS SPAN_S [DIRECTORY ...]\n");
        return 2;
    }
    unsigned span_s = (unsigned)atoi(argv[2]);
    fresh_output();
    clocks(true);
    signal(SIGALRM, awake);
    reading_t alarmed = {.before = span_s * (ns_t)SECOND_NS};
    ns_t begin = reference(MONOTONIC);
    alarm(span_s);
    pause();
    alarmed.value = reference(MONOTONIC) - begin;
    report("alarm", "wait", 0, &alarmed, 1);
    clocks(false);
    waits(atoi(argv[1]) * (ns_t)1000000);
    stamps(argv + 3);
    return 0;
}

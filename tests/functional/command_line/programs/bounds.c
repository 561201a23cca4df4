/* A program that spins on the clock, one that reads the time-stamp counter, one that has 2,000 children at once. */
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void spin(void) {
    long begin = now_ms(), end = begin;
    while (end < begin + 50)
        end = now_ms();
    printf("spun for %s\n", end < begin + 150 ? "50 ms" : "longer");
}

static void count_ticks(void) {
    unsigned long long begin = __rdtsc();
    sleep(1000);
    unsigned long long rate = (__rdtsc() - begin) / 1000;
    printf("ticks in a second: %s\n", rate > 1000000000 && rate < 7000000000 ? "as on a processor" : "wrong");
}

static void fork_many(void) {
    int ends[2], ended = 0;
    char byte;
    if (pipe(ends))
        return;
    for (int number = 0; number < 2000; number++) {
        pid_t child = fork();
        if (child < 0)
            perror("fork");
        if (child == 0) {
            close(ends[1]);
            _exit(read(ends[0], &byte, 1)); /* until its parent has closed the pipe */
        }
    }
    close(ends[1]);
    for (int status; wait(&status) > 0;)
        ended += status == 0;
    printf("%d children\n", ended);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    spin();
    count_ticks();
    fork_many();
}

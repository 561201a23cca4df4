/* What a timer costs a program that computes: prints, for each turn, how often a second a thread beside it wakes up,
 * and the nanoseconds that the same calculation took.
 *
 *     timers TURN_US ROUNDS RATE...     a turn of each rate in each round, which would take so long without its timer
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const long long SECOND_NS = 1000000000;

static volatile int going, begun;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* Ackermann's function, as in the paper: calls and additions, and a stack that stays in the cache. */
static unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0)
        return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

static long long calculate(long long times) {
    long long begin = now_ns();
    volatile unsigned sum = 0;
    for (long long number = 0; number < times; number++)
        sum += ackermann(2, 6);
    return now_ns() - begin;
}

static void *wake_up(void *rate) {
    long long due = now_ns();
    for (begun = 1; going;) {
        due += SECOND_NS / *(long *)rate;
        struct timespec until = {due / SECOND_NS, due % SECOND_NS};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 4)
        return 2;
    long long turn_ns = atoll(arguments[1]) * 1000;
    long long times = 10, took;
    while ((took = calculate(times)) < turn_ns / 2)
        times *= 2;
    times = times * turn_ns / took;
    for (int round = 0; round < atoi(arguments[2]); round++)
        for (int turn = 3; turn < count; turn++) {
            long rate = atol(arguments[turn]);
            pthread_t timer;
            going = 1;
            begun = rate == 0;
            if (rate && pthread_create(&timer, NULL, wake_up, &rate))
                return 1;
            /* A new thread waits for one that computes to be preempted. */
            while (!begun)
                nanosleep(&(struct timespec){0, 100000}, NULL);
            printf("%ld %lld\n", rate, calculate(times));
            going = 0;
            if (rate)
                pthread_join(timer, NULL);
        }
}

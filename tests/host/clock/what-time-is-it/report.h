// What the parts of what-time-is-it share: the reference clocks, and the lines that are printed.
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef int64_t ns_t;

// Much of what a kernel knows of the time is from its latest tick, a hundredth of a second ago at most, and whatever that
// tick was late: as long as the host may take a core away, of which a TDF of a third makes three times as much.
enum { TICK_NS = 10000000, COARSE_NS = 20 * TICK_NS, SECOND_NS = 1000000000, WHOLE_NS = SECOND_NS + COARSE_NS };

// What a value is compared with: the raw system call of one of two clocks, read before and after it.
typedef enum { MONOTONIC, REALTIME } reference_t;
ns_t reference(reference_t of);

typedef struct {
    ns_t before, value, after;
} reading_t;

// A source that does not exist here says so with errno.
enum { ABSENT = INT64_MIN };

// Reads a source; `read` returns nanoseconds, or ABSENT.
reading_t take(reference_t of, ns_t (*read)(void));

// Prints one line. `kind`: "date" (the value lies in its bracket), "elapsed" (the difference of two values does),
// "cpu" (as elapsed, of a spinning program), "ticks" (the difference is a multiple of the elapsed time),
// "wait" (a value is how long it took, `before` how long was asked for).
void report(const char *source, const char *kind, ns_t granularity, const reading_t *readings, int count);
void absent(const char *source);

// Uses the CPU for `span` of CLOCK_MONOTONIC.
void spin(ns_t span);

// The three kinds of sources. Clocks are read at two instants, the begin and the end; files are made in `directories`,
// a list that ends with NULL.
void clocks(bool begin);
void waits(ns_t asked);
void stamps(char **directories);
// The file behind standard output, before anything is written to it.
void fresh_output(void);

/* Faults of pages on purpose. `touch`: writes to new pages and reads them for ever. `errors`: prints, of accesses that are
 * not allowed, whether the processor said that they wrote, and whether the address is the one; then a sum of what was copied.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGE = 4096, PAGES = 64, WROTE = 2 };

static sigjmp_buf back;
static volatile long error, address;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number;
    error = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR];
    address = (long)info->si_addr;
    siglongjmp(back, 1);
}

static char *pages(int rights) {
    return mmap(NULL, PAGES * PAGE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void report(const char *name, volatile char *at, int store) {
    if (sigsetjmp(back, 1) == 0) {
        if (store)
            *at = 1;
        else
            (void)*at;
        printf("%s allowed\n", name);
    } else {
        printf("%s %s %s\n", name, error & WROTE ? "wrote" : "read", address == (long)at ? "there" : "elsewhere");
    }
}

static long touch(void) {
    char *to = pages(PROT_READ | PROT_WRITE), *from = pages(PROT_READ | PROT_WRITE);
    long sum = 0;
    for (int page = 0; page < PAGES; page++)
        from[page * PAGE + page] = page;
    memcpy(to, from, PAGES * PAGE);
    for (int page = 0; page < PAGES; page++)
        sum += to[page * PAGE + page];
    munmap(from, PAGES * PAGE);
    munmap(to, PAGES * PAGE);
    return sum;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "touch") == 0)
        for (;;)
            touch();
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    char *none = pages(PROT_NONE), *shown = pages(PROT_READ);
    report("load of none", none + 8, 0);
    report("store to none", none + 8, 1);
    report("load of read-only", shown + 16, 0);
    report("store to read-only", shown + 16, 1);
    report("store to read-only, new", shown + 2 * PAGE, 1);
    report("load of nothing", (char *)24, 0);
    report("store to nothing", (char *)24, 1);
    printf("sum %ld\n", touch());
    return 0;
}

/* What the kernel costs a program: prints a name and nanoseconds for each operation, of the fastest of several batches.
 *
 *     overhead NAME=FILE...     files whose opening, first 4 KiB and closing are measured too, under these names
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 7, PAGES = 256, PAGE_BYTES = 4096 };

static const char *file;
static int there[2], back[2];

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static void fail_if(int failed, const char *what) {
    if (failed) {
        perror(what);
        exit(1);
    }
}

static void ask_parent(void) { syscall(SYS_getppid); }

static void fork_and_exec(void) {
    pid_t child = fork();
    fail_if(child < 0, "fork");
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}

static void fault_pages(void) {
    char *pages = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fail_if(pages == MAP_FAILED, "mmap");
    for (size_t page = 0; page < PAGES; page++)
        pages[page * PAGE_BYTES] = 1;
    munmap(pages, PAGES * PAGE_BYTES);
}

static void ping_pong(void) {
    char byte = 0;
    fail_if(write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1, "pipe");
}

static void read_file(void) {
    static char bytes[PAGE_BYTES];
    int fd = open(file, O_RDONLY);
    fail_if(fd < 0 || read(fd, bytes, sizeof bytes) < 0, file);
    close(fd);
}

static void measure(const char *name, void (*operation)(void), int count, int each) {
    double best = 0;
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = now_ns();
        for (int number = 0; number < count; number++)
            operation();
        double took = (now_ns() - begin) / count / each;
        if (batch == 0 || took < best)
            best = took;
    }
    printf("%s %.0f\n", name, best);
}

int main(int count, char **arguments) {
    measure("getppid", ask_parent, 5000, 1);
    measure("fork+exec", fork_and_exec, 30, 1);
    measure("page-fault", fault_pages, 10, PAGES);
    fail_if(pipe(there) || pipe(back), "pipe");
    pid_t child = fork();
    fail_if(child < 0, "fork");
    if (child == 0) {
        close(there[1]);
        for (char byte; read(there[0], &byte, 1) == 1;)
            fail_if(write(back[1], &byte, 1) != 1, "pipe");
        _exit(0);
    }
    measure("ping-pong", ping_pong, 1000, 1);
    close(there[1]);
    waitpid(child, NULL, 0);
    for (int number = 1; number < count; number++) {
        file = strchr(arguments[number], '=');
        fail_if(file == NULL, "NAME=FILE");
        printf("%.*s-", (int)(file++ - arguments[number]), arguments[number]);
        measure("file", read_file, 1000, 1);
    }
}

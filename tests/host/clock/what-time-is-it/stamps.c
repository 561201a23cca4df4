// Stamps: instants that the kernel writes down when something happens.
#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acct.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static ns_t of_spec(struct timespec t) { return t.tv_sec * (ns_t)SECOND_NS + t.tv_nsec; }
static ns_t of_val(struct timeval t) { return t.tv_sec * (ns_t)SECOND_NS + t.tv_usec * 1000; }
static ns_t seconds(time_t t) { return t * (ns_t)SECOND_NS; }

// Files in a directory, by each of the three stamps and by each way in which they come about.
static const char *directory;
static char path[256];
static ns_t file_stamp(int which) {
    struct stat s;
    if (stat(path, &s) != 0) return ABSENT;
    return of_spec(which == 'a' ? s.st_atim : which == 'm' ? s.st_mtim : s.st_ctim);
}
static ns_t written(void) {
    snprintf(path, sizeof path, "%s/what-time-is-it", directory);
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (file < 0 || write(file, "x", 1) != 1) return ABSENT;
    close(file);
    return file_stamp('m');
}
static ns_t changed(void) { return chmod(path, 0644) ? ABSENT : file_stamp('c'); }
static ns_t touched(void) {
    struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    return utimensat(AT_FDCWD, path, now, 0) ? ABSENT : file_stamp('m');
}
static ns_t born(void) {
    struct statx s;
    if (statx(AT_FDCWD, path, 0, STATX_BTIME, &s) != 0 || !(s.stx_mask & STATX_BTIME)) return errno = ENOTSUP, ABSENT;
    return s.stx_btime.tv_sec * (ns_t)SECOND_NS + s.stx_btime.tv_nsec;
}
static ns_t directory_changed(void) {
    unlink(path);
    strcpy(path, directory);
    return file_stamp('m');
}
// Standard output is a file that Dilaton has opened for us.
static ns_t output_written(void) {
    struct stat s;
    puts("{\"kind\": \"mark\"}");
    fflush(stdout);
    return fstat(1, &s) ? ABSENT : of_spec(s.st_mtim);
}
static ns_t output_changed(void) {
    struct stat s;
    return fstat(1, &s) ? ABSENT : of_spec(s.st_ctim);
}
static ns_t pipe_written(void) {
    struct stat s;
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1 || fstat(ends[0], &s) != 0) return ABSENT;
    return of_spec(s.st_mtim);
}
static ns_t in_proc(void) {
    char name[32];
    struct stat s;
    pid_t child = fork();
    if (child == 0) pause();
    snprintf(name, sizeof name, "/proc/%d", child);
    int failed = stat(name, &s);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return failed ? ABSENT : of_spec(s.st_ctim);
}
static ns_t memory_file(void) {
    struct stat s;
    int file = memfd_create("what-time-is-it", 0);
    return fstat(file, &s) ? ABSENT : of_spec(s.st_ctim);
}

// Packets, over the loopback interface.
static ns_t received(int option, int value, int type) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof to;
    char byte, control[256];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ns_t stamp = ABSENT;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(s, (struct sockaddr *)&to, length) || getsockname(s, (struct sockaddr *)&to, &length)) goto out;
    if (option && setsockopt(s, SOL_SOCKET, option, &value, sizeof value)) goto out;
    if (sendto(s, "x", 1, 0, (struct sockaddr *)&to, length) != 1 || recvmsg(s, &message, 0) != 1) goto out;
    if (!option) {
        struct timespec t;
        stamp = ioctl(s, SIOCGSTAMPNS, &t) ? ABSENT : of_spec(t);
        goto out;
    }
    errno = ENODATA;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_type == type)
            stamp = type == SO_TIMESTAMP ? of_val(*(struct timeval *)CMSG_DATA(c)) : of_spec(*(struct timespec *)CMSG_DATA(c));
    }
out:
    close(s);
    return stamp;
}
static ns_t timestamp(void) { return received(SO_TIMESTAMP, 1, SO_TIMESTAMP); }
static ns_t timestampns(void) { return received(SO_TIMESTAMPNS, 1, SO_TIMESTAMPNS); }
static ns_t timestamping(void) {
    return received(SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, SO_TIMESTAMPING);
}
static ns_t siocgstamp(void) {
    // The first question switches the stamps on, for packets that come later.
    received(0, 0, 0);
    return received(0, 0, 0);
}
static ns_t captured(void) {
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("lo")};
    struct tpacket_req shape = {.tp_block_size = 4096, .tp_block_nr = 1, .tp_frame_size = 2048, .tp_frame_nr = 2};
    int version = TPACKET_V2, s = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    ns_t stamp = ABSENT;
    if (s < 0) return ABSENT;
    if (!setsockopt(s, SOL_PACKET, PACKET_VERSION, &version, sizeof version) &&
        !setsockopt(s, SOL_PACKET, PACKET_RX_RING, &shape, sizeof shape) && !bind(s, (struct sockaddr *)&at, sizeof at)) {
        volatile struct tpacket2_hdr *frame = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0);
        received(SO_TIMESTAMP, 1, SO_TIMESTAMP);
        errno = ENODATA;
        if (frame->tp_status & TP_STATUS_USER) stamp = frame->tp_sec * (ns_t)SECOND_NS + frame->tp_nsec;
    }
    close(s);
    return stamp;
}

// System V objects, in seconds.
static ns_t shared_memory(void) {
    struct shmid_ds s;
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    int failed = shmctl(id, IPC_STAT, &s);
    shmctl(id, IPC_RMID, NULL);
    return failed ? ABSENT : seconds(s.shm_ctime);
}
static ns_t semaphores(void) {
    struct semid_ds s;
    int id = semget(IPC_PRIVATE, 1, 0600);
    int failed = semctl(id, 0, IPC_STAT, &s);
    semctl(id, 0, IPC_RMID);
    return failed ? ABSENT : seconds(s.sem_ctime);
}
static ns_t messages(void) {
    struct { long type; char text[1]; } message = {1, "x"};
    struct msqid_ds s;
    int id = msgget(IPC_PRIVATE, 0600);
    msgsnd(id, &message, 1, 0);
    int failed = msgctl(id, IPC_STAT, &s);
    msgctl(id, IPC_RMID, NULL);
    return failed ? ABSENT : seconds(s.msg_stime);
}

// The start of a new process, by /proc (in ticks since boot) and by process accounting (in seconds).
static ns_t started(void) {
    long ticks = -1;
    int ends[2];
    char name[32];
    if (pipe(ends) != 0) return ABSENT;
    pid_t child = fork();
    if (child == 0) pause();
    snprintf(name, sizeof name, "/proc/%d/stat", child);
    FILE *file = fopen(name, "r");
    if (file) {
        if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*d %*d %ld", &ticks) != 1) ticks = -1;
        fclose(file);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct timespec boot, monotonic;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    ns_t slept = of_spec(boot) - of_spec(monotonic);
    return ticks < 0 ? ABSENT : ticks * (SECOND_NS / sysconf(_SC_CLK_TCK)) - slept / 1000000 * 1000000;
}
static ns_t accounted(void) {
    union {
        struct acct first;
        struct acct_v3 third;
    } entry;
    ns_t stamp = ABSENT;
    char name[] = "/tmp/what-time-is-it.XXXXXX";
    int file = mkstemp(name);
    if (acct(name) != 0) {
        unlink(name);
        return ABSENT;
    }
    if (fork() == 0) _exit(0);
    wait(NULL);
    acct(NULL);
    if (read(file, &entry, sizeof entry) >= (ssize_t)sizeof entry.third) {
        bool third = entry.third.ac_version == 3;
        stamp = seconds(third ? entry.third.ac_btime : entry.first.ac_btime);
    }
    unlink(name);
    return stamp;
}
static ns_t logged(void) {
    char line[512];
    unsigned long us;
    ns_t stamp = ABSENT;
    // The device of the kernel's log, which /dev may not show.
    const char *device = "/tmp/what-time-is-it.kmsg";
    mknod(device, S_IFCHR | 0600, makedev(1, 11));
    int log = open(device, O_RDWR | O_NONBLOCK);
    unlink(device);
    if (log < 0) return ABSENT;
    lseek(log, 0, SEEK_END);
    if (write(log, "what-time-is-it\n", 16) == 16 && read(log, line, sizeof line) > 0 &&
        sscanf(line, "%*u,%*u,%lu", &us) == 1)
        stamp = (ns_t)us * 1000;
    close(log);
    return stamp;
}

static void stamp(const char *source, reference_t of, ns_t granularity, ns_t (*make)(void)) {
    reading_t reading = take(of, make);
    report(source, "date", granularity, &reading, 1);
}

static void files(const char *where) {
    char source[64];
    directory = where;
    const struct {
        const char *what;
        ns_t (*make)(void);
    } WAYS[] = {
        {"written", written}, {"born", born}, {"changed", changed}, {"touched", touched}, {"directory", directory_changed},
    };
    for (unsigned i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        snprintf(source, sizeof source, "file in %s, %s", where, WAYS[i].what);
        stamp(source, REALTIME, COARSE_NS, WAYS[i].make);
    }
}

static ns_t output_modified(void) {
    struct stat s;
    return fstat(1, &s) ? ABSENT : of_spec(s.st_mtim);
}

// It was opened before the program was started, in the second before perhaps.
enum { OPENED_NS = WHOLE_NS + SECOND_NS / 2 };

void fresh_output(void) {
    stamp("standard output, opened", REALTIME, OPENED_NS, output_modified);
    stamp("standard output, created", REALTIME, OPENED_NS, output_changed);
}

void stamps(char **directories) {
    bool harmless = !*directories;
    for (; *directories; directories++) files(*directories);
    stamp("standard output, written", REALTIME, WHOLE_NS, output_written);
    stamp("standard output, changed", REALTIME, WHOLE_NS, output_changed);
    stamp("pipe, written", REALTIME, COARSE_NS, pipe_written);
    stamp("/proc/PID", REALTIME, COARSE_NS, in_proc);
    stamp("memfd", REALTIME, COARSE_NS, memory_file);
    stamp("SO_TIMESTAMP", REALTIME, 1000, timestamp);
    stamp("SO_TIMESTAMPNS", REALTIME, 0, timestampns);
    stamp("SO_TIMESTAMPING", REALTIME, 0, timestamping);
    stamp("SIOCGSTAMPNS", REALTIME, 0, siocgstamp);
    stamp("PACKET_RX_RING", REALTIME, 0, captured);
    stamp("shmctl", REALTIME, WHOLE_NS, shared_memory);
    stamp("semctl", REALTIME, WHOLE_NS, semaphores);
    stamp("msgctl", REALTIME, WHOLE_NS, messages);
    stamp("/proc/PID/stat, start", MONOTONIC, COARSE_NS, started);
    if (harmless) return;
    stamp("acct", REALTIME, WHOLE_NS, accounted);
    // The log's clock does not begin with CLOCK_MONOTONIC: of two entries the difference counts.
    reading_t log[2] = {take(MONOTONIC, logged)};
    spin(50 * TICK_NS);
    log[1] = take(MONOTONIC, logged);
    report("/dev/kmsg", "elapsed", COARSE_NS, log, 2);
}

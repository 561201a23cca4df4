/* So many processes, each with namespaces of its own as a node has, and a pair of veth(4) to the one before: prints what
 * /proc/meminfo says before and after, and the seconds between, which in a guest on the work drive are CPU time.
 *
 *     cc -O2 -static -o nodes benches/nodes.c && ./nodes NUMBER
 */
#define _GNU_SOURCE
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A request of rtnetlink(7), as it grows. */
struct request {
    struct nlmsghdr header;
    struct ifinfomsg link;
    char attributes[400];
};

static void print_memory(void) {
    char line[200];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file)) printf("%s", line);
    if (file) fclose(file);
    printf("end\n");
}

/* Adds an attribute, or the begin of one that has others in it. */
static struct rtattr *add(struct request *to, int type, const void *value, size_t bytes) {
    struct rtattr *added = (struct rtattr *)((char *)to + NLMSG_ALIGN(to->header.nlmsg_len));
    added->rta_type = type;
    added->rta_len = RTA_LENGTH(bytes);
    if (bytes) memcpy(RTA_DATA(added), value, bytes);
    to->header.nlmsg_len = NLMSG_ALIGN(to->header.nlmsg_len) + RTA_LENGTH(bytes);
    return added;
}

static void end(struct request *to, struct rtattr *begun) {
    begun->rta_len = (char *)to + to->header.nlmsg_len - (char *)begun;
}

/* Makes a pair of veth(4), an end in the network of each of the processes: 0, or why not. */
static int link_nodes(int netlink, int one, int other) {
    struct request request = {{sizeof request.header + sizeof request.link, RTM_NEWLINK,
                               NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, 0, 0}, {0}, {0}};
    struct { struct nlmsghdr header; struct nlmsgerr error; char rest[600]; } answer;
    add(&request, IFLA_IFNAME, "right", sizeof "right");
    add(&request, IFLA_NET_NS_PID, &one, sizeof one);
    struct rtattr *info = add(&request, IFLA_LINKINFO, NULL, 0);
    add(&request, IFLA_INFO_KIND, "veth", sizeof "veth");
    struct rtattr *data = add(&request, IFLA_INFO_DATA, NULL, 0);
    struct ifinfomsg none = {0};
    struct rtattr *peer = add(&request, VETH_INFO_PEER, &none, sizeof none);
    add(&request, IFLA_IFNAME, "left", sizeof "left");
    add(&request, IFLA_NET_NS_PID, &other, sizeof other);
    end(&request, peer);
    end(&request, data);
    end(&request, info);
    if (send(netlink, &request, request.header.nlmsg_len, 0) < 0) return -1;
    if (recv(netlink, &answer, sizeof answer, 0) < 0 || answer.header.nlmsg_type != NLMSG_ERROR) return -1;
    return answer.error.error;
}

int main(int count, char **words) {
    int nodes = count > 1 ? atoi(words[1]) : 100, ready[2], before = 0, netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    struct timespec begun, done;
    if (pipe(ready)) return 1;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    print_memory();
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int node = 0; node < nodes; node++) {
        int process = fork();
        if (process == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC)) _exit(1);
            if (write(ready[1], "", 1) == 1) pause();
            _exit(1);
        }
        char byte;
        if (read(ready[0], &byte, 1) != 1) return 1;
        if (before && link_nodes(netlink, before, process)) return 2;
        before = process;
    }
    clock_gettime(CLOCK_MONOTONIC, &done);
    print_memory();
    printf("%.3f\n", done.tv_sec - begun.tv_sec + (done.tv_nsec - begun.tv_nsec) / 1e9);
    return 0;
}

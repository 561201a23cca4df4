/* Datagrams that come as fast as their link lets them, and when the kernel of the node received each.
 *
 *     flood send HOST COUNT BYTES     sends them at once, each beginning with its number
 *     flood receive COUNT             prints the date, in ns, at which each of them came
 */
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT "9"
#define BUFFER_BYTES (1 << 26)

static int fail(const char *what) {
    perror(what);
    return 1;
}

static int send_all(const char *host, uint32_t count, size_t bytes) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *to;
    char datagram[65536] = {0};
    int buffer = BUFFER_BYTES, fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (getaddrinfo(host, PORT, &hints, &to) != 0 || bytes > sizeof datagram) return fail(host);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer) != 0) return fail("SO_SNDBUFFORCE");
    for (uint32_t number = 0; number < count; number++) {
        memcpy(datagram, &number, sizeof number);
        if (sendto(fd, datagram, bytes, 0, to->ai_addr, to->ai_addrlen) < 0) return fail("sendto");
    }
    return 0;
}

static int receive_all(uint32_t count) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE}, *from;
    uint64_t *came_ns = calloc(count, sizeof *came_ns);
    int one = 1, buffer = BUFFER_BYTES, fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (getaddrinfo(NULL, PORT, &hints, &from) != 0) return fail("getaddrinfo");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0) return fail("SO_RCVBUFFORCE");
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one) != 0) return fail("SO_TIMESTAMPNS");
    if (bind(fd, from->ai_addr, from->ai_addrlen) != 0) return fail("bind");
    puts("ready");
    fflush(stdout);
    for (uint32_t received = 0; received < count; received++) {
        char datagram[65536], control[256];
        struct iovec part = {datagram, sizeof datagram};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        struct timespec at;
        uint32_t number;
        if (recvmsg(fd, &message, 0) < (ssize_t)sizeof number || CMSG_FIRSTHDR(&message) == NULL) return fail("recvmsg");
        memcpy(&number, datagram, sizeof number);
        memcpy(&at, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof at);
        if (number < count) came_ns[number] = at.tv_sec * UINT64_C(1000000000) + at.tv_nsec;
    }
    for (uint32_t number = 0; number < count; number++) printf("%lu\n", (unsigned long)came_ns[number]);
    return 0;
}

int main(int count, char **words) {
    if (count == 5 && strcmp(words[1], "send") == 0) return send_all(words[2], atoi(words[3]), atoi(words[4]));
    if (count == 3 && strcmp(words[1], "receive") == 0) return receive_all(atoi(words[2]));
    fprintf(stderr, "usage: flood send HOST COUNT BYTES | flood receive COUNT\n");
    return 2;
}

// Datagrams: udp serve PORT | udp ping HOST PORT COUNT INTERVAL_MS | udp sink PORT | udp send HOST PORT COUNT BYTES INTERVAL_US
//
// `serve` answers each datagram, `sink` counts them until SIGTERM. `ping` sends one each interval and waits for its answer;
// one that does not come is a failure. Both senders keep to instants, however late they are.
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define BEGIN_S 1

static char buffer[65536];
static volatile sig_atomic_t ended;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void end(int signal) {
    (void)signal;
    ended = 1;
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_until(long long ns) {
    struct timespec instant = {ns / NS_PER_S, ns % NS_PER_S};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &instant, 0);
}

static void connect_to(int endpoint, const char *host, const char *port) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found;
    if (getaddrinfo(host, port, &hints, &found)) fail(host);
    if (connect(endpoint, found->ai_addr, found->ai_addrlen)) fail("connect");
}

static int receive(int endpoint, const char *port, int answers) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    struct sigaction on_end = {.sa_handler = end};
    long count = 0;
    sigaction(SIGTERM, &on_end, 0);
    if (bind(endpoint, (struct sockaddr *)&own, sizeof own)) fail("bind");
    while (!ended) {
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        ssize_t size = recvfrom(endpoint, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length);
        if (size < 0) continue;
        count++;
        if (answers) sendto(endpoint, buffer, size, 0, (struct sockaddr *)&from, length);
    }
    printf("received %ld\n", count);
    return 0;
}

static int ping(int endpoint, int count, long long interval_ns) {
    struct timeval patience = {1, 0};
    long long begin = now_ns() + BEGIN_S * NS_PER_S;
    int answered = 0;
    setsockopt(endpoint, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (int i = 0; i < count; i++) {
        sleep_until(begin + i * interval_ns);
        answered += send(endpoint, buffer, 56, 0) == 56 && recv(endpoint, buffer, sizeof buffer, 0) == 56;
    }
    printf("answered %d of %d\n", answered, count);
    return answered != count;
}

static int send_all(int endpoint, int count, int bytes, long long interval_ns) {
    long long begin = now_ns() + BEGIN_S * NS_PER_S;
    for (int i = 0; i < count; i++) {
        sleep_until(begin + i * interval_ns);
        send(endpoint, buffer, bytes, 0);
    }
    return 0;
}

int main(int argc, char **argv) {
    int endpoint = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc == 3) return receive(endpoint, argv[2], !strcmp(argv[1], "serve"));
    connect_to(endpoint, argv[2], argv[3]);
    if (argc == 6) return ping(endpoint, atoi(argv[4]), atoll(argv[5]) * 1000000);
    return send_all(endpoint, atoi(argv[4]), atoi(argv[5]), atoll(argv[6]) * 1000);
}

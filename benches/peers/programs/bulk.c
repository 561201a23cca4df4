// TCP as a plain program uses it: bulk serve PORT | bulk send HOST PORT SECONDS. Writes of 128 KiB; the server takes one
// connection and prints what it received.
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 17];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static int serve(int endpoint, const char *port) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (bind(endpoint, (struct sockaddr *)&own, sizeof own) || listen(endpoint, 1)) fail("bind");
    int connection = accept(endpoint, 0, 0);
    long long bytes = 0;
    double begin = now_s();
    for (ssize_t size; (size = read(connection, buffer, sizeof buffer)) > 0;) bytes += size;
    printf("%.3f Mbit/s\n", bytes * 8 / (now_s() - begin) / 1e6);
    return 0;
}

static int send_for(int endpoint, const char *host, const char *port, double seconds) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, port, &hints, &found)) fail(host);
    if (connect(endpoint, found->ai_addr, found->ai_addrlen)) fail("connect");
    for (double end = now_s() + seconds; now_s() < end;)
        if (write(endpoint, buffer, sizeof buffer) < 0) fail("write");
    return 0;
}

int main(int argc, char **argv) {
    int endpoint = socket(AF_INET, SOCK_STREAM, 0);
    return argc == 3 ? serve(endpoint, argv[2]) : send_for(endpoint, argv[2], argv[3], atof(argv[4]));
}

// forks COUNT: so many times fork, exec of true(1), and wait.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    for (int left = argc > 1 ? atoi(argv[1]) : 0; left > 0; left--) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(1);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || status) return 1;
    }
    return 0;
}

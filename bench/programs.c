// Small programs that play agents, and the bare drain that floods are held against. One of them is chosen by name.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void wait_for_a_byte(void) {
    char byte;
    while (read(0, &byte, 1) < 0 && errno == EINTR) {
    }
}

static void raw_terminal(void) {
    struct termios mode;
    if (tcgetattr(0, &mode) == 0) {
        cfmakeraw(&mode);
        tcsetattr(0, TCSANOW, &mode);
    }
}

// leave CODE|-SIGNAL: ends at once, in that way.
static int leave(int how) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (how < 0) {
        signal(-how, SIG_DFL);
        raise(-how);
        pause();
    }
    _exit(how);
}

// stamp FILE SLOT CODE: waits for a byte, notes the time at its place in FILE, and ends; no system call in between.
static int stamp(const char *path, long slot, int code) {
    int fd = open(path, O_RDWR);
    int64_t *place = mmap(NULL, (slot + 1) * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (place == MAP_FAILED) return 99;
    place[slot] = 1;
    raw_terminal();
    if (write(1, "r", 1) != 1) return 98;
    wait_for_a_byte();
    place[slot] = now_ns(CLOCK_MONOTONIC);
    _exit(code);
}

// flood BYTES: waits for a byte, writes lines of 80 characters (0: without end), waits for another byte.
static int flood(int64_t size) {
    static char block[4096 * 16];
    for (size_t at = 0; at < sizeof block; at++) block[at] = at % 80 == 79 ? '\n' : (char)('a' + at % 26);
    size_t whole = sizeof block / 80 * 80;
    struct termios mode;
    tcgetattr(0, &mode);
    mode.c_lflag &= ~(ICANON | ECHO);
    tcsetattr(0, TCSANOW, &mode);
    if (write(1, "r", 1) != 1) return 98;
    wait_for_a_byte();
    for (int64_t left = size; size == 0 || left > 0;) {
        size_t most = size == 0 || left > (int64_t)whole ? whole : (size_t)left;
        for (size_t at = 0; at < most;) {
            ssize_t written = write(1, block + at, most - at);
            if (written < 0) return 1;
            at += written;
        }
        left -= most;
    }
    wait_for_a_byte();
    return 0;
}

// echo: gives every byte back as it is.
static int echo(void) {
    char buffer[4096];
    raw_terminal();
    if (write(1, "r", 1) != 1) return 98;
    for (ssize_t size; (size = read(0, buffer, sizeof buffer)) > 0;)
        if (write(1, buffer, size) != size) return 1;
    return 0;
}

// drain EXPECTED PROGRAM…: runs PROGRAM on a PTY and reads all that it writes; prints nanoseconds, wall and CPU.
static int drain(int64_t expected, char **argv) {
    static char buffer[65536];
    int master;
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    if (read(master, buffer, 1) != 1) return 1;
    int64_t began = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (write(master, "g", 1) != 1) return 1;
    for (int64_t seen = 0; seen < expected;) {
        ssize_t size = read(master, buffer, sizeof buffer);
        if (size <= 0) return 1;
        seen += size;
    }
    printf("%lld %lld\n", (long long)(now_ns(CLOCK_MONOTONIC) - began),
           (long long)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu));
    if (write(master, "g", 1) != 1) return 1;
    waitpid(child, NULL, 0);
    return 0;
}

// talk MS: a line every so many milliseconds.
static int talk(int ms) {
    for (long number = 1;; number++) {
        printf("\x1b[3%ldmtalk\x1b[m %ld: a line as an agent that works would write it\r\n", number % 6 + 1, number);
        fflush(stdout);
        usleep(ms * 1000);
    }
}

// report FILE SLOTS: for each byte that comes, notes the time at the next place in FILE, and reports that it is blocked
// (for 'b') or at its prompt, as an agent does.
static int report(const char *path, long slots) {
    int fd = open(path, O_RDWR);
    int64_t *place = mmap(NULL, slots * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (place == MAP_FAILED) return 99;
    struct termios mode;
    tcgetattr(0, &mode);
    mode.c_lflag &= ~(ICANON | ECHO);
    tcsetattr(0, TCSANOW, &mode);
    static const char idle[] = "\x1b]7501;state=idle\a", blocked[] = "\x1b]7501;state=blocked:kind=permission\a";
    if (write(1, idle, sizeof idle - 1) < 0) return 98;
    char byte;
    for (long slot = 0; slot < slots && read(0, &byte, 1) == 1; slot++) {
        place[slot] = now_ns(CLOCK_MONOTONIC);
        ssize_t size = byte == 'b' ? write(1, blocked, sizeof blocked - 1) : write(1, idle, sizeof idle - 1);
        if (size < 0) return 98;
    }
    pause();
    return 0;
}

int main(int count, char **argv) {
    const char *name = count > 1 ? argv[1] : "";
    if (!strcmp(name, "leave")) return leave(atoi(argv[2]));
    if (!strcmp(name, "stamp")) return stamp(argv[2], atol(argv[3]), atoi(argv[4]));
    if (!strcmp(name, "report")) return report(argv[2], atol(argv[3]));
    if (!strcmp(name, "flood")) return flood(atoll(argv[2]));
    if (!strcmp(name, "talk")) return talk(atoi(argv[2]));
    if (!strcmp(name, "echo")) return echo();
    if (!strcmp(name, "drain")) return drain(atoll(argv[2]), argv + 3);
    if (!strcmp(name, "say")) {
        if (write(1, "hello\n", 6) != 6) return 1;
        pause();
    }
    if (!strcmp(name, "sleep")) pause();
    return 2;
}

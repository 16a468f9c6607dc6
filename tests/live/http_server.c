/* SPDX-License-Identifier: MIT */
/*
 * A program that serves its profiles and does what it is told, line by line:
 * the other half of http_server.py.
 *
 *     http_server ADDRESS [token=T] [flags=N] [connections=N] [captures=N]
 *                 [body=N] [seconds=N] [header=N] [FILLER...]
 *
 * ADDRESS "-": only what CPPROF says. Fillers make the command line long.
 */
#include "arch/kernel.h"
#include <cpprof/http.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cpprof_http_options options = {.size = sizeof options};
static volatile sig_atomic_t n_signals;
static pid_t child;

static void
count_signal(int signo)
{
    (void)signo;
    n_signals++;
}

static unsigned
n_entries(const char *path, const char *kind)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    unsigned n = 0;

    while (dir && (entry = readdir(dir))) {
        char name[512], target[512] = "";

        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (readlink(name, target, sizeof target - 1) < 0 && *kind)
            continue;
        n += entry->d_name[0] != '.' && !strncmp(target, kind, strlen(kind));
    }
    if (dir)
        closedir(dir);
    return n;
}

static unsigned
n_threads(void)
{
    return n_entries("/proc/self/task", "");
}

/* A thread that has ended is there for a moment. */
static unsigned
n_threads_left(void)
{
    int tries = 0;

    while (n_threads() > 1 && tries++ < 1000)
        usleep(1000);
    return n_threads();
}

static void
listen_at(const char *address)
{
    enum cpprof_status status;
    struct cpprof_error error;
    char where[160];

    if (strcmp(address, "-")) {
        status = cpprof_http_listen(address, &options, &error);
        if (status != CPPROF_OK) {
            printf("%s %s\n", cpprof_status_name(status), error.text);
            return;
        }
    }
    if (cpprof_http_address(where, sizeof where))
        printf("OK %s\n", where);
    else
        printf("nowhere\n");
}

/* What the child has of ours; it then lives until "reap". */
static void
fork_child(void)
{
    fflush(stdout);
    child = fork();
    if (child)
        return;
    printf("child %u %u %u\n", n_entries("/proc/self/fd", "socket:"),
           n_entries("/proc/self/fd", "anon_inode:[eventfd]"),
           (unsigned)cpprof_http_address(NULL, 0));
    fflush(stdout);
    for (;;)
        pause();
}

static void
reap(void)
{
    int status;

    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("reaped\n");
}

/* Without malloc: ASan's does not work in every forked child. */
static bool
has_sockets_among(int fd, int end)
{
    char path[64], target[64];

    for (; fd < end; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target) > 7 &&
            !strncmp(target, "socket:", 7))
            return true;
    }
    return false;
}

static bool
has_sockets(void)
{
    long half = sysconf(_SC_OPEN_MAX) / 2;
    int high = half < 4096 ? (int)half : 4096;

    return has_sockets_among(0, 512) || has_sockets_among(high, high + 512);
}

/* As a program that closes what it was started with. */
static void
close_loop(void)
{
    int fd;

    for (fd = 3; fd < 200; fd++)
        close(fd);
    printf("closed\n");
}

/* Of those that are the server's. */
static void
print_lowest(void)
{
    char path[64], target[64];
    int fd, lowest = -1;

    for (fd = 0; lowest < 0 && fd < 10000; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target) >= 7 &&
            (!strncmp(target, "socket:", 7) || !strncmp(target, "anon_in", 7)))
            lowest = fd;
    }
    printf("lowest %d\n", lowest);
}

static void
fork_often(void)
{
    int n, status, bad = 0;

    for (n = 0; n < 200; n++) {
        pid_t pid = fork();

        if (!pid)
            _exit(has_sockets());
        bad += waitpid(pid, &status, 0) != pid || status;
    }
    printf("forks %d\n", bad);
}

/* As programs make themselves daemons; the first process ends. */
static void
become_daemon(const char *how)
{
    fflush(stdout);
    if (!strcmp(how, "libc")) {
        if (daemon(1, 1))
            exit(1);
    } else {
        if (fork())
            exit(0);
        setsid();
        if (!strcmp(how, "twice") && fork())
            _exit(0);
    }
    printf("daemon %d\n", (int)getpid());
}

/* A child with a session of its own, whose parent stays. */
static void
fork_session(void)
{
    fflush(stdout);
    child = fork();
    if (child)
        return;
    setsid();
    printf("session\n");
    fflush(stdout);
    for (;;)
        pause();
}

/* All but standard ones, as daemons do; then files have their numbers. */
static int files[64];

static void
close_from(void)
{
    size_t i;

    syscall(SYS_close_range, 3, ~0U, 0);
    for (i = 0; i < sizeof files / sizeof *files; i++) {
        char name[] = "/tmp/cpprof-http-XXXXXX";

        files[i] = mkstemp(name);
        unlink(name);
    }
    printf("closed\n");
}

static void
look_at_files(void)
{
    unsigned n_wrong = 0;
    struct stat now;
    size_t i;

    for (i = 0; i < sizeof files / sizeof *files; i++)
        n_wrong += fstat(files[i], &now) || now.st_size;
    printf("wrong %u\n", n_wrong);
}

/* A child that shares our memory and ends must end nothing of ours. */
static void
vfork_exit(void)
{
    int status;
    pid_t pid = vfork();

    if (!pid)
        _exit(0);
    waitpid(pid, &status, 0);
    printf("vforked\n");
}

static void
ask_disposition(void)
{
    struct sigaction pipe_action;

    sigaction(SIGPIPE, NULL, &pipe_action);
    printf("pipe %s signals %d\n",
           pipe_action.sa_handler == SIG_DFL ? "default" : "changed",
           (int)n_signals);
}

static void
exec_self(char **argv)
{
    char *const again[] = {argv[0], argv[1], NULL};

    fflush(stdout);
    execv("/proc/self/exe", again);
}

static void
obey(char *line, char **argv)
{
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "listen ", 7))
        listen_at(line + 7);
    else if (!strcmp(line, "close")) {
        cpprof_http_close();
        printf("closed %u\n", n_threads_left());
    } else if (!strcmp(line, "threads"))
        printf("threads %u\n", n_threads_left());
    else if (!strcmp(line, "signals"))
        ask_disposition();
    else if (!strcmp(line, "fork"))
        fork_child();
    else if (!strncmp(line, "daemon ", 7))
        become_daemon(line + 7);
    else if (!strcmp(line, "session"))
        fork_session();
    else if (!strcmp(line, "closefrom"))
        close_from();
    else if (!strcmp(line, "closeloop"))
        close_loop();
    else if (!strcmp(line, "lowest"))
        print_lowest();
    else if (!strcmp(line, "files"))
        look_at_files();
    else if (!strcmp(line, "forks"))
        fork_often();
    else if (!strcmp(line, "vfork"))
        vfork_exit();
    else if (!strcmp(line, "reap"))
        reap();
    else if (!strcmp(line, "chdir")) {
        if (chdir("/"))
            exit(1);
    } else if (!strcmp(line, "exec"))
        exec_self(argv);
    else if (!strcmp(line, "exit"))
        exit(3);
    else if (!strcmp(line, "_exit"))
        _exit(4);
    else if (!strcmp(line, "pthread_exit"))
        pthread_exit(NULL);
}

static void
read_option(const char *text)
{
    static const struct {
        const char *name;
        uint32_t *value;
    } numbers[] = {
        {"flags=", &options.flags},
        {"connections=", &options.max_connections},
        {"captures=", &options.max_captures},
        {"body=", &options.max_body},
        {"seconds=", &options.max_seconds},
        {"header=", &options.header_seconds},
    };
    size_t i;

    if (!strncmp(text, "token=", 6))
        options.token = text + 6;
    for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        size_t n = strlen(numbers[i].name);

        if (!strncmp(text, numbers[i].name, n))
            *numbers[i].value = (uint32_t)atoi(text + n);
    }
}

int
main(int argc, char **argv)
{
    static const int counted[] = {SIGUSR1, SIGALRM, SIGHUP};
    char line[256];
    size_t i;

    for (i = 0; i < sizeof counted / sizeof *counted; i++)
        signal(counted[i], count_signal);
    for (i = 2; i < (size_t)argc; i++)
        read_option(argv[i]);
    printf("threads %u\n", n_threads());
    listen_at(argc > 1 ? argv[1] : "-");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        obey(line, argv);
        fflush(stdout);
    }
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A program whose main thread ends by pthread_exit() ends as it would alone,
 * once its last thread did: our threads do not keep it, its exit handlers run,
 * and its profiles are written.
 */
#include "command.h"
#include "load.h"
#include "tap.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 20

/* ---- the program ------------------------------------------------------ */

static void *kept;

static void *
work(void *arg)
{
    (void)arg;
    kept = malloc(1000000);
    usleep(50000);
    return NULL;
}

static void
say_goodbye(void)
{
    static const char text[] = "goodbye\n";

    if (write(1, text, sizeof text - 1) < 0)
        _exit(9);
}

/* Until a signal ends it. */
static void
wait_for_ever(void)
{
    static const char text[] = "waiting\n";

    if (write(1, text, sizeof text - 1) < 0)
        _exit(9);
    for (;;)
        pause();
}

static void
leave(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, work, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void *
kill_later(void *pid)
{
    sleep(4);
    kill((pid_t)(long)pid, SIGTERM);
    return NULL;
}

/* The parent says that a child of it ended so. */
static void
leave_in_child(void)
{
    pid_t child = fork();
    int status = -1;

    if (!child)
        leave();
    waitpid(child, &status, 0);
    printf("child %d\n", status);
}

/* The child's only thread is none that main() returns from. */
static void *
fork_and_return(void *unused)
{
    pid_t child = fork();
    int status = -1;

    if (child) {
        waitpid(child, &status, 0);
        printf("child %d\n", status);
    }
    return unused;
}

static int
run_program(const char *how)
{
    pthread_t thread;

    if (!strcmp(how, "thread")) {
        pthread_create(&thread, NULL, fork_and_return, NULL);
        pthread_join(thread, NULL);
        return 0;
    }
    if (!strcmp(how, "child")) {
        leave_in_child();
        return 0;
    }
    atexit(!strcmp(how, "stuck") ? wait_for_ever : say_goodbye);
    if (!strcmp(how, "stuck") && !fork()) {
        pthread_t killer;

        pthread_create(&killer, NULL, kill_later, (void *)(long)getppid());
        pthread_join(killer, NULL);
        _exit(0);
    }
    leave();
    return 0;
}

/* ---- checks ----------------------------------------------------------- */

static char folder[] = "/tmp/last_thread.XXXXXX";

static size_t
size_of(const char *name)
{
    char path[512];
    FILE *file;
    long n = 0;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (file && !fseek(file, 0, SEEK_END))
        n = ftell(file);
    if (file)
        fclose(file);
    unlink(path);
    return n > 0 ? (size_t)n : 0;
}

static void
run_under(const char *kinds, const char *how, struct result *result)
{
    const char *argv[] = {"/proc/self/exe", how, NULL};
    char words[256];
    const char *environment[] = {words, NULL};

    snprintf(words, sizeof words, "CPPROF=%s,out=%s/%%k.gz", kinds, folder);
    run_command(argv, environment, SECONDS, result);
}

static void
check_kind(const char *kinds, const char *name)
{
    char what[128], file[64];
    struct result result;

    run_under(kinds, "leave", &result);
    snprintf(what, sizeof what, "%s: the program exits with 0", kinds);
    check_equal(result.status, 0, what);
    snprintf(what, sizeof what, "%s: its exit handlers run", kinds);
    check_text(result.out, "goodbye\n", what);
    snprintf(what, sizeof what, "%s: nothing is said", kinds);
    check_text(result.err, "", what);
    snprintf(what, sizeof what, "%s: the profile is written", kinds);
    snprintf(file, sizeof file, "%s.gz", name);
    check_at_least((double)size_of(file), 100, what);
}

static void
check_all_at_once(void)
{
    struct result result;

    run_under("cpu,heap,wall", "leave", &result);
    check_equal(result.status, 0, "all threads of ours: exits with 0");
    check_at_least((double)size_of("cpu.gz"), 100, "with a CPU profile");
    check_at_least((double)size_of("heap.gz"), 100, "one of the heap");
    check_at_least((double)size_of("wall.gz"), 100, "and one of time");
}

static void
check_child(const char *kinds)
{
    struct result result;

    run_under(kinds, "child", &result);
    check_equal(result.status, 0, "a child that ends so is waited for");
    check_text(result.out, "child 0\n", "and exited with 0");
}

/* Which of our threads is the last, and runs exit(), is chance; it waited for
 * one that waited for it, for ten seconds. */
static void
check_thread_of_child(const char *kinds)
{
    struct result result;
    uint64_t begin = wall_ns();

    run_under(kinds, "thread", &result);
    check_text(result.out, "child 0\n", "a child of a thread exits with 0");
    check_at_most((double)(wall_ns() - begin) / 1e9, 8, "and soon");
}

static void
check_signal(void)
{
    struct result result;

    run_under("cpu", "stuck", &result);
    check_has(result.out, "waiting", "an exit handler that waits is reached");
    check(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGTERM,
          "and SIGTERM ends the process then");
}

static void
check_recorded(void)
{
    char path[256];
    const char *argv[] = {
        cpprof_path(), "record", "-t", "cpu,heap",       "-heap", "1",
        "-o",          path,     "--", "/proc/self/exe", "leave", NULL};
    struct result result;
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n > 0 ? n : 0] = 0;
    argv[9] = self;
    snprintf(path, sizeof path, "%s/r.gz", folder);
    run_command(argv, NULL, SECONDS, &result);
    check_equal(result.status, 0, "recorded: the program exits with 0");
    check_has(result.out, "goodbye\n", "recorded: its exit handlers run");
    check_at_least((double)size_of("r.heap.gz"), 100, "recorded: a profile");
    check_at_least((double)size_of("r.cpu.gz"), 100, "recorded: and one more");
    argv[3] = "heap";
    run_command(argv, NULL, SECONDS, &result);
    check_equal(result.status, 0, "recorded without CPU: exits with 0");
    check_at_least((double)size_of("r.gz"), 100,
                   "recorded without CPU: a profile");
}

/* Those of children have names of their own. */
static void
empty_folder(void)
{
    struct dirent *entry;
    DIR *dir = opendir(folder);

    while (dir && (entry = readdir(dir)))
        if (*entry->d_name != '.')
            size_of(entry->d_name);
    if (dir)
        closedir(dir);
}

int
main(int argc, char **argv)
{
    if (argc > 1)
        return run_program(argv[1]);
    if (!mkdtemp(folder))
        bail("mkdtemp");
    check_kind("cpu", "cpu");
    check_kind("heap", "heap");
    check_kind("block", "block");
    check_kind("wall", "wall");
    check_all_at_once();
    check_child("heap");
    check_child("cpu");
    check_thread_of_child("wall");
    check_thread_of_child("cpu,wall");
    check_thread_of_child("cpu");
    check_signal();
    check_recorded();
    empty_folder();
    check_equal(rmdir(folder), 0, "nothing else is left");
    return check_done();
}

/* SPDX-License-Identifier: MIT */
/*
 * `http -p PID`: the profile of a process that runs, made anew as often as the
 * page asks for it. Each time another `cpprof record -p PID` does it, in a
 * process of its own: the server has threads, and whoever attaches is to have
 * one. So the process is as before between two recordings, and after the last.
 *
 * Order: `child` and `ends` are changed under the lock, so that no recording
 * begins after cpprof__live_end().
 */
#include "cli/record/record.h"

#include "cli/attach/attach.h"
#include "cli/commands.h"
#include "cli/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a recording may say: a line or two. */
#define SAID_BYTES 4096

static struct {
    pthread_mutex_t lock;
    const char *path;
    char pids[512], seconds[32], out[PATH_MAX];
    pid_t child; /* 0: none records */
    bool ends;
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* In the child. */
static void
run(int said, pid_t parent, char *const argv[])
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(said, STDERR_FILENO);
    if (getppid() == parent)
        execv("/proc/self/exe", argv);
    _exit(127);
}

/* Its exit status; -1: it could not begin, or nothing is wanted any more. */
static int
run_record(int said)
{
    char record[] = "record", one[] = "-one";
    char *argv[] = {record,       record,   one, live.pids,
                    live.seconds, live.out, NULL};
    pid_t parent = getpid(), child = -1;
    int status;

    pthread_mutex_lock(&live.lock);
    if (!live.ends)
        child = fork();
    if (child == 0)
        run(said, parent, argv);
    live.child = child > 0 ? child : 0;
    pthread_mutex_unlock(&live.lock);
    if (child < 0)
        return -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&live.lock);
    live.child = 0;
    pthread_mutex_unlock(&live.lock);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Pass on why there is no profile. */
static enum cpprof__live_result
read_said(int said)
{
    char text[SAID_BYTES] = "", *line;
    ssize_t n = pread(said, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = 0;
    if (strstr(text, CPPROF__RECORD_IDLE))
        return CPPROF__LIVE_NOTHING;
    if (strstr(text, CPPROF__STOPPED))
        return CPPROF__LIVE_STOPPED;
    line = !strncmp(text, "cpprof: ", 8) ? text + 8 : text;
    line[strcspn(line, "\n")] = 0;
    if (*line)
        cpprof__cli_fail("%s", line);
    return CPPROF__LIVE_OVER;
}

static enum cpprof__live_result
record(void)
{
    int said = memfd_create("cpprof", MFD_CLOEXEC), status = -1;
    enum cpprof__live_result result = CPPROF__LIVE_OVER;

    if (said >= 0)
        status = run_record(said);
    if (status == 0)
        result = CPPROF__LIVE_NEW;
    else if (said >= 0 && !live.ends)
        result = read_said(said);
    if (said >= 0)
        close(said);
    return result;
}

void
cpprof__live_end(void)
{
    pthread_mutex_lock(&live.lock);
    live.ends = true;
    if (live.child)
        kill(live.child, SIGTERM);
    while (live.child) {
        pthread_mutex_unlock(&live.lock);
        usleep(10000);
        pthread_mutex_lock(&live.lock);
    }
    pthread_mutex_unlock(&live.lock);
}

static char words[520];
static const struct cpprof__live of_process = {words, record, cpprof__live_end};

const struct cpprof__live *cpprof__live;

bool
cpprof__live_begin(const char *pids, const char *path, double seconds)
{
    int n = snprintf(live.pids, sizeof live.pids, "-p=%s", pids);

    if (n >= (int)sizeof live.pids || !*pids ||
        pids[strspn(pids, "0123456789,")]) {
        cpprof__cli_fail("-p takes numbers of processes, with commas between "
                         "them, not \"%.100s\"",
                         pids);
        return false;
    }
    snprintf(live.seconds, sizeof live.seconds, "-duration=%g", seconds);
    snprintf(live.out, sizeof live.out, "-o=%s", path);
    strcpy(words, live.pids);
    cpprof__live = &of_process;
    return true;
}

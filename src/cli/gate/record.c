/* SPDX-License-Identifier: MIT */
/*
 * `cpprof gate -record`: runs both commands in turn under `cpprof record`, so
 * that what the machine does meanwhile happens to both. Each is run once before
 * what counts. The order is base head, head base, ...: a machine that becomes
 * slower all the time favours nobody.
 */
#include "cli/gate/gate.h"

#include "cli/messages.h"
#include "cli/terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes of what a failed run said that are shown. */
#define SHOWN_BYTES 400

static char folder[PATH_MAX];
static char sides[2][PATH_MAX + 8];
static char *side_sources[2] = {sides[0], sides[1]};

/* The recorder that runs, which gets the signals that we get. */
static volatile pid_t running;
static volatile sig_atomic_t came;

static void
pass_on(int number)
{
    came = number;
    if (running > 0)
        kill(running, number);
}

static void
remove_files(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
}

void
cpprof__gate_recorded_remove(void)
{
    if (!*folder)
        return;
    remove_files(sides[0]);
    remove_files(sides[1]);
    remove_files(folder);
    *folder = 0;
}

static bool
make_folders(void)
{
    const char *above = getenv("TMPDIR");
    int i;

    snprintf(folder, sizeof folder, "%s/cpprof-gate.XXXXXX",
             above && *above ? above : "/tmp");
    if (!mkdtemp(folder)) {
        cpprof__cli_fail("gate: %s: %s", folder, strerror(errno));
        *folder = 0;
        return false;
    }
    for (i = 0; i < 2; i++) {
        snprintf(sides[i], sizeof sides[i], "%s/%s", folder,
                 i ? "head" : "base");
        if (mkdir(sides[i], 0700) != 0) {
            cpprof__cli_fail("gate: %s: %s", sides[i], strerror(errno));
            return false;
        }
    }
    return true;
}

char *
cpprof__gate_base_folder(void)
{
    return make_folders() ? sides[0] : NULL;
}

void
cpprof__gate_base_is_folder(struct cpprof__gate_flags *w)
{
    w->base = &side_sources[0];
    w->n_base = 1;
}

/* ---------------------------------------------------------------- runs ---- */

/* The last core that we may run on. */
static void
take_one_core(void)
{
    cpu_set_t may, one;
    int i;

    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return;
    for (i = CPU_SETSIZE - 1; i >= 0 && !CPU_ISSET(i, &may); i--)
        continue;
    CPU_ZERO(&one);
    if (i >= 0)
        CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* In the child: become the recorder. What it and the command say goes to a
 * file. */
static void
become_recorder(const struct cpprof__gate_flags *w, const char *command,
                const char *out, const char *log)
{
    const char *rate = w->rate ? w->rate : "1000";
    const char *engine = w->engine ? w->engine : "auto";
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    if (w->one_core)
        take_one_core();
    if (fd >= 0 && null >= 0 && dup2(null, 0) == 0 && dup2(fd, 1) == 1 &&
        dup2(fd, 2) == 2)
        execl("/proc/self/exe", "cpprof", "record", "-one", "-e", engine, "-F",
              rate, "-o", out, "--", "/bin/sh", "-c", command, (char *)NULL);
    _exit(126);
}

/* The end of what a failed run said, as one line. */
static void
tell_failure(const char *log, const char *side, int number, int status)
{
    char text[SHOWN_BYTES + 1] = "";
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd >= 0 && lseek(fd, -SHOWN_BYTES, SEEK_END) < 0)
        lseek(fd, 0, SEEK_SET);
    n = fd >= 0 ? read(fd, text, SHOWN_BYTES) : 0;
    if (fd >= 0)
        close(fd);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n > 0 ? n : 0] = 0;
    cpprof__cli_fail(
        "gate: run %d of %s ended with %s %d: %s", number, side,
        WIFSIGNALED(status) ? "signal" : "status",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), text);
}

/* Number 0 is the one that does not count. */
static bool
run_one(const struct cpprof__gate_flags *w, bool is_head, int number)
{
    const char *command = is_head ? w->head_command : w->base_command;
    const char *side = is_head ? "head" : "base";
    char out[PATH_MAX + 64], log[PATH_MAX + 64];
    int status = 0;
    pid_t pid;

    snprintf(out, sizeof out, "%s/%04d.pb.gz", number ? sides[is_head] : folder,
             number);
    snprintf(log, sizeof log, "%s/log", folder);
    cpprof__progress("recording %s, %d of %d", side, number, w->n_record);
    pid = fork();
    if (pid == 0)
        become_recorder(w, command, out, log);
    if (pid < 0) {
        cpprof__cli_fail("gate: fork: %s", strerror(errno));
        return false;
    }
    running = pid;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    running = 0;
    if (!number)
        unlink(out);
    if (status == 0 && !came)
        return true;
    tell_failure(log, side, number, status);
    return false;
}

bool
cpprof__gate_record(struct cpprof__gate_flags *w)
{
    struct sigaction action = {.sa_handler = pass_on}, before[3];
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    bool ok;
    int i;

    for (i = 0; i < 3; i++)
        sigaction(signals[i], &action, &before[i]);
    ok = make_folders() && run_one(w, false, 0) && run_one(w, true, 0);
    for (i = 1; ok && i <= w->n_record; i++)
        ok = run_one(w, i % 2 == 0, i) && run_one(w, i % 2 != 0, i);
    cpprof__progress_end();
    for (i = 0; i < 3; i++)
        sigaction(signals[i], &before[i], NULL);
    if (*folder) {
        char log[PATH_MAX + 64];

        snprintf(log, sizeof log, "%s/log", folder);
        unlink(log);
    }
    w->base = &side_sources[0];
    w->head = &side_sources[1];
    w->n_base = w->n_head = 1;
    return ok;
}

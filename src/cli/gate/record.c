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

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes of what a failed run said that are shown. */
#define SHOWN_BYTES 400

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

    snprintf(out, sizeof out, "%s/%04d.pb.gz",
             cpprof__gate_folder(number ? is_head : CPPROF__GATE_OTHERS),
             number);
    snprintf(log, sizeof log, "%s/log",
             cpprof__gate_folder(CPPROF__GATE_OTHERS));
    cpprof__progress("recording %s, %d of %d", side, number, w->n_record);
    pid = cpprof__gate_fork();
    if (pid == 0)
        become_recorder(w, command, out, log);
    if (pid < 0) {
        cpprof__cli_fail("gate: fork: %s", strerror(errno));
        return false;
    }
    if (cpprof__gate_wait(pid, &status))
        return false;
    if (status == 0)
        return true;
    tell_failure(log, side, number, status);
    return false;
}

bool
cpprof__gate_record(struct cpprof__gate_flags *w)
{
    bool ok = cpprof__gate_folder_make() && run_one(w, false, 0) &&
              run_one(w, true, 0);
    int i;

    for (i = 1; ok && i <= w->n_record; i++)
        ok = run_one(w, i % 2 == 0, i) && run_one(w, i % 2 != 0, i);
    cpprof__progress_end();
    w->base = cpprof__gate_folder_source(false);
    w->head = cpprof__gate_folder_source(true);
    w->n_base = w->n_head = 1;
    return ok;
}

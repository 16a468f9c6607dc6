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

/* The end of what a run said, as one line, and without the one that the
 * recorder says of the profile `out`. */
static void
read_log(const char *log, const char *out, char text[2 * SHOWN_BYTES + 1])
{
    char all[SHOWN_BYTES + 1], *next = all, *line;
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    size_t n_text = 0;
    ssize_t n;

    if (fd >= 0 && lseek(fd, -SHOWN_BYTES, SEEK_END) < 0)
        lseek(fd, 0, SEEK_SET);
    n = fd >= 0 ? read(fd, all, SHOWN_BYTES) : 0;
    if (fd >= 0)
        close(fd);
    all[n > 0 ? n : 0] = *text = 0;
    while ((line = strsep(&next, "\n")))
        if (*line && (strncmp(line, "cpprof: ", 8) != 0 ||
                      strncmp(line + 8, out, strlen(out)) != 0))
            n_text += (size_t)sprintf(text + n_text, "%s%s", n_text ? "; " : "",
                                      line);
}

/* "run 3 of base"; number 0 is the one that does not count. */
static void
name_run(char name[64], bool is_head, int number)
{
    const char *side = is_head ? "head" : "base";

    if (number)
        snprintf(name, 64, "run %d of %s", number, side);
    else
        snprintf(name, 64, "the run of %s that warms up", side);
}

static void
tell_failure(const char *run, const char *said, int status)
{
    cpprof__cli_fail("gate: %s ended with %s %d%s%s", run,
                     WIFSIGNALED(status) ? "signal" : "status",
                     WIFSIGNALED(status) ? WTERMSIG(status)
                                         : WEXITSTATUS(status),
                     *said ? ": " : "", said);
}

static bool
has_samples(const char *path)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error error;
    bool has = pprof_read_path(path, NULL, &p, &error) == CPPROF_OK &&
               pprof_sample_count(p) > 0;

    pprof_free(p);
    return has;
}

static bool
run_one(const struct cpprof__gate_flags *w, bool is_head, int number)
{
    const char *command = is_head ? w->head_command : w->base_command;
    const char *side = is_head ? "head" : "base";
    char out[PATH_MAX + 64], log[PATH_MAX + 64], name[64];
    char said[2 * SHOWN_BYTES + 1];
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
    name_run(name, is_head, number);
    read_log(log, out, said);
    if (status != 0)
        tell_failure(name, said, status);
    else if (number == 1 && !has_samples(out))
        cpprof__cli_warn("gate: %s has no samples%s%s; a static program, and "
                         "one that is started with an empty environment (env "
                         "-i), cannot be recorded",
                         name, *said ? ", and said: " : "", said);
    return status == 0;
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

/* SPDX-License-Identifier: MIT */
/*
 * The folder of runs that the gate records or asks for itself. From when it is
 * made until it is removed, a signal that ends the command removes it first; a
 * recorder that runs then is ended, and waited for; by a second signal, killed.
 */
#include "cli/gate/gate.h"

#include "cli/messages.h"
#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
#define N_SIGNALS (sizeof signals / sizeof *signals)

static struct {
    char paths[3][PATH_MAX]; /* base, head, and the one above them */
    char *sources[2];
    bool is_made;
    struct sigaction before[N_SIGNALS];
    volatile pid_t recorder;    /* or 0 */
    volatile sig_atomic_t came; /* a signal while it ran, or 0 */
} folder;

/* Safety: AS. */
static void
remove_all(void)
{
    int i, fd;

    for (i = 0; i < 3; i++) {
        fd = open(folder.paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            cpprof__remove_files(fd);
            close(fd);
        }
        rmdir(folder.paths[i]);
    }
}

static void
on_signal(int number)
{
    if (folder.recorder > 0) {
        /* A recorder leaves SIGINT to the command. What that has started does
         * not end with it, and is in the same group. */
        kill(-folder.recorder, folder.came ? SIGKILL : SIGTERM);
        folder.came = number;
        return;
    }
    remove_all();
    signal(number, SIG_DFL);
    raise(number);
}

static void
listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    size_t i;

    for (i = 0; i < N_SIGNALS; i++) {
        sigaction(signals[i], NULL, &folder.before[i]);
        if (folder.before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

bool
cpprof__gate_folder_make(void)
{
    const char *above = getenv("TMPDIR");
    char *path = folder.paths[CPPROF__GATE_OTHERS];
    int i;

    snprintf(path, PATH_MAX - 8, "%s/cpprof-gate.XXXXXX",
             above && *above ? above : "/tmp");
    listen_to_signals();
    folder.is_made = true;
    if (!mkdtemp(path)) {
        cpprof__cli_fail("gate: %s: %s", path, strerror(errno));
        return false;
    }
    for (i = 0; i < 2; i++) {
        stpcpy(stpcpy(folder.paths[i], path), i ? "/head" : "/base");
        if (mkdir(folder.paths[i], 0700) != 0) {
            cpprof__cli_fail("gate: %s: %s", folder.paths[i], strerror(errno));
            return false;
        }
    }
    return true;
}

void
cpprof__gate_folder_remove(void)
{
    size_t i;

    if (!folder.is_made)
        return;
    remove_all();
    for (i = 0; i < N_SIGNALS; i++)
        sigaction(signals[i], &folder.before[i], NULL);
    if (folder.came)
        raise(folder.came);
    folder.is_made = false;
}

const char *
cpprof__gate_folder(int which)
{
    return folder.paths[which];
}

char **
cpprof__gate_folder_source(bool is_head)
{
    folder.sources[is_head] = folder.paths[is_head];
    return &folder.sources[is_head];
}

pid_t
cpprof__gate_fork(void)
{
    sigset_t kept_back, before;
    size_t i;
    pid_t pid;

    sigemptyset(&kept_back);
    for (i = 0; i < N_SIGNALS; i++)
        sigaddset(&kept_back, signals[i]);
    sigprocmask(SIG_BLOCK, &kept_back, &before);
    pid = fork();
    /* A group of its own, so that all of it can be ended. Whoever is first
     * makes it. */
    if (pid >= 0)
        setpgid(pid, pid);
    for (i = 0; pid == 0 && i < N_SIGNALS; i++)
        sigaction(signals[i], &folder.before[i], NULL);
    /* The group is not the one that the terminal listens to: a command that
     * sets the terminal, or reads it, would be stopped, and we would wait. */
    if (pid == 0) {
        signal(SIGTTOU, SIG_IGN);
        signal(SIGTTIN, SIG_IGN);
    }
    folder.recorder = pid > 0 ? pid : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

int
cpprof__gate_wait(pid_t pid, int *status)
{
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
    folder.recorder = 0;
    return folder.came;
}

/* SPDX-License-Identifier: MIT */
/*
 * Each report of the shell is made by a child, because a report changes the
 * profile that it filters. fork() gives the child the whole profile as it was
 * read, for the cost of page tables. The terminal sends an interrupt to the
 * shell and the child; the shell ignores it while it waits.
 */
#include "cli/shell/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The shell ignores these signals while it waits; its children do not. */
static const int signals[] = {SIGINT, SIGQUIT};
#define N_SIGNALS (sizeof signals / sizeof signals[0])

struct children {
    pid_t program; /* 0: none */
    int to_program;
    struct sigaction before[N_SIGNALS];
};

static void
stop_listening(struct children *children)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    size_t i;

    for (i = 0; i < N_SIGNALS; i++)
        sigaction(signals[i], &ignore, &children->before[i]);
}

static void
listen_again(const struct children *children)
{
    size_t i;

    for (i = 0; i < N_SIGNALS; i++)
        sigaction(signals[i], &children->before[i], NULL);
}

/* Start the program that a report is piped to; fills ->program and
 * ->to_program. */
static bool
start_program(struct children *children, const char *program)
{
    char *argv[] = {"sh", "-c", (char *)program, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int fds[2], failure;
    size_t i;

    if (pipe2(fds, O_CLOEXEC) != 0) {
        cpprof__shell_error("%s", strerror(errno));
        return false;
    }
    sigemptyset(&defaults);
    for (i = 0; i < N_SIGNALS; i++)
        sigaddset(&defaults, signals[i]);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
    failure = posix_spawn(&children->program, "/bin/sh", &actions, &attributes,
                          argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(fds[0]);
    children->to_program = fds[1];
    if (failure) {
        close(fds[1]);
        cpprof__shell_error("/bin/sh: %s", strerror(failure));
    }
    return !failure;
}

/* The child. */
static void
report(struct pprof_profile *profile, const struct cpprof__shell_command *c,
       const struct children *children)
{
    struct cpprof__report_flags flags = c->report;
    size_t i;

    for (i = 0; i < N_SIGNALS; i++)
        signal(signals[i], SIG_DFL);
    signal(SIGPIPE,
           SIG_DFL); /* when the user leaves a pager, the report ends */
    if (children->program) {
        dup2(children->to_program, STDOUT_FILENO);
        close(children->to_program);
        flags.interactive = false; /* bytes may go there, too */
    }
    _exit(cpprof__print_report(profile, &flags));
}

static int
wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

void
cpprof__shell_run(struct pprof_profile *profile,
                  const struct cpprof__shell_command *command)
{
    struct children children = {.program = 0};
    int status = 0;
    pid_t pid;

    fflush(NULL);
    stop_listening(&children);
    if (command->program && !start_program(&children, command->program)) {
        listen_again(&children);
        return;
    }
    pid = fork();
    if (pid == 0)
        report(profile, command, &children);
    if (children.program)
        close(children.to_program);
    if (pid > 0)
        status = wait_for(pid);
    else
        cpprof__shell_error("%s", strerror(errno));
    if (children.program)
        wait_for(children.program);
    listen_again(&children);
    if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGPIPE)
        return;
    if (WTERMSIG(status) == SIGINT)
        cpprof__shell_error("interrupted");
    else
        cpprof__shell_error("the report was ended by a signal: %s",
                            strsignal(WTERMSIG(status)));
}

/* SPDX-License-Identifier: MIT */
/*
 * Runs the command as a child: starts it with the library preloaded, waits
 * without coming between it and the terminal, and then ends in the same way as
 * the command did.
 */
#include "cli/record/record.h"

#include "arch/clock.h"
#include "base/buffer.h"
#include "cli/attach/attach.h"
#include "cli/messages.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

/* The signals are taken with sigtimedwait(), so no system call is interrupted.
 * All but SIGCHLD mean the command: whoever started us knows our pid alone. */
static const int waited_for[] = {SIGCHLD, SIGTERM, SIGHUP,  SIGINT,
                                 SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

/* SIGINT and SIGQUIT come from the terminal to the command as well, and it
 * alone decides what they mean; a closed stderr and a limit on the size of
 * files are no reasons to die. */
static const int ignored[] = {SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ};
#define N_IGNORED (sizeof ignored / sizeof *ignored)

/* A signal to a process group reaches the command and us; by the time the
 * command has died of it, ours may still be on its way. It is no reason not to
 * write the profile. */
#define GRACE_NS (NS_PER_S / 2)

/* Tunable. Who continues a group has continued all of it so soon after the
 * first. */
#define ALONE_NS (NS_PER_S / 20)

/* The signal mask and actions that the command inherits. */
static struct inherited {
    sigset_t mask;
    struct sigaction actions[N_IGNORED];
    struct sigaction on_child;
} inherited;

/* For the handler of interruptions. */
static const struct cpprof__record_folder *folder_to_remove;
static int64_t ended_ns;

static void
fill_set(sigset_t *set)
{
    size_t i;

    sigemptyset(set);
    for (i = 0; i < sizeof waited_for / sizeof *waited_for; i++)
        sigaddset(set, waited_for[i]);
}

void
cpprof__record_take_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t set;
    size_t i;

    fill_set(&set);
    sigprocmask(SIG_BLOCK, &set, &inherited.mask);
    for (i = 0; i < N_IGNORED; i++)
        sigaction(ignored[i], &ignore, &inherited.actions[i]);
    /* If SIGCHLD were ignored, the kernel would reap the command before we can
     * wait. */
    sigaction(SIGCHLD, &standard, &inherited.on_child);
}

bool
cpprof__record_config(const struct cpprof__record_options *o,
                      const struct cpprof__record_folder *folder,
                      struct cpprof__buffer *text)
{
    /* ORDER: enum cpprof_symbolize */
    static const char *const symbolize[] = {"full", "functions", "none"};
    /* ORDER: CPPROF__RECORD_* */
    const char *rates[] = {NULL,          o->heap_rate,
                           o->block_rate, o->mutex_fraction,
                           o->wall_rate,  o->wall_rate};
    unsigned i;

    cpprof__buffer_printf(text, "record=%s", folder->seen);
    for (i = 0; 1u << i < CPPROF__RECORD_END; i++) {
        if (!(o->kinds & 1u << i))
            continue;
        cpprof__buffer_printf(text, ",%s", cpprof__record_kind_name(1u << i));
        if (rates[i])
            cpprof__buffer_printf(text, "=%s", rates[i]);
        else if (1u << i == CPPROF__RECORD_CPU && o->rate_hz)
            cpprof__buffer_printf(text, "=%u", o->rate_hz);
    }
    cpprof__buffer_printf(text, "%s%s%s", o->labels ? ",labels=on" : "",
                          o->scripts ? ",scripts" : "",
                          o->one ? ",thread-names" : "");
    if (o->max_depth)
        cpprof__buffer_printf(text, ",depth=%u", o->max_depth);
    cpprof__buffer_printf(text, ",engine=%s,symbolize=%s",
                          o->engine ? o->engine : "auto",
                          symbolize[o->symbolize]);
    cpprof__record_vm_flags(o, text);
    cpprof__record_lost_flags(o, folder, text);
    cpprof__buffer_append(text, "", 1);
    return !text->failed;
}

/* Set the variable that the library reads at its start. */
static bool
set_cpprof(const struct cpprof__record_options *options,
           const struct cpprof__record_folder *folder)
{
    struct cpprof__buffer text = {0}, words = {0};
    bool done = cpprof__record_config(options, folder, &words);

    cpprof__buffer_printf(&text, "%s,command=%d", (char *)words.data,
                          (int)getpid());
    cpprof__buffer_append(&text, "", 1);
    done = done && !text.failed && setenv("CPPROF", (char *)text.data, 1) == 0;
    cpprof__buffer_free(&words);
    cpprof__buffer_free(&text);
    return done;
}

/* Nothing is loaded by this, but a file that is missing is an error. */
static bool
is_there_for_glibc(const char *path)
{
    void *loaded;

    dlerror();
    loaded = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (loaded)
        dlclose(loaded);
    return !dlerror();
}

/*
 * A path that leads each loader to the library for its libc, if there is one
 * for musl. So programs of both may start each other.
 *
 * Otherwise one that glibc's loader alone can follow: it puts its own folder
 * for $LIB, and from there enough ".." lead back to the root. Other loaders
 * find no such folder and go on without. So a program for musl that the command
 * starts runs as it does alone, where its loader would load the library, miss
 * what that needs of glibc, and end it. Where there is no such folder for glibc
 * either, the path is as it is.
 *
 * Source: ld.so(8), "Dynamic string tokens".
 */
#define FROM_ROOT "/$LIB/../../../../../.."

static const char *
for_each_libc(const char *library, char path[PATH_MAX])
{
    if (cpprof__record_musl_library(library, path) && is_there_for_glibc(path))
        return path;
    if (snprintf(path, PATH_MAX, FROM_ROOT "%s", library) >= PATH_MAX)
        return library;
    return is_there_for_glibc(path) ? path : library;
}

/* Put our library in front of those that are preloaded already. Only the
 * library of AddressSanitizer stays first: it ends the program otherwise. */
static bool
set_preload(const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    char path[PATH_MAX], *text;
    bool done;

    library = for_each_libc(library, path);
    if (!before || !*before)
        return setenv("LD_PRELOAD", library, 1) == 0;
    if ((cpprof__preloads_asan()
             ? asprintf(&text, "%s:%s", before, library)
             : asprintf(&text, "%s:%s", library, before)) < 0)
        return false;
    done = setenv("LD_PRELOAD", text, 1) == 0;
    free(text);
    return done;
}

/* Become the command. On failure tell the parent why, and end. */
static void __attribute__((noreturn))
become(const struct cpprof__record_options *options,
       const struct cpprof__record_folder *folder, int report_fd)
{
    size_t i;
    int sys;

    unsetenv("CPPROF_OWNER");
    if (set_cpprof(options, folder) && set_preload(folder->library)) {
        for (i = 0; i < N_IGNORED; i++)
            sigaction(ignored[i], &inherited.actions[i], NULL);
        sigaction(SIGCHLD, &inherited.on_child, NULL);
        sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
        execvp(options->command[0], options->command);
    }
    sys = errno;
    while (write(report_fd, &sys, sizeof sys) < 0 && errno == EINTR)
        ;
    _exit(CPPROF__EXIT_NOT_FOUND);
}

static int
cannot_run(const char *command, int sys)
{
    cpprof__cli_fail("%s: %s", command, strerror(sys));
    return sys == ENOENT ? CPPROF__EXIT_NOT_FOUND : CPPROF__EXIT_CANNOT_RUN;
}

int
cpprof__record_child_start(const struct cpprof__record_options *options,
                           const struct cpprof__record_folder *folder,
                           struct cpprof__record_child *child)
{
    int fds[2], sys, why = 0;
    ssize_t n;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return cannot_run(options->command[0], errno);
    child->start_ns = (int64_t)cpprof__now_ns(CLOCK_MONOTONIC);
    child->status = 0;
    child->pid = fork();
    if (child->pid == 0)
        become(options, folder, fds[1]);
    sys = child->pid < 0 ? errno : 0;
    close(fds[1]);
    if (!sys) {
        /* If exec succeeds, it closes the pipe; else its errno comes. */
        do
            n = read(fds[0], &why, sizeof why);
        while (n < 0 && errno == EINTR);
        sys = n == sizeof why ? why : 0;
    }
    close(fds[0]);
    if (!sys)
        return 0;
    if (child->pid > 0)
        waitpid(child->pid, NULL, 0);
    return cannot_run(options->command[0], sys);
}

/*
 * What comes to us and not to the command goes on to it. A terminal's signals,
 * and those that somebody in our process group sends, have most often been sent
 * to the whole group. A signal of the command itself is for whoever started it,
 * as X servers tell by SIGUSR1 that they are ready.
 */
static void
pass_on(pid_t command, int signal, const siginfo_t *info)
{
    bool is_sent = info->si_code <= 0;

    if (signal == SIGTERM || signal == SIGHUP)
        kill(command, signal);
    else if (is_sent && info->si_pid == command)
        kill(getppid(), signal);
    else if (is_sent && (!info->si_pid || getpgid(info->si_pid) != getpgrp()))
        kill(command, signal);
}

/* It has stopped, and nobody has continued it since that was told. */
static bool
is_stopped_yet(pid_t command)
{
    siginfo_t again = {0};

    return cpprof__attach_is_stopped(command) &&
           !waitid(P_PID, (id_t)command, &again,
                   WSTOPPED | WNOHANG | WNOWAIT) &&
           !again.si_pid;
}

/* The command was stopped, and maybe alone. At a terminal the shell goes on
 * when we stop, too, and continues both of us or us alone. */
static void
stop_with(pid_t command)
{
    int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    bool is_in_front = terminal >= 0 && tcgetpgrp(terminal) == getpgrp() &&
                       getpgid(command) == getpgrp();

    if (terminal >= 0)
        close(terminal);
    if (!is_in_front)
        return;
    raise(SIGSTOP);
    /* Who continues both may just be about to continue the command: a second
     * time would undo what it does next, if that is to stop again. */
    if (!is_stopped_yet(command))
        return;
    cpprof__sleep_ns(ALONE_NS);
    if (is_stopped_yet(command))
        kill(command, SIGCONT);
}

bool
cpprof__record_child_wait(struct cpprof__record_child *child, double seconds,
                          struct cpprof__record_chore chore)
{
    int64_t end_ns = seconds > 0
                         ? child->start_ns + (int64_t)(seconds * NS_PER_S)
                         : INT64_MAX;
    sigset_t set;

    fill_set(&set);
    for (;;) {
        int64_t left_ns = end_ns - (int64_t)cpprof__now_ns(CLOCK_MONOTONIC);
        struct timespec left;
        siginfo_t info;
        int signal, status;

        if (waitpid(child->pid, &status, WNOHANG | WUNTRACED) == child->pid) {
            if (WIFSTOPPED(status)) {
                stop_with(child->pid);
                continue;
            }
            child->status = status;
            return true;
        }
        if (left_ns <= 0)
            return false;
        if (chore.do_it && left_ns > NS_PER_S)
            left_ns = NS_PER_S;
        left = (struct timespec){(time_t)(left_ns / NS_PER_S),
                                 (long)(left_ns % NS_PER_S)};
        signal = sigtimedwait(&set, &info, &left);
        if (signal > 0 && signal != SIGCHLD)
            pass_on(child->pid, signal, &info);
        else if (signal < 0 && chore.do_it)
            chore.do_it(chore.ctx);
    }
}

/* Were we started with this signal ignored? One that is not any more is taken
 * whatever it was. */
static bool
was_ignored(int signal)
{
    struct sigaction now;
    size_t i;

    sigaction(signal, NULL, &now);
    if (now.sa_handler != SIG_IGN)
        return false;
    for (i = 0; i < N_IGNORED; i++)
        if (ignored[i] == signal)
            return inherited.actions[i].sa_handler == SIG_IGN;
    return true;
}

static void
on_interruption(int signal)
{
    if ((int64_t)cpprof__now_ns(CLOCK_MONOTONIC) - ended_ns < GRACE_NS)
        return;
    cpprof__record_folder_remove(folder_to_remove);
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    raise(signal);
}

void
cpprof__record_child_ended(const struct cpprof__record_folder *folder)
{
    static const int interruptions[] = {SIGINT, SIGQUIT, SIGTERM,
                                        SIGHUP, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = on_interruption,
                               .sa_flags = SA_RESTART};
    size_t i;

    folder_to_remove = folder;
    ended_ns = (int64_t)cpprof__now_ns(CLOCK_MONOTONIC);
    for (i = 0; i < sizeof interruptions / sizeof *interruptions; i++)
        if (!was_ignored(interruptions[i]))
            sigaction(interruptions[i], &action, NULL);
    sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
}

/* No core dump of ours: the command has made its own. */
static void
die_of(int signal)
{
    struct rlimit none = {0, 0};
    sigset_t set;

    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    fflush(NULL);
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(signal);
}

int
cpprof__record_child_status(const struct cpprof__record_child *child)
{
    return WIFSIGNALED(child->status) ? 128 + WTERMSIG(child->status)
                                      : WEXITSTATUS(child->status);
}

int
cpprof__record_child_pass_on(const struct cpprof__record_child *child)
{
    if (WIFSIGNALED(child->status))
        die_of(WTERMSIG(child->status));
    return cpprof__record_child_status(child);
}

/* SPDX-License-Identifier: MIT */
/*
 * record -p: the same recording, of processes that run already. All of them are
 * looked at first, and none is touched unless all may be attached to.
 * Then each loads the library and is told what a child would read in CPPROF.
 * At the end each is told to put everything back, before the files are written.
 *
 * With -name processes of that name that come later are attached to as well,
 * within a second; one that may not be attached to is reported and left out.
 *
 * Whoever stops this program by Ctrl-C, SIGTERM or SIGHUP ends the recording.
 */
#include "cli/record/record.h"

#include "arch/clock.h"
#include "cli/attach/attach.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/record/outside.h"
#include "object/symbolizer.h"

#include <cpprof/object.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* Each takes some milliseconds at its begin and at its end. */
#define PROCESSES_MAX 1000

/* Tunable. So long a process may take to put everything back, with patience. */
#define DETACH_NS (15 * CPPROF__NS_PER_S)

/* Tunable. Samples from outside are taken so often: a buffer has room for half
 * a second at 100 Hz, where the user may have a small one. */
#define OUTSIDE_S 0.05

#define OUTSIDE_WORDS "CPU only, from outside"

struct process {
    pid_t pid;
    char name[32];
    bool is_refused; /* looked at and left out */
    bool may_attach; /* looked at; else its CPU time is had from outside */
    bool is_attached;
    struct cpprof__outside *outside; /* it is sampled from there; or NULL */
};

struct attached {
    struct cpprof__record_options *options;
    struct cpprof__record_folder *folder;
    struct process processes[PROCESSES_MAX];
    size_t n;
    ino_t pids;      /* the pid namespace of the first */
    pid_t inside;    /* and its pid there */
    char *config;    /* what CPPROF would say */
    sigset_t enough; /* signals that end it */
};

/* ---------------------------------------------------------- processes ---- */

static bool
is_known(const struct attached *a, pid_t pid)
{
    size_t i;

    for (i = 0; i < a->n; i++)
        if (a->processes[i].pid == pid)
            return true;
    return false;
}

static void
add(struct attached *a, pid_t pid)
{
    if (a->n < PROCESSES_MAX && !is_known(a, pid) && pid != getpid())
        a->processes[a->n++] = (struct process){.pid = pid};
}

static bool
add_listed(struct attached *a, const char *text)
{
    const char *at = text;
    char *end;
    long pid;

    for (;;) {
        errno = 0;
        pid = strtol(at, &end, 10);
        if (!isdigit((unsigned char)*at) || errno || pid < 1 ||
            pid > INT32_MAX || (*end && *end != ',') || a->n == PROCESSES_MAX) {
            cpprof__cli_fail("-p takes numbers of processes, with "
                             "commas between them, not \"%s\"",
                             text);
            return false;
        }
        add(a, (pid_t)pid);
        if (!*end)
            return true;
        at = end + 1;
    }
}

/* Those that have this name now. */
static void
add_named(struct attached *a, const char *name)
{
    struct cpprof__buffer text = {0};
    const struct dirent *entry;
    DIR *proc = opendir("/proc");
    long pid;

    while (proc && (entry = readdir(proc))) {
        pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 0)
            continue;
        cpprof__read_proc(&text, "/proc/%ld/comm", pid);
        if (text.data && !strncmp((char *)text.data, name, strlen(name)) &&
            !strcmp((char *)text.data + strlen(name), "\n"))
            add(a, (pid_t)pid);
    }
    cpprof__buffer_free(&text);
    if (proc)
        closedir(proc);
}

/* The effective user or group of a process, -1: unknown. */
static long
effective_id(pid_t pid, const char *field)
{
    struct cpprof__buffer text = {0};
    char value[64];
    long real, effective = -1;

    cpprof__read_proc(&text, "/proc/%d/status", (int)pid);
    cpprof__status_field(&text, field, value, sizeof value);
    if (sscanf(value, "%ld %ld", &real, &effective) != 2)
        effective = -1;
    cpprof__buffer_free(&text);
    return effective;
}

/* What the process itself takes for its number, as in a container: the last of
 * those that it has. */
static pid_t
inner_pid(pid_t pid)
{
    struct cpprof__buffer text = {0};
    char value[256];
    const char *last;
    long inner;

    cpprof__read_proc(&text, "/proc/%d/status", (int)pid);
    cpprof__status_field(&text, "NSpid", value, sizeof value);
    last = strrchr(value, '\t');
    inner = strtol(last ? last : value, NULL, 10);
    cpprof__buffer_free(&text);
    return inner > 0 ? (pid_t)inner : pid;
}

/* False, after a line that says why; that it has ended is reason enough. */
__attribute__((format(printf, 2, 3))) static bool
refuse(const struct process *p, const char *format, ...)
{
    char reason[CPPROF__REASON_BYTES + 64] = "it ended meanwhile";
    va_list args;

    va_start(args, format);
    if (!cpprof__attach_is_over(p->pid))
        vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    cpprof__cli_fail("%d (%s): %s", (int)p->pid, p->name, reason);
    return false;
}

/* Files of one folder are named by pids of one namespace. */
static bool
is_beside_first(const struct attached *a, const struct process *p)
{
    if (cpprof__record_pid_namespace(p->pid) == a->pids &&
        cpprof__record_sees(p->pid, a->folder->path, a->folder->seen))
        return true;
    return refuse(p, "is in another container than %d; record it apart",
                  (int)a->processes[0].pid);
}

/* May CPU time be had by perf events, and is nothing else asked for? */
static bool
may_be_outside(const struct attached *a, const struct cpprof__target *target)
{
    int error;

    if (!target->is_visible || a->options->kinds != CPPROF__RECORD_CPU ||
        a->options->prints_threads)
        return false;
    error = cpprof__events_probe(target->pid, (unsigned)a->n);
    if (error == ENOBUFS || error == EMFILE)
        cpprof__cli_warn("%d (%s): no CPU time from outside: %s",
                         (int)target->pid, target->name,
                         cpprof__events_error(error));
    return !error;
}

/* Look at it with the library that it is to load: the one that was copied into
 * its root, or that for its libc. */
static bool
may_attach(const struct attached *a, pid_t pid, struct cpprof__target *target,
           char reason[CPPROF__REASON_BYTES])
{
    const struct cpprof__record_folder *folder = a->folder;
    const char *here = folder->library, *seen = folder->seen_library;
    char library[PATH_MAX];

    if (!strcmp(here, seen) && cpprof__record_library_for(pid, library))
        here = seen = library;
    return cpprof__attach_look(target, pid, here, seen, a->options->force,
                               reason);
}

/* Look at one. False after printing why it may not be attached to. */
static bool
look(struct attached *a, struct process *p, struct cpprof__target *target)
{
    char reason[CPPROF__REASON_BYTES];
    long uid = effective_id(p->pid, "Uid");

    p->may_attach = may_attach(a, p->pid, target, reason);
    if (p->may_attach && !a->options->prints_threads &&
        !cpprof__attach_has_file_room(
            target, a->options->kinds == CPPROF__RECORD_CPU, reason)) {
        cpprof__attach_free(target);
        p->may_attach = false;
    }
    /* Of those that have a name some end at any time. */
    if (!p->may_attach && a->options->process_name &&
        cpprof__attach_is_over(p->pid))
        return false;
    if (!p->may_attach && may_be_outside(a, target)) {
        cpprof__cli_warn("%d (%s): " OUTSIDE_WORDS ": it %s", (int)p->pid,
                         target->name, reason);
    } else if (!p->may_attach) {
        cpprof__cli_fail("%d%s%s%s: %s", (int)p->pid, *target->name ? " (" : "",
                         target->name, *target->name ? ")" : "", reason);
        return false;
    }
    memcpy(p->name, target->name, sizeof p->name);
    if (target->images.is_musl && a->options->prints_stuck) {
        cpprof__attach_free(target);
        return refuse(p, "is a program for musl libc: what its locks look like "
                         "is not known, so nobody can say who waits for whom");
    }
    if (!is_beside_first(a, p)) {
        cpprof__attach_free(target);
        return false;
    }
    if (uid >= 0 && uid != (long)geteuid() &&
        !cpprof__record_folder_share(a->folder)) {
        cpprof__attach_free(target);
        return refuse(p, "is another user's, who may not write to %s: %s",
                      a->folder->path, strerror(errno));
    }
    return true;
}

/* --------------------------------------------------------- in and out ---- */

/* How long its thread was held is for tests and for the curious. */
static void
tell(const struct process *p, const char *what,
     const struct cpprof__injected *how)
{
    if (getenv("CPPROF_VERBOSE"))
        cpprof__cli_warn("%d (%s): %s: thread held %.3f ms%s, %u tried, %.3f "
                         "ms in all",
                         (int)p->pid, p->name, what,
                         (double)how->held_ns * 1e-6,
                         how->was_unsafe ? ", came by itself" : "",
                         how->n_tries, (double)how->total_ns * 1e-6);
}

static bool
begin_outside(struct attached *a, struct process *p,
              const struct cpprof__target *target)
{
    int error;

    p->outside = cpprof__outside_begin(target, inner_pid(p->pid), a->options,
                                       a->folder->path, (unsigned)a->n, &error);
    p->is_attached = p->outside;
    if (!p->outside)
        refuse(p, "no perf events: %s", cpprof__events_error(error));
    return p->is_attached;
}

static void
end_outside(struct process *p)
{
    if (!cpprof__outside_end(p->outside))
        cpprof__cli_fail("%d (%s): samples are lost: %s", (int)p->pid, p->name,
                         strerror(errno));
    cpprof__outside_free(p->outside);
    p->outside = NULL;
}

static void
say_slow(const struct cpprof__target *target)
{
    cpprof__cli_warn("%d (%s): waiting for it: its threads are busy, or have "
                     "a lock of libc; Ctrl-C gives up",
                     (int)target->pid, target->name);
}

/* A child that a process which was attached to has made: it has the page that
 * ends this recording, until it runs another program. */
static bool
is_recorded(const struct attached *a, pid_t pid)
{
    struct cpprof__buffer maps = {0};
    bool is_there;

    cpprof__read_proc(&maps, "/proc/%d/maps", (int)pid);
    is_there = maps.data && strstr((char *)maps.data, a->folder->inner_name);
    cpprof__buffer_free(&maps);
    return is_there;
}

static bool
attach(struct attached *a, struct process *p, struct cpprof__target *target)
{
    struct cpprof__injected how = {0};
    char message[CPPROF__REASON_BYTES];

    if (!p->may_attach)
        return begin_outside(a, p, target);
    if (is_recorded(a, p->pid))
        return true;
    target->is_slow = say_slow;
    p->is_attached =
        cpprof__inject(target, "cpprof_attach", a->config, message, &how);
    if (p->is_attached)
        tell(p, "attached", &how);
    else
        refuse(p, "not attached: %s", message);
    return p->is_attached;
}

/* Threads of the library in it. Some are there as long as it is attached, and
 * others while it is profiled in any way. ORDER: src/attach/attach.c. */
#define OWN_THREADS "cpprof-"
#define ANY_THREADS "cpprof"

static bool
has_threads(pid_t pid, const char *begin)
{
    struct cpprof__buffer name = {0};
    const struct dirent *entry;
    bool has = false;
    char path[64];
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && !has && (entry = readdir(tasks))) {
        cpprof__read_proc(&name, "%s/%s/comm", path, entry->d_name);
        has = name.data && strtol(entry->d_name, NULL, 10) != pid &&
              !strncmp((char *)name.data, begin, strlen(begin));
    }
    cpprof__buffer_free(&name);
    if (tasks)
        closedir(tasks);
    return has;
}

/* Does the process have the recorder's word in memory? Whoever is attached
 * does: one that could not begin threads of ours again, as after
 * unshare(CLONE_NEWPID), has nobody who would detach. */
static bool
maps_control(const struct attached *a, pid_t pid)
{
    struct cpprof_map map = {.size = sizeof map};
    struct cpprof__buffer maps = {0};
    const char *at, *end;
    bool has = false;
    char path[PATH_MAX + 16];
    struct stat st;

    snprintf(path, sizeof path, "%s/control", a->folder->path);
    if (lstat(path, &st))
        return false;
    cpprof__read_proc(&maps, "/proc/%d/maps", (int)pid);
    at = (char *)maps.data;
    end = at + (maps.n ? maps.n - 1 : 0);
    while (!has && at && cpprof_maps_next(&at, end, &map))
        has = map.inode == st.st_ino && map.dev_major == major(st.st_dev) &&
              map.dev_minor == minor(st.st_dev);
    cpprof__buffer_free(&maps);
    return has;
}

/* Processes that were told so detach by themselves: nothing is done in a thread
 * of theirs, which may not be allowed to. False: this one has not in time, or
 * cannot. */
static bool
wait_for_detach(const struct attached *a, const struct process *p)
{
    struct cpprof__patience patience;

    cpprof__patience_begin(&patience, DETACH_NS);
    while (has_threads(p->pid, OWN_THREADS)) {
        if (!cpprof__patience_has(&patience) ||
            cpprof__attach_is_stopped(p->pid))
            return false;
        cpprof__sleep_ns(CPPROF__NS_PER_S / 100);
    }
    return !maps_control(a, p->pid);
}

static void
detach(struct attached *a, struct process *p)
{
    struct cpprof__injected how = {0};
    struct cpprof__target target;
    char message[CPPROF__REASON_BYTES];

    if (p->outside) {
        end_outside(p);
        return;
    }
    if (!p->is_attached || cpprof__attach_is_over(p->pid) ||
        (!a->options->prints_threads && wait_for_detach(a, p)))
        return;
    if (!may_attach(a, p->pid, &target, message)) {
        if (!cpprof__attach_is_over(p->pid))
            cpprof__cli_warn("%d (%s): not detached: %s", (int)p->pid, p->name,
                             message);
        return;
    }
    /* It may run another program now, which knows nothing of us. */
    if (!target.is_loaded) {
        cpprof__attach_free(&target);
        return;
    }
    if (cpprof__inject(&target, "cpprof_detach", NULL, message, &how))
        tell(p, "detached", &how);
    else if (!cpprof__attach_is_over(p->pid))
        cpprof__cli_warn("%d (%s): not detached: %s", (int)p->pid, p->name,
                         message);
    cpprof__attach_free(&target);
}

/* From here on a signal ends the command at once: processes that were told to
 * stop need nobody to detach. */
static void
detach_all(struct attached *a)
{
    struct cpprof_error ignored;
    size_t i;

    cpprof_recording_stop(a->folder->path, &ignored);
    cpprof__record_child_ended(a->folder);
    for (i = 0; i < a->n; i++)
        detach(a, &a->processes[i]);
}

static void
say_no_name(const struct attached *a)
{
    cpprof__cli_fail("record: no process is named \"%s\"",
                     a->options->process_name ? a->options->process_name : "");
}

static bool
are_over(const struct attached *a)
{
    size_t i = 0;

    while (i < a->n && cpprof__attach_is_over(a->processes[i].pid))
        i++;
    return i == a->n;
}

/* Look at all, then attach to all. With names, those that may not be are left
 * out. False: none is attached, or one that was listed is not. */
static bool
attach_all(struct attached *a)
{
    struct cpprof__target *targets = calloc(a->n, sizeof *targets);
    size_t i, n_attached = 0, n_bad = 0;

    for (i = 0; targets && i < a->n; i++)
        if (!look(a, &a->processes[i], &targets[i])) {
            a->processes[i].is_refused = true;
            n_bad++;
        }
    if (targets && (!n_bad || a->options->process_name))
        for (i = 0; i < a->n; i++)
            if (!a->processes[i].is_refused &&
                attach(a, &a->processes[i], &targets[i]))
                n_attached++;
    for (i = 0; targets && i < a->n; i++)
        if (!a->processes[i].is_refused)
            cpprof__attach_free(&targets[i]);
    free(targets);
    if (!n_attached && a->options->process_name && are_over(a))
        say_no_name(a);
    return n_attached && (a->options->process_name || n_attached == a->n);
}

/* Attach to those that have come since. */
static void
attach_new(struct attached *a)
{
    struct cpprof__target target;
    size_t i = a->n;

    add_named(a, a->options->process_name);
    for (; i < a->n; i++) {
        struct process *p = &a->processes[i];

        p->is_refused = !look(a, p, &target);
        if (p->is_refused)
            continue;
        attach(a, p, &target);
        cpprof__attach_free(&target);
    }
}

/* ------------------------------------------------------------ waiting ---- */

static const int enough[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

/* From here on these end the recording, whatever they did before. */
static void
take_enough(sigset_t *set)
{
    size_t i;

    sigemptyset(set);
    for (i = 0; i < sizeof enough / sizeof *enough; i++) {
        sigaddset(set, enough[i]);
        signal(enough[i], SIG_DFL);
    }
    sigprocmask(SIG_BLOCK, set, NULL);
}

static bool
is_any_there(const struct attached *a)
{
    size_t i;

    for (i = 0; i < a->n; i++)
        if (a->processes[i].is_attached &&
            !cpprof__attach_is_over(a->processes[i].pid))
            return true;
    return false;
}

/* False: none is sampled from outside. */
static bool
read_outside(struct attached *a)
{
    bool any = false;
    size_t i;

    for (i = 0; i < a->n; i++)
        if (a->processes[i].outside) {
            cpprof__outside_read(a->processes[i].outside);
            any = true;
        }
    return any;
}

/* Until a signal comes, the time is over, or none of them is there any more.
 */
static void
wait_for_end(struct attached *a, const sigset_t *set)
{
    uint64_t begin = cpprof__now_ns(CLOCK_MONOTONIC);
    double seconds = a->options->duration_s, left, pause_s;
    struct timespec time;

    for (;;) {
        pause_s = read_outside(a) ? OUTSIDE_S : 1;
        left =
            seconds - (double)(cpprof__now_ns(CLOCK_MONOTONIC) - begin) * 1e-9;
        if (seconds > 0 && left <= 0)
            return;
        left = seconds > 0 && left < pause_s ? left : pause_s;
        time = cpprof__timespec_of((uint64_t)(left * CPPROF__NS_PER_S));
        if (sigtimedwait(set, NULL, &time) > 0)
            return;
        if (a->options->process_name)
            attach_new(a);
        else if (!is_any_there(a))
            return;
    }
}

static void
say_what_is_recorded(const struct attached *a)
{
    size_t i, n = 0;

    for (i = 0; i < a->n; i++)
        n += a->processes[i].is_attached;
    if (a->options->duration_s > 0)
        return;
    if (n == 1)
        cpprof__cli_warn("recording process %d (%s); Ctrl-C ends it",
                         (int)a->processes[0].pid, a->processes[0].name);
    else
        cpprof__cli_warn("recording %zu processes; Ctrl-C ends it", n);
}

/* ------------------------------------------------------------- in all ---- */

/* False: nothing, or not of all. */
static bool
print_threads(const struct attached *a)
{
    bool done = true;
    size_t i;

    for (i = 0; i < a->n; i++) {
        const struct process *p = &a->processes[i];

        if (p->is_attached && a->n > 1)
            printf("%sprocess %d (%s):\n\n", i ? "\n" : "", (int)p->pid,
                   p->name);
        done =
            done && p->is_attached &&
            cpprof__record_threads_print(a->folder, p->pid, inner_pid(p->pid));
    }
    return done;
}

static bool
record(struct attached *a)
{
    struct cpprof__record_ended parts = {a->options, a->folder, {{0}}, {0}};
    char *command[] = {a->processes[0].name, NULL};
    bool is_written;

    if (!attach_all(a)) {
        detach_all(a);
        return false;
    }
    if (!a->options->prints_threads) {
        say_what_is_recorded(a);
        wait_for_end(a, &a->enough);
    }
    detach_all(a);
    if (a->options->prints_threads)
        return print_threads(a);
    a->options->command = command;
    a->options->is_attached = true;
    is_written = cpprof__record_write(a->options, a->folder, a->inside, &parts);
    cpprof__record_ended_free(&parts);
    return is_written;
}

/* In a container neither the library nor a folder of ours may be there. */
static bool
make_folder(struct attached *a)
{
    struct cpprof__record_folder *folder = a->folder;
    pid_t first = a->processes[0].pid;
    char library[PATH_MAX];

    a->pids = cpprof__record_pid_namespace(first);
    a->inside = inner_pid(first);
    cpprof__fetcher.proc = cpprof__record_proc(first, a->inside);
    if (!cpprof__record_folder_make(folder))
        return false;
    if (cpprof__record_sees(first, folder->path, folder->path) &&
        cpprof__record_library_for(first, library) &&
        (!*library || cpprof__record_sees(first, library, library)))
        return true;
    cpprof__record_folder_remove(folder);
    return cpprof__record_folder_make_inside(folder, first);
}

bool
cpprof__record_attached(struct cpprof__record_options *options)
{
    static struct attached a;
    struct cpprof__record_folder folder;
    struct cpprof__buffer config = {0};
    bool is_written = false;

    a = (struct attached){.options = options, .folder = &folder};
    if (options->pids && !add_listed(&a, options->pids))
        return false;
    if (options->process_name)
        add_named(&a, options->process_name);
    if (!a.n) {
        say_no_name(&a);
        return false;
    }
    cpprof__record_take_signals();
    take_enough(&a.enough);
    if (!make_folder(&a))
        return false;
    if (options->prints_threads
            ? cpprof__record_threads_config(options->prints_stuck, &folder,
                                            &config)
            : cpprof__record_config(options, &folder, &config)) {
        a.config = (char *)config.data;
        is_written = record(&a);
    }
    cpprof__buffer_free(&config);
    cpprof__record_folder_remove(&folder);
    return is_written;
}

/* ------------------------------------------------------------- doctor ---- */

/* What may be had even so. */
static void
say_outside(pid_t pid)
{
    int error = cpprof__events_probe(pid, 1);

    if (error)
        printf("  outside  no CPU time from outside either: "
               "perf_event_open: %s\n",
               cpprof__events_error(error));
    else
        printf("  outside  " OUTSIDE_WORDS ": cpprof record -p %d\n", (int)pid);
}

int
cpprof__cli_doctor(int argc, char **argv)
{
    char library[PATH_MAX], reason[CPPROF__REASON_BYTES];
    struct cpprof__target target;
    const char *inside;
    bool sees, may;
    char *end;
    long pid = argc == 2 ? strtol(argv[1], &end, 10) : 0;

    if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "-help"))) {
        puts("usage: cpprof doctor PID\n"
             "\n"
             "Says whether `cpprof record -p PID` would work and, if not, why. "
             "Nothing\nin the process is touched. Exit status: 0 it would, 1 "
             "it would not.");
        return CPPROF__EXIT_OK;
    }
    if (argc != 2 || pid < 1 || pid > INT32_MAX || *end)
        return cpprof__cli_fail("doctor takes the number of one process");
    if (!cpprof__record_library_for((pid_t)pid, library))
        return CPPROF__EXIT_ERROR;
    sees = !*library || cpprof__record_sees((pid_t)pid, library, library);
    inside = sees ? NULL : cpprof__record_inside((pid_t)pid);
    may = cpprof__attach_look(&target, (pid_t)pid, inside ? NULL : library,
                              library, false, reason);
    if (may && !cpprof__attach_has_file_room(&target, true, reason)) {
        cpprof__attach_free(&target);
        may = false;
    }
    if (!may) {
        printf("%ld%s%s%s: %s\n", pid, *target.name ? " (" : "", target.name,
               *target.name ? ")" : "", reason);
        if (target.is_visible)
            say_outside((pid_t)pid);
        return 1;
    }
    if (target.is_loaded && has_threads((pid_t)pid, ANY_THREADS)) {
        printf("%ld (%s): cpprof profiles this process already\n", pid,
               target.name);
        cpprof__attach_free(&target);
        return 1;
    }
    printf("%ld (%s): may be attached to: cpprof record -p %ld\n", pid,
           target.name, pid);
    printf("  libc     %s\n", target.images.libc->path);
    if (inside && !target.is_loaded)
        printf("  library  a copy, in %s of its own root\n", inside);
    else
        printf("  library  %s%s\n", target.library,
               target.is_loaded ? ", which it has loaded already" : "");
    if (!cpprof__attach_has_file_room(&target, false, reason))
        printf("  but      -t cpu alone: it %s\n", reason);
    cpprof__attach_free(&target);
    return CPPROF__EXIT_OK;
}

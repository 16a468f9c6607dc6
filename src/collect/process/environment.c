/* SPDX-License-Identifier: MIT */
/*
 * The variable CPPROF in the life of the process: reads it once, starts what
 * it asks for, again in forked children, and stops it at the end.
 *
 * environment_parse.c understands the text, environment_out.c names the files,
 * and environment_end.c writes what is written at the end.
 *
 * Invariants: an error is one line on stderr, and the program goes on; a
 * process started by a profiled one knows that by CPPROF_OWNER and uses its
 * own file name.
 */
#include "collect/process/environment.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/cpu/session.h"
#include "collect/process/late.h"
#include "collect/recording/recorded.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/keeper.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/periodic.h"
#include "collect/runtime/proc.h"
#include "collect/runtime/real.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/heap/probes.h"
#include "collect/signal/tables/reserve.h"
#include "collect/store/spool.h"
#include "collect/stuck/watch.h"
#include "collect/wall/wall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set to the pid of the first profiled process, so that its descendants can
 * tell that a path without %p is not theirs. */
#define OWNER_VARIABLE "CPPROF_OWNER"

/* Tunable: under a recorder, which finds the names and writes the files, what a
 * profiled process has made is sampled this soon. A process that ends sooner
 * costs little more than alone. */
#define RECORDED_NS 10000000u

/* Tunable: so long the end of an attachment waits for a thread of ours that is
 * just ending the wall profile. */
#define WALL_END_NS (5 * CPPROF__NS_PER_S)

#define SAMPLED_KINDS (CPPROF__KIND_CPU | CPPROF__KINDS_OF_WALL)

static struct cpprof__environment environment CPPROF__LARGE;
static bool is_on CPPROF__AT_START; /* CPPROF was understood */
/* Of a process profiled by the same variable. */
static bool is_descendant CPPROF__AT_START;
static bool is_child CPPROF__AT_START; /* made by fork from one */
static void (*on_late_child)(void);    /* of a process that was attached to */
/* For files of samplers; "": the current one. */
static char folder[PATH_MAX] CPPROF__LARGE;

void
cpprof__environment_complain(const struct cpprof_error *error)
{
    char line[sizeof error->text + 16];
    int n = snprintf(line, sizeof line, "cpprof: %s\n", error->text);

    cpprof__own_thread_say(line, (size_t)n);
}

/* Errors of files name the file; one of memory names nothing. */
static void
complain_of(const char *profile, const struct cpprof_error *error)
{
    struct cpprof_error named = *error;

    if (error->status == CPPROF_NOMEM)
        snprintf(named.text, sizeof named.text, "no profile of %s: %.160s",
                 profile, error->text);
    cpprof__environment_complain(&named);
}

/* What the command has made is not recorded if the recorder is gone or it
 * cannot reach the folder any more, as after a change of its user. There is
 * nobody to tell: its descriptor 2 may be a pipe that the program reads. */
static bool
is_worth_a_line(const struct cpprof_error *error)
{
    bool is_made = is_child || (environment.command &&
                                environment.command != (uint32_t)getpid());

    return !*environment.directory || !is_made ||
           (error->sys != ENOENT && error->sys != ENOTDIR &&
            error->sys != EACCES);
}

static enum cpprof_status
record_cpu(const struct cpprof__birth *birth, struct cpprof_error *error)
{
    struct cpprof_capture *c;
    enum cpprof_status status = cpprof__cpu_recorder_new(
        &environment.cpu, environment.directory, environment.names_threads,
        cpprof__recorded_tick, &c, error);

    if (status != CPPROF_OK)
        return status;
    c->birth = birth;
    return cpprof__default_start(c, error);
}

static enum cpprof_status
sample_cpu(const struct cpprof__birth *birth, struct cpprof_error *error)
{
    struct cpprof_writer writer;
    enum cpprof_status status =
        cpprof__environment_open(&environment, "cpu", *folder ? folder : NULL,
                                 is_descendant, &writer, error);

    return status == CPPROF_OK
               ? cpprof__cpu_start(&writer, &environment.cpu, birth, error)
               : status;
}

static enum cpprof_status
sample_wall(const struct cpprof__birth *birth, struct cpprof_error *error)
{
    const char *name =
        environment.kinds & CPPROF__KIND_WALL ? "wall" : "offcpu";
    struct cpprof_writer writer;
    enum cpprof_status status =
        cpprof__environment_open(&environment, name, *folder ? folder : NULL,
                                 is_descendant, &writer, error);

    return status == CPPROF_OK
               ? cpprof__wall_start(&writer, &environment.wall, birth, error)
               : status;
}

static void
start_wall(const struct cpprof__birth *birth)
{
    struct cpprof_error error;

    if ((*environment.directory
             ? cpprof__wall_record(&environment.wall, birth, &error)
             : sample_wall(birth, &error)) != CPPROF_OK &&
        is_worth_a_line(&error))
        complain_of("wall time", &error);
}

static void
start_cpu(const struct cpprof__birth *birth)
{
    struct cpprof_error error;

    if ((*environment.directory ? record_cpu(birth, &error)
                                : sample_cpu(birth, &error)) != CPPROF_OK &&
        is_worth_a_line(&error))
        complain_of("CPU time", &error);
}

static void
start_watch(const struct cpprof__birth *birth)
{
    const struct cpprof_deadlock_options options = {
        .size = sizeof options, .symbolize = environment.cpu.symbolize};
    struct cpprof_error error;

    (void)birth;
    if (cpprof__watch_start(&options, environment.aborts_at_deadlocks,
                            &error) != CPPROF_OK)
        cpprof__environment_complain(&error);
}

static void
start_samplers(const struct cpprof__birth *birth)
{
    if (is_on && environment.looks_for_deadlocks)
        start_watch(birth);
    if (is_on && environment.kinds & CPPROF__KINDS_OF_WALL)
        start_wall(birth);
    if (is_on && environment.kinds & CPPROF__KIND_CPU)
        start_cpu(birth);
    if (is_child && on_late_child)
        on_late_child();
}

/* Relative paths are meant for the folder of this moment. */
CPPROF__FIRST_STEP static void
start_samplers_late(void)
{
    if (!(environment.kinds & SAMPLED_KINDS) &&
        !environment.looks_for_deadlocks && !on_late_child)
        return;
    if (*environment.out != '/' && !getcwd(folder, sizeof folder))
        strcpy(folder, "/");
    cpprof__late_begin(*environment.directory ? RECORDED_NS
                                              : CPPROF__WRITES_AFTER_NS,
                       CPPROF__OWN_TABLE, start_samplers);
}

void
cpprof__environment_before_credentials(void)
{
    if (is_on && *environment.directory && !geteuid())
        cpprof__late_hurry();
}

/* What a profiled process has made may end at once. */
CPPROF__FIRST_STEP static bool
starts_late(void)
{
    return *environment.directory
               ? !cpprof__spool_begins_command(environment.directory)
               : is_descendant;
}

static void
start_others(void)
{
    struct cpprof_error error;

    if (cpprof__environment_end_start(&environment, is_descendant, &error) !=
            CPPROF_OK &&
        is_worth_a_line(&error))
        complain_of("heap or waits", &error);
}

/* As atoi(), which touches two pages more. */
static uint32_t
number_in(const char *text)
{
    uint32_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        number = 10 * number + (uint32_t)(*text - '0');
    return number;
}

CPPROF__FIRST_STEP static void
note_owner(void)
{
    const char *owner = getenv(OWNER_VARIABLE);
    char pid[16];

    is_descendant = owner && number_in(owner) != (uint32_t)getpid();
    if (owner)
        return;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv(OWNER_VARIABLE, pid, 1);
}

CPPROF__FIRST_STEP static void
turn_on(void)
{
    is_on = true;
    store_relaxed(&cpprof__has_probes, environment.has_probes);
    if (environment.kinds & (CPPROF__KIND_HEAP | CPPROF__KIND_HEAPLEAK) ||
        environment.has_probes)
        cpprof__heap_set_rate(environment.heap_rate);
    if (environment.heap.flags & CPPROF_FLAG_LABELS)
        store_relaxed(&cpprof__wants_labels, 1);
}

CPPROF__FIRST_STEP void
cpprof__environment_read(void)
{
    const char *text = secure_getenv("CPPROF");
    struct cpprof_error error;
    enum cpprof_status status;

    if (!text || !*text)
        return;
    cpprof__heap_set_rate(0);
    status = cpprof__environment_parse(text, &environment, &error);
    if (status == CPPROF_OK && cpprof__program_has_tsan())
        status = cpprof__fail(&error, CPPROF_UNSUPPORTED, 0, CPPROF__NO_TSAN);
    if (status == CPPROF_OK)
        turn_on();
    else
        cpprof__environment_complain(&error);
}

CPPROF__FIRST_STEP const struct cpprof__environment *
cpprof__environment_http(bool *descendant)
{
    *descendant = is_descendant;
    return is_on && *environment.http ? &environment : NULL;
}

CPPROF__FIRST_STEP const struct cpprof__environment *
cpprof__environment_vm(bool *descendant)
{
    *descendant = is_descendant;
    return is_on && environment.has_vm ? &environment : NULL;
}

CPPROF__FIRST_STEP bool
cpprof__environment_asks_for_scripts(void)
{
    return is_on && (environment.has_vm || environment.has_scripts);
}

CPPROF__FIRST_STEP const struct cpprof__environment *
cpprof__environment_push(bool *descendant)
{
    *descendant = is_descendant;
    return is_on && *environment.push.url ? &environment : NULL;
}

CPPROF__FIRST_STEP const struct cpprof__environment *
cpprof__environment_context(bool *descendant)
{
    *descendant = is_descendant;
    return is_on && environment.has_context ? &environment : NULL;
}

/* The heap's rate is set already. */
static void
start_serving(void)
{
    struct cpprof_heap *mappings;
    struct cpprof_error error;

    if (environment.kinds & CPPROF__KIND_MMAP &&
        cpprof_heap_follow_mmap(&mappings, &error) != CPPROF_OK)
        cpprof__environment_complain(&error);
    if (environment.kinds & CPPROF__KIND_BLOCK)
        cpprof_block_set_rate(environment.block_rate);
    if (environment.kinds & CPPROF__KIND_MUTEX)
        cpprof_mutex_set_fraction((int)environment.mutex_fraction);
}

/* Nothing else is sampled by CPPROF then. */
static void
watch_beside_server(bool is_late)
{
    if (!environment.looks_for_deadlocks)
        return;
    if (is_late)
        cpprof__late_begin(CPPROF__WRITES_AFTER_NS, CPPROF__OWN_TABLE,
                           start_watch);
    else
        start_watch(NULL);
}

CPPROF__FIRST_STEP void
cpprof__environment_start(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!is_on)
        return;
    if (!*environment.directory || environment.has_vm)
        note_owner();
    if (environment.serves_only) {
        start_serving();
        watch_beside_server(is_descendant);
        return;
    }
    if (environment.kinds & ~CPPROF__KIND_CPU)
        start_others();
    if (starts_late())
        start_samplers_late();
    else
        start_samplers(NULL);
}

CPPROF__FIRST_STEP void
cpprof__environment_start_child(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    cpprof__environment_end_in_child();
    if (!is_on && !on_late_child)
        return;
    is_child = is_descendant = true;
    if (environment.serves_only) {
        watch_beside_server(true);
        return;
    }
    cpprof__environment_end_start_child();
    start_samplers_late();
}

/* ---- a process that runs already -------------------------------------- */

/* ---- before a filter --------------------------------------------------- */

static void
wait_on(struct cpprof__periodic *p)
{
    (void)p;
}

/* Who records has what came until now; a file is not written. */
static void
forgo_end(void)
{
    struct cpprof_error error;

    if (!*environment.directory && cpprof__environment_end_is_due()) {
        cpprof__fail(&error, CPPROF_SYSTEM, EAGAIN,
                     "heap, block, mutex: not written at the end: a filter of "
                     "system calls comes, and no thread can be made before it");
        cpprof__environment_complain(&error);
    }
    cpprof__environment_end_forgo();
}

void
cpprof__environment_before_filter(void)
{
    static struct cpprof__periodic writer; /* a child makes its own */
    static int32_t asked;                  /* the process that had it made */
    int32_t pid = (int32_t)getpid();
    int saved_errno = errno;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    cpprof__proc_note_filter();
    cpprof__maps_are_locked(false);
    if (is_on)
        cpprof__late_hurry();
    if (is_on && cpprof__environment_end_may_come() &&
        swap_acq_rel(&asked, pid) != pid && !cpprof__keeper_is_there()) {
        writer = (struct cpprof__periodic){.name = "cpprof-writer",
                                           .turn = wait_on,
                                           .period_ns = CPPROF__OWN_LOOK_NS,
                                           .flags = CPPROF__OWN_TABLE};
        if (cpprof__periodic_start(&writer))
            forgo_end();
    }
    errno = saved_errno;
}

void
cpprof__environment_on_child(void (*f)(void))
{
    on_late_child = f;
}

bool
cpprof__environment_is_on(void)
{
    return is_on;
}

enum cpprof_status
cpprof__environment_attach_read(const char *text, uint32_t *kinds,
                                const char **directory,
                                struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(&environment, 0, sizeof environment);
    status = cpprof__environment_parse(text, &environment, error);
    if (status != CPPROF_OK)
        return status;
    if (environment.has_vm || environment.serves_only || *environment.http ||
        environment.is_push_named || environment.looks_for_deadlocks ||
        environment.has_probes || environment.has_context ||
        environment.kinds & CPPROF__KIND_MMAP)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "http, push, vm, deadlock, mmap, probes and "
                            "context cannot be had in a process that runs "
                            "already");
    *kinds = environment.kinds;
    *directory = *environment.directory ? environment.directory : NULL;
    return CPPROF_OK;
}

/* A thread of ours or the program's may end, and a descriptor may be needed: so
 * timers, which need none, unless the other is asked for. */
enum cpprof_status
cpprof__environment_attach(struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    if (environment.cpu.engine == CPPROF_ENGINE_AUTO)
        environment.cpu.engine = CPPROF_ENGINE_TIMER;
    is_descendant = is_child = false;
    *folder = 0;
    turn_on();
    if (environment.kinds & ~CPPROF__KIND_CPU)
        status = cpprof__environment_end_start(&environment, false, error);
    if (status == CPPROF_OK && environment.kinds & CPPROF__KINDS_OF_WALL)
        status = *environment.directory
                     ? cpprof__wall_record(&environment.wall, NULL, error)
                     : sample_wall(NULL, error);
    if (status == CPPROF_OK && environment.kinds & CPPROF__KIND_CPU)
        status = *environment.directory ? record_cpu(NULL, error)
                                        : sample_cpu(NULL, error);
    return status;
}

static void
first_error(enum cpprof_status status, const struct cpprof_error *its,
            enum cpprof_status *first, struct cpprof_error *error)
{
    if (status != CPPROF_OK && *first == CPPROF_OK) {
        *first = status;
        *error = *its;
    }
}

enum cpprof_status
cpprof__environment_detach(struct cpprof_error *error)
{
    enum cpprof_status first = CPPROF_OK;
    struct cpprof_error its;

    cpprof__late_end();
    /* A thread that looks after the tables may be stopping it just now. */
    first_error(cpprof__default_exit(
                    &cpprof__wall_life,
                    cpprof__now_ns(CLOCK_MONOTONIC) + WALL_END_NS, &its),
                &its, &first, error);
    cpprof__recorded_wall_ended();
    first_error(cpprof__default_stop(&cpprof__cpu_life, &its), &its, &first,
                error);
    first_error(cpprof__environment_end_stop(&its), &its, &first, error);
    is_on = false;
    return first;
}

/* ---- the end ---------------------------------------------------------- */

/* A recorder has all it needs from a process that ends by _exit(). */
static void
end_recorded(void)
{
    cpprof__session_mark_ended();
    cpprof__environment_end_recorded(true);
}

CPPROF__FIRST_STEP bool
cpprof__environment_has_to_write(bool in_haste)
{
    if (in_haste && is_on && *environment.directory) {
        end_recorded();
        return false;
    }
    return cpprof__default_runs(&cpprof__cpu_life) ||
           cpprof__default_runs(&cpprof__wall_life) ||
           cpprof__environment_end_is_due();
}

bool
cpprof__environment_has_names_to_find(void)
{
    return is_on && !is_child && !*environment.directory &&
           environment.cpu.symbolize != CPPROF_SYMBOLIZE_NONE &&
           (environment.kinds & ~CPPROF__KIND_CPU ||
            cpprof__session_has_samples());
}

static void
end_default(struct cpprof__life *life, uint64_t until_ns)
{
    struct cpprof_error error;

    if (cpprof__default_exit(life, until_ns, &error) != CPPROF_OK)
        cpprof__environment_complain(&error);
}

/* The wall profile ends first, because the time that writing the others takes
 * is not the program's. */
void
cpprof__environment_write(uint64_t until_ns)
{
    struct cpprof_error error;

    end_default(&cpprof__wall_life, until_ns);
    end_default(&cpprof__cpu_life, until_ns);
    if (cpprof__environment_end(&error) != CPPROF_OK)
        cpprof__environment_complain(&error);
}

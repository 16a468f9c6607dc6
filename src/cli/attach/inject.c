/* SPDX-License-Identifier: MIT */
/*
 * Calls a function of libcpprof.so in a process that runs.
 *
 * 1. Choose a thread by what it waits in, and stop it (hold.c). Its stack says
 *    whether it may hold what pthread_create() needs (stack.c): such a thread
 *    is unsafe. It is not let go to be tried again later, because a thread that
 *    does nothing but allocate is seldom seen elsewhere.
 * 2. If this process has no area yet (guest.h), make one: a system call.
 * 3. A safe thread goes on at the entry of a seat. Of an unsafe one the return
 *    address of the outermost unsafe frame becomes that entry, and it goes on
 *    where it was. In either case it is let go.
 * 4. Read the result from the seat.
 *
 * The first three are done by a child of this program, which has no other
 * duty. Its end lets go of every thread that it asked to stop, also of one that
 * stops later.
 */
#include "cli/attach/attach.h"

#include "arch/clock.h"

#include <cpprof/object.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __x86_64__ && defined __LP64__

/* Tunables. How long a safe point is sought, a thread may take to come to the
 * entry, and the function may take, with patience (turn.c). One that does not
 * come by itself is asked no more after the second of these, and another is. */
#define SEEK_NS (30 * CPPROF__NS_PER_S)
#define SOON_NS (2 * CPPROF__NS_PER_S)
#define COME_NS (30 * CPPROF__NS_PER_S)
#define CALL_NS (60 * CPPROF__NS_PER_S)

/* Tunable. After this somebody who waits wants to know why, and may give up:
 * before, a call that has begun is soon done, and leaves nobody behind. */
#define SLOW_NS (5 * CPPROF__NS_PER_S)

/* Tunable. A try that took longer than this may have held the thread for most
 * of it (one with a deep stack, that has no tables): then the process is left
 * alone, longer by this factor, but not longer than that. */
#define LONG_TRY_NS (CPPROF__NS_PER_S / 1000)
#define REST        5
#define REST_MAX_NS (CPPROF__NS_PER_S / 10)

#define POLL_NS 200000

/* And whether it is stopped, each time after so many of these. */
#define POLLS_A_LOOK 64

/* Where areas are: so far below libc that nothing else is there. */
#define FAR       (64ull << 30)
#define ALIGNMENT (2ull << 20)

/* What the child found, in memory that it shares with us. */
struct result {
    bool done;
    bool is_back;        /* nobody comes to the seat any more */
    bool is_late;        /* a thread did not stop in time: it is let go when the
                          * child ends */
    bool is_unwanted;    /* what we found: to end before it is done */
    uint64_t area, seat; /* addresses in the process */
    unsigned number;     /* of the seat */
    struct cpprof__injected how;
    uint64_t since_ns;
    bool is_slow; /* and that was told */
    char message[CPPROF__REASON_BYTES];
};

struct attempt {
    const struct cpprof__target *target;
    struct cpprof__guest *guest; /* as it will be in the process */
    struct result *result;
    uint64_t area; /* 0: there is none yet */
    unsigned seat;
    bool is_round_two; /* whoever waits in unsafe code may be waited for */
    bool is_alone;     /* no other command is at work */
    bool is_hopeless;  /* no thread can do what this one could not */
    pid_t command;     /* this process, for its child */
};

static bool __attribute__((format(printf, 2, 3)))
fail(struct attempt *a, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(a->result->message, sizeof a->result->message, format, args);
    va_end(args);
    return false;
}

/* Has the call taken long, and has somebody asked us to end? */
static bool
is_given_up(uint64_t since_ns)
{
    return cpprof__now_ns(CLOCK_MONOTONIC) - since_ns > SLOW_NS &&
           cpprof__is_interrupted();
}

/* ---------------------------------------------------------------- area ---- */

static size_t
code_bytes(void)
{
    return (size_t)(__stop_cpprof_guest - __start_cpprof_guest);
}

/* Is there an area that was made by this very program, at this address? */
static bool
is_area(pid_t pid, uint64_t at)
{
    char code[GUEST_CODE_BYTES];

    return cpprof__target_read(pid, at, code, code_bytes()) &&
           !memcmp(code, __start_cpprof_guest, code_bytes());
}

/* Where an area is asked for. Who was killed before it had written its code is
 * known by that. */
static uint64_t
wanted_area(const struct cpprof__target *target)
{
    uint64_t libc = target->images.libc->lo & ~(ALIGNMENT - 1);

    return libc > FAR ? libc - FAR : 0;
}

/* One that was mapped and has no code yet gets it. */
static bool
finish_area(const struct cpprof__target *target, const struct cpprof_map *map)
{
    static const char none[GUEST_CODE_BYTES];
    char code[GUEST_CODE_BYTES];

    return map->start == wanted_area(target) &&
           map->limit - map->start == GUEST_BYTES && map->perms[1] == 'w' &&
           cpprof__target_read(target->pid, map->start, code, sizeof code) &&
           !memcmp(code, none, sizeof code) &&
           cpprof__target_write(target->pid, map->start, __start_cpprof_guest,
                                code_bytes());
}

static uint64_t
area_in(const struct cpprof__target *target, const struct cpprof_map *map)
{
    uint64_t last = map->limit - GUEST_CODE_BYTES;

    if (map->inode || map->n_path || map->perms[2] != 'x')
        return 0;
    if (is_area(target->pid, map->start) || finish_area(target, map))
        return map->start;
    return is_area(target->pid, last) ? last : 0;
}

/* The area of an earlier call: a page of code without a file. Another one may
 * have become a part of the same mapping. */
static uint64_t
find_area(const struct cpprof__target *target)
{
    struct cpprof_map map = {.size = sizeof map};
    struct cpprof__buffer maps = {0};
    const char *at, *end;
    uint64_t area = 0;

    cpprof__read_proc(&maps, "/proc/%d/maps", (int)target->pid);
    at = (char *)maps.data;
    end = at + (maps.n ? maps.n - 1 : 0);
    while (!area && at && cpprof_maps_next(&at, end, &map))
        area = area_in(target, &map);
    cpprof__buffer_free(&maps);
    return area;
}

/* --------------------------------------------------------------- seats ---- */

/* The head of a seat: what is in front of the functions. */
#define HEAD_BYTES offsetof(struct cpprof__guest, pthread_create)

union head {
    struct cpprof__guest guest;
    char bytes[HEAD_BYTES];
};

static bool
read_head(pid_t pid, uint64_t seat, union head *head)
{
    return cpprof__target_read(pid, seat, head->bytes, HEAD_BYTES);
}

/* Has the thread that was to come ended, as by a cancellation? Not so one that
 * has come and has gone on: the thread that it made may not have run yet. */
static bool
is_gone(pid_t pid, const struct cpprof__guest *seat)
{
    return !seat->left && tgkill(pid, seat->tid, 0) && errno == ESRCH;
}

/* Stop a thread; false: it did not. */
static bool
hold(struct attempt *a, pid_t tid, struct cpprof__held *held)
{
    bool is_held = cpprof__hold_take(held, a->target->pid, tid);

    if (held->is_late)
        a->result->is_late = true;
    return is_held;
}

/* A thread that is held was to come to the entry. Does it not any more? It gets
 * its return address back if that still has to be. */
static bool
will_not_come(const struct cpprof__held *held, const struct cpprof__guest *seat,
              uint64_t entry)
{
    uint64_t now = 0;

    if (seat->rsp || held->regs.rip == entry)
        return false;
    if (!seat->return_at)
        return held->mask != seat->blocked;
    if (held->regs.rsp > seat->return_at ||
        !cpprof__target_read(held->pid, seat->return_at, &now, sizeof now) ||
        now != entry)
        return true;
    return cpprof__target_write(held->pid, seat->return_at, &seat->rip,
                                sizeof seat->rip);
}

/* Nobody is on the way to a seat that was prepared, or is any more: it is free.
 * False: somebody may be. */
static bool
take_back(struct attempt *a, unsigned number)
{
    uint64_t at = cpprof__guest_seat(a->area, number);
    pid_t pid = a->target->pid;
    struct cpprof__held held;
    const uint64_t free_turn = 0;
    union head head;
    bool is_back;

    if (!read_head(pid, at, &head))
        return false;
    if (!head.guest.tid || is_gone(pid, &head.guest))
        is_back = true;
    else if (hold(a, head.guest.tid, &held)) {
        is_back = read_head(pid, at, &head) &&
                  will_not_come(&held, &head.guest,
                                a->area + cpprof__guest_entry(
                                              number, head.guest.return_at));
        cpprof__hold_release(&held);
    } else
        is_back = false;
    return is_back &&
           cpprof__target_write(pid, at + offsetof(struct cpprof__guest, turn),
                                &free_turn, sizeof free_turn);
}

/* May the next call have it? One that was prepared is a killed command's, as no
 * other is at work. */
static bool
is_free(struct attempt *a, unsigned number, const struct cpprof__guest *seat)
{
    if (!seat->turn)
        return true;
    if (seat->state == CPPROF__GUEST_PREPARED)
        return a->is_alone && take_back(a, number);
    return seat->left && seat->state >= CPPROF__GUEST_DONE;
}

/* Choose the seat that nobody sits in and that was free for longest. */
static bool
choose_seat(struct attempt *a)
{
    uint64_t least = UINT64_MAX, most = 0;
    union head head;
    unsigned i;

    for (i = 0; i < GUEST_SEATS; i++) {
        uint64_t at = cpprof__guest_seat(a->area, i);

        if (!read_head(a->target->pid, at, &head))
            return false;
        if (head.guest.turn > most)
            most = head.guest.turn;
        if (head.guest.turn < least && is_free(a, i, &head.guest)) {
            least = head.guest.turn;
            a->seat = i;
        }
    }
    a->guest->turn = most + 1;
    return least != UINT64_MAX;
}

#define WITHIN "a thread is on a stack within another"

static const char *
make_area(struct attempt *a, struct cpprof__held *held,
          const struct cpprof__safety *safety)
{
    const uint64_t map[6] = {wanted_area(a->target),
                             GUEST_BYTES,
                             PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                             (uint64_t)-1,
                             0};
    const char *why =
        safety->may_be_nested ? WITHIN : cpprof__hold_prepare(held, a->target);
    long area;

    if (why)
        return why;
    area = cpprof__hold_syscall(held, a->target, SYS_mmap, map);
    if (area < 0 && area > -4096) {
        a->is_hopeless = area == -EACCES || area == -ENOMEM;
        return "the process cannot map memory for code";
    }
    if (!cpprof__target_write(held->pid, (uint64_t)area, __start_cpprof_guest,
                              code_bytes()))
        return "memory of the process cannot be written";
    a->area = (uint64_t)area;
    a->seat = 0;
    a->guest->turn = 1;
    return NULL;
}

/* -------------------------------------------------------------- thread ---- */

/* Leave it to itself, on the way to the entry. */
static bool
send_to_entry(struct cpprof__held *held, uint64_t entry, uint64_t blocked)
{
    bool done;

    held->regs.rip = entry;
    /* The registers first: from then on the mask of before comes back. */
    done = !ptrace(PTRACE_SETREGS, held->tid, 0, &held->regs) &&
           !ptrace(PTRACE_SETSIGMASK, held->tid, sizeof blocked, &blocked);
    ptrace(PTRACE_DETACH, held->tid, 0, 0);
    return done;
}

/* The seat is written, the thread is sent to it or will come. */
static bool
seat_thread(struct attempt *a, struct cpprof__held *held,
            const struct cpprof__safety *safety)
{
    uint64_t entry = a->area + cpprof__guest_entry(a->seat, !safety->is_safe);
    struct result *r = a->result;
    struct cpprof__guest *g = a->guest;
    bool done;

    r->area = a->area;
    r->number = a->seat;
    r->seat = cpprof__guest_seat(a->area, a->seat);
    g->state = CPPROF__GUEST_PREPARED;
    g->tid = held->tid;
    g->return_at = safety->is_safe ? 0 : safety->return_at;
    g->rip = safety->is_safe ? held->regs.rip : safety->return_to;
    g->mask = held->mask;
    g->has_mask = safety->is_safe;
    g->blocked = cpprof__images_blocked(&a->target->images);
    g->call = safety->is_safe ? held->call : CPPROF__GUEST_NO_CALL;
    g->held_back = safety->is_safe ? held->held_back : 0;
    g->has_time = safety->is_safe && held->has_time;
    if (!cpprof__target_write(held->pid, r->seat, g, sizeof *g)) {
        cpprof__hold_release(held);
        return fail(a, "memory of the process cannot be written");
    }
    if (safety->is_safe) {
        done = send_to_entry(held, entry, g->blocked);
    } else {
        r->how.was_unsafe = true;
        done =
            cpprof__target_write(held->pid, g->return_at, &entry, sizeof entry);
        cpprof__hold_release(held);
    }
    r->how.held_ns = cpprof__now_ns(CLOCK_MONOTONIC) - held->since_ns;
    r->done = done;
    return done || fail(a, "a thread could not be borrowed");
}

/* Signals 32 and 33. Who blocks one of them is in its handler: there somebody
 * may wait for it who has the lock that pthread_create() takes. */
#define OF_LIBC (3ull << 31)

/* Flags with which our code would be ended by a signal. */
#define FLAG_TRAP      (1u << 8)
#define FLAG_ALIGNMENT (1u << 18)

/* Stop it, and borrow it if it may be. */
static bool
try_thread(struct attempt *a, pid_t tid)
{
    struct cpprof__held held;
    struct cpprof__safety safety;
    const char *why;

    if (!hold(a, tid, &held))
        return fail(a, "thread %d did not stop", (int)tid);
    a->result->how.n_tries++;
    if (!cpprof__attach_is_same(a->target)) {
        cpprof__hold_release(&held);
        return fail(a, "it runs another program now");
    }
    safety = cpprof__stack_is_safe(a->target, &held.regs, held.is_running);
    if (!safety.is_safe &&
        (!safety.return_at || !(held.is_running || a->is_round_two))) {
        cpprof__hold_release(&held);
        return fail(a,
                    "thread %d is where it cannot be borrowed: in the "
                    "loader, in malloc or as in these",
                    (int)tid);
    }
    if (held.mask & OF_LIBC)
        why = "a thread is in a handler of libc's, or blocks its signals";
    else if (!cpprof__hold_has_descriptor(&held, a->target))
        why = "a thread is none of libc's, or has moved its thread pointer";
    else if (held.regs.eflags & (FLAG_TRAP | FLAG_ALIGNMENT))
        why = "a thread runs by single steps, or with alignment checks";
    else if (cpprof__hold_is_dispatched(&held))
        why = "the program answers system calls of a thread itself "
              "(PR_SET_SYSCALL_USER_DISPATCH)";
    else if (held.has_time && safety.may_be_nested)
        why = WITHIN;
    else
        why = a->area ? NULL : make_area(a, &held, &safety);
    if (why) {
        cpprof__hold_release(&held);
        return fail(a, "%s", why);
    }
    return seat_thread(a, &held, &safety);
}

/* ------------------------------------------------------------- threads ---- */

/* Has the command ended, does it not want this any more, or does a thread wait
 * for the end of this child? */
static bool
has_to_end(const struct attempt *a)
{
    return getppid() != a->command || a->result->is_late ||
           __atomic_load_n(&a->result->is_unwanted, __ATOMIC_RELAXED);
}

/* A try holds one thread of the process. Long tries are a sixth of the time, as
 * far as the rest has no limit; short ones have the pauses between rounds. */
static bool
try_and_rest(struct attempt *a, pid_t tid)
{
    const char *why = cpprof__thread_must_not_stop(a->target->pid, tid);
    uint64_t begun_ns, took_ns;
    bool done;

    if (why)
        return fail(a, "%s", why);
    begun_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    done = try_thread(a, tid);
    took_ns = cpprof__now_ns(CLOCK_MONOTONIC) - begun_ns;
    if (!done && took_ns > LONG_TRY_NS)
        cpprof__sleep_ns(took_ns < REST_MAX_NS / REST ? took_ns * REST
                                                      : REST_MAX_NS);
    return done;
}

/* Until a thread is borrowed. */
static void
borrow(struct attempt *a)
{
    struct cpprof__patience patience;
    struct cpprof__candidate *threads;
    size_t n, i;
    bool done = false;

    a->area = a->result->area ? a->result->area : find_area(a->target);
    if (a->area && !choose_seat(a))
        a->area = 0;
    cpprof__patience_begin(&patience, SEEK_NS);
    do {
        threads = cpprof__threads_to_try(a->target, &n);
        if (!n)
            fail(a, "no thread of it can be stopped: all of them are in the "
                    "kernel, have a seccomp filter or are gone");
        for (i = 0; i < n && !done && !has_to_end(a); i++)
            done = try_and_rest(a, threads[i].tid);
        free(threads);
        if (done)
            return;
        if (cpprof__attach_is_stopped(a->target->pid)) {
            fail(a, CPPROF__STOPPED_WORDS, (int)a->target->pid);
            return;
        }
        a->is_round_two = true;
        cpprof__sleep_ns(5000000);
    } while (!a->is_hopeless && cpprof__patience_has(&patience) &&
             !has_to_end(a) && !kill(a->target->pid, 0) &&
             cpprof__attach_is_same(a->target));
}

/* --------------------------------------------------------------- child ---- */

/* A thread that is stopped waits for us: we come first where we may, and end
 * when it was let go, whatever a terminal says. */
static void
prepare_child(void)
{
    sigset_t set;

    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    setpriority(PRIO_PROCESS, 0, -20);
}

/* Until the child has ended; false: it cannot be waited for. */
static bool
wait_for_child(struct attempt *a, pid_t child)
{
    pid_t ended;
    int status;

    while (!(ended = waitpid(child, &status, WNOHANG))) {
        if (is_given_up(a->result->since_ns))
            __atomic_store_n(&a->result->is_unwanted, true, __ATOMIC_RELAXED);
        cpprof__sleep_ns(POLL_NS);
    }
    return ended == child;
}

/* Threads are stopped by a child of ours alone. */
static bool
by_child(struct attempt *a, void (*work)(struct attempt *a))
{
    pid_t child = fork();

    if (child == 0) {
        prepare_child();
        work(a);
        _exit(0);
    }
    return child > 0 && wait_for_child(a, child);
}

static bool
borrow_by_child(struct attempt *a, char message[CPPROF__REASON_BYTES])
{
    if (!by_child(a, borrow))
        snprintf(a->result->message, sizeof a->result->message, "%s",
                 strerror(errno));
    if (!a->result->done)
        memcpy(message, a->result->message, sizeof a->result->message);
    return a->result->done;
}

static void
take_back_seat(struct attempt *a)
{
    a->area = a->result->area;
    a->result->is_back = take_back(a, a->result->number);
}

/* -------------------------------------------------------------- result ---- */

static uint32_t
read_state(const struct cpprof__target *t, const struct result *r)
{
    uint32_t state = CPPROF__GUEST_FREE;

    cpprof__target_read(t->pid, r->seat + offsetof(struct cpprof__guest, state),
                        &state, sizeof state);
    return state;
}

static bool
will_nobody_come(const struct cpprof__target *t, const struct result *r)
{
    union head head;

    return read_head(t->pid, r->seat, &head) &&
           head.guest.state == CPPROF__GUEST_PREPARED &&
           is_gone(t->pid, &head.guest);
}

/* Wait for another state than this one. A process that is stopped has none. */
static uint32_t
wait_while(const struct cpprof__target *t, struct result *r, uint32_t state,
           uint64_t patience_ns)
{
    struct cpprof__patience patience;
    unsigned n = 0;
    uint32_t now;

    cpprof__patience_begin(&patience, patience_ns);
    while ((now = read_state(t, r)) == state &&
           cpprof__patience_has(&patience) &&
           (++n % POLLS_A_LOOK ||
            (!cpprof__attach_is_stopped(t->pid) && !is_given_up(r->since_ns) &&
             !will_nobody_come(t, r)))) {
        if (!r->is_slow &&
            cpprof__now_ns(CLOCK_MONOTONIC) - r->since_ns > SLOW_NS) {
            r->is_slow = true;
            if (t->is_slow)
                t->is_slow(t);
        }
        cpprof__sleep_ns(POLL_NS);
    }
    return now;
}

/* *again: the thread did not come, and another may be tried. */
static bool
read_result(struct attempt *a, char message[CPPROF__REASON_BYTES], bool *again)
{
    const struct cpprof__target *t = a->target;
    struct cpprof__guest *g = a->guest;
    struct result *r = a->result;
    uint32_t state = wait_while(t, r, CPPROF__GUEST_PREPARED, SOON_NS);

    r->is_back = false;
    *again = state == CPPROF__GUEST_PREPARED && by_child(a, take_back_seat) &&
             r->is_back;
    r->is_late = false; /* that child has ended */
    if (state == CPPROF__GUEST_PREPARED && !*again)
        state = wait_while(t, r, CPPROF__GUEST_PREPARED, COME_NS);
    if (state == CPPROF__GUEST_RUNS)
        state = wait_while(t, r, CPPROF__GUEST_RUNS, CALL_NS);
    if (state == CPPROF__GUEST_FREE ||
        !cpprof__target_read(t->pid, r->seat, g, sizeof *g))
        snprintf(message, CPPROF__REASON_BYTES, "it ended meanwhile");
    else if (state == CPPROF__GUEST_NO_THREAD)
        snprintf(message, CPPROF__REASON_BYTES, "pthread_create: %s",
                 strerror(g->result));
    else if (state != CPPROF__GUEST_DONE && cpprof__attach_is_stopped(t->pid))
        snprintf(message, CPPROF__REASON_BYTES, CPPROF__STOPPED_WORDS,
                 (int)t->pid);
    else if (state != CPPROF__GUEST_DONE && is_given_up(r->since_ns))
        snprintf(message, CPPROF__REASON_BYTES,
                 "interrupted before it answered");
    else if (state == CPPROF__GUEST_PREPARED)
        snprintf(message, CPPROF__REASON_BYTES,
                 "no thread of it came to where it can be borrowed");
    else if (state != CPPROF__GUEST_DONE)
        snprintf(message, CPPROF__REASON_BYTES,
                 "it did not answer: a thread that cpprof made in it still "
                 "waits for a lock or a processor, and then ends");
    else
        snprintf(message, CPPROF__REASON_BYTES, "%.*s",
                 (int)strnlen(g->message, sizeof g->message), g->message);
    return state == CPPROF__GUEST_DONE && !g->result;
}

/* --------------------------------------------------------------- calls ---- */

static bool
fill_guest(struct cpprof__guest *g, const struct cpprof__target *t,
           const char *function, const char *argument)
{
    const struct cpprof__image *libc = t->images.libc;

#define TAKE(field, name)                                                      \
    g->field = (void *)(uintptr_t)cpprof__image_symbol(libc, name)
    TAKE(pthread_create, "pthread_create");
    TAKE(attr_init, "pthread_attr_init");
    TAKE(attr_setstacksize, "pthread_attr_setstacksize");
    TAKE(pthread_detach, "pthread_detach");
    TAKE(pthread_self, "pthread_self");
    TAKE(register_atfork, "__register_atfork");
    TAKE(dlopen, "dlopen");
    TAKE(dlsym, "dlsym");
    TAKE(dlerror, "dlerror");
    TAKE(errno_location, "__errno_location");
#undef TAKE
    /* Its path may be one of another root, or nothing may be there any more. */
    if (t->loaded)
        g->known = (void *)(uintptr_t)cpprof__image_symbol(t->loaded, function);
    g->has_argument = argument != NULL;
    cpprof__hold_describe_xstate(g);
    strcpy(g->thread, GUEST_THREAD);
    return snprintf(g->function, sizeof g->function, "%s", function) <
               (int)sizeof g->function &&
           snprintf(g->library, sizeof g->library, "%s", t->library) <
               (int)sizeof g->library &&
           snprintf(g->argument, sizeof g->argument, "%s",
                    argument ? argument : "") < (int)sizeof g->argument;
}

/* One thread that comes or does not, until one does; a child for each. */
static bool
call(struct attempt *a, char message[CPPROF__REASON_BYTES])
{
    const struct cpprof__guest asked = *a->guest;
    struct cpprof__patience patience;
    bool done, again;

    cpprof__patience_begin(&patience, SEEK_NS);
    do {
        *a->guest = asked;
        a->result->done = again = a->result->how.was_unsafe = false;
        a->result->is_late = false;
        done = borrow_by_child(a, message) && read_result(a, message, &again);
    } while (!done && (again || a->result->is_late) &&
             !is_given_up(a->result->since_ns) &&
             cpprof__patience_has(&patience));
    return done;
}

bool
cpprof__inject(const struct cpprof__target *target, const char *function,
               const char *argument, char message[CPPROF__REASON_BYTES],
               struct cpprof__injected *how)
{
    struct attempt a = {.target = target, .command = getpid()};
    uint64_t start_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    bool done = false;
    int turn = -1;

    a.guest = calloc(1, sizeof *a.guest);
    a.result = mmap(NULL, sizeof *a.result, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(message, CPPROF__REASON_BYTES, "out of memory");
    if (a.guest && a.result != MAP_FAILED) {
        a.result->since_ns = start_ns;
        snprintf(message, CPPROF__REASON_BYTES, "too much to be said at once");
        done = fill_guest(a.guest, target, function, argument);
    }
    if (done && !cpprof__turn_take(target->pid, &turn)) {
        snprintf(message, CPPROF__REASON_BYTES, CPPROF__NO_TURN);
        done = false;
    }
    a.is_alone = turn >= 0;
    if (done) {
        done = call(&a, message);
        *how = a.result->how;
        how->total_ns = cpprof__now_ns(CLOCK_MONOTONIC) - start_ns;
    }
    cpprof__turn_release(turn);
    if (a.result != MAP_FAILED)
        munmap(a.result, sizeof *a.result);
    free(a.guest);
    return done;
}

#else

bool
cpprof__inject(const struct cpprof__target *target, const char *function,
               const char *argument, char message[CPPROF__REASON_BYTES],
               struct cpprof__injected *how)
{
    snprintf(message, CPPROF__REASON_BYTES,
             "attaching is not known on this processor yet");
    return false;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Daemons. A program that becomes a daemon lets a child call setsid() and ends,
 * often with another fork in between. If CPPROF=http= served the program, the
 * child takes over: a thread of ours waits for the parent's end and then
 * listens at the same address. A child that calls setsid() while its parent
 * stays alive is no daemon and does not take over.
 *
 * Workers: where each process has a socket of its own ("unix:/run/%p.sock"), a
 * child that lives for a second serves, too, and so does a program that one of
 * them started.
 */
#include "http/listen.h"

#include "arch/clock.h"
#include "arch/place.h"
#include "collect/process/environment.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Tunables. How long a parent may take to end, and its descriptors to close
 * then; how often we look; and how soon after setsid() a fork is the second
 * one of a daemon. */
#define PATIENCE_NS 10000000000u
#define CLOSING_NS  2000000000u
#define LOOK_NS     20000000u
#define CHAIN_NS    1000000000u

/* How old a child is that serves beside its parent. */
#define CHILD_NS 1000000000u

/* The parent, if it served or was about to; 0: it did not. And the process that
 * these values describe, because a child of vfork has its parent's memory. */
static _Atomic pid_t parent CPPROF__AT_START, self CPPROF__AT_START;

/* The process that serves by CPPROF or is about to; and since when it does so
 * in place of its parent, 0: from its start. */
static _Atomic pid_t serving CPPROF__AT_START;
static _Atomic uint64_t since_ns CPPROF__AT_START;

static uint64_t
now(void)
{
    return cpprof__now_ns(CLOCK_MONOTONIC);
}

static void
doze(void)
{
    cpprof__sleep_ns(LOOK_NS);
}

void
cpprof__http_follow_note(bool serves)
{
    serving = serves ? getpid() : 0;
}

/* Wait until the parent has ended and its address is free, then listen there.
 * After a pause of our threads this begins anew. */
static bool
follow(void *arg)
{
    uint64_t until = now() + PATIENCE_NS;
    struct cpprof_error error = {.sys = EADDRINUSE};

    (void)arg;
    while (getppid() == parent && now() <= until) {
        if (cpprof__own_thread_must_leave())
            return true;
        doze();
    }
    until = getppid() == parent ? 0 : now() + CLOSING_NS;
    while (now() <= until) {
        if (cpprof__own_thread_must_leave())
            return true;
        if (cpprof__http_listen_as_asked(&error))
            return false;
        if (error.sys != EADDRINUSE)
            break;
        doze();
    }
    serving = 0;
    if (error.sys != EADDRINUSE)
        cpprof__environment_complain(&error);
    return false;
}

/* Has each process a socket of its own, by %p in its name? */
static bool
is_for_each(void)
{
    bool is_descendant;
    const struct cpprof__environment *env =
        cpprof__environment_http(&is_descendant);
    const char *at = env && !strncmp(env->http, "unix:", 5) ? env->http : "";

    while ((at = strchr(at, '%')) && at[1])
        if (at[1] == 'p')
            return true;
        else
            at += 2;
    return false;
}

static bool
serve_beside(void *arg)
{
    uint64_t until = now() + CHILD_NS;
    struct cpprof_error error;

    (void)arg;
    while (now() < until) {
        if (cpprof__own_thread_must_leave())
            return true;
        doze();
    }
    if (cpprof__http_listen_as_asked(&error))
        return false;
    serving = 0;
    cpprof__environment_complain(&error);
    return false;
}

static void
begin(bool (*how)(void *arg))
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    since_ns = now();
    serving = getpid();
    if (cpprof__http_thread(how, NULL))
        serving = 0;
}

bool
cpprof__http_serve_later(void)
{
    if (!is_for_each())
        return false;
    self = getpid();
    begin(serve_beside);
    return true;
}

void
cpprof__http_daemonized(void)
{
    if (parent && !serving && self == getpid())
        begin(follow);
}

CPPROF__FIRST_STEP void
cpprof__http_begin_child(void)
{
    bool is_second = since_ns && now() - since_ns < CHAIN_NS;

    parent = serving;
    self = getpid();
    serving = 0;
    since_ns = 0;
    if (parent && is_for_each())
        begin(serve_beside);
    else if (parent && is_second)
        begin(follow);
}

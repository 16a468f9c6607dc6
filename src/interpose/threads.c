/* SPDX-License-Identifier: MIT */
/*
 * Thread creation: each new thread announces itself to the session before it
 * runs the program's start routine. The wrapper ends in a tail call, so that
 * no frame of ours stays on the thread's stack. Where a limit on threads lets
 * no more be made, threads of ours give way.
 */
#include "collect/threads/threads.h"
#include "collect/labels/labels.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"
#include "collect/threads/stacks.h"
#include "collect/threads/thread_creation.h"
#include "interpose/parts.h"
#include "interpose/take_over.h"
#include "own/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* The thread is in pthread_create() or thrd_create(), ours or libc's: it may
 * have their locks. */
static __thread volatile bool in_creation;

static void
end_creation(const bool *unused)
{
    (void)unused;
    in_creation = false;
}

#define IN_CREATION                                                            \
    bool creates __attribute__((cleanup(end_creation), unused)) =              \
        in_creation = true

bool
cpprof__in_thread_creation(void)
{
    return in_creation;
}

/* POSIX has no word for the default stack size but an attribute object. */
static size_t
stack_bytes_of(const pthread_attr_t *attr)
{
    pthread_attr_t defaults;
    size_t n = 0;

    if (attr) {
        pthread_attr_getstacksize(attr, &n);
    } else if (!pthread_attr_init(&defaults)) {
        pthread_attr_getstacksize(&defaults, &n);
        pthread_attr_destroy(&defaults);
    }
    return n;
}

/* What a thread created without a session takes with it. */
struct note {
    uintptr_t start;
    void *arg;
    const void *labels;
    size_t stack_bytes;
    struct cpprof__thread_creation *creation;
};

static struct note *
make_note(uintptr_t start, void *arg, size_t stack_bytes)
{
    CPPROF__EXEMPT;
    struct note *note = cpprof__malloc(sizeof *note);

    if (note)
        *note =
            (struct note){start, arg, cpprof_labels_ref(cpprof__self.labels),
                          stack_bytes, NULL};
    return note;
}

static void
drop_note(struct note *note)
{
    if (note)
        cpprof__labels_inherited_free(note->labels);
    cpprof__free(note);
}

static struct note
take_note(void *arg)
{
    struct note note = *(struct note *)arg;
    CPPROF__UNCANCELLED;

    memset(arg, 0, sizeof note); /* a search for lost blocks finds no pointer */
    cpprof__free(arg);
    cpprof__thread_creation_started(note.creation);
    cpprof__stack_of_hooks(note.stack_bytes);
    cpprof__thread_creation(note.start, note.labels);
    return note;
}

static struct cpprof__thread *
announce(uintptr_t start, void *arg, size_t stack_bytes)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    return cpprof__thread_announce(start, arg, stack_bytes);
}

/* The record of who created the thread travels with its start argument. */
static void
set_creation(struct cpprof__thread *t, struct note *note,
             struct cpprof__thread_creation *creation)
{
    if (t)
        t->creation = creation;
    else if (note)
        note->creation = creation;
    else
        cpprof__thread_creation_cancel(creation);
}

/* A thread may be cancelled before it begins. It then ends in its own code and
 * not in ours. */
static void
started(struct cpprof__thread *t)
{
    CPPROF__UNCANCELLED;

    cpprof__thread_creation_started(t->creation);
    cpprof__stack_of_hooks(t->stack_bytes);
    cpprof__thread_started(t);
}

static void *
run_pthread(void *slot)
{
    struct cpprof__thread *t = slot;
    void *(*start)(void *) = (void *(*)(void *))t->start;
    void *arg = t->start_arg;

    cpprof__thread_begins_at(0, __builtin_return_address(0));
    started(t);
    return start(arg);
}

static void *
run_pthread_later(void *arg)
{
    struct note note = take_note(arg);

    cpprof__thread_begins_at(0, __builtin_return_address(0));
    return ((void *(*)(void *))note.start)(note.arg);
}

TAKE_OVER(pthread_create, int,
          (pthread_t *restrict thread, const pthread_attr_t *restrict attr,
           void *(*start)(void *), void *restrict arg),
          (thread, attr, start, arg))

CPPROF__HOOK static int
pthread_create_on(pthread_t *restrict thread,
                  const pthread_attr_t *restrict attr, void *(*start)(void *),
                  void *restrict arg)
{
    size_t stack_bytes;
    struct cpprof__thread *t;
    struct note *note;
    struct cpprof__thread_creation *creation;
    struct cpprof__alone alone;
    void *(*run)(void *);
    int failed;
    IN_CREATION;

    /* A library on a thread of ours: the resolver, for instance. */
    if (cpprof__own_thread_is_this())
        return cpprof__own_thread_create(thread, attr, start, arg);
    /* A child of a bare clone(): who has our locks may not be there. */
    if (cpprof__own_threads_are_anothers())
        return cpprof__real(pthread_create)(thread, attr, start, arg);
    stack_bytes = stack_bytes_of(attr);
    t = announce((uintptr_t)start, arg, stack_bytes);
    note = t ? NULL : make_note((uintptr_t)start, arg, stack_bytes);
    creation = cpprof__thread_creation_announce((uintptr_t)start);
    set_creation(t, note, creation);
    if (!t && !note) /* no memory: a scan will find it */
        return cpprof__real(pthread_create)(thread, attr, start, arg);
    run = t ? run_pthread : run_pthread_later;
    arg = t ? (void *)t : (void *)note;
    failed = cpprof__real(pthread_create)(thread, attr, run, arg);
    if (failed == EAGAIN && cpprof__alone_again(&alone))
        failed = cpprof__alone_end(
            &alone, cpprof__real(pthread_create)(thread, attr, run, arg));
    if (failed)
        cpprof__thread_creation_cancel(creation);
    if (failed && t)
        cpprof__thread_cancel(t);
    if (failed)
        drop_note(note);
    return failed;
}

static int
run_thrd(void *slot)
{
    struct cpprof__thread *t = slot;
    thrd_start_t start = (thrd_start_t)t->start;
    void *arg = t->start_arg;

    cpprof__thread_begins_at(1, __builtin_return_address(0));
    started(t);
    return start(arg);
}

static int
run_thrd_later(void *arg)
{
    struct note note = take_note(arg);

    cpprof__thread_begins_at(1, __builtin_return_address(0));
    return ((thrd_start_t)note.start)(note.arg);
}

TAKE_OVER(thrd_create, int, (thrd_t * thread, thrd_start_t start, void *arg),
          (thread, start, arg))

/* glibc's thrd_create reaches the creation of threads without a name that
 * could be taken over. */
CPPROF__HOOK static int
thrd_create_on(thrd_t *thread, thrd_start_t start, void *arg)
{
    size_t stack_bytes = stack_bytes_of(NULL);
    struct cpprof__thread *t;
    struct note *note;
    struct cpprof__thread_creation *creation;
    struct cpprof__alone alone;
    thrd_start_t run;
    int failed;
    IN_CREATION;

    if (cpprof__own_threads_are_anothers())
        return cpprof__real(thrd_create)(thread, start, arg);
    t = announce((uintptr_t)start, arg, stack_bytes);
    note = t ? NULL : make_note((uintptr_t)start, arg, stack_bytes);
    creation = cpprof__thread_creation_announce((uintptr_t)start);
    run = t ? run_thrd : run_thrd_later;
    set_creation(t, note, creation);
    if (!t && !note)
        return cpprof__real(thrd_create)(thread, start, arg);
    arg = t ? (void *)t : (void *)note;
    failed = cpprof__real(thrd_create)(thread, run, arg);
    if (failed == thrd_error && cpprof__alone_again(&alone))
        failed = cpprof__alone_end(&alone,
                                   cpprof__real(thrd_create)(thread, run, arg));
    if (failed != thrd_success)
        cpprof__thread_creation_cancel(creation);
    if (failed != thrd_success && t)
        cpprof__thread_cancel(t);
    if (failed != thrd_success)
        drop_note(note);
    return failed;
}

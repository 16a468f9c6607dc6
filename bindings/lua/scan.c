/* SPDX-License-Identifier: MIT */
/*
 * Which coroutine runs, where the host resumed it: lua_resume tells nobody. But
 * who runs a coroutine has its address on the native stack, and the coroutine
 * has the address of its innermost protected call, which is on the same stack;
 * both words together, and that it is of the same state, are no accident.
 *
 * What the words point to is read by the kernel, as they may point anywhere. A
 * coroutine that is found runs, so it is alive as long as the handler takes.
 */
#include "state.h"

#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#if HAVE_LUA54
/* Tunable: words of the stack that are looked at, from the innermost on. */
#define WORDS_MAX 4096

/* Of lua_State, up to what inside_words() tells. */
#define STATE_WORDS 25

/* Which words of these were looked at. */
#define SEEN 64

struct scan {
    lua_State *known;
    uintptr_t low, high; /* of the stack */
    uint32_t jump_at, global_at;
    uintptr_t global;
    uintptr_t seen[SEEN];
    lua_State *found;
    uintptr_t depth;
};

/* GCObject: a pointer, then what it is. */
#define TYPE_WORD 1

static bool
read_words(uintptr_t at, uintptr_t *words)
{
    struct iovec own = {words, STATE_WORDS * sizeof *words};
    struct iovec there = {(void *)at, STATE_WORDS * sizeof *words};

    return process_vm_readv(getpid(), &own, 1, &there, 1, 0) ==
           (ssize_t)own.iov_len;
}

static bool
may_be_state(const struct scan *scan, uintptr_t word)
{
    return word > 0xffff && word % sizeof word == 0 && word >> 47 == 0 &&
           (word < scan->low || word >= scan->high) &&
           word != (uintptr_t)scan->known;
}

static void
look_at(struct scan *scan, uintptr_t word)
{
    uintptr_t *seen = &scan->seen[word / sizeof word % SEEN];
    uintptr_t words[STATE_WORDS], jump;

    if (*seen == word || !may_be_state(scan, word))
        return;
    *seen = word;
    if (!read_words(word, words))
        return;
    jump = words[scan->jump_at];
    if (words[scan->global_at] != scan->global ||
        (words[TYPE_WORD] & 0xff) != LUA_TTHREAD || jump < scan->low ||
        jump >= scan->high || (scan->found && jump >= scan->depth))
        return;
    scan->found = (lua_State *)word;
    scan->depth = jump;
}

/* Where the stack of this thread ends, at most; as inside.c has it. */
static uintptr_t
end_of_stack(uintptr_t low)
{
    uintptr_t self = (uintptr_t)pthread_self();
    uintptr_t most = low + WORDS_MAX * sizeof low;

    return self > low && self < most ? self : most;
}

/* The end of the main thread's stack is not known: the kernel is asked. */
static size_t
copy_words(uintptr_t at, uintptr_t *words, size_t n)
{
    struct iovec own = {words, n * sizeof *words};
    struct iovec there = {(void *)at, n * sizeof *words};
    ssize_t got = process_vm_readv(getpid(), &own, 1, &there, 1, 0);

    return got > 0 ? (size_t)got / sizeof *words : 0;
}

/* The innermost protected call of what is known ends the part of the stack that
 * is of interest. */
static uintptr_t
end_of_scan(lua_State *L, uintptr_t low)
{
    uintptr_t end = end_of_stack(low), depth = inside_depth(L);

    return depth > low && depth < end ? depth : end;
}

lua_State *
scan_stack(lua_State *L, uintptr_t low)
{
    struct scan scan = {.known = L, .low = low};
    uintptr_t words[128];
    size_t n, i;
    uintptr_t at = low;

    if (!inside_words(&scan.jump_at, &scan.global_at))
        return NULL;
    scan.global = ((const uintptr_t *)(const void *)L)[scan.global_at];
    scan.high = end_of_scan(L, low);
    do {
        n = (scan.high - at) / sizeof at;
        n = copy_words(at, words, n < 128 ? n : 128);
        for (i = 0; i < n; i++)
            look_at(&scan, words[i]);
        at += n * sizeof at;
    } while (n == 128 && at < scan.high);
    return scan.found;
}

#else
lua_State *
scan_stack(lua_State *L, uintptr_t low)
{
    return NULL;
}
#endif

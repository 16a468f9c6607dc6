/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails: for programs linked with --wrap (see
 * meson.build). Counts what is alive, too, so that a test can bound it.
 */
#ifndef TESTS_OOM_H
#define TESTS_OOM_H

#include <errno.h>
#include <libdeflate.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    long countdown; /* allocations that still succeed; -1: all */
    bool once;      /* those after the one that fails, too */
    /* Allocations not yet freed, since oom_watch(); threads of ours count. */
    long n_live;
    size_t in_bytes;
    size_t peak_bytes;
} oom = {.countdown = -1};

void *
__real_malloc(size_t n);
void *
__real_calloc(size_t n, size_t size);
void *
__real_realloc(void *p, size_t n);
void *
__real_aligned_alloc(size_t alignment, size_t n);
void
__real_free(void *p);
char *
__real_realpath(const char *path, char *resolved);

void *
__wrap_malloc(size_t n);
void *
__wrap_calloc(size_t n, size_t size);
void *
__wrap_realloc(void *p, size_t n);
void *
__wrap_aligned_alloc(size_t alignment, size_t n);
void
__wrap_free(void *p);
char *
__wrap_realpath(const char *path, char *resolved);
char *
__wrap_strdup(const char *text);
char *
__wrap_strndup(const char *text, size_t n);

static bool
oom_now(void)
{
    if (oom.countdown < 0)
        return false;
    if (oom.countdown > 0) {
        oom.countdown--;
        return false;
    }
    if (oom.once)
        oom.countdown = -1;
    errno = ENOMEM;
    return true;
}

static void *
oom_born(void *p)
{
    if (p) {
        __atomic_add_fetch(&oom.n_live, 1, __ATOMIC_RELAXED);
        oom.in_bytes += malloc_usable_size(p);
        if (oom.in_bytes > oom.peak_bytes)
            oom.peak_bytes = oom.in_bytes;
    }
    return p;
}

static void
oom_died(void *p)
{
    if (p) {
        __atomic_sub_fetch(&oom.n_live, 1, __ATOMIC_RELAXED);
        oom.in_bytes -= malloc_usable_size(p);
    }
}

void *
__wrap_malloc(size_t n)
{
    return oom_now() ? NULL : oom_born(__real_malloc(n));
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return oom_now() ? NULL : oom_born(__real_calloc(n, size));
}

void *
__wrap_realloc(void *p, size_t n)
{
    if (oom_now())
        return NULL;
    oom_died(p);
    return oom_born(__real_realloc(p, n));
}

void *
__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return oom_now() ? NULL : oom_born(__real_aligned_alloc(alignment, n));
}

void
__wrap_free(void *p)
{
    oom_died(p);
    __real_free(p);
}

/* What libc allocates for us. */
char *
__wrap_realpath(const char *path, char *resolved)
{
    if (resolved)
        return __real_realpath(path, resolved);
    return oom_now() ? NULL : oom_born(__real_realpath(path, resolved));
}

char *
__wrap_strndup(const char *text, size_t n)
{
    size_t length = strnlen(text, n);
    char *copy = __wrap_malloc(length + 1);

    if (copy) {
        memcpy(copy, text, length);
        copy[length] = 0;
    }
    return copy;
}

char *
__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

/* Start over: everything from here on is counted, and nothing fails. */
static void
oom_watch(void)
{
    libdeflate_set_memory_allocator(__wrap_malloc, __wrap_free);
    oom.countdown = -1;
    oom.n_live = 0;
    oom.in_bytes = 0;
    oom.peak_bytes = 0;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * jemalloc's own names: seen where libcpprof-jemalloc.so is in front of it, and
 * not there at all for a program that asks whether jemalloc is. Starts itself
 * again with the libraries preloaded.
 */
#include "command.h"
#include "heap_heading.h"
#include "tap.h"

#include <cpprof/heap.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N     100
#define BYTES 1000

static void *
need(const char *name)
{
    void *f = dlsym(RTLD_DEFAULT, name);

    if (!f)
        bail("no %s", name);
    return f;
}

static void
check_change(int64_t before, int64_t want, const char *what)
{
    check_near((double)(heap_heading().inuse_bytes - before), (double)want,
               2000, what);
}

static int
inside(void)
{
    void *(*mallocx)(size_t, int) = (void *(*)(size_t, int))need("mallocx");
    void *(*rallocx)(void *, size_t, int) =
        (void *(*)(void *, size_t, int))need("rallocx");
    size_t (*xallocx)(void *, size_t, size_t, int) =
        (size_t(*)(void *, size_t, size_t, int))need("xallocx");
    void (*dallocx)(void *, int) = (void (*)(void *, int))need("dallocx");
    void (*sdallocx)(void *, size_t, int) =
        (void (*)(void *, size_t, int))need("sdallocx");
    static void *blocks[N];
    int64_t before;
    int i;

    cpprof_heap_set_rate(1);
    note("with jemalloc"); /* and stdio has its buffer */
    heap_heading();
    before = heap_heading().inuse_bytes;
    for (i = 0; i < N; i++)
        blocks[i] = mallocx(BYTES, 0);
    check_change(before, N * BYTES, "mallocx is seen");
    for (i = 0; i < N; i++)
        blocks[i] = rallocx(blocks[i], 3 * BYTES, 0);
    check_change(before, 3 * N * BYTES, "rallocx is seen");
    check(!rallocx(blocks[0], SIZE_MAX / 2 - 4096, 0), "one that fails");
    check_change(before, 3 * N * BYTES, "changes nothing");
    check_at_least((double)xallocx(blocks[0], 3 * BYTES, 0, 0), 3 * BYTES,
                   "xallocx works");
    for (i = 0; i < N; i++)
        if (i % 2)
            dallocx(blocks[i], 0);
        else
            sdallocx(blocks[i], 3 * BYTES, 0);
    check_change(before, 0, "dallocx and sdallocx are seen");
    return check_done();
}

static const char jemalloc[] = "libjemalloc.so.2";

int
main(int argc, char **argv)
{
    const char *const again[] = {"/proc/self/exe", "inside", NULL};
    char preload[9000];
    const char *const environment[] = {preload, NULL};
    struct result result;

    if (argc > 1 && !dlsym(RTLD_DEFAULT, "nallocx"))
        return check_skip_all("no jemalloc is installed");
    if (argc > 1)
        return inside();
    check(!dlsym(RTLD_DEFAULT, "mallocx"),
          "a program that looks for jemalloc does not find it");
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s:%s:%s", library_path(),
             getenv("CPPROF_JEMALLOC"), jemalloc);
    run_command(again, environment, 60, &result);
    if (!check_equal(result.status, 0, "jemalloc's names are seen"))
        note("%s%s", result.out, result.err);
    return check_done();
}

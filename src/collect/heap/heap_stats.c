/* SPDX-License-Identifier: MIT */
/*
 * The lines of runtime.MemStats at the end of a heap profile's text.
 *
 * Sizes come from glibc's mallinfo2() if its malloc is in use, else from
 * /proc; counts of calls are estimates from the samples; what only a garbage
 * collector has is 0.
 *
 * Source: Go runtime/pprof/pprof.go, writeHeapInternal; runtime.MemStats.
 */
#include "collect/heap/heap_stats.h"

#include "base/buffer.h"
#include "collect/runtime/next.h"
#include "collect/runtime/proc.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* As glibc's since 2.33; looked up, because it is not everywhere. */
struct libc_info {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks,
        fordblks, keepcost;
};

/* Is the malloc underneath that of the libc which has this function? */
static bool
is_libc_malloc(void *function)
{
    Dl_info of_libc, of_malloc;
    void *next = cpprof__next_symbol("malloc", NULL);

    return next && dladdr(function, &of_libc) && dladdr(next, &of_malloc) &&
           of_libc.dli_fbase == of_malloc.dli_fbase;
}

static bool
take_libc(struct cpprof__heap_stats *s)
{
    typedef struct libc_info info_fn(void);
    void *found = dlsym(RTLD_DEFAULT, "mallinfo2");
    struct libc_info info;

    if (!found || !is_libc_malloc(found))
        return false;
    info = ((info_fn *)(uintptr_t)found)();
    s->alloc = info.uordblks + info.hblkhd;
    s->heap_sys = info.arena + info.hblkhd;
    s->heap_inuse = s->alloc;
    s->heap_idle = info.fordblks;
    return true;
}

/* The number of kB behind a key of /proc/self/status, in bytes. */
static uint64_t
status_bytes(const char *status, const char *key)
{
    const char *at = strstr(status, key);

    return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

static void
take_proc(struct cpprof__heap_stats *s, bool has_heap)
{
    struct cpprof__buffer text = {0};
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) == 0)
        s->max_rss = (uint64_t)usage.ru_maxrss * 1024;
    if (cpprof__proc_read("/proc/self/status", &text)) {
        cpprof__buffer_append(&text, "", 1);
        if (!text.failed) {
            const char *status = (const char *)text.data;
            uint64_t data = status_bytes(status, "\nVmData:");
            uint64_t anonymous = status_bytes(status, "\nRssAnon:");

            s->stack = status_bytes(status, "\nVmStk:");
            s->sys = data + s->stack;
            if (!has_heap) {
                s->heap_sys = data;
                s->heap_inuse = anonymous < data ? anonymous : data;
                s->heap_idle = data - s->heap_inuse;
            }
        }
    }
    cpprof__buffer_free(&text);
}

void
cpprof__heap_stats_take(bool is_self,
                        const struct cpprof__heap_records *records,
                        struct cpprof__heap_stats *stats)
{
    uint64_t in_use = 0, inuse_objects = 0;
    size_t i;

    memset(stats, 0, sizeof *stats);
    for (i = 0; i < records->n; i++) {
        const int64_t *values = records->records[i].values;

        stats->mallocs += (uint64_t)values[CPPROF__ALLOC_OBJECTS];
        stats->total_alloc += (uint64_t)values[CPPROF__ALLOC_BYTES];
        inuse_objects += (uint64_t)values[CPPROF__INUSE_OBJECTS];
        in_use += (uint64_t)values[CPPROF__INUSE_BYTES];
    }
    stats->frees =
        stats->mallocs > inuse_objects ? stats->mallocs - inuse_objects : 0;
    stats->alloc = in_use;
    if (is_self)
        take_proc(stats, take_libc(stats));
}

/* "[0 0 ... 0]", for the pauses of a garbage collector that is not there. */
static void
put_zeros(struct cpprof__text_profile *text, const char *name)
{
    int i;

    cpprof__text_printf(text, "# %s = [0", name);
    for (i = 1; i < 256; i++)
        cpprof__text_printf(text, " 0");
    cpprof__text_printf(text, "]\n");
}

static void
put(struct cpprof__text_profile *text, const char *name, uint64_t value)
{
    cpprof__text_printf(text, "# %s = %" PRIu64 "\n", name, value);
}

static void
put_pair(struct cpprof__text_profile *text, const char *name, uint64_t value)
{
    cpprof__text_printf(text, "# %s = %" PRIu64 " / %" PRIu64 "\n", name, value,
                        value);
}

void
cpprof__heap_stats_print(const struct cpprof__heap_stats *s,
                         struct cpprof__text_profile *text)
{
    cpprof__text_printf(text, "\n# runtime.MemStats\n");
    put(text, "Alloc", s->alloc);
    put(text, "TotalAlloc", s->total_alloc);
    put(text, "Sys", s->sys);
    put(text, "Lookups", 0);
    put(text, "Mallocs", s->mallocs);
    put(text, "Frees", s->frees);
    put(text, "HeapAlloc", s->alloc);
    put(text, "HeapSys", s->heap_sys);
    put(text, "HeapIdle", s->heap_idle);
    put(text, "HeapInuse", s->heap_inuse);
    put(text, "HeapReleased", 0);
    put(text, "HeapObjects", s->mallocs - s->frees);
    put_pair(text, "Stack", s->stack);
    put_pair(text, "MSpan", 0);
    put_pair(text, "MCache", 0);
    put(text, "BuckHashSys", 0);
    put(text, "GCSys", 0);
    put(text, "OtherSys", 0);
    put(text, "NextGC", 0);
    put(text, "LastGC", 0);
    put_zeros(text, "PauseNs");
    put_zeros(text, "PauseEnd");
    put(text, "NumGC", 0);
    put(text, "NumForcedGC", 0);
    put(text, "GCCPUFraction", 0);
    cpprof__text_printf(text, "# DebugGC = false\n");
    put(text, "MaxRSS", s->max_rss);
}

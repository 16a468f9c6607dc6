/* SPDX-License-Identifier: MIT */
/*
 * Publishes the process context: a header and, behind it in the same mapping, a
 * message ProcessContext with the resource that OTLP brings, too.
 *
 * The mapping is anonymous and has a name, for which it needs no descriptor. A
 * kernel that cannot name one has a file in memory mapped instead.
 */
#include "push/context.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "base/proto.h"
#include "collect/process/environment.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"
#include "own/memory.h"
#include "profile/otlp/otlp.h"
#include "push/message.h"
#include "push/plan.h"
#include "push/resource.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NAME    "OTEL_CTX"
#define VERSION 2

/* What others read. */
struct header {
    char signature[8]; /* NAME */
    uint32_t version;
    uint32_t n_payload;
    uint64_t published_ns; /* CLOCK_BOOTTIME; 0: it changes */
    const void *payload;
};
_Static_assert(sizeof(struct header) == 32, "others read it");

/* Of linux/prctl.h and linux/memfd.h, which may be older than the kernel. */
#define SET_VMA     0x53564d41
#define ANON_NAME   0
#define NOEXEC_SEAL 0x8u

#define LATER_NS 1000000000ull

#define RESOURCE 1 /* of ProcessContext */

/* Made before there is a thread that reads it; "": there is no context. */
static char instance[37];

void
cpprof__context_instance(char text[37])
{
    if (*instance)
        strcpy(text, instance);
    else
        cpprof__push_uuid(text);
}

static bool
is_named(void *at, size_t n)
{
    return !prctl(SET_VMA, ANON_NAME, at, n, NAME);
}

static void *
map_file(size_t n)
{
    int fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | NOEXEC_SEAL);
    void *at = MAP_FAILED;

    if (fd < 0)
        fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return NULL;
    if (!ftruncate(fd, (off_t)n))
        at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static void *
map_named(size_t n)
{
    void *at = mmap(NULL, n, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    if (is_named(at, n))
        return at;
    munmap(at, n);
    return map_file(n);
}

/* Neither a forked child nor one that takes its place finds it. */
static void
publish(const struct cpprof__buffer *payload)
{
    size_t n = sizeof(struct header) + payload->n;
    struct header *header = map_named(n);

    if (!header)
        return;
    madvise(header, n, MADV_DONTFORK);
    memcpy(header + 1, payload->data, payload->n);
    memcpy(header->signature, NAME, sizeof header->signature);
    header->version = VERSION;
    header->n_payload = (uint32_t)payload->n;
    header->payload = header + 1;
    store_release(&header->published_ns, cpprof__now_ns(CLOCK_BOOTTIME));
}

/* Of a plan, what tells who this is. */
static void
publish_this(const struct cpprof__environment *env)
{
    struct cpprof__push_plan *plan = cpprof__calloc(1, sizeof *plan);
    struct cpprof__buffer text = {0}, payload = {0};
    size_t mark, n_bad;

    if (!plan)
        return;
    plan->is_named = *env->push.name;
    cpprof__push_expand(env->push.name, plan->name, sizeof plan->name);
    strcpy(plan->instance, instance);
    cpprof__push_resource(plan, &text, &n_bad);
    mark = cpprof__put_begin(&payload);
    if (!text.failed)
        cpprof__otlp_resource(&payload, (const char *)text.data, "");
    cpprof__put_end(&payload, RESOURCE, mark);
    if (!text.failed && !payload.failed)
        publish(&payload);
    cpprof__buffer_free(&text);
    cpprof__buffer_free(&payload);
    cpprof__free(plan);
}

/* One that ends or becomes another program within a second pays for a thread
 * that sleeps. */
static bool
publish_later(void *arg)
{
    uint64_t until_ns = cpprof__now_ns(CLOCK_MONOTONIC) + LATER_NS;

    while (cpprof__now_ns(CLOCK_MONOTONIC) < until_ns) {
        cpprof__sleep_ns(CPPROF__OWN_LOOK_NS);
        if (cpprof__own_thread_must_leave())
            return cpprof__own_threads_pause_now();
    }
    publish_this(arg);
    return false;
}

CPPROF__FIRST_STEP void
cpprof__context_begin(void)
{
    const struct cpprof__environment *env;
    bool is_descendant;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    env = cpprof__environment_context(&is_descendant);
    if (env)
        cpprof__push_uuid(instance);
    if (env && is_descendant)
        cpprof__own_thread_detached(publish_later, (void *)(uintptr_t)env,
                                    CPPROF__OWN_TABLE);
    else if (env)
        publish_this(env);
}

/* SPDX-License-Identifier: MIT */
/*
 * Which frames of a legacy profile are uninteresting. profile.proto says it in
 * drop_frames; the older formats do not, so the kind of profile decides: the
 * frames of the allocator, of the locks, or of the CPU profiler's own handler.
 *
 * The expressions are those of the reference, byte for byte: they are part of
 * what is written when a legacy profile is converted.
 *
 * Source: profile/legacy_profile.go addLegacyFrameInfo.
 */
#include "base/status.h"
#include "profile/legacy/legacy.h"

#include <string.h>

static const char alloc_frames[] =
    /* POSIX */
    "calloc|cfree|malloc|free|memalign|do_memalign|(__)?posix_memalign|"
    "pvalloc|valloc|realloc|"
    /* tcmalloc */
    "tcmalloc::.*|tc_calloc|tc_cfree|tc_malloc|tc_free|tc_memalign|"
    "tc_posix_memalign|tc_pvalloc|tc_valloc|tc_realloc|tc_new|tc_delete|"
    "tc_newarray|tc_deletearray|tc_new_nothrow|tc_newarray_nothrow|"
    /* macOS */
    "malloc_zone_malloc|malloc_zone_calloc|malloc_zone_valloc|"
    "malloc_zone_realloc|malloc_zone_memalign|malloc_zone_free|"
    /* Go */
    "runtime\\..*|"
    /* others */
    "BaseArena::.*|(::)?do_malloc_no_errno|(::)?do_malloc_pages|"
    "(::)?do_malloc|DoSampledAllocation|MallocedMemBlock::MallocedMemBlock|"
    "_M_allocate|__builtin_(vec_)?delete|__builtin_(vec_)?new|"
    "__gnu_cxx::new_allocator::allocate|__libc_malloc|"
    "__malloc_alloc_template::allocate|allocate|cpp_alloc|"
    "operator new(\\[\\])?|simple_alloc::allocate";

/* Frames of Go's runtime that belong to the middle of a stack. */
static const char alloc_keep[] =
    "runtime\\.panic|runtime\\.reflectcall|runtime\\.call[0-9]*";

static const char lock_frames[] =
    "RecordLockProfileData|(base::)?RecordLockProfileData.*|"
    "(base::)?SubmitMutexProfileData.*|(base::)?SubmitSpinLockProfileData.*|"
    "(base::Mutex::)?AwaitCommon.*|(base::Mutex::)?Unlock.*|"
    "(base::Mutex::)?UnlockSlow.*|(base::Mutex::)?ReaderUnlock.*|"
    "(base::MutexLock::)?~MutexLock.*|"
    "(Mutex::)?AwaitCommon.*|(Mutex::)?Unlock.*|(Mutex::)?UnlockSlow.*|"
    "(Mutex::)?ReaderUnlock.*|(MutexLock::)?~MutexLock.*|"
    "(SpinLock::)?Unlock.*|(SpinLock::)?SlowUnlock.*|"
    "(SpinLockHolder::)?~SpinLockHolder.*";

static const char cpu_frames[] =
    "ProfileData::Add|ProfileData::prof_handler|CpuProfiler::prof_handler|"
    "__pthread_sighandler|__restore";

#define TYPES_MAX 4

/* The sample types of a family, all of them in this order. The first family
 * that fits counts; the last one, without any, fits always. */
static const struct family {
    const char *types[TYPES_MAX];
    const char *drop;
    const char *keep;
} families[] = {
    {{"allocations", "size"}, alloc_frames, alloc_keep},
    {{"objects", "space"}, alloc_frames, alloc_keep},
    {{"inuse_objects", "inuse_space"}, alloc_frames, alloc_keep},
    {{"alloc_objects", "alloc_space"}, alloc_frames, alloc_keep},
    {{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"},
     alloc_frames,
     alloc_keep},
    {{"contentions", "delay"}, lock_frames, ""},
    {{NULL}, cpu_frames, ""},
};

static bool
has_types(const struct pprof_profile *p, const char *const *types)
{
    size_t n = 0;

    for (; n < TYPES_MAX && types[n]; n++)
        if (n >= p->sample_types.n ||
            strcmp(
                cpprof__strings_text(&p->strings, p->sample_types.at[n].type),
                types[n]) != 0)
            return false;
    return n == 0 || n == p->sample_types.n;
}

enum cpprof_status
cpprof__legacy_frames(struct pprof_profile *p, struct cpprof_error *error)
{
    const struct family *family = families;
    uint32_t drop, keep;

    while (!has_types(p, family->types))
        family++;
    drop = cpprof__strings_add_text(&p->strings, family->drop);
    keep = cpprof__strings_add_text(&p->strings, family->keep);
    if (drop == CPPROF__NO_STRING || keep == CPPROF__NO_STRING)
        return cpprof__fail_nomem(error);
    p->info.drop_frames = drop;
    p->info.keep_frames = keep;
    return CPPROF_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * The named profiles of this process: those that it always has (allocs, block,
 * goroutine, heap, heapleak, mutex, threadcreate) and those that the program
 * makes itself, to count whatever it acquires and gives back.
 *
 *     struct cpprof_profile *files;
 *
 *     cpprof_profile_new("files", &files, NULL);
 *     cpprof_profile_add(files, file, 0, NULL);      // at fopen
 *     cpprof_profile_remove(files, file);            // at fclose
 */
#ifndef CPPROF_PROFILES_H
#define CPPROF_PROFILES_H

#include <stddef.h>
#include <stdint.h>

#include <cpprof/labels.h>
#include <cpprof/options.h>
#include <cpprof/status.h>
#include <cpprof/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpprof_profile; /* never freed */

/*
 * Make a profile with that name, which is copied: printable characters of
 * UTF-8 and no space, which readers of the text forms would stop at. The server
 * of <cpprof/http.h> does not serve a profile that is called cmdline, profile,
 * symbol or trace: these paths are others, as in Go.
 *
 * Errors:  CPPROF_INVALID ("pprof: NewProfile with empty name", "pprof:
 *          NewProfile name already in use: NAME", "pprof: NewProfile with a
 *          space or an unprintable character in the name"), CPPROF_NOMEM.
 * Safety:  MT. Not AS.
 * Source:  Go runtime/pprof.NewProfile.
 */
CPPROF_API enum cpprof_status
cpprof_profile_new(const char *name, struct cpprof_profile **profile,
                   struct cpprof_error *error);

/*
 * The same of a profile whose values weigh something: memory, connections of a
 * pool, money. It has the sample types {name, "count"} and {type, unit}.
 *
 *     cpprof_profile_new_weighted("buffers", "space", "bytes", &buffers, NULL);
 *
 * Errors:  as cpprof_profile_new(), of type and unit, too.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_profile_new_weighted(const char *name, const char *type,
                            const char *unit, struct cpprof_profile **profile,
                            struct cpprof_error *error);

/* The profile of that name, or NULL. "threads" is another name of goroutine.
 * Safety: MT. Not AS. Source: Go runtime/pprof.Lookup. */
CPPROF_API struct cpprof_profile *
cpprof_profile_lookup(const char *name);

/*
 * All profiles, sorted by name: stores up to n and returns how many there are.
 *
 * Safety:  MT. Not AS.
 * Source:  Go runtime/pprof.Profiles.
 */
CPPROF_API size_t
cpprof_profile_list(struct cpprof_profile **profiles, size_t n);

/* Safety: MT. Source: Go Profile.Name, Profile.Count. */
CPPROF_API const char *
cpprof_profile_name(const struct cpprof_profile *profile);
CPPROF_API size_t
cpprof_profile_count(const struct cpprof_profile *profile);

/*
 * Add the current stack under a value: a pointer, which is not read, or n
 * bytes, which are copied. skip 0: the stack begins with the caller; of a
 * stack with fewer frames the one frame "[lost samples]" is kept. A function
 * that the compiler put into its caller is no frame to skip.
 *
 * Errors:  CPPROF_INVALID ("pprof: Add called on built-in Profile
 *          NAME", "pprof: Profile.Add of duplicate value", "pprof: use of
 *          uninitialized Profile"), CPPROF_NOMEM.
 * Safety:  MT. Not AS.
 * Source:  Go Profile.Add.
 */
CPPROF_API enum cpprof_status
cpprof_profile_add(struct cpprof_profile *profile, const void *value,
                   unsigned skip, struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_profile_add_bytes(struct cpprof_profile *profile, const void *bytes,
                         size_t n, unsigned skip, struct cpprof_error *error);

/* What is added, with a weight and labels. */
struct cpprof_profile_entry {
    size_t size;       /* sizeof (struct cpprof_profile_entry) */
    const void *value; /* the pointer, or n_bytes bytes, which are copied */
    size_t n_bytes;    /* 0: the pointer */
    int64_t weight;    /* in the profile's unit; may be negative */
    const struct cpprof_labels
        *labels;   /* of its sample; NULL: none. They may be
                    * freed when the call has returned */
    uint32_t skip; /* as of cpprof_profile_add() */
};

/*
 * Add the current stack with a weight and labels. Entries of one stack and
 * equal labels are one sample, with the sum of their weights. In a profile that
 * is not weighted the weight is not looked at; what cpprof_profile_add() adds
 * weighs 1. Only so much can be in a profile at a time that all its weights,
 * without their signs, have a sum of at most 2^62: then every sum is right.
 *
 * Errors:  as cpprof_profile_add(); CPPROF_INVALID ("pprof: the weights of all
 *          values would be more than 2^62").
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_profile_add_entry(struct cpprof_profile *profile,
                         const struct cpprof_profile_entry *entry,
                         struct cpprof_error *error);

/* Take a value out; nothing happens when it is not there. Safety: MT. Not AS.
 * Source: Go Profile.Remove. */
CPPROF_API void
cpprof_profile_remove(struct cpprof_profile *profile, const void *value);
CPPROF_API void
cpprof_profile_remove_bytes(struct cpprof_profile *profile, const void *bytes,
                            size_t n);

struct cpprof_profile_options {
    size_t size;   /* sizeof (struct cpprof_profile_options) */
    int32_t debug; /* 0: gzipped protobuf; 1: text with names; 2: of goroutine,
                    * the stacks of all threads as a dump */
    enum cpprof_symbolize symbolize;
    uint32_t flags; /* CPPROF_FLAG_LABELS, _PEAK, _IN_PROGRESS, _LEGACY */
};

/*
 * Write a profile as it is now.
 *
 * writer   receives the file; closed by this call.
 * options  NULL for defaults.
 * error    filled on failure; may be NULL.
 *
 * Shape, units: docs/profiles.md has a table; as Go's.
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM (a write failed), CPPROF_INVALID
 *          ("pprof: use of zero Profile"), CPPROF_UNSUPPORTED.
 * Owner:   the writer is cpprof's.
 * Safety:  MT. Not AS.
 * Source:  Go Profile.WriteTo.
 */
CPPROF_API enum cpprof_status
cpprof_profile_write(struct cpprof_profile *profile,
                     const struct cpprof_writer *writer,
                     const struct cpprof_profile_options *options,
                     struct cpprof_error *error);

/* cpprof_profile_write() to the file at path, in one call: with a writer of
 * cpprof_writer_to_path(), whose errors come too. Safety: MT. Not AS. */
CPPROF_API enum cpprof_status
cpprof_profile_write_to_path(struct cpprof_profile *profile, const char *path,
                             const struct cpprof_profile_options *options,
                             struct cpprof_error *error);

/*
 * block: record waits, one for each ns of waiting on average (0 off, 1 all);
 * shorter ones are sampled and scaled. A negative number changes nothing. More
 * than 2^40 ns count as 2^40.
 *
 * Returns the rate before; 0 at the start.
 * Units:   nanoseconds.
 * Safety:  MT. AS.
 * Source:  Go runtime.SetBlockProfileRate.
 */
CPPROF_API int64_t
cpprof_block_set_rate(int64_t ns);

/*
 * mutex: follow one of n waits for a lock (0 off, 1 all), which stands for n.
 * Each is one contention, at the first unlock after it began; the delay of an
 * unlock is what all have waited since the one before. Negative: changes
 * nothing.
 *
 * Returns the fraction before; 0 at the start.
 * Safety:  MT. AS.
 * Source:  Go runtime.SetMutexProfileFraction.
 */
CPPROF_API int
cpprof_mutex_set_fraction(int n);

/*
 * A program's own locks and queues. Around a wait on lock (any address that
 * stands for it) call begin and end, in the same thread, with a struct on its
 * stack; when the lock is given up while others may wait, call released.
 * A few nanoseconds while the profiles are off.
 *
 * Safety:  MT. AS.
 */
struct cpprof_wait {
    uint64_t private_[8];
};
CPPROF_API void
cpprof_wait_begin(struct cpprof_wait *wait, const void *lock);
CPPROF_API void
cpprof_wait_end(struct cpprof_wait *wait);
CPPROF_API void
cpprof_wait_released(const void *lock);

/* Record a wait of ns that just ended, at the stack of the caller (skip 0).
 * Safety: MT. AS. Source: Go runtime.blockevent. */
CPPROF_API void
cpprof_block_add(int64_t ns, unsigned skip);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Labels: what a thread is working on, carried by the samples that are taken
 * of it.
 *
 *     struct cpprof_labels *set = cpprof_labels_new("route", "/cart", NULL);
 *
 *     cpprof_labels_do(set, serve, request);
 *     cpprof_labels_free(set);
 *
 * A set never changes. It is counted: whoever makes one frees it, a thread
 * that has it as its current set needs it, and a thread that was created by
 * one with a current set keeps its own hold on it.
 */
#ifndef CPPROF_LABELS_H
#define CPPROF_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include <cpprof/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpprof_labels; /* an immutable set, sorted by key */

/* A text has .str, a number has .num and maybe .unit. */
struct cpprof_label {
    const char *key;
    const char *str; /* NULL: a number */
    int64_t num;
    const char *unit; /* or NULL */
};

/*
 * A set of text labels: key, value, key, value, ..., NULL. Of several values
 * of one key the last counts.
 *
 * Returns NULL when a key has no value or there is no memory.
 * Owner:   the caller frees it with cpprof_labels_free().
 * Safety:  MT. Not AS.
 * Source:  Go runtime/pprof.Labels.
 */
CPPROF_API struct cpprof_labels *
cpprof_labels_new(const char *key, ...) __attribute__((sentinel));

/*
 * The labels of parent, which may be NULL, with n more that win over its own.
 * Strings are copied.
 *
 * Errors:  CPPROF_NOMEM, CPPROF_INVALID (a key is NULL).
 * Owner:   the caller frees *set with cpprof_labels_free().
 * Safety:  MT. Not AS.
 * Source:  Go runtime/pprof.WithLabels.
 */
CPPROF_API enum cpprof_status
cpprof_labels_merge(const struct cpprof_labels *parent,
                    const struct cpprof_label *labels, size_t n,
                    struct cpprof_labels **set, struct cpprof_error *error);

/* One more hold on the set (returned), and one less. NULL is fine; what was
 * sampled keeps its labels. Safety: MT. */
CPPROF_API struct cpprof_labels *
cpprof_labels_ref(const struct cpprof_labels *set);
CPPROF_API void
cpprof_labels_free(struct cpprof_labels *set);

/* The labels of a set, sorted by key, valid as long as it; NULL: there is no
 * such label. Safety: MT. */
CPPROF_API size_t
cpprof_labels_count(const struct cpprof_labels *set);
CPPROF_API const struct cpprof_label *
cpprof_labels_at(const struct cpprof_labels *set, size_t index);
CPPROF_API const struct cpprof_label *
cpprof_labels_find(const struct cpprof_labels *set, const char *key);

/*
 * Make set, which may be NULL, the current one of the calling thread, without
 * a hold on it: it must not be freed before another one is current. This is
 * what a scheduler calls when it switches to a coroutine. A few nanoseconds.
 *
 * Returns the set that was current.
 * Safety:  MT. AS.
 * Source:  Go runtime/pprof.SetGoroutineLabels.
 */
CPPROF_API const struct cpprof_labels *
cpprof_labels_set_current(const struct cpprof_labels *set);
CPPROF_API const struct cpprof_labels *
cpprof_labels_current(void);

/*
 * Heap: keep the labels of the thread with what is allocated from now on (1),
 * or not (0). A negative number changes nothing. A heap profile that is written
 * with labels turns it on, but what was allocated before has none. Profiles of
 * other kinds have labels in any case.
 *
 * Returns what was set before; 0 at the start.
 * Safety:  MT. AS.
 */
CPPROF_API int
cpprof_labels_keep(int on);

/*
 * Call fn(ctx) with the current labels and those of set over them, and restore
 * the current ones, also when fn ends by a C++ exception or pthread_exit().
 *
 * Without memory fn runs under the labels of set alone.
 * Safety:  MT. Not AS.
 * Source:  Go runtime/pprof.Do.
 */
CPPROF_API void
cpprof_labels_do(const struct cpprof_labels *set, void (*fn)(void *ctx),
                 void *ctx);

/* The rest of the enclosing block runs under these text labels over the
 * current ones: CPPROF_LABELS_SCOPE("route", path); C++ has
 * <cpprof/labels.hpp>. */
struct cpprof_labels_scope {
    size_t size; /* sizeof (struct cpprof_labels_scope); the rest is private */
    const struct cpprof_labels *before;
    struct cpprof_labels *set;
};
/* Owner: the set, which may be NULL, is the scope's. Safety: MT. Not AS. */
CPPROF_API void
cpprof_labels_scope_begin(struct cpprof_labels_scope *scope,
                          struct cpprof_labels *set);
CPPROF_API void
cpprof_labels_scope_end(struct cpprof_labels_scope *scope);

#define CPPROF_LABELS_SCOPE(...)     CPPROF_LABELS_SCOPE_(__COUNTER__, __VA_ARGS__)
#define CPPROF_LABELS_SCOPE_(n, ...) CPPROF_LABELS_SCOPE__(n, __VA_ARGS__)
#define CPPROF_LABELS_SCOPE__(n, ...)                                          \
    struct cpprof_labels_scope cpprof_labels_scope_##n                         \
        __attribute__((cleanup(cpprof_labels_scope_end), unused)) = {          \
            sizeof(struct cpprof_labels_scope), NULL, NULL};                   \
    cpprof_labels_scope_begin(&cpprof_labels_scope_##n,                        \
                              cpprof_labels_new(__VA_ARGS__, NULL))

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Profiles by name: the list of them, and the public calls of
 * <cpprof/profiles.h> on profiles of any kind.
 *
 * Built-in profiles are constants. Those of the program are linked at the
 * front of a list that only grows, so it is read without a lock; `lock` guards
 * adding.
 */
#include "collect/registry/registry.h"

#include "arch/place.h"
#include "base/options.h"
#include "base/status.h"
#include "base/text.h"
#include "base/writer.h"
#include "collect/labels/labels.h"
#include "collect/registry/custom.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/store/tables.h"
#include "own/memory.h"
#include "own/sort.h"

#include <stdlib.h>
#include <string.h>

/* The most frames that can be skipped. */
#define SKIP_MAX 65536u

struct cpprof_profile {
    const struct cpprof__builtin *builtin; /* or NULL: */
    struct cpprof__custom *custom;
    struct cpprof_profile *next;
    char name[];
};

static const struct cpprof_profile allocs = {&cpprof__builtin_allocs, 0, 0, {}};
static const struct cpprof_profile block = {&cpprof__builtin_block, 0, 0, {}};
static const struct cpprof_profile goroutine = {
    &cpprof__builtin_goroutine, 0, 0, {}};
static const struct cpprof_profile heap = {&cpprof__builtin_heap, 0, 0, {}};
static const struct cpprof_profile heapleak = {
    &cpprof__builtin_heapleak, 0, 0, {}};
static const struct cpprof_profile mutex = {&cpprof__builtin_mutex, 0, 0, {}};
static const struct cpprof_profile threadcreate = {
    &cpprof__builtin_threadcreate, 0, 0, {}};
static const struct cpprof_profile threadleak = {
    &cpprof__builtin_threadleak, 0, 0, {}};

static const struct cpprof_profile *const builtins[] = {
    &allocs,   &block, &goroutine,    &heap,
    &heapleak, &mutex, &threadcreate, &threadleak};
#define N_BUILTINS (sizeof builtins / sizeof *builtins)

/* Profiles of the program: added at the front, never removed. */
static struct cpprof_profile *first;
static struct cpprof__own_lock lock; /* of those who add */

/* ---- the list --------------------------------------------------------- */

const char *
cpprof_profile_name(const struct cpprof_profile *profile)
{
    if (!profile)
        return "";
    return profile->builtin ? profile->builtin->name : profile->name;
}

struct cpprof_profile *
cpprof_profile_lookup(const char *name)
{
    struct cpprof_profile *profile;
    size_t i;

    if (!name)
        return NULL;
    if (strcmp(name, "threads") == 0)
        name = "goroutine";
    for (i = 0; i < N_BUILTINS; i++)
        if (builtins[i]->builtin &&
            strcmp(builtins[i]->builtin->name, name) == 0)
            return (struct cpprof_profile *)builtins[i];
    profile = load_acquire(&first);
    while (profile && strcmp(profile->name, name) != 0)
        profile = profile->next;
    return profile;
}

const struct cpprof__builtin *
cpprof__registry_builtin(const char *name)
{
    const struct cpprof_profile *profile = cpprof_profile_lookup(name);

    return profile ? profile->builtin : NULL;
}

struct cpprof__custom *
cpprof__registry_custom(const struct cpprof_profile *profile)
{
    return profile->custom;
}

static int
by_name(const void *a, const void *b)
{
    const struct cpprof_profile *const *x = a, *const *y = b;

    return strcmp(cpprof_profile_name(*x), cpprof_profile_name(*y));
}

/* Copies up to n of them; returns how many there are. */
static size_t
gather(struct cpprof_profile **profiles, size_t n)
{
    struct cpprof_profile *profile = load_acquire(&first);
    size_t i, found = 0;

    for (i = 0; i < N_BUILTINS; i++)
        if (builtins[i]->builtin && found++ < n)
            profiles[found - 1] = (struct cpprof_profile *)builtins[i];
    for (; profile; profile = profile->next)
        if (found++ < n)
            profiles[found - 1] = profile;
    return found;
}

/* All are sorted before n of them are chosen, so the choice is by name. */
size_t
cpprof_profile_list(struct cpprof_profile **profiles, size_t n)
{
    size_t there = gather(NULL, 0), taken;
    struct cpprof_profile **all;
    CPPROF__EXEMPT;

    if (!n || !profiles)
        return there;
    all = cpprof__calloc(there, sizeof(struct cpprof_profile *));
    if (!all) /* unsorted is better than nothing */
        return gather(profiles, n);
    taken = gather(all, there);
    taken = taken < there ? taken : there;
    cpprof__sort(all, taken, sizeof(struct cpprof_profile *), by_name);
    memcpy(profiles, all,
           (n < taken ? n : taken) * sizeof(struct cpprof_profile *));
    cpprof__free(all);
    return taken;
}

/* The texts are copied behind it. type: NULL when it is not weighted. */
static struct cpprof_profile *
make(const char *name, const char *type, const char *unit)
{
    size_t n = strlen(name) + 1, n_type = type ? strlen(type) + 1 : 0;
    size_t n_unit = unit ? strlen(unit) + 1 : 0;
    struct cpprof_profile *profile =
        cpprof__malloc(sizeof *profile + n + n_type + n_unit);
    char *text;

    if (!profile)
        return NULL;
    text = profile->name;
    memcpy(text, name, n);
    if (type) {
        memcpy(text + n, type, n_type);
        memcpy(text + n + n_type, unit, n_unit);
    }
    *profile = (struct cpprof_profile){
        .custom = cpprof__custom_make(
            (struct cpprof__value_type[]){{text, "count"},
                                          {text + n, text + n + n_type}},
            type ? 2 : 1)};
    if (!profile->custom) {
        cpprof__free(profile);
        return NULL;
    }
    return profile;
}

/* False: the name is in use. */
static bool
put_on_list(struct cpprof_profile *profile)
{
    bool is_new;

    cpprof__own_lock_take(&lock);
    is_new = !cpprof_profile_lookup(profile->name);
    if (is_new) {
        profile->next = first;
        store_release(&first, profile);
    }
    cpprof__own_lock_give(&lock);
    return is_new;
}

/* Readers take the name in the first line of the text up to the first space.
 * what: "name", "type" or "unit". */
static enum cpprof_status
check_word(const char *word, const char *what, struct cpprof_error *error)
{
    uint32_t rune;
    size_t n;

    if (!word || !*word)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "pprof: NewProfile with empty %s", what);
    for (; *word; word += n) {
        n = cpprof__utf8_next(word, 4, &rune);
        if (!n || rune == ' ' || !cpprof__is_printable(rune))
            return cpprof__fail(error, CPPROF_INVALID, 0,
                                "pprof: NewProfile with a space or an "
                                "unprintable character in the %s",
                                what);
    }
    return CPPROF_OK;
}

static enum cpprof_status
add_new(const char *name, const char *type, const char *unit,
        struct cpprof_profile **profile, struct cpprof_error *error)
{
    struct cpprof_profile *made;
    CPPROF__EXEMPT;

    made =
        cpprof__tables_make(NULL) == CPPROF_OK ? make(name, type, unit) : NULL;
    if (!made)
        return cpprof__fail_nomem(error);
    if (!put_on_list(made)) {
        cpprof__custom_free(made->custom);
        cpprof__free(made);
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "pprof: NewProfile name already in use: %s", name);
    }
    *profile = made;
    return CPPROF_OK;
}

enum cpprof_status
cpprof_profile_new(const char *name, struct cpprof_profile **profile,
                   struct cpprof_error *error)
{
    CPPROF__NEED(error, profile);

    enum cpprof_status status = check_word(name, "name", error);

    return status == CPPROF_OK ? add_new(name, NULL, NULL, profile, error)
                               : status;
}

enum cpprof_status
cpprof_profile_new_weighted(const char *name, const char *type,
                            const char *unit, struct cpprof_profile **profile,
                            struct cpprof_error *error)
{
    CPPROF__NEED(error, profile);

    enum cpprof_status status = check_word(name, "name", error);

    if (status == CPPROF_OK)
        status = check_word(type, "type", error);
    if (status == CPPROF_OK)
        status = check_word(unit, "unit", error);
    return status == CPPROF_OK ? add_new(name, type, unit, profile, error)
                               : status;
}

size_t
cpprof_profile_count(const struct cpprof_profile *profile)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!profile)
        return 0;
    return profile->builtin ? profile->builtin->count(profile->builtin)
                            : cpprof__custom_count(profile->custom);
}

/* ---- adding ----------------------------------------------------------- */

/* Buffer for a stack when more frames are to be skipped than the quick walk has
 * room for. */
struct deep {
    struct cpprof__stack_view view;
    uintptr_t pcs[];
};

CPPROF__HOOK static uint32_t
walk_deep(unsigned skip)
{
    size_t max = skip + CPPROF__HEAP_HOOKS + CPPROF__HEAP_DEPTH;
    struct deep *deep =
        cpprof__calloc(1, sizeof *deep + (max + 1) * sizeof *deep->pcs);
    struct cpprof__heap_stack walked = {.max = max};
    struct cpprof__regs regs;
    uint32_t stack = 0;

    if (deep) {
        cpprof__regs_here(&regs);
        walked.pcs = deep->pcs;
        walked.n =
            cpprof__unwind(&regs, &deep->view, deep->pcs, max, &walked.end);
        walked.is_at_rest = !deep->view.has_handler;
        stack = cpprof__hook_stack_add(&cpprof__tables.tree, &walked, skip);
    }
    cpprof__free(deep);
    return stack;
}

CPPROF__HOOK static uint32_t
walk(unsigned skip)
{
    if (skip <= CPPROF__HOOK_SKIP)
        return cpprof__hook_walk_skip(&cpprof__tables.tree, skip, true);
    return walk_deep(skip < SKIP_MAX ? skip : SKIP_MAX);
}

static enum cpprof_status
check_add(const struct cpprof_profile *profile, struct cpprof_error *error)
{
    if (!profile)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "pprof: use of uninitialized Profile");
    if (profile->builtin)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "pprof: Add called on built-in Profile %s",
                            profile->builtin->name);
    return CPPROF_OK;
}

CPPROF__HOOK enum cpprof_status
cpprof_profile_add(struct cpprof_profile *profile, const void *value,
                   unsigned skip, struct cpprof_error *error)
{
    const struct cpprof__custom_value pointer = {value, 0, false};
    enum cpprof_status status = check_add(profile, error);
    CPPROF__EXEMPT;

    if (status != CPPROF_OK)
        return status;
    cpprof__custom_prefetch(profile->custom, &pointer);
    return cpprof__custom_add(
        profile->custom, &pointer,
        &(struct cpprof__stack_record){{1, 1}, walk(skip), 0}, error);
}

CPPROF__HOOK enum cpprof_status
cpprof_profile_add_bytes(struct cpprof_profile *profile, const void *bytes,
                         size_t n, unsigned skip, struct cpprof_error *error)
{
    const struct cpprof__custom_value value = {bytes, n, true};
    enum cpprof_status status = check_add(profile, error);
    CPPROF__EXEMPT;

    if (status != CPPROF_OK)
        return status;
    CPPROF__NEED(error, bytes || !n);
    return cpprof__custom_add(
        profile->custom, &value,
        &(struct cpprof__stack_record){{1, 1}, walk(skip), 0}, error);
}

CPPROF__HOOK enum cpprof_status
cpprof_profile_add_entry(struct cpprof_profile *profile,
                         const struct cpprof_profile_entry *given,
                         struct cpprof_error *error)
{
    CPPROF__NEED(error, given);

    struct cpprof_profile_entry entry = {.weight = 1};
    struct cpprof__stack_record record = {0};
    struct cpprof__custom_value value;
    enum cpprof_status status = cpprof__options(&entry, sizeof entry, given,
                                                "cpprof_profile_entry", error);
    CPPROF__EXEMPT;

    if (status == CPPROF_OK)
        status = check_add(profile, error);
    if (status != CPPROF_OK)
        return status;
    /* n bytes, or with 0 a pointer, which may be any */
    CPPROF__NEED(error, entry.value || !entry.n_bytes);
    value = (struct cpprof__custom_value){entry.value, entry.n_bytes,
                                          entry.n_bytes > 0};
    record.values[0] = 1;
    record.values[1] = entry.weight;
    record.stack = walk(entry.skip);
    record.labels =
        cpprof__label_set_number(&cpprof__tables.tree, entry.labels);
    return cpprof__custom_add(profile->custom, &value, &record, error);
}

void
cpprof_profile_remove(struct cpprof_profile *profile, const void *value)
{
    const struct cpprof__custom_value pointer = {value, 0, false};
    CPPROF__EXEMPT;

    if (profile && profile->custom)
        cpprof__custom_remove(profile->custom, &pointer);
}

void
cpprof_profile_remove_bytes(struct cpprof_profile *profile, const void *bytes,
                            size_t n)
{
    const struct cpprof__custom_value value = {bytes, n, true};
    CPPROF__EXEMPT;

    if (profile && profile->custom && (bytes || !n))
        cpprof__custom_remove(profile->custom, &value);
}

/* ---- writing ---------------------------------------------------------- */

static enum cpprof_status
check_write(const struct cpprof_profile *profile,
            const struct cpprof_profile_options *given,
            struct cpprof_profile_options *options, struct cpprof_error *error)
{
    enum cpprof_status status;

    if (!profile)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "pprof: use of zero Profile");
    memset(options, 0, sizeof *options);
    status = cpprof__options(options, sizeof *options, given,
                             "cpprof_profile_options", error);
    if (status != CPPROF_OK)
        return status;
    if (options->debug < 0)
        return cpprof__fail(error, CPPROF_INVALID, 0, "debug is negative");
    return cpprof__options_flags(options->flags, CPPROF__PROFILE_FLAGS,
                                 options->symbolize, error);
}

static enum cpprof_status
write_builtin(const struct cpprof__builtin *builtin,
              struct cpprof_writer writer,
              const struct cpprof_profile_options *options,
              struct cpprof_error *error)
{
    struct cpprof__stack_record *records = NULL;
    enum cpprof_status status;
    size_t n = 0;

    if (builtin->write)
        return builtin->write(builtin, writer, options, error);
    status = builtin->records(builtin, options, 0, &records, &n, error);
    if (status == CPPROF_OK)
        status = cpprof__records_write(builtin->form, records, n, options,
                                       writer, error);
    else
        cpprof__writer_refuse(&writer);
    cpprof__free(records);
    return status;
}

enum cpprof_status
cpprof_profile_write(struct cpprof_profile *profile,
                     const struct cpprof_writer *given_writer,
                     const struct cpprof_profile_options *given,
                     struct cpprof_error *error)
{
    struct cpprof_profile_options options;
    struct cpprof_writer writer;
    enum cpprof_status status =
        cpprof__writer_take(given_writer, &writer, error);
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (status == CPPROF_OK)
        status = check_write(profile, given, &options, error);
    if (status != CPPROF_OK) {
        cpprof__writer_refuse(&writer);
        return status;
    }
    if (profile->builtin)
        return write_builtin(profile->builtin, writer, &options, error);
    return cpprof__custom_write(profile->custom, &options, writer, error);
}

enum cpprof_status
cpprof_profile_write_to_path(struct cpprof_profile *profile, const char *path,
                             const struct cpprof_profile_options *options,
                             struct cpprof_error *error)
{
    return CPPROF__TO_PATH(
        path, error, cpprof_profile_write(profile, &writer, options, error));
}

/* ---- fork ------------------------------------------------------------- */

/* A profile is whole before it is in the list. */
CPPROF__FIRST_STEP void
cpprof__registry_in_child(void)
{
    struct cpprof_profile *profile;

    cpprof__own_lock_in_child(&lock);
    for (profile = first; profile; profile = profile->next)
        cpprof__custom_in_child(profile->custom);
}

/* SPDX-License-Identifier: MIT */
/*
 * Prints what is still in use at the end, or lost, a line for each stack. It is
 * read back from the profile that was written, whose names are those that every
 * report shows. The line names the first frame, from the leaf, that is code of
 * the program: not of a file in the system's library folders.
 */
#include "cli/record/record.h"

#include "cli/messages.h"
#include "collect/store/spool.h"

#include <cpprof/pprof/change.h>
#include <cpprof/pprof/profile.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The indices of these values in samples of heap profiles (cpprof/heap.h), and
 * how many types these have; and those of what is lost. */
struct values {
    unsigned objects, bytes;
    size_t n_types;
    const char *heading;
};
static const struct values in_use = {2, 3, 4, "in use at the end"};
static const struct values lost = {0, 1, 2, "lost"};

/* Memory that libc keeps for as long as the process lives: the buffers of
 * streams, of locales, and the TLS of threads whose stack is kept for the
 * next one. It is no leak of the program. */
#define KEPT_BY_LIBC "^(_IO_file_doallocate|_dl_allocate_tls|setlocale)$"

/* All samples of one stack, of any size. */
struct stack {
    const uint32_t *locations;
    size_t n;
    int64_t objects;
    int64_t bytes;
};

static int
compare_stacks(const void *a, const void *b)
{
    const struct stack *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return memcmp(x->locations, y->locations, x->n * sizeof *x->locations);
}

static int
compare_bytes(const void *a, const void *b)
{
    const struct stack *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return compare_stacks(a, b);
}

static size_t
take_stacks(const struct pprof_profile *profile, const struct values *values,
            struct stack *stacks)
{
    struct pprof_sample sample = {.size = sizeof sample};
    size_t n = pprof_sample_count(profile), i, n_taken = 0;

    for (i = 0; i < n; i++) {
        pprof_get_sample(profile, i, &sample);
        if (sample.values[values->bytes] <= 0 &&
            sample.values[values->objects] <= 0)
            continue;
        stacks[n_taken++] = (struct stack){sample.locations, sample.n_locations,
                                           sample.values[values->objects],
                                           sample.values[values->bytes]};
    }
    return n_taken;
}

/* Add up the samples of each stack. Returns how many stacks there are. */
static size_t
join_stacks(struct stack *stacks, size_t n)
{
    size_t i, n_joined = 0;

    qsort(stacks, n, sizeof *stacks, compare_stacks);
    for (i = 0; i < n; i++) {
        if (!n_joined || compare_stacks(&stacks[n_joined - 1], &stacks[i])) {
            stacks[n_joined++] = stacks[i];
            continue;
        }
        stacks[n_joined - 1].objects += stacks[i].objects;
        stacks[n_joined - 1].bytes += stacks[i].bytes;
    }
    qsort(stacks, n_joined, sizeof *stacks, compare_bytes);
    return n_joined;
}

static bool
is_system_code(const struct pprof_profile *profile, uint32_t mapping)
{
    static const char *const folders[] = {"/lib", "/usr/lib", "["};
    const char *file;
    size_t i;

    if (mapping == PPROF_NONE)
        return true;
    file = pprof_text(profile, pprof_mappings(profile)[mapping].file, NULL);
    for (i = 0; i < sizeof folders / sizeof *folders; i++)
        if (!strncmp(file, folders[i], strlen(folders[i])))
            return true;
    return !strncmp(basename(file), "libcpprof.so", 12);
}

/* "libx.so+0x51", as in the file. */
static void
describe_address(const struct pprof_profile *profile,
                 const struct pprof_location *at, char *text, size_t n_text)
{
    const struct pprof_mapping *mapping;
    const char *file;

    if (!at || at->mapping == PPROF_NONE) {
        snprintf(text, n_text, "0x%" PRIx64, at ? at->address : 0);
        return;
    }
    mapping = &pprof_mappings(profile)[at->mapping];
    file = pprof_text(profile, mapping->file, NULL);
    snprintf(text, n_text, "%s+0x%" PRIx64, basename(file),
             at->address - mapping->start + mapping->offset);
}

void
cpprof__record_describe(const struct pprof_profile *profile,
                        const uint32_t *locations, size_t n, char *text,
                        size_t n_text)
{
    const struct pprof_location *all = pprof_locations(profile), *at = NULL;
    const struct pprof_line *line;
    const struct pprof_function *function;
    const char *file;
    size_t i;

    /* The first location, from the leaf, that says something about the program.
     */
    for (i = 0; i < n && !at; i++)
        if (!is_system_code(profile, all[locations[i]].mapping))
            at = &all[locations[i]];
    if (!at && n)
        at = &all[locations[0]];
    if (!at || !at->n_lines) {
        describe_address(profile, at, text, n_text);
        return;
    }
    line = &pprof_lines(profile)[at->first_line];
    function = &pprof_functions(profile)[line->function];
    file = pprof_text(profile, function->file, NULL);
    if (*file && line->line)
        snprintf(text, n_text, "%s (%s:%" PRId64 ")",
                 pprof_text(profile, function->name, NULL), file, line->line);
    else
        snprintf(text, n_text, "%s", pprof_text(profile, function->name, NULL));
}

void
cpprof__record_size(int64_t bytes, char *text, size_t n)
{
    if (bytes < 10 * 1024)
        snprintf(text, n, "%" PRId64 " bytes", bytes);
    else if (bytes < 10 * 1024 * 1024)
        snprintf(text, n, "%.1f KB", (double)bytes / 1024);
    else
        snprintf(text, n, "%.1f MB", (double)bytes / 1048576);
}

/* What a list of stacks is called, and whether it is one of estimates. */
struct list {
    const struct values *values;
    bool is_estimate, is_silent;
};

static void
print_stacks(struct cpprof__record_options *options,
             const struct pprof_profile *profile, const struct stack *stacks,
             size_t n, const struct list *list)
{
    char size[32], where[700];
    size_t i, n_told;

    for (n_told = 0; n_told < n; n_told++) {
        if (stacks[n_told].bytes < options->min_bytes)
            break;
        options->leaked_bytes += stacks[n_told].bytes;
        options->leaked_objects += stacks[n_told].objects;
    }
    if (!n_told || list->is_silent)
        return;
    cpprof__record_size(options->leaked_bytes, size, sizeof size);
    cpprof__cli_warn("%s: %s%s in %" PRId64 " objects of %zu stack%s",
                     list->values->heading, list->is_estimate ? "about " : "",
                     size, options->leaked_objects, n_told,
                     n_told == 1 ? "" : "s");
    for (i = 0; i < n_told && i < (size_t)options->max_lines; i++) {
        cpprof__record_size(stacks[i].bytes, size, sizeof size);
        cpprof__record_describe(profile, stacks[i].locations, stacks[i].n,
                                where, sizeof where);
        cpprof__cli_warn("  %s in %" PRId64 " object%s: %s", size,
                         stacks[i].objects, stacks[i].objects == 1 ? "" : "s",
                         where);
    }
    if (i < n_told)
        cpprof__cli_warn("  and %zu more; see cpprof top", n_told - i);
}

static enum cpprof_status
filter(struct pprof_profile *profile,
       const struct cpprof__record_options *options, struct cpprof_error *error)
{
    const char *ignored[] = {options->is_verdict ? KEPT_BY_LIBC : NULL,
                             options->ignore};
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = 0; i < 2 && status == CPPROF_OK; i++) {
        const struct pprof_name_filter names = {.size = sizeof names,
                                                .ignore = ignored[i]};

        if (ignored[i])
            status = pprof_filter_names(profile, &names, NULL, error);
    }
    return status;
}

static bool
tell(struct cpprof__record_options *options, const char *path,
     const struct list *list)
{
    struct pprof_profile *profile = NULL;
    struct cpprof_error error;
    struct stack *stacks = NULL;
    enum cpprof_status status;
    bool done = false;

    options->leaked_bytes = options->leaked_objects = 0;
    status = pprof_read_path(path, NULL, &profile, &error);
    if (status == CPPROF_OK && list->values == &in_use)
        options->n_allocated = pprof_sample_count(profile);
    if (status == CPPROF_OK)
        status = filter(profile, options, &error);
    if (status != CPPROF_OK) {
        cpprof__cli_fail("%s: %s", path, error.text);
        goto done;
    }
    if (pprof_sample_type_count(profile) != list->values->n_types) {
        cpprof__cli_fail("%s: no heap profile", path);
        goto done;
    }
    stacks = calloc(pprof_sample_count(profile) + 1, sizeof *stacks);
    if (!stacks) {
        cpprof__cli_fail("%s: out of memory", path);
        goto done;
    }
    print_stacks(
        options, profile, stacks,
        join_stacks(stacks, take_stacks(profile, list->values, stacks)), list);
    done = true;
done:
    free(stacks);
    pprof_free(profile);
    return done;
}

bool
cpprof__record_in_use(struct cpprof__record_options *options, const char *path,
                      bool is_estimate)
{
    return tell(options, path, &(struct list){&in_use, is_estimate, false});
}

/* ---- what is lost ------------------------------------------------------ */

/* A comma ends a word of CPPROF, and a percent sign begins a placeholder; our
 * folders have neither in their names. */
void
cpprof__record_lost_flags(const struct cpprof__record_options *options,
                          const struct cpprof__record_folder *folder,
                          struct cpprof__buffer *text)
{
    if (options->is_verdict && !strpbrk(folder->seen, ",%"))
        cpprof__buffer_printf(text, ",heapleak,out=%s/lost.%%p.pb.gz",
                              folder->seen);
}

/* heap.pb.gz has heap.lost.pb.gz beside it; NULL: no memory. */
static char *
name_of_lost(const char *path)
{
    int n = (int)cpprof__record_suffix_at(path);
    char *name;

    if (asprintf(&name, "%.*s.lost%s", n, path, path + n) < 0)
        return NULL;
    return name;
}

/* A profile is small. */
static bool
copy_file(const char *from, const char *to)
{
    struct pprof_profile *profile = NULL;
    struct cpprof_error error;
    bool done = pprof_read_path(from, NULL, &profile, &error) == CPPROF_OK &&
                pprof_write_to_path(profile, to, PPROF_FORMAT_GZIP, NULL,
                                    &error) == CPPROF_OK;

    if (!done)
        cpprof__cli_fail("%s", error.text);
    pprof_free(profile);
    return done;
}

static void
print_reachable(int64_t bytes, int64_t objects, bool is_estimate)
{
    char size[32];

    if (bytes <= 0 || objects <= 0)
        return;
    cpprof__record_size(bytes, size, sizeof size);
    cpprof__cli_warn("still reachable: %s%s in %" PRId64 " objects",
                     is_estimate ? "about " : "", size, objects);
}

static bool
tell_lost(struct cpprof__record_options *options, const char *from,
          const char *path, bool is_estimate)
{
    char *name = name_of_lost(path);
    int64_t bytes, objects;
    bool done =
        name && tell(options, path, &(struct list){&in_use, is_estimate, true});

    bytes = options->leaked_bytes;
    objects = options->leaked_objects;
    done =
        done && tell(options, from, &(struct list){&lost, is_estimate, false});
    if (done && options->leaked_bytes) {
        done = copy_file(from, name);
        if (done)
            cpprof__cli_warn("%s: what is lost", name);
    }
    if (done)
        print_reachable(bytes - options->leaked_bytes,
                        objects - options->leaked_objects, is_estimate);
    options->is_searched = done;
    free(name);
    return done;
}

bool
cpprof__record_lost(struct cpprof__record_options *options,
                    const struct cpprof__record_folder *folder, pid_t command,
                    const char *path, bool is_estimate)
{
    char from[PATH_MAX + 64];
    bool done;
    int fd = -1;

    snprintf(from, sizeof from, "%s/lost.%d.pb.gz", folder->path, (int)command);
    if (!options->is_reachable_too)
        fd = cpprof__spool_open(from);
    if (fd < 0)
        return cpprof__record_in_use(options, path, is_estimate);
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    done = tell_lost(options, from, path, is_estimate);
    close(fd);
    return done;
}

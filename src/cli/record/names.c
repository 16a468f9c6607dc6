/* SPDX-License-Identifier: MIT */
/*
 * The names of the files that `cpprof record` writes: FILE for the command,
 * one for each kind of profile, and FILE.NAME.PID beside it for every other
 * process.
 */
#include "cli/record/record.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

size_t
cpprof__record_suffix_at(const char *file)
{
    static const char *const known[] = {".pb.gz", ".pprof.gz", ".gz", ".pb"};
    const char *name = basename(file);
    const char *dot = strrchr(name, '.');
    size_t n = strlen(file), i;

    for (i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n_known = strlen(known[i]);

        if (strlen(name) > n_known && !strcmp(file + n - n_known, known[i]))
            return n - n_known;
    }
    return dot && dot != name ? (size_t)(dot - file) : n;
}

static const char *const names[] = {"cpu",   "heap", "block",
                                    "mutex", "wall", "offcpu"};
#define N_NAMES (sizeof names / sizeof *names)

const char *
cpprof__record_kind_name(unsigned kind)
{
    return names[__builtin_ctz(kind)];
}

unsigned
cpprof__record_kind(const char *word, size_t n)
{
    unsigned i;

    for (i = 0; i < N_NAMES; i++)
        if (strlen(names[i]) == n && !strncmp(word, names[i], n))
            return 1u << i;
    return 0;
}

/* One name of several: in the place of %k, or in front of the suffix. */
static char *
name_of_kind(const char *file, const char *kind)
{
    const char *at = strstr(file, "%k");
    size_t front = at ? (size_t)(at - file) : cpprof__record_suffix_at(file);
    struct stat st;
    char *path;

    if (!at && !stat(file, &st) && !S_ISREG(st.st_mode))
        return strdup(file);
    if (asprintf(&path, at ? "%.*s%s%s" : "%.*s.%s%s", (int)front, file, kind,
                 file + front + (at ? 2 : 0)) < 0)
        return NULL;
    return path;
}

char *
cpprof__record_name(const struct cpprof__record_options *options, unsigned kind)
{
    bool is_one = !(options->kinds & (options->kinds - 1));
    char *path;

    if (options->out && is_one && !strstr(options->out, "%k"))
        return strdup(options->out);
    if (options->out)
        return name_of_kind(options->out, cpprof__record_kind_name(kind));
    return asprintf(&path, "%s.pb.gz", cpprof__record_kind_name(kind)) < 0
               ? NULL
               : path;
}

char *
cpprof__record_name_vm(const struct cpprof__record_options *options)
{
    return options->out ? name_of_kind(options->out, "vm") : strdup("vm.pb.gz");
}

/* As much of the program's name as there is room for, in whole characters. */
static int
fitting(const char *name, size_t n_others)
{
    size_t room = n_others < NAME_MAX ? NAME_MAX - n_others : 0;
    size_t n = strlen(name);

    if (n > room)
        for (n = room; n && (name[n] & 0xc0) == 0x80;)
            n--;
    return (int)n;
}

char *
cpprof__record_name_beside(const char *file, const char *name, int32_t pid,
                           const uint32_t *image)
{
    size_t n = cpprof__record_suffix_at(file);
    char numbers[32], *path, *p;
    int n_numbers = snprintf(numbers, sizeof numbers, ".%" PRId32, pid);
    size_t n_others;

    if (image)
        snprintf(numbers + n_numbers, sizeof numbers - (size_t)n_numbers,
                 ".%" PRIu32, *image);
    n_others = strlen(basename(file)) + strlen(".") + strlen(numbers);
    if (asprintf(&path, "%.*s.%.*s%s%s", (int)n, file, fitting(name, n_others),
                 name, numbers, file + n) < 0)
        return NULL;
    for (p = path + n + 1; *p; p++)
        if (*p == '/' || (unsigned char)*p < ' ')
            *p = '_';
    return path;
}

/* Files beside /dev/null would be files in /dev. */
bool
cpprof__record_has_room_beside(const char *path)
{
    struct stat st;

    return stat(path, &st) < 0 || S_ISREG(st.st_mode);
}

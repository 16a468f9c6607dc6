/* SPDX-License-Identifier: MIT */
/*
 * Labels that tell sources apart when they are added up. -by=file and
 * -by=process give the label "process" to sources that have none.
 * -by=label:KEY,... keeps the labels of these keys and no others, so that what
 * is added up has a sample for each stack and value of them; a source without
 * one has it from a folder of its path that is called KEY=VALUE.
 */
#include "base/array.h"
#include "base/status.h"

#include "cli/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".pb.gz"
#define LABEL  "label:"

/* Is it "KEY,KEY", with a name between all commas? */
static bool
are_keys(const char *keys)
{
    size_t n;

    do {
        n = strcspn(keys, ",");
        keys += n;
    } while (n && *keys++);
    return n;
}

bool
cpprof__by_is_known(const char *by)
{
    return strcmp(by, "file") == 0 || strcmp(by, "process") == 0 ||
           (strncmp(by, LABEL, strlen(LABEL)) == 0 &&
            are_keys(by + strlen(LABEL)));
}

/* Has any sample such a label? */
static bool
has_key(const struct pprof_profile *profile, const char *key)
{
    struct pprof_sample sample = {.size = sizeof sample};
    size_t n = pprof_sample_count(profile), i, k;

    for (i = 0; i < n; i++) {
        pprof_get_sample(profile, i, &sample);
        for (k = 0; k < sample.n_labels; k++)
            if (strcmp(pprof_text(profile, sample.labels[k].key, NULL), key) ==
                0)
                return true;
    }
    return false;
}

/* ---- file and process ------------------------------------------------- */

/* The name of the program's file, without folders; "" if none is known. */
static const char *
program(const struct pprof_profile *profile)
{
    const char *file, *slash;

    if (!pprof_mapping_count(profile))
        return "";
    file = pprof_text(profile, pprof_mappings(profile)[0].file, NULL);
    slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static enum cpprof_status
label_process(struct pprof_profile *profile, const char *by, const char *source,
              struct cpprof_error *error)
{
    const size_t n_suffix = strlen(SUFFIX);
    size_t n = strlen(source);
    char *name;
    enum cpprof_status status;

    if (has_key(profile, "process"))
        return CPPROF_OK;
    if (strcmp(by, "process") == 0 && *program(profile))
        name = strdup(program(profile));
    else if (n > n_suffix && strcmp(source + n - n_suffix, SUFFIX) == 0)
        name = strndup(source, n - n_suffix);
    else
        name = strdup(source);
    if (!name)
        return cpprof__fail(error, CPPROF_NOMEM, 0, "out of memory");
    status = pprof_set_label(profile, "process", name, error);
    free(name);
    return status;
}

/* ---- label: ----------------------------------------------------------- */

/* Is the key one of "KEY,KEY"? */
static bool
is_listed(const char *keys, const char *key)
{
    size_t n = strlen(key);

    for (; *keys; keys += strcspn(keys, ","), keys += *keys == ',')
        if (strcspn(keys, ",") == n && memcmp(keys, key, n) == 0)
            return true;
    return false;
}

static enum cpprof_status
remove_others(struct pprof_profile *profile, const char *keys,
              struct cpprof_error *error)
{
    struct pprof_sample sample = {.size = sizeof sample};
    CPPROF__ARRAY(pprof_string) gone = {0};
    enum cpprof_status status = CPPROF_OK;
    size_t n = pprof_sample_count(profile), i, k, g;

    for (i = 0; i < n && status == CPPROF_OK; i++) {
        pprof_get_sample(profile, i, &sample);
        for (k = 0; k < sample.n_labels && status == CPPROF_OK; k++) {
            pprof_string key = sample.labels[k].key, *to;

            for (g = 0; g < gone.n && gone.at[g] != key; g++) {
            }
            if (g < gone.n || is_listed(keys, pprof_text(profile, key, NULL)))
                continue;
            to = CPPROF__ARRAY_ADD(&gone);
            if (to)
                *to = key;
            else
                status = cpprof__fail(error, CPPROF_NOMEM, 0, "out of memory");
        }
    }
    for (g = 0; g < gone.n && status == CPPROF_OK; g++) {
        const char *key = pprof_text(profile, gone.at[g], NULL);

        status = pprof_remove_label(profile, key, error);
        if (status == CPPROF_OK)
            status = pprof_remove_num_label(profile, key, error);
    }
    CPPROF__ARRAY_FREE(&gone);
    return status;
}

/* Give all samples the label that a folder KEY=VALUE of the path says. */
static enum cpprof_status
label_by_folder(struct pprof_profile *profile, const char *key, size_t n_key,
                const char *path, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    char *name = strndup(key, n_key), *value = NULL;
    size_t n;

    for (; name && strchr(path, '/'); path = strchr(path, '/') + 1) {
        n = strcspn(path, "/");
        if (n <= n_key + 1 || memcmp(path, key, n_key) || path[n_key] != '=')
            continue;
        free(value);
        value = strndup(path + n_key + 1, n - n_key - 1);
    }
    if (!name)
        status = cpprof__fail(error, CPPROF_NOMEM, 0, "out of memory");
    else if (value && !has_key(profile, name))
        status = pprof_set_label(profile, name, value, error);
    free(name);
    free(value);
    return status;
}

static enum cpprof_status
keep_labels(struct pprof_profile *profile, const char *keys, const char *source,
            struct cpprof_error *error)
{
    enum cpprof_status status = remove_others(profile, keys, error);
    size_t n;

    for (; *keys && status == CPPROF_OK; keys += n + (keys[n] == ',')) {
        n = strcspn(keys, ",");
        if (n)
            status = label_by_folder(profile, keys, n, source, error);
    }
    return status;
}

enum cpprof_status
cpprof__label_source(struct pprof_profile *profile, const char *by,
                     const char *source, struct cpprof_error *error)
{
    if (!by || !*by)
        return CPPROF_OK;
    if (strncmp(by, LABEL, strlen(LABEL)) != 0)
        return label_process(profile, by, source, error);
    return keep_labels(profile, by + strlen(LABEL), source, error);
}

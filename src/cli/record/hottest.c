/* SPDX-License-Identifier: MIT */
/*
 * What somebody at a terminal wants to know first: the functions that a profile
 * has most of, and the command that shows more. They are the first rows of the
 * table that this command prints, in its words. A log or a pipe does not get
 * them.
 */
#include "cli/record/record.h"

#include "cli/messages.h"
#include "cli/terminal.h"

#include <cpprof/pprof/profile.h>
#include <cpprof/pprof/report.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_FUNCTIONS 3

/* Columns beside a name: "cpprof:   48.84%     420ms  ". */
#define COLUMNS_BEFORE 29
#define COLUMNS_LEAST  20 /* of a name, on any terminal */

/* As pprof_read_path(), with names as reports show them. */
static enum cpprof_status
read_back(const char *path, struct pprof_profile **profile,
          struct cpprof_error *error)
{
    enum cpprof_status status = pprof_read_path(path, NULL, profile, error);

    if (status == CPPROF_OK)
        status = pprof_demangle(*profile, PPROF_DEMANGLE_SHORT, 0, error);
    if (status == CPPROF_OK)
        status = pprof_drop_frames(*profile, error);
    return status;
}

/* The table, which ends with a 0. It has all rows: which of them are "(inline)"
 * depends on how many there are. */
static enum cpprof_status
make_table(const char *path, struct cpprof__buffer *table,
           struct cpprof_error *error)
{
    struct cpprof_writer writer = cpprof__record_writer(table);
    struct pprof_profile *profile = NULL;
    enum cpprof_status status = read_back(path, &profile, error);

    if (status == CPPROF_OK)
        status =
            pprof_report_write(profile, &writer, PPROF_REPORT_TOP, NULL, error);
    pprof_free(profile);
    cpprof__buffer_append(table, "", 1);
    return status == CPPROF_OK && table->failed ? CPPROF_NOMEM : status;
}

/* The bytes of the first n columns, with one for each character of UTF-8. */
static int
fitting(const char *text, unsigned n)
{
    const char *at;

    for (at = text; *at; at++)
        if (((unsigned char)*at & 0xc0) != 0x80 && n-- == 0)
            break;
    return (int)(at - text);
}

/* Print a row: flat flat% sum% cum cum% name. False if nothing was spent there.
 */
static bool
print_row(const char *row)
{
    unsigned columns = cpprof__terminal_columns(STDERR_FILENO);
    unsigned n_name = columns ? COLUMNS_LEAST : 1024;
    char flat[32], percent[32];
    int at = 0;

    if (columns > COLUMNS_BEFORE + COLUMNS_LEAST)
        n_name = columns - COLUMNS_BEFORE;
    if (sscanf(row, "%31s %31s %*s %*s %*s %n", flat, percent, &at) != 2 ||
        !at || strcmp(flat, "0") == 0)
        return false;
    cpprof__cli_warn("%8s %9s  %.*s", percent, flat, fitting(row + at, n_name),
                     row + at);
    return true;
}

/* Print the rows below the line of titles. */
static bool
print_rows(char *table)
{
    char *row = strstr(table, "flat  flat%"), *rest;
    unsigned n = 0;

    if (!row || !strtok_r(row, "\n", &rest))
        return false;
    while (n < N_FUNCTIONS && (row = strtok_r(NULL, "\n", &rest)) &&
           print_row(row))
        n++;
    return n > 0;
}

/* A path as a word of a shell: as it is, or in single quotes. */
static void
quote(const char *path, struct cpprof__buffer *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./+,:@%-";
    bool is_plain = path[strspn(path, plain)] == 0;

    if (*path == '-') /* else it is a flag */
        cpprof__buffer_append(word, "./", 2);
    if (is_plain)
        cpprof__buffer_append(word, path, strlen(path));
    else
        cpprof__buffer_append(word, "'", 1);
    for (; !is_plain && *path; path++)
        if (*path == '\'')
            cpprof__buffer_append(word, "'\\''", 4);
        else
            cpprof__buffer_append(word, path, 1);
    cpprof__buffer_append(word, "'", is_plain ? 0 : 1);
    cpprof__buffer_append(word, "", 1);
}

void
cpprof__record_hottest(const struct cpprof__record_options *options,
                       const char *path)
{
    struct cpprof__buffer table = {0}, word = {0};
    struct cpprof_error error;

    if (!isatty(STDERR_FILENO) || options->legacy || options->shown ||
        options->symbolize == CPPROF_SYMBOLIZE_NONE ||
        !cpprof__record_has_room_beside(path))
        return;
    quote(path, &word);
    if (make_table(path, &table, &error) == CPPROF_OK && !word.failed &&
        print_rows((char *)table.data))
        cpprof__cli_warn("more: cpprof top %s", (char *)word.data);
    cpprof__buffer_free(&table);
    cpprof__buffer_free(&word);
}

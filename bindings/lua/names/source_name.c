/* SPDX-License-Identifier: MIT */
/*
 * The name that a function is defined under, from the line of its source,
 * because callers may use any name. "function a.b:c(", "local function f", "f =
 * function". If a line defines several functions it is the one whose name the
 * caller uses.
 */
#include "source_name.h"

#include "functions.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tunable, in bytes: functions of a larger file get the names that callers use.
 * Reading this much takes the script's thread some 200 us, once for each
 * function. */
#define SOURCE_MAX (1 << 20)

static const char keyword[] = "function";
#define N_KEYWORD (sizeof keyword - 1)

static bool
is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool
is_path(char c)
{
    return is_name(c) || c == '.' || c == ':';
}

/* The word "function" in text, as a word of its own, or NULL. */
static const char *
find_keyword(const char *line, const char *text)
{
    while ((text = strstr(text, keyword))) {
        bool begins = text == line || !is_name(text[-1]);

        if (begins && !is_name(text[N_KEYWORD]))
            return text;
        text += N_KEYWORD;
    }
    return NULL;
}

static bool
copy(const char *from, const char *limit, char *name, size_t n)
{
    while (from < limit && (*from == '.' || *from == ':'))
        from++;
    if (from == limit || (size_t)(limit - from) >= n)
        return false;
    memcpy(name, from, (size_t)(limit - from));
    name[limit - from] = 0;
    return true;
}

/* The name after the word `function`, or before "= function". */
static bool
name_at(const char *line, const char *at, char *name, size_t n)
{
    const char *from = at + N_KEYWORD, *limit;

    from += strspn(from, " \t");
    for (limit = from; is_path(*limit); limit++) {
    }
    if (limit > from)
        return copy(from, limit, name, n);
    while (at > line && isspace((unsigned char)at[-1]))
        at--;
    if (at == line || at[-1] != '=')
        return false;
    for (limit = at - 1; limit > line && isspace((unsigned char)limit[-1]);)
        limit--;
    for (from = limit; from > line && is_path(from[-1]);)
        from--;
    return copy(from, limit, name, n);
}

static bool
is_several(const char *line)
{
    const char *at = find_keyword(line, line);

    return at && find_keyword(line, at + N_KEYWORD);
}

/* Callers use "c" for "a.b:c". */
static bool
ends_with(const char *path, const char *called)
{
    size_t n = strlen(path), n_called = strlen(called);

    return n >= n_called && !strcmp(path + n - n_called, called) &&
           (n == n_called || !is_name(path[n - n_called - 1]));
}

static bool
parse(const char *line, const char *called, char *name, size_t n)
{
    const char *at = find_keyword(line, line);
    char other[FUNCTION_NAME_MAX];
    int n_found = 0;

    if (!is_several(line))
        return at && name_at(line, at, name, n);
    for (; *called && at; at = find_keyword(line, at + N_KEYWORD))
        if (name_at(line, at, other, sizeof other) &&
            ends_with(other, called) && strlen(other) < n && !n_found++)
            strcpy(name, other);
    return n_found == 1;
}

/* ---- the line ---------------------------------------------------------- */

/* A pipe, a terminal or a device is not even opened, because reading it takes
 * input away, waits, or does worse. */
static FILE *
open_regular(const char *path)
{
    struct stat st;
    FILE *file = NULL;
    int fd;

    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return NULL;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
        st.st_size <= SOURCE_MAX)
        file = fdopen(fd, "r");
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

/* The source, from a file or in memory. NULL: there is none to be had. */
static FILE *
open_source(const lua_Debug *ar)
{
    size_t n = source_length(ar);

    if (*ar->source == '@')
        return open_regular(ar->source + 1);
    return *ar->source == '=' || !n ? NULL
                                    : fmemopen((void *)ar->source, n, "r");
}

/* NULL: there is none, or no memory. To be freed. */
static char *
read_line(const lua_Debug *ar)
{
    FILE *source = ar->linedefined > 0 ? open_source(ar) : NULL;
    char *line = NULL;
    size_t n_bytes = 0;
    int i;

    if (!source)
        return NULL;
    for (i = 0; i < ar->linedefined; i++) {
        if (getline(&line, &n_bytes, source) >= 0)
            continue;
        free(line);
        line = NULL;
        break;
    }
    fclose(source);
    return line;
}

enum source_name
name_by_source(const lua_Debug *ar, const char *called, char *name, size_t n)
{
    enum source_name answer = SOURCE_UNKNOWN;
    char *line = read_line(ar);

    if (line)
        answer = parse(line, called, name, n) ? SOURCE_NAMED : SOURCE_ANONYMOUS;
    free(line);
    return answer;
}

bool
source_is_crowded(const lua_Debug *ar)
{
    char *line = read_line(ar);
    bool is_crowded = !line || is_several(line);

    free(line);
    return is_crowded;
}

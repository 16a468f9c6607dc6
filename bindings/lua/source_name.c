/* SPDX-License-Identifier: MIT */
/*
 * The name that a function is defined under, from the line of its source: who
 * calls it may call it anything. "function a.b:c(", "local function f",
 * "f = function"; of two functions on a line nothing is told.
 */
#include "state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* Tunable: lines beyond are not looked for. */
#define LINES_MAX 200000

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

/* What stands behind the word, or in front of "= function". */
static bool
parse(const char *line, char *name, size_t n)
{
    const char *at = find_keyword(line, line), *from, *limit;

    if (!at || find_keyword(line, at + N_KEYWORD))
        return false;
    from = at + N_KEYWORD;
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

/* NULL: there is no such line, or no memory. To be freed. */
static char *
read_line(FILE *file, int number)
{
    char *line = NULL;
    size_t n = 0;

    while (number-- > 0)
        if (getline(&line, &n, file) < 0) {
            free(line);
            return NULL;
        }
    return line;
}

static FILE *
open_source(const lua_Debug *ar)
{
    if (*ar->source == '@')
        return fopen(ar->source + 1, "re");
    if (*ar->source == '=')
        return NULL;
    return fmemopen((char *)ar->source, source_length(ar), "r");
}

enum source_name
name_by_source(const lua_Debug *ar, char *name, size_t n)
{
    enum source_name answer = SOURCE_UNKNOWN;
    FILE *file;
    char *line;

    if (ar->linedefined < 1 || ar->linedefined > LINES_MAX)
        return SOURCE_UNKNOWN;
    file = open_source(ar);
    if (!file)
        return SOURCE_UNKNOWN;
    line = read_line(file, ar->linedefined);
    if (line)
        answer = parse(line, name, n) ? SOURCE_NAMED : SOURCE_ANONYMOUS;
    free(line);
    fclose(file);
    return answer;
}

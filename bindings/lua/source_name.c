/* SPDX-License-Identifier: MIT */
/*
 * The name that a function is defined under, from the line of its source: who
 * calls it may call it anything. "function a.b:c(", "local function f",
 * "f = function". Of several functions on a line it is the one that has the
 * name which its caller uses.
 */
#include "state.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tunable, in bytes: how far a file is read, and how long a line may be; what
 * is beyond has the names that callers use. */
#define SOURCE_MAX     (16u << 20)
#define LINE_MAX_BYTES (1u << 20)

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

/* What stands behind the word at, or in front of "= function". */
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

/* "c" is what "a.b:c" is called. */
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

/* Of a file, block by block, or of a source that is in memory. */
struct reader {
    int fd;      /* -1: memory */
    size_t left; /* bytes of the file that may still be read */
    const char *at, *limit;
    char block[4096];
};

/* A name may be that of a pipe, a terminal or a device, where a look takes
 * input away, waits, or does more: they are not even opened. */
static int
open_regular(const char *path)
{
    struct stat before, st;
    int fd;

    if (stat(path, &before) || !S_ISREG(before.st_mode))
        return -1;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool
begin(struct reader *r, const lua_Debug *ar)
{
    r->fd = -1;
    r->left = SOURCE_MAX;
    r->at = r->limit = r->block;
    if (*ar->source == '@')
        return (r->fd = open_regular(ar->source + 1)) >= 0;
    if (*ar->source == '=')
        return false;
    r->at = ar->source;
    r->limit = ar->source + source_length(ar);
    return true;
}

/* Is there a byte at r->at? */
static bool
has_more(struct reader *r)
{
    size_t most = r->left < sizeof r->block ? r->left : sizeof r->block;
    ssize_t n;

    if (r->at < r->limit)
        return true;
    n = r->fd >= 0 && most ? read(r->fd, r->block, most) : 0;
    if (n <= 0)
        return false;
    r->left -= (size_t)n;
    r->at = r->block;
    r->limit = r->block + n;
    return true;
}

static const char *
newline_in(const struct reader *r)
{
    return memchr(r->at, '\n', (size_t)(r->limit - r->at));
}

static bool
skip_lines(struct reader *r, int n)
{
    while (n > 0) {
        const char *newline = has_more(r) ? newline_in(r) : NULL;

        if (r->at == r->limit)
            return false;
        r->at = newline ? newline + 1 : r->limit;
        n -= newline != NULL;
    }
    return true;
}

/* NULL: there is none, it is too long, or no memory. To be freed. */
static char *
copy_line(struct reader *r)
{
    char *line = NULL, *larger;
    const char *newline = NULL;
    size_t n = 0, more;

    while (!newline && has_more(r)) {
        newline = newline_in(r);
        more = (size_t)((newline ? newline : r->limit) - r->at);
        larger = n + more < LINE_MAX_BYTES ? realloc(line, n + more + 1) : NULL;
        if (!larger) {
            free(line);
            return NULL;
        }
        line = larger;
        memcpy(line + n, r->at, more);
        n += more;
        line[n] = 0;
        r->at += more;
    }
    return line;
}

static char *
read_line(const lua_Debug *ar)
{
    struct reader r;
    char *line = NULL;

    if (ar->linedefined < 1 || !begin(&r, ar))
        return NULL;
    if (skip_lines(&r, ar->linedefined - 1))
        line = copy_line(&r);
    if (r.fd >= 0)
        close(r.fd);
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
source_is_crowded(const lua_Debug *ar, bool otherwise)
{
    char *line = read_line(ar);
    bool is_crowded = line ? is_several(line) : otherwise;

    free(line);
    return is_crowded;
}

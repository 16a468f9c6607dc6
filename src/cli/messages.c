/* SPDX-License-Identifier: MIT */
/*
 * Messages on stderr. They end up in logs, so the passwords of URLs are not in
 * them. A password is between the first colon after "//" and the last "@"
 * before the next slash. If there is no "@" and no port, the slash belongs to
 * the password, which then ends at the last "@" of the word.
 */
#include "cli/messages.h"

#include "base/text.h"
#include "cli/terminal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------- passwords ---- */

/* The password in the n bytes after "//"; NULL: there is none. */
static const char *
find(const char *word, size_t n, size_t *n_password)
{
    size_t n_authority = strcspn(word, "/?#"), n_port;
    const char *colon, *at;

    if (n_authority > n)
        n_authority = n;
    at = memrchr(word, '@', n_authority);
    colon = memchr(word, ':', at ? (size_t)(at - word) : n_authority);
    if (!colon)
        return NULL;
    colon++;
    n_port = strspn(colon, "0123456789");
    if (!at && *word != '[' && n_port < n_authority - (size_t)(colon - word))
        at = memrchr(colon, '@', n - (size_t)(colon - word));
    if (!at)
        return NULL;
    *n_password = (size_t)(at - colon);
    return colon;
}

/* Append what fits; returns the room that is left. */
static size_t
append(char **out, size_t size, const char *text, size_t n)
{
    if (n >= size)
        n = size - 1;
    memcpy(*out, text, n);
    *out += n;
    **out = 0;
    return size - n;
}

void
cpprof__hide_passwords(const char *text, char *out, size_t size)
{
    const char *slashes, *password;
    size_t n;

    while ((slashes = strstr(text, "://"))) {
        slashes += 3;
        password = find(slashes, strcspn(slashes, " \t\n\"'"), &n);
        if (!password) {
            size = append(&out, size, text, (size_t)(slashes - text));
            text = slashes;
            continue;
        }
        size = append(&out, size, text, (size_t)(password - text));
        size = append(&out, size, "xxxxx", 5);
        text = password + n;
    }
    append(&out, size, text, strlen(text));
}

void
cpprof__hide_password(const char *source, char *out, size_t size)
{
    const char *slashes = strstr(source, "://"), *password = NULL;
    const char *word = slashes ? slashes + 3 : source;
    size_t n = 0;

    if (access(source, F_OK) != 0)
        password = find(word, strlen(word), &n);
    if (password) {
        size = append(&out, size, source, (size_t)(password - source));
        size = append(&out, size, "xxxxx", 5);
        source = password + n;
    }
    append(&out, size, source, strlen(source));
}

/* ----------------------------------------------------------- messages ---- */

/* In front of messages. */
static const char *prefix = "cpprof: ";

void
cpprof__message_text(char *out, size_t size, const char *format, va_list args)
{
    char whole[2048];

    vsnprintf(whole, sizeof whole, format, args);
    cpprof__hide_passwords(whole, out, size);
    cpprof__clean_text(out);
}

/* The latest lines, as many as fit. */
static struct {
    pthread_mutex_t lock;
    char text[CPPROF__CLI_SAID];
    size_t n;
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Keep a line, which fits, in place of the oldest ones. */
static void
keep_line(const char *line)
{
    size_t n = strlen(line), gone;

    pthread_mutex_lock(&said.lock);
    while (said.n + n + 2 > sizeof said.text) {
        gone = strcspn(said.text, "\n") + 1;
        said.n -= gone < said.n ? gone : said.n;
        memmove(said.text, said.text + gone, said.n);
        said.text[said.n] = 0;
    }
    said.n +=
        (size_t)sprintf(said.text + said.n, "%s%s", said.n ? "\n" : "", line);
    pthread_mutex_unlock(&said.lock);
}

static void
print_line(const char *format, va_list args)
{
    char text[CPPROF__CLI_SAID / 4] = "";

    cpprof__message_text(text, sizeof text, format, args);
    keep_line(text);
    cpprof__progress_hide();
    fprintf(stderr, "%s%s%s%s\n", cpprof__color(STDERR_FILENO, "31"), prefix,
            text, cpprof__color(STDERR_FILENO, ""));
}

void
cpprof__cli_said(char out[CPPROF__CLI_SAID])
{
    pthread_mutex_lock(&said.lock);
    strcpy(out, said.text);
    pthread_mutex_unlock(&said.lock);
}

void
cpprof__cli_prefix(const char *text)
{
    prefix = text;
}

int
cpprof__cli_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
    return CPPROF__EXIT_ERROR;
}

void
cpprof__cli_warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

void
cpprof__cli_warn_once(void *unused, const char *text)
{
    static char last[256];

    (void)unused;
    if (strncmp(text, last, sizeof last - 1) == 0)
        return;
    snprintf(last, sizeof last, "%s", text);
    while (text) {
        size_t n = strcspn(text, "\n");

        cpprof__cli_warn("%.*s", (int)n, text);
        text = text[n] ? text + n + 1 : NULL;
    }
}

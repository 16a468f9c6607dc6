/* SPDX-License-Identifier: MIT */
/*
 * URLs are cut into their parts, checked as net/url checks them, and put
 * together again in its normal form: the query is sorted by its keys and
 * encoded anew, a fragment is left out.
 */
#include "cli/fetch/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Longer ones are no URLs. Bounds all sums of lengths below. */
#define LONGEST 65536

/* What `go tool pprof` fetches of a host alone. */
#define DEFAULT_PATH "/debug/pprof/profile"

/* A part of a text. */
struct part {
    const char *at;
    size_t n;
};

struct parts {
    struct part scheme; /* in the case it was written in */
    struct part user;   /* without "@" */
    struct part host;   /* with the port */
    struct part path;
    struct part query; /* without "?" */
};

static bool
part_is(struct part part, const char *word)
{
    return part.n == strlen(word) && strncasecmp(part.at, word, part.n) == 0;
}

/* ------------------------------------------------------------- parse ---- */

/* The length of a scheme before ":", 0 without one, -1 when ":" is the first
 * character. */
static int
scheme_length(const char *s)
{
    int i;

    for (i = 0; s[i]; i++) {
        if (s[i] == ':')
            return i ? i : -1;
        if (!isalpha((unsigned char)s[i]) &&
            (i == 0 || !(isdigit((unsigned char)s[i]) || strchr("+-.", s[i]))))
            return 0;
    }
    return 0;
}

/* A host with or without a port, as net/url lets it pass. */
static bool
is_host(struct part host)
{
    const char *end = host.at + host.n, *port, *at;

    for (at = host.at; at < end; at++)
        if (!isalnum((unsigned char)*at) && (unsigned char)*at < 0x80 &&
            !strchr("-._~!$&'()*+,;=:[]<>\"", *at))
            return false;
    if (host.n && host.at[0] == '[') {
        port = memchr(host.at, ']', host.n);
        if (!port || (port + 1 < end && port[1] != ':'))
            return false;
        port = port + 1 < end ? port + 1 : NULL;
    } else {
        port = memrchr(host.at, ':', host.n);
    }
    for (at = port ? port + 1 : end; at < end; at++)
        if (!isdigit((unsigned char)*at))
            return false;
    return true;
}

/* user@host up to "/" or the end. */
static bool
take_authority(const char **rest, const char *end, struct parts *parts)
{
    const char *slash = memchr(*rest, '/', (size_t)(end - *rest));
    const char *stop = slash ? slash : end, *at;

    at = memrchr(*rest, '@', (size_t)(stop - *rest));
    if (at) {
        parts->user = (struct part){*rest, (size_t)(at - *rest)};
        *rest = at + 1;
    }
    parts->host = (struct part){*rest, (size_t)(stop - *rest)};
    *rest = stop;
    return is_host(parts->host);
}

/* net/url.Parse, of what matters here; false for no URL at all. */
static bool
split(const char *s, struct parts *parts)
{
    int n = scheme_length(s);
    const char *end = s + strcspn(s, "#"), *rest = s, *question, *colon;

    memset(parts, 0, sizeof *parts);
    if (n < 0)
        return false;
    if (n) {
        parts->scheme = (struct part){s, (size_t)n};
        rest += n + 1;
    }
    question = memchr(rest, '?', (size_t)(end - rest));
    if (question) {
        parts->query =
            (struct part){question + 1, (size_t)(end - question - 1)};
        end = question;
    }
    if (n && strncmp(rest, "//", 2) == 0) {
        rest += 2;
        if (!take_authority(&rest, end, parts))
            return false;
    } else if (!n) { /* "1.2.3.4:80/x" is no path either */
        colon = memchr(rest, ':', (size_t)(end - rest));
        if (colon && !memchr(rest, '/', (size_t)(colon - rest)))
            return false;
    }
    parts->path = (struct part){rest, (size_t)(end - rest)};
    return true;
}

static bool
has_controls(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return true;
    return false;
}

/* ----------------------------------------------------------- writing ---- */

/* A text that grows. */
struct text {
    char *at;
    size_t n;
    bool failed;
};

static void
put(struct text *text, const char *at, size_t n)
{
    char *grown = text->failed ? NULL : realloc(text->at, text->n + n + 1);

    if (!grown) {
        text->failed = true;
        return;
    }
    memcpy(grown + text->n, at, n);
    text->at = grown;
    text->n += n;
    text->at[text->n] = 0;
}

static void
put_text(struct text *text, const char *at)
{
    put(text, at, strlen(at));
}

static void
put_part(struct text *text, struct part part)
{
    put(text, part.at, part.n);
}

/* The text, to be freed, or NULL. */
static char *
done(struct text *text)
{
    if (!text->failed)
        return text->at;
    free(text->at);
    return NULL;
}

/* Bytes of `plain` and letters and digits as they are, others as %XX. */
static void
put_escaped(struct text *text, struct part part, const char *plain)
{
    char hex[4];
    size_t i;

    for (i = 0; i < part.n; i++) {
        char c = part.at[i];

        if (isalnum((unsigned char)c) || (c && strchr(plain, c))) {
            put(text, &c, 1);
        } else {
            snprintf(hex, sizeof hex, "%%%02X", (unsigned char)c);
            put(text, hex, 3);
        }
    }
}

/* ------------------------------------------------------------- query ---- */

static int
hex_digit(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* Are two digits behind each "%"? */
static bool
is_escaped(struct part part)
{
    size_t i;

    for (i = 0; i < part.n; i++)
        if (part.at[i] == '%' &&
            (part.n - i < 3 || hex_digit(part.at[i + 1]) < 0 ||
             hex_digit(part.at[i + 2]) < 0))
            return false;
    return true;
}

/* Undo %XX of what is_escaped(), and "+" for a blank; false without memory. To
 * be freed. */
static bool
unescape(struct part part, bool plus, struct part *result)
{
    char *out = malloc(part.n + 1);
    size_t i, n = 0;

    if (!out)
        return false;
    for (i = 0; i < part.n; i++) {
        char c = part.at[i];

        if (c == '%') {
            c = (char)(hex_digit(part.at[i + 1]) * 16 +
                       hex_digit(part.at[i + 2]));
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        out[n++] = c;
    }
    out[n] = 0;
    *result = (struct part){out, n};
    return true;
}

/* More are left out; no profile takes as many. */
#define MAX_PAIRS 64

struct query {
    struct pair {
        struct part key, value; /* both to be freed */
    } pairs[MAX_PAIRS];
    size_t n;
};

static void
query_free(struct query *q)
{
    size_t i;

    for (i = 0; i < q->n; i++) {
        free((void *)q->pairs[i].key.at);
        free((void *)q->pairs[i].value.at);
    }
    q->n = 0;
}

/* A pair that is no pair is left out, as url.Values does; false without
 * memory. */
static bool
add_pair(struct query *q, struct part text)
{
    const char *equals = memchr(text.at, '=', text.n);
    struct part key = {text.at, equals ? (size_t)(equals - text.at) : text.n};
    struct part value = {equals ? equals + 1 : "",
                         equals ? text.n - key.n - 1 : 0};
    struct pair pair;

    if (!text.n || q->n == MAX_PAIRS || memchr(text.at, ';', text.n) ||
        !is_escaped(key) || !is_escaped(value))
        return true;
    if (!unescape(key, true, &pair.key))
        return false;
    if (!unescape(value, true, &pair.value)) {
        free((void *)pair.key.at);
        return false;
    }
    q->pairs[q->n++] = pair;
    return true;
}

static bool
parse_query(struct query *q, struct part text)
{
    bool ok = true;

    while (text.n && ok) {
        const char *end = memchr(text.at, '&', text.n);
        size_t n = end ? (size_t)(end - text.at) : text.n;

        ok = add_pair(q, (struct part){text.at, n});
        n += end ? 1 : 0;
        text = (struct part){text.at + n, text.n - n};
    }
    return ok;
}

static int
compare_keys(struct part a, struct part b)
{
    int order = memcmp(a.at, b.at, a.n < b.n ? a.n : b.n);

    return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* By key; equal keys stay in their order. */
static void
sort_query(struct query *q)
{
    size_t i, j;

    for (i = 1; i < q->n; i++) {
        struct pair pair = q->pairs[i];

        for (j = i; j > 0 && compare_keys(pair.key, q->pairs[j - 1].key) < 0;
             j--)
            q->pairs[j] = q->pairs[j - 1];
        q->pairs[j] = pair;
    }
}

#define SECONDS "seconds"

/* The seconds of the query; 0 when it has none. */
static int
seconds_of(const struct query *q)
{
    size_t i;
    char *end;
    long value;

    for (i = 0; i < q->n; i++) {
        if (strcmp(q->pairs[i].key.at, SECONDS) != 0)
            continue;
        errno = 0;
        value = strtol(q->pairs[i].value.at, &end, 10);
        return errno || *end || value <= 0 || value > 1000 * 1000 * 1000
                   ? 0
                   : (int)value;
    }
    return 0;
}

/* Replace the seconds of the query. */
static bool
set_seconds(struct query *q, int seconds)
{
    size_t i, kept = 0;
    char text[32];

    for (i = 0; i < q->n; i++) {
        if (strcmp(q->pairs[i].key.at, SECONDS) != 0) {
            q->pairs[kept++] = q->pairs[i];
            continue;
        }
        free((void *)q->pairs[i].key.at);
        free((void *)q->pairs[i].value.at);
    }
    q->n = kept < MAX_PAIRS ? kept : MAX_PAIRS - 1;
    if (kept == MAX_PAIRS) {
        free((void *)q->pairs[q->n].key.at);
        free((void *)q->pairs[q->n].value.at);
    }
    snprintf(text, sizeof text, SECONDS "=%d", seconds);
    return add_pair(q, (struct part){text, strlen(text)});
}

static void
put_query(struct text *text, const struct query *q)
{
    struct text pair;
    size_t i, from, j;

    for (i = 0; i < q->n; i++) {
        put_text(text, i ? "&" : "?");
        from = text->n;
        put_escaped(text, q->pairs[i].key, "-_.~ ");
        put_text(text, "=");
        put_escaped(text, q->pairs[i].value, "-_.~ ");
        pair = *text;
        for (j = from; !pair.failed && j < pair.n; j++)
            if (pair.at[j] == ' ')
                pair.at[j] = '+';
    }
}

/* --------------------------------------------------------------- url ---- */

static bool
is_loopback(struct part host)
{
    const char *colon = memrchr(host.at, ':', host.n);

    if (host.n && host.at[0] == '[')
        return strncmp(host.at, "[::1]", 5) == 0;
    if (colon)
        host.n = (size_t)(colon - host.at);
    return part_is(host, "localhost") ||
           (host.n > 4 && strncmp(host.at, "127.", 4) == 0);
}

static void
put_scheme(struct text *text, struct part scheme)
{
    size_t i;

    for (i = 0; i < scheme.n; i++) {
        char c = (char)tolower((unsigned char)scheme.at[i]);

        put(text, &c, 1);
    }
}

static void
put_user(struct text *text, struct part user, bool hide)
{
    const char *colon = user.at ? memchr(user.at, ':', user.n) : NULL;

    if (!user.at)
        return;
    if (hide && colon) {
        put(text, user.at, (size_t)(colon - user.at));
        put_text(text, ":xxxxx");
    } else {
        put_part(text, user);
    }
    put_text(text, "@");
}

/* All of it; `shown` for messages. */
static char *
join(const struct parts *parts, const struct query *q, bool shown)
{
    struct text text = {NULL, 0, false};

    put_scheme(&text, parts->scheme);
    put_text(&text, "://");
    put_user(&text, parts->user, shown);
    put_part(&text, parts->host);
    if (parts->path.n == 0 || part_is(parts->path, "/"))
        put_text(&text, DEFAULT_PATH);
    else
        put_escaped(&text, parts->path, "-_.~$&+,/:;=@%!'()*[]");
    put_query(&text, q);
    return done(&text);
}

/* 60 s, or one and a half times the seconds, or what the user says; and 5. */
static int
timeout_of(const struct cpprof__fetch_options *options, int seconds)
{
    double timeout = options->timeout > 0 ? options->timeout
                     : seconds > 0        ? 1.5 * seconds
                                          : 60;

    return timeout > 1e9 ? 1000 * 1000 * 1000 : (int)timeout + 5;
}

static enum cpprof__source_kind
make(const struct parts *parts, const struct cpprof__fetch_options *options,
     struct cpprof__url *url)
{
    struct query q = {.n = 0};
    int seconds = options->seconds;
    bool ok = parse_query(&q, parts->query);

    if (ok && seconds > 0)
        ok = set_seconds(&q, seconds);
    else
        seconds = seconds_of(&q);
    sort_query(&q);
    url->text = ok ? join(parts, &q, false) : NULL;
    url->shown = ok ? join(parts, &q, true) : NULL;
    url->insecure = part_is(parts->scheme, "https+insecure");
    url->loopback = is_loopback(parts->host);
    url->timeout_s = timeout_of(options, seconds);
    query_free(&q);
    if (url->text && url->shown)
        return CPPROF__SOURCE_URL;
    cpprof__url_free(url);
    return CPPROF__SOURCE_NOMEM;
}

enum cpprof__source_kind
cpprof__source_url(const char *source,
                   const struct cpprof__fetch_options *options,
                   struct cpprof__url *url)
{
    enum cpprof__source_kind kind = CPPROF__SOURCE_FILE;
    struct parts parts;
    char *with_scheme;

    memset(url, 0, sizeof *url);
    if (strcmp(source, "-") == 0 || access(source, F_OK) == 0 ||
        strlen(source) > LONGEST || has_controls(source))
        return kind;
    if (split(source, &parts) &&
        (parts.host.n || !parts.scheme.n || part_is(parts.scheme, "file")))
        return parts.host.n && !part_is(parts.scheme, "file")
                   ? make(&parts, options, url)
                   : kind;
    if (asprintf(&with_scheme, "http://%s", source) < 0)
        return CPPROF__SOURCE_NOMEM;
    if (split(with_scheme, &parts) && parts.host.n)
        kind = make(&parts, options, url);
    free(with_scheme);
    return kind;
}

void
cpprof__url_free(struct cpprof__url *url)
{
    free(url->text);
    free(url->shown);
    url->text = url->shown = NULL;
}

char *
cpprof__file_url_path(const char *source)
{
    struct parts parts;
    struct part path;

    if (access(source, F_OK) == 0 || strlen(source) > LONGEST ||
        !split(source, &parts) || !part_is(parts.scheme, "file") ||
        strncasecmp(source, "file://", 7) != 0 ||
        (parts.host.n && !part_is(parts.host, "localhost")) ||
        !is_escaped(parts.path) || !unescape(parts.path, false, &path))
        return NULL;
    return (char *)path.at;
}

/* ----------------------------------------------------------- symbols ---- */

static bool
ends_with(struct part part, const char *end)
{
    size_t n = strlen(end);

    return part.n >= n && memcmp(part.at + part.n - n, end, n) == 0;
}

/* Do servers of this path have "symbol" beside it? */
static bool
has_symbol_beside(struct part path)
{
    static const char *const gperftools[] = {
        "/pprof/heap", "/pprof/growth", "/pprof/profile", "/pprof/pmuprofile",
        "/pprof/contention"};
    size_t i;

    if (memmem(path.at, path.n, "/debug/pprof/", 13))
        return true;
    for (i = 0; i < sizeof gperftools / sizeof *gperftools; i++)
        if (ends_with(path, gperftools[i]))
            return true;
    return false;
}

char *
cpprof__symbol_url(const char *url)
{
    struct text text = {NULL, 0, false};
    struct parts parts;
    const char *slash;

    if (!split(url, &parts))
        return NULL;
    put(&text, url, (size_t)(parts.path.at - url));
    while (parts.path.n > 1 && parts.path.at[parts.path.n - 1] == '/' &&
           !ends_with(parts.path, "/debug/pprof/"))
        parts.path.n--;
    slash = memrchr(parts.path.at, '/', parts.path.n);
    if (slash && has_symbol_beside(parts.path)) {
        put(&text, parts.path.at, (size_t)(slash - parts.path.at));
        put_text(&text, "/symbol");
    } else {
        put_text(&text, "/symbolz");
    }
    return done(&text);
}

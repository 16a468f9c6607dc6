/* SPDX-License-Identifier: MIT */
/*
 * libcurl takes URLs apart and puts them together; what is added here is what
 * `go tool pprof` does besides: a scheme or a path that is missing, and the
 * query, which is sorted by its keys and encoded anew.
 *
 * libcurl is loaded only for what may be a URL: a word with a colon that names
 * no file.
 */
#include "cli/fetch/url.h"

#include "cli/fetch/curl.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Longer ones are no URLs. */
#define LONGEST 65536

/* `go tool pprof` fetches this path where a URL names only a host. */
#define DEFAULT_PATH "/debug/pprof/profile"

/* 7.78; older ones ignore it. */
#ifndef CURLU_ALLOW_SPACE
#define CURLU_ALLOW_SPACE (1 << 11)
#endif

/* https+insecure is a scheme, a path stays as it is, and what no path can have
 * is encoded. */
#define PARSING                                                                \
    (CURLU_NON_SUPPORT_SCHEME | CURLU_PATH_AS_IS | CURLU_ALLOW_SPACE |         \
     CURLU_URLENCODE)

/* A part of a URL, to be freed by curl->free(); NULL: none, or no memory. */
static char *
part_of(const struct cpprof__curl *curl, const CURLU *u, CURLUPart which)
{
    char *text = NULL;

    return curl->url_get(u, which, &text, 0) == CURLUE_OK ? text : NULL;
}

/* Three texts as one; NULL without memory. */
static char *
joined(const char *a, const char *b, const char *c)
{
    char *text = malloc(strlen(a) + strlen(b) + strlen(c) + 1);

    if (text)
        stpcpy(stpcpy(stpcpy(text, a), b), c);
    return text;
}

/* A password may have "@" in it for net/url, which cuts at the last one;
 * libcurl wants that encoded. NULL without memory. */
static char *
encoded_password(const char *text)
{
    const char *at = strstr(text, "://"), *end, *last;
    char *made = malloc(3 * strlen(text) + 1), *to = made;

    at = at ? at + 3 : text;
    end = at + strcspn(at, "/?#");
    last = memrchr(at, '@', (size_t)(end - at));
    for (; made && *text; text++)
        if (*text == '@' && text >= at && last && text < last)
            to = stpcpy(to, "%40");
        else
            *to++ = *text;
    if (made)
        *to = '\0';
    return made;
}

static CURLUcode
parse(const struct cpprof__curl *curl, const char *text, CURLU **u)
{
    char *copy = encoded_password(text);
    CURLUcode code = CURLUE_OUT_OF_MEMORY;

    *u = copy ? curl->url() : NULL;
    if (*u)
        code = curl->url_set(*u, CURLUPART_URL, copy, PARSING);
    free(copy);
    if (code == CURLUE_OK)
        return code;
    curl->url_cleanup(*u);
    *u = NULL;
    return code;
}

/* ------------------------------------------------------------- query ---- */

/* More are left out; no profile takes as many. */
#define MAX_PAIRS 64

#define SECONDS "seconds"

struct query {
    struct pair {
        char *key, *value; /* decoded */
        char *text;        /* "key=value", encoded */
    } pairs[MAX_PAIRS];
    size_t n;
};

static void
pair_free(struct pair *pair)
{
    free(pair->key);
    free(pair->value);
    free(pair->text);
}

/* Are two digits behind each "%"? */
static bool
is_escaped(const char *text, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (text[i] == '%' && (n - i < 3 || !isxdigit(text[i + 1] & 0xff) ||
                               !isxdigit(text[i + 2] & 0xff)))
            return false;
    return true;
}

/* Undo %XX, and "+" for a blank. */
static char *
decoded(const struct cpprof__curl *curl, const char *text, size_t n)
{
    char *copy = strndup(text, n), *plus, *made = NULL, *result = NULL;

    for (plus = copy; plus && (plus = strchr(plus, '+')) != NULL;)
        *plus = ' ';
    if (copy)
        made = curl->easy_unescape(NULL, copy, (int)n, NULL);
    if (made)
        result = strdup(made);
    curl->free(made);
    free(copy);
    return result;
}

/* A blank becomes "+" again. */
static char *
encoded(const struct cpprof__curl *curl, const char *key, const char *value)
{
    char *a = curl->easy_escape(NULL, key, 0);
    char *b = curl->easy_escape(NULL, value, 0), *blank;
    char *text = a && b ? joined(a, "=", b) : NULL;

    for (blank = text; blank && (blank = strstr(blank, "%20")) != NULL;) {
        *blank++ = '+';
        memmove(blank, blank + 2, strlen(blank + 2) + 1);
    }
    curl->free(a);
    curl->free(b);
    return text;
}

/* A pair that is no pair is left out, as url.Values does; false without
 * memory. */
static bool
add_pair(const struct cpprof__curl *curl, struct query *q, const char *text,
         size_t n)
{
    const char *equals = memchr(text, '=', n);
    size_t n_key = equals ? (size_t)(equals - text) : n;
    struct pair pair = {NULL};

    if (!n || q->n == MAX_PAIRS || memchr(text, ';', n) ||
        !is_escaped(text, n_key) || !is_escaped(text + n_key, n - n_key))
        return true;
    pair.key = decoded(curl, text, n_key);
    pair.value = equals ? decoded(curl, equals + 1, n - n_key - 1) : strdup("");
    if (pair.key && pair.value)
        pair.text = encoded(curl, pair.key, pair.value);
    if (!pair.text) {
        pair_free(&pair);
        return false;
    }
    q->pairs[q->n++] = pair;
    return true;
}

/* By key; equal keys stay in their order. */
static void
sort_query(struct query *q)
{
    size_t i, j;

    for (i = 1; i < q->n; i++) {
        struct pair pair = q->pairs[i];

        for (j = i; j > 0 && strcmp(pair.key, q->pairs[j - 1].key) < 0; j--)
            q->pairs[j] = q->pairs[j - 1];
        q->pairs[j] = pair;
    }
}

/* The seconds of the query; 0 when it has none. */
static int
seconds_of(const struct query *q)
{
    size_t i;
    char *end;
    long value;

    for (i = 0; i < q->n; i++) {
        if (strcmp(q->pairs[i].key, SECONDS) != 0)
            continue;
        errno = 0;
        value = strtol(q->pairs[i].value, &end, 10);
        return errno || *end || value <= 0 || value > 1000 * 1000 * 1000
                   ? 0
                   : (int)value;
    }
    return 0;
}

/* Replace the seconds of the query, in place of its last pair if it is full. */
static bool
set_seconds(const struct cpprof__curl *curl, struct query *q, int seconds)
{
    size_t i, kept = 0;
    char text[32];

    for (i = 0; i < q->n; i++)
        if (strcmp(q->pairs[i].key, SECONDS) != 0 && kept < MAX_PAIRS - 1)
            q->pairs[kept++] = q->pairs[i];
        else
            pair_free(&q->pairs[i]);
    q->n = kept;
    snprintf(text, sizeof text, SECONDS "=%d", seconds);
    return add_pair(curl, q, text, strlen(text));
}

/* The query as text, with what is in front of it; NULL without memory. */
static char *
query_text(const struct query *q)
{
    char *text = strdup(""), *longer;
    size_t i;

    for (i = 0; text && i < q->n; i++) {
        longer = joined(text, i ? "&" : "?", q->pairs[i].text);
        free(text);
        text = longer;
    }
    return text;
}

/* The query of a URL in its normal form, with the seconds that are asked for;
 * else *seconds becomes those that it has. NULL without memory. */
static char *
normal_query(const struct cpprof__curl *curl, const CURLU *u, int *seconds)
{
    char *before = part_of(curl, u, CURLUPART_QUERY), *after = NULL;
    const char *text = before ? before : "";
    struct query q = {.n = 0};
    bool ok = true;
    size_t n;

    for (; ok && *text; text += n + (text[n] == '&')) {
        n = strcspn(text, "&");
        ok = add_pair(curl, &q, text, n);
    }
    if (ok && (*seconds <= 0 || set_seconds(curl, &q, *seconds))) {
        *seconds = seconds_of(&q);
        sort_query(&q);
        after = query_text(&q);
    }
    curl->free(before);
    while (q.n)
        pair_free(&q.pairs[--q.n]);
    return after;
}

/* --------------------------------------------------------------- url ---- */

/* The whole URL and what follows it, to be freed by free(). */
static char *
url_text(const struct cpprof__curl *curl, const CURLU *u, const char *query)
{
    char *text = part_of(curl, u, CURLUPART_URL);
    char *copy = text ? joined(text, query, "") : NULL;

    curl->free(text);
    return copy;
}

/* Take the query and the fragment off, and add a path where there is none.
 * libcurl would write the hexadecimal digits of a query small. */
static bool
set_bare(const struct cpprof__curl *curl, CURLU *u)
{
    char *path = part_of(curl, u, CURLUPART_PATH);
    bool ok = path && curl->url_set(u, CURLUPART_QUERY, NULL, 0) == CURLUE_OK &&
              curl->url_set(u, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK;

    if (ok && strcmp(path, "/") == 0)
        ok = curl->url_set(u, CURLUPART_PATH, DEFAULT_PATH, 0) == CURLUE_OK;
    curl->free(path);
    return ok;
}

static void
fill(const struct cpprof__curl *curl, CURLU *u,
     const struct cpprof__fetch_options *options, struct cpprof__url *url)
{
    int seconds = options->seconds;
    char *scheme = part_of(curl, u, CURLUPART_SCHEME);
    char *host = part_of(curl, u, CURLUPART_HOST);
    char *password = part_of(curl, u, CURLUPART_PASSWORD);
    char *query = normal_query(curl, u, &seconds);
    double timeout;

    /* 60 s, or one and a half times the seconds, or what the user says; and 5.
     */
    timeout = options->timeout > 0 ? options->timeout
              : seconds > 0        ? 1.5 * seconds
                                   : 60;
    url->timeout_s = timeout > 1e9 ? 1000 * 1000 * 1000 : (int)timeout + 5;
    if (scheme && host && query && set_bare(curl, u)) {
        url->insecure = strcasecmp(scheme, "https+insecure") == 0;
        url->loopback = strcmp(host, "[::1]") == 0 ||
                        strcasecmp(host, "localhost") == 0 ||
                        strncmp(host, "127.", 4) == 0;
        url->text = url_text(curl, u, query);
        if (!password ||
            curl->url_set(u, CURLUPART_PASSWORD, "xxxxx", 0) == CURLUE_OK)
            url->shown = url_text(curl, u, query);
    }
    free(query);
    curl->free(scheme);
    curl->free(host);
    curl->free(password);
}

/* Can it be anything but a file? It has a colon before a path begins. */
static bool
may_be_url(const char *source)
{
    const char *c;

    if (strcspn(source, "/?#") < strcspn(source, ":") || !strchr(source, ':') ||
        strncasecmp(source, "file:", 5) == 0 || access(source, F_OK) == 0 ||
        strlen(source) > LONGEST)
        return false;
    for (c = source; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return true;
}

enum cpprof__source_kind
cpprof__source_url(const char *source,
                   const struct cpprof__fetch_options *options,
                   struct cpprof__url *url)
{
    const struct cpprof__curl *curl;
    const char *why;
    CURLUcode code = CURLUE_OUT_OF_MEMORY;
    char *text = NULL;
    CURLU *u = NULL;

    memset(url, 0, sizeof *url);
    if (!may_be_url(source))
        return CPPROF__SOURCE_FILE;
    curl = cpprof__curl_load(&why);
    if (!curl) { /* who fetches it says why that does not go */
        url->text = strdup(source);
        url->shown = strdup(source);
    } else {
        text = joined(strncmp(strchr(source, ':'), "://", 3) ? "http://" : "",
                      source, "");
        code = text ? parse(curl, text, &u) : CURLUE_OUT_OF_MEMORY;
        free(text);
    }
    if (u) {
        fill(curl, u, options, url);
        curl->url_cleanup(u);
    }
    if (url->text && url->shown)
        return CPPROF__SOURCE_URL;
    cpprof__url_free(url);
    return u || code == CURLUE_OUT_OF_MEMORY ? CPPROF__SOURCE_NOMEM
                                             : CPPROF__SOURCE_FILE;
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
    const struct cpprof__curl *curl;
    const char *why;
    char *path = NULL, *copy = NULL;
    CURLU *u;

    if (strncasecmp(source, "file://", 7) != 0 || access(source, F_OK) == 0 ||
        strlen(source) > LONGEST || !is_escaped(source, strlen(source)))
        return NULL;
    curl = cpprof__curl_load(&why);
    if (!curl || parse(curl, source, &u) != CURLUE_OK)
        return NULL;
    if (curl->url_get(u, CURLUPART_PATH, &path, CURLU_URLDECODE) == CURLUE_OK)
        copy = strdup(path);
    curl->free(path);
    curl->url_cleanup(u);
    return copy;
}

/* ----------------------------------------------------------- symbols ---- */

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Do servers of this path have "symbol" beside it? */
static bool
has_symbol_beside(const char *path)
{
    static const char *const gperftools[] = {
        "/pprof/heap", "/pprof/growth", "/pprof/profile", "/pprof/pmuprofile",
        "/pprof/contention"};
    size_t i;

    if (strstr(path, "/debug/pprof/"))
        return true;
    for (i = 0; i < sizeof gperftools / sizeof *gperftools; i++)
        if (ends_with(path, gperftools[i]))
            return true;
    return false;
}

/* The path to ask for symbols, of that of a profile; NULL without memory. */
static char *
symbol_path(const char *profile)
{
    char *path = strdup(profile), *text = NULL;

    if (!path)
        return NULL;
    while (path[1] && ends_with(path, "/") && !ends_with(path, "/debug/pprof/"))
        path[strlen(path) - 1] = '\0';
    if (has_symbol_beside(path)) {
        strrchr(path, '/')[0] = '\0';
        text = joined(path, "/symbol", "");
    } else {
        text = strdup("/symbolz");
    }
    free(path);
    return text;
}

char *
cpprof__symbol_url(const char *url)
{
    const struct cpprof__curl *curl;
    const char *why;
    char *path, *symbols, *made = NULL;
    CURLU *u;

    curl = cpprof__curl_load(&why);
    if (!curl || parse(curl, url, &u) != CURLUE_OK)
        return NULL;
    path = part_of(curl, u, CURLUPART_PATH);
    symbols = path ? symbol_path(path) : NULL;
    if (symbols && curl->url_set(u, CURLUPART_PATH, symbols, 0) == CURLUE_OK &&
        curl->url_set(u, CURLUPART_QUERY, NULL, 0) == CURLUE_OK)
        made = url_text(curl, u, "");
    free(symbols);
    curl->free(path);
    curl->url_cleanup(u);
    return made;
}

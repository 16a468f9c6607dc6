/* SPDX-License-Identifier: MIT */
/*
 * `cpprof gate -against=URL?query=TYPE{LABELS}&from=T&until=T`: history from a
 * Pyroscope server. The time is cut into -last windows, and each is asked for
 * as one profile, which is a run of base.
 *
 * Source: querier.v1.QuerierService of Pyroscope: SelectMergeProfile takes
 * {string profile_typeID = 1; string label_selector = 2; int64 start = 3, end =
 * 4} in milliseconds and answers with a profile.proto.
 */
#include "cli/gate/gate.h"

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"

#include "cli/fetch/request.h"
#include "cli/messages.h"
#include "cli/terminal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_BYTES 4096
#define PATH       "/querier.v1.QuerierService/SelectMergeProfile"

struct query {
    char url[MOST_BYTES];      /* of the call */
    char type[MOST_BYTES];     /* "process_cpu:cpu:nanoseconds:..." */
    char selector[MOST_BYTES]; /* "{service_name=\"x\"}" */
    int64_t from_ms, until_ms;
};

/* "%7B" is "{"; a plus stays, as labels have it. */
static void
unescape(const char *text, size_t n, char *out)
{
    size_t i;

    for (i = 0; i < n; i++) {
        unsigned high = i + 2 < n ? cpprof__digit(text[i + 1]) : 36;
        unsigned low = i + 2 < n ? cpprof__digit(text[i + 2]) : 36;

        if (text[i] == '%' && high < 16 && low < 16 && (high || low)) {
            *out++ = (char)(high << 4 | low);
            i += 2;
        } else {
            *out++ = text[i];
        }
    }
    *out = 0;
}

/* "now", "now-90m", "now-2h", "now-1d", or seconds or milliseconds since 1970.
 */
static bool
parse_time(const char *text, int64_t *ms)
{
    static const char units[] = "smhdw";
    static const int seconds[] = {1, 60, 3600, 86400, 604800};
    bool is_back = strncmp(text, "now", 3) == 0;
    const char *unit;
    char *end;
    int64_t n;

    if (is_back && !text[3])
        return *ms = (int64_t)time(NULL) * 1000, true;
    if (is_back && text[3] != '-')
        return false;
    n = strtoll(text + (is_back ? 4 : 0), &end, 10);
    if (end == text || n < 0 || n > INT64_MAX / 1000000000)
        return false;
    if (!is_back) {
        *ms = n > 100000000000 ? n : n * 1000;
        return !*end;
    }
    unit = *end ? strchr(units, *end) : NULL;
    if (!unit || end[1])
        return false;
    *ms = ((int64_t)time(NULL) - n * seconds[unit - units]) * 1000;
    return true;
}

/* The value of a word of the query; false: it has none. */
static bool
word_of(const char *words, const char *name, char *value)
{
    size_t n = strlen(name);

    while (words) {
        if (strncmp(words, name, n) == 0 && words[n] == '=') {
            unescape(words + n + 1, strcspn(words + n + 1, "&"), value);
            return true;
        }
        words = strchr(words, '&');
        words = words ? words + 1 : NULL;
    }
    return false;
}

static bool
parse(const char *text, struct query *q)
{
    const char *words = strchr(text, '?');
    char from[MOST_BYTES] = "now-1h", until[MOST_BYTES] = "now";
    size_t n = (size_t)(words - text), n_type;

    if (strlen(text) >= MOST_BYTES - sizeof PATH) {
        cpprof__cli_fail("gate: -against: the query is too long");
        return false;
    }
    while (n && text[n - 1] == '/')
        n--;
    snprintf(q->url, sizeof q->url, "%.*s%s", (int)n, text, PATH);
    if (!word_of(words + 1, "query", q->type) || strchr("{", *q->type)) {
        cpprof__cli_fail("gate: -against=%s: no query=TYPE{LABELS} in it",
                         text);
        return false;
    }
    n_type = strcspn(q->type, "{");
    snprintf(q->selector, sizeof q->selector, "%s",
             q->type[n_type] ? q->type + n_type : "{}");
    q->type[n_type] = 0;
    word_of(words + 1, "from", from);
    word_of(words + 1, "until", until);
    if (parse_time(from, &q->from_ms) && parse_time(until, &q->until_ms) &&
        q->from_ms > 0 && q->from_ms < q->until_ms)
        return true;
    cpprof__cli_fail("gate: -against: from=%s until=%s is no time: seconds "
                     "since 1970, now or now-1h",
                     from, until);
    return false;
}

static void
put_varint(struct cpprof__buffer *out, uint64_t x)
{
    uint8_t byte;

    do {
        byte = (uint8_t)(x & 127) | (x > 127 ? 128 : 0);
        cpprof__buffer_append(out, &byte, 1);
        x >>= 7;
    } while (x);
}

/* The message. It has no byte that is 0: no text is empty, no time is 0. */
static void
make_message(const struct query *q, int64_t from, int64_t until,
             struct cpprof__buffer *out)
{
    put_varint(out, 1 << 3 | 2);
    put_varint(out, strlen(q->type));
    cpprof__buffer_append(out, q->type, strlen(q->type));
    put_varint(out, 2 << 3 | 2);
    put_varint(out, strlen(q->selector));
    cpprof__buffer_append(out, q->selector, strlen(q->selector));
    put_varint(out, 3 << 3);
    put_varint(out, (uint64_t)from);
    put_varint(out, 4 << 3);
    put_varint(out, (uint64_t)until);
    cpprof__buffer_append(out, "", 1);
}

/* Is the answer a profile.proto? Nothing else is taken, such as a page that
 * would be read as the text of a profile. */
static enum cpprof_status
check_answer(const struct cpprof__request *r, struct cpprof_error *error)
{
    struct pprof_profile *p = NULL;
    enum cpprof_status status;

    if (r->body[0] != (1 << 3 | 2) && (uint8_t)r->body[0] != 0x1f)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "the answer is no profile");
    status = pprof_read_data(r->body, r->n, NULL, &p, error);
    pprof_free(p);
    return status;
}

/* Ask for one window, and keep the answer at path; an empty one is none. */
static enum cpprof_status
ask(const struct cpprof__url *url, const struct cpprof__gate_flags *w,
    const char *message, const char *path, struct cpprof_error *error)
{
    const char *why = "out of memory";
    const struct cpprof__curl *curl = cpprof__curl_load(&why);
    struct cpprof__request r = {0};
    enum cpprof_status status;
    FILE *file = NULL;

    if (!curl)
        return cpprof__fail(error, CPPROF_SYSTEM, 0, "%s", why);
    status =
        cpprof__request_begin(&r, curl, url, &w->report.fetch, message, error);
    if (status == CPPROF_OK)
        status = cpprof__request_content(&r, "application/proto", error);
    if (status == CPPROF_OK)
        status =
            cpprof__request_result(&r, curl->easy_perform(r.easy), url, error);
    if (status == CPPROF_OK && r.n)
        status = check_answer(&r, error);
    if (status == CPPROF_OK && r.n) {
        file = fopen(path, "wbe");
        if (!file || fwrite(r.body, 1, r.n, file) != r.n || fflush(file) != 0)
            status =
                cpprof__fail(error, CPPROF_SYSTEM, 0, "writing %s: %m", path);
    }
    if (file)
        fclose(file);
    cpprof__request_free(&r);
    return status;
}

static bool
ask_all(struct cpprof__gate_flags *w, const struct query *q,
        const struct cpprof__url *url, const char *folder)
{
    int64_t step = (q->until_ms - q->from_ms) / w->last;
    int i;

    for (i = 0; i < w->last; i++) {
        struct cpprof__buffer message = {0};
        struct cpprof_error error = {0};
        int64_t from = q->from_ms + i * step;
        enum cpprof_status status = CPPROF_NOMEM;
        char path[PATH_MAX + 32];

        snprintf(path, sizeof path, "%s/%05d.pb", folder, i);
        make_message(q, from, from + step, &message);
        cpprof__progress("asking for window %d of %d", i + 1, w->last);
        if (!message.failed)
            status = ask(url, w, (const char *)message.data, path, &error);
        cpprof__buffer_free(&message);
        if (status != CPPROF_OK) {
            cpprof__cli_fail("gate: %s: %s", url->shown, error.text);
            return false;
        }
    }
    return true;
}

bool
cpprof__gate_query(struct cpprof__gate_flags *w)
{
    struct query q = {.from_ms = 0};
    struct cpprof__url url = {0};
    bool ok;

    if (!parse(w->against, &q))
        return false;
    if (cpprof__source_url(q.url, &w->report.fetch, &url) !=
        CPPROF__SOURCE_URL) {
        cpprof__cli_fail("gate: -against=%s is no URL", w->against);
        return false;
    }
    ok = cpprof__gate_folder_make() &&
         ask_all(w, &q, &url, cpprof__gate_folder(0));
    cpprof__url_free(&url);
    if (ok) {
        w->base = cpprof__gate_folder_source(false);
        w->n_base = 1;
        if (rmdir(cpprof__gate_folder(0)) == 0) {
            cpprof__cli_fail("gate: the query has no profile in that time");
            ok = false;
        }
    }
    return ok;
}

/* SPDX-License-Identifier: MIT */
/*
 * One libcurl multi handle, one thread. A window of WINDOW requests moves over
 * the URLs: the first of it is the next to be read, a new one begins when that
 * is read. What has arrived waits in memory up to WAITING_BYTES; above that,
 * only the next one goes on and the others are paused, so memory is bounded by
 * that and one answer, however many URLs there are.
 */
#include "cli/fetch/fetch.h"

#include "base/status.h"

#include "cli/fetch/request.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More requests ask more servers at once, and take a descriptor each. */
#define WINDOW 128
/* Bytes of all answers that wait. More lets servers finish earlier. */
#define WAITING_BYTES ((size_t)256 << 20)

/* The time between two progress lines while nothing arrives. */
#define POLL_MS 500

enum stage {
    WAITING, /* not begun */
    RUNNING,
    ENDED, /* curl is through with it */
    FAILED,
};

struct item {
    const char *source; /* as on the command line */
    struct cpprof__url url;
    struct cpprof__request request;
    enum stage stage;
    CURLcode code;             /* ENDED */
    struct cpprof_error error; /* FAILED */
};

struct cpprof__fetch {
    const struct cpprof__fetch_options *options;
    const struct cpprof__curl *curl;
    CURLM *multi;
    struct item *items;
    size_t n;
    size_t next;  /* to be read */
    size_t begun; /* those below have begun */
    struct cpprof__fetch_budget budget;
};

/* ------------------------------------------------------------- begin ---- */

/* Tell what is asked for; a duration as Go prints it, "1h0m30s". */
static void
announce(const struct cpprof__fetch *f, const struct item *item)
{
    int seconds = f->options->seconds;
    int h = seconds / 3600, m = seconds / 60 % 60, s = seconds % 60;

    cpprof__progress_hide();
    fprintf(stderr, "Fetching profile over HTTP from %s\n", item->url.shown);
    if (h > 0)
        fprintf(stderr, "Please wait... (%dh%dm%ds)\n", h, m, s);
    else if (m > 0)
        fprintf(stderr, "Please wait... (%dm%ds)\n", m, s);
    else if (s > 0)
        fprintf(stderr, "Please wait... (%ds)\n", s);
}

/* Begin the requests that have come into the window. */
static void
move_window(struct cpprof__fetch *f)
{
    for (; f->begun < f->n && f->begun - f->next < WINDOW; f->begun++) {
        struct item *item = &f->items[f->begun];

        announce(f, item);
        item->stage = FAILED;
        if (cpprof__request_begin(&item->request, f->curl, &item->url,
                                  f->options, NULL, &item->error) != CPPROF_OK)
            continue;
        item->request.budget = &f->budget;
        if (f->curl->multi_add_handle(f->multi, item->request.easy) == CURLM_OK)
            item->stage = RUNNING;
        else
            cpprof__fail_nomem(&item->error);
    }
}

/* The URLs among the sources. */
static enum cpprof_status
collect(struct cpprof__fetch *f, char *const *sources, size_t n,
        struct cpprof_error *error)
{
    size_t i;

    f->items = calloc(n ? n : 1, sizeof *f->items);
    if (!f->items)
        return cpprof__fail_nomem(error);
    for (i = 0; i < n; i++) {
        struct item *item = &f->items[f->n];

        switch (cpprof__source_url(sources[i], f->options, &item->url)) {
        case CPPROF__SOURCE_NOMEM:
            return cpprof__fail_nomem(error);
        case CPPROF__SOURCE_FILE:
            break;
        case CPPROF__SOURCE_URL:
            item->source = sources[i];
            f->n++;
            break;
        }
    }
    return CPPROF_OK;
}

enum cpprof_status
cpprof__fetch_begin(char *const *sources, size_t n,
                    const struct cpprof__fetch_options *options,
                    struct cpprof__fetch **fetch, struct cpprof_error *error)
{
    struct cpprof__fetch *f = calloc(1, sizeof *f);
    enum cpprof_status status;
    const char *why;

    *fetch = NULL;
    if (!f)
        return cpprof__fail_nomem(error);
    f->options = options;
    f->budget.max = WAITING_BYTES;
    status = collect(f, sources, n, error);
    if (status == CPPROF_OK && f->n)
        status = cpprof__fetch_check_tls(f->options, error);
    if (status != CPPROF_OK || !f->n) {
        cpprof__fetch_free(f);
        return status;
    }
    f->curl = cpprof__curl_load(&why);
    if (f->curl)
        f->multi = f->curl->multi_init();
    if (f->multi) {
        move_window(f);
        *fetch = f;
        return CPPROF_OK;
    }
    status = f->curl ? cpprof__fail_nomem(error)
                     : cpprof__fail(error, CPPROF_UNSUPPORTED, 0, "%s", why);
    cpprof__fetch_free(f);
    return status;
}

/* -------------------------------------------------------------- wait ---- */

static void
take_ended(struct cpprof__fetch *f)
{
    CURLMsg *message;
    int n_left;
    size_t i;

    while ((message = f->curl->multi_info_read(f->multi, &n_left)))
        for (i = f->next; i < f->begun; i++) {
            struct item *item = &f->items[i];

            if (item->stage != RUNNING ||
                item->request.easy != message->easy_handle)
                continue;
            item->stage = ENDED;
            item->code = message->data.result;
            f->curl->multi_remove_handle(f->multi, message->easy_handle);
            break; /* which frees the message */
        }
}

static void
resume(struct cpprof__fetch *f, struct item *item)
{
    if (item->stage != RUNNING || !item->request.paused)
        return;
    item->request.paused = false;
    item->request.since_ms = 0; /* we made it wait, not the server */
    f->curl->easy_pause(item->request.easy, CURLPAUSE_CONT);
}

static void
show_progress(const struct cpprof__fetch *f)
{
    size_t n_ended = f->next, i;
    double bytes = 0;

    for (i = f->next; i < f->begun; i++) {
        n_ended += f->items[i].stage >= ENDED;
        bytes += (double)f->items[i].request.n;
    }
    if (f->n == 1)
        cpprof__progress("fetching the profile: %.1f MB", bytes / 1e6);
    else
        cpprof__progress("fetching profiles: %zu of %zu are here", n_ended,
                         f->n);
}

/* Until the next one is here. */
static void
wait_for_next(struct cpprof__fetch *f)
{
    struct item *item = &f->items[f->next];
    CURLMcode code;
    int n_running;
    size_t i;

    /* The next one may take all the memory that it needs; others only what is
     * left. */
    item->request.is_next = true;
    resume(f, item);
    for (i = f->next; i < f->begun && f->budget.used < f->budget.max; i++)
        resume(f, &f->items[i]);
    while (item->stage == RUNNING) {
        show_progress(f);
        code = f->curl->multi_perform(f->multi, &n_running);
        take_ended(f);
        if (item->stage == RUNNING && code == CURLM_OK)
            code = f->curl->multi_poll(f->multi, NULL, 0, POLL_MS, NULL);
        if (code == CURLM_OK)
            continue;
        f->curl->multi_remove_handle(f->multi, item->request.easy);
        item->stage = FAILED;
        cpprof__fail_nomem(&item->error);
    }
    cpprof__progress_end();
}

/* -------------------------------------------------------------- read ---- */

bool
cpprof__fetch_is_next(const struct cpprof__fetch *f, const char *source)
{
    return f && f->next < f->n && strcmp(f->items[f->next].source, source) == 0;
}

enum cpprof_status
cpprof__fetch_read(struct cpprof__fetch *f, struct pprof_profile **profile,
                   const char **url, struct cpprof_error *error)
{
    struct item *item = &f->items[f->next];
    enum cpprof_status status;

    wait_for_next(f);
    if (item->stage == FAILED) {
        *error = item->error;
        status = error->status;
    } else {
        status = cpprof__request_result(&item->request, item->code, &item->url,
                                        error);
    }
    if (status == CPPROF_OK)
        status = pprof_read_data(item->request.body, item->request.n, NULL,
                                 profile, error);
    if (status == CPPROF_OK)
        *url = item->url.text;
    cpprof__request_free(&item->request);
    f->next++;
    move_window(f);
    return status;
}

void
cpprof__fetch_free(struct cpprof__fetch *f)
{
    size_t i;

    if (!f)
        return;
    for (i = 0; i < f->n; i++) {
        if (f->items[i].stage == RUNNING)
            f->curl->multi_remove_handle(f->multi, f->items[i].request.easy);
        cpprof__request_free(&f->items[i].request);
        cpprof__url_free(&f->items[i].url);
    }
    if (f->multi)
        f->curl->multi_cleanup(f->multi);
    free(f->items);
    free(f);
}

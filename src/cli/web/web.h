/* SPDX-License-Identifier: MIT */
/*
 * `cpprof http`: the page that people open.
 *
 * The server is libcpprof-http.so, the one that serves /debug/pprof/ in
 * programs: it parses, checks who asks (Host, Sec-Fetch-Site), bounds what
 * clients send, and calls answer.c on a thread of its own for each request.
 * There the page's files come from memory. A report is made by a child, as in
 * the shell: it filters a copy of the profile, writes into a file in memory,
 * and ends (view.c). So the profile stays as it was read, what one view leaks
 * or breaks is gone with its process, and a client that leaves ends its child.
 *
 * Of a process that runs the profile is made anew for as long as a page asks
 * for the status, and takes the place of the one before.
 *
 * Invariants: what `profile` leads to is never written to. Nothing that a GET
 * asks for changes anything.
 */
#ifndef CLI_WEB_H
#define CLI_WEB_H

#include "base/buffer.h"
#include "cli/report/settings.h"
#include "http/plugin.h"
#include "report/report.h"

#include <pthread.h>

struct cpprof__web {
    struct cpprof__report_flags flags; /* what the page begins with */
    const struct cpprof__http_server_ops *server;
    /* Parts of the path before /ui, "/t/SECRET": where others than this machine
     * reach the server, whoever does not know it gets nothing. "": none. */
    char prefix[64];
    /* The profile came from another machine, or others reach the server: of
     * sources only those are shown that are below -source_path. */
    bool is_foreign;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pprof_profile *profile; /* NULL: it is still being read */
    bool has_failed;               /* there will be none */
    unsigned turn;    /* how often it was made anew, of a process that runs */
    bool is_stopped;  /* the process is, and nothing can be recorded */
    bool is_over;     /* it is the last */
    uint64_t asked_s; /* a page is there: CLOCK_MONOTONIC */
    bool has_page, page_knows; /* one waits for it, and was told why not */
    unsigned n_children;       /* views that are being made */
    bool ends;                 /* no view is wanted any more */
};

/* A request of the page: what it asks for, without the prefix. */
struct cpprof__web_call {
    struct cpprof__web *web;
    const struct cpprof_http_request *request;
    const struct cpprof_http_response *response;
    const char *path; /* "/ui/top" */
    bool is_whole;    /* the profile without filters of the command line */
};

/* ------------------------------------------------------ answer.c ------- */

/* Answer a request, whatever it is. */
enum cpprof_status
cpprof__web_answer(struct cpprof__web_call *call);

/* Seconds of CLOCK_MONOTONIC. */
uint64_t
cpprof__web_now_s(void);

/* Send an answer whose body is there. `extra` is one more header, or NULL. */
enum cpprof_status
cpprof__web_send(struct cpprof__web_call *call, int status, const char *type,
                 const struct cpprof_http_header *extra, const void *body,
                 size_t n);

/* The same of a line of text. */
enum cpprof_status
cpprof__web_say(struct cpprof__web_call *call, int status, const char *text);

/* -------------------------------------------------------- query.c ------- */

/* Parameters of a request, decoded; some of them are settings. */
struct cpprof__web_query {
    struct cpprof__settings settings;
    char *text; /* the memory of the rest */
    const char *pivot, *search, *zoom, *symbol;
    const char *config; /* the name of a saved one */
    double width;       /* pixels; 0: none was given */
    uint64_t max;       /* bytes of a text, or rows of a table; 0: all */
    bool inverted, callers, packed;
    bool has_granularity; /* it is not the default */
};

/* Read them over the flags that the command was started with. False: they are
 * wrong, and the reason. Free in any case. */
bool
cpprof__web_query(const struct cpprof__web_call *call,
                  struct cpprof__web_query *query,
                  char reason[CPPROF__SETTING_TEXT]);
void
cpprof__web_query_free(struct cpprof__web_query *query);

/* The parameter of a setting that has one. */
const char *
cpprof__web_parameter(const char *setting);

/* Append what the page needs to name the command line of what it shows: the
 * settings that differ from their defaults, sources and bases, as JSON. */
void
cpprof__web_print_start(const struct cpprof__web *web,
                        struct cpprof__buffer *out);

/* ------------------------------------------------------ configs.c ------- */

/* Answer with the saved configs, each as parameters. */
enum cpprof_status
cpprof__web_send_configs(struct cpprof__web_call *call);

/* Save what the request asks for under its `config`, or remove that. */
enum cpprof_status
cpprof__web_edit_config(struct cpprof__web_call *call, bool removes);

/* --------------------------------------------------------- view.c ------- */

/* Answer with a view, "boxes", or with a report, "report/top". */
enum cpprof_status
cpprof__web_view(struct cpprof__web_call *call, const char *name);

/* Append a view of JSON as {"note", "data"}; null: there is none, or the
 * profile takes long to be read. */
void
cpprof__web_print_view(const struct cpprof__web_call *call, const char *name,
                       struct cpprof__buffer *out);

#endif

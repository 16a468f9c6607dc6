/* SPDX-License-Identifier: MIT */
/*
 * `cpprof push`: sends profiles that are files to where CPPROF=push= sends
 * those of a program, by the same requests. One after the other; the first that
 * cannot be sent ends it.
 */
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/messages.h"
#include "cli/push/debuginfo.h"
#include "cli/push/series.h"
#include "cli/resource.h"

#include "arch/clock.h"
#include "base/buffer.h"
#include "base/gzip.h"
#include "object/plug_in.h"
#include "profile/change/split.h"
#include "push/message.h"
#include "push/request.h"

#include <cpprof/pprof/change.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define LEVEL     1
#define GIVE_UP_S 60

struct words {
    const char *to, *name, *labels, *user, *token_file, *tenant, *protocol;
    int give_up_s;
    bool keep_going, debuginfo;
};

#define FLAG(word, member, value, can_be, help)                                \
    CPPROF__FLAG(STRING, word, struct words, member, value, can_be, help)

const struct cpprof__flag cpprof__push_flag_table[] = {
    FLAG("to", to, "=URL", NULL,
         "otlp+http://HOST:4318: a collector of OpenTelemetry,\n"
         "pprof+http://HOST:8080: its receiver of pprof,\n"
         "parca+http://HOST:7070: Parca,\n"
         "http://HOST:4040: Pyroscope"),
    FLAG("name", name, "=NAME", NULL,
         "of the service; else OTEL_SERVICE_NAME, else the name\n"
         "of the program"),
    FLAG("labels", labels, "=NAME=VALUE,...", NULL,
         "of the series, or attributes of the resource"),
    FLAG("protocol", protocol, "=WORD", "push ingest otlp pprof parca",
         "push, ingest: of Pyroscope, its own or that of older\n"
         "servers; the others as the URL may say them"),
    FLAG("user", user, "=USER", NULL, "basic authentication"),
    FLAG("token_file", token_file, "=FILE", ":files",
         "its first line is a bearer token, or with a user the\n"
         "password"),
    FLAG("tenant", tenant, "=ID", NULL, "X-Scope-OrgID"),
    CPPROF__FLAG(INT, "give_up", struct words, give_up_s, "=SECONDS", NULL,
                 "how long a server that cannot is tried; 60"),
    CPPROF__FLAG(BOOL, "keep_going", struct words, keep_going, NULL, NULL,
                 "leave out files that cannot be read, and name them"),
    CPPROF__FLAG(BOOL, "debuginfo", struct words, debuginfo, NULL, NULL,
                 "of binaries whose frames have no names, give Pyroscope the\n"
                 "symbols and lines that are here"),
    {0},
};

struct pusher {
    struct cpprof__push_plan plan;
    const struct words *words;
    const struct cpprof__push_http *http;
    void *connection;
    const char *resource; /* of OTLP */
    struct cpprof__debuginfo debuginfo;

    /* The profile that is sent. */
    struct cpprof__push_profile profile;
    char series[CPPROF__SERIES_BYTES];
    const char *path;
    bool failed;
    size_t most_bytes; /* that the server may take in a request */
};

/* ---- one request ------------------------------------------------------ */

static void
pause_for(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    nanosleep(&t, NULL);
}

/* What a request may take that has to end by then; 0: the usual time. */
static uint32_t
timeout_ms(uint64_t end_ns)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC),
             left_ms = now < end_ns ? (end_ns - now) / 1000000 : 0;

    return left_ms < CPPROF__PUSH_TIMEOUT_MS ? (uint32_t)left_ms + 1 : 0;
}

/* Send it until it is taken or refused, or the server had time enough: with
 * none of it there is one try, of the usual time.
 * CPPROF__SPLIT_HALVE: it is too large for the server, and is_one says that it
 * cannot be halved. */
static enum cpprof__split_next
send_message(struct pusher *u, struct cpprof__push_message *m, bool is_one)
{
    enum cpprof__push_outcome outcome;
    struct cpprof__push_reply reply;
    unsigned n_failures = 0;
    uint32_t cancelled = 0;
    uint64_t most_ns = (uint64_t)u->words->give_up_s * 1000000000,
             end_ns = cpprof__now_ns(CLOCK_MONOTONIC) + most_ns, pause_ns;
    char line[CPPROF__PUSH_LINE_BYTES];

    for (;;) {
        m->timeout_ms = most_ns ? timeout_ms(end_ns) : 0;
        cpprof__push_requests(&u->plan, u->http, u->connection, &m, 1,
                              &cancelled, &reply);
        outcome = cpprof__push_outcome(&u->plan, &reply);
        if (outcome != CPPROF__PUSH_AGAIN)
            break;
        pause_ns = cpprof__push_pause_ns(n_failures++, reply.retry_after_s);
        if (cpprof__now_ns(CLOCK_MONOTONIC) + pause_ns >= end_ns)
            break;
        cpprof__push_say(&u->plan, &reply, "trying again", line, sizeof line);
        if (n_failures == 1)
            cpprof__cli_warn("%s", line);
        pause_for(pause_ns);
    }
    if (outcome == CPPROF__PUSH_TOO_LARGE && !is_one &&
        cpprof__push_lower(&u->most_bytes, m->body.n))
        return CPPROF__SPLIT_HALVE;
    if (outcome == CPPROF__PUSH_SENT) {
        if (cpprof__push_say_rejected(&u->plan, &reply, line, sizeof line)) {
            cpprof__cli_fail("%s: %s", line, u->path);
            return CPPROF__SPLIT_END;
        }
        if (*line)
            cpprof__cli_warn("%s", line);
        return CPPROF__SPLIT_ON;
    }
    cpprof__push_say(&u->plan, &reply, "not sent", line, sizeof line);
    cpprof__cli_fail("%s: %s", line, u->path);
    return CPPROF__SPLIT_END;
}

/* Send what is made of a part of the profile, as the server takes it. */
static enum cpprof__split_next
send_part(struct pusher *u, const struct cpprof__split_part *part,
          const struct cpprof__buffer *plain)
{
    bool is_one = pprof_sample_count(part->profile) < 2;
    enum cpprof__split_next next = CPPROF__SPLIT_END;
    struct cpprof__buffer packed = {0};
    struct cpprof__push_message *m = NULL;

    if (cpprof__gzip(&packed, plain->data, plain->n, LEVEL, NULL) ==
        CPPROF_OK) {
        u->profile.data = packed.data;
        u->profile.n = packed.n;
        m = cpprof__push_message(&u->plan, &u->profile);
    }
    cpprof__buffer_free(&packed);
    if (!m)
        cpprof__cli_fail("%s: out of memory", u->path);
    else if (m->body.n > u->most_bytes && !is_one)
        next = CPPROF__SPLIT_HALVE;
    else
        next = send_message(u, m, is_one);
    cpprof__push_message_free(m);
    u->failed = next == CPPROF__SPLIT_END;
    return next;
}

static enum cpprof__split_next
send_plain(void *ctx, const struct cpprof__split_part *part)
{
    return send_part(ctx, part, part->plain);
}

/* ---- OTLP ------------------------------------------------------------- */

static int
append(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

static enum cpprof__split_next
send_otlp(void *ctx, const struct cpprof__split_part *part)
{
    struct pusher *u = ctx;
    struct pprof_write_options options = {.size = sizeof options,
                                          .sample_index = SIZE_MAX,
                                          .resource = u->resource};
    enum cpprof__split_next next = CPPROF__SPLIT_END;
    struct cpprof__buffer otlp = {0};
    const struct cpprof_writer writer = {sizeof writer, append, NULL, &otlp};
    struct cpprof_error error = {0};

    cpprof__buffer_free(part->plain);
    u->failed = pprof_write(part->profile, &writer, PPROF_FORMAT_OTLP, &options,
                            &error) != CPPROF_OK;
    if (u->failed)
        cpprof__cli_fail("%s: %s", u->path, error.text);
    else
        next = send_part(u, part, &otlp);
    cpprof__buffer_free(&otlp);
    return next;
}

/* ---- all -------------------------------------------------------------- */

static bool
send_parts(struct pusher *u, const struct pprof_profile *p)
{
    bool is_otlp = u->plan.protocol == CPPROF_PUSH_OTLP;
    struct pprof_info info = {.size = sizeof info};
    struct cpprof_error error = {0};

    pprof_get_info(p, &info);
    if (!is_otlp && !u->plan.is_named)
        cpprof__series_service(p, u->plan.name, sizeof u->plan.name);
    u->profile = (struct cpprof__push_profile){
        .kind = cpprof__series_of(p, u->path, u->series),
        .series = *u->series ? u->series : NULL,
        .from_ns = info.time_ns};
    if (__builtin_add_overflow(info.time_ns, info.duration_ns,
                               &u->profile.until_ns))
        u->profile.until_ns = info.time_ns;
    u->failed = false;
    if (cpprof__split(p, is_otlp ? CPPROF__SPLIT_OTLP : CPPROF__SPLIT_PYROSCOPE,
                      CPPROF__SPLIT_ROOM_NS, is_otlp ? send_otlp : send_plain,
                      u, &error) == CPPROF_OK)
        return !u->failed;
    cpprof__cli_fail("%s: %s", u->path, error.text);
    return false;
}

/* Make of it what the server takes. */
static enum cpprof_status
mend_profile(struct pusher *u, struct pprof_profile *p,
             struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    /* Parca wants ids that count from 1. */
    if (u->plan.protocol == CPPROF_PUSH_PARCA)
        status = pprof_compact(p, error);
    if (status == CPPROF_OK && (u->plan.protocol == CPPROF_PUSH_PARCA ||
                                u->plan.protocol <= CPPROF_PUSH_INGEST))
        status = cpprof__series_mend(
            p, u->path, now.tv_sec * 1000000000ll + now.tv_nsec, error);
    return status;
}

static bool
send_file(struct pusher *u, const char *path)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;
    bool sent;

    u->path = path;
    if (pprof_read_path(path, NULL, &p, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s: %s", path, error.text);
        return u->words->keep_going;
    }
    if (mend_profile(u, p, &error) != CPPROF_OK)
        sent = !cpprof__cli_fail("%s: %s", path, error.text);
    else
        sent = (!u->words->debuginfo ||
                cpprof__debuginfo_send(&u->debuginfo, p)) &&
               send_parts(u, p);
    pprof_free(p);
    return sent;
}

static void
nothing_at_exit(void)
{
}

static bool
connect_to(struct pusher *u)
{
    struct cpprof_error error = {0};

    u->http = cpprof__plug_in_load("push", CPPROF__PUSH_SYMBOL,
                                   CPPROF__PUSH_ABI, &error);
    if (u->http)
        u->connection = u->http->open(nothing_at_exit);
    u->debuginfo.plan = &u->plan;
    u->debuginfo.http = u->http;
    u->debuginfo.connection = u->connection;
    if (!u->connection)
        cpprof__cli_fail("push: %s",
                         u->http ? "libcurl does not start" : error.text);
    return u->connection;
}

static bool
make_plan(struct pusher *u)
{
    static const char *const protocols[] = {"push", "ingest", "otlp", "pprof",
                                            "parca"};
    const unsigned n = sizeof protocols / sizeof *protocols;
    const struct words *w = u->words;
    struct cpprof_push_options options = {
        .size = sizeof options,
        .name = w->name ? w->name : getenv("OTEL_SERVICE_NAME"),
        .labels = w->labels,
        .user = w->user,
        .token_file = w->token_file,
        .tenant = w->tenant,
    };
    struct cpprof_error error = {0};
    unsigned i = 0;

    while (w->protocol && i < n && strcmp(w->protocol, protocols[i]) != 0)
        i++;
    if (i == n) {
        cpprof__cli_fail("push: -protocol is push, ingest, otlp, pprof or "
                         "parca");
        return false;
    }
    options.protocol = (enum cpprof_push_protocol)i;
    if (cpprof__push_plan_make(w->to, &options, &u->plan, &error) ==
            CPPROF_OK &&
        !*u->plan.pattern &&
        (!w->debuginfo || u->plan.protocol <= CPPROF_PUSH_INGEST))
        return true;
    cpprof__cli_fail("%s",
                     *error.text ? error.text
                     : *u->plan.pattern
                         ? "push: -to is the URL of a server"
                         : "push: -debuginfo is of Pyroscope's own protocols");
    return false;
}

/* The variables, then what the words say: the last of a key counts. */
static void
make_resource(const struct pusher *u, struct cpprof__buffer *out)
{
    char *variables = cpprof__cli_resource();

    cpprof__buffer_printf(out, "%s,%s", variables ? variables : "",
                          u->plan.labels);
    if (u->words->name)
        cpprof__buffer_printf(out, ",service.name=%s", u->plan.name);
    cpprof__buffer_append(out, "", 1);
    free(variables);
}

static int
push_all(const struct words *w, char **paths, int n)
{
    struct pusher *u = calloc(1, sizeof *u);
    struct cpprof__buffer resource = {0};
    int status = CPPROF__EXIT_ERROR, i = 0;

    if (!u)
        return cpprof__cli_fail("push: out of memory");
    u->words = w;
    u->most_bytes = SIZE_MAX;
    if (make_plan(u) && connect_to(u)) {
        make_resource(u, &resource);
        u->resource = (const char *)resource.data;
        while (i < n && send_file(u, paths[i]))
            i++;
        status = i == n ? CPPROF__EXIT_OK : CPPROF__EXIT_ERROR;
        u->http->close(u->connection);
    }
    cpprof__debuginfo_free(&u->debuginfo);
    cpprof__buffer_free(&resource);
    explicit_bzero(u, sizeof *u);
    free(u);
    return status;
}

/* Flags may also come behind the files, as -x=y: all of that form come first.
 */
static void
put_flags_first(int argc, char **argv)
{
    int i, k, n = 1;

    for (i = 1; i < argc; i++) {
        char *word = argv[i];

        if (word[0] != '-' || !strchr(word, '='))
            continue;
        for (k = i; k > n; k--)
            argv[k] = argv[k - 1];
        argv[n++] = word;
    }
}

int
cpprof__cli_push(int argc, char **argv)
{
    struct words w = {.give_up_s = GIVE_UP_S};
    struct cpprof__flags flags = {.table = cpprof__push_flag_table, .into = &w};
    int n_used;

    put_flags_first(argc, argv);
    if (!cpprof__cli_flags(argc, argv, &flags, &n_used))
        return CPPROF__EXIT_ERROR;
    if (flags.help) {
        puts("usage: cpprof push -to=URL [flags] FILE...\n"
             "\n"
             "Send profiles in any format that is read.\n");
        cpprof__print_flags(cpprof__push_flag_table, true);
        return CPPROF__EXIT_OK;
    }
    if (!w.to)
        return cpprof__cli_fail("push: say -to=URL; see cpprof push -help");
    if (n_used == argc)
        return cpprof__cli_fail("push: no file given; see cpprof push -help");
    if (w.give_up_s < 0)
        return cpprof__cli_fail("push: -give_up is a number of seconds");
    return push_all(&w, argv + n_used, argc - n_used);
}

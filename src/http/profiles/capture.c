/* SPDX-License-Identifier: MIT */
/*
 * CPU and wall profiles of the next seconds, any number of them at once.
 *
 * Source: Go net/http/pprof (Profile); fgprof (Handler).
 */
#include "collect/capture/captures.h"
#include "collect/cpu/session.h"
#include "http/profiles/limits.h"

#define DEFAULT_SECONDS 30

/* The highest rate. Go and fgprof offer no choice; above this the program
 * becomes slower. */
#define RATE_MAX 1000

/* Deliberately not 100, so as not to run in step with periodic work. */
#define FGPROF_HZ 99

/* What kinds of captures differ in. */
struct kind {
    const char *what;      /* "Could not enable ...: " */
    const char *file_name; /* NULL: text */
    bool is_cpu;
    uint32_t wall_flags; /* unless it is CPU */
};

static const struct kind cpu = {"CPU profiling", "profile", true, 0};
static const struct kind wall = {"wall profiling", "wall", false, 0};
static const struct kind off_cpu = {"wall profiling", "offcpu", false,
                                    CPPROF_FLAG_OFF_CPU};
static const struct kind fgprof = {"wall profiling", "fgprof", false,
                                   CPPROF_FLAG_FGPROF};
static const struct kind folded = {"wall profiling", NULL, false,
                                   CPPROF_FLAG_COLLAPSED};

/* ---- parameters ------------------------------------------------------- */

/* False: answered. */
static bool
take_rate(struct cpprof__call *call, uint32_t *rate_hz)
{
    struct cpprof__form_value value =
        cpprof__form_value(&call->request, "rate");
    int64_t rate;

    *rate_hz = 0;
    if (!value.n)
        return true;
    if (!cpprof__form_int(value, &rate) || rate < 1 || rate > RATE_MAX) {
        cpprof__answer_error(&call->answer, 400,
                             "invalid value for \"rate\" - must be an integer "
                             "from 1 to %d",
                             RATE_MAX);
        return false;
    }
    *rate_hz = (uint32_t)rate;
    return true;
}

/* As in Go, anything that is no number of seconds means the default. False: an
 * error was answered. */
static bool
take_seconds(struct cpprof__call *call, int64_t *seconds)
{
    struct cpprof__form_value value =
        cpprof__form_value(&call->request, "seconds");

    if (!cpprof__form_int(value, seconds) || *seconds <= 0)
        *seconds = DEFAULT_SECONDS;
    if (!cpprof__timed_is_too_long(call, *seconds))
        return true;
    cpprof__answer_error(&call->answer, 400, CPPROF__TOO_LONG);
    return false;
}

/* labels=0: without those that threads carry, which are there by default. */
static bool
wants_labels(const struct cpprof__call *call)
{
    struct cpprof__form_value value =
        cpprof__form_value(&call->request, "labels");
    int64_t number;

    return !cpprof__form_int(value, &number) || number > 0;
}

/* ---- a capture -------------------------------------------------------- */

static void
fail(struct cpprof__call *call, const struct kind *kind, const char *why)
{
    cpprof__answer_error(&call->answer, 500, "Could not enable %s: %s",
                         kind->what, why);
}

static enum cpprof_status
begin(struct cpprof__call *call, const struct kind *kind, uint32_t rate_hz,
      const struct cpprof__answer_head *head, struct cpprof_capture **capture,
      struct cpprof_error *error)
{
    struct cpprof_writer writer = cpprof__answer_writer(&call->answer, head);
    enum cpprof_symbolize symbolize = call->request.flags & CPPROF_HTTP_NO_NAMES
                                          ? CPPROF_SYMBOLIZE_NONE
                                          : CPPROF_SYMBOLIZE_FULL;
    uint32_t flags = wants_labels(call) ? 0 : CPPROF_FLAG_NO_LABELS;
    const struct cpprof_cpu_options cpu_options = {.size = sizeof cpu_options,
                                                   .rate_hz = rate_hz,
                                                   .symbolize = symbolize,
                                                   .flags = flags};
    const struct cpprof_wall_options wall_options = {
        .size = sizeof wall_options,
        .rate_hz = rate_hz,
        .symbolize = symbolize,
        .flags = flags | kind->wall_flags};

    return kind->is_cpu
               ? cpprof_capture_start_cpu(&writer, &cpu_options, capture, error)
               : cpprof_capture_start_wall(&writer, &wall_options, capture,
                                           error);
}

/* The headers are sent when the capture runs, because a client may wait less
 * long for them than for the profile. */
static void
run(struct cpprof__call *call, const struct kind *kind, int64_t seconds,
    uint32_t rate_hz)
{
    const struct cpprof__answer_head head = {
        .status = 200,
        .content_type = kind->file_name ? CPPROF__BYTES : CPPROF__PLAIN,
        .file_name = kind->file_name,
        .n_body = -1,
    };
    struct cpprof_capture *capture;
    struct cpprof_error error;
    enum cpprof_status status;

    if (call->answer.is_head) {
        cpprof__answer_begin(&call->answer, &head);
        return;
    }
    status = begin(call, kind, rate_hz, &head, &capture, &error);
    if (status != CPPROF_OK) {
        fail(call, kind, error.text);
        return;
    }
    cpprof__answer_begin(&call->answer, &head);
    if (call->answer.sys || !cpprof__timed_wait(call, seconds)) {
        cpprof__capture_cancel(capture);
        return;
    }
    status = cpprof_capture_stop(capture, &error);
    cpprof__answer_end(&call->answer, status, &error);
}

static void
serve(struct cpprof__call *call, const struct kind *kind, int64_t seconds,
      uint32_t rate_hz)
{
    if (!cpprof__timed_begin(call))
        return;
    run(call, kind, seconds, rate_hz);
    cpprof__timed_end();
}

/* ---- CPU -------------------------------------------------------------- */

static struct cpprof__timed_count n_cpu;

/* Go has one CPU profile at a time, whoever started it. */
static bool
is_one_too_many(struct cpprof__call *call)
{
    bool is_one = call->request.flags & CPPROF_HTTP_ONE_CPU_CAPTURE;

    if (!cpprof__timed_count_up(&n_cpu, is_one ? 1 : UINT32_MAX))
        return true;
    if (!is_one || !cpprof__default_runs(&cpprof__cpu_life))
        return false;
    cpprof__timed_count_down(&n_cpu);
    return true;
}

void
cpprof__http_cpu(struct cpprof__call *call)
{
    int64_t seconds;
    uint32_t rate_hz;

    if (!take_seconds(call, &seconds) || !take_rate(call, &rate_hz))
        return;
    if (is_one_too_many(call)) {
        fail(call, &cpu, "cpu profiling already in use");
        return;
    }
    serve(call, &cpu, seconds, rate_hz);
    cpprof__timed_count_down(&n_cpu);
}

/* ---- wall ------------------------------------------------------------- */

static void
serve_wall(struct cpprof__call *call, const struct kind *kind)
{
    int64_t seconds;
    uint32_t rate_hz;

    if (take_seconds(call, &seconds) && take_rate(call, &rate_hz))
        serve(call, kind, seconds, rate_hz);
}

void
cpprof__http_wall(struct cpprof__call *call)
{
    serve_wall(call, &wall);
}

void
cpprof__http_off_cpu(struct cpprof__call *call)
{
    serve_wall(call, &off_cpu);
}

/* False: answered. */
static bool
is_format(struct cpprof__call *call, bool *is_folded)
{
    struct cpprof__form_value format =
        cpprof__form_value(&call->request, "format");

    *is_folded = cpprof__form_is(format, "folded");
    if (*is_folded || !format.n || cpprof__form_is(format, "pprof"))
        return true;
    cpprof__answer_error(&call->answer, 400,
                         "invalid value for \"format\" - must be pprof or "
                         "folded");
    return false;
}

/* Here the number of seconds must be valid. */
void
cpprof__http_fgprof(struct cpprof__call *call)
{
    struct cpprof__form_value value =
        cpprof__form_value(&call->request, "seconds");
    int64_t seconds;
    uint32_t rate_hz;
    bool is_folded;

    if (value.n && (!cpprof__form_int(value, &seconds) || seconds <= 0)) {
        cpprof__answer_error(&call->answer, 400, CPPROF__BAD_SECONDS);
        return;
    }
    if (take_seconds(call, &seconds) && take_rate(call, &rate_hz) &&
        is_format(call, &is_folded))
        serve(call, is_folded ? &folded : &fgprof, seconds,
              rate_hz ? rate_hz : FGPROF_HZ);
}

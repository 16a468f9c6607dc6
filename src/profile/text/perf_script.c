/* SPDX-License-Identifier: MIT */
/*
 * The text of `perf script` (perf_line.h) as a profile.
 *
 * - Sample types: samples/count, then one for each event in the order of their
 *   first samples, which is the sum of its periods: EVENT/nanoseconds for
 *   cpu-clock and task-clock, else EVENT/count; an event without periods counts
 *   its samples. The default is the event with the most samples.
 * - Labels, named as perf_to_profile names them: comm; pid and tid, numbers.
 * - A file is a mapping (perf_mappings.h).
 * - Inlined functions are lines of the location of the frame below them.
 *
 * Frames are collected until the header or the empty line behind them.
 */
#include "base/status.h"
#include "own/memory.h"
#include "profile/legacy/rows.h"
#include "profile/text/perf_line.h"
#include "profile/text/perf_mappings.h"
#include "profile/text/text.h"

#include <string.h>

/* Every event is a value of every sample; more of them is more memory. */
#define MAX_EVENTS 64

struct event {
    uint32_t name;
    size_t n_samples;
    bool all_periods; /* every sample had one */
    bool same_period; /* and all were this one: */
    int64_t period;
};

/* A line of the frame that is being read. */
struct line {
    uint32_t name; /* 0: unknown */
    uint32_t file;
    int64_t number;
};

struct script {
    struct cpprof__maker *maker;
    struct event events[MAX_EVENTS];
    size_t n_events;
    bool many_events;
    /* What sample i counts, until all events are known. */
    CPPROF__ARRAY(struct count {
        int64_t value;
        uint32_t event;
    })
    counts;
    CPPROF__ARRAY(uint32_t) mapping_of; /* by string: index and 1, or 0 */
    CPPROF__ARRAY(uint32_t) stack;      /* of the sample, leaf first */
    CPPROF__ARRAY(struct line) lines;   /* of the frame */
    struct cpprof__perf_frame frame;    /* its last line */
    bool in_sample;
    struct cpprof__perf_header header; /* of the sample */
    struct cpprof__index locations;    /* by mapping, address and lines */
    uint32_t comm_key, pid_key, tid_key;
    uint32_t first_comm;
    int64_t first_ns, last_ns; /* -1: not known */
};

/* ---------------------------------------------------------- mappings ---- */

static uint32_t
file_mapping(struct script *s, struct cpprof__text file)
{
    size_t n = s->mapping_of.n, more;
    uint32_t string;

    if (!file.n)
        return PPROF_NONE;
    string = cpprof__make_string(s->maker, file.at, file.n);
    more = string < n ? 0 : string + 1 - n;
    if (!CPPROF__ARRAY_ROOM(&s->mapping_of, more))
        s->maker->failed = true;
    if (s->maker->failed)
        return PPROF_NONE;
    if (more)
        memset(s->mapping_of.at + n, 0, more * sizeof *s->mapping_of.at);
    s->mapping_of.n += more;
    if (!s->mapping_of.at[string])
        s->mapping_of.at[string] =
            cpprof__make_mapping(s->maker, UINT64_MAX, 0, 0, string, 0) + 1;
    return s->mapping_of.at[string] - 1;
}

/* Until the end, a mapping is from its lowest to its highest address. */
static void
widen(struct script *s, uint32_t mapping, uint64_t address)
{
    struct pprof_mapping *m;

    if (mapping == PPROF_NONE || s->maker->failed)
        return;
    m = &s->maker->p->mappings.at[mapping];
    if (address < m->start)
        m->start = address;
    if (address > m->limit)
        m->limit = address;
}

/* --------------------------------------------------------- locations ---- */

struct wanted {
    const struct pprof_profile *p;
    const struct pprof_location *location;
};

static bool
is_wanted(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;
    const struct pprof_location *l = &w->p->locations.at[value];
    const struct pprof_line *a = w->p->lines.at + l->first_line;
    const struct pprof_line *b = w->p->lines.at + w->location->first_line;
    uint32_t i;

    if (l->address != w->location->address ||
        l->mapping != w->location->mapping ||
        l->n_lines != w->location->n_lines)
        return false;
    for (i = 0; i < l->n_lines; i++)
        if (a[i].function != b[i].function || a[i].line != b[i].line)
            return false;
    return true;
}

/* Append the lines of the frame to those of the profile; their hash. */
static uint64_t
add_lines(struct script *s)
{
    uint64_t hash = s->lines.n;
    size_t i;

    for (i = 0; i < s->lines.n; i++) {
        const struct line *from = &s->lines.at[i];
        uint32_t function;

        if (!from->name)
            continue;
        function =
            cpprof__make_function(s->maker, from->name, from->name, from->file);
        cpprof__make_line(s->maker,
                          (struct pprof_line){from->number, 0, function});
        hash = cpprof__hash_u64(hash + ((uint64_t)function << 32) +
                                (uint64_t)from->number);
    }
    return hash;
}

/* The location of the frame. Its lines are appended first, and removed again if
 * the location exists already. */
static uint32_t
find_location(struct script *s, uint32_t mapping)
{
    struct pprof_profile *p = s->maker->p;
    struct pprof_location l = {.id = p->locations.n + 1,
                               .address = s->frame.address,
                               .mapping = mapping,
                               .first_line = p->lines.n};
    struct wanted wanted = {p, &l};
    uint64_t hash = cpprof__hash_u64(add_lines(s) + mapping);
    uint32_t found;

    hash = cpprof__hash_u64(hash ^ l.address);
    if (s->maker->failed)
        return 0;
    l.n_lines = (uint32_t)(p->lines.n - l.first_line);
    found = cpprof__index_find(&s->locations, hash, is_wanted, &wanted);
    if (found != CPPROF__INDEX_NONE) {
        p->lines.n = l.first_line;
        return found;
    }
    found = (uint32_t)p->locations.n;
    if (found == PPROF_NONE || !CPPROF__ARRAY_ROOM(&p->locations, 1) ||
        !cpprof__index_add(&s->locations, hash, found)) {
        s->maker->failed = true;
        return 0;
    }
    p->locations.at[p->locations.n++] = l;
    return found;
}

/* ------------------------------------------------------------ frames ---- */

/* The frame is complete: add it to the stack. */
static void
end_frame(struct script *s)
{
    uint32_t mapping, *added;

    if (!s->lines.n)
        return;
    mapping = file_mapping(s, s->frame.dso);
    widen(s, mapping, s->frame.address);
    added = CPPROF__ARRAY_ADD(&s->stack);
    if (added)
        *added = find_location(s, mapping);
    else
        s->maker->failed = true;
    s->lines.n = 0;
}

static void
add_frame(struct script *s, const struct cpprof__perf_frame *frame)
{
    struct line *line;

    if (s->lines.n && (!s->frame.inlined || s->frame.address != frame->address))
        end_frame(s);
    s->frame = *frame;
    line = CPPROF__ARRAY_ADD(&s->lines);
    if (line)
        *line = (struct line){
            cpprof__make_string(s->maker, frame->name.at, frame->name.n), 0, 0};
    else
        s->maker->failed = true;
}

/* Is the line a source line, or another note, that belongs to the frame above
 * it? */
static bool
add_source(struct script *s, struct cpprof__text text)
{
    struct cpprof__text file;
    int64_t number;

    if (!s->lines.n || !cpprof__begins(text, "  "))
        return false;
    if (cpprof__perf_source(text, &file, &number)) {
        struct line *line = &s->lines.at[s->lines.n - 1];

        line->file = cpprof__make_string(s->maker, file.at, file.n);
        line->number = number;
    }
    return true;
}

/* ----------------------------------------------------------- samples ---- */

/* The number of an event; none is called "event". */
static uint32_t
find_event(struct script *s, struct cpprof__text text)
{
    uint32_t name = text.n ? cpprof__make_string(s->maker, text.at, text.n)
                           : cpprof__make_text(s->maker, "event");
    size_t i;

    for (i = 0; i < s->n_events; i++)
        if (s->events[i].name == name)
            return (uint32_t)i;
    if (i == MAX_EVENTS) {
        s->many_events = true;
        return 0;
    }
    s->events[i] = (struct event){name, 0, true, true, s->header.period};
    s->n_events++;
    return (uint32_t)i;
}

static void
count(struct script *s)
{
    const struct cpprof__perf_header *h = &s->header;
    uint32_t number = find_event(s, h->event);
    struct event *event = &s->events[number];
    struct count *added = CPPROF__ARRAY_ADD(&s->counts);

    event->n_samples++;
    if (!h->has_period)
        event->all_periods = false;
    else if (h->period != event->period)
        event->same_period = false;
    if (added)
        *added = (struct count){h->has_period ? h->period : 1, number};
    else
        s->maker->failed = true;
}

static void
label(struct script *s)
{
    const struct cpprof__perf_header *h = &s->header;
    uint32_t comm = cpprof__make_string(s->maker, h->comm.at, h->comm.n);

    if (!s->first_comm)
        s->first_comm = comm;
    cpprof__make_label(s->maker, s->comm_key, comm);
    if (h->pid >= 0)
        cpprof__make_number(s->maker, s->pid_key, h->pid, 0);
    cpprof__make_number(s->maker, s->tid_key, h->tid, 0);
    if (h->time_ns < 0)
        return;
    if (s->first_ns < 0 || h->time_ns < s->first_ns)
        s->first_ns = h->time_ns;
    if (h->time_ns > s->last_ns)
        s->last_ns = h->time_ns;
}

/* Is this a frame on the line of its header, and not the arguments of a
 * tracepoint? */
static bool
is_whole_frame(struct cpprof__text text, struct cpprof__perf_frame *frame)
{
    return cpprof__perf_frame(text, frame) && frame->dso.at;
}

static void
end_sample(struct script *s)
{
    static const int64_t one = 1;
    struct cpprof__perf_frame frame;

    if (!s->in_sample)
        return;
    s->in_sample = false;
    end_frame(s);
    if (!s->stack.n && is_whole_frame(s->header.rest, &frame)) {
        add_frame(s, &frame);
        end_frame(s);
    }
    count(s);
    label(s);
    cpprof__make_sample(s->maker, s->stack.at, s->stack.n, &one);
    s->stack.n = 0;
}

/* Frames begin with a tab, or with spaces where somebody has changed that;
 * but so does a header without a call chain. */
static bool
take_frame(struct script *s, struct cpprof__text line)
{
    struct cpprof__perf_frame frame;
    struct cpprof__perf_header header;

    if (line.at[0] != '\t' && line.at[0] != ' ')
        return false;
    if (line.at[0] == ' ' && cpprof__perf_header(line, &header) &&
        header.time_ns >= 0)
        return false;
    if (cpprof__perf_frame(line, &frame)) {
        add_frame(s, &frame);
        return true;
    }
    return add_source(s, line);
}

/* False: the line is nothing that perf prints. */
static bool
take_line(struct script *s, struct cpprof__text line)
{
    struct cpprof__perf_header header;

    if (!cpprof__trim(line).n) {
        end_sample(s);
        return true;
    }
    if (line.at[0] == '#' || (s->in_sample && take_frame(s, line)))
        return true;
    if (!cpprof__perf_header(line, &header))
        return false;
    end_sample(s);
    s->header = header;
    s->in_sample = !header.is_record;
    return true;
}

/* ------------------------------------------------------------ values ---- */

/* Periods of these are time. */
static bool
is_clock(const char *event, size_t n)
{
    static const char *const clocks[] = {"cpu-clock", "task-clock"};
    size_t i;

    for (i = 0; i < 2; i++) {
        size_t length = strlen(clocks[i]);

        if (n >= length && memcmp(event, clocks[i], length) == 0 &&
            (n == length || event[length] == ':'))
            return true;
    }
    return false;
}

static void
add_event_type(struct script *s, const struct event *e)
{
    struct pprof_profile *p = s->maker->p;
    uint32_t unit = cpprof__make_text(
        s->maker,
        e->all_periods && is_clock(cpprof__strings_text(&p->strings, e->name),
                                   cpprof__strings_n(&p->strings, e->name))
            ? "nanoseconds"
            : "count");
    struct pprof_value_type *type = CPPROF__ARRAY_ADD(&p->sample_types);

    if (type)
        *type = (struct pprof_value_type){e->name, unit};
    else
        s->maker->failed = true;
}

/* All events are known now: give each sample a value for each of them. */
static void
finish_values(struct script *s)
{
    struct pprof_profile *p = s->maker->p;
    size_t n_types = 1 + s->n_events, i;
    int64_t *values;

    for (i = 0; i < s->n_events; i++)
        add_event_type(s, &s->events[i]);
    if (s->maker->failed)
        return;
    values = cpprof__calloc(p->samples.n, n_types * sizeof *values);
    if (!values) {
        s->maker->failed = true;
        return;
    }
    for (i = 0; i < p->samples.n; i++) {
        values[i * n_types] = 1;
        values[i * n_types + 1 + s->counts.at[i].event] = s->counts.at[i].value;
    }
    cpprof__free(p->values.at);
    p->values.at = values;
    p->values.n = p->values.capacity = p->samples.n * n_types;
}

static void
finish(struct script *s)
{
    struct pprof_profile *p = s->maker->p;
    const struct event *most = &s->events[0];
    size_t i;

    end_sample(s);
    if (s->maker->failed || s->many_events || !s->n_events)
        return;
    finish_values(s);
    cpprof__perf_mappings(p, s->first_comm);
    if (s->maker->failed)
        return;
    for (i = 1; i < s->n_events; i++)
        if (s->events[i].n_samples > most->n_samples)
            most = &s->events[i];
    p->info.default_sample_type = most->name;
    p->info.period_type = p->sample_types.at[1 + (most - s->events)];
    if (most->all_periods && most->same_period && most->period > 0)
        p->info.period = most->period;
    if (s->first_ns >= 0)
        p->info.duration_ns = s->last_ns - s->first_ns;
}

/* ------------------------------------------------------------- reader ---- */

/*
 * Does it begin as the output of perf does? Few other lines look like headers,
 * fewer with a time in them; without one, a frame has to follow.
 */
static bool
recognize(struct cpprof__legacy_lines lines)
{
    struct cpprof__perf_header header;
    struct cpprof__perf_frame frame;
    struct cpprof__text line;

    do {
        if (!cpprof__next_line(&lines, &line))
            return false;
    } while (cpprof__is_space_or_comment(line));
    if (!cpprof__perf_header(line, &header))
        return false;
    if (header.is_record || is_whole_frame(header.rest, &frame))
        return true;
    if (!cpprof__next_line(&lines, &line) || !line.n)
        return header.time_ns >= 0;
    if ((line.at[0] == '\t' || line.at[0] == ' ') &&
        cpprof__perf_frame(line, &frame))
        return true;
    return header.time_ns >= 0 && cpprof__perf_header(line, &header) &&
           header.time_ns >= 0;
}

static void
begin(struct script *s)
{
    cpprof__make_sample_type(s->maker, "samples", "count");
    s->comm_key = cpprof__make_text(s->maker, "comm");
    s->pid_key = cpprof__make_text(s->maker, "pid");
    s->tid_key = cpprof__make_text(s->maker, "tid");
    s->first_ns = s->last_ns = -1;
}

static void
end(struct script *s)
{
    CPPROF__ARRAY_FREE(&s->counts);
    CPPROF__ARRAY_FREE(&s->mapping_of);
    CPPROF__ARRAY_FREE(&s->stack);
    CPPROF__ARRAY_FREE(&s->lines);
    cpprof__index_free(&s->locations);
}

enum cpprof_status
cpprof__read_perf_script(struct cpprof__rows *rows, bool *recognized,
                         struct cpprof_error *error)
{
    struct cpprof__legacy_lines lines = rows->lines;
    struct script s = {.maker = &rows->maker};
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__text line;
    uint64_t n_lines = 0;

    *recognized = recognize(lines);
    if (!*recognized)
        return CPPROF_OK;
    begin(&s);
    while (status == CPPROF_OK && !s.maker->failed && !s.many_events &&
           cpprof__next_line(&lines, &line)) {
        n_lines++;
        if (!take_line(&s, line))
            status = cpprof__fail(error, CPPROF_BAD_DATA, 0,
                                  "perf script: line %llu is neither a sample "
                                  "nor a frame of one",
                                  (unsigned long long)n_lines);
    }
    if (status == CPPROF_OK)
        finish(&s);
    if (status == CPPROF_OK && s.many_events)
        status = cpprof__fail(error, CPPROF_LIMIT, 0,
                              "perf script: more than %d events", MAX_EVENTS);
    end(&s);
    return status;
}

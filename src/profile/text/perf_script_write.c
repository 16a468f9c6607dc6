/* SPDX-License-Identifier: MIT */
/*
 * A profile as `perf script` would print it, for the many tools that read
 * that: a sample for each sample, with its value as the period.
 *
 * - The process is the label "comm" or "thread", else the program; the labels
 *   pid and tid, else 0.
 * - The event is the sample type; cpu/nanoseconds is cpu-clock, whose periods
 *   are nanoseconds, too.
 * - Time is made up, since profiles have none, but never goes back: the sum of
 *   the values before, as nanoseconds.
 * - An inlined function is a frame "(inlined)" above the one that it is in.
 *
 * Source: tools/perf/builtin-script.c, util/evsel_fprintf.c of Linux.
 */
#include "profile/text/text.h"

#include <string.h>

struct printer {
    const struct pprof_profile *p;
    struct cpprof__buffer *out;
    struct cpprof__buffer event;     /* " EVENT: \n" */
    uint32_t comm, thread, pid, tid; /* label keys, or CPPROF__NO_STRING */
    uint32_t program;                /* file, or 0 */
    uint64_t time_ns;
};

/* ------------------------------------------------------------ pieces ---- */

static void
put(struct printer *w, const char *text)
{
    cpprof__buffer_append(w->out, text, strlen(text));
}

static void
put_number(struct printer *w, uint64_t number, unsigned base, size_t width)
{
    cpprof__buffer_number(w->out, "", number, base, width);
}

static uint32_t
key(const struct pprof_profile *p, const char *text)
{
    return cpprof__strings_find(&p->strings, text, strlen(text));
}

static bool
is_cpu_time(const struct pprof_profile *p, const struct pprof_value_type *type)
{
    return strcmp(cpprof__strings_text(&p->strings, type->type), "cpu") == 0 &&
           strcmp(cpprof__strings_text(&p->strings, type->unit),
                  "nanoseconds") == 0;
}

/* One word, which is what the name of an event has to be. */
static void
make_event(struct printer *w, size_t type)
{
    const struct pprof_value_type *t = &w->p->sample_types.at[type];
    size_t i;

    if (is_cpu_time(w->p, t))
        cpprof__buffer_append(&w->event, "cpu-clock", 9);
    else if (cpprof__strings_n(&w->p->strings, t->type))
        cpprof__append_clean(&w->event, w->p, t->type, ';');
    else
        cpprof__buffer_append(&w->event, "event", 5);
    for (i = 0; i < w->event.n; i++)
        if (w->event.data[i] == ' ')
            w->event.data[i] = '_';
    cpprof__buffer_append(&w->event, ": \n", 3);
}

/* ------------------------------------------------------------ header ---- */

struct process {
    uint32_t comm; /* 0: not known */
    int64_t pid, tid;
};

static struct process
find_process(const struct printer *w, const struct cpprof__sample *sample)
{
    struct process process = {0, -1, -1};
    size_t n, i;
    const struct pprof_label *labels =
        cpprof__label_set(&w->p->labels, sample->labels, &n);

    for (i = 0; i < n; i++) {
        const struct pprof_label *l = &labels[i];
        bool is_text = l->kind == PPROF_LABEL_TEXT;

        if (is_text &&
            (l->key == w->comm || (l->key == w->thread && !process.comm)))
            process.comm = l->text;
        else if (!is_text && l->key == w->pid && l->num >= 0)
            process.pid = l->num;
        else if (!is_text && l->key == w->tid && l->num >= 0)
            process.tid = l->num;
    }
    return process;
}

static void
put_comm(struct printer *w, uint32_t comm)
{
    size_t before = w->out->n;

    if (comm)
        cpprof__append_clean(w->out, w->p, comm, ';');
    else if (w->program)
        cpprof__append_base(w->out, w->p, w->program, ';');
    if (w->out->failed)
        return;
    if (w->out->n == before)
        put(w, "unknown");
    else if (w->out->data[before] == ' ' || w->out->data[before] == '#')
        w->out->data[before] = '_'; /* would be no header */
}

static void
put_ids(struct printer *w, const struct process *process)
{
    int64_t tid = process->tid < 0 ? 0 : process->tid;

    if (process->pid >= 0) {
        put_number(w, (uint64_t)process->pid, 10, 0);
        put(w, "/");
        tid = process->tid < 0 ? process->pid : tid;
    }
    put_number(w, (uint64_t)tid, 10, 0);
}

static void
put_time(struct printer *w)
{
    uint64_t us = w->time_ns / 1000;
    char fraction[8] = "000000:";
    size_t i;

    put_number(w, us / 1000000, 10, 5);
    for (i = 6, us %= 1000000; i--; us /= 10)
        fraction[i] = (char)('0' + us % 10);
    put(w, ".");
    put(w, fraction);
}

static void
put_header(struct printer *w, const struct cpprof__sample *sample,
           int64_t value)
{
    struct process process = find_process(w, sample);
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;

    put_comm(w, process.comm);
    put(w, " ");
    put_ids(w, &process);
    put(w, " ");
    put_time(w);
    put(w, value < 0 ? " -" : " ");
    put_number(w, size, 10, value < 0 ? 0 : 10);
    put(w, " ");
    cpprof__buffer_append(w->out, w->event.data, w->event.n);
    w->time_ns = w->time_ns > INT64_MAX - size % INT64_MAX
                     ? INT64_MAX
                     : w->time_ns + size % INT64_MAX;
}

/* ------------------------------------------------------------ frames ---- */

static void
put_frame(struct printer *w, const struct pprof_location *l, uint32_t name,
          bool inlined)
{
    uint32_t file = cpprof__location_file(w->p, l);

    put(w, "\t");
    put_number(w, l->address, 16, 16);
    put(w, " ");
    if (name)
        cpprof__append_clean(w->out, w->p, name, ';');
    else
        put(w, "[unknown]");
    put(w, " (");
    if (inlined)
        put(w, "inlined");
    else if (file)
        cpprof__append_clean(w->out, w->p, file, ';');
    else
        put(w, "[unknown]");
    put(w, ")\n");
}

static void
put_location(struct printer *w, uint32_t location)
{
    const struct pprof_location *l = &w->p->locations.at[location];
    uint32_t i;

    if (!l->n_lines)
        put_frame(w, l, 0, false);
    for (i = 0; i < l->n_lines; i++) {
        uint32_t function = w->p->lines.at[l->first_line + i].function;

        put_frame(w, l, cpprof__function_text(w->p, function),
                  i + 1 < l->n_lines);
    }
}

void
cpprof__write_perf_script(const struct pprof_profile *p, size_t type,
                          struct cpprof__sink *out)
{
    struct printer w = {.p = p,
                        .out = &out->buffer,
                        .comm = key(p, "comm"),
                        .thread = key(p, "thread"),
                        .pid = key(p, "pid"),
                        .tid = key(p, "tid"),
                        .program = p->mappings.n ? p->mappings.at[0].file : 0};
    size_t i, j;

    make_event(&w, type);
    for (i = 0; i < p->samples.n && !cpprof__sink_broken(out); i++) {
        const struct cpprof__sample *sample = &p->samples.at[i];
        int64_t value = cpprof__values(p, i)[type];

        if (!value)
            continue;
        put_header(&w, sample, value);
        for (j = 0; j < sample->n_frames; j++)
            put_location(&w, p->frames.at[sample->first_frame + j]);
        put(&w, "\n");
        cpprof__sink_mind(out);
    }
    if (w.event.failed)
        out->buffer.failed = true;
    cpprof__buffer_free(&w.event);
}

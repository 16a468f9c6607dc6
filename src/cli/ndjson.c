/* SPDX-License-Identifier: MIT */
/*
 * A line for each sample, with the hash of its stack, and before the first
 * sample of a stack a line for that. The hash depends on what the stack says
 * and on nothing else, so lines of all machines and times go together.
 *
 * Which stacks have been written is remembered in a table of fixed size, in
 * which one takes the slot of another: a stack may be written again, never not
 * at all.
 */
#include "cli/ndjson.h"

#include "base/buffer.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Hashes that are remembered, 8 bytes each. More repeats fewer stacks. */
#define N_SEEN ((size_t)1 << 19)

/* How much is written at a time. */
#define WRITE_BYTES ((size_t)256 << 10)

/* FNV-1a, 64 bits. It is part of the format: docs/sql.md. */
#define FNV_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

struct cpprof__ndjson {
    struct cpprof_writer writer;
    struct cpprof__buffer out;
    const char *labels;
    int failure; /* errno of the writer */
    uint64_t seen[N_SEEN];
};

struct frame {
    const char *function, *file, *build_id;
    int64_t line;
    char unnamed[32]; /* where there is no function: where it is in the file,
                       * which is the same in all processes */
};

/* ---- JSON ------------------------------------------------------------- */

/* What is no text, a zero byte too, becomes U+FFFD: engines refuse a file for
 * one such character. */
static void
put_text(struct cpprof__buffer *out, const char *text, size_t n)
{
    uint32_t rune = 0;
    size_t used;

    for (; n; text += used, n -= used) {
        used = *text ? cpprof__utf8_next(text, n, &rune) : 0;
        if (!used) {
            cpprof__buffer_append(out, "\xef\xbf\xbd", 3);
            used = 1;
        } else if (*text == '"' || *text == '\\') {
            cpprof__buffer_append(out, "\\", 1);
            cpprof__buffer_append(out, text, 1);
        } else if ((unsigned char)*text < ' ') {
            cpprof__buffer_printf(out, "\\u%04x", (unsigned char)*text);
        } else {
            cpprof__buffer_append(out, text, used);
        }
    }
}

static void
put_raw(struct cpprof__buffer *out, const char *text)
{
    cpprof__buffer_append(out, text, strlen(text));
}

static void
put_string(struct cpprof__buffer *out, const char *text)
{
    put_raw(out, "\"");
    put_text(out, text, strlen(text));
    put_raw(out, "\"");
}

static void
put_number(struct cpprof__buffer *out, int64_t number)
{
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

    cpprof__buffer_number(out, number < 0 ? "-" : "", size, 10, 0);
}

static const char *
text_of(const struct pprof_profile *p, pprof_string string)
{
    return pprof_text(p, string, NULL);
}

/* ---- stacks ----------------------------------------------------------- */

/* Do something with each frame, leaf first, inlined ones apart. */
static void
each_frame(const struct pprof_profile *p, const struct pprof_sample *s,
           void (*use)(void *ctx, const struct frame *frame), void *ctx)
{
    size_t i;

    for (i = 0; i < s->n_locations; i++) {
        const struct pprof_location *l = &pprof_locations(p)[s->locations[i]];
        const struct pprof_mapping *m =
            l->mapping == PPROF_NONE ? NULL : &pprof_mappings(p)[l->mapping];
        struct frame frame = {.build_id = m ? text_of(p, m->build_id) : ""};
        uint32_t k;

        for (k = 0; k < l->n_lines; k++) {
            const struct pprof_line *line = &pprof_lines(p)[l->first_line + k];
            const struct pprof_function *f =
                &pprof_functions(p)[line->function];

            frame.function = text_of(p, f->name ? f->name : f->system_name);
            frame.file = text_of(p, f->file);
            frame.line = line->line;
            use(ctx, &frame);
        }
        if (l->n_lines)
            continue;
        snprintf(frame.unnamed, sizeof frame.unnamed, "[0x%llx]",
                 (unsigned long long)(m ? l->address - m->start + m->offset
                                        : l->address));
        frame.function = frame.unnamed;
        frame.file = m ? text_of(p, m->file) : "";
        use(ctx, &frame);
    }
}

static void
hash_bytes(uint64_t *hash, const void *data, size_t n)
{
    const uint8_t *bytes = data;
    size_t i;

    for (i = 0; i < n; i++)
        *hash = (*hash ^ bytes[i]) * FNV_PRIME;
}

/* With the zero byte behind each text, so that none runs into the next. */
static void
hash_frame(void *ctx, const struct frame *f)
{
    char line[24];
    int n = snprintf(line, sizeof line, "%lld", (long long)f->line);

    hash_bytes(ctx, f->function, strlen(f->function) + 1);
    hash_bytes(ctx, f->file, strlen(f->file) + 1);
    hash_bytes(ctx, line, (size_t)n + 1);
    hash_bytes(ctx, f->build_id, strlen(f->build_id) + 1);
}

static void
put_function(void *ctx, const struct frame *f)
{
    put_raw(ctx, ",");
    put_string(ctx, f->function);
}

static void
put_file(void *ctx, const struct frame *f)
{
    put_raw(ctx, ",");
    put_string(ctx, f->file);
}

static void
put_line(void *ctx, const struct frame *f)
{
    put_raw(ctx, ",");
    put_number(ctx, f->line);
}

static void
put_build_id(void *ctx, const struct frame *f)
{
    put_raw(ctx, ",");
    put_string(ctx, f->build_id);
}

/* An array of what `use` puts, each with a comma in front. */
static void
put_array(struct cpprof__buffer *out, const char *name,
          const struct pprof_profile *p, const struct pprof_sample *s,
          void (*use)(void *ctx, const struct frame *frame))
{
    size_t mark;

    put_raw(out, ",\"");
    put_raw(out, name);
    put_raw(out, "\":[");
    mark = out->n;
    each_frame(p, s, use, out);
    if (!out->failed && out->n > mark) {
        memmove(out->data + mark, out->data + mark + 1, out->n - mark - 1);
        out->n--;
    }
    put_raw(out, "]");
}

static uint64_t
put_stack(struct cpprof__ndjson *n, const struct pprof_profile *p,
          const struct pprof_sample *s)
{
    uint64_t hash = FNV_BASIS, *slot;
    struct cpprof__buffer *out = &n->out;

    each_frame(p, s, hash_frame, &hash);
    /* 0 is a free slot. */
    hash += !hash;
    slot = &n->seen[(hash ^ hash >> 32) % N_SEEN];
    if (*slot == hash)
        return hash;
    *slot = hash;
    put_raw(out, "{\"kind\":\"stack\",\"hash\":");
    cpprof__buffer_number(out, "", hash, 10, 0);
    put_array(out, "functions", p, s, put_function);
    put_array(out, "files", p, s, put_file);
    put_array(out, "lines", p, s, put_line);
    put_array(out, "build_ids", p, s, put_build_id);
    put_raw(out, "}\n");
    return hash;
}

/* ---- samples ---------------------------------------------------------- */

/* A value of each type; of those of one name the last. */
static void
put_values(struct cpprof__buffer *out, const struct pprof_profile *p,
           const struct pprof_sample *s, bool units)
{
    const struct pprof_value_type *types = pprof_sample_types(p);
    size_t n = pprof_sample_type_count(p), i, k, n_put = 0;

    put_raw(out, units ? ",\"units\":{" : ",\"values\":{");
    for (i = 0; i < n; i++) {
        for (k = i + 1; k < n && types[k].type != types[i].type; k++) {
        }
        if (k < n)
            continue;
        put_raw(out, n_put++ ? "," : "");
        put_string(out, text_of(p, types[i].type));
        put_raw(out, ":");
        if (units)
            put_string(out, text_of(p, types[i].unit));
        else
            put_number(out, s->values[i]);
    }
    put_raw(out, "}");
}

static void
put_label_value(struct cpprof__buffer *out, const struct pprof_profile *p,
                const struct pprof_label *label)
{
    const char *text;
    size_t n;

    if (label->kind == PPROF_LABEL_NUMBER) {
        put_number(out, label->num);
        return;
    }
    text = pprof_text(p, label->text, &n);
    put_text(out, text, n);
}

/* Is the key of n bytes in "key=value,key=value"? */
static bool
has_given(const char *text, const char *key, size_t n)
{
    for (; *text; text += strcspn(text, ","), text += *text == ',')
        if (strcspn(text, "=,") == n && text[n] == '=' &&
            memcmp(text, key, n) == 0)
            return true;
    return false;
}

/* Those that all samples have come first, unless the sample has the key. The
 * last of a key counts. */
static size_t
put_given_labels(struct cpprof__ndjson *n, const struct pprof_profile *p,
                 const struct pprof_sample *s)
{
    const char *text = n->labels ? n->labels : "";
    struct cpprof__buffer *out = &n->out;
    size_t n_put = 0, all, key, i;

    for (; *text; text += all + (text[all] == ',')) {
        all = strcspn(text, ",");
        key = strcspn(text, "=,");
        for (i = 0; i < s->n_labels; i++) {
            const char *own = text_of(p, s->labels[i].key);

            if (strlen(own) == key && memcmp(own, text, key) == 0)
                break;
        }
        if (i < s->n_labels ||
            has_given(text + all + (text[all] == ','), text, key))
            continue;
        put_raw(out, n_put++ ? ",\"" : "\"");
        put_text(out, text, key);
        put_raw(out, "\":\"");
        put_text(out, text + key + 1, all - key - 1);
        put_raw(out, "\"");
    }
    return n_put;
}

/* Is a key another one when it is written? */
static bool
is_odd(const struct pprof_profile *p, pprof_string key)
{
    size_t n, used;
    const char *text = pprof_text(p, key, &n);
    uint32_t rune;

    for (; n; text += used, n -= used) {
        used = *text ? cpprof__utf8_next(text, n, &rune) : 0;
        if (!used)
            return true;
    }
    return false;
}

static void
put_key(struct cpprof__buffer *out, const struct pprof_profile *p,
        pprof_string key)
{
    size_t n;
    const char *text = pprof_text(p, key, &n);

    put_text(out, text, n);
}

/* Are two keys one when they are written? */
static bool
is_same_key(const struct pprof_profile *p, pprof_string a, pprof_string b)
{
    struct cpprof__buffer one = {0}, other = {0};
    bool is_same = a == b;

    if (!is_same && (is_odd(p, a) || is_odd(p, b))) {
        put_key(&one, p, a);
        put_key(&other, p, b);
        is_same = one.n == other.n &&
                  (!one.n || !memcmp(one.data, other.data, one.n));
        cpprof__buffer_free(&one);
        cpprof__buffer_free(&other);
    }
    return is_same;
}

/* A map has a key once: several values of it are one text with commas. */
static void
put_labels(struct cpprof__ndjson *n, const struct pprof_profile *p,
           const struct pprof_sample *s)
{
    struct cpprof__buffer *out = &n->out;
    size_t n_put, i, k;

    put_raw(out, ",\"labels\":{");
    n_put = put_given_labels(n, p, s);
    for (i = 0; i < s->n_labels; i++) {
        for (k = 0;
             k < i && !is_same_key(p, s->labels[k].key, s->labels[i].key);
             k++) {
        }
        if (k < i)
            continue;
        put_raw(out, n_put++ ? ",\"" : "\"");
        put_key(out, p, s->labels[i].key);
        put_raw(out, "\":\"");
        put_label_value(out, p, &s->labels[i]);
        for (k = i + 1; k < s->n_labels; k++)
            if (is_same_key(p, s->labels[k].key, s->labels[i].key)) {
                put_raw(out, ",");
                put_label_value(out, p, &s->labels[k]);
            }
        put_raw(out, "\"");
    }
    put_raw(out, "}");
}

static void
put_sample(struct cpprof__ndjson *n, const struct pprof_profile *p,
           const struct pprof_sample *s, const char *source)
{
    struct pprof_info info = {.size = sizeof info};
    uint64_t hash = put_stack(n, p, s);
    struct cpprof__buffer *out = &n->out;

    pprof_get_info(p, &info);
    put_raw(out, "{\"kind\":\"sample\",\"hash\":");
    cpprof__buffer_number(out, "", hash, 10, 0);
    put_raw(out, ",\"time_ns\":");
    put_number(out, info.time_ns);
    put_raw(out, ",\"duration_ns\":");
    put_number(out, info.duration_ns);
    put_values(out, p, s, false);
    put_values(out, p, s, true);
    put_labels(n, p, s);
    put_raw(out, ",\"source\":");
    put_string(out, source);
    put_raw(out, "}\n");
}

/* ---- all -------------------------------------------------------------- */

static void
hand_over(struct cpprof__ndjson *n, size_t least)
{
    if (n->out.failed || n->failure || n->out.n <= least)
        return;
    n->failure = n->writer.write(n->writer.ctx, n->out.data, n->out.n);
    n->out.n = 0;
}

static enum cpprof_status
state_of(const struct cpprof__ndjson *n, struct cpprof_error *error)
{
    enum cpprof_status status = n->failure      ? CPPROF_SYSTEM
                                : n->out.failed ? CPPROF_NOMEM
                                                : CPPROF_OK;

    if (status != CPPROF_OK)
        *error = (struct cpprof_error){.status = status, .sys = n->failure};
    if (n->failure)
        snprintf(error->text, sizeof error->text, "writing: %s",
                 strerror(n->failure));
    else if (n->out.failed)
        snprintf(error->text, sizeof error->text, "out of memory");
    return status;
}

struct cpprof__ndjson *
cpprof__ndjson_make(const struct cpprof_writer *writer, const char *labels)
{
    struct cpprof__ndjson *n = calloc(1, sizeof *n);

    if (n) {
        n->writer = *writer;
        n->labels = labels;
    } else if (writer->close) {
        writer->close(writer->ctx, 1);
    }
    return n;
}

enum cpprof_status
cpprof__ndjson_add(struct cpprof__ndjson *n, const struct pprof_profile *p,
                   const char *source, struct cpprof_error *error)
{
    struct pprof_sample s = {.size = sizeof s};
    size_t i;

    for (i = 0; i < pprof_sample_count(p) && !n->out.failed && !n->failure;
         i++) {
        pprof_get_sample(p, i, &s);
        put_sample(n, p, &s, source);
        hand_over(n, WRITE_BYTES);
    }
    return state_of(n, error);
}

enum cpprof_status
cpprof__ndjson_end(struct cpprof__ndjson *n, bool failed,
                   struct cpprof_error *error)
{
    enum cpprof_status status;
    int failure = 0;

    if (!failed)
        hand_over(n, 0);
    status = state_of(n, error);
    if (n->writer.close)
        failure = n->writer.close(n->writer.ctx, failed || status != CPPROF_OK);
    if (status == CPPROF_OK && failure) {
        n->failure = failure;
        status = state_of(n, error);
    }
    cpprof__buffer_free(&n->out);
    free(n);
    return status;
}

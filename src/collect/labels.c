/* SPDX-License-Identifier: MIT */
#include "collect/labels.h"

#include "base/reader.h"
#include "collect/signal/thread.h"

#include <string.h>

/* Encoding of a label: 's' key 0 text 0, or 'n' key 0 unit 0 and 8 bytes. */
#define KIND_TEXT   's'
#define KIND_NUMBER 'n'

void
cpprof__labels_set_current(const struct cpprof__label_set *set)
{
    cpprof__self.labels = set;
}

static void
put_text(struct cpprof__buffer *out, const char *text)
{
    cpprof__buffer_append(out, text, strlen(text) + 1);
}

void
cpprof__labels_encode(struct cpprof__buffer *out,
                      const struct cpprof__label_set *set)
{
    size_t i;

    for (i = 0; i < set->n; i++) {
        const struct cpprof__builder_label *label = &set->labels[i];
        char kind = label->str ? KIND_TEXT : KIND_NUMBER;

        cpprof__buffer_append(out, &kind, 1);
        put_text(out, label->key);
        if (label->str) {
            put_text(out, label->str);
            continue;
        }
        put_text(out, label->num_unit ? label->num_unit : "");
        cpprof__buffer_append(out, &label->num, sizeof label->num);
    }
}

static const char *
get_text(struct cpprof__reader *r)
{
    const char *text = (const char *)r->next;
    const void *end = memchr(r->next, 0, cpprof__reader_left(r));

    if (!end) {
        r->bad = true;
        return "";
    }
    r->next = (const uint8_t *)end + 1;
    return text;
}

size_t
cpprof__labels_decode(const char *data, size_t n,
                      struct cpprof__builder_label *labels, size_t max)
{
    struct cpprof__reader r = cpprof__reader(data, n);
    size_t n_labels = 0;

    while (n_labels < max && cpprof__reader_left(&r)) {
        struct cpprof__builder_label *label = &labels[n_labels];
        uint8_t kind = cpprof__read_u8(&r);
        const char *value;

        memset(label, 0, sizeof *label);
        label->key = get_text(&r);
        value = get_text(&r);
        if (kind == KIND_TEXT) {
            label->str = value;
        } else {
            label->num_unit = *value ? value : NULL;
            label->num = (int64_t)cpprof__read_u64(&r);
        }
        if (r.bad)
            break;
        n_labels++;
    }
    return n_labels;
}

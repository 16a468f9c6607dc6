/* SPDX-License-Identifier: MIT */
/* Label sets to and from bytes. */
#include "collect/labels/labels.h"

#include "base/reader.h"

#include <stdlib.h>
#include <string.h>

#define KIND_TEXT   's'
#define KIND_NUMBER 'n'

static void
put_text(struct cpprof__buffer *out, const char *text)
{
    cpprof__buffer_append(out, text, strlen(text) + 1);
}

void
cpprof__labels_encode(struct cpprof__buffer *out,
                      const struct cpprof_label *label)
{
    char kind = label->str ? KIND_TEXT : KIND_NUMBER;

    cpprof__buffer_append(out, &kind, 1);
    put_text(out, label->key);
    if (label->str) {
        put_text(out, label->str);
        return;
    }
    put_text(out, label->unit ? label->unit : "");
    cpprof__buffer_append(out, &label->num, sizeof label->num);
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

void
cpprof__label_list_add(struct cpprof__label_list *list,
                       const struct cpprof__builder_label *label)
{
    if (list->n == list->max) {
        size_t max = list->max ? list->max * 2 : 16;
        struct cpprof__builder_label *at = realloc(list->at, max * sizeof *at);

        if (!at) {
            list->failed = true;
            return;
        }
        list->at = at;
        list->max = max;
    }
    list->at[list->n++] = *label;
}

void
cpprof__label_list_free(struct cpprof__label_list *list)
{
    free(list->at);
    free(list->bytes);
    memset(list, 0, sizeof *list);
}

void
cpprof__labels_decode(const char *data, size_t n,
                      struct cpprof__label_list *list)
{
    struct cpprof__reader r = cpprof__reader(data, n);

    while (cpprof__reader_left(&r)) {
        struct cpprof__builder_label label = {0};
        uint8_t kind = cpprof__read_u8(&r);
        const char *value;

        label.key = get_text(&r);
        value = get_text(&r);
        if (kind == KIND_TEXT) {
            label.str = value;
        } else {
            label.num_unit = *value ? value : NULL;
            label.num = (int64_t)cpprof__read_u64(&r);
        }
        if (r.bad)
            break;
        cpprof__label_list_add(list, &label);
    }
}

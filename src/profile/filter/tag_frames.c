/* SPDX-License-Identifier: MIT */
/*
 * Labels as frames: -tagroot and -tagleaf. Every sample gets one frame for each
 * key, also where it lacks the label (the frame then has no name); the first
 * key of a list is nearest to the root. The frames of a sample depend on its
 * label set alone.
 */
#include "base/buffer.h"
#include "base/status.h"
#include "own/memory.h"
#include "profile/filter/filter.h"
#include "profile/model/make.h"
#include "profile/model/unit.h"

#include <string.h>

struct tag_frames {
    struct pprof_profile *p;
    struct cpprof__maker maker; /* of the frames' functions and locations */
    const char *unit;
    CPPROF__ARRAY(uint32_t) keys[2]; /* root, leaf */
    bool matched[2];
    /* For each label set: the frames of its root keys, then of its leaf keys,
     * in stack order. */
    uint32_t *frames;
};

static enum cpprof_status
parse_keys(struct tag_frames *t, int which, const char *list,
           struct cpprof_error *error)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");
        uint32_t key = 0;

        if (n)
            key = cpprof__strings_add(&t->p->strings, list, n);
        if (key == CPPROF__NO_STRING || !CPPROF__ARRAY_ROOM(&t->keys[which], 1))
            return cpprof__fail_nomem(error);
        if (n)
            t->keys[which].at[t->keys[which].n++] = key;
        list += n + (list[n] == ',');
    }
    return CPPROF_OK;
}

/* unit  of the report; "" where no number of that key has a unit. */
static void
append_value(const struct tag_frames *t, const struct pprof_label *l,
             const char *unit, struct cpprof__buffer *text)
{
    const struct cpprof__strings *s = &t->p->strings;
    char number[CPPROF__LABEL_TEXT];

    if (text->n)
        cpprof__buffer_append(text, ",", 1);
    if (l->kind == PPROF_LABEL_TEXT) {
        cpprof__buffer_append(text, cpprof__strings_text(s, l->text),
                              cpprof__strings_n(s, l->text));
        return;
    }
    cpprof__scaled_label(number, l->num, cpprof__strings_text(s, l->unit),
                         unit);
    cpprof__buffer_append(text, number, strlen(number));
}

/* One number of a key with a unit is enough: the others are then padded. */
static bool
has_unit(const struct pprof_label *l, size_t n, uint32_t key)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (l[i].key == key && l[i].kind == PPROF_LABEL_NUMBER && l[i].unit)
            return true;
    return false;
}

/* The frame of one key for one label set: a location of one function, which is
 * called as the values of the key, in a "file" that is the key. */
static uint32_t
frame_of(struct tag_frames *t, uint32_t set, uint32_t key, bool *matched)
{
    struct cpprof__buffer text = {0};
    size_t n, i;
    const struct pprof_label *l = cpprof__label_set(&t->p->labels, set, &n);
    const char *unit = has_unit(l, n, key) ? t->unit : "";
    uint32_t name;

    for (i = 0; i < n; i++)
        if (l[i].key == key) {
            *matched = true;
            append_value(t, &l[i], unit, &text);
        }
    name =
        text.n ? cpprof__make_string(&t->maker, (char *)text.data, text.n) : 0;
    t->maker.failed |= text.failed;
    cpprof__buffer_free(&text);
    return cpprof__make_location(&t->maker, PPROF_NONE, 0,
                                 cpprof__make_function(&t->maker, name, 0, key),
                                 0);
}

/* All frames of one label set. */
static void
make_set_frames(struct tag_frames *t, uint32_t set, uint32_t *frame)
{
    int which;
    size_t i;

    for (which = 0; which < 2; which++)
        for (i = t->keys[which].n; i; i--)
            *frame++ =
                frame_of(t, set, t->keys[which].at[i - 1], &t->matched[which]);
}

/* Goes through the samples in their order, which becomes the order of the new
 * locations. `wanted` flags each label set that has no frames yet. */
static enum cpprof_status
make_frames(struct tag_frames *t, uint8_t *wanted, struct cpprof_error *error)
{
    size_t n = t->keys[0].n + t->keys[1].n, i;

    t->frames =
        cpprof__malloc((t->p->labels.sets.n + 1) * n * sizeof *t->frames);
    if (!t->frames)
        return cpprof__fail_nomem(error);
    for (i = 0; i < t->p->samples.n && !t->maker.failed; i++) {
        uint32_t set = t->p->samples.at[i].labels;

        if (wanted[set])
            make_set_frames(t, set, t->frames + set * n);
        wanted[set] = 0;
    }
    return t->maker.failed ? cpprof__fail_nomem(error) : CPPROF_OK;
}

/* Write all stacks again, with their tag frames. */
static enum cpprof_status
extend_samples(struct tag_frames *t, struct cpprof_error *error)
{
    size_t n_root = t->keys[0].n, n_leaf = t->keys[1].n, n_more, total = 0, i;
    struct pprof_profile *p = t->p;
    uint32_t *frames, *next;

    n_more = n_root + n_leaf;
    for (i = 0; i < p->samples.n; i++)
        total += p->samples.at[i].n_frames + n_more;
    frames = next = cpprof__malloc((total + 1) * sizeof *frames);
    if (!frames)
        return cpprof__fail_nomem(error);
    for (i = 0; i < p->samples.n; i++) {
        struct cpprof__sample *s = &p->samples.at[i];
        const uint32_t *more = t->frames + s->labels * n_more;

        memcpy(next, more + n_root, n_leaf * sizeof *next);
        if (s->n_frames)
            memcpy(next + n_leaf, p->frames.at + s->first_frame,
                   s->n_frames * sizeof *next);
        memcpy(next + n_leaf + s->n_frames, more, n_root * sizeof *next);
        s->first_frame = (size_t)(next - frames);
        s->n_frames += (uint32_t)n_more;
        next += s->n_frames;
    }
    CPPROF__ARRAY_FREE(&p->frames);
    p->frames.at = frames;
    p->frames.n = p->frames.capacity = total;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__add_tag_frames(struct pprof_profile *p, const char *root_keys,
                       const char *leaf_keys, const char *unit, bool matched[2],
                       struct cpprof_error *error)
{
    struct tag_frames t = {.p = p, .maker.p = p, .unit = unit};
    uint8_t *wanted = cpprof__used_label_sets(p);
    enum cpprof_status status = wanted ? CPPROF_OK : cpprof__fail_nomem(error);

    if (status == CPPROF_OK)
        status = parse_keys(&t, 0, root_keys, error);
    if (status == CPPROF_OK)
        status = parse_keys(&t, 1, leaf_keys, error);
    if (status == CPPROF_OK && t.keys[0].n + t.keys[1].n) {
        status = make_frames(&t, wanted, error);
        if (status == CPPROF_OK)
            status = extend_samples(&t, error);
    }
    matched[0] = t.matched[0];
    matched[1] = t.matched[1];
    cpprof__free(wanted);
    cpprof__free(t.frames);
    CPPROF__ARRAY_FREE(&t.keys[0]);
    CPPROF__ARRAY_FREE(&t.keys[1]);
    cpprof__maker_free(&t.maker);
    return status;
}

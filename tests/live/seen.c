/* SPDX-License-Identifier: MIT */
/* Questions about a decoded profile. */
#include "profile.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
always(const struct sample *s, const char *name)
{
    return true;
}

static bool
is_in(const struct sample *s, const char *name)
{
    size_t i;

    for (i = 0; i < s->n_frames; i++)
        if (frame_is(&s->frames[i], name))
            return true;
    return false;
}

static bool
is_leaf(const struct sample *s, const char *name)
{
    return frame_is(&s->frames[0], name);
}

static bool
is_root(const struct sample *s, const char *name)
{
    return frame_is(&s->frames[s->n_frames - 1], name);
}

static int64_t
sum_cpu(const struct profile *p,
        bool (*wanted)(const struct sample *, const char *), const char *what)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < p->n_samples; i++)
        if (wanted(&p->samples[i], what))
            sum += p->samples[i].cpu_ns;
    return sum;
}

int64_t
profile_cpu_ns(const struct profile *p)
{
    return sum_cpu(p, always, "");
}

int64_t
profile_count(const struct profile *p)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < p->n_samples; i++)
        sum += p->samples[i].count;
    return sum;
}

int64_t
profile_cpu_in(const struct profile *p, const char *name)
{
    return sum_cpu(p, is_in, name);
}

int64_t
profile_cpu_leaf(const struct profile *p, const char *name)
{
    return sum_cpu(p, is_leaf, name);
}

int64_t
profile_cpu_root(const struct profile *p, const char *name)
{
    return sum_cpu(p, is_root, name);
}

/* "f" means f, f(int), f.part.0, f@plt's target not. */
bool
frame_is(const struct frame *f, const char *name)
{
    size_t n = strlen(name);

    return strncmp(f->name, name, n) == 0 &&
           (f->name[n] == 0 || f->name[n] == '(' || f->name[n] == '.');
}

/* Does the pattern match from frame i on? */
static bool
matches_from(const struct sample *s, size_t i, const char *stack)
{
    size_t n = strcspn(stack, ";");
    char word[128];

    if (n >= sizeof word)
        bail("pattern too long: %s", stack);
    memcpy(word, stack, n);
    word[n] = 0;
    stack += n + (stack[n] == ';');
    if (strcmp(word, "...") == 0) {
        for (; i < s->n_frames; i++)
            if (matches_from(s, i, stack))
                return true;
        return false;
    }
    if (i >= s->n_frames || !frame_is(&s->frames[i], word))
        return false;
    return *stack == 0 || matches_from(s, i + 1, stack);
}

bool
stack_matches(const struct sample *s, const char *stack)
{
    size_t i;

    for (i = 0; i < s->n_frames; i++)
        if (matches_from(s, i, stack))
            return true;
    return false;
}

int64_t
profile_cpu_stack(const struct profile *p, const char *stack)
{
    return sum_cpu(p, stack_matches, stack);
}

int64_t
profile_cpu_labelled(const struct profile *p, const char *key, const char *text)
{
    int64_t sum = 0;
    size_t i, j;

    for (i = 0; i < p->n_samples; i++)
        for (j = 0; j < p->samples[i].n_labels; j++)
            if (strcmp(p->samples[i].labels[j].key, key) == 0 &&
                strcmp(p->samples[i].labels[j].text, text) == 0)
                sum += p->samples[i].cpu_ns;
    return sum;
}

const char *
profile_comment(const struct profile *p, const char *part)
{
    size_t i;

    for (i = 0; i < p->n_comments; i++)
        if (strstr(p->comments[i], part))
            return p->comments[i];
    return NULL;
}

static int
by_cpu(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    return (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

static void
note_sample(const struct profile *p, const struct sample *s)
{
    char line[2048];
    size_t at = 0;
    size_t i;

    for (i = 0; i < s->n_frames && at < sizeof line - 128; i++) {
        const struct frame *f = &s->frames[i];
        const char *file =
            f->mapping == NO_MAPPING ? "" : p->mappings[f->mapping].file;

        if (f->name[0])
            at += (size_t)snprintf(line + at, 100, "%.96s;", f->name);
        else
            at += (size_t)snprintf(line + at, 100, "%llx@%.64s;",
                                   (unsigned long long)f->address, file);
    }
    line[at] = 0;
    note("%8.1f ms  %s", (double)s->cpu_ns / 1e6, line);
}

void
profile_note_in(const struct profile *p, const char *name, size_t n)
{
    size_t i;

    qsort(p->samples, p->n_samples, sizeof *p->samples, by_cpu);
    for (i = 0; i < p->n_samples && n; i++) {
        if (name[0] && !is_in(&p->samples[i], name))
            continue;
        note_sample(p, &p->samples[i]);
        n--;
    }
}

void
profile_note(const struct profile *p, size_t n)
{
    size_t i;

    note("%zu stacks, %.1f ms", p->n_samples, (double)profile_cpu_ns(p) / 1e6);
    for (i = 0; i < p->n_comments; i++)
        note("comment: %s", p->comments[i]);
    profile_note_in(p, "", n);
}

/* SPDX-License-Identifier: MIT */
/*
 * The dump of all threads as text, in the shape of Go's (goroutine, debug=2),
 * which tools that read those accept:
 *
 *     goroutine TID [STATE, N minutes, ...]:
 *     function(...)
 *     <tab>file:line +0xoffset
 *     created by function
 *     <tab>file:line +0xoffset
 *
 * The number is the tid. What Go does not print (name, wait channel, labels,
 * what the thread waits for) is inside the brackets, where such tools skip it.
 * Readers are strict about the first line of a thread and about the lines of a
 * frame, so text of the program is made plain: nothing in it can end the
 * brackets, the parentheses or the line.
 *
 * Source: Go runtime/traceback.go (goroutineheader, traceback1).
 */
#include "collect/dump/dump.h"

#include "base/status.h"
#include "collect/encode/source.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/waits/waits.h"
#include "object/frame_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
    const struct cpprof__dump *dump;
    struct cpprof__source_profile *profile;
    struct cpprof__text_profile *text; /* the profile's */
    uint64_t now_ns;
};

/* Write text without the characters that could end the brackets or the line. */
static void
put_plain(struct cpprof__text_profile *text, const char *plain, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        char c = plain[i];

        if ((unsigned char)c < ' ' || c == ']')
            c = '?';
        cpprof__buffer_append(&text->out, &c, 1);
    }
}

/* ---- the line in front ------------------------------------------------ */

static const char *
state_of(const struct work *w, const struct cpprof__dump_thread *t)
{
    if (t->tid == w->dump->caller)
        return "running";
    switch (t->task.state) {
    case 'R':
        return "running";
    case 'D':
        return "uninterruptible";
    case 'T':
        return "stopped";
    case 't':
        return "traced";
    default:
        return "sleeping";
    }
}

static uint64_t
waited_ns(const struct work *w, const struct cpprof__dump_thread *t)
{
    if (t->wait.kind && w->now_ns > t->wait.since_ns)
        return w->now_ns - t->wait.since_ns;
    return t->idle_ns;
}

static void
put_labels(struct work *w, uint32_t labels)
{
    struct cpprof__label_list *list = &w->profile->labels;
    struct cpprof__buffer text = {0};

    if (!labels)
        return;
    list->n = 0;
    cpprof__record_labels(&cpprof__tables, labels, list);
    cpprof__labels_print(&text, list->at, list->n);
    if (text.failed || list->failed)
        cpprof__fail_nomem(&w->text->error);
    cpprof__text_printf(w->text, ", labels ");
    put_plain(w->text, (const char *)text.data, text.n);
    cpprof__buffer_free(&text);
}

static void
put_header(struct work *w, const struct cpprof__dump_thread *t)
{
    struct cpprof__text_profile *text = w->text;
    uint64_t waited = waited_ns(w, t);

    cpprof__text_printf(text, "goroutine %d [%s", t->tid, state_of(w, t));
    if (waited >= 60 * UINT64_C(1000000000))
        cpprof__text_printf(text, ", %" PRIu64 " minutes",
                            waited / (60 * UINT64_C(1000000000)));
    if (waited)
        cpprof__text_printf(text, ", for %.3f s", (double)waited / 1e9);
    if (t->wait.kind)
        cpprof__text_printf(text, ", waits for %s",
                            cpprof__wait_kind_name(t->wait.kind));
    if (t->how == CPPROF__DUMP_SILENT)
        cpprof__text_printf(text, ", no answer");
    else if (t->how == CPPROF__DUMP_UNREADABLE)
        cpprof__text_printf(text, ", not readable");
    cpprof__text_printf(text, ", name \"");
    put_plain(text, t->task.comm, strlen(t->task.comm));
    cpprof__text_printf(text, "\"");
    if (*t->wchan) {
        cpprof__text_printf(text, ", wchan ");
        put_plain(text, t->wchan, strlen(t->wchan));
    }
    put_labels(w, t->labels);
    cpprof__text_printf(text, "]:\n");
}

/* ---- frames ----------------------------------------------------------- */

static void
put_own_frame(struct cpprof__text_profile *text, uint64_t pc)
{
    const char *name = cpprof__own_frame_name(pc);

    if (pc == CPPROF__FRAME_TRUNCATED) {
        cpprof__text_printf(text, "...additional frames elided...\n");
    } else if (pc == CPPROF__FRAME_SILENT || pc == CPPROF__FRAME_UNREADABLE) {
        cpprof__text_printf(
            text, "\tgoroutine running on other thread; stack unavailable\n");
    } else {
        const struct cpprof__frame own = {.name = name};

        cpprof__frame_print(&text->out, &own, 0);
    }
}

static void
put_frame(struct cpprof__text_profile *text,
          const struct cpprof__builder_frame *frame)
{
    size_t i, n;

    if (frame->pc < CPPROF__FRAME_END) {
        put_own_frame(text, frame->pc);
        return;
    }
    n = cpprof__text_resolve(text, frame);
    for (i = 0; i < n; i++)
        cpprof__frame_print(&text->out, &text->frames[i], frame->pc);
    if (!n)
        cpprof__frame_print_nameless(&text->out, frame->pc);
}

static size_t
frames_of(struct cpprof__source_profile *p, uint32_t stack)
{
    return cpprof__source_stack(&p->source, stack, p->text.mappings,
                                p->text.n_mappings, p->stack,
                                CPPROF__SOURCE_DEPTH);
}

void
cpprof__dump_put_stack(struct cpprof__source_profile *p, uint32_t stack)
{
    size_t i, n = frames_of(p, stack);

    for (i = 0; i < n; i++)
        put_frame(&p->text, &p->stack[i]);
}

/* The function that made the call: the last one of those at its address. */
static void
put_creator(struct work *w, const struct cpprof__dump_thread *t)
{
    const struct cpprof__creation_info *creation =
        cpprof__creation_of(w->dump->creations, w->dump->n_creations, t->tid);
    size_t n = creation ? frames_of(w->profile, creation->stack) : 0;

    if (!n || w->profile->stack[0].pc < CPPROF__FRAME_END)
        return;
    n = cpprof__text_resolve(w->text, &w->profile->stack[0]);
    cpprof__frame_print_creator(&w->text->out, n ? &w->text->frames[0] : NULL,
                                w->profile->stack[0].pc);
}

static void
put_thread(struct work *w, const struct cpprof__dump_thread *t)
{
    put_header(w, t);
    cpprof__dump_put_stack(w->profile, t->stack);
    put_creator(w, t);
    cpprof__text_printf(w->text, "\n");
}

static void
put_all(struct work *w)
{
    const struct cpprof__dump *dump = w->dump;
    int of_caller;
    size_t i;

    for (of_caller = 1; of_caller >= 0; of_caller--)
        for (i = 0; i < dump->n && w->text->error.status == CPPROF_OK; i++)
            if ((dump->threads[i].tid == dump->caller) == of_caller)
                put_thread(w, &dump->threads[i]);
}

enum cpprof_status
cpprof__dump_write_text(const struct cpprof__dump *dump,
                        enum cpprof_symbolize symbolize,
                        struct cpprof_writer writer, struct cpprof_error *error)
{
    struct work w = {.dump = dump, .now_ns = cpprof__clock_ns(CLOCK_MONOTONIC)};
    enum cpprof_status status;

    w.profile = cpprof__source_profile_make(NULL, symbolize, &writer, error);
    if (!w.profile)
        return CPPROF_NOMEM;
    w.text = &w.profile->text;
    cpprof__source_begin_text(w.profile, writer);
    put_all(&w);
    status = cpprof__text_end(w.text, error);
    cpprof__source_profile_free(w.profile);
    return status;
}

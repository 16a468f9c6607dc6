/* SPDX-License-Identifier: MIT */
/*
 * What all reports of a gate say in the same words, and the text for people:
 * the verdict, what was compared, then a line for each function. First comes
 * whose growth it is, then who calls them, then the rest.
 */
#include "cli/gate/gate.h"

#include "profile/model/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows that the text shows besides failures. */
#define MOST_ROWS 10

const char *
cpprof__gate_word(int verdict)
{
    static const char *const words[] = {"pass", "fail", "inconclusive"};

    return words[verdict];
}

const char *
cpprof__gate_name(const struct cpprof__gate_model *m,
                  const struct cpprof__gate_row *row)
{
    return row->key == CPPROF__GATE_NONE ? "the whole"
                                         : m->keys.at[row->key].name;
}

void
cpprof__gate_percent(double part, char *out, size_t size)
{
    if (isinf(part))
        snprintf(out, size, "%s", part > 0 ? "new" : "-");
    else
        snprintf(out, size, "%+.*f%%", fabs(part) < 0.0995 ? 2 : 1, part * 100);
}

void
cpprof__gate_amount(const struct cpprof__gate_model *m, double value, char *out,
                    size_t size)
{
    const char *per = m->flags->per;
    char text[CPPROF__LABEL_TEXT];

    if (per && strcmp(per, "total") == 0) {
        snprintf(out, size, "%.2f%%", value * 100);
        return;
    }
    /* Of seconds or requests there may be many for a nanosecond; and a sum may
     * be more than a number of a profile can. */
    if ((fabs(value) < 100 && value != 0) || fabs(value) >= 0x1p63)
        snprintf(text, sizeof text, "%.3g%s", value,
                 strcmp(m->unit, "nanoseconds") == 0 ? "ns"
                 : strcmp(m->unit, "count") == 0     ? ""
                                                     : m->unit);
    else
        cpprof__scaled_label(text, cpprof__round(value), m->unit, "auto");
    snprintf(out, size, "%s", text);
}

/* A side with more runs waits until the other has as many. */
static void
print_further(const struct cpprof__gate_model *m, double n,
              struct cpprof__buffer *out)
{
    double least = (double)(m->n_base < m->n_head ? m->n_base : m->n_head);
    double base = least + n - (double)m->n_base;
    double head = least + n - (double)m->n_head;

    if (n > CPPROF__GATE_MOST_RUNS)
        cpprof__buffer_printf(out, "no number of runs would decide");
    else if (m->n_base == m->n_head)
        cpprof__buffer_printf(out,
                              "about %.0f more run%s of each side would decide",
                              n, n > 1 ? "s" : "");
    else if (base <= 0 || head <= 0)
        cpprof__buffer_printf(out, "about %.0f more run%s of %s would decide",
                              n, n > 1 ? "s" : "", base > 0 ? "base" : "head");
    else
        cpprof__buffer_printf(
            out, "about %.0f more runs of base and %.0f of head would decide",
            base, head);
}

void
cpprof__gate_reason(const struct cpprof__gate_model *m,
                    const struct cpprof__gate_row *row,
                    struct cpprof__buffer *out)
{
    char growth[32], low[32], high[32];

    cpprof__gate_percent(row->growth, growth, sizeof growth);
    cpprof__gate_percent(row->low, low, sizeof low);
    cpprof__gate_percent(row->high, high, sizeof high);
    if (row->base <= 0)
        cpprof__buffer_printf(
            out, "%s %s, %.2f%% of the whole", cpprof__gate_name(m, row),
            /* A flat function may have been there, and called others. */
            row->key != CPPROF__GATE_NONE && m->keys.at[row->key].base > 0
                ? "spends time by itself now"
                : "is new",
            row->share * 100);
    else if (isinf(row->high))
        cpprof__buffer_printf(out,
                              "%s: %s, and one run of %s says nothing of the "
                              "noise",
                              cpprof__gate_name(m, row), growth,
                              m->n_base > 1   ? "head"
                              : m->n_head > 1 ? "base"
                                              : "each side");
    else
        cpprof__buffer_printf(out, "%s: %s, surely between %s and %s",
                              cpprof__gate_name(m, row), growth, low, high);
    if (row->verdict == CPPROF__GATE_INCONCLUSIVE) {
        cpprof__buffer_printf(out, "; ");
        print_further(m, row->n_further, out);
    }
}

const char *
cpprof__gate_by_word(const struct cpprof__gate_model *m)
{
    /* ORDER: enum cpprof__gate_by */
    static const char *const words[] = {"function", "label", "package"};

    return words[m->flags->by];
}

void
cpprof__gate_setting(const struct cpprof__gate_model *m,
                     const struct cpprof__gate_result *r,
                     struct cpprof__buffer *out)
{
    const char *per = m->flags->per;

    cpprof__buffer_printf(out, "%zu run%s of base, %zu of head; %s %s ",
                          m->n_base, m->n_base == 1 ? "" : "s", m->n_head,
                          m->flags->flat ? "flat" : "cumulative", m->type);
    if (!per)
        cpprof__buffer_printf(out, "per run");
    else if (strcmp(per, "seconds") == 0)
        cpprof__buffer_printf(out, "per second");
    else
        cpprof__buffer_printf(out, "divided by %s", per);
    cpprof__buffer_printf(out, "; %zu %s%s of %.3g%% of the whole; %.4g%% sure",
                          r->n_tested, cpprof__gate_by_word(m),
                          r->n_tested == 1 ? "" : "s", m->flags->smallest * 100,
                          (1 - m->flags->alpha) * 100);
    if (r->is_relative)
        cpprof__buffer_printf(out, "; functions beside what did not change");
}

/* The row that tells most of the verdict; NULL: none. */
static const struct cpprof__gate_row *
main_row(const struct cpprof__gate_result *r)
{
    const struct cpprof__gate_row *found = NULL;
    size_t i;

    for (i = 0; i < r->rows.n; i++) {
        const struct cpprof__gate_row *row = &r->rows.at[i];

        if (row->verdict != r->verdict || r->verdict == CPPROF__GATE_PASS)
            continue;
        if (r->verdict == CPPROF__GATE_INCONCLUSIVE &&
            (!row->must_be_sure ||
             (found && row->n_further <= found->n_further)))
            continue;
        if (r->verdict == CPPROF__GATE_INCONCLUSIVE) {
            found = row;
        } else if (row->because == CPPROF__GATE_NONE &&
                   (!found || found->key == CPPROF__GATE_NONE)) {
            found = row;
        }
    }
    return found;
}

void
cpprof__gate_summary(const struct cpprof__gate_model *m,
                     const struct cpprof__gate_result *r,
                     struct cpprof__buffer *out)
{
    const struct cpprof__gate_row *row = main_row(r);

    if (row) {
        cpprof__gate_reason(m, row, out);
        return;
    }
    cpprof__buffer_printf(
        out, "%s that has %.3g%% of it can have grown by %.3g%%",
        r->has_whole ? "neither the whole nor a function" : "no function",
        r->least_sure * 100, m->flags->fail_over * 100);
}

/* --------------------------------------------------------------- text ---- */

static void
print_row(const struct cpprof__gate_model *m,
          const struct cpprof__gate_row *row, struct cpprof__buffer *out)
{
    char base[64], head[64], growth[32], low[32] = "?", high[32] = "?";
    char whole[32];

    cpprof__gate_amount(m, row->base, base, sizeof base);
    cpprof__gate_amount(m, row->head, head, sizeof head);
    cpprof__gate_percent(row->growth, growth, sizeof growth);
    cpprof__gate_percent(row->of_whole, whole, sizeof whole);
    if (!isinf(row->high) || row->base <= 0) {
        cpprof__gate_percent(row->low, low, sizeof low);
        cpprof__gate_percent(row->high, high, sizeof high);
    }
    cpprof__buffer_printf(out, "%10s %10s %9s %9s %9s %9s  %-12s  %.*s", base,
                          head, growth, low, high, whole,
                          cpprof__gate_word(row->verdict), CPPROF__GATE_SHOWN,
                          cpprof__gate_name(m, row));
    if (row->key != CPPROF__GATE_NONE && m->keys.at[row->key].renamed)
        cpprof__buffer_printf(out, " (now %s)", m->keys.at[row->key].renamed);
    cpprof__buffer_printf(out, "\n");
}

/* Behind a failure: where it grew, or for whose sake. */
static void
print_blame(const struct cpprof__gate_model *m,
            const struct cpprof__gate_result *r,
            const struct cpprof__gate_row *row, struct cpprof__buffer *out)
{
    struct cpprof__buffer path = {0};

    if (row->verdict != CPPROF__GATE_FAIL)
        return;
    if (row->because != CPPROF__GATE_NONE) {
        cpprof__buffer_printf(out, "%63s because of %s\n", "",
                              cpprof__gate_name(m, &r->rows.at[row->because]));
        return;
    }
    cpprof__gate_path(m, row, CPPROF__GATE_SHOWN, &path);
    if (path.n)
        cpprof__buffer_printf(out, "%63s %.*s\n", "", (int)path.n,
                              (const char *)path.data);
    cpprof__buffer_free(&path);
}

static void
print_rows(const struct cpprof__gate_model *m,
           const struct cpprof__gate_result *r, struct cpprof__buffer *out)
{
    size_t i, n = 0, n_left = 0;
    int pass;

    /* Whose growth it is, then who calls them, then the rest. */
    for (pass = 0; pass < 3; pass++)
        for (i = 0; i < r->rows.n; i++) {
            const struct cpprof__gate_row *row = &r->rows.at[i];
            bool fails = row->verdict == CPPROF__GATE_FAIL;
            bool is_first = row->key == CPPROF__GATE_NONE ||
                            (fails && row->because == CPPROF__GATE_NONE);

            if (pass != (is_first ? 0 : fails ? 1 : 2))
                continue;
            if (pass == 2 && n++ >= MOST_ROWS) {
                n_left++;
                continue;
            }
            print_row(m, row, out);
            print_blame(m, r, row, out);
        }
    if (n_left)
        cpprof__buffer_printf(out, "%63s and %zu more that do not fail\n", "",
                              n_left);
}

void
cpprof__gate_text(const struct cpprof__gate_model *m,
                  const struct cpprof__gate_result *r,
                  struct cpprof__buffer *out)
{
    size_t i;

    cpprof__buffer_printf(out, "%s: ", cpprof__gate_word(r->verdict));
    cpprof__gate_summary(m, r, out);
    cpprof__buffer_printf(out, "\n");
    cpprof__gate_setting(m, r, out);
    cpprof__buffer_printf(out, "\n");
    for (i = 0; i < r->notes.n; i++)
        cpprof__buffer_printf(out, "note: %s\n", r->notes.at[i]);
    cpprof__buffer_printf(out, "\n%10s %10s %9s %9s %9s %9s  %-12s  %s\n",
                          "base", "head", "growth", "from", "to", "of whole",
                          "verdict", cpprof__gate_by_word(m));
    print_rows(m, r, out);
}

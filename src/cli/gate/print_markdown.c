/* SPDX-License-Identifier: MIT */
/*
 * The report as a comment on a pull request, in GitHub's Markdown: the verdict,
 * a table, the paths on which functions grew. Names of a profile are code, so
 * that nothing in them is taken for Markdown.
 */
#include "cli/gate/gate.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Rows of the table; the rest is in the other reports. */
#define MOST_ROWS 15

/* A name as code: nothing in it means anything to Markdown but backticks, of
 * which the fence has one more than any row, and in a table the bar: only there
 * a backslash is no part of the code. One that is, before a bar, is doubled, as
 * two of them would leave the bar alone. */
static void
code(struct cpprof__buffer *out, const char *text, size_t n, bool is_in_table)
{
    size_t longest = 0, run = 0, n_backslashes = 0, i;

    for (i = 0; i < n; i++) {
        run = text[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (i = 0; i <= longest; i++)
        cpprof__buffer_append(out, "`", 1);
    if (longest)
        cpprof__buffer_append(out, " ", 1);
    for (i = 0; i < n; i++) {
        if (is_in_table && text[i] == '|')
            cpprof__buffer_printf(out, "%s\\|", n_backslashes % 2 ? "\\" : "");
        else
            cpprof__buffer_append(
                out, (unsigned char)text[i] < ' ' ? " " : &text[i], 1);
        n_backslashes = text[i] == '\\' ? n_backslashes + 1 : 0;
    }
    if (longest)
        cpprof__buffer_append(out, " ", 1);
    for (i = 0; i <= longest; i++)
        cpprof__buffer_append(out, "`", 1);
}

/* A number with its unit; the unit is a profile's. */
static void
amount(const struct cpprof__gate_model *m, double value,
       struct cpprof__buffer *out)
{
    char text[64];
    size_t i = 0;

    cpprof__gate_amount(m, value, text, sizeof text);
    while (isalnum((unsigned char)text[i]) ||
           (text[i] && strchr(".%+-", text[i])))
        i++;
    cpprof__buffer_printf(out, " | ");
    if (text[i])
        code(out, text, strlen(text), true);
    else
        cpprof__buffer_printf(out, "%s", text);
}

static void
print_row(const struct cpprof__gate_model *m,
          const struct cpprof__gate_row *row, struct cpprof__buffer *out)
{
    char growth[32], low[32] = "?", high[32] = "?";
    const char *name = cpprof__gate_name(m, row);
    const char *word = cpprof__gate_word(row->verdict);

    cpprof__gate_percent(row->growth, growth, sizeof growth);
    if (!isinf(row->high) || row->base <= 0) {
        cpprof__gate_percent(row->low, low, sizeof low);
        cpprof__gate_percent(row->high, high, sizeof high);
    }
    cpprof__buffer_printf(out, "| ");
    if (row->key == CPPROF__GATE_NONE)
        cpprof__buffer_printf(out, "**the whole**");
    else
        code(out, name, strlen(name), true);
    if (row->key != CPPROF__GATE_NONE && m->keys.at[row->key].renamed) {
        cpprof__buffer_printf(out, ", now ");
        code(out, m->keys.at[row->key].renamed,
             strlen(m->keys.at[row->key].renamed), true);
    }
    amount(m, row->base, out);
    amount(m, row->head, out);
    cpprof__buffer_printf(out, " | %s | %s to %s | %s%s%s |\n", growth, low,
                          high, row->verdict == CPPROF__GATE_FAIL ? "**" : "",
                          word, row->verdict == CPPROF__GATE_FAIL ? "**" : "");
}

/* Where the growth is, for each function that fails by itself. */
static void
print_paths(const struct cpprof__gate_model *m,
            const struct cpprof__gate_result *r, struct cpprof__buffer *out)
{
    size_t i;
    bool is_first = true;

    for (i = 0; i < r->rows.n && i < MOST_ROWS; i++) {
        const struct cpprof__gate_row *row = &r->rows.at[i];
        struct cpprof__buffer path = {0};

        if (row->verdict != CPPROF__GATE_FAIL ||
            row->because != CPPROF__GATE_NONE ||
            (i && row->node == r->rows.at[0].node))
            continue;
        cpprof__gate_path(m, row, CPPROF__GATE_SHOWN, &path);
        if (path.n) {
            cpprof__buffer_printf(out, "%s- ",
                                  is_first ? "\nGrew on these paths:\n\n" : "");
            code(out, (const char *)path.data, path.n, false);
            cpprof__buffer_printf(out, "\n");
            is_first = false;
        }
        cpprof__buffer_free(&path);
    }
}

void
cpprof__gate_markdown(const struct cpprof__gate_model *m,
                      const struct cpprof__gate_result *r,
                      struct cpprof__buffer *out)
{
    static const char *const signs[] = {
        ":white_check_mark:", ":x:", ":grey_question:"};
    struct cpprof__buffer text = {0};
    size_t i;

    cpprof__buffer_printf(out, "### %s cpprof gate: %s\n\n", signs[r->verdict],
                          cpprof__gate_word(r->verdict));
    cpprof__gate_summary(m, r, &text);
    code(out, (const char *)text.data, text.n, false);
    cpprof__buffer_printf(out,
                          "\n\n| %s | base | head | growth | surely "
                          "between | verdict |\n|---|--:|--:|--:|:-:|---|\n",
                          cpprof__gate_by_word(m));
    for (i = 0; i < r->rows.n && i < MOST_ROWS; i++)
        print_row(m, &r->rows.at[i], out);
    print_paths(m, r, out);
    text.n = 0;
    cpprof__gate_setting(m, r, &text);
    cpprof__buffer_printf(out, "\n<sub>");
    code(out, (const char *)text.data, text.n, false);
    cpprof__buffer_printf(out, "</sub>\n");
    if (r->notes.n)
        cpprof__buffer_printf(out, "\n");
    for (i = 0; i < r->notes.n; i++) {
        cpprof__buffer_printf(out, "- ");
        code(out, r->notes.at[i], strlen(r->notes.at[i]), false);
        cpprof__buffer_printf(out, "\n");
    }
    cpprof__buffer_free(&text);
}

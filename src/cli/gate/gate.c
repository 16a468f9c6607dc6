/* SPDX-License-Identifier: MIT */
/*
 * The command: read, match, judge, print. What people should know besides the
 * verdicts (runs that are far from others, durations that differ, functions
 * that only one side has) is told in notes.
 */
#include "cli/gate/gate.h"

#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "cli/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A run whose total is that far from the median of its side, as a part of it,
 * and that many times as far as is usual, is told. */
#define FAR_PART  0.2
#define FAR_TIMES 6.0
/* Sides whose profiles last differently by that part are told. */
#define DURATION_PART 0.1
/* Functions that are new or gone: so many are told. */
#define MOST_TOLD 5

/* -------------------------------------------------------------- notes ---- */

static int
by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The median of n numbers, which are sorted by it. */
static double
median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_number);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void
note_far_runs(const struct cpprof__gate_model *m, size_t first, size_t n,
              struct cpprof__gate_result *r)
{
    double *x = calloc(n + 1, sizeof *x), middle, usual;
    size_t i;

    if (!x || n < 4) {
        free(x);
        return;
    }
    for (i = 0; i < n; i++)
        x[i] = m->runs.at[first + i].total / m->runs.at[first + i].work;
    middle = median(x, n);
    for (i = 0; i < n; i++)
        x[i] = fabs(m->runs.at[first + i].total / m->runs.at[first + i].work -
                    middle);
    usual = median(x, n);
    for (i = 0; i < n; i++) {
        const struct cpprof__gate_run *run = &m->runs.at[first + i];
        double by = run->total / run->work - middle;

        if (middle > 0 && fabs(by) > FAR_PART * middle &&
            fabs(by) > FAR_TIMES * usual)
            cpprof__gate_note(r,
                              "%s is far from the other runs of %s: %.2f times "
                              "their median",
                              run->name, run->is_head ? "head" : "base",
                              run->total / run->work / middle);
    }
    free(x);
}

static void
note_durations(const struct cpprof__gate_model *m,
               struct cpprof__gate_result *r)
{
    double all[2] = {0, 0};
    size_t i;

    if (m->flags->per)
        return;
    for (i = 0; i < m->runs.n; i++) {
        if (!m->runs.at[i].duration_ns)
            return;
        all[m->runs.at[i].is_head] += (double)m->runs.at[i].duration_ns / 1e9;
    }
    all[0] /= (double)m->n_base;
    all[1] /= (double)m->n_head;
    if (fabs(all[1] - all[0]) > DURATION_PART * all[0])
        cpprof__gate_note(r,
                          "runs of base last %.3g s, those of head %.3g s; "
                          "if they are no runs of the same work, say "
                          "-per=seconds",
                          all[0], all[1]);
}

/* What a function that one side has is in that side: cumulative, of a run. */
static double
size_of(const struct cpprof__gate_key *k)
{
    return k->base > k->head ? k->base : k->head;
}

static int
by_size(const void *a, const void *b)
{
    const struct cpprof__gate_key *x = *(void *const *)a;
    const struct cpprof__gate_key *y = *(void *const *)b;

    if (size_of(x) != size_of(y))
        return size_of(x) < size_of(y) ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* The largest ones, and of those only what would be judged: a function of few
 * samples is in one side by chance. */
static void
note_matches(const struct cpprof__gate_model *m, struct cpprof__gate_result *r)
{
    const struct cpprof__gate_key **keys = calloc(m->keys.n + 1, sizeof *keys);
    size_t n = 0, n_told = 0, i;
    double whole = 0;

    for (i = 0; i < m->runs.n; i++)
        whole += m->runs.at[i].total / m->runs.at[i].work / (double)m->runs.n;
    for (i = 0; keys && i < m->keys.n; i++)
        if (m->keys.at[i].is_folded || m->keys.at[i].renamed)
            keys[n++] = &m->keys.at[i];
    if (n)
        qsort(keys, n, sizeof *keys, by_size);
    for (; n_told < n && n_told < MOST_TOLD; n_told++) {
        const struct cpprof__gate_key *k = keys[n_told];

        if (size_of(k) < m->flags->smallest * whole)
            break;
        if (k->is_folded)
            cpprof__gate_note(r, "%s is %s and counts as a part of its callers",
                              k->name, k->head > 0 ? "new" : "gone");
        else
            cpprof__gate_note(r, "%s is %s now, by its callers and callees",
                              k->name, k->renamed);
    }
    if (n_told && n > n_told)
        cpprof__gate_note(r, "and %zu more function%s that one side has",
                          n - n_told, n - n_told == 1 ? "" : "s");
    free(keys);
}

/* ------------------------------------------------------------- output ---- */

typedef void
print_function(const struct cpprof__gate_model *model,
               const struct cpprof__gate_result *result,
               struct cpprof__buffer *out);

static bool
write_buffer(struct cpprof__buffer *out, const char *path)
{
    bool to_stdout = !path || strcmp(path, "-") == 0;
    struct cpprof_error error = {0};
    struct cpprof_writer writer;
    int failed;

    if (out->failed) {
        cpprof__cli_fail("gate: out of memory");
        return false;
    }
    if (to_stdout) {
        cpprof_writer_to_fd(STDOUT_FILENO, &writer);
        writer = cpprof__clean_writer(writer, STDOUT_FILENO);
    } else if (cpprof__output_file(path, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("gate: %s", error.text);
        return false;
    }
    failed = writer.write(writer.ctx, out->data, out->n);
    if (writer.close) {
        int closed = writer.close(writer.ctx, failed);

        failed = failed ? failed : closed;
    }
    if (failed)
        cpprof__cli_fail("gate: writing %s: %s",
                         to_stdout ? "standard output" : path,
                         strerror(failed));
    return !failed;
}

static bool
print_all(struct cpprof__gate_model *m, const struct cpprof__gate_result *r)
{
    const struct cpprof__gate_flags *w = m->flags;
    const struct {
        const char *path;
        print_function *print;
    } reports[] = {{w->json, cpprof__gate_json},
                   {w->junit, cpprof__gate_junit},
                   {w->markdown, cpprof__gate_markdown}};
    bool wants_text = !w->flamegraph || strcmp(w->flamegraph, "-") != 0;
    bool ok = true;
    size_t i;

    for (i = 0; i < sizeof reports / sizeof *reports && ok; i++) {
        struct cpprof__buffer out = {0};

        if (!reports[i].path)
            continue;
        wants_text = wants_text && strcmp(reports[i].path, "-") != 0;
        reports[i].print(m, r, &out);
        ok = write_buffer(&out, reports[i].path);
        cpprof__buffer_free(&out);
    }
    if (ok && wants_text) {
        struct cpprof__buffer out = {0};

        cpprof__gate_text(m, r, &out);
        ok = write_buffer(&out, NULL);
        cpprof__buffer_free(&out);
    }
    return ok && (!w->flamegraph || cpprof__gate_flame(m, w->flamegraph));
}

/* ---------------------------------------------------------------- all ---- */

/* The verdict, or the status of an error. */
static int
judge(struct cpprof__gate_model *m)
{
    struct cpprof__gate_values values = {0};
    struct cpprof__gate_result result = {0};
    struct cpprof_error error = {0};
    enum cpprof_status status = cpprof__gate_match(m, &error);
    int verdict = CPPROF__EXIT_ERROR;

    if (status == CPPROF_OK)
        status = cpprof__gate_count(m, &values, &error);
    if (status == CPPROF_OK)
        status = cpprof__gate_judge(m, &values, &result, &error);
    if (status == CPPROF_OK && result.rows.n == 0) {
        cpprof__cli_fail("gate: nothing to compare: nothing that -by and -of "
                         "name is as large as -smallest");
    } else if (status == CPPROF_OK) {
        cpprof__gate_blame(m, &result);
        note_durations(m, &result);
        note_far_runs(m, 0, m->n_base, &result);
        note_far_runs(m, m->n_base, m->n_head, &result);
        note_matches(m, &result);
        cpprof__progress_end();
        if (print_all(m, &result))
            verdict = result.verdict;
    } else {
        cpprof__cli_fail("gate: %s", error.text);
    }
    cpprof__gate_values_free(&values);
    cpprof__gate_result_free(&result);
    return verdict;
}

static void
print_help(void)
{
    puts("usage: cpprof gate [flags] BASE... -- HEAD...\n"
         "       cpprof gate [flags] -record=N -base=CMD -head=CMD\n"
         "       cpprof gate [flags] -against=FOLDER HEAD...\n"
         "\n"
         "Has a program become slower? BASE and HEAD are profiles of several "
         "runs of\n"
         "each version, or folders of them. The exit status is 0: it did not, "
         "1: it\n"
         "did, 2: more runs are needed, or something is wrong.\n");
    cpprof__print_flags(cpprof__gate_flag_table, true);
}

int
cpprof__cli_gate(int argc, char **argv)
{
    struct cpprof__gate_flags flags;
    struct cpprof__gate_model model = {.flags = &flags};
    int status = CPPROF__EXIT_ERROR;
    bool ok = cpprof__gate_parse(argc, argv, &flags);

    if (ok && flags.help) {
        print_help();
        status = CPPROF__EXIT_OK;
    } else if (ok && (!flags.n_record || cpprof__gate_record(&flags)) &&
               (!flags.against || cpprof__gate_against(&flags)) &&
               cpprof__gate_read(&model)) {
        status = judge(&model);
    }
    cpprof__progress_end();
    cpprof__gate_folder_remove();
    cpprof__gate_against_free();
    cpprof__gate_model_free(&model);
    cpprof__gate_flags_free(&flags);
    return status;
}

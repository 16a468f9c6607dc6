/* SPDX-License-Identifier: MIT */
/*
 * `cpprof pgo`: from profiles of production to what a compiler takes, so that
 * the next build is faster; and whether profiles are good enough for it.
 */
#include "cli/pgo/pgo.h"

#include "base/status.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "cli/report/report.h"
#include "cli/terminal.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct words {
    const char *target, *output; /* NULL: not given */
    struct cpprof__flag_list binaries;
    bool check;
    char **sources;
    int n_sources;
};

#define FLAG(of, word, member, value, can_be, help)                            \
    CPPROF__FLAG(of, word, struct words, member, value, can_be, help)

const struct cpprof__flag cpprof__pgo_flag_table[] = {
    FLAG(STRING, "for", target, "=COMPILER", "clang gcc bolt order",
         "clang: text for -fprofile-sample-use; the default\n"
         "gcc, bolt, order (of functions, for a linker): says\n"
         "why it is not worth it, and what to do instead"),
    FLAG(FILES, "binary", binaries, "=FILE", ":files",
         "the program, or its debug file, instead of what the\n"
         "profile names; may be given several times"),
    FLAG(STRING, "o", output, " FILE", ":files",
         "write there instead of standard output"),
    FLAG(STRING, "output", output, "=FILE", ":files", "the same"),
    FLAG(BOOL, "check", check, "", NULL,
         "say whether the profiles are good enough, and what\n"
         "to do if not; status 2 if not"),
    {0},
};

/* ------------------------------------------------------------- words ---- */

/* Targets that gain nothing, or less than another way. The figures are those of
 * docs/pgo.md. */
static const struct {
    const char *name, *why;
} not_worth_it[] = {
    {"gcc",
     "-for=gcc is not worth it: -fauto-profile gained 2 % where instrumented "
     "gcc gained 8 %, and its format changes with each gcc; use gcc "
     "-fprofile-generate, or clang with -for=clang"},
    {"bolt",
     "-for=bolt is not worth it: without branch records llvm-bolt -nl made "
     "programs 4 % faster to slower; use -for=clang"},
    {"order",
     "-for=order is not worth it: ordered functions made programs 2 to 7 % "
     "slower; use -for=clang, whose linker puts hot functions together"},
};

static bool
check_target(const struct words *w)
{
    size_t i;

    if (!w->target || strcmp(w->target, "clang") == 0)
        return true;
    for (i = 0; i < sizeof not_worth_it / sizeof *not_worth_it; i++)
        if (strcmp(w->target, not_worth_it[i].name) == 0) {
            cpprof__cli_fail("pgo: %s", not_worth_it[i].why);
            return false;
        }
    cpprof__cli_fail("pgo: no such compiler: -for=%s; it is clang, gcc, bolt "
                     "or order",
                     w->target);
    return false;
}

static bool
parse(int argc, char **argv, struct words *w, bool *help)
{
    struct cpprof__flags flags = {.table = cpprof__pgo_flag_table, .into = w};

    if (!cpprof__cli_flags_among_words(argc, argv, &flags, &w->n_sources))
        return false;
    w->sources = argv + 1;
    *help = flags.help;
    if (flags.help)
        return true;
    if (!check_target(w))
        return false;
    if (!w->n_sources) {
        cpprof__cli_fail("pgo: no profile given; see cpprof pgo -help");
        return false;
    }
    if (w->check && w->output) {
        cpprof__cli_fail("pgo: -check writes no file: leave -o out");
        return false;
    }
    return true;
}

static void
help(void)
{
    puts("usage: cpprof pgo [-for=clang] [-binary=FILE] [-o OUT] PROFILE...\n"
         "       cpprof pgo -check [-binary=FILE] PROFILE...\n\n"
         "Make of CPU profiles, of one build or several, what a compiler needs "
         "to make the\nnext build faster. See docs/pgo.md.\n");
    cpprof__print_flags(cpprof__pgo_flag_table, true);
}

/* ------------------------------------------------------------ output ---- */

static double
percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static int
write_out(const struct words *w, const struct cpprof__buffer *out)
{
    struct cpprof_error error = {0};
    struct cpprof_writer writer;
    int failed;

    if (w->output && strcmp(w->output, "-") != 0) {
        if (cpprof__output_file(w->output, &writer, &error) != CPPROF_OK)
            return cpprof__cli_fail("pgo: %s", error.text);
    } else {
        cpprof_writer_to_fd(STDOUT_FILENO, &writer);
    }
    failed = writer.write(writer.ctx, out->data, out->n);
    if (writer.close) {
        int closed = writer.close(writer.ctx, failed != 0);

        failed = failed ? failed : closed;
    }
    if (failed)
        return cpprof__cli_fail("pgo: %s: %s",
                                w->output ? w->output : "standard output",
                                strerror(failed));
    return CPPROF__EXIT_OK;
}

/* What of the samples is not in the output, a line each. */
static void
warn_of_losses(const struct cpprof__pgo_counts *c)
{
    size_t i;

    for (i = 0; i < c->builds.n; i++) {
        const struct cpprof__pgo_build *b = &c->builds.at[i];
        double share = percent((double)b->n_samples, c->n_samples);

        if (!b->path && b->n_samples)
            cpprof__cli_warn(
                "pgo: %.1f%% of the samples are left out: %s%s%s is not "
                "here%s%s; say where with -binary=FILE or PPROF_BINARY_PATH",
                share, *b->name ? b->name : "a file without a name",
                *b->build_id ? ", build ID " : "", b->build_id,
                b->why ? ": " : "", b->why ? b->why : "");
        if (b->path && !b->code)
            cpprof__cli_warn("pgo: %.1f%% of the samples are left out: %s has "
                             "no code; give the program itself, stripped or "
                             "not, with -binary=FILE",
                             share, b->path);
    }
    if (percent(c->n_other, c->n_samples) >= 20)
        cpprof__cli_warn("pgo: %.1f%% of the samples are in %s: a profile for "
                         "that needs -binary=FILE",
                         percent(c->n_other, c->n_samples),
                         cpprof__strings_text(&c->names, c->other));
}

/* Does an ELF file of 64 bits end before its table of sections does? */
static bool
is_cut_off(const char *path)
{
    FILE *file = fopen(path, "rbe");
    struct stat st;
    Elf64_Ehdr head;
    bool is_cut = false;

    if (file && fread(&head, sizeof head, 1, file) == 1 &&
        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
        head.e_ident[EI_CLASS] == ELFCLASS64 && fstat(fileno(file), &st) == 0)
        is_cut = head.e_shoff > (uint64_t)st.st_size ||
                 (uint64_t)head.e_shnum * head.e_shentsize >
                     (uint64_t)st.st_size - head.e_shoff;
    if (file)
        fclose(file);
    return is_cut;
}

/* Why there is nothing to write, or NULL. */
static const char *
emptiness(const struct cpprof__pgo_counts *c)
{
    size_t i;
    bool is_found = false;

    for (i = 0; i < c->builds.n; i++)
        is_found |= c->builds.at[i].path != NULL;
    if (c->n_samples <= 0)
        return "the profile has no samples: record for longer, while the "
               "program works";
    if (!is_found)
        return "no binary of the profile was found";
    if (c->n_inside <= 0)
        return "no sample is in the program; for a library say "
               "-binary=LIBRARY";
    for (i = 0; i < c->builds.n && c->n_lines <= 0; i++)
        if (c->builds.at[i].path && is_cut_off(c->builds.at[i].path))
            return "the file of the program is cut off: its end, with names "
                   "and lines, is missing";
    if (c->n_lines <= 0 && c->n_named < c->n_inside / 2)
        return "the program is stripped, and its debug file is not here: say "
               "-binary=FILE.debug, or install it";
    if (c->n_lines <= 0 && c->lacks_split)
        return "the lines of its functions are in .dwo files that are not here";
    if (c->n_lines <= 0)
        return "the program has no lines of functions: build it with "
               "-gline-tables-only -fdebug-info-for-profiling";
    return NULL;
}

static int
write_clang(const struct words *w, struct cpprof__pgo_counts *c)
{
    struct cpprof__pgo_tree tree = {0};
    struct cpprof__buffer out = {0};
    struct cpprof_error error = {0};
    size_t n_functions = 0, n_unreadable = 0;
    int status = CPPROF__EXIT_ERROR;

    if (cpprof__pgo_tree_make(&tree, c, &error) != CPPROF_OK)
        cpprof__cli_fail("pgo: %s", error.text);
    else if (!cpprof__pgo_clang(&tree, c, &out, &n_functions, &n_unreadable))
        cpprof__cli_fail("out of memory");
    else if (!n_functions)
        cpprof__cli_fail("pgo: no code of the sampled functions was found");
    else
        status = write_out(w, &out);
    if (n_unreadable)
        cpprof__cli_warn("pgo: %zu function%s with names that clang cannot "
                         "read %s left out",
                         n_unreadable, n_unreadable == 1 ? "" : "s",
                         n_unreadable == 1 ? "is" : "are");
    if (status == CPPROF__EXIT_OK)
        cpprof__cli_warn("pgo: %zu function%s of %.0f samples, %.1f%% of which "
                         "have lines",
                         n_functions, n_functions == 1 ? "" : "s", c->n_samples,
                         percent(c->n_lines, c->n_samples));
    cpprof__buffer_free(&out);
    cpprof__pgo_tree_free(&tree);
    return status;
}

static int
print_check(const struct words *w, const struct cpprof__pgo_counts *c)
{
    struct cpprof__buffer out = {0};
    bool is_good = cpprof__pgo_check(c, &out);
    int status;

    if (out.failed)
        return cpprof__cli_fail("out of memory");
    status = write_out(w, &out);
    cpprof__buffer_free(&out);
    return status == CPPROF__EXIT_OK && !is_good ? CPPROF__EXIT_ERROR : status;
}

/* -------------------------------------------------------- everything ---- */

static int
run(struct words *w)
{
    struct cpprof__origins origins = {0};
    struct cpprof__report_flags flags = {
        .sources = w->sources, .n_sources = w->n_sources, .origins = &origins};
    struct cpprof__pgo_counts counts = {0};
    struct cpprof__pgo_request request = {
        .profile = cpprof__read_sources(&flags),
        .binaries = (const char *const *)w->binaries.at,
        .n_binaries = (size_t)w->binaries.n};
    struct cpprof_error error = {0};
    int status = CPPROF__EXIT_ERROR;
    const char *why;

    cpprof__debuginfod_begin(cpprof__debuginfod_default);
    cpprof__progress_end();
    if (!request.profile)
        status = CPPROF__EXIT_ERROR;
    else if (cpprof__pgo_count(&counts, &request, &error) != CPPROF_OK)
        cpprof__cli_fail("pgo: %s", error.text);
    else {
        warn_of_losses(&counts);
        why = emptiness(&counts);
        status = why        ? cpprof__cli_fail("pgo: %s", why)
                 : w->check ? print_check(w, &counts)
                            : write_clang(w, &counts);
    }
    cpprof__pgo_counts_free(&counts);
    pprof_free(request.profile);
    cpprof__origins_free(&origins);
    return status;
}

int
cpprof__cli_pgo(int argc, char **argv)
{
    struct words words = {0};
    bool asks_help = false;
    int status = CPPROF__EXIT_OK;

    if (!parse(argc, argv, &words, &asks_help))
        status = CPPROF__EXIT_ERROR;
    else if (asks_help)
        help();
    else
        status = run(&words);
    free(words.binaries.at);
    return status;
}

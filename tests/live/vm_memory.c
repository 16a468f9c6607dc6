/* SPDX-License-Identifier: MIT */
/*
 * A million functions, each described once, sampled once and thrown away: the
 * profile is streamed, and memory stays flat. What it wrote is read by go tool
 * pprof, where that is installed, as are the lines of a script.
 */
#include "vm_toy.h"

#include "command.h"
#include "session.h"

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define N_FUNCTIONS 20000
#else
#define N_FUNCTIONS 1000000
#endif

/* KB that the process may have more after that many functions than after three
 * tenths of them. Where the writer gets little of the processor, what may wait
 * for it is touched later: then so many more are looked at, a few times. */
#define GROWTH_KB 4096
#define ROUNDS    4

static uint64_t n_written;

static int
count(void *ctx, const void *data, size_t n)
{
    n_written += n;
    return 0;
}

static long
resident_kb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file || fscanf(file, "%*s %ld", &pages) != 1)
        bail("no /proc/self/statm");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* One at a place that was another's before. */
static void
run_once(struct toy *toy, struct toy_function *function, char *name, size_t i)
{
    static const struct toy_code nothing[] = {{TOY_WORK, 7, 1, NULL},
                                              {TOY_RETURN, 8, 0, NULL}};

    snprintf(name, 64, "generated_function_number_%zu", i);
    *function = (struct toy_function){name, "generated.toy", (int)(i % 1000),
                                      nothing, NULL};
    toy_push(toy, function);
    toy->t->due = 1;
    cpprof_vm_thread_poll(toy->t);
    toy_pop(toy);
    cpprof_vm_forget_function(toy_vm, function);
}

static void
run_many(struct toy *toy, size_t from, size_t to)
{
    static struct toy_function functions[1024];
    static char names[1024][64];

    for (; from < to; from++)
        run_once(toy, &functions[from % 1024], names[from % 1024], from);
}

static void
many_functions(void)
{
    const size_t n_first = N_FUNCTIONS * 3 / 10;
    struct cpprof_error error;
    struct toy toy;
    long early = 0, late;
    size_t i, n = n_first;

    toy_make(&toy);
    if (cpprof_vm_start(&(struct cpprof_writer){sizeof(struct cpprof_writer),
                                                count, NULL, NULL},
                        NULL, &error))
        bail("start: %s", error.text);
    cpprof_vm_thread_enter(toy.t);
    run_many(&toy, 0, n_first);
    late = resident_kb();
    for (i = 0; i < ROUNDS && (!i || late - early > GROWTH_KB); i++) {
        early = late;
        run_many(&toy, n, n + N_FUNCTIONS - n_first);
        n += N_FUNCTIONS - n_first;
        late = resident_kb();
    }
    cpprof_vm_thread_enter(NULL);
    if (cpprof_vm_stop(&error))
        bail("stop: %s", error.text);
    note("%zu functions, %llu bytes written, %ld KB resident, %ld KB before", n,
         (unsigned long long)n_written, late, early);
    check_at_most((double)(late - early), GROWTH_KB,
                  "memory_stays_flat_under_a_million_functions");
    check_at_least((double)n_written, 5.0 * N_FUNCTIONS,
                   "functions_are_written_while_it_runs");
    cpprof_vm_thread_free(toy.t);
}

/* Tables were forgotten several times: all that is referred to is there, in
 * order, and nothing is taken for something else. The writer gets some time
 * for each half of what can wait for it. */
static void
forgotten_functions(unsigned length)
{
    static struct toy_function functions[1024];
    static char names[1024][64];
    size_t n_wrong = 0, i, last = 0;
    struct profile *p;
    struct toy toy;

    toy_make(&toy);
    toy_start(CPPROF_VM_MODE_TICK, 1);
    cpprof_vm_thread_enter(toy.t);
    for (i = 0; i < 150000; i++) {
        run_once(&toy, &functions[i % 1024], names[i % 1024], i);
        if (i % 4096 == 0)
            usleep(2000 * length);
    }
    cpprof_vm_thread_enter(NULL);
    p = toy_stop();
    for (i = 0; i < p->n_samples; i++) {
        const struct frame *f = &p->samples[i].frames[0];
        size_t number = 0;

        if (f->name[0] == '[') /* there was no room */
            continue;
        if (sscanf(f->name, "generated_function_number_%zu", &number) != 1 ||
            f->line != 7 || f->start_line != (int64_t)(number % 1000) ||
            strcmp(f->file, "generated.toy") != 0 || number < last)
            n_wrong++;
        last = number;
    }
    check_at_least((double)p->n_locations, 70000,
                   "functions_are_more_than_tables_hold");
    check_equal((int64_t)n_wrong, 0, "every_sample_has_its_own_function");
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

/* ---- the reference reads it -------------------------------------------- */

static const struct toy_code fib_code[] = {{TOY_WORK, 2, 4000000, NULL},
                                           {TOY_RETURN, 3, 0, NULL}};
static const struct toy_function fib = {"fibonacci", "foo.toy", 1, fib_code,
                                        NULL};
static const struct toy_code foo_code[] = {{TOY_CALL, 5, 0, &fib},
                                           {TOY_REPEAT, 6, 100, NULL},
                                           {TOY_RETURN, 7, 0, NULL}};
static const struct toy_function foo = {NULL, "foo.toy", 5, foo_code, NULL};

static void
write_script(const char *folder)
{
    char path[4200];
    FILE *file;

    snprintf(path, sizeof path, "%s/foo.toy", folder);
    file = fopen(path, "w");
    if (!file)
        bail("no %s", path);
    fputs("def fibonacci():\n    work()\n    return\n\n"
          "fibonacci()\nagain 100\nreturn\n",
          file);
    fclose(file);
}

static void
ask_pprof(const char *flags, const char *file, const char *want,
          const char *name)
{
    static struct result result;
    char command[9000];
    const char *const argv[] = {"sh", "-c", command, NULL};

    snprintf(command, sizeof command, "cd %s && HOME=$PWD go tool pprof %s %s",
             scratch(), flags, file);
    run_command(argv, NULL, 60, &result);
    check_has(result.out, want, name);
}

/* As TestProfile of go.starlark.net/starlark/profile_test.go. */
static void
read_by_pprof(void)
{
    const char *path = scratch_path("foo.pb.gz");
    const struct cpprof_vm_options options = {
        .size = sizeof options, .rate_hz = 1000, .flags = CPPROF_FLAG_MERGE};
    struct cpprof_writer writer;
    struct cpprof_error error;
    struct toy toy;

    if (system("command -v go >/dev/null 2>&1")) {
        check_skip("go_tool_pprof_reads_it", "go is not installed");
        return;
    }
    write_script(scratch());
    toy_make(&toy);
    if (cpprof_writer_to_path(path, &writer, &error) ||
        cpprof_vm_start(&writer, &options, &error))
        bail("start: %s", error.text);
    toy_run(&toy, &foo);
    if (cpprof_vm_stop(&error))
        bail("stop: %s", error.text);
    cpprof_vm_thread_free(toy.t);
    ask_pprof("-top", path, "flat%", "top_has_a_table");
    ask_pprof("-top", path, "fibonacci", "top_has_the_function");
    ask_pprof("-top", path, "foo.toy", "top_has_the_script");
    ask_pprof("-list=fibonacci", path, "2:    work()",
              "list_shows_the_source_of_the_script");
    ask_pprof("-traces", path, "fibonacci\n             foo.toy",
              "traces_have_the_caller_below");
}

int
main(void)
{
    many_functions();
    check_tries(5, forgotten_functions);
    read_by_pprof();
    return check_done();
}

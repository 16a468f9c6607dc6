/* SPDX-License-Identifier: MIT */
/*
 * No call crashes for a pointer that is NULL: every function of the public
 * headers is called with all pointers NULL, and then with one of them NULL and
 * the others good. prototypes.py makes the table of calls from the headers, so
 * a function that is added to them is called here as well.
 *
 * Each function has a process of its own. A status that says failure has to be
 * in the error, with a text that names no function of ours that is not public,
 * and the writer is closed once.
 */
#include <cpprof/attach.h>
#include <cpprof/cpprof.h>
#include <cpprof/pprof.h>
#include <cpprof/recording.h>
#include <cpprof/vm.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define N_ARGUMENTS 8

typedef uintptr_t a_call(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t);

static const struct call {
    const char *name;
    a_call *function;
    int returns_status;
    const char *arguments[N_ARGUMENTS]; /* as declared */
} calls[] = {
#define CALL(name, returns_status, ...)                                        \
    {#name, (a_call *)(void *)(name), returns_status, __VA_ARGS__},
#include "prototypes.inc"
#undef CALL
};

#define N_CALLS (sizeof calls / sizeof *calls)

/* ------------------------------------------------------ good arguments ---- */

static int n_closed;

static int
take(void *ctx, const void *data, size_t n)
{
    return 0;
}

static int
count_close(void *ctx, int failed)
{
    n_closed++;
    return 0;
}

static size_t
no_stack(void *thread, struct cpprof_vm_frame *frames, size_t max)
{
    return 0;
}

static bool
no_name(void *thread, const void *function, struct cpprof_vm_function *what)
{
    return false;
}

static bool
do_nothing(void *ctx)
{
    return true;
}

static int
begin(void *ctx, int status, const struct cpprof_http_header *headers,
      size_t n_headers, int64_t n_body)
{
    return 0;
}

static char directory[] = "/tmp/cpprof-null-XXXXXX";
static char path[64];

static struct cpprof_error error;
static uint64_t output[4096];
static uint64_t zeros[1024];
static const struct cpprof_writer a_writer = {sizeof a_writer, take,
                                              count_close, NULL};
static const struct cpprof_vm_ops ops = {
    .size = sizeof ops, .name = "vm", .stack = no_stack, .describe = no_name};
static const char maps[] = "1000-2000 r-xp 00000000 08:01 7 /bin/prog\n";
static const char *rest_of_maps = maps;
static const struct pprof_symbol symbol = {.name = "f"};
static const struct cpprof_http_request request = {
    .size = sizeof request, .method = "GET", .path = "/debug/pprof/block"};
static const struct cpprof_http_response response = {
    .size = sizeof response, .begin = begin, .write = take};

/* Of a profile, which is never freed. */
static const char *
new_name(void)
{
    static char name[32];
    static int n;

    snprintf(name, sizeof name, "profile-%d", n++);
    return name;
}

/* What a call with an output makes. */
#define MADE(type, call)                                                       \
    static uintptr_t make_##type(void)                                         \
    {                                                                          \
        struct type *made = NULL;                                              \
                                                                               \
        if (call)                                                              \
            _exit(100);                                                        \
        return (uintptr_t)made;                                                \
    }

MADE(cpprof_capture, cpprof_capture_start_wall(&a_writer, NULL, &made, NULL))
MADE(cpprof_heap, cpprof_heap_follow_mmap(&made, NULL))
MADE(cpprof_labels, !(made = cpprof_labels_new("key", "value", NULL)))
MADE(cpprof_profile, cpprof_profile_new(new_name(), &made, NULL))
MADE(cpprof_recording, cpprof_recording_read(directory, &made, NULL))
MADE(cpprof_snapshot,
     cpprof_snapshot_new(cpprof_profile_lookup("block"), NULL, &made, NULL))
MADE(cpprof_vm, cpprof_vm_new(&ops, &made, NULL))
MADE(cpprof_vm_thread,
     cpprof_vm_thread_new((struct cpprof_vm *)make_cpprof_vm(), output, &made,
                          NULL))
MADE(pprof_merger, pprof_merger_new(&made, NULL))

/* One of everything. */
static uintptr_t
make_pprof_profile(void)
{
    struct pprof_profile *p = NULL;
    uint32_t location = 0;
    int64_t value = 1;

    if (pprof_new(&p, NULL) ||
        pprof_add_sample_type(p, "samples", "count", NULL) ||
        pprof_add_mapping(p,
                          &(struct pprof_new_mapping){
                              .size = sizeof(struct pprof_new_mapping)},
                          NULL, NULL) ||
        pprof_add_function(p,
                           &(struct pprof_new_function){
                               .size = sizeof(struct pprof_new_function)},
                           NULL, NULL) ||
        pprof_add_location(p,
                           &(struct pprof_new_location){
                               .size = sizeof(struct pprof_new_location),
                               .lines = &(struct pprof_line){0},
                               .n_lines = 1},
                           NULL, NULL) ||
        pprof_add_sample(
            p,
            &(struct pprof_new_sample){.size = sizeof(struct pprof_new_sample),
                                       .locations = &location,
                                       .n_locations = 1,
                                       .values = &value},
            NULL, NULL))
        _exit(100);
    return (uintptr_t)p;
}

static uintptr_t
make_profiles(void)
{
    static uintptr_t profiles[1];

    profiles[0] = make_pprof_profile();
    return (uintptr_t)profiles;
}

/* A struct that begins with its size. */
static uintptr_t
sized(size_t size)
{
    memset(output, 0, sizeof output);
    output[0] = size;
    return (uintptr_t)output;
}

/* What an argument is, by how its declaration begins; the first that fits. */
static uintptr_t
good(const char *declared)
{
#define IS(text) (strncmp(declared, text, strlen(text)) == 0)
#define SIZED(type)                                                            \
    if (IS("const struct " #type " *") || IS("struct " #type " *"))            \
        return sized(sizeof(struct type));
#define OBJECT(type)                                                           \
    if ((IS("const struct " #type " *") || IS("struct " #type " *")) &&        \
        !strstr(declared, "**") && !strstr(declared, "*const"))                \
        return make_##type();
    if (!strpbrk(declared, "*")) /* one of something, or the first */
        return IS("size_t n") || IS("size_t size") || IS("int n");
    if (IS("struct cpprof_error *"))
        return (uintptr_t)&error;
    if (IS("const struct cpprof_writer *"))
        return (uintptr_t)&a_writer;
    if (IS("const struct cpprof_vm_ops *"))
        return (uintptr_t)&ops;
    if (IS("const struct cpprof_http_request *"))
        return (uintptr_t)&request;
    if (IS("const struct cpprof_http_response *"))
        return (uintptr_t)&response;
    if (IS("const struct pprof_symbol *"))
        return (uintptr_t)&symbol;
    if (IS("const char *path"))
        return (uintptr_t)path;
    if (IS("const char *directory"))
        return (uintptr_t)directory;
    if (IS("const char **text"))
        return (uintptr_t)&rest_of_maps;
    if (IS("const char *end"))
        return (uintptr_t)(maps + sizeof maps - 1);
    if (IS("const char *"))
        return (uintptr_t) "text";
    if (IS("void (*") || IS("bool (*"))
        return (uintptr_t)do_nothing;
    if (IS("struct pprof_profile *const *"))
        return make_profiles();
    OBJECT(cpprof_capture)
    OBJECT(cpprof_heap)
    OBJECT(cpprof_labels)
    OBJECT(cpprof_profile)
    OBJECT(cpprof_recording)
    OBJECT(cpprof_snapshot)
    OBJECT(cpprof_vm)
    OBJECT(cpprof_vm_thread)
    OBJECT(pprof_merger)
    OBJECT(pprof_profile)
    SIZED(cpprof_cpu_options)
    SIZED(cpprof_heap_options)
    SIZED(cpprof_http_options)
    SIZED(cpprof_labels_scope)
    SIZED(cpprof_map)
    SIZED(cpprof_profile_entry)
    SIZED(cpprof_profile_options)
    SIZED(cpprof_push_options)
    SIZED(cpprof_vm_options)
    SIZED(cpprof_wall_options)
    SIZED(pprof_info)
    SIZED(pprof_name_filter)
    SIZED(pprof_new_function)
    SIZED(pprof_new_location)
    SIZED(pprof_new_mapping)
    SIZED(pprof_new_sample)
    SIZED(pprof_read_options)
    SIZED(pprof_report_options)
    SIZED(pprof_sample)
    SIZED(pprof_symbolize_options)
    SIZED(pprof_write_options)
    return (uintptr_t)zeros;
}

/* -------------------------------------------------------------- calls ---- */

/* Is what the text begins with before a colon one of the calls? */
static bool
names_a_call(const char *text)
{
    size_t n = strcspn(text, ":"), i;

    for (i = 0; i < N_CALLS; i++)
        if (strlen(calls[i].name) == n && strncmp(calls[i].name, text, n) == 0)
            return true;
    return false;
}

/* With argument `none` NULL; -1: all that are pointers. */
static void
call(const struct call *what, int none)
{
    uintptr_t a[N_ARGUMENTS] = {0};
    uint32_t status;
    int i, writer = -1, failure = -1;

    for (i = 0; i < N_ARGUMENTS && what->arguments[i]; i++) {
        if (strstr(what->arguments[i], "const struct cpprof_writer *"))
            writer = i;
        if (strstr(what->arguments[i], "struct cpprof_error *"))
            failure = i;
        if (none >= 0 ? i != none : !strchr(what->arguments[i], '*'))
            a[i] = good(what->arguments[i]);
    }
    memset(&error, 0, sizeof error);
    n_closed = 0;
    status = (uint32_t)what->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                                      a[7]);
    if (!what->returns_status || (int32_t)status >= 0)
        return;
    if (failure >= 0 && a[failure] &&
        ((uint32_t)error.status != status || !error.text[0]))
        _exit(101);
    if (strstr(error.text, ": an argument is NULL") &&
        !names_a_call(error.text))
        _exit(103);
    if (writer >= 0 && a[writer] && n_closed != 1)
        _exit(102);
}

/* What costs nothing while nobody measures does its work now. */
static void
measure_everything(const char *name)
{
    const struct cpprof_vm_options options = {
        .size = sizeof options,
        .mode =
            strstr(name, "span") ? CPPROF_VM_MODE_SPAN : CPPROF_VM_MODE_TICK};

    cpprof_heap_set_rate(1);
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    if (strncmp(name, "cpprof_vm_", 10) == 0 && !strstr(name, "start"))
        cpprof_vm_start(&a_writer, &options, NULL);
}

/* What of *what went wrong, as a text, or NULL. */
static const char *
verdict(const struct call *what, int *argument)
{
    static char text[160];
    int status, i;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka has a handler */
        alarm(20);
        measure_everything(what->name);
        for (i = -1; i < 0 || (i < N_ARGUMENTS && what->arguments[i]); i++) {
            *argument = i;
            if (i < 0 || strchr(what->arguments[i], '*'))
                call(what, i);
        }
        cpprof_cpu_stop(NULL);
        cpprof_wall_stop(NULL);
        cpprof_vm_stop(NULL);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (status == 0)
        return NULL;
    snprintf(text, sizeof text, "%s without %s: %s", what->name,
             *argument < 0 ? "anything" : what->arguments[*argument],
             WIFSIGNALED(status)          ? strsignal(WTERMSIG(status))
             : WEXITSTATUS(status) == 100 ? "the other arguments are not there"
             : WEXITSTATUS(status) == 101 ? "the error does not say what failed"
             : WEXITSTATUS(status) == 102 ? "its writer was not closed once"
             : WEXITSTATUS(status) == 103 ? "the error names no public call"
                                          : "the process ended");
    return text;
}

static void
no_call_crashes_for_want_of_an_argument(void **state)
{
    int *argument = mmap(NULL, sizeof *argument, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t i, n_wrong = 0;

    assert_ptr_not_equal(argument, MAP_FAILED);
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/file", directory);
    assert_int_equal(cpprof_recording_prepare(directory, NULL), CPPROF_OK);
    for (i = 0; i < N_CALLS; i++) {
        const char *wrong = verdict(&calls[i], argument);

        if (wrong) {
            printf("# %s\n", wrong);
            n_wrong++;
        }
    }
    snprintf(path, sizeof path, "rm -rf %s", directory);
    assert_int_equal(system(path), 0);
    assert_int_equal(n_wrong, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_crashes_for_want_of_an_argument),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

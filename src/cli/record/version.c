/* SPDX-License-Identifier: MIT */
/*
 * cpprof version: what this build is and, with -v, what it can do on this
 * machine: where its parts are, which engines the kernel allows and if not why,
 * which libraries and interpreters are there. Each line is the answer of what
 * will be asked when it is needed: engines are opened, plug-ins loaded, a
 * folder for samples made. It is what a report of a fault should begin with.
 */
#include "cli/record/record.h"

#include "arch/find_object.h"
#include "cli/attach/attach.h"
#include "cli/attach/events.h"
#include "cli/attach/guest.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "collect/threads/engine.h"
#include "http/plugin.h"
#include "object/plug_in.h"
#include "object/symbolizer.h"
#include "profile/filter/re2.h"
#include "push/plugin.h"

#include <cpprof/version.h>
#include <dlfcn.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define COMPILER                                                               \
    (sizeof __VERSION__ > 1 && __VERSION__[0] >= '0' && __VERSION__[0] <= '9'  \
         ? "gcc " __VERSION__                                                  \
         : __VERSION__)

/* The first line of a file of the kernel; "": it cannot be read. */
static void
first_line(const char *path, char *line, size_t n)
{
    struct cpprof__buffer text = {0};
    const char *data;

    cpprof__read_proc(&text, "%s", path);
    data = text.data ? (const char *)text.data : "";
    snprintf(line, n, "%.*s", (int)strcspn(data, "\n"), data);
    cpprof__buffer_free(&text);
}

/* ---- parts of ours ------------------------------------------------------ */

static void
say_plug_in(const char *name, const char *symbol, uint32_t version)
{
    struct cpprof_error error = {0};
    const void *ops = cpprof__plug_in_load(name, symbol, version, &error);
    char path[PATH_MAX];
    Dl_info info;

    if (ops && dladdr(ops, &info) && realpath(info.dli_fname, path))
        printf("  plug-in      %s: %s\n", name, path);
    else
        printf("  plug-in      none: %s\n", error.text);
}

/* Modules beside the library, as src/vm/load/modules.c looks for them. */
static void
say_modules(const char *library)
{
    static const char *const patterns[] = {
        "lua/*/cpprof.so", "bindings/lua/*/cpprof.so",
        "cpprof/python/cpprof.*.so", "bindings/python/cpprof.*.so"};
    bool is_found = false;
    size_t i, j;

    for (i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        char pattern[PATH_MAX + 64];
        glob_t found;

        snprintf(pattern, sizeof pattern, "%.*s/%s",
                 (int)(strrchr(library, '/') - library), library, patterns[i]);
        if (glob(pattern, 0, NULL, &found))
            continue;
        for (j = 0; j < found.gl_pathc; j++)
            printf("  module       %s\n", found.gl_pathv[j]);
        is_found = true;
        globfree(&found);
    }
    if (!is_found)
        puts("  module       none for Lua or Python");
}

/* Libraries of others that are loaded when they are needed. */
static void
say_libraries(void)
{
    static const struct {
        const char *names[2], *use;
    } rows[] = {
        {{"libcurl.so.4", "libcurl-gnutls.so.4"}, "profiles from URLs"},
        {{"libedit.so.2", "libedit.so.0"}, "editing lines in the shell"},
        {{"libdebuginfod.so.1", NULL}, "debug information from servers"},
    };
    size_t i, j;

    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *library = NULL;

        for (j = 0; j < 2 && rows[i].names[j] && !library; j++)
            library = dlopen(rows[i].names[j], RTLD_LAZY | RTLD_LOCAL);
        printf("  %s %s: %s\n", library ? "library     " : "no library  ",
               rows[i].names[library ? j - 1 : 0], rows[i].use);
    }
}

static void
say_parts(void)
{
    char path[PATH_MAX];

    puts("this build");
    printf("  compiler     %s, glibc %d.%d\n", COMPILER, __GLIBC__,
           __GLIBC_MINOR__);
    if (realpath("/proc/self/exe", path))
        printf("  command      %s\n", path);
    if (cpprof__record_library(path)) {
        printf("  library      %s\n", path);
        say_modules(path);
    }
    say_plug_in("symbol", CPPROF__SYMBOLIZER_SYMBOL, CPPROF__SYMBOLIZER_ABI);
    say_plug_in("http", CPPROF__HTTP_SYMBOL, CPPROF__HTTP_ABI);
    say_plug_in("push", CPPROF__PUSH_SYMBOL, CPPROF__PUSH_ABI);
    say_plug_in("re2", CPPROF__RE2_SYMBOL, CPPROF__RE2_ABI);
    say_libraries();
}

/* ---- the machine ------------------------------------------------------- */

static void
say_system(void)
{
    struct cpprof__buffer text = {0};
    const char *name, *value;
    struct utsname u;
    cpu_set_t allowed;

    cpprof__read_proc(&text, "/etc/os-release");
    name = text.data ? strstr((const char *)text.data, "PRETTY_NAME=") : NULL;
    value = name ? name + strlen("PRETTY_NAME=") : "unknown";
    value += *value == '"';
    uname(&u);
    printf("  system       %.*s, %s %s, %s\n", (int)strcspn(value, "\"\n"),
           value, u.sysname, u.release, u.machine);
    cpprof__buffer_free(&text);
    printf("  libc         glibc %s, stacks by %s\n", gnu_get_libc_version(),
           cpprof__has_find_object() ? "_dl_find_object"
                                     : "a table of modules");
    printf("  processors   %ld, of which %d may be used\n",
           sysconf(_SC_NPROCESSORS_ONLN),
           sched_getaffinity(0, sizeof allowed, &allowed)
               ? 0
               : CPU_COUNT(&allowed));
}

/* Limits of a container or of a service. */
static void
say_limits(void)
{
    char limit[64], filter[16];
    struct cpprof__buffer text = {0};

    first_line("/sys/fs/cgroup/memory.max", limit, sizeof limit);
    if (!*limit)
        first_line("/sys/fs/cgroup/memory/memory.limit_in_bytes", limit,
                   sizeof limit);
    if (strspn(limit, "0123456789") && strlen(limit) < 18)
        printf("  memory       %s bytes at most (cgroup)\n", limit);
    cpprof__read_proc(&text, "/proc/self/status");
    if (text.n < 2)
        puts("  /proc        cannot be read: mappings and threads are unknown");
    cpprof__status_field(&text, "Seccomp", filter, sizeof filter);
    cpprof__buffer_free(&text);
    printf("  user         %u, seccomp filter: %s\n", geteuid(),
           atoi(filter) ? "yes" : "none");
}

static void
say_engines(void)
{
    static const struct cpprof__engine *const engines[] = {
        &cpprof__engine_timer, &cpprof__engine_perf};
    char paranoid[32];
    int outside;
    size_t i;

    first_line("/proc/sys/kernel/perf_event_paranoid", paranoid,
               sizeof paranoid);
    for (i = 0; i < 2; i++) {
        const struct cpprof__engine *e = engines[i];
        struct cpprof_error error = {0};
        bool is_open = e->open(10000000, &error) == CPPROF_OK;

        printf("  engine       %s: %s%s", e->name, is_open ? "yes" : "no, ",
               error.text);
        if (e == &cpprof__engine_perf && *paranoid)
            printf(" (perf_event_paranoid %s)", paranoid);
        putchar('\n');
    }
    outside = cpprof__events_probe(getpid(), 1);
    printf("  from outside %s%s\n", outside ? "no, perf_event_open: " : "yes",
           outside ? cpprof__events_error(outside) : "");
}

static void
say_attach(void)
{
    static const char *const scopes[] = {"what this user may trace",
                                         "with CAP_SYS_PTRACE only",
                                         "with CAP_SYS_PTRACE only", "nobody"};
    char scope[32];
    unsigned n;

    first_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope);
    n = (unsigned)atoi(scope);
    if (!cpprof__guest_is_known())
        puts("  attach       no, it is not known on this processor yet");
    else
        printf("  attach       %s (ptrace_scope %s)\n", scopes[n < 4 ? n : 3],
               *scope ? scope : "not there");
}

static void
say_folder(void)
{
    struct cpprof__record_folder folder;

    if (!cpprof__record_folder_make(&folder))
        return;
    printf("  samples in   %.*s\n",
           (int)(strrchr(folder.path, '/') - folder.path), folder.path);
    cpprof__record_folder_remove(&folder);
}

/* Those that PATH finds, each once. */
static void
say_interpreters(void)
{
    enum { N = 5 };
    static const char *const names[N] = {"lua5.4", "lua5.1", "lua", "luajit",
                                         "python3"};
    char paths[N][PATH_MAX] = {""}, path[PATH_MAX];
    size_t i, j;

    for (i = 0; i < N; i++) {
        if (cpprof__find_command(names[i], path) || !realpath(path, paths[i]))
            continue;
        for (j = 0; strcmp(paths[j], paths[i]); j++)
            continue;
        if (j == i)
            printf("  interpreter  %s\n", paths[i]);
    }
}

struct words {
    bool is_verbose;
};

const struct cpprof__flag cpprof__version_flag_table[] = {
    CPPROF__FLAG(BOOL, "v", struct words, is_verbose, NULL, NULL,
                 "also what this build has and this machine allows"),
    {0},
};

int
cpprof__cli_version(int argc, char **argv)
{
    struct words w = {false};
    struct cpprof__flags flags = {.table = cpprof__version_flag_table,
                                  .into = &w};
    int n_used;

    if (!cpprof__cli_flags(argc, argv, &flags, &n_used))
        return CPPROF__EXIT_ERROR;
    if (n_used < argc)
        return cpprof__cli_fail("version takes no words: \"%s\"", argv[n_used]);
    if (flags.help) {
        puts("usage: cpprof version [-v]\n");
        cpprof__print_flags(cpprof__version_flag_table, true);
        return CPPROF__EXIT_OK;
    }
    puts("cpprof " CPPROF_VERSION_TEXT);
    if (!w.is_verbose)
        return CPPROF__EXIT_OK;
    say_parts();
    puts("this machine");
    say_system();
    say_limits();
    say_engines();
    say_attach();
    say_folder();
    say_interpreters();
    return CPPROF__EXIT_OK;
}

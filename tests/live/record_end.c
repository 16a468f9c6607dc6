/* SPDX-License-Identifier: MIT */
/*
 * `cpprof record`: whatever ends the program, at most its last second of
 * samples is lost, and its status or signal is passed on.
 */
#include "command.h"
#include "session.h"
#include "tap.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run `cpprof record` on victim with words; FILE is path. */
static void
record(const char *path, const char *const words[], struct result *result)
{
    const char *argv[32] = {
        cpprof_path(), "record", "-F", "200", "-e",
        engine_name,   "-o",     path, "--",  beside_path("victim")};
    size_t n = 10;
    size_t i;

    for (i = 0; words[i] && n < 31; i++)
        argv[n++] = words[i];
    run_command(argv, NULL, 60, result);
}

static bool
passes_on(int status, int signo, int code)
{
    if (signo)
        return (WIFSIGNALED(status) && WTERMSIG(status) == signo) ||
               (WIFEXITED(status) && WEXITSTATUS(status) == 128 + signo);
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

/* What a program burns that then ends. The first part is older than a second at
 * the end, the second part is not. The rest between them costs no CPU time. */
#define BURN_FIRST "burn=300"
#define REST       "rest=950"
#define BURN_LAST  "burn=100"
#define FIRST_S    0.3
#define BURN_S     0.4

/* Burn, then end by word: all but the last second must be there. */
static void
check_end(const char *word, int signo, int code)
{
    const char *words[] = {"out=hello", BURN_FIRST, REST,
                           BURN_LAST,   word,       NULL};
    const char *path = scratch_path("end.pb.gz");
    struct result result;
    struct profile *p;
    char why[256];
    char name[96];

    unlink(path);
    record(path, words, &result);
    snprintf(name, sizeof name, "%s: status or signal is passed on", word);
    if (!check(passes_on(result.status, signo, code), name))
        note("wait status %x: %s", result.status, result.err);
    check_text(result.out, "hello\n", "the program's output is its own");
    snprintf(name, sizeof name, "%s: a profile is written", word);
    p = profile_read(path, why, sizeof why);
    if (!check(p != NULL, name)) {
        note("%s: %s", why, result.err);
        return;
    }
    snprintf(name, sizeof name, "%s: at most the last second is lost", word);
    check_at_least((double)profile_cpu_stack(p, "victim_burn;...;main"),
                   (FIRST_S - 0.05) * 1e9, name);
    check_at_most((double)profile_cpu_ns(p), (BURN_S + 0.3) * 1e9,
                  "and nothing is invented");
    check_equal((int64_t)count_lines(result.err) -
                    (strcmp(word, "terminate") == 0),
                1, "one line says what was written");
    note("%s", result.err);
    profile_free(p);
}

static void
test_ends(void)
{
    check_end("return=7", 0, 7);
    check_end("kill=9", SIGKILL, 0);
    /* What ends the program does not depend on what samples it. */
    if (engine != CPPROF_ENGINE_TIMER)
        return;
    check_end("_exit=4", 0, 4);
    check_end("quick_exit=6", 0, 6);
    check_end("raw_exit=8", 0, 8);
    check_end("abort", SIGABRT, 0);
    check_end("terminate", SIGABRT, 0);
    check_end("kill=15", SIGTERM, 0);
    check_end("segv", SIGSEGV, 0);
}

/* A killed program loses nothing that is older than a second, and a thread
 * that was at work is in there too. */
static void
test_threads_killed(void)
{
    const char *words[] = {"background=60000", "burn=450", "rest=1000",
                           "burn=50",          "kill=9",   NULL};
    const char *path = scratch_path("threads.pb.gz");
    struct result result;
    struct profile *p;

    record(path, words, &result);
    p = profile_load(path);
    check_at_least((double)profile_cpu_in(p, "victim_burn"), 0.4e9,
                   "killed at work: the main thread is there");
    check_at_least((double)profile_cpu_in(p, "victim_thread"), 0.2e9,
                   "and the other thread");
    check_has(result.err, "2 threads", "and both are counted");
    note("%s", result.err);
    profile_free(p);
}

/* --- children --------------------------------------------------------------
 */

static void
test_children(void)
{
    const char *words[] = {"burn=300", "fork=300", "return=0", NULL};
    const char *path = scratch_path("tree.pb.gz");
    char pattern[600];
    struct result result;
    struct profile *p, *child;
    glob_t found;

    record(path, words, &result);
    check_equal(result.status, 0, "a program that forks is recorded");
    p = profile_load(path);
    check(profile_cpu_in(p, "victim_burn") >= 20 * p->period &&
              profile_cpu_in(p, "victim_child") == 0,
          "the file holds its own samples alone");
    snprintf(pattern, sizeof pattern, "%s/tree.victim.*.pb.gz", scratch());
    if (check(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1,
              "the child is kept apart by name and pid")) {
        child = profile_load(found.gl_pathv[0]);
        check(profile_cpu_in(child, "victim_child") >= 20 * child->period &&
                  profile_cpu_in(child, "victim_burn") == 0,
              "and has its own samples");
        profile_free(child);
        globfree(&found);
    }
    profile_free(p);
}

static void
test_exec(void)
{
    const char *words[] = {"burn=200", "exec", "burn=400", "return=3", NULL};
    const char *path = scratch_path("exec.pb.gz");
    struct result result;
    struct profile *p;

    record(path, words, &result);
    check_equal(result.status, 3 << 8, "a program that execs is recorded");
    p = profile_load(path);
    check_near((double)profile_cpu_in(p, "victim_burn"), 0.4e9, 0.1e9,
               "the file holds the last image");
    profile_free(p);
}

/* Sampling ends, the program does not. */
static void
test_duration(void)
{
    const char *path = scratch_path("duration.pb.gz");
    const char *argv[] = {cpprof_path(), "record",
                          "-e",          engine_name,
                          "--duration",  "1",
                          "-o",          path,
                          "--",          beside_path("victim"),
                          "burn=1500",   "out=done",
                          "return=5",    NULL};
    struct result result;
    struct profile *p;

    run_command(argv, NULL, 60, &result);
    check_equal(result.status, 5 << 8, "after --duration the program runs on");
    check_text(result.out, "done\n", "to its end");
    p = profile_load(path);
    check_near((double)p->duration_ns, 1e9, 0.6e9,
               "the profile is as long as was asked for");
    check_at_most((double)profile_cpu_ns(p), 1.4e9,
                  "and what came later is not in it");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
    session_engine(argc, argv);
    test_ends();
    test_threads_killed();
    test_children();
    test_exec();
    test_duration();
    return check_done();
}

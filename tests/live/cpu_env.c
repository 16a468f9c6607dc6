/* SPDX-License-Identifier: MIT */
/*
 * The variable CPPROF on a program that knows nothing of it: a profile of every
 * way to end that is not violent, one clear line for a wrong value, and the
 * program's own output and status untouched.
 */
#include "command.h"
#include "session.h"
#include "tap.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char preload[4200];

/* Run victim with words under CPPROF=value. */
static void
run_victim(const char *value, const char *const words[], struct result *result)
{
    const char *argv[24] = {beside_path("victim")};
    char variable[1024];
    const char *environment[] = {preload, variable, NULL};
    size_t i;

    for (i = 0; words[i] && i < 22; i++)
        argv[i + 1] = words[i];
    snprintf(variable, sizeof variable, "CPPROF=%s", value);
    run_command(argv, environment, 60, result);
}

/* "cpu=200,engine=E,out=DIR/NAME" */
static const char *
value_for(const char *name)
{
    static char value[1024];

    snprintf(value, sizeof value, "cpu=200,engine=%s,out=%s", engine_name,
             scratch_path(name));
    return value;
}

/* --- each normal end writes ------------------------------------------------
 */

static void
check_end(const char *word, int status, const char *name)
{
    const char *words[] = {"out=hello", "burn=300", word, NULL};
    const char *path = scratch_path("end.pb.gz");
    struct result result;
    struct profile *p;
    char why[256];

    run_victim(value_for("end.pb.gz"), words, &result);
    note("%s", word);
    check_equal(result.status, status, "the status is the program's");
    check_text(result.out, "hello\n", "its output is untouched");
    check_text(result.err, "", "and nothing is on standard error");
    p = profile_read(path, why, sizeof why);
    if (!check(p && profile_cpu_stack(p, "victim_burn;...;main") >=
                        20 * p->period,
               name))
        note("%s", p ? "not seen" : why);
    profile_free(p);
    unlink(path);
}

static void
test_ends(void)
{
    check_end("return=7", 7 << 8, "a program that returns from main");
    check_end("exit=3", 3 << 8, "a program that calls exit");
    check_end("_exit=4", 4 << 8, "a program that calls _exit");
}

/* --- names of files --------------------------------------------------------
 */

static void
test_names(void)
{
    const char *words[] = {"burn=50", "return=0", NULL};
    char pattern[600];
    struct result result;
    time_t before = time(NULL);
    glob_t found;
    long written = 0;
    int pid = 0;

    run_victim(value_for("%e.%p.%t.pb.gz"), words, &result);
    snprintf(pattern, sizeof pattern, "%s/victim.*.pb.gz", scratch());
    if (!check(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1,
               "%e, %p and %t make a name"))
        return;
    sscanf(strrchr(found.gl_pathv[0], '/'), "/victim.%d.%ld.pb.gz", &pid,
           &written);
    check_equal(pid, result.pid, "with the pid");
    check_near((double)written, (double)before, 5, "and the time");
    profile_free(profile_load(found.gl_pathv[0]));
    unlink(found.gl_pathv[0]);
    globfree(&found);
}

/* --- wrong values ----------------------------------------------------------
 */

static void
check_wrong(const char *value, const char *part)
{
    const char *words[] = {"out=hello", "return=7", NULL};
    struct result result;
    bool ok;

    run_victim(value, words, &result);
    ok = check_equal(result.status, 7 << 8, "the program runs on");
    ok &= check_text(result.out, "hello\n", "and prints as ever");
    ok &= check_equal((int64_t)count_lines(result.err), 1,
                      "one line on standard error");
    ok &= check_has(result.err, part, "which names what is wrong");
    ok &= check(strncmp(result.err, "cpprof: ", 8) == 0, "and who says so");
    note("CPPROF=%s: %s", value, result.err);
}

static void
test_wrong_values(void)
{
    check_wrong("cpu=0", "cpu=0");
    check_wrong("cpu=fast", "cpu=fast");
    check_wrong("cpu=10001", "cpu=10001");
    check_wrong("cpu=100x", "cpu=100x");
    check_wrong("cpu=100,engine=steam", "steam");
    check_wrong("cpu=100,depth=1025", "depth=1025");
    check_wrong("cpu=100,symbolize=yes", "symbolize=yes");
    check_wrong("cpu=100,colour=red", "colour");
    check_wrong("cpu=100,out=", "out=");
    check_wrong("cpu=100,out=/nonexistent/cpu.pb.gz", "/nonexistent/cpu.pb.gz");
    check_wrong("cpu=100,record=/nonexistent/directory",
                "/nonexistent/directory");
}

/* --- children and successors -----------------------------------------------
 */

static void
test_fork(void)
{
    const char *words[] = {"burn=200", "old_fork=300", "return=0", NULL};
    char pattern[600];
    struct result result;
    struct profile *mine, *child = NULL;
    char path[512];
    glob_t found;
    size_t i;

    run_victim(value_for("fork.%p.pb.gz"), words, &result);
    check_equal(result.status, 0, "a program that forks runs");
    check_text(result.err, "", "without a word");
    snprintf(pattern, sizeof pattern, "%s/fork.*.pb.gz", scratch());
    if (!check(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 2,
               "and writes a profile for each process"))
        return;
    snprintf(path, sizeof path, "%s/fork.%d.pb.gz", scratch(), result.pid);
    mine = profile_load(path);
    for (i = 0; i < 2; i++)
        if (strcmp(found.gl_pathv[i], path) != 0)
            child = profile_load(found.gl_pathv[i]);
    check(child && profile_cpu_in(child, "victim_child") >= 20 * child->period,
          "the child's has its work");
    check(child && profile_cpu_in(child, "victim_burn") == 0,
          "and nothing of its parent's");
    check(profile_cpu_in(mine, "victim_burn") >= 20 * mine->period &&
              profile_cpu_in(mine, "victim_child") == 0,
          "the parent's has its own alone");
    profile_free(mine);
    profile_free(child);
    for (i = 0; i < 2; i++)
        unlink(found.gl_pathv[i]);
    globfree(&found);
}

static void
test_exec(void)
{
    const char *words[] = {"burn=50", "exec", "burn=300", "return=5", NULL};
    const char *path = scratch_path("exec.pb.gz");
    struct result result;
    struct profile *p;

    run_victim(value_for("exec.pb.gz"), words, &result);
    check_equal(result.status, 5 << 8, "a program that execs runs on");
    check_text(result.err, "", "without a word");
    p = profile_load(path);
    check_near((double)profile_cpu_in(p, "victim_burn"), 0.3e9, 0.1e9,
               "and the new image is profiled");
    profile_free(p);
    unlink(path);
}

/* The tool that the program runs must not write over the program's profile. */
static void
test_close_and_threads(void)
{
    const char *words[] = {"close", "burn=200", "thread=200", "return=0", NULL};
    const char *path = scratch_path("close.pb.gz");
    struct result result;
    struct profile *p;

    run_victim(value_for("close.pb.gz"), words, &result);
    check_equal(result.status, 0, "a program that closes all descriptors");
    p = profile_load(path);
    check(profile_cpu_in(p, "victim_burn") >= 20 * p->period &&
              profile_cpu_in(p, "victim_thread") >= 20 * p->period,
          "has its profile written");
    profile_free(p);
    unlink(path);
}

static void
test_not_asked(void)
{
    const char *words[] = {"out=hello", "burn=20", "return=7", NULL};
    struct result result;

    run_victim("", words, &result);
    check_equal(result.status, 7 << 8, "an empty variable changes nothing");
    check_text(result.err, "", "and says nothing");
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library_path());
    test_ends();
    test_names();
    test_fork();
    test_exec();
    test_close_and_threads();
    test_not_asked();
    if (engine == CPPROF_ENGINE_AUTO)
        test_wrong_values();
    return check_done();
}

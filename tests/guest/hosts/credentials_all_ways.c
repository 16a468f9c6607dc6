/* SPDX-License-Identifier: MIT */
/* guest: 3. Programs that give up root in the ways that setpriv(1) and daemons
 * have: what succeeds alone succeeds, and all threads of the process, whoever
 * made them, have the new credentials in the end. needs: root */
#include "host.h"
#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define NOBODY 65534

#define CHECK(ok)                                                              \
    do {                                                                       \
        if (!(ok)) {                                                           \
            fprintf(stderr, "%s: %d: %s\n", __FILE__, __LINE__, #ok);          \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/* The text after a word of a thread's status file. */
static bool
status_is(const char *tid, const char *key, const char *wanted)
{
    char path[64], line[256];
    bool is = true;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key)))
            is = !strcmp(line + strlen(key), wanted);
    if (file)
        fclose(file);
    if (!is)
        fprintf(stderr, "thread %s: %s\n", tid, key);
    return is;
}

static bool
all_threads_are(const char *uids, const char *gids)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    bool are = true;

    CHECK(dir);
    while ((entry = readdir(dir)))
        if (*entry->d_name != '.')
            are &= status_is(entry->d_name, "Uid:", uids) &&
                   status_is(entry->d_name, "Gid:", gids) &&
                   status_is(entry->d_name, "CapPrm:", "\t0000000000000000\n");
    closedir(dir);
    return are;
}

static bool
all_are_nobody(void)
{
    return all_threads_are("\t65534\t65534\t65534\t65534\n",
                           "\t65534\t65534\t65534\t65534\n");
}

static void
set_capabilities(uint32_t which)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{which, which, 0}, {0, 0, 0}};

    CHECK(!syscall(SYS_capset, &head, data));
}

/* As setpriv does it: the user first, with a capability kept for the rest. A
 * thread without that could do the first step and not the second. */
static void
drop_user_first(void)
{
    CHECK(!prctl(PR_SET_KEEPCAPS, 1));
    CHECK(!setresuid(NOBODY, NOBODY, NOBODY));
    set_capabilities(1u << CAP_SETGID);
    CHECK(!setgroups(0, NULL));
    CHECK(!setresgid(NOBODY, NOBODY, NOBODY));
    set_capabilities(0);
}

static void
drop_group_first(void)
{
    CHECK(!setgroups(0, NULL));
    CHECK(!setgid(NOBODY));
    CHECK(!setuid(NOBODY));
    CHECK(setuid(0) == -1);
    CHECK(setgid(0) == -1);
}

static void
change_back_and_forth(void)
{
    int i;

    for (i = 0; i < 10; i++) {
        CHECK(!seteuid(NOBODY));
        CHECK(geteuid() == NOBODY);
        CHECK(!seteuid(0));
    }
    drop_group_first();
}

static void
enter_user_namespace(void)
{
    CHECK(!unshare(CLONE_NEWUSER) || errno != EINVAL); /* but not permitted */
    _exit(0);
}

static void *
wait_for_end(void *arg)
{
    pause();
    return arg;
}

/* Threads of its own, and a capability kept in one of them. */
static void
drop_with_threads(void)
{
    pthread_t thread;
    int i;

    for (i = 0; i < 5; i++)
        CHECK(!pthread_create(&thread, NULL, wait_for_end, NULL));
    CHECK(!prctl(PR_SET_KEEPCAPS, 1));
    CHECK(!setresgid(NOBODY, NOBODY, NOBODY));
    CHECK(!setresuid(NOBODY, NOBODY, NOBODY));
    set_capabilities(0);
}

/* In a child: each way begins as root. */
static void
try(const char *name, void (*drop)(void))
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (!pid) {
        busy_ms(50); /* some samples, and time for threads of the profiler */
        drop();
        busy_ms(50);
        CHECK(all_are_nobody());
        exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (status)
        fprintf(stderr, "%s: status 0x%x\n", name, status);
    CHECK(!status);
}

int
main(void)
{
    alarm(50);
    if (getuid()) {
        puts("not root");
        return 77;
    }
    try("group first", drop_group_first);
    try("user first", drop_user_first);
    try("back and forth", change_back_and_forth);
    try("with threads", drop_with_threads);
    try("user namespace", enter_user_namespace);
    drop_user_first(); /* the first process, with all its threads */
    busy_ms(50);
    CHECK(all_are_nobody());
    return 0;
}

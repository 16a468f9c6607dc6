/* SPDX-License-Identifier: MIT */
/*
 * While one thread is in execve() the kernel makes no other. A profile that
 * begins just then begins all the same, once the call has failed.
 */
#include "tap.h"

#include <cpprof/cpu.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N_TIMES 100

static char path[] = "/tmp/cpprof-no-program.XXXXXX";
static bool is_over;
static unsigned n_calls;

/* In that call for a part of the time only: of a profile that never finds
 * another moment nothing is claimed. */
static void *
execute(void *arg)
{
    static char *const no_words[] = {path, NULL};

    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        syscall(SYS_execve, path, no_words, no_words + 1);
        __atomic_add_fetch(&n_calls, 1, __ATOMIC_RELEASE);
        usleep(50);
    }
    return arg;
}

/* Neither a program nor a script. */
static void
make_file(void)
{
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, "\1\2\3\4", 4) != 4 || fchmod(fd, 0700))
        bail("%s", path);
    close(fd);
}

int
main(void)
{
    struct cpprof_error error = {.text = ""};
    enum cpprof_status status = CPPROF_OK;
    pthread_t thread;
    int i;

    make_file();
    pthread_create(&thread, NULL, execute, NULL);
    while (!__atomic_load_n(&n_calls, __ATOMIC_ACQUIRE))
        usleep(1000);
    for (i = 0; i < N_TIMES && status == CPPROF_OK; i++) {
        status = cpprof_cpu_start_to_path("/dev/null", NULL, &error);
        if (status == CPPROF_OK)
            status = cpprof_cpu_stop(&error);
    }
    note("%s", error.text);
    check_equal(status, CPPROF_OK, "each profile has begun");
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    unlink(path);
    return check_done();
}

/* SPDX-License-Identifier: MIT */
/* What a plug-in calls of libc is pointed at libc's, beside names of the
 * program's own; by one thread of several that load it at once. */
#include "arch/atomic.h"
#include "collect/entries/libc_names.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder_fixture.h"

enum { THREADS = 2, COPIES = 6, CHILDREN = 300 };

static const char *plug_in; /* a file */

/* The program's own, first in the process. Shown to the loader by the test's
 * link arguments. */
__attribute__((visibility("default"))) int
getsid(int pid);
__attribute__((visibility("default"))) int
getsid(int pid)
{
    return -4242;
}

static unsigned n_there;
static void *inside[COPIES];

static void *
bind_all(void *arg)
{
    unsigned i;

    for (i = 0; i < COPIES; i++) {
        __atomic_add_fetch(&n_there, 1, __ATOMIC_ACQ_REL);
        while (load_acquire(&n_there) < THREADS * (i + 1))
            continue;
        cpprof__libc_names_bind_plug_in(inside[i]);
    }
    return arg;
}

static void
copy(const char *path)
{
    int from = open(plug_in, O_RDONLY), to = creat(path, 0700);
    struct stat status;

    assert_int_equal(fstat(from, &status), 0);
    assert_int_equal(sendfile(to, from, NULL, (size_t)status.st_size),
                     status.st_size);
    close(from);
    close(to);
}

static void
threads_that_bind_one_at_once_do_no_harm(void **state)
{
    pthread_t threads[THREADS];
    char path[64];
    int i, k, status, n_bad = 0;

    (void)state;
    for (i = 0; i < COPIES; i++) {
        snprintf(path, sizeof path, "copy%d.so", i);
        copy(path);
    }
    for (k = 0; k < CHILDREN; k++) {
        pid_t child = fork();

        if (child == 0) {
            for (i = 0; i < COPIES; i++) {
                snprintf(path, sizeof path, "./copy%d.so", i);
                inside[i] = dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL),
                                  "cpprof__symbolizer");
                if (!inside[i])
                    _exit(1);
            }
            for (i = 0; i < THREADS; i++)
                pthread_create(&threads[i], NULL, bind_all, NULL);
            for (i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
            _exit(0);
        }
        waitpid(child, &status, 0);
        n_bad += status != 0;
    }
    assert_int_equal(n_bad, 0);
}

static char folder[] = "/tmp/cpprof-plug-ins-XXXXXX";

static int
make_folder(void **state)
{
    (void)state;
    return !plug_in || !mkdtemp(folder) || chdir(folder);
}

static int
remove_folder(void **state)
{
    (void)state;
    folder_files(folder, true);
    return rmdir(folder);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_bind_one_at_once_do_no_harm),
    };

    plug_in = argc > 1 ? realpath(argv[1], NULL) : NULL;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* SPDX-License-Identifier: MIT */
/*
 * Preloaded in place of the library: before main() a thread loads that as a
 * debugger would have it loaded, $HOST_LIBRARY, and attaches with $HOST_ATTACH.
 * With $HOST_CYCLES it goes on in the background: out, and in again, so many
 * times, while the host runs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As who attaches makes it (src/cli/attach); libc keeps it for the next thread,
 * and it counts under a limit on data. */
#define STACK_BYTES (1024 * 1024)

static int (*attach)(const char *config, char *message, size_t size);
static int (*detach)(char *message, size_t size);
static pthread_barrier_t is_attached;

/* Where the host leaves no memory, or is built with ThreadSanitizer, there is
 * no profile. */
static void
must(int code, const char *what, const char *message)
{
    if (!code || code == ENOMEM || strstr(message, "ThreadSanitizer"))
        return;
    fprintf(stderr, "%s: %d %s\n", what, code, message);
    _exit(99);
}

static void *
be_late(void *words)
{
    const char *cycles = getenv("HOST_CYCLES");
    void *library = dlopen(getenv("HOST_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    char message[200] = "";
    int n = cycles ? atoi(cycles) : 0;

    must(!library, "dlopen", library ? "" : dlerror());
    *(void **)&attach = dlsym(library, "cpprof_attach");
    *(void **)&detach = dlsym(library, "cpprof_detach");
    must(attach(words, message, sizeof message), "attach", message);
    pthread_barrier_wait(&is_attached);
    while (n--) {
        must(detach(message, sizeof message), "detach", message);
        must(attach(words, message, sizeof message), "attach again", message);
    }
    return NULL;
}

/* The thread takes no signal that is meant for the host's, but that of a
 * filter. */
__attribute__((constructor)) static void
begin(void)
{
    sigset_t all, before;
    pthread_attr_t small;
    pthread_t thread;
    int failed;

    if (!getenv("HOST_ATTACH"))
        return;
    pthread_barrier_init(&is_attached, NULL, 2);
    sigfillset(&all);
    sigdelset(&all, SIGSYS);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    failed = pthread_create(&thread, &small, be_late, getenv("HOST_ATTACH"));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return;
    pthread_barrier_wait(&is_attached);
    if (getenv("HOST_CYCLES"))
        pthread_detach(thread);
    else
        pthread_join(thread, NULL);
}

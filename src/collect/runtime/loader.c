/* SPDX-License-Identifier: MIT */
#include "collect/runtime/loader.h"

#include "collect/signal/unwind/unwind.h"

#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_child; /* made by fork, with the parent's modules */

void
cpprof__loader_refresh(void)
{
    if (is_child)
        return;
    pthread_mutex_lock(&lock);
    cpprof__unwind_refresh_modules();
    pthread_mutex_unlock(&lock);
}

void
cpprof__loader_fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

void
cpprof__loader_fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

void
cpprof__loader_fork_child(void)
{
    is_child = true;
    pthread_mutex_init(&lock, NULL);
}

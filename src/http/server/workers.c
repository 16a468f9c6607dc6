/* SPDX-License-Identifier: MIT */
/* The worker threads that answer requests: started on demand, ended after some
 * time without work. */
#include "http/server/server.h"

#include <errno.h>
#include <time.h>

/* Tunable. How long a thread waits for work. */
#define PATIENCE_SECONDS 5

static struct cpprof__http_request *
take(struct cpprof__http_server *s)
{
    struct cpprof__http_request *r = s->first;

    if (!r)
        return NULL;
    s->first = r->next;
    if (!s->first)
        s->last = NULL;
    s->n_queued--;
    r->next = NULL;
    return r;
}

/* NULL: nothing came, or it is over. */
static struct cpprof__http_request *
wait_for_work(struct cpprof__http_server *s)
{
    struct cpprof__http_request *r = take(s);
    struct timespec until;
    int failed = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_SECONDS;
    s->n_idle_workers++;
    while (!r && !s->stops && failed != ETIMEDOUT && !s->host->pauses()) {
        failed = pthread_cond_timedwait(&s->work, &s->lock, &until);
        r = take(s);
    }
    s->n_idle_workers--;
    return r;
}

static bool
work(void *arg)
{
    struct cpprof__http_server *s = arg;
    struct cpprof__http_request *r;

    pthread_mutex_lock(&s->lock);
    while ((r = wait_for_work(s))) {
        pthread_mutex_unlock(&s->lock);
        cpprof__http_answer(r);
        pthread_mutex_lock(&s->lock);
    }
    if (!s->stops && s->host->pauses()) {
        pthread_mutex_unlock(&s->lock);
        return true;
    }
    s->n_workers--;
    s->n_threads--;
    pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->lock);
    return false;
}

static int
start_worker(struct cpprof__http_server *s)
{
    int failed = s->host->start_thread(work, s);

    if (!failed) {
        s->n_workers++;
        s->n_threads++;
    }
    return failed;
}

int
cpprof__http_queue(struct cpprof__http_request *r)
{
    struct cpprof__http_server *s = r->server;
    int failed = 0;

    if (s->n_queued >= s->n_idle_workers && s->n_workers < s->max_workers)
        failed = start_worker(s);
    if (failed && !s->n_workers)
        return failed;
    r->next = NULL;
    if (s->last)
        s->last->next = r;
    else
        s->first = r;
    s->last = r;
    s->n_queued++;
    pthread_cond_signal(&s->work);
    return 0;
}

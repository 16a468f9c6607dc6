/* SPDX-License-Identifier: MIT */
/* Threads that answer: made when one is needed, gone when none is for a while.
 */
#include "http/server/server.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Tunable. How long a thread waits for work. */
#define PATIENCE_SECONDS 5

void
cpprof__http_wake(struct cpprof__http_server *s)
{
    eventfd_write(s->wake_fd, 1);
}

static struct cpprof__http_connection *
take(struct cpprof__http_server *s)
{
    struct cpprof__http_connection *c = s->first;

    if (!c)
        return NULL;
    s->first = c->next;
    if (!s->first)
        s->last = NULL;
    s->n_queued--;
    c->next = NULL;
    return c;
}

/* NULL: nothing came, or it is over. */
static struct cpprof__http_connection *
wait_for_work(struct cpprof__http_server *s)
{
    struct cpprof__http_connection *c = take(s);
    struct timespec until;
    int failed = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_SECONDS;
    s->n_idle_workers++;
    while (!c && !s->stops && failed != ETIMEDOUT) {
        failed = pthread_cond_timedwait(&s->work, &s->lock, &until);
        c = take(s);
    }
    s->n_idle_workers--;
    return c;
}

static void
work(void *arg)
{
    struct cpprof__http_server *s = arg;
    struct cpprof__http_connection *c;

    pthread_mutex_lock(&s->lock);
    while ((c = wait_for_work(s))) {
        pthread_mutex_unlock(&s->lock);
        cpprof__http_answer(c);
        pthread_mutex_lock(&s->lock);
        c->state = CPPROF__HTTP_DONE;
        cpprof__http_wake(s);
    }
    s->n_workers--;
    s->n_threads--;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
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
cpprof__http_queue(struct cpprof__http_connection *c)
{
    struct cpprof__http_server *s = c->server;
    int failed = 0;

    if (s->n_queued >= s->n_idle_workers && s->n_workers < s->max_workers)
        failed = start_worker(s);
    if (failed && !s->n_workers)
        return failed;
    c->next = NULL;
    if (s->last)
        s->last->next = c;
    else
        s->first = c;
    s->last = c;
    s->n_queued++;
    pthread_cond_signal(&s->work);
    return 0;
}

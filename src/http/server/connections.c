/* SPDX-License-Identifier: MIT */
/* Which connections there are, and which has to go. */
#include "http/server/server.h"

#include "arch/atomic.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A reader that has taken nothing for so long may be left. */
#define STALLED_NS 1000000000u

uint64_t
cpprof__http_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void
cpprof__http_open(struct cpprof__http_server *s, int fd)
{
    struct cpprof__http_connection *c = calloc(1, sizeof *c);
    char *input = malloc(CPPROF__INPUT);
    int on = 1;

    if (!c || !input) {
        free(c);
        free(input);
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->fd = fd;
    c->input = input;
    c->server = s;
    c->since_ns = cpprof__http_now();
    c->deadline_ns =
        c->since_ns + s->options.header_seconds * UINT64_C(1000000000);
    s->connections[s->n_connections++] = c;
}

void
cpprof__http_close_one(struct cpprof__http_connection *c)
{
    const struct linger reset = {1, 0};
    struct cpprof__http_server *s = c->server;
    size_t i = 0;

    while (s->connections[i] != c)
        i++;
    s->connections[i] = s->connections[--s->n_connections];
    /* What was cut short must not look whole. */
    if (c->is_cut)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(c->fd);
    s->n_bodies -= c->body_room;
    free(c->body);
    free(c->input);
    free(c);
}

/* Who goes first: the higher. 0: stays. */
static int
rank(const struct cpprof__http_connection *c)
{
    if (c->state == CPPROF__HTTP_LINGER)
        return 3;
    if (c->state == CPPROF__HTTP_SERVED || c->state == CPPROF__HTTP_DONE)
        return 0;
    return c->is_idle ? 2 : 1;
}

/* Their workers will see it. */
void
cpprof__http_leave_stalled(struct cpprof__http_server *s)
{
    uint64_t now = cpprof__http_now();
    size_t i;

    for (i = 0; i < s->n_connections; i++) {
        uint64_t stalled = load_relaxed(&s->connections[i]->stalled_ns);

        if (stalled && now > stalled + STALLED_NS)
            shutdown(s->connections[i]->fd, SHUT_RDWR);
    }
}

bool
cpprof__http_evict(struct cpprof__http_server *s)
{
    struct cpprof__http_connection *worst = NULL;
    size_t i;

    for (i = 0; i < s->n_connections; i++) {
        struct cpprof__http_connection *c = s->connections[i];
        int worse = rank(c) - (worst ? rank(worst) : 0);

        if (worse > 0 || (!worse && worst && c->since_ns < worst->since_ns))
            worst = c;
    }
    if (!worst) {
        cpprof__http_leave_stalled(s);
        return false;
    }
    cpprof__http_close_one(worst);
    return true;
}

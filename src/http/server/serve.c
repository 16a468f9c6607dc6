/* SPDX-License-Identifier: MIT */
/*
 * The server's thread. It waits in poll() for new connections, for
 * libmicrohttpd, for workers that have news, for clients that leave, and for
 * the next deadline; then it does one round of each.
 *
 * libmicrohttpd does not look at the sockets of suspended requests, so this
 * thread does. When the server stops, captures end at once, answers that are
 * being written are finished within STOP_NS, and what remains is closed.
 *
 * Invariants: only this thread calls MHD_run(); see server.h for who closes
 * what.
 */
#include "http/server/server.h"

#include "arch/atomic.h"
#include "http/server/high_descriptors.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* How often the thread looks whether it is alone: as all threads of ours,
 * CPPROF__OWN_LOOK_NS. */
#define LOOK_MS 100

/* The pause after accept() failed for want of descriptors. */
#define NO_DESCRIPTORS_NS 100000000u

/* The most connections to accept before the others are served again. */
#define ACCEPTED_AT_ONCE 64

/* A stopped server waits so long for readers of its last answers. */
#define STOP_NS 2000000000u

/* ---- libmicrohttpd --------------------------------------------------------
 */

static void
on_connection(void *server, struct MHD_Connection *mhd, void **context,
              enum MHD_ConnectionNotificationCode what)
{
    struct cpprof__http_connection *c = *context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        c = cpprof__http_connection_of(
            server,
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)
                ->connect_fd);
        *context = c;
        if (c)
            c->mhd = mhd;
    } else if (c) {
        cpprof__http_forget(c);
    }
}

/* Of each parameter of a query libmicrohttpd makes an element of a list that
 * nobody needs, in the memory of the connection; if that is full, the client
 * gets no answer. The text is its own buffer, which it changes itself: let
 * there be one parameter. */
static void
join_parameters(const char *target)
{
    char *at = (char *)(uintptr_t)target;

    while ((at = strchr(at, '&')))
        *at = '+';
}

/* Called with the target as soon as the request line is complete, before
 * anything else. */
static void *
on_target(void *server, const char *target, struct MHD_Connection *mhd)
{
    struct cpprof__http_connection *c =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
            ->socket_context;
    void *request = c ? cpprof__http_request(c, target) : NULL;

    (void)server;
    join_parameters(target);
    return request;
}

static enum MHD_Result
on_request(void *server, struct MHD_Connection *mhd, const char *url,
           const char *method, const char *version, const char *data, size_t *n,
           void **request)
{
    (void)server;
    (void)mhd;
    (void)url; /* without its query */
    return *request ? cpprof__http_take(*request, method, version, data, n)
                    : MHD_NO;
}

static void
on_completed(void *server, struct MHD_Connection *mhd, void **request,
             enum MHD_RequestTerminationCode how)
{
    (void)server;
    (void)mhd;
    (void)how;
    if (*request)
        cpprof__http_request_done(*request);
    *request = NULL;
}

/* Targets are decoded by us, and queries not at all. */
static size_t
leave_as_it_is(void *server, struct MHD_Connection *mhd, char *text)
{
    (void)server;
    (void)mhd;
    return strlen(text);
}

/* libmicrohttpd ends the process where it thinks that a call cannot fail: that
 * which takes a descriptor out of its epoll set does when the program has just
 * closed it. What happens on our thread ends the server only. */
static jmp_buf panicked;
static pthread_t serving;
static bool is_serving;

static void
on_panic(void *none, const char *file, unsigned line, const char *why)
{
    (void)none;
    if (is_serving && pthread_equal(serving, pthread_self()))
        longjmp(panicked, 1);
    fprintf(stderr, "Fatal error in GNU libmicrohttpd %s:%u: %s\n", file, line,
            why);
    abort();
}

/* It has no threads, signals, output and socket of its own. It calls back only
 * inside cpprof__http_serve(), under the lock. */
struct MHD_Daemon *
cpprof__http_daemon(struct cpprof__http_server *s)
{
    MHD_set_panic_func(on_panic, NULL);
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
        NULL, NULL, on_request, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_as_it_is, s, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)s->options.max_connections + 1,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->pool, MHD_OPTION_END);
}

/* ---- accepting ------------------------------------------------------------
 */

/* False: there are no more now. */
static bool
accept_one(struct cpprof__http_server *s)
{
    struct sockaddr_storage peer;
    socklen_t n = sizeof peer;
    int fd = accept4(s->listen_fd, (struct sockaddr *)&peer, &n,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        /* The process or the system has no descriptor left: wait until some are
         * closed. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
            errno == ENOMEM) {
            cpprof__http_evict(s);
            s->accept_ns = cpprof__now_ns(CLOCK_MONOTONIC) + NO_DESCRIPTORS_NS;
        }
        return errno == ECONNABORTED || errno == EINTR;
    }
    cpprof__http_note_number(&s->came, fd);
    fd = cpprof__descriptor_high(fd);
    cpprof__http_note_number(&s->moved, fd);
    if (fd >= 0)
        cpprof__http_open(s, fd, (struct sockaddr *)&peer, n);
    return true;
}

/* Evict a connection only if another one is waiting. */
static bool
has_room(struct cpprof__http_server *s)
{
    if (s->n_connections < s->options.max_connections || cpprof__http_evict(s))
        return true;
    /* All are being served: the socket would wake us for nothing. */
    s->accept_ns = cpprof__now_ns(CLOCK_MONOTONIC) + NO_DESCRIPTORS_NS;
    return false;
}

static void
accept_some(struct cpprof__http_server *s)
{
    struct pollfd comes = {s->listen_fd, POLLIN, 0};
    unsigned n = 0;

    while (n++ < ACCEPTED_AT_ONCE && poll(&comes, 1, 0) > 0 && has_room(s) &&
           accept_one(s)) {
    }
}

/* ---- one round ------------------------------------------------------------
 */

static uint64_t
earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool
has_deadline(const struct cpprof__http_connection *c)
{
    return c->state != CPPROF__HTTP_SERVED && !c->is_shut;
}

/* libmicrohttpd does not look at sockets of requests that are being served. */
static bool
may_leave(const struct cpprof__http_connection *c)
{
    return c->request && c->request->is_suspended && !c->request->has_left;
}

/* Fill in what to wait for, at each connection's index; returns for how many
 * milliseconds. */
static int
prepare(struct cpprof__http_server *s, struct pollfd *fds)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC),
             until = now + LOOK_MS * 1000000u;
    bool can_accept = s->accept_ns <= now;
    MHD_UNSIGNED_LONG_LONG ms;
    size_t i;

    fds[CPPROF__HTTP_LISTEN] =
        (struct pollfd){can_accept ? s->listen_fd : -1, POLLIN, 0};
    fds[CPPROF__HTTP_WAKE] = (struct pollfd){s->wake_fd, POLLIN, 0};
    fds[CPPROF__HTTP_EPOLL] = (struct pollfd){s->epoll_fd, POLLIN, 0};
    if (!can_accept)
        until = earlier(until, s->accept_ns);
    if (MHD_get_timeout(s->mhd, &ms) == MHD_YES && !ms)
        until =
            s->n_rounds < CPPROF__ROUNDS ? 0 : now + CPPROF__LULL_MS * 1000000u;
    for (i = 0; i < s->n_connections; i++) {
        struct cpprof__http_connection *c = s->connections[i];

        fds[CPPROF__HTTP_OWN + i] =
            (struct pollfd){may_leave(c) ? c->fd : -1, POLLRDHUP, 0};
        if (has_deadline(c))
            until = earlier(until, c->deadline_ns);
    }
    return until > now ? (int)((until - now + 999999) / 1000000) : 0;
}

/* Tell the worker that its client has left, and the connection that its worker
 * has something for it. */
static void
look_at(struct cpprof__http_connection *c, const struct pollfd *fd)
{
    struct cpprof__http_request *r = c->request;

    if (fd->revents && may_leave(c)) {
        /* A server that stops lets answers finish, and has shut the socket
         * itself. */
        r->has_left = !c->server->stops || c->is_shut;
        pthread_cond_signal(&r->changed);
    }
    if (r && r->is_suspended && cpprof__http_answer_has_news(r)) {
        r->is_suspended = false;
        MHD_resume_connection(c->mhd);
    }
}

static void
look_at_all(struct cpprof__http_server *s, const struct pollfd *fds)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
    size_t i;

    for (i = 0; i < s->n_connections; i++) {
        struct cpprof__http_connection *c = s->connections[i];

        look_at(c, &fds[CPPROF__HTTP_OWN + i]);
        if (has_deadline(c) && c->deadline_ns <= now)
            cpprof__http_shut(c, SHUT_RDWR);
    }
}

/* False: its descriptors are not ours any more. */
static bool
round_(struct cpprof__http_server *s)
{
    struct pollfd *fds = s->fds;
    int ms = prepare(s, fds);
    size_t n = s->n_connections + CPPROF__HTTP_OWN;
    char bytes[64];
    int n_ready;

    pthread_mutex_unlock(&s->lock);
    n_ready = poll(fds, n, ms);
    pthread_mutex_lock(&s->lock);
    if (!cpprof__http_is_intact(s))
        return false;
    if (fds[CPPROF__HTTP_WAKE].revents)
        while (read(s->wake_fd, bytes, sizeof bytes) == sizeof bytes) {
        }
    look_at_all(s, fds);
    s->n_rounds = n_ready > 0 ? 0 : s->n_rounds + 1;
    MHD_run(s->mhd);
    cpprof__http_forget_refused(s);
    if (s->first && s->n_workers == s->max_workers)
        cpprof__http_drop_stalled(s);
    if (fds[CPPROF__HTTP_LISTEN].revents)
        accept_some(s);
    return true;
}

/* ---- the end --------------------------------------------------------------
 */

static void
shut_all(struct cpprof__http_server *s, bool served_too)
{
    size_t i;

    for (i = 0; i < s->n_connections; i++) {
        struct cpprof__http_connection *c = s->connections[i];

        if (c->request && c->request->is_served)
            pthread_cond_signal(&c->request->changed);
        if (!c->is_shut &&
            (served_too || !c->request || !c->request->is_served))
            cpprof__http_shut(c, SHUT_RDWR);
    }
}

static bool
is_sending(const struct cpprof__http_server *s)
{
    size_t i;

    for (i = 0; i < s->n_connections; i++)
        if (s->connections[i]->request && s->connections[i]->request->is_served)
            return true;
    return false;
}

/* Abandon what libmicrohttpd holds, and call it no more: it cannot close a
 * descriptor that is not there, and may have a lock of its own. */
static void
abandon(struct cpprof__http_server *s)
{
    size_t i;

    cpprof__http_close_own(s);
    s->mhd = NULL;
    for (i = 0; i < s->n_connections; i++) {
        struct cpprof__http_request *r = s->connections[i]->request;

        if (r) {
            r->connection = NULL;
            pthread_cond_signal(&r->changed);
        }
    }
    s->n_connections = 0;
    pthread_cond_broadcast(&s->work);
    while (s->n_workers)
        pthread_cond_wait(&s->ended, &s->lock);
}

/* Finish the answers in progress; captures end now. False: the descriptors are
 * not ours any more. */
static bool
wind_up(struct cpprof__http_server *s)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + STOP_NS;

    if (!cpprof__http_is_intact(s))
        return false;
    close(s->listen_fd);
    s->listen_fd = -1;
    pthread_cond_broadcast(&s->work);
    while (s->n_workers || is_sending(s)) {
        shut_all(s, cpprof__now_ns(CLOCK_MONOTONIC) >= until);
        if (!round_(s))
            return false;
    }
    MHD_stop_daemon(s->mhd);
    s->mhd = NULL;
    return true;
}

bool
cpprof__http_serve(void *server)
{
    struct cpprof__http_server *s = server;
    volatile bool is_intact = true;

    prctl(PR_SET_NAME, "cpprof-http");
    pthread_mutex_lock(&s->lock);
    serving = pthread_self();
    is_serving = true;
    if (setjmp(panicked)) {
        is_intact = false;
        s->stops = true;
    }
    while (!s->stops) {
        is_intact = round_(s);
        s->stops |= !is_intact || s->host->is_alone();
        if (!s->stops && !s->n_answers && s->host->pauses()) {
            is_serving = false;
            pthread_mutex_unlock(&s->lock);
            return true;
        }
    }
    if (!is_intact || !wind_up(s))
        abandon(s);
    is_serving = false;
    s->n_threads--;
    pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->lock);
    return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * The thread that accepts and reads, and the plug-in's one symbol.
 */
#include "http/server/server.h"

#include "arch/atomic.h"
#include "base/status.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* How often the thread looks whether it is alone. */
#define LOOK_MS 1000

/* Without descriptors, the next try. */
#define NO_DESCRIPTORS_NS 100000000u

/* Connections that are accepted before what the others sent is looked at. */
#define ACCEPTED_AT_ONCE 64

/* A stopped server waits so long for readers of its last answers. */
#define STOP_NS 2000000000u

static struct cpprof__http_server *server; /* NULL: none runs */

/* ---- accepting ------------------------------------------------------------
 */

/* False: no more now. */
static bool
accept_one(struct cpprof__http_server *s)
{
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        /* Full for the process or the system: others have to go first. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
            errno == ENOMEM) {
            cpprof__http_evict(s);
            s->accept_ns = cpprof__http_now() + NO_DESCRIPTORS_NS;
        }
        return errno == ECONNABORTED || errno == EINTR;
    }
    cpprof__http_open(s, fd);
    return true;
}

static bool
has_room(struct cpprof__http_server *s)
{
    return s->n_connections < s->options.max_connections ||
           cpprof__http_evict(s);
}

static void
accept_some(struct cpprof__http_server *s)
{
    struct pollfd comes = {s->listen_fd, POLLIN, 0};
    unsigned n = 0;

    /* Room is made when somebody is there to have it. */
    while (n++ < ACCEPTED_AT_ONCE && poll(&comes, 1, 0) > 0 && has_room(s) &&
           accept_one(s)) {
    }
}

/* ---- one round ------------------------------------------------------------
 */

static bool
is_read(const struct cpprof__http_connection *c)
{
    return c->state != CPPROF__HTTP_SERVED && c->state != CPPROF__HTTP_DONE;
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What to wait for; returns for how many milliseconds. Places 0 and 1 are of
 * the socket that listens and of the one that wakes. */
static int
prepare(struct cpprof__http_server *s, struct pollfd *fds)
{
    uint64_t now = cpprof__http_now(), until = now + LOOK_MS * 1000000u;
    bool can_accept = s->accept_ns <= now;
    size_t i;

    fds[0] = (struct pollfd){can_accept ? s->listen_fd : -1, POLLIN, 0};
    fds[1] = (struct pollfd){s->wake_fd, POLLIN, 0};
    if (!can_accept)
        until = earlier(until, s->accept_ns);
    for (i = 0; i < s->n_connections; i++) {
        struct cpprof__http_connection *c = s->connections[i];

        fds[i + 2] = (struct pollfd){is_read(c) ? c->fd : -1, POLLIN, 0};
        if (is_read(c))
            until = earlier(until, c->deadline_ns);
    }
    return until > now ? (int)((until - now + 999999) / 1000000) : 0;
}

/* From the last to the first: closing one puts one that was seen in its place.
 */
static void
look_at_all(struct cpprof__http_server *s, const struct pollfd *fds)
{
    uint64_t now = cpprof__http_now();
    size_t i;

    for (i = s->n_connections; i--;) {
        struct cpprof__http_connection *c = s->connections[i];

        if (c->state == CPPROF__HTTP_DONE)
            cpprof__http_served(c);
        else if (!is_read(c))
            continue;
        else if (fds[i + 2].revents)
            cpprof__http_readable(c);
        else if (c->deadline_ns <= now)
            cpprof__http_close_one(c);
    }
}

/* All are being served: the listening socket would wake us for nothing. */
static void
pause_if_full(struct cpprof__http_server *s)
{
    if (s->n_connections >= s->options.max_connections &&
        !cpprof__http_evict(s))
        s->accept_ns = cpprof__http_now() + NO_DESCRIPTORS_NS;
}

static void
round_(struct cpprof__http_server *s, struct pollfd *fds)
{
    int ms = prepare(s, fds);
    size_t n = s->n_connections + 2;
    eventfd_t ignored;

    pthread_mutex_unlock(&s->lock);
    poll(fds, n, ms);
    pthread_mutex_lock(&s->lock);
    if (fds[1].revents)
        eventfd_read(s->wake_fd, &ignored);
    look_at_all(s, fds);
    if (s->first && s->n_workers == s->max_workers)
        cpprof__http_leave_stalled(s);
    if (fds[0].revents) {
        pause_if_full(s);
        accept_some(s);
    }
}

/* ---- the end --------------------------------------------------------------
 */

static void
shut_all(struct cpprof__http_server *s, int how)
{
    size_t i;

    for (i = s->n_connections; i--;) {
        struct cpprof__http_connection *c = s->connections[i];

        if (is_read(c))
            cpprof__http_close_one(c);
        else
            shutdown(c->fd, how);
    }
}

/* What is being answered is answered: captures end now. */
static void
wind_up(struct cpprof__http_server *s)
{
    uint64_t until = cpprof__http_now() + STOP_NS;
    struct timespec t = {(time_t)(until / 1000000000u),
                         (long)(until % 1000000000u)};

    close(s->listen_fd);
    s->listen_fd = -1;
    shut_all(s, SHUT_RD);
    pthread_cond_broadcast(&s->work);
    while (s->n_workers)
        if (pthread_cond_timedwait(&s->ended, &s->lock, &t)) {
            shut_all(s, SHUT_RDWR);
            t.tv_sec++;
        }
    while (s->n_connections)
        cpprof__http_close_one(s->connections[0]);
}

static void
run(void *arg)
{
    struct cpprof__http_server *s = arg;
    struct pollfd *fds;

    prctl(PR_SET_NAME, "cpprof-http");
    fds = calloc(s->options.max_connections + 2, sizeof *fds);
    pthread_mutex_lock(&s->lock);
    while (fds && !s->stops) {
        round_(s, fds);
        if (s->host->is_alone())
            store_release(&s->stops, true);
    }
    store_release(&s->stops, true);
    wind_up(s);
    s->is_over = true;
    s->n_threads--;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    free(fds);
}

/* ---- the plug-in ----------------------------------------------------------
 */

static uint32_t
or_default(uint32_t given, uint32_t otherwise, uint32_t most)
{
    uint32_t v = given ? given : otherwise;

    return v < most ? v : most;
}

/* Unless it is told otherwise the server leaves the program most of its
 * descriptors, whoever connects. */
static uint32_t
default_connections(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= 4 * 256)
        return 256;
    return files.rlim_cur >= 4 * 4 ? (uint32_t)files.rlim_cur / 4 : 4;
}

static void
set_defaults(struct cpprof_http_options *o)
{
    o->max_connections = or_default(o->max_connections, default_connections(),
                                    CPPROF__CONNECTED);
    o->max_captures =
        or_default(o->max_captures, 128, CPPROF__WORKERS - CPPROF__OTHERS);
    o->max_body = or_default(o->max_body, 1u << 20, 1u << 30);
    o->header_seconds = or_default(o->header_seconds, 10, 86400);
    o->max_seconds = or_default(o->max_seconds, 3600, UINT32_MAX);
}

static void
free_server(struct cpprof__http_server *s)
{
    if (!s)
        return;
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    pthread_cond_destroy(&s->ended);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    free(s->connections);
    free(s->token);
    free(s);
}

static struct cpprof__http_server *
make_server(const struct cpprof_http_options *options,
            const struct cpprof__http_host *host)
{
    struct cpprof__http_server *s = calloc(1, sizeof *s);
    pthread_condattr_t monotonic;

    if (!s)
        return NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, &monotonic);
    pthread_cond_init(&s->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    s->pid = getpid();
    s->listen_fd = -1;
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->host = host;
    s->options = *options;
    set_defaults(&s->options);
    s->max_workers = s->options.max_captures + CPPROF__OTHERS;
    s->connections = calloc(s->options.max_connections, sizeof *s->connections);
    if (options->token)
        s->token = strdup(options->token);
    if (s->connections && (!options->token || s->token) && s->wake_fd >= 0)
        return s;
    free_server(s);
    return NULL;
}

static enum cpprof_status
check(const struct cpprof__http_address *address, const char *text,
      const struct cpprof_http_options *options, struct cpprof_error *error)
{
    if (options->token && !*options->token)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "http: an empty token is none");
    if (!cpprof__http_address_is_here(address) && !options->token &&
        !(options->flags & CPPROF_HTTP_INSECURE))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "http: other machines reach %.80s: a token is "
                            "needed, or to say insecure",
                            text);
    return CPPROF_OK;
}

/* The program may be in another folder when the file is removed. */
static void
note_path(struct cpprof__http_server *s)
{
    const char *path = s->address.local.sun_path;
    char folder[PATH_MAX - sizeof s->address.local.sun_path - 1];

    if (s->address.any.sa_family != AF_UNIX)
        return;
    if (*path == '/')
        strcpy(s->path, path);
    else if (getcwd(folder, sizeof folder))
        snprintf(s->path, sizeof s->path, "%s/%s", folder, path);
}

static enum cpprof_status
open_server(struct cpprof__http_server *s, const char *text,
            struct cpprof_error *error)
{
    enum cpprof_status status =
        cpprof__http_address_listen(&s->address, text, &s->listen_fd, error);
    int failed;

    if (status != CPPROF_OK)
        return status;
    cpprof__http_address_text(&s->address, s->address_text,
                              sizeof s->address_text);
    s->guards_names = s->address.any.sa_family != AF_UNIX &&
                      cpprof__http_address_is_here(&s->address) && !s->token &&
                      !(s->options.flags & CPPROF_HTTP_INSECURE);
    note_path(s);
    s->n_threads = 1;
    failed = s->host->start_thread(run, s);
    if (!failed)
        return CPPROF_OK;
    unlink(s->path);
    return cpprof__fail(error, CPPROF_SYSTEM, failed,
                        "http: pthread_create: %s", strerror(failed));
}

static enum cpprof_status
start(const char *address, const struct cpprof_http_options *options,
      const struct cpprof__http_host *host, struct cpprof_error *error)
{
    struct cpprof__http_address where;
    struct cpprof__http_server *s;
    enum cpprof_status status;

    if (server)
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "http: listens already at %s",
                            server->address_text);
    status = cpprof__http_address_parse(address, &where, error);
    if (status == CPPROF_OK)
        status = check(&where, address, options, error);
    if (status != CPPROF_OK)
        return status;
    s = make_server(options, host);
    if (!s)
        return cpprof__fail(error, CPPROF_NOMEM, 0, "http: out of memory");
    s->address = where;
    status = open_server(s, address, error);
    if (status == CPPROF_OK)
        server = s;
    else
        free_server(s);
    return status;
}

/* The one of this process: a child that was made behind our back (vfork, clone)
 * has its parent's in its memory. Safety: AS. */
static struct cpprof__http_server *
here(void)
{
    return server && server->pid == getpid() ? server : NULL;
}

static size_t
address_(char *address, size_t n)
{
    const char *text = here() ? server->address_text : "";
    size_t length = strlen(text);

    if (n) {
        size_t copied = length < n ? length : n - 1;

        memcpy(address, text, copied);
        address[copied] = 0;
    }
    return length;
}

static void
end(void)
{
    if (here() && *server->path)
        unlink(server->path);
}

static void
stop(void)
{
    struct cpprof__http_server *s = here();

    if (!s)
        return;
    end();
    pthread_mutex_lock(&s->lock);
    store_release(&s->stops, true);
    cpprof__http_wake(s);
    while (s->n_threads)
        pthread_cond_wait(&s->ended, &s->lock);
    pthread_mutex_unlock(&s->lock);
    server = NULL;
    free_server(s);
}

static void
fork_prepare(void)
{
    if (server)
        pthread_mutex_lock(&server->lock);
}

static void
fork_parent(void)
{
    if (server)
        pthread_mutex_unlock(&server->lock);
}

/* What the parent's threads may have been in is left as it is. */
static void
fork_child(void)
{
    struct cpprof__http_server *s = server;
    size_t i;

    server = NULL;
    if (!s)
        return;
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    close(s->wake_fd);
    for (i = 0; i < s->n_connections; i++)
        close(s->connections[i]->fd);
    pthread_mutex_unlock(&s->lock);
}

extern const struct cpprof__http_server_ops cpprof__http_server;

CPPROF_API const struct cpprof__http_server_ops cpprof__http_server = {
    CPPROF__HTTP_ABI, start,       address_,   stop, end,
    fork_prepare,     fork_parent, fork_child,
};

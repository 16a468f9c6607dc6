/* SPDX-License-Identifier: MIT */
/*
 * The plug-in's one symbol: starts and stops the server, and knows what to do
 * at a fork.
 *
 * There is at most one server, and `server` belongs to whoever made the call:
 * the host (src/http/listen.c) calls one operation at a time. A forked child
 * never frees what the parent's threads may have been using; it closes the
 * descriptors and forgets the rest.
 */
#include "http/server/server.h"

#include "base/status.h"
#include "http/server/high_descriptors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct cpprof__http_server *server; /* NULL: none runs */

/* ---- making it ------------------------------------------------------------
 */

static uint32_t
or_default(uint32_t given, uint32_t otherwise, uint32_t most)
{
    uint32_t v = given ? given : otherwise;

    return v < most ? v : most;
}

/* By default the server leaves most descriptors to the program, however many
 * clients connect. */
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

void
cpprof__http_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
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
    if (s->waker_fd >= 0)
        close(s->waker_fd);
    if (s->mhd)
        MHD_stop_daemon(s->mhd);
    pthread_cond_destroy(&s->ended);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    free(s->fds);
    free(s->connections);
    free(s->token);
    free(s);
}

static struct cpprof__http_server *
make_server(const struct cpprof_http_options *options,
            const struct cpprof__http_host *host)
{
    struct cpprof__http_server *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    cpprof__http_condition(&s->work);
    cpprof__http_condition(&s->ended);
    s->pid = getpid();
    s->listen_fd = s->wake_fd = s->waker_fd = s->epoll_fd = s->itc_fd = -1;
    s->host = host;
    s->options = *options;
    set_defaults(&s->options);
    s->max_workers = s->options.max_captures + CPPROF__OTHERS;
    s->pool = host->is_private ? CPPROF__PAGE_POOL : CPPROF__POOL;
    s->connections = calloc(s->options.max_connections, sizeof *s->connections);
    s->fds =
        calloc(s->options.max_connections + CPPROF__HTTP_OWN, sizeof *s->fds);
    if (options->token)
        s->token = strdup(options->token);
    if (s->connections && s->fds && (!options->token || s->token) &&
        cpprof__http_make_wake(s))
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
    struct stat st;

    if (s->address.any.sa_family != AF_UNIX)
        return;
    if (*path == '/')
        strcpy(s->path, path);
    else if (getcwd(folder, sizeof folder))
        snprintf(s->path, sizeof s->path, "%s/%s", folder, path);
    if (!lstat(s->path, &st)) {
        s->path_device = st.st_dev;
        s->path_inode = st.st_ino;
    }
}

/* Remove the socket's file, unless it is another one by now. Safety: AS. */
static void
remove_path(const struct cpprof__http_server *s)
{
    struct stat st;

    if (*s->path && !lstat(s->path, &st) && st.st_dev == s->path_device &&
        st.st_ino == s->path_inode)
        unlink(s->path);
}

static enum cpprof_status
start_mhd(struct cpprof__http_server *s, struct cpprof_error *error)
{
    struct cpprof__descriptors_held held;
    int why;

    cpprof__descriptors_hold(&held);
    errno = 0;
    s->mhd = cpprof__http_daemon(s);
    why = errno;
    cpprof__descriptors_release(&held);
    if (!s->mhd)
        return cpprof__fail(error, CPPROF_SYSTEM, why,
                            "http: libmicrohttpd does not start: %s",
                            strerror(why));
    cpprof__http_note_mhd(s);
    return CPPROF_OK;
}

static enum cpprof_status
open_server(struct cpprof__http_server *s, const char *text,
            struct cpprof_error *error)
{
    enum cpprof_status status = start_mhd(s, error);
    int failed;

    if (status == CPPROF_OK)
        status = cpprof__http_address_listen(&s->address, text, &s->listen_fd,
                                             error);
    if (status != CPPROF_OK)
        return status;
    cpprof__http_note_listen(s);
    cpprof__http_address_text(&s->address, s->address_text,
                              sizeof s->address_text);
    /* A tunnel may lead from a port to a socket. */
    s->guards_names =
        (s->address.any.sa_family != AF_UNIX || s->host->is_private) &&
        cpprof__http_address_is_here(&s->address) && !s->token &&
        !(s->options.flags & CPPROF_HTTP_INSECURE);
    s->guards_users = s->guards_names && s->host->is_private &&
                      s->address.any.sa_family != AF_UNIX;
    note_path(s);
    s->n_threads = 1;
    failed = s->host->start_thread(cpprof__http_serve, s);
    if (!failed)
        return CPPROF_OK;
    remove_path(s);
    return cpprof__fail(error, CPPROF_SYSTEM, failed,
                        "http: pthread_create: %s", strerror(failed));
}

/* Free a server that has ended by itself, because the program has closed its
 * descriptors. */
static void
drop_ended(void)
{
    bool has_ended = false;

    if (server) {
        pthread_mutex_lock(&server->lock);
        has_ended = !server->n_threads;
        pthread_mutex_unlock(&server->lock);
    }
    if (has_ended) {
        free_server(server);
        server = NULL;
    }
}

static enum cpprof_status
start(const char *address, const struct cpprof_http_options *options,
      const struct cpprof__http_host *host, struct cpprof_error *error)
{
    struct cpprof__http_address where;
    struct cpprof__http_server *s;
    enum cpprof_status status;

    drop_ended();
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

/* ---- what there is ---------------------------------------------------------
 */

/* The server of this process, or NULL. A child made by vfork or a bare clone
 * has its parent's pointer in memory. Safety: AS. */
static struct cpprof__http_server *
here(void)
{
    return server && server->pid == getpid() ? server : NULL;
}

static size_t
address_(char *address, size_t n)
{
    const char *text;
    size_t length;

    drop_ended();
    text = here() ? server->address_text : "";
    length = strlen(text);
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
    if (here())
        remove_path(server);
}

static void
stop(void)
{
    struct cpprof__http_server *s = here();

    if (!s)
        return;
    end();
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    cpprof__http_wake(s);
    while (s->n_threads)
        pthread_cond_wait(&s->ended, &s->lock);
    pthread_mutex_unlock(&s->lock);
    server = NULL;
    free_server(s);
}

/* The caller comes again: who has the lock may wait for malloc, which the
 * caller, a handler, has interrupted. */
static void
wake_up(void)
{
    struct cpprof__http_server *s = here();
    size_t i;

    if (!s || pthread_mutex_trylock(&s->lock))
        return;
    cpprof__http_wake(s);
    pthread_cond_broadcast(&s->work);
    for (i = 0; i < s->n_connections; i++)
        if (s->connections[i]->request)
            pthread_cond_signal(&s->connections[i]->request->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Whatever the parent's threads may have been using, above all libmicrohttpd,
 * is left as it is. */
static void
in_child(void)
{
    struct cpprof__http_server *s = server;

    server = NULL;
    if (s)
        cpprof__http_close_all(s);
}

extern const struct cpprof__http_server_ops cpprof__http_server;

CPPROF_API const struct cpprof__http_server_ops cpprof__http_server = {
    CPPROF__HTTP_ABI, start, address_, stop, wake_up, end, in_child,
};

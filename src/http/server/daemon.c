/* SPDX-License-Identifier: MIT */
/* Sets libmicrohttpd up: without threads, signals, output and a socket of its
 * own. All its callbacks run inside cpprof__http_serve(), under the lock. */
#include "http/server/server.h"

#include <string.h>

static struct cpprof__http_connection *
connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

static void
on_connection(void *server, struct MHD_Connection *mhd, void **context,
              enum MHD_ConnectionNotificationCode what)
{
    struct cpprof__http_server *s = server;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = s->comes;
        s->comes->mhd = mhd;
        s->comes = NULL;
    } else {
        cpprof__http_forget(*context);
    }
}

/* Called with the target as soon as the request line is complete, before
 * anything else. */
static void *
on_target(void *server, const char *target, struct MHD_Connection *mhd)
{
    (void)server;
    return cpprof__http_request(connection_of(mhd), target);
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

struct MHD_Daemon *
cpprof__http_daemon(struct cpprof__http_server *s)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
        NULL, NULL, on_request, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_as_it_is, s, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)s->options.max_connections + 1,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CPPROF__POOL,
        MHD_OPTION_END);
}

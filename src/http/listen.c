/* SPDX-License-Identifier: MIT */
/*
 * The server as the program sees it: loads the plug-in when the first call
 * asks for a server, hands it what it needs, and passes calls on.
 *
 * The lock guards `ops`. It is held around calls into the plug-in with all
 * signals blocked, so that a handler of the program which forks never finds it
 * taken by the thread that it interrupted. It is not held while the loader
 * runs.
 */
#include "http/listen.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/file.h"
#include "base/options.h"
#include "base/status.h"
#include "collect/entries/libc_names.h"
#include "collect/process/environment.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"
#include "http/plugin.h"
#include "object/plug_in.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cpprof__own_lock lock CPPROF__AT_START;
/* NULL: not loaded. */
static const struct cpprof__http_server_ops *ops CPPROF__AT_START;

/* ---- threads --------------------------------------------------------------
 */

int
cpprof__http_thread(bool (*run)(void *arg), void *arg)
{
    return cpprof__own_thread_detached(run, arg, 0);
}

static const struct cpprof__http_host host = {
    CPPROF__HTTP_ABI,
    cpprof_http_handle,
    cpprof__http_thread,
    cpprof__own_threads_are_alone,
    cpprof__own_threads_pause_now,
    false,
};

/* ---- the plug-in ----------------------------------------------------------
 */

/* A handler of the program that forks must not find the locks taken by the
 * thread that it interrupted. */
static void
take_lock(sigset_t *saved)
{
    cpprof__block_signals(saved);
    cpprof__own_lock_take(&lock);
}

static void
give_lock(const sigset_t *saved)
{
    cpprof__own_lock_give(&lock);
    pthread_sigmask(SIG_SETMASK, saved, NULL);
}

CPPROF_API enum cpprof_status
cpprof_http_listen(const char *address, const struct cpprof_http_options *given,
                   struct cpprof_error *error)
{
    struct cpprof_http_options options = {.size = sizeof options};
    const struct cpprof__http_server_ops *loaded = load_acquire(&ops);
    enum cpprof_status status;
    sigset_t saved;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!address)
        return cpprof__fail(error, CPPROF_INVALID, 0, "http: no address");
    status = cpprof__options(&options, sizeof options, given,
                             "cpprof_http_options", error);
    if (status == CPPROF_OK)
        status = cpprof__options_flags(
            options.flags, CPPROF__HTTP_FLAGS | CPPROF_HTTP_INSECURE,
            CPPROF_SYMBOLIZE_FULL, error);
    if (status != CPPROF_OK)
        return status;
    /* Not under the lock, because the loader runs other people's code. Done
     * once, so that a forked child needs no lock of the loader. */
    if (!loaded) {
        loaded = cpprof__plug_in_load("http", CPPROF__HTTP_SYMBOL,
                                      CPPROF__HTTP_ABI, error);
        cpprof__libc_names_bind_plug_in(loaded);
    }
    if (!loaded)
        return CPPROF_UNSUPPORTED;
    take_lock(&saved);
    store_release(&ops, loaded);
    status = ops->start(address, &options, &host, error);
    give_lock(&saved);
    return status;
}

CPPROF_API size_t
cpprof_http_address(char *address, size_t n)
{
    size_t length = 0;
    sigset_t saved;

    if (!address)
        n = 0;
    if (n)
        *address = 0;
    take_lock(&saved);
    if (ops)
        length = ops->address(address, n);
    give_lock(&saved);
    return length;
}

/* A handler that the server runs must not wait for the server. */
CPPROF_API void
cpprof_http_close(void)
{
    sigset_t saved;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (cpprof__own_thread_is_this())
        return;
    cpprof__http_follow_note(false);
    take_lock(&saved);
    if (ops)
        ops->stop();
    give_lock(&saved);
}

/* If the server is being started or stopped, its threads look by themselves
 * when that is done. */
void
cpprof__http_wake_up(void)
{
    const struct cpprof__http_server_ops *loaded = load_acquire(&ops);

    if (loaded && cpprof__own_lock_take_until(&lock, 0)) {
        loaded->wake_up();
        cpprof__own_lock_give(&lock);
    }
}

/* ---- the process ----------------------------------------------------------
 */

CPPROF__FIRST_STEP void
cpprof__http_end(void)
{
    if (ops)
        ops->end();
}

CPPROF__FIRST_STEP void
cpprof__http_in_child(void)
{
    if (ops)
        ops->in_child();
    cpprof__own_lock_in_child(&lock);
}

/* ---- CPPROF=http= ---------------------------------------------------------
 */

static enum cpprof_status
read_token(const char *path, char *token, size_t n, struct cpprof_error *error)
{
    int failed = cpprof__first_line(path, token, n);

    if (failed == EINVAL)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "http: %.120s has no token of 1 to 255 bytes",
                            path);
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed,
                            "http: cannot read the token: %.120s: %s", path,
                            strerror(failed));
    return CPPROF_OK;
}

static enum cpprof_status
listen_for(const struct cpprof__environment *env, struct cpprof_error *error)
{
    struct cpprof_http_options options = {.size = sizeof options};
    char address[PATH_MAX], token[CPPROF__TOKEN_MAX + 1];
    enum cpprof_status status = CPPROF_OK;

    strcpy(token, env->http_token);
    if (*env->http_token_file)
        status = read_token(env->http_token_file, token, sizeof token, error);
    if (status != CPPROF_OK)
        return status;
    options.token = *token ? token : NULL;
    options.flags = env->http_insecure ? CPPROF_HTTP_INSECURE : 0;
    if (env->cpu.symbolize == CPPROF_SYMBOLIZE_NONE)
        options.flags |= CPPROF_HTTP_NO_NAMES;
    strcpy(address, env->http);
    if (!strncmp(address, "unix:", 5) &&
        !cpprof__environment_path(env->http, address, sizeof address))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: http= is too long; not serving");
    return cpprof_http_listen(address, &options, error);
}

bool
cpprof__http_listen_as_asked(struct cpprof_error *error)
{
    bool is_descendant;

    return listen_for(cpprof__environment_http(&is_descendant), error) ==
           CPPROF_OK;
}

/* A descendant that finds the address in use stays silent: its ancestor serves.
 */
CPPROF__FIRST_STEP void
cpprof__http_start(void)
{
    struct cpprof_error error;
    bool is_descendant;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!cpprof__environment_http(&is_descendant) ||
        (is_descendant && cpprof__http_serve_later()))
        return;
    if (cpprof__http_listen_as_asked(&error))
        cpprof__http_follow_note(true);
    else if (!is_descendant || error.sys != EADDRINUSE)
        cpprof__environment_complain(&error);
}

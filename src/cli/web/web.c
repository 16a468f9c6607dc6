/* SPDX-License-Identifier: MIT */
/*
 * The life of `cpprof http`: it listens, reads the profile on a thread of its
 * own, opens a browser, and serves until a signal ends it.
 *
 * It listens before it reads, so that the page is there at once and says what
 * is done. All signals that end it are blocked in every thread and taken by the
 * first one, so that a socket's file never stays behind.
 */
#include "cli/web/web.h"

#include "arch/clock.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/terminal.h"
#include "object/plug_in.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* A profile that is read within this many milliseconds is read before anything
 * is printed and the browser starts: then a file that is not there is all that
 * is said. Of one that takes longer it is first told where it can be waited
 * for. */
#define ANNOUNCE_MS 300

/* Tunable. A page that waits asks this often at least, even behind others; so
 * it learns why there is no profile before the command ends. */
#define FAREWELL_MS 1500

/* A page that is looked at asks for the status each second or two. When none
 * has for so long, a process that runs is left alone. */
#define WATCHED_S 5

static struct cpprof__web web = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .changed = PTHREAD_COND_INITIALIZER};

/* -------------------------------------------------------------- server ---- */

struct thread {
    bool (*run)(void *arg);
    void *arg;
};

static void *
run_thread(void *arg)
{
    struct thread thread = *(struct thread *)arg;

    free(arg);
    while (thread.run(thread.arg))
        cpprof__sleep_ns(1000000);
    return NULL;
}

/* As the server asks for one: nobody waits for it. */
static int
start_thread(bool (*run)(void *arg), void *arg)
{
    struct thread *thread = malloc(sizeof *thread);
    pthread_t id;
    int failed;

    if (!thread)
        return ENOMEM;
    *thread = (struct thread){run, arg};
    failed = pthread_create(&id, NULL, run_thread, thread);
    if (failed)
        free(thread);
    else
        pthread_detach(id);
    return failed;
}

static enum cpprof_status
handle(const struct cpprof_http_request *request,
       const struct cpprof_http_response *response, struct cpprof_error *error)
{
    struct cpprof__web_call call = {
        .web = &web, .request = request, .response = response};

    (void)error;
    return cpprof__web_answer(&call);
}

static bool
never(void)
{
    return false;
}

static const struct cpprof__http_host host = {
    CPPROF__HTTP_ABI, handle, start_thread, never, never, true};

/* ------------------------------------------------------------- address ---- */

/* "[[HOST]:][PORT]" as the server wants it: no host is this machine alone, no
 * port is any that is free. NULL: no memory. */
static char *
full_address(const char *text)
{
    size_t n = strlen(text);
    bool has_port = n && text[n - 1] != ':';
    const char *front = *text == ':' ? "localhost" : "";
    char *address;

    if (strncmp(text, "unix:", 5) == 0)
        return strdup(text);
    if (!strchr(text, ':'))
        front = "localhost:";
    if (asprintf(&address, "%s%s%s", front, text, has_port ? "" : "0") < 0)
        return NULL;
    return address;
}

static bool
is_here(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 ||
           strncmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "127.", 4) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}

/* Others than this machine, or other users of it, can reach it: whoever is to
 * see the page has to know a path that cannot be guessed. */
static bool
make_secret(char *prefix)
{
    unsigned char bytes[16];
    size_t i;

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return false;
    prefix += sprintf(prefix, "/t/");
    for (i = 0; i < sizeof bytes; i++)
        prefix += sprintf(prefix, "%02x", bytes[i]);
    return true;
}

/* Whose a connection is can be seen in the table at least. */
static bool
is_for_one_user(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 ||
           access("/proc/net/tcp", R_OK) == 0;
}

static enum cpprof_status
listen_at(const char *text, struct cpprof_error *error)
{
    struct cpprof_http_options options = {.size = sizeof options};
    enum cpprof_status status;
    char *address;

    web.server = cpprof__plug_in_load("http", CPPROF__HTTP_SYMBOL,
                                      CPPROF__HTTP_ABI, error);
    if (!web.server)
        return CPPROF_UNSUPPORTED;
    address = full_address(text);
    if (!address)
        return cpprof__fail_nomem(error);
    web.is_foreign |= !is_here(address);
    if (!is_here(address) || !is_for_one_user(address)) {
        options.flags |= CPPROF_HTTP_INSECURE; /* the secret guards it */
        if (!make_secret(web.prefix)) {
            free(address);
            return cpprof__fail(error, CPPROF_SYSTEM, errno,
                                "no random bytes for the address");
        }
    }
    status = web.server->start(address, &options, &host, error);
    free(address);
    return status;
}

/* Where the page is, for a browser on this machine. */
static void
page_address(char *url, size_t n)
{
    char address[256] = "";
    const char *port;

    web.server->address(address, sizeof address);
    port = strrchr(address, ':');
    if (strncmp(address, "unix:", 5) == 0)
        snprintf(url, n, "%s", address);
    else if (*address == ':' || strncmp(address, "127.0.0.1:", 10) == 0 ||
             strncmp(address, "0.0.0.0:", 8) == 0)
        snprintf(url, n, "http://localhost%s%s", port, web.prefix);
    else
        snprintf(url, n, "http://%s%s", address, web.prefix);
}

/* --------------------------------------------------------------- life ---- */

static bool
has_url(const struct cpprof__report_flags *flags)
{
    int i;

    for (i = 0; i < flags->n_sources; i++)
        if (access(flags->sources[i], F_OK) != 0 &&
            strcmp(flags->sources[i], "-") != 0)
            return true;
    return false;
}

static struct {
    struct pprof_profile *(*read)(void *ctx);
    void *ctx;
    char url[384];
} work;

/* A moment in so many milliseconds, as conditions want it. */
static struct timespec
moment_in(uint64_t ms)
{
    return cpprof__timespec_of(cpprof__now_ns(CLOCK_REALTIME) + ms * 1000000);
}

uint64_t
cpprof__web_now_s(void)
{
    return cpprof__now_ns(CLOCK_MONOTONIC) / CPPROF__NS_PER_S;
}

static bool
ends(void)
{
    bool it_does;

    pthread_mutex_lock(&web.lock);
    it_does = web.ends;
    pthread_mutex_unlock(&web.lock);
    return it_does;
}

/* A moment, after which it is looked at again. False: it ends. */
static bool
wait_while_stopped(void)
{
    struct timespec until = moment_in(500);
    int late = 0;

    pthread_mutex_lock(&web.lock);
    while (!web.ends && !late)
        late = pthread_cond_timedwait(&web.changed, &web.lock, &until);
    pthread_mutex_unlock(&web.lock);
    return !ends();
}

/* The first profile of a process that runs: once it has used CPU time. */
static struct pprof_profile *
read_first(void)
{
    enum cpprof__live_result result = CPPROF__LIVE_NOTHING;
    const char *what = "recording process";

    while (cpprof__live &&
           (result == CPPROF__LIVE_NOTHING || result == CPPROF__LIVE_STOPPED)) {
        cpprof__progress("%s %s", what, cpprof__live->words + strlen("-p="));
        result = cpprof__live->record();
        what = "waiting for CPU time of process";
        if (result == CPPROF__LIVE_STOPPED && wait_while_stopped())
            what = "waiting for `kill -CONT` of process";
    }
    return cpprof__live && result != CPPROF__LIVE_NEW ? NULL
                                                      : work.read(work.ctx);
}

/* Wait until somebody looks. False: it ends. */
static bool
wait_for_page(void)
{
    struct timespec until;

    pthread_mutex_lock(&web.lock);
    while (!web.ends && cpprof__web_now_s() - web.asked_s > WATCHED_S) {
        until = moment_in(500);
        pthread_cond_timedwait(&web.changed, &web.lock, &until);
    }
    pthread_mutex_unlock(&web.lock);
    return !ends();
}

/* Views that are being made have a copy of the profile before. */
static void
follow_process(void)
{
    struct pprof_profile *p, *before;
    enum cpprof__live_result result;

    while (wait_for_page()) {
        result = cpprof__live->record();
        if (ends())
            return;
        p = result == CPPROF__LIVE_NEW ? work.read(work.ctx) : NULL;
        cpprof__progress_end();
        pthread_mutex_lock(&web.lock);
        before = p ? web.profile : NULL;
        if (p) {
            web.profile = p;
            web.turn++;
        }
        web.is_stopped = result == CPPROF__LIVE_STOPPED;
        web.is_over = result == CPPROF__LIVE_OVER;
        pthread_mutex_unlock(&web.lock);
        pprof_free(before);
        if (result == CPPROF__LIVE_OVER)
            return;
        if (result == CPPROF__LIVE_STOPPED)
            wait_while_stopped();
    }
}

static void *
read_profile(void *arg)
{
    struct pprof_profile *p = read_first();
    struct timespec until;
    int failed = 0;

    (void)arg;
    cpprof__progress_end();
    pthread_mutex_lock(&web.lock);
    web.profile = p;
    web.has_failed = !p;
    pthread_cond_broadcast(&web.changed);
    until = moment_in(FAREWELL_MS);
    while (!p && web.has_page && !web.page_knows && !failed && !web.ends)
        failed = pthread_cond_timedwait(&web.changed, &web.lock, &until);
    pthread_mutex_unlock(&web.lock);
    if (!p && !ends())
        kill(getpid(), SIGUSR1); /* the first thread waits for it */
    else if (p && cpprof__live)
        follow_process();
    return NULL;
}

/* Wait until the profile is there, or will never be, or that moment. */
static void
wait_for_profile(const struct timespec *until, bool *is_there, bool *has_failed)
{
    int late = 0;

    pthread_mutex_lock(&web.lock);
    while (!web.profile && !web.has_failed && !late)
        late = until ? pthread_cond_timedwait(&web.changed, &web.lock, until)
                     : pthread_cond_wait(&web.changed, &web.lock);
    *is_there = web.profile != NULL;
    *has_failed = web.has_failed;
    pthread_mutex_unlock(&web.lock);
}

static void
tell_address(const char *what)
{
    cpprof__progress_hide();
    fprintf(stderr, "%s %s\n", what, work.url);
}

/* Tell where the page is, and start the browser. */
static void *
announce(void *wants_browser)
{
    const struct timespec until = moment_in(ANNOUNCE_MS);
    struct cpprof_error error = {.text = ""};
    bool is_there, has_failed;

    wait_for_profile(&until, &is_there, &has_failed);
    if (has_failed)
        return NULL;
    tell_address(is_there ? "Serving web UI on"
                          : "Reading; progress is shown on");
    if (wants_browser && cpprof__browse(work.url, &error) != CPPROF_OK)
        cpprof__cli_warn("%s", error.text);
    if (is_there)
        return NULL;
    wait_for_profile(NULL, &is_there, &has_failed);
    if (is_there)
        tell_address("Serving web UI on");
    return NULL;
}

static bool
run_detached(void *(*run)(void *arg), void *arg)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, arg) != 0)
        return false;
    pthread_detach(thread);
    return true;
}

static pthread_t reader;
static bool has_reader;

/* The signal that ends it. */
static int
serve(const sigset_t *signals, bool wants_browser)
{
    int signal = 0;

    has_reader = pthread_create(&reader, NULL, read_profile, NULL) == 0;
    if (!has_reader || !run_detached(announce, wants_browser ? &web : NULL)) {
        cpprof__cli_fail("no thread could be started");
        return SIGUSR1;
    }
    while (sigwait(signals, &signal) != 0)
        continue;
    return signal;
}

int
cpprof__web(const struct cpprof__report_flags *flags,
            struct pprof_profile *(*read)(void *ctx), void *ctx)
{
    struct cpprof_error error = {.text = ""};
    sigset_t signals, before;
    int signal;

    if (cpprof__report_check(&flags->options, &error) != CPPROF_OK)
        return cpprof__cli_fail("%s", error.text);
    web.flags = *flags;
    web.is_foreign = has_url(flags);
    work.read = read;
    work.ctx = ctx;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    if (listen_at(flags->http, &error) != CPPROF_OK)
        return cpprof__cli_fail("%s", error.text);
    page_address(work.url, sizeof work.url);
    signal = serve(&signals,
                   !flags->no_browser && strncmp(work.url, "http", 4) == 0);
    pthread_mutex_lock(&web.lock);
    web.ends = true;
    pthread_cond_broadcast(&web.changed);
    pthread_mutex_unlock(&web.lock);
    web.server->stop();
    /* What it reads with is about to go. A file may take it long. */
    if (cpprof__live && has_reader) {
        cpprof__live->end();
        pthread_join(reader, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return signal == SIGUSR1 ? CPPROF__EXIT_ERROR : CPPROF__EXIT_OK;
}

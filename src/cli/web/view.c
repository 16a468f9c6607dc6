/* SPDX-License-Identifier: MIT */
/*
 * Views: each is made by a child, which writes it into a file in memory. The
 * server's thread waits for it, sends it, and keeps it for the next client that
 * asks the same.
 *
 * The child has its own copy of the profile, filters it, and tells how it went
 * in memory that both share. It gets a minute, and ends when its client leaves,
 * with all programs that it has started: they are one group of processes.
 * No more children run at once than there are processors: more would only take
 * memory.
 *
 * Invariants: a kept answer is not freed while it is being sent; all of them
 * together stay below MOST_KEPT bytes.
 */
#include "cli/web/web.h"

#include "arch/clock.h"
#include "arch/kernel.h"
#include "base/gzip.h"
#include "base/status.h"
#include "report/code/source.h"
#include "report/flame/stacks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Tunables: seconds for a view; milliseconds until it is looked whether the
 * client is still there; bytes of answers that are kept, and of one answer;
 * bytes from which on an answer is compressed. */
#define MOST_SECONDS 60
#define LOOK_MS      50
#define MOST_KEPT    ((size_t)64 << 20)
#define MOST_BYTES   ((size_t)512 << 20)
#define PACK_BYTES   16384

/* Tunable. A view that is asked for while the profile is being read waits for
 * it so many milliseconds: then it is made at once, and not when the page has
 * learnt that it can be. */
#define READ_MS 1000

/* Tunable. What a page shows first comes with it if the profile is read so
 * many milliseconds after the page was asked for; the page is empty until then.
 * A page that comes without tells how far the reading is. */
#define FIRST_MS 400

/* Tunables. A box is sent if it is this many pixels wide, as the page draws it;
 * and so many boxes at most. */
#define LEAST_PIXELS  1
#define DEFAULT_WIDTH 1900
#define MAX_BOXES     20000

/* --------------------------------------------------------------- kinds ---- */

static const struct view {
    const char *name;
    struct cpprof__report_maker maker; /* of JSON, but for text: of HTML */
} views[] = {
    {"boxes", {cpprof__boxes_view, CPPROF__STREAM}},
    {"found", {cpprof__found_view, CPPROF__STREAM}},
    {"table", {cpprof__table_view, CPPROF__STREAM}},
    {"labels", {cpprof__tags, CPPROF__STREAM}},
    {"times", {cpprof__times_view, CPPROF__STREAM}},
    {"profile", {cpprof__profile_view, CPPROF__STREAM}},
    {"first", {cpprof__first_view, CPPROF__STREAM}},
    {"listing", {cpprof__weblist, CPPROF__TEXT}},
};

/* What a child makes. */
struct work {
    const struct view *view;        /* or NULL: a report */
    struct cpprof__web_query query; /* with its format */
    const char *type;               /* of the answer's content */
};

static const char *
type_of(const struct cpprof__report_flags *w)
{
    if (w->picture)
        return strcmp(w->picture, "svg") == 0 ? "image/svg+xml"
                                              : "application/octet-stream";
    switch (w->format) {
    case PPROF_REPORT_FLAMEGRAPH:
    case PPROF_REPORT_WEBLIST:
        return "text/html; charset=utf-8";
    case PPROF_REPORT_JSON:
        return "application/json";
    case PPROF_REPORT_PROTO:
    case PPROF_REPORT_TOPPROTO:
        return "application/octet-stream";
    default:
        return "text/plain; charset=utf-8";
    }
}

/* False: there is no such view. */
static bool
choose(struct work *work, const char *name)
{
    struct cpprof__web_query *q = &work->query;
    struct cpprof__report_flags *w = &q->settings.report;
    const struct cpprof__flag *flag;
    size_t i;

    for (i = 0; i < sizeof views / sizeof views[0]; i++)
        if (strcmp(views[i].name, name) == 0)
            work->view = &views[i];
    /* As on pprof's page, the focus is also what is looked for. */
    if (q->symbol)
        w->options.symbol = q->symbol;
    else if (w->options.focus && *w->options.focus)
        w->options.symbol = w->options.focus;
    else
        w->options.symbol = ".";
    work->type = "application/json";
    if (work->view && work->view->maker.output == CPPROF__TEXT)
        work->type = "text/html; charset=utf-8";
    if (work->view)
        return true;
    if (strncmp(name, "report/", 7) != 0)
        return false;
    flag = cpprof__choose_format(w, name + 7);
    if (!flag || w->viewer)
        return false;
    work->type = type_of(w);
    return true;
}

/* --------------------------------------------------------------- child ---- */

/* What the child tells. */
struct told {
    bool is_done, is_short; /* it stopped at the limit */
    enum cpprof_status status;
    char text[1024]; /* of an error, or a warning */
};

struct limited {
    struct told *told;
    size_t left;
    int fd;
};

static int
write_some(void *ctx, const void *data, size_t n)
{
    struct limited *out = ctx;
    const char *at = data;
    size_t size = n < out->left ? n : out->left;

    out->left -= size;
    while (size) {
        ssize_t done = write(out->fd, at, size);

        if (done < 0 && errno != EINTR)
            return errno;
        at += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    if (out->left)
        return 0;
    out->told->is_short = true;
    return EFBIG;
}

static void
warn(void *ctx, const char *line)
{
    struct told *told = ctx;
    size_t n = strlen(told->text);

    snprintf(told->text + n, sizeof told->text - n, "%s%s", n ? "; " : "",
             line);
}

/* Normalize if that is asked for; without a base it means nothing. */
static enum cpprof_status
normalize_as_asked(const struct cpprof__web *web,
                   const struct cpprof__report_flags *w,
                   struct pprof_profile **p, struct cpprof_error *error)
{
    if (!web->flags.bases.n || w->normalize == web->flags.normalize)
        return CPPROF_OK;
    if (w->normalize && web->flags.diff_base)
        return cpprof__normalize(*p, p, error);
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        web->flags.normalize
                            ? "start without -normalize to see it without"
                            : "of -base the page cannot normalize: start with "
                              "-normalize, or with -diff_base");
}

static enum cpprof_status
make_view(struct pprof_profile *p, const struct work *work,
          const struct cpprof_writer *writer, struct cpprof_error *error)
{
    const struct cpprof__web_query *q = &work->query;
    double width = q->width > 0 ? q->width : DEFAULT_WIDTH;
    struct pprof_report_options options = q->settings.report.options;
    const struct cpprof__view view = {
        .order = q->pivot ? (q->callers ? CPPROF__CALLERS : CPPROF__CALLEES)
                 : q->inverted ? CPPROF__FROM_LEAF
                               : CPPROF__FROM_ROOT,
        .pivot = q->pivot,
        .search = q->search,
        .zoom = q->zoom,
        .fraction = LEAST_PIXELS / width,
        .max_boxes = MAX_BOXES,
        .max_rows = q->max,
    };

    /* The page's table has all rows, and sorts them itself. */
    if (work->view->maker.make == cpprof__table_view)
        options.flags |= PPROF_REPORT_NO_TRIM;
    return cpprof__report_make(p, writer, &work->view->maker, &options, &view,
                               error);
}

static enum cpprof_status
make_any(struct pprof_profile *p, struct work *work,
         const struct cpprof_writer *writer, struct cpprof_error *error)
{
    struct cpprof__report_flags *w = &work->query.settings.report;

    if (work->view)
        return make_view(p, work, writer, error);
    if (w->picture)
        return cpprof__draw(p, &w->options, w->picture, *writer, error);
    return pprof_report_write(p, writer, w->format, &w->options, error);
}

/* Ends the process. */
static void
child(const struct cpprof__web_call *call, struct work *work, int fd,
      struct told *told)
{
    struct cpprof__report_flags *w = &work->query.settings.report;
    struct pprof_profile *p = call->web->profile;
    struct cpprof_error error = {.text = ""};
    struct limited out = {
        told, work->query.max && !work->view ? work->query.max : MOST_BYTES,
        fd};
    struct cpprof_writer writer = {sizeof writer, write_some, NULL, &out};
    const struct rlimit seconds = {MOST_SECONDS, MOST_SECONDS};
    sigset_t none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CPU, &seconds);
    call->web->server->in_child();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    w->options.warn = warn;
    w->options.ctx = told;
    cpprof__source_set_guard(call->web->is_foreign ? CPPROF__SOURCE_SEARCHED
                                                   : CPPROF__SOURCE_CODE);
    told->status = w->tagbase && *w->tagbase
                       ? cpprof__compare_labels(p, w, &p, &error)
                       : normalize_as_asked(call->web, w, &p, &error);
    if (told->status == CPPROF_OK)
        told->status = make_any(p, work, &writer, &error);
    if (told->is_short && work->query.max)
        told->status = CPPROF_OK;
    if (told->status != CPPROF_OK)
        snprintf(told->text, sizeof told->text, "%s", error.text);
    told->is_done = true;
    _exit(0);
}

/* -------------------------------------------------------------- parent ---- */

/* Has the client left, or does the server end? */
static bool
is_unwanted(const struct cpprof__web_call *call)
{
    bool ends;

    pthread_mutex_lock(&call->web->lock);
    ends = call->web->ends;
    pthread_mutex_unlock(&call->web->lock);
    return ends || call->request->wait(call->request->ctx, 0);
}

/* Wait for a child as long as its client does. Without a descriptor for it only
 * its limit of CPU time ends it early. */
static void
wait_for(const struct cpprof__web_call *call, pid_t pid)
{
    struct pollfd ended = {.events = POLLIN};
    siginfo_t info;
    int ms = 0;

    ended.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    while (ended.fd >= 0 && poll(&ended, 1, LOOK_MS) == 0) {
        ms += LOOK_MS;
        if (ms >= MOST_SECONDS * 1000 || is_unwanted(call))
            break;
    }
    if (ended.fd >= 0)
        close(ended.fd);
    else
        while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 &&
               errno == EINTR)
            continue;
    kill(-pid, SIGKILL); /* of a child that has failed, what it started */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Wait for a processor. False: the client has left. */
static bool
begin_child(const struct cpprof__web_call *call)
{
    struct cpprof__web *web = call->web;
    long most = sysconf(_SC_NPROCESSORS_ONLN);
    struct timespec until;
    bool has_left = false;

    pthread_mutex_lock(&web->lock);
    while (!has_left && web->n_children >= (unsigned)(most > 1 ? most : 1)) {
        until = cpprof__timespec_of(cpprof__now_ns(CLOCK_REALTIME) +
                                    LOOK_MS * 1000000);
        pthread_cond_timedwait(&web->changed, &web->lock, &until);
        pthread_mutex_unlock(&web->lock);
        has_left = is_unwanted(call);
        pthread_mutex_lock(&web->lock);
    }
    web->n_children += !has_left;
    pthread_mutex_unlock(&web->lock);
    return !has_left;
}

static void
end_child(struct cpprof__web *web)
{
    pthread_mutex_lock(&web->lock);
    web->n_children--;
    pthread_cond_broadcast(&web->changed);
    pthread_mutex_unlock(&web->lock);
}

/* Run a child; false: it could not be started, or its client has left. */
static bool
run(const struct cpprof__web_call *call, struct work *work, int fd,
    struct told *told)
{
    pid_t pid;

    if (!begin_child(call))
        return false;
    pid = fork();
    if (pid == 0)
        child(call, work, fd, told);
    if (pid > 0) {
        setpgid(pid, pid); /* whichever of the two is first */
        wait_for(call, pid);
    }
    end_child(call->web);
    return pid > 0;
}

/* ---------------------------------------------------------------- kept ---- */

struct kept {
    struct kept *next; /* the one that was used before */
    char *key;
    const char *type;
    void *data;
    size_t n;
    unsigned n_users; /* those who send it, and the list */
    bool is_packed;
    char note[sizeof((struct told *)NULL)->text + 4]; /* and "cut" */
};

static struct {
    pthread_mutex_t lock;
    struct kept *first;
    size_t n;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock. */
static void
release(struct kept *k)
{
    if (--k->n_users)
        return;
    free(k->data);
    free(k->key);
    free(k);
}

static struct kept *
find_kept(const char *key)
{
    struct kept **at, *k;

    pthread_mutex_lock(&kept.lock);
    for (at = &kept.first; *at && strcmp((*at)->key, key) != 0;)
        at = &(*at)->next;
    k = *at;
    if (k) {
        *at = k->next;
        k->next = kept.first;
        kept.first = k;
        k->n_users++;
    }
    pthread_mutex_unlock(&kept.lock);
    return k;
}

/* What it takes of MOST_KEPT. */
static size_t
bytes_of(const struct kept *k)
{
    return sizeof *k + strlen(k->key) + 1 + k->n;
}

/* Put it in front, and drop those behind that are too much. */
static void
keep(struct kept *k)
{
    struct kept **at, *last;

    pthread_mutex_lock(&kept.lock);
    k->n_users++;
    k->next = kept.first;
    kept.first = k;
    kept.n += bytes_of(k);
    while (kept.n > MOST_KEPT) {
        for (at = &kept.first; (*at)->next;)
            at = &(*at)->next;
        last = *at;
        *at = NULL;
        kept.n -= bytes_of(last);
        release(last);
    }
    pthread_mutex_unlock(&kept.lock);
}

/* -------------------------------------------------------------- answer ---- */

/* Why there is no view. */
struct refusal {
    int status;
    char text[sizeof((struct told *)NULL)->text];
};

/* NULL, as the functions below tell what they cannot do. */
static struct kept *
refuse(struct refusal *why, int status, const char *text)
{
    why->status = status;
    snprintf(why->text, sizeof why->text, "%s", text);
    return NULL;
}

static bool
read_file(int fd, struct kept *k)
{
    struct stat st;
    ssize_t n = 1;
    size_t at;

    if (fstat(fd, &st) != 0)
        return false;
    k->n = (size_t)st.st_size;
    k->data = malloc(k->n + 1);
    for (at = 0; k->data && at < k->n && n > 0; at += (size_t)n)
        n = pread(fd, (char *)k->data + at, k->n - at, (off_t)at);
    return k->data && n > 0;
}

static void
pack(struct kept *k)
{
    struct cpprof__buffer packed = {0};

    if (k->n < PACK_BYTES ||
        cpprof__gzip(&packed, k->data, k->n, 1, NULL) != CPPROF_OK ||
        packed.failed) {
        cpprof__buffer_free(&packed);
        return;
    }
    free(k->data);
    k->data = packed.data;
    k->n = packed.n;
    k->is_packed = true;
}

static void
give_back(struct kept *k)
{
    pthread_mutex_lock(&kept.lock);
    release(k);
    pthread_mutex_unlock(&kept.lock);
}

static enum cpprof_status
send_kept(struct cpprof__web_call *call, struct kept *k)
{
    struct cpprof_http_header extra = {"Content-Encoding", "gzip"};
    enum cpprof_status status;

    if (!k->is_packed)
        extra = (struct cpprof_http_header){"X-Cpprof-Note", k->note};
    status = cpprof__web_send(call, 200, k->type, *extra.value ? &extra : NULL,
                              k->data, k->n);
    give_back(k);
    return status;
}

/* Keep what the child has made. */
static struct kept *
keep_made(const struct work *work, int fd, const struct told *told,
          const char *key, struct refusal *why)
{
    struct kept *k;

    if (!told->is_done)
        return refuse(why, 500,
                      "the view was not made: it took too long, or its "
                      "process has failed");
    if (told->status != CPPROF_OK)
        return refuse(why, 400, told->text);
    k = calloc(1, sizeof *k);
    if (k)
        k->key = strdup(key);
    if (!k || !k->key || !read_file(fd, k)) {
        if (k) {
            k->n_users = 1;
            release(k);
        }
        return refuse(why, 500, "out of memory");
    }
    k->n_users = 1;
    k->type = work->type;
    snprintf(k->note, sizeof k->note, "%s%s", told->text,
             told->is_short ? "cut" : "");
    if (work->query.packed && !*k->note)
        pack(k);
    keep(k);
    return k;
}

static struct kept *
make(const struct cpprof__web_call *call, struct work *work, const char *key,
     struct refusal *why)
{
    struct told *told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = memfd_create("view", MFD_CLOEXEC);
    struct kept *k;

    if (told != MAP_FAILED && fd >= 0 && run(call, work, fd, told))
        k = keep_made(work, fd, told, key, why);
    else
        k = refuse(why, 503, "no process could be started");
    if (told != MAP_FAILED)
        munmap(told, sizeof *told);
    if (fd >= 0)
        close(fd);
    return k;
}

/* False: it is still being read, or will never be there. */
static bool
wait_until_read(const struct cpprof__web_call *call, int most_ms,
                unsigned *turn)
{
    struct cpprof__web *web = call->web;
    bool is_ready, goes_on;
    struct timespec until;
    int ms;

    for (ms = 0, goes_on = true; goes_on; ms += LOOK_MS) {
        until = cpprof__timespec_of(cpprof__now_ns(CLOCK_REALTIME) +
                                    LOOK_MS * 1000000);
        pthread_mutex_lock(&web->lock);
        if (ms && !web->profile && !web->has_failed)
            pthread_cond_timedwait(&web->changed, &web->lock, &until);
        is_ready = web->profile != NULL;
        goes_on = !is_ready && !web->has_failed && ms < most_ms;
        *turn = web->turn;
        pthread_mutex_unlock(&web->lock);
        goes_on = goes_on && !is_unwanted(call);
    }
    return is_ready;
}

/* To be given back. */
static struct kept *
find_or_make(const struct cpprof__web_call *call, const char *name, int most_ms,
             struct refusal *why)
{
    const char *query = call->request->query ? call->request->query : "";
    char reason[CPPROF__SETTING_TEXT], *key = NULL;
    struct work work = {.view = NULL};
    struct kept *k = NULL;
    unsigned turn;

    if (!wait_until_read(call, most_ms, &turn))
        return refuse(why, 503, "the profile is still being read");
    if (!cpprof__web_query(call, &work.query, reason))
        refuse(why, 400, reason);
    else if (!choose(&work, name))
        refuse(why, 404, "no such view");
    else if (asprintf(&key, "%u %s%s?%s", turn, call->is_whole ? "whole " : "",
                      name, query) < 0)
        refuse(why, 500, "out of memory");
    else if (!(k = find_kept(key)))
        k = make(call, &work, key, why);
    free(key);
    cpprof__web_query_free(&work.query);
    return k;
}

enum cpprof_status
cpprof__web_view(struct cpprof__web_call *call, const char *name)
{
    struct refusal why;
    struct kept *k = find_or_make(call, name, READ_MS, &why);

    return k ? send_kept(call, k) : cpprof__web_say(call, why.status, why.text);
}

void
cpprof__web_print_view(const struct cpprof__web_call *call, const char *name,
                       struct cpprof__buffer *out)
{
    struct refusal why;
    struct kept *k = find_or_make(call, name, FIRST_MS, &why);

    if (!k) {
        cpprof__buffer_printf(out, "null");
        return;
    }
    cpprof__buffer_printf(out, "{\"note\":");
    cpprof__json_text(out, k->note, strlen(k->note));
    cpprof__buffer_printf(out, ",\"data\":");
    cpprof__buffer_append(out, k->data, k->n);
    cpprof__buffer_printf(out, "}");
    give_back(k);
}

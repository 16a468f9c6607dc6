/* SPDX-License-Identifier: MIT */
/*
 * Differences between two moments of the profiles of a program, as ?seconds=
 * and delta_heap serve them; and what makes their differences themselves: the
 * rules by which Grafana Alloy does that are gone through here
 * (pyroscope.scrape, fastdelta: a sample is its addresses and labels).
 */
#include "../unit/views.h"
#include "command.h"
#include "tap.h"
#include "writers.h"

#include <cpprof/captures.h>
#include <cpprof/heap.h>
#include <cpprof/labels.h>
#include <cpprof/pprof/profile.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE __attribute__((noinline, noipa))

enum { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE };

static struct cpprof_error error;

/* ---- written and read back --------------------------------------------- */

struct file {
    char *data;
    size_t n;
    FILE *stream;
    int64_t rate; /* of the heap: what the test itself allocates is not seen */
};

static struct cpprof_writer
into(struct file *file)
{
    file->rate = cpprof_heap_set_rate(0);
    file->stream = open_memstream(&file->data, &file->n);
    if (!file->stream)
        bail("out of memory");
    return stream_writer(file->stream);
}

static struct pprof_profile *
read_back(struct file *file)
{
    struct pprof_profile *p;

    fclose(file->stream);
    if (pprof_read_data(file->data, file->n, NULL, &p, &error))
        bail("%s", error.text);
    free(file->data);
    cpprof_heap_set_rate(file->rate);
    return p;
}

static struct pprof_profile *
scrape(const char *name)
{
    struct file file;

    if (cpprof_profile_write(cpprof_profile_lookup(name),
                             (struct cpprof_writer[]){into(&file)}, NULL,
                             &error))
        bail("%s: %s", name, error.text);
    return read_back(&file);
}

static struct cpprof_snapshot *
take(const char *name, uint32_t flags)
{
    struct cpprof_profile_options options = {.size = sizeof options,
                                             .flags = flags};
    struct cpprof_snapshot *snapshot;

    if (cpprof_snapshot_new(cpprof_profile_lookup(name), &options, &snapshot,
                            &error))
        bail("%s: %s", name, error.text);
    return snapshot;
}

static struct pprof_profile *
delta(struct cpprof_snapshot *snapshot)
{
    struct file file;

    if (cpprof_snapshot_write_delta(
            snapshot, (struct cpprof_writer[]){into(&file)}, NULL, &error))
        bail("%s", error.text);
    return read_back(&file);
}

/* ---- looked at ----------------------------------------------------------- */

static const char *
text(const struct pprof_profile *p, pprof_string string)
{
    return pprof_text(p, string, NULL);
}

static const struct pprof_location *
location(const struct pprof_profile *p, uint32_t i)
{
    return &pprof_locations(p)[i];
}

static bool
has_function(const struct pprof_profile *p, const struct pprof_sample *s,
             const char *name)
{
    const struct pprof_function *functions = pprof_functions(p);
    size_t i, j;

    for (i = 0; i < s->n_locations; i++) {
        const struct pprof_location *l = location(p, s->locations[i]);
        const struct pprof_line *lines = pprof_lines(p) + l->first_line;

        for (j = 0; j < l->n_lines; j++)
            if (!strcmp(text(p, functions[lines[j].function].name), name))
                return true;
    }
    return false;
}

/* Of samples under that function, or of all for NULL. */
static int64_t
sum_under(const struct pprof_profile *p, const char *name, size_t value)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < pprof_sample_count(p); i++) {
        struct pprof_sample s = sample_of(p, i);

        if (!name || has_function(p, &s, name))
            sum += s.values[value];
    }
    return sum;
}

static void
check_values(const struct pprof_profile *p, const char *function, int64_t a,
             int64_t b, int64_t c, int64_t d, const char *name)
{
    check(sum_under(p, function, 0) == a && sum_under(p, function, 1) == b &&
              sum_under(p, function, 2) == c && sum_under(p, function, 3) == d,
          name);
    if (sum_under(p, function, 0) != a || sum_under(p, function, 1) != b ||
        sum_under(p, function, 2) != c || sum_under(p, function, 3) != d)
        note("got %lld %lld %lld %lld", (long long)sum_under(p, function, 0),
             (long long)sum_under(p, function, 1),
             (long long)sum_under(p, function, 2),
             (long long)sum_under(p, function, 3));
}

/* ---- the program --------------------------------------------------------- */

static void *blocks[1000];
static size_t n_blocks;

CODE static void
allocate(size_t n, size_t n_bytes)
{
    while (n--)
        blocks[n_blocks++] = malloc(n_bytes);
}

CODE static void
release(size_t n)
{
    while (n--)
        free(blocks[--n_blocks]);
}

/* ---- heap ---------------------------------------------------------------- */

static void
heap_differences(void)
{
    struct cpprof_snapshot *snapshot;
    struct pprof_info info;
    struct pprof_profile *p;

    allocate(10, 100);
    snapshot = take("heap", 0);
    allocate(5, 100);
    p = delta(snapshot);
    check_values(p, "allocate", 5, 500, 5, 500, "heap_has_what_came");
    pprof_free(p);
    release(7);
    p = delta(snapshot);
    check_values(p, "allocate", 0, 0, -7, -700, "heap_has_what_went");
    pprof_free(p);
    p = delta(snapshot);
    info = info_of(p);
    check_equal((int64_t)pprof_sample_count(p), 0, "nothing_is_no_sample");
    check_equal((int64_t)pprof_sample_type_count(p), 4, "and_has_its_types");
    check_text(text(p, info.period_type.type), "space", "and_period");
    check_text(text(p, info.default_sample_type), "", "heap_has_no_default");
    check_at_least((double)pprof_comment_count(p), 1, "comments_are_kept");
    check_at_least((double)info.duration_ns, 1, "duration_is_said");
    check_at_least((double)info.time_ns, 1.6e18, "time_is_now");
    check_at_least((double)pprof_mapping_count(p), 2, "mappings_are_there");
    pprof_free(p);
    cpprof_snapshot_free(snapshot);
    release(n_blocks);
}

static void
allocs_keeps_its_default_sample_type(void)
{
    struct cpprof_snapshot *snapshot = take("allocs", 0);
    struct pprof_profile *p = delta(snapshot);

    check_text(text(p, info_of(p).default_sample_type), "alloc_space",
               "allocs_keeps_its_default_sample_type");
    pprof_free(p);
    cpprof_snapshot_free(snapshot);
}

/* godeltaprof: allocations are differences, what is in use is as it is. */
static void
delta_heap_as_godeltaprof_has_it(void)
{
    struct cpprof_snapshot *snapshot;
    struct pprof_profile *p;

    allocate(10, 5000);
    snapshot = take("heap", CPPROF_FLAG_SINCE_START | CPPROF_FLAG_IN_USE);
    p = delta(snapshot);
    check_at_least((double)sum_under(p, "allocate", ALLOC_OBJECTS), 10,
                   "first_delta_is_the_whole_profile");
    pprof_free(p);
    allocate(2, 5000);
    p = delta(snapshot);
    check_values(p, "allocate", 2, 10000, 12, 60000,
                 "in_use_is_absolute_when_asked");
    pprof_free(p);
    cpprof_snapshot_free(snapshot);
    release(n_blocks);
}

static void
a_change_of_the_rate_leaves_values_as_they_are(void)
{
    struct cpprof_snapshot *snapshot;
    struct pprof_profile *p;

    allocate(10, 100);
    snapshot = take("heap", 0);
    cpprof_heap_set_rate(0);
    allocate(10, 100);
    p = delta(snapshot);
    check_values(p, "allocate", 0, 0, 0, 0,
                 "what_is_not_sampled_is_no_difference");
    pprof_free(p);
    cpprof_heap_set_rate(1);
    release(20);
    p = delta(snapshot);
    check_values(p, "allocate", 0, 0, -10, -1000,
                 "blocks_of_another_rate_leave_with_their_weight");
    pprof_free(p);
    cpprof_snapshot_free(snapshot);
}

static void
labels_tell_differences_apart(void)
{
    struct cpprof_snapshot *snapshot = take("heap", CPPROF_FLAG_LABELS);
    struct cpprof_labels *labels = cpprof_labels_new("job", "night", NULL);
    struct pprof_sample s;
    struct pprof_profile *p;

    cpprof_labels_set_current(labels);
    allocate(3, 700);
    cpprof_labels_set_current(NULL);
    allocate(4, 700);
    p = delta(snapshot);
    check_equal((int64_t)pprof_sample_count(p), 2,
                "a_sample_for_each_label_set");
    s = sample_of(p, 1);
    check(s.n_labels == 2 && s.values[0] == 3 &&
              strcmp(text(p, s.labels[0].text), "night") == 0,
          "with_its_label");
    pprof_free(p);
    cpprof_labels_free(labels);
    cpprof_snapshot_free(snapshot);
    release(n_blocks);
}

/* Its constructor allocated 100 bytes, and its destructor frees them. */
static void
code_that_is_gone_has_the_names_that_it_had(void)
{
    void *library = dlopen(beside_path("libheap_plugin.so"), RTLD_NOW);
    struct cpprof_snapshot *snapshot;
    struct pprof_profile *p;

    if (!library)
        bail("%s", dlerror());
    snapshot = take("heap", 0);
    dlclose(library);
    p = delta(snapshot);
    check_values(p, "load", 0, 0, -1, -100,
                 "code_that_is_gone_has_the_names_that_it_had");
    pprof_free(p);
    cpprof_snapshot_free(snapshot);
}

/* ---- the others ---------------------------------------------------------- */

CODE static void
wait_for(int64_t ns)
{
    cpprof_block_add(ns, 0);
    __asm__ volatile("");
}

static void
block_differences(void)
{
    struct cpprof_snapshot *snapshot;
    struct pprof_profile *p;

    wait_for(1000);
    snapshot = take("block", 0);
    wait_for(300);
    wait_for(500);
    p = delta(snapshot);
    check_equal(sum_under(p, "wait_for", 0), 2, "block_has_what_came");
    check_equal(sum_under(p, "wait_for", 1), 800, "and_its_delay");
    pprof_free(p);
    p = delta(snapshot);
    check_equal(sum_under(p, "wait_for", 0), 0, "block_is_at_now_again");
    check_equal((int64_t)pprof_sample_type_count(p), 2,
                "empty_block_has_its_types");
    pprof_free(p);
    cpprof_snapshot_free(snapshot);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

CODE static void *
want_lock(void *arg)
{
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return NULL;
}

CODE static void
contend(void)
{
    pthread_t thread;

    pthread_mutex_lock(&held);
    pthread_create(&thread, NULL, want_lock, NULL);
    usleep(50000);
    pthread_mutex_unlock(&held);
    pthread_join(thread, NULL);
}

static void
mutex_differences(void)
{
    struct cpprof_snapshot *snapshot;
    struct pprof_profile *p;

    contend();
    snapshot = take("mutex", 0);
    contend();
    p = delta(snapshot);
    check_equal(sum_under(p, "contend", 0), 1, "mutex_has_what_came");
    check_at_least((double)sum_under(p, "contend", 1), 1e6, "and_its_delay");
    pprof_free(p);
    cpprof_snapshot_free(snapshot);
}

static pthread_barrier_t barrier;

CODE static void *
stay(void *arg)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void
start(pthread_t *threads, int n)
{
    int i;

    pthread_barrier_init(&barrier, NULL, (unsigned)n + 1);
    for (i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, stay, NULL);
    pthread_barrier_wait(&barrier);
    usleep(50000); /* until all are in the second wait */
}

static void
end(pthread_t *threads, int n)
{
    pthread_barrier_wait(&barrier);
    while (n--)
        pthread_join(threads[n], NULL);
    pthread_barrier_destroy(&barrier);
}

CODE static struct pprof_profile *
last_delta(struct cpprof_snapshot *snapshot, int n)
{
    struct pprof_profile *p = NULL;

    while (n--) {
        pprof_free(p);
        p = delta(snapshot);
    }
    return p;
}

static void
thread_differences(void)
{
    struct cpprof_snapshot *goroutine = take("goroutine", 0);
    struct cpprof_snapshot *threadcreate = take("threadcreate", 0);
    struct pprof_profile *p;
    pthread_t threads[3];

    start(threads, 3);
    p = delta(goroutine);
    check_equal(sum_under(p, "stay", 0), 3, "threads_that_came_are_in_it");
    pprof_free(p);
    p = last_delta(goroutine, 2);
    check_equal(sum_under(p, "stay", 0), 0,
                "those_that_stay_are_no_difference");
    check_equal((int64_t)pprof_sample_count(p), 0,
                "nor_is_who_asks_from_one_place");
    pprof_free(p);
    p = delta(threadcreate);
    check_equal(sum_under(p, "start", 0), 3, "created_threads_are_in_it");
    pprof_free(p);
    end(threads, 3);
    usleep(50000); /* until the kernel lists them no more */
    p = delta(goroutine);
    check_equal(sum_under(p, "stay", 0), -3, "threads_that_went_are_negative");
    pprof_free(p);
    p = delta(threadcreate);
    check_equal(sum_under(p, "start", 0), -3, "of_threadcreate_too");
    pprof_free(p);
    cpprof_snapshot_free(goroutine);
    cpprof_snapshot_free(threadcreate);
}

/* In the child; its result is its exit code. */
static int
differences_in_child(struct cpprof_snapshot *heap,
                     struct cpprof_snapshot *block)
{
    struct pprof_profile *p;
    int wrong = 0;

    allocate(4, 100);
    p = delta(heap);
    wrong |= sum_under(p, "allocate", ALLOC_OBJECTS) != 4;
    wrong |= sum_under(p, "allocate", INUSE_SPACE) != 400;
    pprof_free(p);
    wait_for(700);
    p = delta(block);
    wrong |= (sum_under(p, "wait_for", 0) != 1) << 1;
    wrong |= (sum_under(p, "wait_for", 1) != 700) << 1;
    pprof_free(p);
    return wrong;
}

static void
a_forked_child_has_them(void)
{
    struct cpprof_snapshot *heap = take("heap", 0), *block = take("block", 0);
    struct pprof_profile *p;
    int status = -1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (!pid)
        _exit(differences_in_child(heap, block));
    waitpid(pid, &status, 0);
    check_equal(status, 0, "a_forked_child_has_them");
    p = delta(heap);
    check_values(p, "allocate", 0, 0, 0, 0, "the_parent_sees_none_of_it");
    pprof_free(p);
    cpprof_snapshot_free(heap);
    cpprof_snapshot_free(block);
}

/* ---- scrapers ------------------------------------------------------------ */

/* What a scraper knows a sample by. */
static void
put_key(FILE *out, const struct pprof_profile *p, const struct pprof_sample *s)
{
    size_t i;

    for (i = 0; i < s->n_locations; i++)
        fprintf(out, "%llx ",
                (unsigned long long)location(p, s->locations[i])->address);
    for (i = 0; i < s->n_labels; i++)
        fprintf(out, "%s=%s%lld%s ", text(p, s->labels[i].key),
                text(p, s->labels[i].text), (long long)s->labels[i].num,
                text(p, s->labels[i].unit));
}

/* All of a profile but the moment: to be freed. */
static char *
all_of(const struct pprof_profile *p)
{
    char *out_text = NULL;
    size_t n, i, j;
    FILE *out = open_memstream(&out_text, &n);

    for (i = 0; i < pprof_sample_type_count(p); i++)
        fprintf(out, "%s/%s ", text(p, pprof_sample_types(p)[i].type),
                text(p, pprof_sample_types(p)[i].unit));
    for (i = 0; i < pprof_location_count(p); i++)
        fprintf(out, "\n%zu %llx", i,
                (unsigned long long)location(p, (uint32_t)i)->address);
    for (i = 0; i < pprof_sample_count(p); i++) {
        struct pprof_sample s = sample_of(p, i);

        fputc('\n', out);
        put_key(out, p, &s);
        for (j = 0; j < pprof_sample_type_count(p); j++)
            fprintf(out, "%lld ", (long long)s.values[j]);
    }
    fclose(out);
    return out_text;
}

static void
two_scrapes_are_the_same(const char *name)
{
    struct pprof_profile *p = scrape(name), *q = scrape(name);
    char *first = all_of(p), *second = all_of(q), what[64];

    snprintf(what, sizeof what, "two_scrapes_of_%s_are_the_same", name);
    check_text(second, first, what);
    snprintf(what, sizeof what, "%s_has_samples", name);
    check_at_least((double)pprof_sample_count(p), 1, what);
    free(first);
    free(second);
    pprof_free(p);
    pprof_free(q);
}

static char *
key_of(const struct pprof_profile *p, size_t sample)
{
    struct pprof_sample s = sample_of(p, sample);
    char *key = NULL;
    size_t n;
    FILE *out = open_memstream(&key, &n);

    put_key(out, p, &s);
    fclose(out);
    return key;
}

/* The value of all samples with that key. */
static int64_t
value_at(const struct pprof_profile *p, const char *key, size_t value)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < pprof_sample_count(p); i++) {
        char *other = key_of(p, i);

        if (strcmp(key, other) == 0)
            sum += sample_of(p, i).values[value];
        free(other);
    }
    return sum;
}

/* As a scraper makes it: samples of now, less what was known by their keys. */
static int64_t
scraped_difference(const struct pprof_profile *now,
                   const struct pprof_profile *before, const char *function,
                   size_t value)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < pprof_sample_count(now); i++) {
        struct pprof_sample s = sample_of(now, i);
        char *key = key_of(now, i);

        if (has_function(now, &s, function))
            sum += s.values[value] - value_at(before, key, value);
        free(key);
    }
    return sum;
}

/* Blocks of nearly one size are one sample, whose label must not move. */
static void
differences_of_scrapers_are_right(void)
{
    struct pprof_profile *before, *now;

    allocate(100, 1025);
    before = scrape("allocs");
    allocate(50, 1100);
    release(30);
    now = scrape("allocs");
    check_equal(scraped_difference(now, before, "allocate", ALLOC_OBJECTS), 50,
                "a_scraper_counts_new_blocks_once");
    check_equal(scraped_difference(now, before, "allocate", ALLOC_SPACE),
                50 * 1100, "and_their_bytes");
    pprof_free(before);
    pprof_free(now);
    release(n_blocks);
}

int
main(void)
{
    cpprof_heap_set_rate(1);
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    heap_differences();
    allocs_keeps_its_default_sample_type();
    delta_heap_as_godeltaprof_has_it();
    a_change_of_the_rate_leaves_values_as_they_are();
    code_that_is_gone_has_the_names_that_it_had();
    block_differences();
    mutex_differences();
    thread_differences();
    a_forked_child_has_them();
    differences_of_scrapers_are_right();
    wait_for(5000);
    cpprof_heap_set_rate(0); /* what the test itself allocates */
    two_scrapes_are_the_same("heap");
    two_scrapes_are_the_same("allocs");
    cpprof_block_set_rate(0);
    two_scrapes_are_the_same("block");
    two_scrapes_are_the_same("mutex");
    cpprof_heap_set_rate(1);
    labels_tell_differences_apart();
    return check_done();
}

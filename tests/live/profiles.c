/* SPDX-License-Identifier: MIT */
/*
 * Profiles by name: those that are there, and those that a program makes (Go:
 * TestEmptyCallStack, TestGoroutineProfileTrivial's two calls).
 */
#include "session.h"
#include "tap.h"
#include "writers.h"

#include <cpprof/heap.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>
#include <cpprof/records.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cpprof_error error;

static struct cpprof_profile *
new_profile(const char *name)
{
    struct cpprof_profile *profile = NULL;

    if (cpprof_profile_new(name, &profile, &error) != CPPROF_OK)
        bail("%s: %s", name, error.text);
    return profile;
}

static struct profile *
written(struct cpprof_profile *profile)
{
    const char *path = scratch_path("custom.pb.gz");
    struct cpprof_writer writer;

    if (cpprof_writer_to_path(path, &writer, &error) != CPPROF_OK ||
        cpprof_profile_write(profile, &writer, NULL, &error) != CPPROF_OK)
        bail("%s", error.text);
    return profile_load(path);
}

/* The text with debug, to be freed. */
static char *
text_with(struct cpprof_profile *profile, int debug, uint32_t flags)
{
    const struct cpprof_profile_options options = {
        .size = sizeof options, .debug = debug, .flags = flags};
    char *text = NULL;
    size_t n;
    FILE *file = open_memstream(&text, &n);

    if (!file)
        bail("out of memory");
    if (cpprof_profile_write(profile,
                             (struct cpprof_writer[]){stream_writer(file)},
                             &options, &error) != CPPROF_OK)
        bail("%s", error.text);
    fclose(file);
    return text;
}

static char *
text_of(struct cpprof_profile *profile, int debug)
{
    return text_with(profile, debug, 0);
}

__attribute__((noinline)) static void
add_one(struct cpprof_profile *profile, const void *value, unsigned skip)
{
    if (cpprof_profile_add(profile, value, skip, &error) != CPPROF_OK)
        bail("%s", error.text);
    __asm__ volatile("");
}

__attribute__((noinline)) static void
add_from(struct cpprof_profile *profile, const void *value, unsigned skip)
{
    add_one(profile, value, skip);
    __asm__ volatile("");
}

__attribute__((noinline)) static void
add_deep(struct cpprof_profile *profile, unsigned depth, unsigned skip)
{
    if (depth)
        add_deep(profile, depth - 1, skip);
    else
        add_one(profile, "deep", skip);
    __asm__ volatile("");
}

static void
test_names(void)
{
    static const char *const always[] = {
        "allocs",   "block", "goroutine",    "heap",
        "heapleak", "mutex", "threadcreate", "threadleak"};
    static const char *const odd[] = {"a\nb", "a b", "\x7f", "\xff",
                                      "a\xc2\x85"};
    struct cpprof_profile *profile = NULL, *found[64];
    bool sorted = true;
    size_t i, n;

    check(!cpprof_profile_lookup("live/names"), "nobody has that name yet");
    profile = new_profile("live/names");
    check(cpprof_profile_lookup("live/names") == profile,
          "it is found by its name");
    check_text(cpprof_profile_name(profile), "live/names", "and tells it");
    check(cpprof_profile_new("live/names", &profile, &error) == CPPROF_INVALID,
          "a name is used once");
    check_text(error.text, "pprof: NewProfile name already in use: live/names",
               "with Go's text");
    check(cpprof_profile_new("heap", &profile, &error) == CPPROF_INVALID,
          "heap is in use");
    check(cpprof_profile_new("", &profile, &error) == CPPROF_INVALID,
          "a name has letters");
    check_text(error.text, "pprof: NewProfile with empty name",
               "with Go's text");
    for (i = 0; i < sizeof odd / sizeof *odd; i++) {
        check(cpprof_profile_new(odd[i], &profile, &error) == CPPROF_INVALID,
              "a name is one line of printable text without a space");
        check_text(error.text,
                   "pprof: NewProfile with a space or an unprintable "
                   "character in the name",
                   "and an error says so");
    }
    check(cpprof_profile_new("caf\u00e9/\u6f22", &profile, NULL) == CPPROF_OK,
          "letters of any script are text");
    for (i = 0; i < sizeof always / sizeof *always; i++)
        check_text(cpprof_profile_name(cpprof_profile_lookup(always[i])),
                   always[i], always[i]);
    check(cpprof_profile_lookup("threads") ==
              cpprof_profile_lookup("goroutine"),
          "threads is goroutine");
    n = cpprof_profile_list(found, 64);
    for (i = 1; i < n; i++)
        sorted &= strcmp(cpprof_profile_name(found[i - 1]),
                         cpprof_profile_name(found[i])) < 0;
    check(sorted && n >= 7, "profiles are listed by name");
    check_equal((int64_t)cpprof_profile_list(NULL, 0), (int64_t)n,
                "or only counted");
    profile = found[0];
    check(cpprof_profile_list(found, 1) == n && found[0] == profile,
          "the first ones when there is no room for all");
}

static void
test_errors(void)
{
    struct cpprof_profile *heap = cpprof_profile_lookup("heap");
    struct cpprof_profile *profile = new_profile("errors");
    const struct cpprof_profile_options bad = {.size = sizeof bad, .debug = -1};

    check(cpprof_profile_add(NULL, "", 0, &error) == CPPROF_INVALID,
          "no profile takes no value");
    check_text(error.text, "pprof: use of uninitialized Profile", "Go's text");
    check(cpprof_profile_add(heap, "", 0, &error) == CPPROF_INVALID,
          "a built-in one takes none either");
    check_text(error.text, "pprof: Add called on built-in Profile heap",
               "Go's text");
    cpprof_profile_remove(heap, "");
    cpprof_profile_remove(NULL, "");
    check(cpprof_profile_write(NULL, (struct cpprof_writer[]){fd_writer(1)},
                               NULL, &error) == CPPROF_INVALID,
          "no profile is not written");
    check_text(error.text, "pprof: use of zero Profile", "Go's text");
    check(cpprof_profile_write(profile, (struct cpprof_writer[]){fd_writer(1)},
                               &bad, &error) == CPPROF_INVALID,
          "nor with options that make no sense");
    check(cpprof_profile_write(profile, (struct cpprof_writer[]){fd_writer(-1)},
                               NULL, &error) == CPPROF_SYSTEM,
          "a write error is said");
}

static void
test_stacks(void)
{
    struct cpprof_profile *profile = new_profile("stacks");
    static char values[8];
    const struct sample *s;
    struct profile *p;
    size_t i;

    for (i = 0; i < 5; i++)
        add_one(profile, &values[i], 0);
    add_from(profile, &values[5], 1);
    check_equal((int64_t)cpprof_profile_count(profile), 6, "six values");
    p = written(profile);
    check_equal((int64_t)p->n_types, 1, "one type");
    check_text(p->types[0].type, "stacks", "named as the profile");
    check_text(p->types[0].unit, "count", "a count");
    check_text(p->period_type.type, "stacks", "so is the period");
    check_equal(p->period, 1, "of one");
    check_equal((int64_t)p->n_samples, 2, "equal stacks are one sample");
    s = &p->samples[0];
    check_equal(s->count, 5, "that has them counted, most first");
    check_text(s->frames[0].name, "add_one", "skip 0 begins at the caller");
    check_text(p->samples[1].frames[0].name, "add_from",
               "skip 1 at its caller");
    profile_free(p);
    for (i = 0; i < 6; i++)
        cpprof_profile_remove(profile, &values[i]);
    check_equal((int64_t)cpprof_profile_count(profile), 0, "all removed");
    p = written(profile);
    check_equal((int64_t)p->n_samples, 0, "nothing is left");
    profile_free(p);
}

static void
test_empty_stack(void)
{
    struct cpprof_profile *profile = new_profile("empty_stack");
    char *text;

    add_one(profile, "x", 47674);
    text = text_of(profile, 1);
    check(!strncmp(text, "empty_stack profile: total 1\n1 @ 0x", 34),
          "a stack that is skipped whole is one row");
    check_has(text, "[lost samples]", "with a frame that says so");
    free(text);
}

static void
test_deep(void)
{
    struct cpprof_profile *profile = new_profile("deep");
    struct profile *p;

    add_deep(profile, 300, 250);
    p = written(profile);
    check_text(p->samples[0].frames[0].name, "add_deep",
               "frames are skipped of a deep stack as well");
    check_at_least((double)p->samples[0].n_frames, 40, "and the rest is there");
    profile_free(p);
}

static void
test_bytes(void)
{
    struct cpprof_profile *profile = new_profile("bytes");
    char key[] = "key";

    check(!cpprof_profile_add_bytes(profile, key, 3, 0, NULL), "added");
    check(cpprof_profile_add_bytes(profile, "key", 3, 0, &error) ==
              CPPROF_INVALID,
          "equal bytes are the same value");
    check_text(error.text, "pprof: Profile.Add of duplicate value",
               "Go's text");
    cpprof_profile_remove_bytes(profile, "key", 3);
    check_equal((int64_t)cpprof_profile_count(profile), 0, "removed");
}

__attribute__((noinline)) static void
add_weighted(struct cpprof_profile *profile, const void *value, int64_t weight,
             const struct cpprof_labels *labels)
{
    const struct cpprof_profile_entry entry = {.size = sizeof entry,
                                               .value = value,
                                               .weight = weight,
                                               .labels = labels};

    if (cpprof_profile_add_entry(profile, &entry, &error) != CPPROF_OK)
        bail("%s", error.text);
    __asm__ volatile("");
}

/* The values of the sample with that label, or without any. */
static const struct sample *
sample_with(const struct profile *p, const char *label)
{
    size_t i;

    for (i = 0; i < p->n_samples; i++)
        if (label ? p->samples[i].n_labels &&
                        !strcmp(p->samples[i].labels[0].text, label)
                  : !p->samples[i].n_labels)
            return &p->samples[i];
    bail("no sample with %s", label ? label : "no label");
}

static void
test_weighted(void)
{
    struct cpprof_labels *red = cpprof_labels_new("pool", "red", NULL);
    struct cpprof_profile *profile;
    struct profile *p;
    char *text;
    volatile int n = 3; /* the loop is not to be three calls */
    int i;

    if (cpprof_profile_new_weighted("buffers", "space", "bytes", &profile,
                                    &error) != CPPROF_OK)
        bail("%s", error.text);
    for (i = 0; i < n; i++) /* one stack */
        add_weighted(profile, &"abc"[i], 1 << (10 * i), i ? red : NULL);
    cpprof_labels_free(red);
    p = written(profile);
    check_equal((int64_t)p->n_types, 2, "two types");
    check_text(p->types[0].type, "buffers", "how many");
    check_text(p->types[1].type, "space", "and what they weigh");
    check_text(p->types[1].unit, "bytes", "in its unit");
    check_equal((int64_t)p->n_samples, 2, "a sample for each label set");
    check_equal(sample_with(p, NULL)->cpu_ns, 1, "a weight");
    check_equal(sample_with(p, "red")->count, 2, "counts are added up");
    check_equal(sample_with(p, "red")->cpu_ns, 1024 + 1048576,
                "and weights are");
    check_text(p->samples[0].frames[0].name, "add_weighted",
               "the stack is the caller's");
    profile_free(p);
    text = text_of(profile, 1);
    check_has(text, "buffers profile: total 3\n# space: 1049600 bytes\n2 @ 0x",
              "the text counts and weighs");
    check_has(text, "\n# labels: {\"pool\":\"red\"}\n", "and has labels");
    free(text);
    cpprof_profile_remove(profile, &"abc"[2]);
    p = written(profile);
    check_equal(sample_with(p, "red")->cpu_ns, 1024,
                "what is removed weighs nothing");
    profile_free(p);
}

static void
test_weighted_edges(void)
{
    const struct cpprof_profile_entry bytes = {
        .size = sizeof bytes, .value = "key", .n_bytes = 3, .weight = -7};
    struct cpprof_profile *profile, *plain = new_profile("plain");
    struct profile *p;

    check(cpprof_profile_new_weighted("w", "", "u", &profile, &error) ==
              CPPROF_INVALID,
          "a weight needs a type");
    check_text(error.text, "pprof: NewProfile with empty type",
               "which is said");
    check(cpprof_profile_new_weighted("w", "t", "a b", &profile, &error) ==
              CPPROF_INVALID,
          "a unit is a word");
    check(!cpprof_profile_new_weighted("w", "t", "u", &profile, &error),
          "made then");
    add_one(profile, profile, 0);
    check(!cpprof_profile_add_entry(profile, &bytes, &error),
          "bytes are added");
    check(cpprof_profile_add_entry(profile, &bytes, &error) == CPPROF_INVALID,
          "once");
    p = written(profile);
    check_equal(profile_cpu_ns(p), 1 - 7,
                "a plain value weighs 1, a weight may be negative");
    profile_free(p);
    cpprof_profile_remove_bytes(profile, "key", 3);
    check_equal((int64_t)cpprof_profile_count(profile), 1, "and removed");
    check(!cpprof_profile_add_entry(plain, &bytes, &error),
          "a profile without weights takes entries");
    p = written(plain);
    check_equal((int64_t)p->n_types, 1, "and has one type");
    profile_free(p);
    /* LSan does not look into the table. */
    cpprof_profile_remove_bytes(plain, "key", 3);
    check(cpprof_profile_add_entry(plain,
                                   &(struct cpprof_profile_entry){.size = 3},
                                   &error) == CPPROF_INVALID,
          "an entry without its size is refused");
}

static void
test_text(void)
{
    struct cpprof_profile *profile = new_profile("text");
    char *text;

    add_one(profile, "x", 0);
    text = text_of(profile, 1);
    check(!strncmp(text, "text profile: total 1\n1 @ 0x", 28), "Go's head");
    check_has(text, "\n#\t0x", "frames");
    check_has(text, "\tadd_one+0x", "with names");
    check_has(text, "/profiles.c:", "files and lines");
    check(strstr(text, "cpprof_profile_add") == NULL, "none of them is ours");
    free(text);
}

/* A fork with other threads inside, and both sides go on. The values are in
 * all tables, and the others' tables grow and shrink. */
#define N_MINE   200
#define N_OTHERS 20000

static char mine[N_MINE], others[2 * N_OTHERS];

struct adder {
    pthread_t thread;
    char *values;
    int *stop;
};

static void *
adds(void *arg)
{
    struct cpprof_profile *profile = cpprof_profile_lookup("forked");
    struct adder *adder = arg;
    int i;

    while (!__atomic_load_n(adder->stop, __ATOMIC_RELAXED)) {
        for (i = 0; i < N_OTHERS; i++)
            add_one(profile, &adder->values[i], 0);
        for (i = 0; i < N_OTHERS; i++)
            cpprof_profile_remove(profile, &adder->values[i]);
    }
    return NULL;
}

static bool
has_all_of_mine(struct cpprof_profile *profile)
{
    int i;

    for (i = 0; i < N_MINE; i++)
        if (cpprof_profile_add(profile, &mine[i], 0, NULL) != CPPROF_INVALID)
            return false;
    return true;
}

/* What the others had in there goes by their calls, as often as not made. */
static bool
child_goes_on(struct cpprof_profile *profile)
{
    size_t i;

    alarm(20);
    if (!has_all_of_mine(profile))
        return false;
    for (i = 0; i < sizeof others; i++)
        cpprof_profile_remove(profile, &others[i]);
    if (cpprof_profile_count(profile) != N_MINE)
        return false;
    add_one(profile, "child's", 0);
#ifndef __SANITIZE_ADDRESS__ /* whose malloc another thread may have locked */
    free(text_of(profile, 1));
#endif
    return has_all_of_mine(profile) &&
           cpprof_profile_count(profile) == N_MINE + 1;
}

static void
test_fork(void)
{
    struct cpprof_profile *profile = new_profile("forked");
    struct adder adders[2];
    int i, status, stop = 0, good = 0;

    for (i = 0; i < N_MINE; i++)
        add_one(profile, &mine[i], 0);
    for (i = 0; i < 2; i++) {
        adders[i] =
            (struct adder){.values = &others[i * N_OTHERS], .stop = &stop};
        pthread_create(&adders[i].thread, NULL, adds, &adders[i]);
    }
    for (i = 0; i < 50; i++) {
        pid_t child = fork();

        if (!child)
            _exit(!child_goes_on(profile));
        waitpid(child, &status, 0);
        good += status == 0;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (i = 0; i < 2; i++)
        pthread_join(adders[i].thread, NULL);
    check_equal(good, 50, "children have what was there, and go on");
    check_equal((int64_t)cpprof_profile_count(profile), N_MINE,
                "what they add is theirs");
}

static void
test_records(void)
{
    struct cpprof_alloc_record *records, *r = NULL;
    size_t i, n = 0, there = 0;
    void *block;

    if (cpprof_heap_records(NULL, 0, true, &n, &error) == CPPROF_UNSUPPORTED) {
        check_skip("records of the heap", error.text);
        return;
    }
    cpprof_heap_set_rate(1);
    block = malloc(123457);
    __asm__ volatile("" : "+r"(block)); /* not left out */
    cpprof_heap_set_rate(524288);
    check(!cpprof_heap_records(NULL, 0, true, &n, &error) && n > 0,
          "records are counted without an array");
    records = calloc(n + 50, sizeof *records);
    memset(records, 0x55, sizeof *records);
    check(!cpprof_heap_records(records, n - 1, true, &there, &error) &&
              records[0].alloc_bytes == 0x5555555555555555,
          "one that is too short is left alone");
    check(!cpprof_heap_records(records, n + 50, true, &there, &error) &&
              there >= n,
          "one that is long enough is filled");
    for (i = 0; i < there; i++)
        if (records[i].alloc_bytes == 123457)
            r = &records[i];
    check(r && r->alloc_objects == 1 && r->free_objects == 0,
          "an allocation is in it");
    check(r && r->stack[0] && !r->stack[CPPROF_RECORD_DEPTH - 1],
          "with its stack and zeros after it");
    free(block);
    check(!cpprof_heap_records(records, n + 50, true, &there, &error), "again");
    r = NULL;
    for (i = 0; i < there; i++)
        if (records[i].alloc_bytes == 123457)
            r = &records[i];
    check(r && r->free_bytes == 123457, "freed, it still is in it");
    free(records);
}

/* Of this thread and one more that waits. */
static void *
waits(void *end)
{
    pthread_mutex_lock(end);
    pthread_mutex_unlock(end);
    return NULL;
}

static void
test_thread_records(void)
{
    pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
    struct cpprof_stack_record records[16];
    struct cpprof_wait_record wait;
    pthread_t thread;
    size_t n = 0;

    pthread_mutex_lock(&end);
    pthread_create(&thread, NULL, waits, &end);
    check(!cpprof_goroutine_records(NULL, 0, &n, &error) && n == 2,
          "two threads are two records");
    memset(records, 0x55, sizeof records);
    check(!cpprof_goroutine_records(records, 1, &n, &error) && n == 2 &&
              records[0].stack[0] == 0x5555555555555555,
          "which one alone has no room for");
    check(!cpprof_goroutine_records(records, 16, &n, &error) && n == 2 &&
              records[1].stack[0] && !records[1].stack[CPPROF_RECORD_DEPTH - 1],
          "two have");
    check(!cpprof_threadcreate_records(records, 16, &n, &error) && n >= 1 &&
              records[0].stack[0],
          "somebody created one of them");
    check(!cpprof_block_records(&wait, 1, &n, &error) && n == 0,
          "waits that are not asked for are not recorded");
    check(!cpprof_mutex_records(&wait, 1, &n, &error) && n == 0,
          "nor those that others made");
    pthread_mutex_unlock(&end);
    pthread_join(thread, NULL);
}

/* How often a text is in another. */
static int64_t
times_in(const char *text, const char *wanted)
{
    int64_t n = 0;

    while ((text = strstr(text, wanted))) {
        text += strlen(wanted);
        n++;
    }
    return n;
}

__attribute__((noinline)) static void
wait_under(const char *value)
{
    struct cpprof_labels *set = cpprof_labels_new("k", value, NULL);
    void *volatile block;

    cpprof_labels_set_current(set);
    cpprof_block_add(1000000, 0);
    block = malloc(1 << 20);
    free(block);
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
}

static void
check_heap_labels(void)
{
#if defined(__SANITIZE_ADDRESS__)
    check_skip("blocks of the heap have labels", "its allocator is in front");
#else
    char *text =
        text_with(cpprof_profile_lookup("heap"), 1, CPPROF_FLAG_LABELS);

    check_at_least(times_in(text, "\n# labels: {\"k\":\"one\"}\n"), 1,
                   "and so have blocks of the heap");
    check_equal(times_in(text, "too "), 0, "no others there, either");
    free(text);
#endif
}

/* Before anybody wrote a profile with labels. */
static void
test_labels(void)
{
    struct cpprof_profile *block = cpprof_profile_lookup("block");
    static const char *const values[] = {"too early", "one", "two", "too late"};
    char *text;
    int i;

    cpprof_block_set_rate(1);
    cpprof_heap_set_rate(1);
    check_equal(cpprof_labels_keep(-1), 0, "labels are not kept at the start");
    for (i = 0; i < 4; i++) {
        check_equal(cpprof_labels_keep(i == 1 || i == 2), i == 2 || i == 3,
                    "what was set before is told");
        wait_under(values[i]);
    }
    cpprof_block_set_rate(0);
    cpprof_heap_set_rate(0);
    text = text_with(block, 1, CPPROF_FLAG_LABELS);
    check_equal(times_in(text, "\n# labels: {\"k\":\"one\"}\n"), 1,
                "waits have the labels of their thread");
    check_equal(times_in(text, "\n# labels: {\"k\":\"two\"}\n"), 1, "by set");
    check_equal(times_in(text, "too "), 2, "whatever the heap keeps");
    check_equal(times_in(text, " @ "), 4, "in a row for each");
    free(text);
    text = text_of(block, 1);
    check_equal(times_in(text, " @ "), 1, "without labels it is one");
    check_equal(times_in(text, "# labels"), 0, "with no word of them");
    free(text);
    check_heap_labels();
}

static void
test_large_labels(void)
{
    struct cpprof_profile *threads = cpprof_profile_lookup("goroutine");
    char *value = calloc(1, 1000001), *text;
    struct cpprof_labels *set;
    int debug;

    if (!value)
        bail("out of memory");
    memset(value, 'x', 1000000);
    set = cpprof_labels_new("large", value, NULL);
    cpprof_labels_set_current(set);
    for (debug = 1; debug <= 2; debug++) {
        text = text_of(threads, debug);
        check_equal(times_in(text, "1000008 bytes, too large"), 1,
                    "a set that is too large says so");
        check(strlen(text) < 100000, "and takes no room");
        free(text);
    }
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
    free(value);
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_names();
    test_errors();
    test_stacks();
    test_empty_stack();
    test_deep();
    test_bytes();
    test_weighted();
    test_weighted_edges();
    test_text();
    test_fork();
    test_records();
    test_thread_records();
    test_labels();
    test_large_labels();
    return check_done();
}

/* SPDX-License-Identifier: MIT */
/*
 * A server whose CPU profile says which request the time went to.
 *
 *     cc labels.c -lcpprof && ./a.out
 *     cpprof tags labels.pb.gz
 *     cpprof top -tagfocus=route=/search labels.pb.gz
 */
#include <cpprof/cpprof.h>
#include <cpprof/labels.h>

#include <stdint.h>
#include <stdio.h>
#include <time.h>

static volatile uint64_t sink;

static void
burn(unsigned ms)
{
    clock_t end = clock() + (clock_t)ms * (CLOCKS_PER_SEC / 1000);

    while (clock() < end)
        sink = sink * 31 + 7;
}

struct request {
    const char *route;
    unsigned ms;
};

/* A scope: labels for the rest of the block. */
static void
search(void)
{
    CPPROF_LABELS_SCOPE("stage", "index");
    burn(30);
}

static void
serve(void *arg)
{
    const struct request *request = arg;

    burn(request->ms);
    if (request->ms > 10)
        search();
}

/* A call: labels for as long as it takes, numbers among them. */
static void
handle(struct request *request)
{
    const struct cpprof_label labels[] = {
        {.key = "route", .str = request->route},
        {.key = "size", .num = request->ms * 1024, .unit = "bytes"},
    };
    struct cpprof_labels *set = NULL;

    cpprof_labels_merge(NULL, labels, 2, &set, NULL);
    cpprof_labels_do(set, serve, request);
    cpprof_labels_free(set);
}

int
main(void)
{
    static struct request requests[] = {
        {"/cart", 5}, {"/search", 20}, {"/", 1}};
    struct cpprof_writer writer;
    struct cpprof_error error;
    int i;

    if (cpprof_writer_to_path("labels.pb.gz", &writer, &error) ||
        cpprof_cpu_start(&writer, NULL, &error)) {
        fprintf(stderr, "labels: %s\n", error.text);
        return 1;
    }
    for (i = 0; i < 60; i++)
        handle(&requests[i % 3]);
    if (cpprof_cpu_stop(&error)) {
        fprintf(stderr, "labels: %s\n", error.text);
        return 1;
    }
    return 0;
}

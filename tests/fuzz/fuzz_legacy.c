/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as each of the formats that came before profile.proto.
 *
 * The first byte chooses the reader, or all in their order; the rest is the
 * file. By hand: tests/fuzz/run legacy SECONDS.
 */
#include "profile/legacy/legacy.h"
#include "rewrite.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static cpprof__legacy_reader *const readers[] = {
    cpprof__read_cpu,     cpprof__read_heap,       cpprof__read_count,
    cpprof__read_threads, cpprof__read_contention, cpprof__read_java,
};
#define N_READERS (sizeof readers / sizeof *readers)

static void
mind(struct pprof_profile *p)
{
    /* What a reader leaves is checked by the caller of all of them. */
    if (pprof_check(p, NULL) == CPPROF_OK)
        must_survive_writing(p);
}

static void
ask_one(cpprof__legacy_reader *read, const char *data, size_t n)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error error = {0};

    if (cpprof__legacy_try(read, data, n, &p, &error) == CPPROF_OK)
        expect(!error.text[0]);
    else
        expect(error.text[0] != 0);
    if (p) {
        expect(cpprof__legacy_frames(p, NULL) == CPPROF_OK);
        mind(p);
    }
    pprof_free(p);
}

static void
ask_all(const char *data, size_t n)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error error = {0};
    enum cpprof_status status = cpprof__read_legacy(data, n, &p, &error);

    expect((status == CPPROF_OK) == (p != NULL));
    expect((status == CPPROF_OK) == !error.text[0]);
    if (p)
        mind(p);
    pprof_free(p);
}

/* As a file is read: protobuf first. */
static void
ask_file(const char *data, size_t n)
{
    struct pprof_read_options options = {sizeof options, MAX_BYTES};
    struct pprof_profile *p = NULL;

    if (pprof_read_data(data, n, &options, &p, NULL) != CPPROF_OK)
        return;
    must_survive_writing(p);
    expect(pprof_drop_frames(p, NULL) == CPPROF_OK);
    must_be_valid(p);
    pprof_free(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *text = (const char *)data + 1;
    size_t choice;

    if (!n)
        return 0;
    choice = *data % (N_READERS + 2);
    if (choice < N_READERS)
        ask_one(readers[choice], text, n - 1);
    else if (choice == N_READERS)
        ask_all(text, n - 1);
    else
        ask_file(text, n - 1);
    return 0;
}

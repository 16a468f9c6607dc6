/* SPDX-License-Identifier: MIT */
/*
 * How far reading a profile is from the least that it can cost: unpacking it
 * with libdeflate and looking once at every number in it.
 *
 *     data_decode ROUNDS FILE ...
 *
 * Both are done in turn in this process, so that only what ran side by side is
 * compared; prints the medians of the CPU times and of their ratio.
 */
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cpprof/pprof/profile.h>

#define ROUNDS_MAX 100

/* So that nothing of the pass can be left out. */
static volatile uint64_t sink;

struct input {
    const unsigned char *data; /* as in the file */
    size_t n_bytes;
    size_t n_plain;
};

static double
cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
fail(const char *what)
{
    fprintf(stderr, "data_decode: %s\n", what);
    exit(1);
}

/* No bounds: the input is a file that cpprof has read. */
static inline uint64_t
varint(const unsigned char **at)
{
    const unsigned char *p = *at;
    uint64_t byte = *p++, value = byte & 127;
    int shift = 7;

    while (byte > 127) {
        byte = *p++;
        value |= (byte & 127) << shift;
        shift += 7;
    }
    *at = p;
    return value;
}

/* What profile.proto has in a field of a message: another message, packed
 * numbers, or text. The messages are named by their field at the top. */
enum content { TEXT, NUMBERS, MESSAGE };

static enum content
content_of(unsigned message, uint64_t field)
{
    switch (message) {
    case 0:
        return field < 6 || field == 11 ? MESSAGE : TEXT;
    case 2: /* Sample */
        return field < 3 ? NUMBERS : field == 3 ? MESSAGE : TEXT;
    case 4: /* Location */
        return field == 4 ? MESSAGE : TEXT;
    default:
        return TEXT;
    }
}

static uint64_t
sum_numbers(const unsigned char *p, const unsigned char *end)
{
    uint64_t sum = 0;

    while (p < end)
        sum += varint(&p);
    return sum;
}

/* One pass over every number of a message. */
static uint64_t
look(const unsigned char *p, const unsigned char *end, unsigned message)
{
    uint64_t sum = 0;

    while (p < end) {
        uint64_t key = varint(&p), field = key >> 3, n;
        enum content content;

        if ((key & 7) == 0) {
            sum += varint(&p) * field;
            continue;
        }
        if ((key & 7) != 2)
            fail("a wire type that these files do not have");
        n = varint(&p);
        content = content_of(message, field);
        if (content == MESSAGE)
            sum += look(p, p + n, message ? 100 : (unsigned)field);
        else if (content == NUMBERS)
            sum += sum_numbers(p, p + n);
        p += n;
    }
    return sum;
}

static double
least(const struct input *in)
{
    double start = cpu_seconds();
    struct libdeflate_decompressor *unpacker = libdeflate_alloc_decompressor();
    unsigned char *plain = malloc(in->n_plain);
    size_t n = 0;

    if (!unpacker || !plain ||
        libdeflate_gzip_decompress(unpacker, in->data, in->n_bytes, plain,
                                   in->n_plain, &n) != LIBDEFLATE_SUCCESS)
        fail("cannot unpack; is it one member of gzip?");
    sink += look(plain, plain + n, 0);
    free(plain);
    libdeflate_free_decompressor(unpacker);
    return cpu_seconds() - start;
}

static double
ours(const struct input *in)
{
    double start = cpu_seconds();
    struct cpprof_error error = {0};
    struct pprof_profile *profile;

    if (pprof_read_data(in->data, in->n_bytes, NULL, &profile, &error))
        fail(error.text);
    sink += pprof_sample_count(profile);
    pprof_free(profile);
    return cpu_seconds() - start;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
median(double *all, int n)
{
    qsort(all, (size_t)n, sizeof *all, compare);
    return all[n / 2];
}

static struct input
load(const char *path)
{
    struct input in = {0};
    int fd = open(path, O_RDONLY);
    uint32_t plain;
    struct stat st;
    void *map;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 18)
        fail("cannot open the file");
    map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE,
               fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        fail("cannot map the file");
    in.data = map;
    in.n_bytes = (size_t)st.st_size;
    /* RFC 1952, 2.3.1: the last four bytes are the size, little endian. */
    memcpy(&plain, in.data + in.n_bytes - 4, sizeof plain);
    in.n_plain = plain;
    return in;
}

static void
measure(const char *path, int n_rounds)
{
    double floor[ROUNDS_MAX], own[ROUNDS_MAX], ratio[ROUNDS_MAX];
    struct input in = load(path);
    const char *name = strrchr(path, '/');
    int i;

    ours(&in); /* warm */
    for (i = 0; i < n_rounds; i++) {
        floor[i] = least(&in);
        own[i] = ours(&in);
        ratio[i] = own[i] / floor[i];
    }
    printf("%-18s %8.1f MB  limit %8.1f ms  cpprof %8.1f ms  ratio %.2f\n",
           name ? name + 1 : path, (double)in.n_plain / 1e6,
           median(floor, n_rounds) * 1e3, median(own, n_rounds) * 1e3,
           median(ratio, n_rounds));
    munmap((void *)(uintptr_t)in.data, in.n_bytes);
}

int
main(int argc, char **argv)
{
    int n_rounds = argc > 2 ? atoi(argv[1]) : 0, i;

    if (n_rounds < 1 || n_rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: data_decode ROUNDS FILE ...\n");
        return 2;
    }
    for (i = 2; i < argc; i++)
        measure(argv[i], n_rounds);
    return 0;
}

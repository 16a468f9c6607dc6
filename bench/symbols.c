/* SPDX-License-Identifier: MIT */
/*
 * What symbolizing costs, and what it says.
 *
 *     bench_symbols FILE [N]       time N (1000) random addresses of its code,
 *                                  the first time and again, and the memory
 *     bench_symbols -a FILE        frames of the addresses on stdin, as
 *                                  llvm-symbolizer --no-demangle prints them
 *
 * Addresses are those of the file, as nm prints them. Debug files are found as
 * for a profile.
 */
#include "object/symbolizer.h"

#include <fcntl.h>
#include <gelf.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MOST_FRAMES 64
#define BASE        0x7f0000000000u /* where the image seems to be loaded */

extern const struct cpprof__symbolizer_ops cpprof__symbolizer;

/* The code of the image: its executable segment. */
struct code {
    char *path;
    uint64_t start; /* address in the file */
    uint64_t n;
    uint64_t offset;
};

struct symbols {
    struct cpprof__symbolizer *symbolizer;
    size_t mapping;
};

static double
seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int
find_code(struct code *code, const char *path)
{
    int fd = open(path, O_RDONLY);
    size_t n = 0;
    size_t i;
    Elf *elf;

    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf)
        elf_getphdrnum(elf, &n);
    for (i = 0; i < n; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
            header.p_flags & PF_X && header.p_filesz > code->n) {
            code->start = header.p_vaddr;
            code->n = header.p_filesz;
            code->offset = header.p_offset;
        }
    }
    elf_end(elf);
    close(fd);
    code->path = realpath(path, NULL);
    return code->n && code->path;
}

static void
open_symbols(struct symbols *symbols, const struct code *code)
{
    struct cpprof__symbolizer_options options = {0};
    uint64_t page = code->offset & ~(uint64_t)4095;
    struct cpprof__symbolizer_mapping mapping = {
        .start = BASE + code->start - (code->offset - page),
        .limit = BASE + code->start + code->n,
        .offset = page,
        .path = code->path,
        .build_id = ""};

    symbols->symbolizer = cpprof__symbolizer.make(&options);
    symbols->mapping =
        cpprof__symbolizer.add_mapping(symbols->symbolizer, &mapping);
}

static size_t
resolve(struct symbols *symbols, uint64_t address, struct cpprof__frame *frames)
{
    return cpprof__symbolizer.resolve(symbols->symbolizer, symbols->mapping,
                                      BASE + address, frames, MOST_FRAMES);
}

static void
print_frames(struct symbols *symbols, uint64_t address)
{
    struct cpprof__frame frames[MOST_FRAMES];
    size_t n = resolve(symbols, address, frames);
    size_t i;

    if (!n)
        printf("??\n??:0:0\n");
    for (i = 0; i < n; i++)
        printf("%s\n%s:%lld:%lld\n", frames[i].system_name,
               frames[i].file ? frames[i].file : "??",
               (long long)frames[i].line, (long long)frames[i].column);
    printf("\n");
}

static void
time_round(struct symbols *symbols, const uint64_t *addresses, size_t n,
           const char *label)
{
    struct cpprof__frame frames[MOST_FRAMES];
    double wall = seconds(CLOCK_MONOTONIC);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    size_t n_frames = 0;
    size_t n_named = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        size_t found = resolve(symbols, addresses[i], frames);

        n_frames += found;
        n_named += found > 0;
    }
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%s: %zu addresses, %zu named, %.2f frames each; %.1f ms, "
           "%.1f ms CPU, %.1f us CPU each\n",
           label, n, n_named, n_named ? (double)n_frames / (double)n_named : 0,
           wall * 1e3, cpu * 1e3, cpu * 1e6 / (double)n);
}

static void
print_memory(const char *label)
{
    struct mallinfo2 heap = mallinfo2();
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    printf("%s: %.1f MB of heap, %.1f MB resident at most\n", label,
           (double)(heap.uordblks + heap.hblkhd) / 1e6,
           (double)usage.ru_maxrss / 1e3);
}

static void
measure(const struct code *code, size_t n)
{
    uint64_t *addresses = malloc(n * sizeof *addresses);
    struct symbols symbols;
    double start;
    size_t i;

    srandom(1);
    for (i = 0; i < n; i++)
        addresses[i] =
            code->start +
            ((uint64_t)random() << 16 ^ (uint64_t)random()) % code->n;
    print_memory("before");
    start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    open_symbols(&symbols, code);
    cpprof__symbolizer.knows_inlines(symbols.symbolizer, symbols.mapping);
    printf("open: %.1f ms CPU\n",
           (seconds(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e3);
    time_round(&symbols, addresses, n, "cold");
    print_memory("after");
    time_round(&symbols, addresses, n, "warm");
    cpprof__symbolizer.free(symbols.symbolizer);
    print_memory("freed");
    free(addresses);
}

static void
answer(const struct code *code)
{
    struct symbols symbols;
    char line[64];

    open_symbols(&symbols, code);
    while (fgets(line, sizeof line, stdin))
        print_frames(&symbols, strtoull(line, NULL, 16));
    cpprof__symbolizer.free(symbols.symbolizer);
}

int
main(int argc, char **argv)
{
    int answers = argc > 1 && strcmp(argv[1], "-a") == 0;
    struct code code = {0};

    if (argc < 2 + answers || !find_code(&code, argv[1 + answers])) {
        fprintf(stderr, "usage: bench_symbols [-a] FILE [N]\n");
        return 2;
    }
    if (answers)
        answer(&code);
    else
        measure(&code, argc > 2 ? strtoul(argv[2], NULL, 10) : 1000);
    free(code.path);
    return 0;
}

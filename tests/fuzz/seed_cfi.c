/* SPDX-License-Identifier: MIT */
/*
 * Write the first inputs of fuzz_cfi: seed_cfi DIRECTORY. Sections that make
 * sense, each with a stack that it leads through; a fuzzer does the rest.
 *
 *     cc -Isrc -Itests/unit -o seed_cfi tests/fuzz/seed_cfi.c
 *     ./seed_cfi tests/fuzz/corpus/cfi
 */
/* Small files: .eh_frame follows its header closely. */
#define FRAMES_AT 64
#include "../unit/cfi_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define N_WORDS      32
#define FROM_SECTION (0xfe01ull << 48)
#define FROM_STACK   (0xfe02ull << 48)

/* As in fuzz_cfi.c. */
struct input {
    uint8_t flags;
    uint8_t hdr_at;
    uint16_t pc;
    uint32_t known;
    uint64_t regs[CPPROF__N_REGS];
    uint64_t stack[N_WORDS];
};

struct seed {
    const char *name;
    uint8_t pointers; /* encoding of FDE addresses */
    uint8_t count;
    uint8_t table;
    const char *augmentation;
    uint8_t code[32];
    size_t n_code;
};

#define RA 0x80 | RA_COLUMN, 1

static const struct seed seeds[] = {
    {"plain", 0x1b, 0x03, 0x3b, "zR", {0x0c, SP, 16, RA}, 5},
    {"frame-pointer",
     0x1b,
     0x03,
     0x3b,
     "zR",
     {0x0c, CPPROF__REG_FP, 16, RA, 0x80 | CPPROF__REG_FP, 2},
     7},
    {"advance",
     0x1b,
     0x03,
     0x3b,
     "zR",
     {0x0c, SP, 8, RA,   0x44, 0x0e, 16,   0x02, 4,    0x0e, 24,
      0x03, 8,  0, 0x0e, 32,   0x0a, 0x0e, 40,   0x41, 0x0b, 0xc0 | A},
     22},
    {"expression",
     0x1b,
     0x03,
     0x3b,
     "zPLR",
     {0x0f, 3, 0x70 + SP, 8, 0x06, RA, 0x10, A, 2, 0x70 + SP, 0, 0x16, B, 4,
      0x31, 0x12, 0x22, 0x96},
     19},
    {"plt",
     0x1b,
     0x03,
     0x3b,
     "zR",
     {0x0f, 11, 0x70 + SP, 8, 0x70 + A, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
      0x22, RA},
     15},
    {"register",
     0x1b,
     0x03,
     0x3b,
     "zR",
     {0x0c, A, 16, RA, 0x09, B, A, 0x14, A, 2, 0x08, B + 1, 0x07, B + 2},
     15},
    {"signal",
     0x1b,
     0x03,
     0x3b,
     "zRS",
     {0x0c, SP, 16, RA, 0x16, SP, 2, 0x70 + SP, 8},
     10},
    {"absolute-table", 0x1b, 0x04, 0x3c, "zR", {0x0c, SP, 16, RA}, 5},
    {"relative-table", 0x3b, 0x01, 0x1b, "zR", {0x0c, SP, 16, RA}, 5},
    {"no-table", 0x1b, 0xff, 0xff, "zR", {0x0c, SP, 16, RA}, 5},
    {"root", 0x1b, 0x03, 0x3b, "zR", {0x07, RA_COLUMN}, 2},
};

static void
build(const struct seed *seed)
{
    struct cie cie = {USUAL_CIE};

    cie.augmentation = seed->augmentation;
    cie.pointers = seed->pointers;
    begin_section(&section);
    put_cie(&section, &cie);
    put_fde(&section, (uintptr_t)section.bytes, 256, seed->code, seed->n_code);
    put_fde(&section, (uintptr_t)section.bytes + 256, 65536, seed->code,
            seed->n_code);
    put_header(&section, 0x1b, seed->count, seed->table);
}

static void
fill(struct input *in)
{
    size_t i;

    memset(in, 0, sizeof *in);
    in->flags = 1 | 4;
    in->pc = 40;
    for (i = 0; i < CPPROF__N_REGS; i++)
        in->regs[i] = FROM_STACK | 16;
    in->regs[CPPROF__REG_SP] = FROM_STACK;
    for (i = 0; i < N_WORDS; i++)
        in->stack[i] = i % 3 == 0 ? FROM_STACK | (8 * i + 24)
                                  : FROM_SECTION | (41 + 4 * i);
}

static void
write_seed(const char *directory, const struct seed *seed)
{
    struct input in;
    char path[4096];
    FILE *file;

    build(seed);
    fill(&in);
    snprintf(path, sizeof path, "%s/%s", directory, seed->name);
    file = fopen(path, "wb");
    if (file == NULL || fwrite(&in, sizeof in, 1, file) != 1 ||
        fwrite(section.bytes, section.n, 1, file) != 1 || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int
main(int argc, char **argv)
{
    size_t i;

    if (argc != 2) {
        fprintf(stderr, "usage: seed_cfi DIRECTORY\n");
        return 2;
    }
    for (i = 0; i < sizeof seeds / sizeof *seeds; i++)
        write_seed(argv[1], &seeds[i]);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target over files, without a fuzzer: replay DIRECTORY. TAP, one test a
 * file; a target that aborts or faults ends it. Each input is also given with
 * its tail cut off, which is where most readers go wrong.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (1 << 20)

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t buffer[MAX_BYTES];

/* Exactly n bytes, with nothing behind them that a sanitizer would allow. */
static void
give(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    if (copy == NULL)
        abort();
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static int
replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t n;
    size_t cut;

    if (file == NULL)
        return 0;
    n = fread(buffer, 1, sizeof buffer, file);
    fclose(file);
    give(buffer, n);
    for (cut = 1; cut < n && cut < 300; cut++)
        give(buffer, n - cut);
    return n > 0;
}

int
main(int argc, char **argv)
{
    struct dirent **names;
    unsigned n_tests = 0;
    unsigned n_failed = 0;
    int n;
    int i;

    n = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
    if (n < 0) {
        puts("Bail out! replay DIRECTORY");
        return 1;
    }
    for (i = 0; i < n; i++) {
        char path[4096];
        int ok;

        if (names[i]->d_name[0] == '.')
            continue; /* no input */
        snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
        ok = replay(path);
        n_failed += !ok;
        printf("%sok %u - %s\n", ok ? "" : "not ", ++n_tests, names[i]->d_name);
    }
    while (n > 0)
        free(names[--n]);
    free(names);
    printf("1..%u\n", n_tests);
    return n_failed > 0 || n_tests == 0;
}

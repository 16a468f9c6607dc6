/* SPDX-License-Identifier: MIT */
/*
 * The reference's own test data, where it is: beside each FILE lies
 * FILE.string, which is what Profile.String() makes of it. CPPROF_SHARED is
 * the folder that has them.
 */
#include "profile/gunzip.h"

#include "write_fixture.h"

#include <dirent.h>
#include <stdio.h>

#define PROFILES  CPPROF_SHARED "/testdata/pprof/profile/testdata"
#define GENERATED CPPROF_SHARED "/testdata/pprof/generated"

static void
load(const char *folder, const char *name, struct cpprof__buffer *bytes)
{
    char path[4096];
    FILE *file;
    size_t n;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    assert_non_null(file);
    do {
        assert_true(cpprof__buffer_reserve(bytes, 65536));
        n = fread(bytes->data + bytes->n, 1, 65536, file);
        bytes->n += n;
    } while (n);
    fclose(file);
}

/* Say what differs, and where; the others are still looked at. */
static int
differs(const char *name, const char *when, const struct written *got,
        const struct cpprof__buffer *expected)
{
    size_t i = 0;

    if (got->bytes.n == expected->n &&
        memcmp(got->bytes.data, expected->data, expected->n) == 0)
        return 0;
    while (i < got->bytes.n && i < expected->n &&
           got->bytes.data[i] == expected->data[i])
        i++;
    printf("# %s, %s: differs at byte %zu of %zu (expected %zu)\n", name, when,
           i, got->bytes.n, expected->n);
    return 1;
}

/* The text of a file; of what it is written as and read from again. */
static int
check_text(const char *name)
{
    struct cpprof__buffer bytes = {0}, expected = {0};
    struct pprof_profile *p = NULL, *again;
    struct cpprof_error error = {0};
    struct written text, written;
    char golden[300];
    int n_bad = 0;

    snprintf(golden, sizeof golden, "%s.string", name);
    load(PROFILES, name, &bytes);
    load(PROFILES, golden, &expected);
    if (pprof_read_data(bytes.data, bytes.n, NULL, &p, &error)) {
        printf("# %s: %s\n", name, error.text);
        n_bad++;
    } else {
        text = must_write(p, PPROF_FORMAT_TEXT);
        n_bad += differs(name, "read", &text, &expected);
        written_free(&text);
        written = must_write(p, PPROF_FORMAT_GZIP);
        again = read_back(&written);
        text = must_write(again, PPROF_FORMAT_TEXT);
        n_bad += differs(name, "written and read", &text, &expected);
        pprof_free(again);
        written_free(&written);
        written_free(&text);
    }
    pprof_free(p);
    cpprof__buffer_free(&bytes);
    cpprof__buffer_free(&expected);
    return n_bad;
}

/* Go wrote these; what we write of them is what it wrote. */
static int
check_bytes(const char *name)
{
    struct cpprof__buffer bytes = {0}, plain = {0};
    struct pprof_profile *p;
    struct written written;
    int n_bad;

    load(GENERATED, name, &bytes);
    assert_int_equal(
        cpprof__gunzip(&plain, bytes.data, bytes.n, SIZE_MAX, NULL), CPPROF_OK);
    p = must_read_bytes(bytes.data, bytes.n);
    written = must_write(p, PPROF_FORMAT_PLAIN);
    n_bad = differs(name, "written", &written, &plain);
    written_free(&written);
    pprof_free(p);
    cpprof__buffer_free(&bytes);
    cpprof__buffer_free(&plain);
    return n_bad;
}

/* Check every file of a folder whose name has the ending, given without it. */
static void
check_folder(const char *folder, const char *ending, bool strip,
             int (*check)(const char *name))
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int n_bad = 0, n_checked = 0;

    if (!dir) {
        print_message("# %s is not here\n", folder);
        return;
    }
    while ((entry = readdir(dir))) {
        char name[256];
        size_t n = strlen(entry->d_name), n_ending = strlen(ending);

        if (n <= n_ending || strcmp(entry->d_name + n - n_ending, ending) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(strip ? n - n_ending : n),
                 entry->d_name);
        n_bad += check(name);
        n_checked++;
    }
    closedir(dir);
    assert_int_not_equal(n_checked, 0);
    assert_int_equal(n_bad, 0);
}

static void
every_golden_prints_its_text(void **state)
{
    check_folder(PROFILES, ".string", true, check_text);
}

static void
what_go_wrote_is_written_with_the_same_bytes(void **state)
{
    check_folder(GENERATED, ".pb.gz", false, check_bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_golden_prints_its_text),
        cmocka_unit_test(what_go_wrote_is_written_with_the_same_bytes),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

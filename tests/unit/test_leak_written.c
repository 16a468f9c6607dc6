/* SPDX-License-Identifier: MIT */
/* Which pages were written, as the kernel tells it and by the entries of pages.
 */
#include "collect/leak/written.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE    4096u
#define N_PAGES 2000u

static uint8_t *memory;
static int pagemap, entries; /* of the kernel; a file of the same words */

static void
map(int flags, int fd)
{
    memory = mmap(NULL, (size_t)N_PAGES * PAGE, PROT_READ | PROT_WRITE, flags,
                  fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    madvise(memory, (size_t)N_PAGES * PAGE, MADV_NOHUGEPAGE);
    pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

static void
copy_entries(void)
{
    char path[] = "/tmp/written.XXXXXX";
    uint64_t words[N_PAGES];
    off_t at = (off_t)((uintptr_t)memory / PAGE * 8);

    entries = mkstemp(path);
    unlink(path);
    assert_int_equal(pread(pagemap, words, sizeof words, at), sizeof words);
    assert_int_equal(pwrite(entries, words, sizeof words, at), sizeof words);
}

static void
unmap(void)
{
    munmap(memory, (size_t)N_PAGES * PAGE);
    close(pagemap);
    close(entries);
}

/* For each page, whether a part of it was told. */
static void
tell(int fd, size_t from, size_t to, bool is_file, uint8_t *told)
{
    struct cpprof__written written;
    uintptr_t start, end, last = 0;

    memset(told, 0, N_PAGES);
    cpprof__written_begin(&written, fd, (uintptr_t)memory + from,
                          (uintptr_t)memory + to, is_file);
    while (cpprof__written_next(&written, &start, &end)) {
        assert_true(start >= (uintptr_t)memory + from && start >= last);
        assert_true(end <= (uintptr_t)memory + to && start < end);
        last = end;
        memset(told + (start - (uintptr_t)memory) / PAGE, 1,
               (end - 1) / PAGE - start / PAGE + 1);
    }
}

static void
check_both(size_t from, size_t to, bool is_file, const uint8_t *wanted)
{
    uint8_t told[N_PAGES];

    tell(pagemap, from, to, is_file, told);
    assert_memory_equal(told, wanted, N_PAGES);
    tell(entries, from, to, is_file, told);
    assert_memory_equal(told, wanted, N_PAGES);
}

/* More regions than are asked for at once; ends that are in a page. */
static void
only_pages_that_were_written_are_told(void **state)
{
    uint8_t wanted[N_PAGES] = {0};
    unsigned i;

    (void)state;
    map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    for (i = 0; i < N_PAGES; i++)
        if (i % 2 || i / 100 == 7 || i / 300 == 5)
            memory[i * PAGE] = wanted[i] = 1;
    copy_entries();
    check_both(0, N_PAGES * PAGE, false, wanted);
    memset(wanted, 0, 702);
    memset(wanted + 1999, 0, 1);
    check_both(702 * PAGE + 8, 1998 * PAGE + 16, false, wanted);
    memset(wanted, 0, N_PAGES);
    wanted[701] = 1;
    check_both(701 * PAGE + 8, 701 * PAGE + 24, false, wanted);
    check_both(4 * PAGE, 4 * PAGE, false, (uint8_t[N_PAGES]){0});
    assert_true(cpprof__written_is(pagemap, (uintptr_t)memory + PAGE + 5));
    assert_false(cpprof__written_is(pagemap, (uintptr_t)memory + 5));
    unmap();
}

/* Of a private mapping of a file. */
static void
pages_that_are_still_the_files_do_not_count(void **state)
{
    char path[] = "/tmp/written.XXXXXX";
    uint8_t wanted[N_PAGES] = {0};
    int file = mkstemp(path);
    unsigned i;

    (void)state;
    unlink(path);
    assert_int_equal(ftruncate(file, (off_t)N_PAGES * PAGE), 0);
    map(MAP_PRIVATE, file);
    for (i = 0; i < N_PAGES; i++)
        if (i % 3 == 1)
            memory[i * PAGE] = wanted[i] = 1;
        else if (i % 3)
            (void)((volatile uint8_t *)memory)[i * PAGE];
    copy_entries();
    check_both(0, N_PAGES * PAGE, true, wanted);
    unmap();
    close(file);
}

static void
what_cannot_be_read_is_told(void **state)
{
    uint8_t wanted[N_PAGES];

    (void)state;
    map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    copy_entries();
    memset(wanted, 1, N_PAGES);
    tell(-1, 0, N_PAGES * PAGE, true, wanted);
    assert_int_equal(wanted[0] + wanted[N_PAGES - 1], 2);
    unmap();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_pages_that_were_written_are_told),
        cmocka_unit_test(pages_that_are_still_the_files_do_not_count),
        cmocka_unit_test(what_cannot_be_read_is_told),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The table of script locations: the same location has one word, whoever adds
 * it, and reading trusts nothing. */
#include "collect/signal/tables/scripts.h"

#include "heap_core_fixture.h"

#include <pthread.h>
#include <unistd.h>

#define N_THREADS   8
#define N_LOCATIONS 10000

static const struct cpprof__script_location sort = {
    .mapping = "[lua]",
    .name = "sort",
    .system_name = "M.sort",
    .file = "@list.lua",
    .start_line = 10,
    .line = 12,
    .has_name = true,
};

static int
make(void **state)
{
    struct cpprof__scripts *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_true(
        cpprof__scripts_make(s, fresh_pages(CPPROF__SCRIPTS_BYTES), NULL));
    *state = s;
    return 0;
}

static int
unmake(void **state)
{
    struct cpprof__scripts *s = *state;

    munmap(s->head, CPPROF__SCRIPTS_BYTES);
    free(s);
    return 0;
}

static void
a_location_reads_back_as_it_was_added(void **state)
{
    struct cpprof__scripts *s = *state;
    struct cpprof__script_location read;
    uint64_t pc = cpprof__scripts_add(s, &sort);

    assert_true(cpprof__is_script(pc));
    assert_true(pc != CPPROF__SCRIPT_NO_ROOM);
    assert_true(cpprof__scripts_read(s, pc, &read));
    assert_string_equal(read.mapping, "[lua]");
    assert_string_equal(read.name, "sort");
    assert_string_equal(read.system_name, "M.sort");
    assert_string_equal(read.file, "@list.lua");
    assert_int_equal(read.start_line, 10);
    assert_int_equal(read.line, 12);
}

static void
same_location_has_the_same_word_and_each_difference_another(void **state)
{
    struct cpprof__scripts *s = *state;
    struct cpprof__script_location other[7];
    uint64_t pcs[8];
    size_t i, j;

    for (i = 0; i < 7; i++)
        other[i] = sort;
    other[0].line = 13;
    other[1].start_line = 11;
    other[2].file = "@lists.lua";
    other[3].system_name = "N.sort";
    other[4].name = "";
    other[5].mapping = "[python]";
    other[6].key = 1;
    pcs[7] = cpprof__scripts_add(s, &sort);
    for (i = 0; i < 7; i++)
        pcs[i] = cpprof__scripts_add(s, &other[i]);
    for (i = 0; i < 8; i++)
        for (j = 0; j < i; j++)
            assert_true(pcs[i] != pcs[j]);
    for (i = 0; i < 7; i++)
        assert_true(cpprof__scripts_add(s, &other[i]) == pcs[i]);
}

static void
texts_that_are_missing_read_as_empty(void **state)
{
    const struct cpprof__script_location bare = {.mapping = "[lua]", .line = 3};
    struct cpprof__scripts *s = *state;
    struct cpprof__script_location read;

    assert_true(cpprof__scripts_read(s, cpprof__scripts_add(s, &bare), &read));
    assert_string_equal(read.name, "");
    assert_string_equal(read.system_name, "");
    assert_string_equal(read.file, "");
    assert_int_equal(read.line, 3);
}

static void
function_with_a_key_is_the_same_whatever_its_texts_are(void **state)
{
    struct cpprof__scripts *s = *state;
    struct cpprof__script_location first = sort, second = sort;
    struct cpprof__script_location read;
    uint64_t pc;

    first.key = second.key = 77;
    pc = cpprof__scripts_add(s, &first);
    second.name = "other";
    second.has_name = false;
    assert_true(cpprof__scripts_add(s, &second) == pc);
    assert_true(cpprof__scripts_read(s, pc, &read));
    assert_string_equal(read.name, "sort");
    assert_true(read.key == 77);
}

static void
a_name_that_comes_later_counts_for_all_locations(void **state)
{
    struct cpprof__scripts *s = *state;
    struct cpprof__script_location location = sort, read;
    uint64_t pcs[2];
    size_t i;

    location.key = 5;
    location.has_name = false;
    location.name = location.system_name = "";
    pcs[0] = cpprof__scripts_add(s, &location);
    assert_true(cpprof__scripts_read(s, pcs[0], &read));
    assert_string_equal(read.name, "");
    assert_false(read.has_name);
    location.line++;
    location.has_name = true;
    location.name = "sort";
    location.system_name = "M.sort";
    pcs[1] = cpprof__scripts_add(s, &location);
    for (i = 0; i < 2; i++) {
        assert_true(cpprof__scripts_read(s, pcs[i], &read));
        assert_string_equal(read.name, "sort");
        assert_string_equal(read.system_name, "M.sort");
    }
    location.name = "newer";
    cpprof__scripts_add(s, &location);
    assert_true(cpprof__scripts_read(s, pcs[0], &read));
    assert_string_equal(read.name, "newer");
}

static void
longer_text_is_cut_between_characters(void **state)
{
    struct cpprof__scripts *s = *state;
    struct cpprof__script_location location = sort, read;
    char text[2001];
    uint64_t pc;

    memset(text, 'x', 2000);
    text[2000] = 0;
    location.file = text;
    pc = cpprof__scripts_add(s, &location);
    assert_true(cpprof__scripts_read(s, pc, &read));
    assert_int_equal(strlen(read.file), 1023);
    assert_true(cpprof__scripts_add(s, &location) == pc);
    memcpy(text + 1022, "\xc3\xa4", 2); /* one character */
    assert_true(
        cpprof__scripts_read(s, cpprof__scripts_add(s, &location), &read));
    assert_int_equal(strlen(read.file), 1022);
}

static void
full_table_refuses_new_locations_and_keeps_the_old(void **state)
{
    struct cpprof__scripts *s = *state;
    struct cpprof__script_location location = sort, read;
    uint64_t pc, first = cpprof__scripts_add(s, &sort);
    unsigned i;

    for (i = 0;; i++) {
        location.line = i;
        pc = cpprof__scripts_add(s, &location);
        if (pc == CPPROF__SCRIPT_NO_ROOM)
            break;
    }
    assert_in_range(i, 100000, 1000000);
    assert_true(cpprof__scripts_add(s, &sort) == first);
    assert_true(cpprof__scripts_read(s, first, &read));
    location.name = "sort2";
    location.key = 8;
    assert_true(cpprof__scripts_add(s, &location) == CPPROF__SCRIPT_NO_ROOM);
    assert_true(cpprof__scripts_in_use(s) <= CPPROF__SCRIPTS_BYTES);
}

/* The file ends where a file system would be full. */
static void
file_without_more_room_is_not_touched(void **state)
{
    struct cpprof__scripts s;
    struct cpprof__script_location location = sort;
    FILE *file = tmpfile();
    char path[64];
    void *block;

    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), 1 << 20), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
    block = mmap(NULL, CPPROF__SCRIPTS_BYTES, PROT_READ | PROT_WRITE,
                 MAP_SHARED, fileno(file), 0);
    assert_ptr_not_equal(block, MAP_FAILED);
    assert_true(cpprof__scripts_make(&s, block, path));
    while (location.line < 100000 &&
           cpprof__scripts_add(&s, &location) != CPPROF__SCRIPT_NO_ROOM)
        location.line++;
    assert_in_range(location.line, 30000, 100000);
    munmap(block, CPPROF__SCRIPTS_BYTES);
    fclose(file);
}

static void
what_is_no_location_reads_as_nothing(void **state)
{
    struct cpprof__scripts *s = *state, none = {0};
    uint64_t pc = cpprof__scripts_add(s, &sort);
    const uint64_t bad[] = {CPPROF__SCRIPT_NO_ROOM,
                            pc + 8,
                            pc + 1,
                            pc - 8,
                            UINT64_MAX,
                            pc & ~CPPROF__SCRIPT_PC,
                            0x401000,
                            0,
                            CPPROF__SCRIPT_PC | CPPROF__SCRIPTS_BYTES};
    struct cpprof__script_location read;
    size_t i;

    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(cpprof__scripts_read(s, bad[i], &read));
        assert_string_equal(read.mapping, "");
        assert_string_equal(read.file, "");
    }
    assert_false(cpprof__scripts_read(&none, pc, &read));
    assert_true(cpprof__scripts_add(&none, &sort) == CPPROF__SCRIPT_NO_ROOM);
}

/* ---- threads ---------------------------------------------------------- */

struct adder {
    struct cpprof__scripts *scripts;
    uint64_t pcs[N_LOCATIONS];
    pthread_t thread;
};

static void
name_location(struct cpprof__script_location *location, char text[32], size_t i)
{
    *location = sort;
    snprintf(text, 32, "function %zu", i / 10);
    location->name = location->system_name = text;
    location->key = i % 20 < 10 ? i / 10 + 1 : 0;
    location->line = (int64_t)i;
}

static void *
add_all(void *arg)
{
    struct adder *adder = arg;
    struct cpprof__script_location location;
    char text[32];
    size_t i;

    for (i = 0; i < N_LOCATIONS; i++) {
        name_location(&location, text, i);
        adder->pcs[i] = cpprof__scripts_add(adder->scripts, &location);
    }
    return NULL;
}

static void
threads_that_add_the_same_locations_find_the_same_words(void **state)
{
    static struct adder adders[N_THREADS];
    struct cpprof__script_location location, read;
    char text[32];
    size_t i, j;

    for (i = 0; i < N_THREADS; i++) {
        adders[i].scripts = *state;
        assert_int_equal(
            pthread_create(&adders[i].thread, NULL, add_all, &adders[i]), 0);
    }
    for (i = 0; i < N_THREADS; i++)
        pthread_join(adders[i].thread, NULL);
    for (i = 0; i < N_LOCATIONS; i++) {
        name_location(&location, text, i);
        assert_true(cpprof__scripts_read(*state, adders[0].pcs[i], &read));
        assert_string_equal(read.name, location.name);
        assert_int_equal(read.line, location.line);
        for (j = 1; j < N_THREADS; j++)
            assert_true(adders[j].pcs[i] == adders[0].pcs[i]);
    }
}

/* ---- damage ----------------------------------------------------------- */

#define N_FEW 64

/* TSan knows nothing of bounds, and this is one thread: each path is enough. */
#ifdef __SANITIZE_THREAD__
#define N_DAMAGED 1000
#else
#define N_DAMAGED 100000
#endif

static uint32_t
draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static size_t
read_every_word(const struct cpprof__scripts *s, const uint64_t *pcs)
{
    struct cpprof__script_location read;
    size_t i, sum = 0;

    for (i = 0; i < N_FEW; i++) {
        cpprof__scripts_read(s, pcs[i], &read);
        sum += strlen(read.mapping) + strlen(read.name) + strlen(read.file) +
               strlen(read.system_name);
    }
    assert_true(sum <= (size_t)N_FEW * 4 * 1023);
    return sum;
}

static void
add_few(struct cpprof__scripts *s, uint64_t *pcs)
{
    struct cpprof__script_location location;
    char text[32];
    size_t i;

    for (i = 0; i < N_FEW; i++) {
        name_location(&location, text, i);
        pcs[i] = cpprof__scripts_add(s, &location);
    }
}

static void
copy_that_is_cut_off_reads_within_its_bounds(void **state)
{
    struct cpprof__scripts *s = *state, cut;
    size_t n = cpprof__scripts_in_use(s);
    uint64_t pcs[N_FEW];
    size_t whole, size;

    add_few(s, pcs);
    whole = read_every_word(s, pcs);
    for (size = n; size < cpprof__scripts_in_use(s); size += 7) {
        char *copy = malloc(size); /* nothing behind it */

        assert_non_null(copy);
        memcpy(copy, s->head, size);
        assert_true(cpprof__scripts_open(&cut, copy, size));
        assert_true(read_every_word(&cut, pcs) <= whole);
        free(copy);
    }
    assert_false(cpprof__scripts_open(&cut, s->head, n - 1));
}

static void
damaged_copy_reads_and_grows_within_its_bounds(void **state)
{
    struct cpprof__scripts *s = *state, copy;
    size_t begin = cpprof__scripts_head_bytes();
    uint64_t pcs[N_FEW], again[N_FEW];
    uint32_t seed = 1;
    size_t n, i;
    char *block;

    add_few(s, pcs);
    n = cpprof__scripts_in_use(s);
    block = malloc(n);
    assert_non_null(block);
    memcpy(block, s->head, n);
    assert_true(cpprof__scripts_open(&copy, block, n));
    for (i = 0; i < N_DAMAGED; i++) {
        size_t at = begin + draw(&seed) % (n - begin);
        unsigned n_bits = draw(&seed) % 32;

        while (n_bits--)
            block[begin + draw(&seed) % (n - begin)] ^=
                (char)(1u << draw(&seed) % 8);
        block[at] = (char)draw(&seed);
        read_every_word(&copy, pcs);
        if (i % 100 == 0) {
            add_few(&copy, again);
            memcpy(block, s->head, begin);
        }
        memcpy(block + begin, (char *)s->head + begin, n - begin);
    }
    free(block);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_location_reads_back_as_it_was_added),
        CASE(same_location_has_the_same_word_and_each_difference_another),
        CASE(texts_that_are_missing_read_as_empty),
        CASE(function_with_a_key_is_the_same_whatever_its_texts_are),
        CASE(a_name_that_comes_later_counts_for_all_locations),
        CASE(longer_text_is_cut_between_characters),
        CASE(full_table_refuses_new_locations_and_keeps_the_old),
        CASE(file_without_more_room_is_not_touched),
        CASE(what_is_no_location_reads_as_nothing),
        CASE(threads_that_add_the_same_locations_find_the_same_words),
        CASE(copy_that_is_cut_off_reads_within_its_bounds),
        CASE(damaged_copy_reads_and_grows_within_its_bounds),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
#ifdef __SANITIZE_THREAD__
    /* Of one thread there is nothing to tell, and it takes most of the time. */
    cmocka_set_skip_filter("full_table_refuses_*");
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}

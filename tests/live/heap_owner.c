/* SPDX-License-Identifier: MIT */
/*
 * A heap profile is refused, with a name, where the program's malloc is not
 * ours: its own, shown or hidden, or that of a library in front of us. Behind
 * us an allocator is seen.
 */
#include "command.h"
#include "tap.h"

#include <cpprof/heap.h>

#include <stdio.h>
#include <string.h>

static struct result result;

static const char *
output_of(const char *program, const char *preload)
{
    const char *const argv[] = {beside_path(program), NULL};
    char variable[9000];
    const char *const environment[] = {variable, NULL};

    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", preload);
    run_command(argv, environment, 60, &result);
    check_equal(result.status, 0, program);
    return result.out;
}

int
main(void)
{
    char behind[9000];

    check_has(output_of("heap_own_malloc", ""), "the program",
              "a program's own malloc is named");
    check_has(output_of("heap_hidden_malloc", ""), "the program",
              "a malloc that it hides is named too");
    check_has(output_of("heap_our_malloc", ""), "0 written",
              "without one a profile is written");
    /* It allocates before our constructor and after our destructor. */
    snprintf(behind, sizeof behind, "libcpprof.so.1:%s",
             beside_path("libheap_plugin.so"));
    check_has(output_of("heap_our_malloc", behind), "0 written",
              "also with a library that starts before us and ends after us");
    output_of("heap_our_malloc", "libjemalloc.so.2");
    if (strstr(result.err, "cannot be preloaded")) {
        check_skip("an allocator in front", "no jemalloc is installed");
        return check_done();
    }
    check_has(result.out, "libjemalloc", "an allocator in front is named");
    snprintf(behind, sizeof behind, "%s:libjemalloc.so.2", library_path());
    check_has(output_of("heap_our_malloc", behind), "0 written",
              "one behind us is seen");
    return check_done();
}

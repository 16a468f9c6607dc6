/* SPDX-License-Identifier: MIT */
/*
 * Debug files from a server: fetched when asked for, and otherwise nothing
 * goes to the network, whatever $DEBUGINFOD_URLS says.
 */
#include "symbol_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static pid_t server;

static void
start_server(void)
{
    write_file("server.py",
               "import http.server, os\n"
               "server = http.server.HTTPServer(('127.0.0.1', 0),\n"
               "    http.server.SimpleHTTPRequestHandler)\n"
               "open('port.new', 'w').write(str(server.server_port))\n"
               "os.rename('port.new', 'port')\n"
               "server.serve_forever()\n");
    server = fork();
    if (server == 0) {
        if (freopen("server.log", "w", stderr))
            execlp("python3", "python3", "-u", "server.py", (char *)NULL);
        _exit(127);
    }
}

/* Where it listens, once it does. */
static void
set_environment(void)
{
    char url[64];
    char cache[128];
    unsigned port = 0;
    FILE *file = NULL;
    int i;

    for (i = 0; i < 500 && !(file = fopen("port", "r")); i++)
        usleep(20000);
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%u", &port), 1);
    fclose(file);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("DEBUGINFOD_URLS", url, 1);
    setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
}

/* A library whose debug information only the server has. */
static int
make_library(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("inline.c", INLINE_SOURCE);
    return !run("gcc -O2 -fPIC -shared -g -Wl,--build-id=sha1 -o full.so "
                "%s/inline.c && objcopy --strip-debug full.so away.so && "
                "id=$(readelf -n away.so | sed -n 's/.*Build ID: //p') && "
                "mkdir -p buildid/$id && objcopy --only-keep-debug full.so "
                "buildid/$id/debuginfo",
                folder);
}

static int
stop_server(void **state)
{
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
    return remove_folder(state);
}

static size_t
ask(bool debuginfod)
{
    struct cpprof__symbolizer_options options = {.debuginfod = debuginfod};
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    size_t n;

    load(&l, "away.so", "at_leaf");
    l.symbolizer = cpprof__symbolizer.make(&options);
    l.index = cpprof__symbolizer.add_mapping(l.symbolizer, &l.mapping);
    n = frames_at(&l, "at_leaf", frames);
    assert_string_equal(frames[n - 1].name, "outer");
    unload(&l);
    return n;
}

static void
no_server_is_asked_unless_the_user_asks(void **state)
{
    NEED("python3");
    start_server();
    set_environment();
    assert_int_equal(ask(false), 1);
    assert_false(run("grep -q GET server.log"));
    assert_false(run("grep -q libdebuginfod /proc/%d/maps", getpid()));
}

static void
debug_file_is_fetched_for_a_user_who_asks(void **state)
{
    void *library;

    NEED("python3");
    library = dlopen("libdebuginfod.so.1", RTLD_NOW);
    if (!library) {
        say_skipped("libdebuginfod");
        return;
    }
    dlclose(library);
    assert_int_equal(ask(true), 3);
    assert_true(run("grep -q 'GET /buildid/' server.log"));
}

static void
server_that_does_not_have_it_is_no_harm(void **state)
{
    NEED("python3");
    assert_true(run("rm -rf buildid cache"));
    assert_int_equal(ask(true), 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_server_is_asked_unless_the_user_asks),
        cmocka_unit_test(debug_file_is_fetched_for_a_user_who_asks),
        cmocka_unit_test(server_that_does_not_have_it_is_no_harm),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_library, stop_server);
}

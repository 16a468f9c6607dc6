/* SPDX-License-Identifier: MIT */
/* Who may ask, and where a server listens. */
#include "http/server/address.h"
#include "http/server/guard.h"
#include "http/server/peer.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct cpprof__http_address address;
static struct cpprof_error error;

static void
only_the_token_itself_is_the_token(void **state)
{
    (void)state;
    assert_true(cpprof__http_token_is("Bearer secret", "secret"));
    assert_true(cpprof__http_token_is("bearer  secret", "secret"));
    assert_false(cpprof__http_token_is("Bearer secre", "secret"));
    assert_false(cpprof__http_token_is("Bearer secrets", "secret"));
    assert_false(cpprof__http_token_is("Bearer Secret", "secret"));
    assert_false(cpprof__http_token_is("Bearer ", "secret"));
    assert_false(cpprof__http_token_is("Basic secret", "secret"));
    assert_false(cpprof__http_token_is("secret", "secret"));
    assert_false(cpprof__http_token_is(NULL, "secret"));
}

static void
a_name_that_is_no_address_is_not_here(void **state)
{
    static const char *const here[] = {
        "127.0.0.1:6060",  "127.0.0.1",     "[::1]:6060",
        "[::1]",           "localhost",     "LOCALHOST:1",
        "localhost.:6060", "10.0.0.1",      "",
        "a.localhost:80",  "A.b.LocalHost."};
    static const char *const elsewhere[] = {"evil.example",
                                            "localhost.evil.example",
                                            "127.0.0.1.evil.example:80",
                                            "a",
                                            "[::1].evil.example",
                                            "[::1",
                                            "[evil]",
                                            "1.2.3",
                                            ":6060x.",
                                            ".localhost",
                                            "evillocalhost",
                                            "localhostx"};
    size_t i;

    (void)state;
    assert_true(cpprof__http_host_is_here(NULL));
    for (i = 0; i < sizeof here / sizeof *here; i++)
        assert_true(cpprof__http_host_is_here(here[i]));
    for (i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (cpprof__http_host_is_here(elsewhere[i]))
            fail_msg("here: %s", elsewhere[i]);
}

static bool
parses(const char *text)
{
    return cpprof__http_address_parse(text, &address, &error) == CPPROF_OK;
}

static void
another_site_gets_pages_and_no_data(void **state)
{
    static const char *const pages[] = {"/",          "/debug/pprof/",
                                        "/ui",        "/ui/top",
                                        "/ui/assets", "/debug/pprof/ui/a.js"};
    static const char *const data[] = {"/debug/pprof/heap",
                                       "/ui/api/report/top", "/ui/api",
                                       "/ui/download", "/uix"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof pages / sizeof *pages; i++)
        assert_true(cpprof__http_site_may_ask("cross-site", pages[i]));
    for (i = 0; i < sizeof data / sizeof *data; i++) {
        assert_false(cpprof__http_site_may_ask("cross-site", data[i]));
        assert_true(cpprof__http_site_may_ask("same-origin", data[i]));
        assert_true(cpprof__http_site_may_ask(NULL, data[i]));
    }
    assert_false(cpprof__http_site_may_ask("same-site", "/ui/api/boxes"));
    assert_true(cpprof__http_site_may_ask("same-site", "/ui/top"));
    assert_true(cpprof__http_site_may_ask("same-site", "/debug/pprof/heap"));
}

static void
what_changes_something_comes_from_a_page_of_ours(void **state)
{
    static const char own[] = "http://localhost:80", host[] = "LOCALHOST:80";

    (void)state;
    assert_true(cpprof__http_is_same_origin("same-origin", NULL, host));
    assert_true(cpprof__http_is_same_origin(NULL, own, host));
    assert_false(cpprof__http_is_same_origin("same-site", own, host));
    assert_false(cpprof__http_is_same_origin("cross-site", own, host));
    assert_false(cpprof__http_is_same_origin("none", own, host));
    assert_false(cpprof__http_is_same_origin(NULL, "null", host));
    assert_false(cpprof__http_is_same_origin(NULL, own, "localhost:81"));
    assert_false(cpprof__http_is_same_origin(NULL, own, NULL));
    assert_false(cpprof__http_is_same_origin(NULL, NULL, host));
}

static void
gzip_is_for_those_who_list_it(void **state)
{
    (void)state;
    assert_true(cpprof__http_takes_gzip("gzip"));
    assert_true(cpprof__http_takes_gzip("br;q=1 , GZIP ; q=0.001"));
    assert_false(cpprof__http_takes_gzip(NULL));
    assert_false(cpprof__http_takes_gzip(""));
    assert_false(cpprof__http_takes_gzip("identity"));
    assert_false(cpprof__http_takes_gzip("gzip;q=0.000, br"));
    assert_false(cpprof__http_takes_gzip("gzipped, x-gzip,"));
}

/* Is its user told for a connection that is there, and not for a closed one? */
static void
ask_whose(const char *text,
          bool (*ask)(const struct sockaddr_storage *own,
                      const struct sockaddr_storage *other, uid_t *uid))
{
    struct sockaddr_storage own = {0}, other = {0};
    socklen_t n = sizeof own;
    uid_t uid = (uid_t)-1;
    int fd, client;

    assert_true(parses(text));
    if (cpprof__http_address_listen(&address, text, &fd, &error) != CPPROF_OK)
        return; /* no IPv6 here */
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &n), 0);
    client = socket(own.ss_family, SOCK_STREAM, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&own, n), 0);
    n = sizeof other;
    assert_int_equal(getsockname(client, (struct sockaddr *)&other, &n), 0);
    assert_true(ask(&own, &other, &uid));
    assert_int_equal(uid, getuid());
    shutdown(client, SHUT_WR);
    assert_false(ask(&own, &other, &uid));
    close(client);
    assert_false(ask(&own, &other, &uid));
    close(fd);
}

static void
the_kernel_tells_whose_a_connection_is(void **state)
{
    (void)state;
    if (access("/proc/net/tcp", R_OK) != 0) {
        print_message("# there is no /proc/net/tcp\n");
        return;
    }
    ask_whose("127.0.0.1:0", cpprof__http_peer_by_table);
    ask_whose("[::1]:0", cpprof__http_peer_by_table);
}

static void
netlink_tells_it_too_where_it_is_there(void **state)
{
    struct sockaddr_storage none = {.ss_family = AF_INET};
    uid_t uid;

    (void)state;
    /* Whoever listens at port 0: nobody, so there is no answer. */
    assert_false(cpprof__http_peer_by_netlink(&none, &none, &uid));
    if (access("/sys/module/tcp_diag", F_OK) != 0) {
        print_message("# this kernel has no tcp_diag\n");
        return; /* what cmocka says of skip() is a failure to meson */
    }
    ask_whose("127.0.0.1:0", cpprof__http_peer_by_netlink);
    ask_whose("[::1]:0", cpprof__http_peer_by_netlink);
}

static void
addresses_are_read_and_told_again(void **state)
{
    static const struct {
        const char *text, *told;
        bool here;
    } good[] = {
        {"127.0.0.1:6060", "127.0.0.1:6060", true},
        {"127.9.9.9:0", "127.9.9.9:0", true},
        {"[::1]:6060", "[::1]:6060", true},
        {"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true},
        {"localhost:6060", "127.0.0.1:6060", true},
        {":65535", ":65535", false},
        {"0.0.0.0:6060", "0.0.0.0:6060", false},
        {"[::]:6060", "[::]:6060", false},
        {"10.1.2.3:80", "10.1.2.3:80", false},
        {"unix:/tmp/x", "unix:/tmp/x", true},
        {"unix:x:1", "unix:x:1", true},
    };
    char told[160];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(parses(good[i].text));
        cpprof__http_address_text(&address, told, sizeof told);
        assert_string_equal(told, good[i].told);
        assert_int_equal(cpprof__http_address_is_here(&address), good[i].here);
    }
}

static void
what_is_no_address_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "6060",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:-1",
                                      "127.0.0.1:1x",
                                      "127.0.0.1:999999",
                                      "::1:6060",
                                      "[::1]",
                                      "[]:1",
                                      "[::1:1",
                                      "example.com:80",
                                      "unix:",
                                      "256.0.0.1:1",
                                      "[::1%lo]:1"};
    char path[300];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parses(bad[i]))
            fail_msg("taken: %s", bad[i]);
    memset(path, 'p', sizeof path - 1);
    memcpy(path, "unix:/", 6);
    path[sizeof path - 1] = 0;
    assert_false(parses(path));
    assert_non_null(strstr(error.text, "at most 107 bytes, this one 294"));
}

static void
a_socket_that_nobody_listens_on_is_replaced(void **state)
{
    char folder[] = "/tmp/cpprof-XXXXXX", text[64];
    struct stat st;
    mode_t before;
    int fd, second;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(text, sizeof text, "unix:%s/s", folder);
    before = umask(0);
    assert_true(parses(text));
    assert_int_equal(cpprof__http_address_listen(&address, text, &fd, &error),
                     CPPROF_OK);
    umask(before);
    assert_int_equal(stat(text + 5, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(
        cpprof__http_address_listen(&address, text, &second, &error),
        CPPROF_SYSTEM);
    assert_non_null(strstr(error.text, "Address already in use"));
    close(fd);
    assert_int_equal(
        cpprof__http_address_listen(&address, text, &second, &error),
        CPPROF_OK);
    close(second);
    /* What is no socket stays. */
    unlink(text + 5);
    file = fopen(text + 5, "w");
    fclose(file);
    assert_int_equal(cpprof__http_address_listen(&address, text, &fd, &error),
                     CPPROF_SYSTEM);
    assert_int_equal(unlink(text + 5), 0);
    assert_int_equal(rmdir(folder), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gzip_is_for_those_who_list_it),
        cmocka_unit_test(only_the_token_itself_is_the_token),
        cmocka_unit_test(a_name_that_is_no_address_is_not_here),
        cmocka_unit_test(another_site_gets_pages_and_no_data),
        cmocka_unit_test(what_changes_something_comes_from_a_page_of_ours),
        cmocka_unit_test(the_kernel_tells_whose_a_connection_is),
        cmocka_unit_test(netlink_tells_it_too_where_it_is_there),
        cmocka_unit_test(addresses_are_read_and_told_again),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_socket_that_nobody_listens_on_is_replaced),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

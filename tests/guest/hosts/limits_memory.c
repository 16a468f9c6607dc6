/* SPDX-License-Identifier: MIT */
/* guest: 3. ulimit -v and -d: started with little, the program has its
 * memory. */
#include "host.h"
#include <sys/resource.h>

int
main(int argc, char **argv)
{
    struct rlimit data = {12000 * 1024, 12000 * 1024};
    struct rlimit space = {192 << 20, 192 << 20};
    char *words[] = {argv[0], "again", NULL};
    void *block;

    if (argc == 1) {
        setrlimit(RLIMIT_DATA, &data);
        setrlimit(RLIMIT_AS, &space);
        execv("/proc/self/exe", words);
        return 99;
    }
    block = malloc(4 << 20);
    EXPECT(block != NULL, "no 4 MB");
    busy_ms(40);
    puts("runs");
    free(block);
    return host_wrong;
}

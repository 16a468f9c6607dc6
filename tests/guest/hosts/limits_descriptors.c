/* SPDX-License-Identifier: MIT */
/* guest: 3. Few descriptors are allowed: the program has all of them. */
#include "host.h"
#include <fcntl.h>
#include <sys/resource.h>

int
main(void)
{
    struct rlimit few = {16, 16};
    int n = 0;

    setrlimit(RLIMIT_NOFILE, &few);
    busy_ms(60);
    while (open("/dev/null", O_RDONLY) >= 0)
        n++;
    EXPECT(errno == EMFILE, "open: %s", strerror(errno));
    EXPECT(n == 13, "%d descriptors were free", n);
    busy_ms(30);
    return host_wrong;
}

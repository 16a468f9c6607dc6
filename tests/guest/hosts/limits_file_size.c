/* SPDX-License-Identifier: MIT */
/* guest: 3. ulimit -f 0: no SIGXFSZ for what the program did not write. */
#include "host.h"
#include <sys/resource.h>

int
main(void)
{
    struct rlimit none = {0, 0};

    setrlimit(RLIMIT_FSIZE, &none);
    busy_ms(80);
    free(malloc(1 << 20));
    return host_wrong;
}

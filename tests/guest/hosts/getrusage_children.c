/* SPDX-License-Identifier: MIT */
/* guest: Times and names of the process are the program's. */
#include "host.h"
#include <sys/prctl.h>
#include <sys/resource.h>

int
main(void)
{
    struct rusage usage;
    char name[17] = "";

    busy_ms(100);
    getrusage(RUSAGE_CHILDREN, &usage);
    EXPECT(usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec == 0,
           "children used time");
    prctl(PR_GET_NAME, name);
    printf("%s\n", name);
    EXPECT(getpriority(PRIO_PROCESS, 0) == 0, "another priority");
    return host_wrong;
}

/* SPDX-License-Identifier: MIT */
/* guest: 2. Inside dl_iterate_phdr() a thread is waited for that allocates for
 * the first time, by operator new of a C++ runtime that is there from the
 * start. links: stdc++ */
#include "host.h"
#include <link.h>

void *
_Znwm(size_t n);
void
_ZdlPv(void *address);

static void *
allocates(void *unused)
{
    void *address = _Znwm(100);

    EXPECT(address, "no memory");
    _ZdlPv(address);
    return unused;
}

static int
each(struct dl_phdr_info *info, size_t size, void *unused)
{
    pthread_t thread;

    EXPECT(pthread_create(&thread, NULL, allocates, NULL) == 0, "no thread");
    EXPECT(pthread_join(thread, NULL) == 0, "not joined");
    return 1;
}

int
main(void)
{
    alarm(20);
    EXPECT(dl_iterate_phdr(each, NULL) == 1, "nothing was looked at");
    return host_wrong;
}

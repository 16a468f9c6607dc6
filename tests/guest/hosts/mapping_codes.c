/* SPDX-License-Identifier: MIT */
/* guest: mmap and its kin answer as they do without us. */
#include "host.h"
#include <sys/mman.h>

int
main(void)
{
    char *a = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *b;

    EXPECT(a != MAP_FAILED, "mmap");
    a[100] = 5;
    b = mremap(a, 1 << 20, 4 << 20, MREMAP_MAYMOVE);
    EXPECT(b != MAP_FAILED && b[100] == 5, "mremap");
    EXPECT(munmap(b + 8192, 4096) == 0, "munmap of a part");
    EXPECT(munmap(b, 4 << 20) == 0, "munmap");
    EXPECT(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                   MAP_FAILED &&
               errno == EINVAL,
           "mmap of nothing: %s", strerror(errno));
    EXPECT(munmap((void *)1, 1) < 0 && errno == EINVAL, "munmap of nothing");
    return host_wrong;
}

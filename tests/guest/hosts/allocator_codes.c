/* SPDX-License-Identifier: MIT */
/* guest: malloc and its kin answer as they do without us. */
#include "host.h"
#include <malloc.h>

int
main(void)
{
    volatile size_t huge = SIZE_MAX / 2;
    void *block = NULL, *other;

    errno = 0;
    EXPECT(!malloc(huge) && errno == ENOMEM, "malloc: %s", strerror(errno));
    errno = 0;
    EXPECT(!calloc(huge, 4) && errno == ENOMEM, "calloc: %s", strerror(errno));
    EXPECT(posix_memalign(&block, 3, 16) == EINVAL, "posix_memalign");
    EXPECT(posix_memalign(&block, 4096, 100) == 0 &&
               (uintptr_t)block % 4096 == 0,
           "it is not aligned");
    EXPECT(malloc_usable_size(block) >= 100, "it is too small");
    free(block);
    block = malloc(10);
    memset(block, 3, 10);
    for (size_t n = 20; n < 5000000; n *= 3) {
        other = realloc(block, n);
        EXPECT(other && ((char *)other)[9] == 3, "realloc %zu", n);
        block = other;
    }
    free(block);
    free(NULL);
    other = aligned_alloc(64, 128);
    EXPECT(other && (uintptr_t)other % 64 == 0, "aligned_alloc");
    free(other);
    return host_wrong;
}

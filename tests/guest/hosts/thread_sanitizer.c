/* SPDX-License-Identifier: MIT */
/* guest: 5. A program built with ThreadSanitizer ends without an error. It is
 * not profiled: ThreadSanitizer ends programs with threads that it does not
 * know. sanitizer: thread */
#include "host.h"

static void *
allocate(void *arg)
{
    char *blocks[64];

    for (int i = 0; i < 64; i++)
        blocks[i] = calloc(1, 1000 * (size_t)(i + 1));
    busy_ms(30);
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return arg;
}

int
main(void)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        EXPECT(!pthread_create(&threads[i], NULL, allocate, NULL), "thread");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    busy_ms(50);
    return host_wrong;
}

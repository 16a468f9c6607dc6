/* SPDX-License-Identifier: MIT */
/* What attach_calls loads in the place of libcpprof.so: it answers, and takes
 * memory, as the loader would not let it under a lock that somebody holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int
cpprof_attach(const char *config, char *message, size_t size);
EXPORT int
cpprof_detach(char *message, size_t size);

int
cpprof_attach(const char *config, char *message, size_t size)
{
    char *copy = strdup(config);

    snprintf(message, size, "heard %s", copy);
    free(copy);
    return strcmp(config, "fail") == 0;
}

int
cpprof_detach(char *message, size_t size)
{
    snprintf(message, size, "bye");
    return 0;
}

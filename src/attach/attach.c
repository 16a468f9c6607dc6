/* SPDX-License-Identifier: MIT */
#include <cpprof/attach.h>

#include <errno.h>
#include <stdio.h>

static int
say(int code, const char *why, char *message, size_t size)
{
    if (message && size)
        snprintf(message, size, "%s", why);
    return code;
}

int
cpprof_attach(const char *config, char *message, size_t size)
{
    if (!config)
        return say(EINVAL, "no config", message, size);
    return say(ENOTSUP, "not supported yet", message, size);
}

int
cpprof_detach(char *message, size_t size)
{
    return say(0, "", message, size);
}

/* SPDX-License-Identifier: MIT */
#include "cli/resource.h"

#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

char *
cpprof__cli_resource(void)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                "UVWXYZ0123456789-._~/:@";
    const char *attributes = getenv("OTEL_RESOURCE_ATTRIBUTES"),
               *name = getenv("OTEL_SERVICE_NAME");
    struct cpprof__buffer text = {0};

    if (attributes)
        cpprof__buffer_append(&text, attributes, strlen(attributes));
    /* The last one of a key counts. */
    if (name && *name)
        cpprof__buffer_printf(&text, "%sservice.name=", text.n ? "," : "");
    for (; name && *name; name++)
        if (strchr(plain, *name))
            cpprof__buffer_append(&text, name, 1);
        else
            cpprof__buffer_printf(&text, "%%%02X", (unsigned char)*name);
    if (text.n)
        cpprof__buffer_append(&text, "", 1);
    return (char *)text.data;
}

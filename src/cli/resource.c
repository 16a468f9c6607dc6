/* SPDX-License-Identifier: MIT */
#include "cli/resource.h"

#include "base/text.h"
#include "cli/messages.h"

#include <stdlib.h>
#include <string.h>

char *
cpprof__cli_resource(void)
{
    const char *attributes = getenv("OTEL_RESOURCE_ATTRIBUTES"),
               *name = getenv("OTEL_SERVICE_NAME");
    struct cpprof__buffer text = {0};
    size_t n;
    const char *bad = attributes ? cpprof__bad_member(attributes, &n) : NULL;

    if (bad)
        cpprof__cli_warn("OTEL_RESOURCE_ATTRIBUTES: not KEY=VALUE with "
                         "percent-encoding: '%.*s'",
                         (int)(n < 100 ? n : 100), bad);
    if (attributes)
        cpprof__buffer_append(&text, attributes, strlen(attributes));
    /* The last one of a key counts. */
    if (name && *name) {
        cpprof__buffer_printf(&text, "%sservice.name=", text.n ? "," : "");
        cpprof__put_escaped(&text, name, strlen(name), "/:@");
    }
    if (text.n)
        cpprof__buffer_append(&text, "", 1);
    return (char *)text.data;
}

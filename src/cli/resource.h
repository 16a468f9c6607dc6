/* SPDX-License-Identifier: MIT */
/* Whose profiles are written or sent, as the variables of OpenTelemetry say. */
#ifndef CLI_RESOURCE_H
#define CLI_RESOURCE_H

/* OTEL_RESOURCE_ATTRIBUTES, and OTEL_SERVICE_NAME behind it as service.name.
 * NULL: neither is set, or there is no memory. The caller frees it. */
char *
cpprof__cli_resource(void);

#endif

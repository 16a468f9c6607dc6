/* SPDX-License-Identifier: MIT */
/*
 * Source: opentelemetry semantic-conventions, docs/resource (process, host,
 * container, service); opentelemetry-specification, resource/sdk.md.
 */
#include "push/resource.h"

#include "base/file.h"
#include "base/text.h"
#include "collect/runtime/proc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID_CHARS 64

static void
put(struct cpprof__buffer *out, const char *key, const char *value, size_t n)
{
    if (!n)
        return;
    cpprof__buffer_printf(out, "%s%s=", out->n ? "," : "", key);
    cpprof__put_escaped(out, value, n, "/:@");
}

static void
put_text(struct cpprof__buffer *out, const char *key, const char *value)
{
    put(out, key, value, strlen(value));
}

/* Runtimes of containers put the id into the name of a cgroup, or, where that
 * is hidden by a namespace, mount files of a folder of that name. Folders of
 * images and layers are named by hashes, too. */
const char *
cpprof__push_container(const char *text)
{
    const char *at, *line;
    size_t n;

    for (at = text; *at; at += n + (n == 0)) {
        n = strspn(at, "0123456789abcdef");
        if (n != ID_CHARS || isalnum((unsigned char)at[n]))
            continue;
        line = memrchr(text, '\n', (size_t)(at - text));
        line = line ? line + 1 : text;
        if (strncmp(line, "0:", 2) == 0 ||
            memmem(line, (size_t)(at - line), "containers/",
                   strlen("containers/")) ||
            memmem(line, (size_t)(at - line), ":/", 2))
            return at;
    }
    return NULL;
}

static void
put_container(struct cpprof__buffer *out)
{
    static const char *const paths[] = {"/proc/self/cgroup",
                                        "/proc/self/mountinfo"};
    const char *id = NULL;
    size_t i;

    for (i = 0; i < 2 && !id; i++) {
        struct cpprof__buffer text = {0};

        if (!cpprof__file_read(&text, paths[i], SIZE_MAX) &&
            (id = cpprof__push_container((const char *)text.data)))
            put(out, "container.id", id, ID_CHARS);
        cpprof__buffer_free(&text);
    }
}

static void
put_process(struct cpprof__buffer *out)
{
    char exe[PATH_MAX], host[256] = "";
    const char *slash;

    cpprof__proc_exe(exe, sizeof exe);
    slash = strrchr(exe, '/');
    cpprof__buffer_printf(out, "process.pid=%d", (int)getpid());
    put_text(out, "process.executable.path", exe);
    put_text(out, "process.executable.name", slash ? slash + 1 : exe);
    if (!gethostname(host, sizeof host - 1))
        put_text(out, "host.name", host);
    put_container(out);
    put_text(out, "telemetry.sdk.name", "cpprof");
    put_text(out, "telemetry.sdk.language", "cpp");
}

const char *
cpprof__push_resource(const struct cpprof__push_plan *plan,
                      struct cpprof__buffer *out, size_t *n_bad)
{
    const char *given = secure_getenv("OTEL_RESOURCE_ATTRIBUTES"),
               *name = secure_getenv("OTEL_SERVICE_NAME"), *rest = plan->labels;
    struct cpprof__push_label label;
    char key[256];

    put_process(out);
    put_text(out, "service.instance.id", plan->instance);
    if (given && *given)
        cpprof__buffer_printf(out, ",%s", given);
    while (cpprof__push_next_label(&rest, &label)) {
        snprintf(key, sizeof key, "%.*s", (int)label.n_name, label.name);
        put(out, key, label.value, label.n_value);
    }
    if (plan->is_named)
        put_text(out, "service.name", plan->name);
    else if (name && *name)
        put_text(out, "service.name", name);
    cpprof__buffer_append(out, "", 1);
    return given ? cpprof__bad_member(given, n_bad) : NULL;
}

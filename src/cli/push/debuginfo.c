/* SPDX-License-Identifier: MIT */
/*
 * `cpprof push -debuginfo`: a stripped program has no names, and where it runs
 * there are often none to be had. Pyroscope names frames when it is asked, by
 * the file of their build id that was uploaded. Three calls upload one: may I,
 * the file, and that it is all.
 *
 * Source: pyroscope pkg/debuginfo/store.go, pkg/symbolizer/symbolizer.go.
 */
#include "cli/push/debuginfo.h"

#include "base/file.h"
#include "cli/messages.h"
#include "push/message.h"
#include "push/request.h"
#include "symbolize/image_find.h"

#include <cpprof/pprof/build.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Limits of the server: -debug-info.max-upload-size, .upload-timeout, and what
 * it takes for an id. */
#define MOST_BYTES ((size_t)1 << 30)
#define UPLOAD_MS  120000u
#define ID_MIN     2u
#define ID_MAX     40u

#define SERVICE "debuginfo.v1alpha1.DebuginfoService/"

/* ---- three calls ------------------------------------------------------ */

/* One request; frees the body. False: it was refused, and that is said. */
static bool
ask(struct cpprof__debuginfo *d, const char *call, const char *type,
    struct cpprof__buffer *body, struct cpprof__push_reply *reply)
{
    struct cpprof__push_message m = {
        .body = *body, .timeout_ms = UPLOAD_MS, .wants_answer = true};
    struct cpprof__push_message *one = &m;
    struct cpprof__buffer url = {0};
    const uint32_t cancelled = 0;
    char line[CPPROF__PUSH_LINE_BYTES];
    bool is_taken = false, has_memory;

    cpprof__buffer_printf(&url, "%s/" SERVICE "%s", d->plan->url, call);
    cpprof__buffer_append(&url, "", 1);
    snprintf(m.type, sizeof m.type, "%s", type);
    m.url = (char *)url.data;
    has_memory = !url.failed && !body->failed;
    if (has_memory) {
        cpprof__push_requests(d->plan, d->http, d->connection, &one, 1,
                              &cancelled, reply);
        is_taken = reply->status >= 200 && reply->status < 300;
        cpprof__push_say(d->plan, reply, "not uploaded", line, sizeof line);
    }
    if (!is_taken)
        cpprof__cli_fail("%s", has_memory ? line : "push: out of memory");
    cpprof__buffer_free(&url);
    cpprof__buffer_free(body);
    return is_taken;
}

static bool
says_yes(const char *json)
{
    static const char key[] = "\"shouldInitiateUpload\":";
    const char *at = strstr(json, key);

    return at &&
           !strncmp(at + sizeof key - 1 + strspn(at + sizeof key - 1, " "),
                    "true", 4);
}

/* A name has no character that JSON would have to escape. */
static void
put_name(struct cpprof__buffer *out, const char *path)
{
    const char *name = strrchr(path, '/');

    for (name = name ? name + 1 : path; *name; name++)
        cpprof__buffer_append(
            out,
            isalnum((unsigned char)*name) || strchr("-._+", *name) ? name : "_",
            1);
}

static bool
upload(struct cpprof__debuginfo *d, const char *id, const char *path,
       bool has_text)
{
    struct cpprof__push_reply reply;
    struct cpprof__buffer body = {0};
    char call[16 + ID_MAX];
    int sys;

    cpprof__buffer_printf(&body, "{\"file\":{\"gnuBuildId\":\"%s\",\"name\":\"",
                          id);
    put_name(&body, path);
    cpprof__buffer_printf(&body, "\",\"type\":\"TYPE_EXECUTABLE_%s\"}}",
                          has_text ? "FULL" : "NO_TEXT");
    if (!ask(d, "ShouldInitiateUpload", "application/json", &body, &reply))
        return false;
    if (!says_yes(reply.text)) {
        if (!strstr(reply.text, "already exists"))
            cpprof__cli_warn("%s: not uploaded: %s", path, reply.text);
        return true;
    }
    sys = cpprof__file_read(&body, path, MOST_BYTES);
    if (sys) {
        cpprof__buffer_free(&body);
        return !cpprof__cli_fail("%s: %s", path, strerror(sys));
    }
    snprintf(call, sizeof call, "Upload/%s", id);
    if (!ask(d, call, "application/octet-stream", &body, &reply))
        return false;
    cpprof__buffer_printf(&body, "{\"gnuBuildId\":\"%s\"}", id);
    return ask(d, "UploadFinished", "application/json", &body, &reply);
}

/* ---- one binary ------------------------------------------------------- */

/* The file that names come from: of the binary and its debug file the one with
 * more. False: neither has any. */
static bool
find_symbols(const char *id, const char *binary, char path[PATH_MAX],
             bool *has_text)
{
    const struct cpprof__wanted_image wanted = {.file = "", .build_id = id};
    struct cpprof__image image = {0};

    *has_text =
        cpprof__find_image(&image, &wanted, path, NULL) != CPPROF_OK ||
        cpprof__image_symbol_bytes(path) <= cpprof__image_symbol_bytes(binary);
    if (*has_text)
        snprintf(path, PATH_MAX, "%s", binary);
    cpprof__image_close(&image);
    return cpprof__image_has_symbols(path);
}

static bool
is_known(struct cpprof__debuginfo *d, const char *id)
{
    size_t at;

    for (at = 0; at < d->known.n; at += ID_MAX + 1)
        if (!strcmp((const char *)d->known.data + at, id))
            return true;
    return false;
}

static bool
send_binary(struct cpprof__debuginfo *d, const char *id, const char *binary)
{
    char path[PATH_MAX], text[ID_MAX + 1] = "";
    bool has_text;

    if (is_known(d, id))
        return true;
    snprintf(text, sizeof text, "%s", id);
    cpprof__buffer_append(&d->known, text, sizeof text);
    if (find_symbols(id, binary, path, &has_text))
        return upload(d, id, path, has_text);
    cpprof__cli_warn("%s: not uploaded: nothing here has names of it", binary);
    return true;
}

/* ---- addresses -------------------------------------------------------- */

static bool
is_nameless(const struct pprof_location *l, size_t mapping)
{
    return l->mapping == mapping && !l->n_lines;
}

static bool
has_nameless(const struct pprof_profile *p, size_t mapping)
{
    size_t i;

    for (i = 0; i < pprof_location_count(p); i++)
        if (is_nameless(&pprof_locations(p)[i], mapping))
            return true;
    return false;
}

/* Names that a mapping says to have would be all that the server looks for. */
static enum cpprof_status
move_mapping(struct pprof_profile *p, size_t mapping, uint64_t shift,
             struct cpprof_error *error)
{
    const struct pprof_mapping *m = &pprof_mappings(p)[mapping];
    const struct pprof_new_mapping moved = {
        .size = sizeof moved,
        .start = m->start + shift,
        .limit = m->limit + shift,
        .offset = m->offset,
        .file = pprof_text(p, m->file, NULL),
        .build_id = pprof_text(p, m->build_id, NULL),
    };

    return pprof_set_mapping(p, mapping, &moved, error);
}

static enum cpprof_status
move(struct pprof_profile *p, size_t mapping, const struct cpprof__image *image,
     struct cpprof_error *error)
{
    const struct pprof_mapping *m = &pprof_mappings(p)[mapping];
    const struct cpprof__mapped_range range = {m->start, m->limit, m->offset};
    enum cpprof_status status = CPPROF_OK;
    uint64_t shift = 0;
    size_t i;

    for (i = 0; i < pprof_location_count(p) && status == CPPROF_OK; i++) {
        const struct pprof_location *l = &pprof_locations(p)[i];
        struct pprof_new_location moved = {
            .size = sizeof moved, .mapping = l->mapping, .flags = l->flags};

        if (!is_nameless(l, mapping) ||
            !cpprof__image_address(image, &range, l->address, &moved.address))
            continue;
        shift = moved.address - l->address;
        status = pprof_set_location(p, i, &moved, error);
    }
    return status == CPPROF_OK ? move_mapping(p, mapping, shift, error)
                               : status;
}

/* ---- all -------------------------------------------------------------- */

static bool
send_mapping(struct cpprof__debuginfo *d, struct pprof_profile *p, size_t i,
             struct cpprof_error *error)
{
    const struct pprof_mapping *m = &pprof_mappings(p)[i];
    const char *id = pprof_text(p, m->build_id, NULL);
    const struct cpprof__wanted_image wanted = {
        .file = pprof_text(p, m->file, NULL),
        .build_id = id,
        .range = {m->start, m->limit, m->offset}};
    struct cpprof__image image = {0};
    char path[PATH_MAX];
    bool is_good = true;

    if (strlen(id) < ID_MIN || strlen(id) > ID_MAX ||
        pprof_is_unsymbolizable(p, i) || !has_nameless(p, i))
        return true;
    if (cpprof__find_image(&image, &wanted, path, error) == CPPROF_OK) {
        is_good = send_binary(d, id, path);
        if (is_good && move(p, i, &image, error) != CPPROF_OK)
            is_good = !cpprof__cli_fail("%s", error->text);
    } else {
        cpprof__cli_warn("%s: not uploaded: %s", wanted.file, error->text);
    }
    cpprof__image_close(&image);
    return is_good;
}

bool
cpprof__debuginfo_send(struct cpprof__debuginfo *d,
                       struct pprof_profile *profile)
{
    struct cpprof_error error = {0};
    size_t i;

    for (i = 0; i < pprof_mapping_count(profile); i++)
        if (!send_mapping(d, profile, i, &error))
            return false;
    return true;
}

void
cpprof__debuginfo_free(struct cpprof__debuginfo *d)
{
    cpprof__buffer_free(&d->known);
}

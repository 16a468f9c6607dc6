/* SPDX-License-Identifier: MIT */
/*
 * Reads a profile from a path, a descriptor or memory: reads all bytes, unpacks
 * gzip, decodes profile.proto or OTLP, or else tries the older formats. Files
 * are read and not mapped, because a mapped file that shrinks would end the
 * process.
 */
#include "base/gzip.h"
#include "base/options.h"
#include "base/status.h"
#include "profile/gunzip.h"
#include "profile/legacy/legacy.h"
#include "profile/model/check.h"
#include "profile/otlp/otlp.h"
#include "profile/proto/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES ((uint64_t)4 << 30)
/* Of what may have no end: devices and pipes. As of an answer of a server. */
#define ENDLESS_MAX_BYTES ((uint64_t)1 << 30)

struct limits {
    size_t max_bytes, endless;
};

static enum cpprof_status
read_limits(const struct pprof_read_options *options, struct limits *limits,
            struct cpprof_error *error)
{
    struct pprof_read_options o = {.size = sizeof o};
    enum cpprof_status status =
        cpprof__options(&o, sizeof o, options, "read options", error);

    limits->max_bytes = o.max_bytes ? o.max_bytes : DEFAULT_MAX_BYTES;
    limits->endless = o.max_bytes ? o.max_bytes : ENDLESS_MAX_BYTES;
    return status;
}

/* Put the reference's words in front of an error of unpacking. */
static enum cpprof_status
unpack(struct cpprof__buffer *out, const void *data, size_t n, size_t max_bytes,
       struct cpprof_error *error)
{
    struct cpprof_error why;
    enum cpprof_status status = cpprof__gunzip(out, data, n, max_bytes, &why);

    if (status == CPPROF_NOMEM)
        return cpprof__fail_nomem(error);
    if (status != CPPROF_OK)
        return cpprof__fail(error, status, 0, "decompressing profile: %s",
                            why.text);
    return status;
}

/* How much of a file is looked at to tell text from profile.proto. */
#define GLANCE_BYTES ((size_t)256)

/*
 * May decoding destroy the bytes? Not if another reader may need them: they
 * begin with a zero (CPU profiles in words) or are text. A profile.proto
 * contains control characters, which are the tags and lengths of its messages.
 * One without any where we look only takes more memory to read.
 */
static bool
may_be_legacy(const uint8_t *data, size_t n)
{
    size_t i;

    if (n == 0 || data[0] == 0)
        return true;
    for (i = 0; i < n && i < GLANCE_BYTES; i++)
        if (data[i] < ' ' && (data[i] < '\t' || data[i] > '\r'))
            return false;
    return true;
}

/* May bytes that failed to decode be in an older format? Not if they were
 * decoded well, and what they say is wrong. */
static bool
is_worth_another_try(enum cpprof_status status, const struct cpprof_error *why)
{
    return status == CPPROF_BAD_DATA &&
           strncmp(why->text, "malformed", strlen("malformed")) != 0 &&
           strcmp(why->text, "parsing profile: empty input file") != 0 &&
           strcmp(why->text,
                  "parsing profile: concatenated profiles detected") != 0;
}

/* What else is taken for a profile, and what to do about it; or "". */
static const char *
hint_for(const uint8_t *data, size_t n)
{
    static const struct {
        const char *begin, *hint;
    } known[] = {
        {"\xfd"
         "7zXZ",
         " (it is packed by xz: unpack it first)"},
        {"\x28\xb5\x2f\xfd", " (it is packed by zstd: unpack it first)"},
        {"BZh", " (it is packed by bzip2: unpack it first)"},
        {"PK\3\4", " (it is a zip archive: unpack it first)"},
        {"PERFILE2", " (it is perf's own: perf script -i FILE gives what can "
                     "be read)"},
    };
    size_t i;

    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= strlen(known[i].begin) &&
            !memcmp(data, known[i].begin, strlen(known[i].begin)))
            return known[i].hint;
    return "";
}

static enum cpprof_status
read_legacy(const uint8_t *data, size_t n, uint64_t proto_failed_at,
            struct pprof_profile **profile, struct cpprof_error *error)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error why = {0};
    enum cpprof_status status =
        cpprof__read_legacy((const char *)data, n, &p, &why);

    if (status == CPPROF_NOMEM)
        return cpprof__fail_nomem(error);
    if (status != CPPROF_OK) {
        const char *hint = "";

        if (strcmp(why.text, CPPROF__UNRECOGNIZED) == 0) {
            hint = hint_for(data, n);
            why.offset = *hint ? 0 : proto_failed_at;
        }
        return cpprof__fail_at(error, why.offset, "parsing profile: %s%s",
                               why.text, hint);
    }
    status = pprof_check(p, error);
    if (status == CPPROF_OK)
        *profile = p;
    else
        pprof_free(p);
    return status;
}

/* The bytes of a file. */
struct content {
    uint8_t *data;
    size_t n;
    bool may_change;
};

static enum cpprof_status
decode(const struct content *c, size_t max_bytes,
       struct pprof_profile **profile, struct cpprof_error *error)
{
    uint8_t *data = c->data;
    struct cpprof_error why = {0};
    enum cpprof_status status;
    size_t n = c->n;

    if (cpprof__is_otlp(data, n)) {
        status = cpprof__otlp_decode(data, n, max_bytes, profile, error);
        if (status == CPPROF_OK)
            cpprof__debug_check(*profile);
        return status;
    }
    status = cpprof__decode(data, n, c->may_change && !may_be_legacy(data, n),
                            profile, &why);
    if (is_worth_another_try(status, &why))
        status = read_legacy(data, n, why.offset, profile, error);
    else if (status != CPPROF_OK && error)
        *error = why;
    if (status == CPPROF_OK)
        cpprof__debug_check(*profile);
    return status;
}

enum cpprof_status
pprof_read_data(const void *data, size_t n,
                const struct pprof_read_options *options,
                struct pprof_profile **profile, struct cpprof_error *error)
{
    CPPROF__NEED(error, (data || !n) && profile);

    struct cpprof__buffer unpacked = {0};
    enum cpprof_status status;
    struct limits limits;

    status = read_limits(options, &limits, error);
    if (status != CPPROF_OK)
        return status;
    if (!cpprof__is_gzip(data, n))
        return decode(&(struct content){(uint8_t *)data, n, false},
                      limits.max_bytes, profile, error);
    status = unpack(&unpacked, data, n, limits.max_bytes, error);
    if (status == CPPROF_OK)
        status = decode(&(struct content){unpacked.data, unpacked.n, true},
                        limits.max_bytes, profile, error);
    cpprof__buffer_free(&unpacked);
    return status;
}

/* Compressed data is never much larger than its content, so the limit holds for
 * the file as well. */
static enum cpprof_status
read_all(int fd, struct cpprof__buffer *b, const struct limits *limits,
         struct cpprof_error *error)
{
    struct stat st = {0};
    size_t most;
    int failed;

    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return cpprof__fail(error, CPPROF_SYSTEM, EISDIR, "%s",
                            strerror(EISDIR));
    most = S_ISREG(st.st_mode) ? limits->max_bytes : limits->endless;
    if (S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size <= most &&
        !cpprof__buffer_reserve(b, (size_t)st.st_size + 1))
        return cpprof__fail_nomem(error);
    failed = cpprof__buffer_read(b, fd, most);
    if (failed == EFBIG)
        return cpprof__fail(error, CPPROF_LIMIT, 0,
                            "file of more than %zu bytes", most);
    if (failed == ENOMEM)
        return cpprof__fail_nomem(error);
    return failed ? cpprof__fail(error, CPPROF_SYSTEM, failed, "%s",
                                 strerror(failed))
                  : CPPROF_OK;
}

enum cpprof_status
pprof_read_fd(int fd, const struct pprof_read_options *options,
              struct pprof_profile **profile, struct cpprof_error *error)
{
    CPPROF__NEED(error, profile);

    struct cpprof__buffer file = {0}, unpacked = {0}, *bytes = &file;
    enum cpprof_status status;
    struct limits limits;

    status = read_limits(options, &limits, error);
    if (status == CPPROF_OK)
        status = read_all(fd, &file, &limits, error);
    if (status == CPPROF_OK && cpprof__is_gzip(file.data, file.n)) {
        bytes = &unpacked;
        status = unpack(&unpacked, file.data, file.n, limits.max_bytes, error);
        cpprof__buffer_free(&file);
    }
    if (status == CPPROF_OK)
        status = decode(&(struct content){bytes->data, bytes->n, true},
                        limits.max_bytes, profile, error);
    cpprof__buffer_free(&file);
    cpprof__buffer_free(&unpacked);
    return status;
}

enum cpprof_status
pprof_read_path(const char *path, const struct pprof_read_options *options,
                struct pprof_profile **profile, struct cpprof_error *error)
{
    CPPROF__NEED(error, path && profile);

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum cpprof_status status;

    if (fd < 0)
        return cpprof__fail(error, CPPROF_SYSTEM, errno, "%s", strerror(errno));
    status = pprof_read_fd(fd, options, profile, error);
    close(fd);
    return status;
}

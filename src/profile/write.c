/* SPDX-License-Identifier: MIT */
/* Writes a profile: makes the checks that all formats share, and chooses the
 * format. */
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "profile/otlp/otlp.h"
#include "profile/proto/encode.h"
#include "profile/text/text.h"

#define LEVEL_DEFAULT 1
#define LEVEL_MAX     12

/* Does a file of that format have the values of one sample type? */
static bool
has_one_type(enum pprof_format format)
{
    return format == PPROF_FORMAT_COLLAPSED ||
           format == PPROF_FORMAT_PERF_SCRIPT;
}

static enum cpprof_status
check_options(const struct pprof_profile *p, enum pprof_format format,
              const struct pprof_write_options *o, struct cpprof_error *error)
{
    if ((unsigned)format > PPROF_FORMAT_OTLP)
        return cpprof__fail(error, CPPROF_INVALID, 0, "no such format: %d",
                            (int)format);
    if (o->level < 0 || o->level > LEVEL_MAX)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "compression level %d is outside the range [0..%d]",
                            (int)o->level, LEVEL_MAX);
    if (has_one_type(format) && p->sample_types.n &&
        o->sample_index != SIZE_MAX && o->sample_index >= p->sample_types.n)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "sample_index %zu is outside the range [0..%zu]",
                            o->sample_index, p->sample_types.n - 1);
    return CPPROF_OK;
}

static enum cpprof_status
write_stacks(const struct pprof_profile *p, enum pprof_format format,
             size_t type, struct cpprof__sink *out, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    if (type == SIZE_MAX || !p->sample_types.n)
        status = pprof_find_sample_type(p, NULL, &type, error);
    if (status != CPPROF_OK)
        return status;
    if (format == PPROF_FORMAT_COLLAPSED)
        cpprof__write_collapsed(p, type, out);
    else
        cpprof__write_perf_script(p, type, out);
    return CPPROF_OK;
}

enum cpprof_status
pprof_write(const struct pprof_profile *p, const struct cpprof_writer *writer,
            enum pprof_format format, const struct pprof_write_options *options,
            struct cpprof_error *error)
{
    struct pprof_write_options o = {sizeof o, 0, SIZE_MAX, NULL};
    struct cpprof__sink out = {0};
    enum cpprof_status status;

    CPPROF__NEED_BESIDES(writer, error, p);
    status = cpprof__writer_take(writer, &out.writer, error);
    if (status != CPPROF_OK)
        return status;
    status = cpprof__options(&o, sizeof o, options, "write options", error);
    if (status == CPPROF_OK)
        status = check_options(p, format, &o, error);
    if (status == CPPROF_OK)
        status = pprof_check(p, error);
    if (status == CPPROF_OK && format == PPROF_FORMAT_GZIP)
        out.level = o.level ? o.level : LEVEL_DEFAULT;
    if (status == CPPROF_OK && format <= PPROF_FORMAT_PLAIN)
        status = cpprof__encode(p, &out, error);
    else if (status == CPPROF_OK && format == PPROF_FORMAT_TEXT)
        status = cpprof__dump_text(p, &out, error);
    else if (status == CPPROF_OK && format == PPROF_FORMAT_OTLP)
        status = cpprof__otlp_encode(
            p, &(struct cpprof__otlp_options){o.resource, cpprof__htlhash},
            &out.buffer, error);
    else if (status == CPPROF_OK)
        status = write_stacks(p, format, o.sample_index, &out, error);
    return cpprof__sink_end(&out, status, error);
}

enum cpprof_status
pprof_write_to_path(const struct pprof_profile *p, const char *path,
                    enum pprof_format format,
                    const struct pprof_write_options *options,
                    struct cpprof_error *error)
{
    return CPPROF__TO_PATH(path, error,
                           pprof_write(p, &writer, format, options, error));
}

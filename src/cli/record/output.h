/* SPDX-License-Identifier: MIT */
/*
 * The files of one kind of profile: FILE is of the command's own image, and
 * every other image that has samples of that kind gets one beside it.
 */
#ifndef CLI_RECORD_OUTPUT_H
#define CLI_RECORD_OUTPUT_H

#include "cli/record/record.h"

struct cpprof__record_output {
    const struct cpprof__record_options *options;
    struct cpprof_recording *recording;
    unsigned kind; /* CPPROF__RECORD_* */
    const struct cpprof__record_way *way;
    char *path;         /* FILE */
    size_t n_written;   /* besides FILE */
    uint64_t n_samples; /* in those */
    bool failed;
};

/* An image, as a kind of profile sees it. */
struct cpprof__record_image {
    const char *name;
    int32_t pid;
    const uint32_t *image; /* its number among those of this pid */
    uint64_t n_samples;
    bool is_empty; /* there is nothing to write */
};

/* What differs between kinds. */
struct cpprof__record_way {
    size_t (*n_images)(const struct cpprof_recording *recording);
    struct cpprof__record_image (*image)(
        const struct cpprof__record_output *out, size_t index);
    enum cpprof_status (*write)(const struct cpprof__record_output *out,
                                size_t index, struct cpprof_writer writer,
                                struct cpprof_error *error);
    /* Print what was written to path; and that n more files were. */
    void (*print)(const struct cpprof__record_output *out, size_t index,
                  const char *path);
    void (*print_more)(const struct cpprof__record_output *out, size_t n);
    const char *missing; /* why there may be no image of the command */
};

/* No image has this index. */
#define CPPROF__RECORD_NO_IMAGE SIZE_MAX

/* The image that FILE is about: the last of the command's pid that is not
 * empty, or else the last. */
size_t
cpprof__record_find_main(const struct cpprof__record_output *out,
                         pid_t command);

/* Write an image; false after printing what went wrong. */
bool
cpprof__record_write_image(const struct cpprof__record_output *out,
                           size_t index, const char *path);

/* Write every other image that is not empty, and print so. `failed` is set
 * after printing what went wrong. */
void
cpprof__record_write_others(struct cpprof__record_output *out,
                            size_t main_image);

/* FILE: the image with this index, or say why there is none; `failed` is set
 * unless it was written. */
void
cpprof__record_write_main(struct cpprof__record_output *out, size_t main_image);

/* All files of a kind. False after printing what went wrong. */
bool
cpprof__record_write_kind(const struct cpprof__record_options *options,
                          struct cpprof_recording *recording, unsigned kind,
                          const struct cpprof__record_way *way, pid_t command);

#endif

/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int
cpprof__file_read(struct cpprof__buffer *out, const char *path, size_t most)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), failed;

    if (fd < 0)
        return errno;
    failed = cpprof__buffer_read(out, fd, most);
    close(fd);
    if (failed || !cpprof__buffer_reserve(out, 1))
        return failed ? failed : ENOMEM;
    out->data[out->n] = 0;
    return 0;
}

const char *
cpprof__field(const char *text, const char *key)
{
    size_t n = strlen(key);

    while (text && (strncmp(text, key, n) != 0 || text[n] != ':')) {
        text = strchr(text, '\n');
        text += text != NULL;
    }
    return text ? text + n + 1 + strspn(text + n + 1, " \t") : NULL;
}

static bool
has_control(const char *line)
{
    while (*line && (unsigned char)*line >= ' ' && *line != 0x7f)
        line++;
    return *line;
}

int
cpprof__first_line(const char *path, char *line, size_t n)
{
    struct cpprof__buffer text = {0};
    int failed = cpprof__file_read(&text, path, n - 1);

    if (!failed) {
        memcpy(line, text.data, text.n + 1);
        line[strcspn(line, "\r\n")] = 0;
    }
    cpprof__buffer_free(&text);
    if (failed)
        return failed == EFBIG ? EINVAL : failed;
    return !*line || has_control(line) ? EINVAL : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The name of a function in a profile. Readers take text in <> for a C++
 * template and leave it out, unless the name before has a dot. Also used in
 * signal handlers.
 */
#include "python.h"

#include <string.h>

struct text {
    char *at;
    size_t left; /* with the terminator */
};

static void
add(struct text *t, const char *from, size_t n)
{
    if (n >= t->left)
        n = t->left - 1;
    memcpy(t->at, from, n);
    t->at += n;
    t->left -= n;
    *t->at = 0;
}

/* "app" of "src/app.py", "[string]" of "<string>". */
static void
add_file(struct text *t, const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;

    if (*base != '<') {
        add(t, base, strcspn(base, "."));
        return;
    }
    add(t, "[", 1);
    add(t, base + 1, strcspn(base + 1, ">"));
    add(t, "]", 1);
}

const char *
name_in_profile(const char *qualified, const char *file, char out[NAME_BYTES])
{
    struct text t = {out, NAME_BYTES};

    if (!qualified || !file || *qualified != '<')
        return qualified;
    if (strcmp(qualified, "<module>")) {
        add_file(&t, file);
        add(&t, ".", 1);
        add(&t, qualified, strlen(qualified));
        return out;
    }
    if (*file != '<')
        return NULL;
    add_file(&t, file);
    return out;
}

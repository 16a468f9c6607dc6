/* SPDX-License-Identifier: MIT */
/*
 * What a profile says, one number a line, for the scripts:
 *
 *     inspect FILE              samples N, cpu_ms N, complete PERCENT, ...
 *     inspect FILE FUNCTION...  "FUNCTION cpu_ms N" for each
 *
 * A stack is complete when its outermost frame is where a thread begins:
 * _start (of the program or of the loader), clone, the entry of an image
 * without symbols, the start of a thread in a libc without symbols; or when it
 * is a start routine under a frame of the profiler's own. The stacks that are
 * not are printed, the heaviest first, as comments.
 */
#include "../live/profile.h"
#include "../live/tap.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* How far behind its entry the code that calls main reaches. */
#define ENTRY_BYTES 64

/* The virtual address that a file offset is loaded at, or 0. */
static uint64_t
address_of_offset(FILE *file, const Elf64_Ehdr *head, uint64_t offset)
{
    Elf64_Phdr segment;
    int i;

    fseek(file, (long)head->e_phoff, SEEK_SET);
    for (i = 0; i < head->e_phnum; i++)
        if (fread(&segment, sizeof segment, 1, file) == 1 &&
            segment.p_type == PT_LOAD && offset >= segment.p_offset &&
            offset < segment.p_offset + segment.p_filesz)
            return offset - segment.p_offset + segment.p_vaddr;
    return 0;
}

/* Is the frame in the first bytes behind the entry point of its image? */
static bool
is_entry(const struct profile *p, const struct frame *f)
{
    const struct mapping *m;
    Elf64_Ehdr head;
    uint64_t at = 0;
    FILE *file;

    if (f->mapping == NO_MAPPING)
        return false;
    m = &p->mappings[f->mapping];
    file = fopen(m->file, "rbe");
    if (!file)
        return false;
    if (fread(&head, sizeof head, 1, file) == 1)
        at = address_of_offset(file, &head, f->address - m->start + m->offset);
    fclose(file);
    return at && at >= head.e_entry && at < head.e_entry + ENTRY_BYTES;
}

static bool
is_in_libc(const struct profile *p, const struct frame *f)
{
    return f->mapping != NO_MAPPING &&
           strstr(p->mappings[f->mapping].file, "/libc.so");
}

static bool
is_complete(const struct profile *p, const struct sample *s)
{
    static const char *const roots[] = {
        "_start",   "clone",        "clone3",         "__clone",
        "__clone3", "start_thread", "__start_context"};
    const struct frame *root = &s->frames[s->n_frames - 1];
    size_t i;

    for (i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (frame_is(root, roots[i]))
            return true;
    if (s->frames[0].name[0] == '[' && s->n_frames == 2 &&
        s->frames[0].mapping == NO_MAPPING)
        return root->name[0] != '[';
    /* Without a symbol: no name, or one that begins with that of its file. */
    return (!root->name[0] || root->name[0] == '[') &&
           (is_in_libc(p, root) || is_entry(p, root));
}

/* CPU time without any stack: a thread's last, after its last tick. */
#define STACKLESS "[short-lived thread]"

/* Leave only the incomplete ones, for profile_note(). */
static double
split_complete(struct profile *p)
{
    int64_t complete = 0;
    int64_t total = profile_cpu_ns(p) - profile_cpu_in(p, STACKLESS);
    size_t n = 0;
    size_t i;

    for (i = 0; i < p->n_samples; i++) {
        if (frame_is(&p->samples[i].frames[0], STACKLESS))
            continue;
        if (is_complete(p, &p->samples[i]))
            complete += p->samples[i].cpu_ns;
        else
            p->samples[n++] = p->samples[i];
    }
    p->n_samples = n;
    return total ? 100.0 * (double)complete / (double)total : 0;
}

static void
print_head(struct profile *p)
{
    size_t n_build_ids = 0;
    size_t i;

    for (i = 0; i < p->n_mappings; i++)
        n_build_ids += p->mappings[i].build_id[0] != 0;
    printf("samples %lld\n", (long long)profile_count(p));
    printf("cpu_ms %lld\n", (long long)(profile_cpu_ns(p) / 1000000));
    printf("duration_ms %lld\n", (long long)(p->duration_ns / 1000000));
    printf("lost_ms %lld\n",
           (long long)(profile_cpu_in(p, "[lost samples]") / 1000000));
    printf("stackless_ms %lld\n",
           (long long)(profile_cpu_in(p, STACKLESS) / 1000000));
    printf("mappings %zu\n", p->n_mappings);
    printf("build_ids %zu\n", n_build_ids);
    if (p->n_mappings)
        printf("main %s\n", p->mappings[0].file);
    printf("complete %.3f\n", split_complete(p));
    if (p->n_samples)
        profile_note(p, 5);
}

int
main(int argc, char **argv)
{
    struct profile *p;
    char why[256];
    int i;

    if (argc < 2)
        return 2;
    p = profile_read(argv[1], why, sizeof why);
    if (!p) {
        printf("%s: %s\n", argv[1], why);
        return 1;
    }
    if (argc == 2)
        print_head(p);
    for (i = 2; i < argc; i++)
        printf("%s cpu_ms %lld\n", argv[i],
               (long long)(profile_cpu_in(p, argv[i]) / 1000000));
    profile_free(p);
    return 0;
}

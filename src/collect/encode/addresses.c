/* SPDX-License-Identifier: MIT */
/*
 * Names for single addresses, for /debug/pprof/symbol: the mappings of this
 * process as they are now, and a text profile over them that is never written.
 *
 * It reads the maps once when it is opened. An address in no mapping, such as
 * JIT code, is asked for without one.
 */
#include "collect/encode/addresses.h"

#include "collect/encode/source.h"

struct cpprof__addresses {
    struct cpprof__source_profile profile;
};

struct cpprof__addresses *
cpprof__addresses_open(void)
{
    const struct cpprof_writer nowhere = {0};
    struct cpprof__source_profile *p;

    if (cpprof__tables_make(NULL) != CPPROF_OK)
        return NULL;
    cpprof__tables_read_maps();
    p = cpprof__source_profile_make(NULL, CPPROF_SYMBOLIZE_FULL, &nowhere,
                                    NULL);
    if (!p)
        return NULL;
    cpprof__source_begin_text(p, nowhere);
    if (p->text.error.status != CPPROF_OK ||
        (p->source.ops && !p->symbolizer)) {
        cpprof__addresses_close((struct cpprof__addresses *)p);
        return NULL;
    }
    return (struct cpprof__addresses *)p;
}

const char *
cpprof__addresses_name(struct cpprof__addresses *a, uint64_t pc)
{
    struct cpprof__text_profile *text = &a->profile.text;
    uint32_t mapping =
        cpprof__store_find_mapping(&cpprof__tables.store, pc, text->n_mappings);
    const struct cpprof__builder_frame frame = {
        pc, mapping == CPPROF__NO_MAPPING ? mapping : text->mappings[mapping]};

    if (!text->symbolizer || pc < CPPROF__FRAME_END || cpprof__is_script(pc))
        return NULL;
    return cpprof__text_resolve(text, &frame) && !text->frames[0].is_stand_in
               ? text->frames[0].system_name
               : NULL;
}

void
cpprof__addresses_close(struct cpprof__addresses *a)
{
    if (!a)
        return;
    cpprof__text_end(&a->profile.text, NULL);
    cpprof__source_profile_free(&a->profile);
}

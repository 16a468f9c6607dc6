/* SPDX-License-Identifier: MIT */
#include "collect/encode/script_frame.h"

void
cpprof__script_frame(const struct cpprof__scripts *scripts, uint64_t pc,
                     struct cpprof__frame *frame, const char **mapping)
{
    struct cpprof__script place = {.mapping = ""};

    *frame = (struct cpprof__frame){.name = "[unknown]"};
    if (scripts && cpprof__scripts_read(scripts, pc, &place)) {
        if (*place.name || *place.file)
            frame->name = *place.name ? place.name : place.file;
        if (*place.system_name)
            frame->system_name = place.system_name;
        if (*place.file)
            frame->file = place.file;
        frame->start_line = place.start_line;
        frame->line = place.line > 0 ? place.line : 0;
    }
    if (!frame->system_name)
        frame->system_name = frame->name;
    *mapping = place.mapping;
}

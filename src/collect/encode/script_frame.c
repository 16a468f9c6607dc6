/* SPDX-License-Identifier: MIT */
#include "collect/encode/script_frame.h"

void
cpprof__script_frame(const struct cpprof__scripts *scripts, uint64_t pc,
                     struct cpprof__frame *frame, const char **mapping)
{
    struct cpprof__script_location location = {.mapping = ""};

    *frame = (struct cpprof__frame){.name = "[unknown]"};
    if (scripts && cpprof__scripts_read(scripts, pc, &location)) {
        if (*location.name || *location.file)
            frame->name = *location.name ? location.name : location.file;
        if (*location.system_name)
            frame->system_name = location.system_name;
        if (*location.file)
            frame->file = location.file;
        frame->start_line = location.start_line;
        frame->line = location.line > 0 ? location.line : 0;
    }
    if (!frame->system_name)
        frame->system_name = frame->name;
    *mapping = location.mapping;
}

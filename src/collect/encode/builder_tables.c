/* SPDX-License-Identifier: MIT */
/*
 * The builder's tables: strings, functions, locations, mappings. Each is an
 * array with an index over it; looking up what is not there adds it and, for
 * functions and locations, puts its message into the stream.
 */
#include "collect/encode/builder_internal.h"
#include "own/memory.h"

#include "base/proto.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Fields of profile.proto's Function, Location and Line. */
enum {
    FUNCTION_ID = 1,
    FUNCTION_NAME,
    FUNCTION_SYSTEM_NAME,
    FUNCTION_FILENAME,
    FUNCTION_START_LINE
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION_ID = 1, LINE_LINE, LINE_COLUMN };

/* Mapping of an entry in the table of locations that has no key. */
#define GIVEN (CPPROF__NO_MAPPING - 1)

/* A new entry's number, or that of one that was there; CPPROF__INDEX_NONE, and
 * failed, without room. */
static uint32_t
checked(struct cpprof__builder *b, uint32_t number)
{
    if (number == CPPROF__INDEX_NONE)
        cpprof__builder_fail_nomem(b);
    return number;
}

/*
 * Index of the entry that begins with the same n_key bytes as this one, which
 * is added if there is none; *added says so. CPPROF__INDEX_NONE when failed.
 */
static uint32_t
intern(struct cpprof__builder *b, struct cpprof__table *table,
       const void *entry, size_t n_entry, size_t n_key, bool *added)
{
    *added = false;
    if (cpprof__builder_failed(b))
        return CPPROF__INDEX_NONE;
    return checked(b, cpprof__table_add(table, entry, n_key, n_entry, added));
}

/* A text, and the strings among which it is looked for. */
struct lookup {
    const struct cpprof__builder_string *all;
    struct cpprof__builder_string wanted;
};

static bool
equal_string(void *ctx, uint32_t value)
{
    const struct lookup *l = ctx;
    const struct cpprof__builder_string *s = &l->all[value];

    return s->n == l->wanted.n && memcmp(s->text, l->wanted.text, s->n) == 0;
}

/* The string of a text that is no UTF-8: readers of proto3 refuse the whole
 * file for one. File names are any bytes, and so are labels. */
static uint32_t
string_of_bytes(struct cpprof__builder *b, const char *text)
{
    char *copy = cpprof__strdup(text);
    uint32_t found = 0;

    if (copy) {
        cpprof__clean_text(copy);
        found = cpprof__builder_string(b, copy);
    } else {
        cpprof__builder_fail_nomem(b);
    }
    cpprof__free(copy);
    return found;
}

uint32_t
cpprof__builder_string(struct cpprof__builder *b, const char *text)
{
    const char *key = text ? text : "";
    size_t n = strlen(key);
    uint64_t hash = cpprof__hash_bytes(key, n, 0);
    struct lookup l = {
        (const struct cpprof__builder_string *)b->strings.entries.data,
        {key, n}};
    struct cpprof__builder_string s = {NULL, n};
    uint32_t found;

    if (cpprof__builder_failed(b) || (!n && b->n_forgotten.strings))
        return 0;
    found = cpprof__index_find(&b->strings.index, hash, equal_string, &l);
    if (found != CPPROF__INDEX_NONE)
        return found + b->n_forgotten.strings;
    if (!cpprof__is_utf8(key, n))
        return string_of_bytes(b, key);
    s.text = cpprof__arena_copy(&b->arena, key, n);
    if (!s.text) {
        cpprof__builder_fail_nomem(b);
        return 0;
    }
    found = checked(b, cpprof__table_append(&b->strings, hash, &s, sizeof s));
    return found != CPPROF__INDEX_NONE ? found + b->n_forgotten.strings : 0;
}

/* ---- recent entries --------------------------------------------------- */

struct recent_location {
    uint64_t pc;
    uint32_t mapping;
    uint32_t id; /* 0: none */
};

struct recent_function {
    const char *name, *system_name, *file;
    int64_t start_line;
    uint64_t id; /* 0: none */
};

/* Make a cache with four slots for each of n entries, which is empty. False:
 * there is no cache. */
static bool
make_room(struct cpprof__builder_recent *recent, size_t slot_bytes, uint64_t n)
{
    size_t more = recent->n ? recent->n * 4 : 1024;
    void *slots;

    if (4 * n <= recent->n)
        return true;
    slots = cpprof__calloc(more, slot_bytes);
    if (!slots)
        return recent->n > 0;
    cpprof__free(recent->slots);
    recent->slots = slots;
    recent->n = more;
    return true;
}

/* ---- functions and locations ------------------------------------------ */

static void
put_function(struct cpprof__buffer *out, uint64_t id,
             const struct cpprof__builder_function *f)
{
    size_t mark = cpprof__put_begin(out);

    cpprof__put_uint_opt(out, FUNCTION_ID, id);
    cpprof__put_uint_opt(out, FUNCTION_NAME, f->name);
    cpprof__put_uint_opt(out, FUNCTION_SYSTEM_NAME, f->system_name);
    cpprof__put_uint_opt(out, FUNCTION_FILENAME, f->file);
    cpprof__put_uint_opt(out, FUNCTION_START_LINE, (uint64_t)f->start_line);
    cpprof__put_end(out, PROFILE_FUNCTION, mark);
}

static struct recent_function *
recent_function(const struct cpprof__builder *b,
                const struct cpprof__frame *frame)
{
    struct recent_function *slots = b->recent_functions.slots;

    return &slots[cpprof__mix_u64((uintptr_t)frame->name) &
                  (b->recent_functions.n - 1)];
}

static uint64_t
intern_function(struct cpprof__builder *b, const struct cpprof__frame *frame)
{
    struct cpprof__builder_function f = {
        .name = cpprof__builder_string(b, frame->name),
        .system_name = cpprof__builder_string(b, frame->system_name),
        .file = cpprof__builder_string(b, frame->file),
        .start_line = frame->start_line,
    };
    bool added;
    uint32_t index = intern(b, &b->functions, &f, sizeof f, sizeof f, &added);

    uint64_t id = b->n_forgotten.functions + index + 1;

    if (index == CPPROF__INDEX_NONE)
        return 0;
    if (added)
        put_function(&b->out, id, &f);
    return id;
}

/* Id of the function of a frame, which is written if it is new. */
static uint64_t
function_id(struct cpprof__builder *b, const struct cpprof__frame *frame)
{
    uint64_t id;

    if (b->recent_functions.n) {
        const struct recent_function *recent = recent_function(b, frame);

        if (recent->id && recent->name == frame->name &&
            recent->system_name == frame->system_name &&
            recent->file == frame->file &&
            recent->start_line == frame->start_line)
            return recent->id;
    }
    id = intern_function(b, frame);
    if (id && make_room(&b->recent_functions, sizeof(struct recent_function),
                        id - b->n_forgotten.functions))
        *recent_function(b, frame) =
            (struct recent_function){frame->name, frame->system_name,
                                     frame->file, frame->start_line, id};
    return id;
}

const char *
cpprof__own_frame_name(uint64_t pc)
{
    static const char *const names[] = {
        [CPPROF__FRAME_LOST] = "[lost samples]",
        [CPPROF__FRAME_TRUNCATED] = "[truncated]",
        [CPPROF__FRAME_BROKEN] = "[unwind failed]",
        [CPPROF__FRAME_BLOCKED] = "[signal blocked]",
        [CPPROF__FRAME_EXITED] = "[short-lived thread]",
        [CPPROF__FRAME_SILENT] = "[no answer]",
        [CPPROF__FRAME_UNREADABLE] = "[not readable]",
        [CPPROF__FRAME_NO_ROOM] = "[no room on alternate stack]",
        [CPPROF__FRAME_NO_LIBC] = "[thread without libc]",
        [CPPROF__FRAME_NO_CALLS] = "[SIGSYS blocked]",
        [CPPROF__FRAME_NO_SCRIPT] = "[script not read]",
        [CPPROF__FRAME_MAIN] = "[main thread]",
        [CPPROF__FRAME_ORPHAN] = "[unknown creator]",
    };

    if (pc < sizeof names / sizeof *names && names[pc])
        return names[pc];
    return names[CPPROF__FRAME_BROKEN];
}

static size_t
n_mappings(const struct cpprof__builder *b)
{
    return b->mappings.entries.n / sizeof(struct cpprof__builder_known_mapping);
}

/* Does no mapping list the code? */
static bool
is_outside(uint32_t mapping)
{
    return mapping == CPPROF__NO_MAPPING || cpprof__is_made_code(mapping);
}

static uint64_t
code_bytes(uint32_t mapping)
{
    return cpprof__is_made_code(mapping) ? mapping - CPPROF__MADE_CODE
                                         : UINT64_MAX;
}

/* Fill b->lines with what is known about a frame: how many there are. */
static size_t
resolve(struct cpprof__builder *b, struct cpprof__builder_location frame)
{
    size_t in_symbolizer = SIZE_MAX;

    if (frame.pc < CPPROF__FRAME_END) {
        memset(&b->lines[0], 0, sizeof b->lines[0]);
        b->lines[0].name = cpprof__own_frame_name(frame.pc);
        b->lines[0].system_name = b->lines[0].name;
        return 1;
    }
    if (!is_outside(frame.mapping)) {
        in_symbolizer =
            cpprof__builder_mapping_at(b, frame.mapping)->symbolizer_index;
        if (in_symbolizer == SIZE_MAX)
            return 0;
    }
    if (!b->ops)
        return 0;
    b->ops->turn_to_code(b->symbolizer, code_bytes(frame.mapping));
    return b->ops->resolve(b->symbolizer, in_symbolizer, frame.pc, b->lines,
                           CPPROF__LINES_MAX);
}

void
cpprof__builder_expect(struct cpprof__builder *b,
                       struct cpprof__builder_frame frame)
{
    size_t in_symbolizer;

    if (!b->ops || !b->symbolizer || frame.pc < CPPROF__FRAME_END ||
        cpprof__is_script(frame.pc) || frame.mapping >= n_mappings(b))
        return;
    in_symbolizer =
        cpprof__builder_mapping_at(b, frame.mapping)->symbolizer_index;
    if (in_symbolizer != SIZE_MAX)
        b->ops->expect(b->symbolizer, in_symbolizer, frame.pc);
}

/* Has* of a mapping hold only for what holds for all its locations. One with a
 * stand-in is to be asked about again by who reads the profile. */
static void
note_known(struct cpprof__builder *b, uint32_t mapping, size_t n_lines)
{
    struct cpprof__builder_known_mapping *m;
    bool known = n_lines > 0 && !b->lines[0].is_stand_in;
    size_t i;

    if (is_outside(mapping))
        return;
    m = cpprof__builder_mapping_at(b, mapping);
    m->used = true;
    m->has_functions &= known;
    m->has_filenames &= known;
    m->has_line_numbers &= known;
    m->has_inline_frames &=
        known && b->ops->knows_inlines(b->symbolizer, m->symbolizer_index);
    for (i = 0; i < n_lines; i++) {
        m->has_functions &= b->lines[i].name[0] != 0;
        m->has_filenames &= b->lines[i].file && b->lines[i].file[0];
        m->has_line_numbers &= b->lines[i].line != 0;
    }
}

/* Write a location. Its lines are in b->lines, the numbers of their functions
 * in b->function_ids. */
static void
put_location(struct cpprof__builder *b, uint64_t id,
             struct cpprof__builder_location frame, size_t n_lines)
{
    struct cpprof__buffer *out = &b->out;
    size_t i, mark;

    mark = cpprof__put_begin(out);
    cpprof__put_uint_opt(out, LOCATION_ID, id);
    if (!is_outside(frame.mapping))
        cpprof__put_uint_opt(out, LOCATION_MAPPING_ID, frame.mapping + 1ull);
    if (frame.pc >= CPPROF__FRAME_END)
        cpprof__put_uint_opt(out, LOCATION_ADDRESS, frame.pc);
    for (i = 0; i < n_lines; i++) {
        size_t line = cpprof__put_begin(out);

        cpprof__put_uint_opt(out, LINE_FUNCTION_ID, b->function_ids[i]);
        cpprof__put_uint_opt(out, LINE_LINE, (uint64_t)b->lines[i].line);
        cpprof__put_uint_opt(out, LINE_COLUMN, (uint64_t)b->lines[i].column);
        cpprof__put_end(out, LOCATION_LINE, line);
    }
    cpprof__put_end(out, PROFILE_LOCATION, mark);
}

static struct recent_location *
recent_location(const struct cpprof__builder *b, uint64_t pc)
{
    struct recent_location *slots = b->recent_locations.slots;

    return &slots[cpprof__mix_u64(pc) & (b->recent_locations.n - 1)];
}

void
cpprof__builder_prefetch(const struct cpprof__builder *b,
                         const struct cpprof__builder_frame *stack, size_t n)
{
    size_t i;

    for (i = 0; b->recent_locations.n && i < n; i++)
        __builtin_prefetch(recent_location(b, stack[i].pc));
}

static void
put_script(struct cpprof__builder *b, uint64_t id, uint64_t pc);

/* Functions are messages of their own, so they go out before. */
static size_t
put_functions(struct cpprof__builder *b, struct cpprof__builder_location l)
{
    size_t i, n_lines = resolve(b, l);

    note_known(b, l.mapping, n_lines);
    for (i = 0; i < n_lines; i++)
        b->function_ids[i] = function_id(b, &b->lines[i]);
    return n_lines;
}

/* Code that was made at run time is another location only where it was another
 * function, however often the file grew that names it. */
static uint32_t
find_or_put_made_code(struct cpprof__builder *b,
                      struct cpprof__builder_location l)
{
    size_t n_lines = put_functions(b, l);
    bool added;
    uint32_t index;

    l.mapping = CPPROF__NO_MAPPING;
    l.function = n_lines ? (uint32_t)b->function_ids[0] : 0;
    index = intern(b, &b->locations, &l, sizeof l, sizeof l, &added);
    if (added)
        put_location(b, b->n_forgotten.locations + index + 1, l, n_lines);
    return index;
}

static uint32_t
find_or_put_known(struct cpprof__builder *b, struct cpprof__builder_location l)
{
    bool added;
    uint32_t index = intern(b, &b->locations, &l, sizeof l, sizeof l, &added);
    uint64_t id = b->n_forgotten.locations + index + 1;

    if (added && cpprof__is_script(l.pc))
        put_script(b, id, l.pc);
    else if (added)
        put_location(b, id, l, put_functions(b, l));
    return index;
}

static uint64_t
find_or_put_location(struct cpprof__builder *b,
                     struct cpprof__builder_location l)
{
    uint32_t index = cpprof__is_made_code(l.mapping)
                         ? find_or_put_made_code(b, l)
                         : find_or_put_known(b, l);
    uint64_t id = b->n_forgotten.locations + index + 1;

    if (index == CPPROF__INDEX_NONE)
        return 0;
    if (make_room(&b->recent_locations, sizeof(struct recent_location),
                  id - b->n_forgotten.locations))
        *recent_location(b, l.pc) =
            (struct recent_location){l.pc, l.mapping, (uint32_t)id};
    return id;
}

uint64_t
cpprof__builder_location_id(struct cpprof__builder *b,
                            struct cpprof__builder_frame frame)
{
    bool has_mapping =
        frame.pc >= CPPROF__FRAME_END && !cpprof__is_script(frame.pc) &&
        (frame.mapping < n_mappings(b) || cpprof__is_made_code(frame.mapping));
    struct cpprof__builder_location l = {
        .pc = frame.pc,
        .mapping = has_mapping ? frame.mapping : CPPROF__NO_MAPPING,
    };

    if (b->recent_locations.n) {
        const struct recent_location *recent = recent_location(b, l.pc);

        if (recent->id && recent->pc == l.pc && recent->mapping == l.mapping)
            return recent->id;
    }
    return find_or_put_location(b, l);
}

/* ---- functions and locations that the caller knows -------------------- */

uint64_t
cpprof__builder_own_location(struct cpprof__builder *b,
                             enum cpprof__own_frame frame)
{
    const struct cpprof__builder_frame f = {frame, CPPROF__NO_MAPPING};

    return cpprof__builder_location_id(b, f);
}

/* Looks by content: a name may now lie where another one lay before, so its
 * address says nothing. */
uint64_t
cpprof__builder_add_function(struct cpprof__builder *b, uint32_t mapping,
                             const struct cpprof__frame *function)
{
    struct cpprof__builder_known_mapping *m;

    if (mapping != CPPROF__NO_MAPPING) {
        m = cpprof__builder_mapping_at(b, mapping);
        m->used = true;
        m->has_functions &= function->name[0] != 0;
        m->has_filenames &= function->file && function->file[0];
        m->has_inline_frames = false;
    }
    return intern_function(b, function);
}

/* The location takes an entry of the table that equals no other, so that it has
 * a number. */
uint64_t
cpprof__builder_add_location(struct cpprof__builder *b, uint32_t mapping,
                             uint64_t function, int64_t line)
{
    const struct cpprof__builder_location location = {.mapping = GIVEN};
    const struct cpprof__builder_location l = {.mapping = mapping};
    uint64_t hash = cpprof__mix_u64(b->locations.entries.n);
    uint32_t index =
        cpprof__builder_failed(b)
            ? CPPROF__INDEX_NONE
            : checked(b, cpprof__table_append(&b->locations, hash, &location,
                                              sizeof location));
    uint64_t id = b->n_forgotten.locations + index + 1;

    if (index == CPPROF__INDEX_NONE)
        return 0;
    memset(&b->lines[0], 0, sizeof b->lines[0]);
    b->lines[0].line = line;
    b->function_ids[0] = function;
    if (mapping != CPPROF__NO_MAPPING)
        cpprof__builder_mapping_at(b, mapping)->has_line_numbers &= line > 0;
    put_location(b, id, l, 1);
    return id;
}

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

/* The mapping is found by its text, because strings may have been forgotten. */
static uint32_t
script_mapping(struct cpprof__builder *b, const char *text)
{
    struct cpprof__builder_known_mapping m = {
        .symbolizer_index = SIZE_MAX,
        .has_functions = true,
        .has_filenames = true,
        .has_line_numbers = true,
        .is_script = true,
    };
    size_t i, n = b->n_script_mappings;
    bool added;
    uint32_t number;

    for (i = 0; i < n; i++)
        if (!strcmp(b->script_mappings[i].text, text))
            return b->script_mappings[i].number;
    m.key.path = cpprof__builder_string(b, text);
    number = intern(b, &b->mappings, &m, sizeof m, sizeof m.key, &added);
    if (n < CPPROF__SCRIPT_MAPPINGS && number != CPPROF__INDEX_NONE) {
        b->script_mappings[n].text = text;
        b->script_mappings[n].number = number;
        b->n_script_mappings++;
    }
    return number;
}

/* Write the location of a line of a script. */
static void
put_script(struct cpprof__builder *b, uint64_t id, uint64_t pc)
{
    struct cpprof__builder_location l = {.mapping = CPPROF__NO_MAPPING};
    struct cpprof__frame frame;
    const char *mapping;

    cpprof__script_frame(b->scripts, pc, &frame, &mapping);
    if (*mapping)
        l.mapping = script_mapping(b, mapping);
    b->function_ids[0] = cpprof__builder_add_function(b, l.mapping, &frame);
    b->lines[0] = frame;
    if (l.mapping != CPPROF__NO_MAPPING)
        cpprof__builder_mapping_at(b, l.mapping)->has_line_numbers &=
            frame.line > 0;
    put_location(b, id, l, 1);
}

static void
clear_recent(struct cpprof__builder_recent *recent)
{
    cpprof__free(recent->slots);
    memset(recent, 0, sizeof *recent);
}

void
cpprof__builder_clear_tables(struct cpprof__builder *b)
{
    b->n_forgotten.strings += (uint32_t)(b->strings.entries.n /
                                         sizeof(struct cpprof__builder_string));
    b->n_forgotten.functions +=
        b->functions.entries.n / sizeof(struct cpprof__builder_function);
    b->n_forgotten.locations +=
        b->locations.entries.n / sizeof(struct cpprof__builder_location);
    cpprof__table_free(&b->strings);
    cpprof__table_free(&b->functions);
    cpprof__table_free(&b->locations);
    clear_recent(&b->recent_functions);
    clear_recent(&b->recent_locations);
    cpprof__arena_free(&b->arena);
}

uint32_t
cpprof__builder_add_mapping(struct cpprof__builder *b,
                            const struct cpprof__symbolizer_mapping *mapping)
{
    struct cpprof__builder_known_mapping m = {
        .key = {mapping->start, mapping->limit, mapping->offset,
                cpprof__builder_string(b, mapping->path),
                cpprof__builder_string(b, mapping->build_id)},
        .has_functions = true,
        .has_filenames = true,
        .has_line_numbers = true,
        .has_inline_frames = true,
    };
    bool added;
    uint32_t index =
        intern(b, &b->mappings, &m, sizeof m, sizeof m.key, &added);

    /* A mapping that the symbolizer has no room for is written all the same. */
    if (added)
        cpprof__builder_mapping_at(b, index)->symbolizer_index =
            b->ops ? b->ops->add_mapping(b->symbolizer, mapping) : SIZE_MAX;
    return index;
}

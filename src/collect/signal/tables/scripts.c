/* SPDX-License-Identifier: MIT */
/*
 * Three kinds of entries, each in chains of its own that begin in the head:
 * texts, which are there once; functions, which refer to texts; locations,
 * which refer to functions. A new entry is made in three steps: take room, fill
 * it, and put it at the front of its chain by compare-and-swap. A thread that
 * loses that race looks at what came meanwhile, so nothing is there twice; the
 * room of an entry that was not needed, or that a dead process left, stays
 * unused. Nobody waits.
 *
 * Chains are for adding. A reader follows offsets from the location on, and
 * checks each of them. So does whoever adds, because the block may be shared
 * with a process that has gone wild.
 */
#include "collect/signal/tables/scripts.h"

#include "arch/atomic.h"
#include "arch/mix.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/signal/tables/reserve.h"

#define MAGIC "cpprofP1"

#define TEXTS     (1u << 13)
#define FUNCTIONS (1u << 13)
#define LOCATIONS (1u << 15)

/* A longer way to an entry counts as no room: some 20 times what a full table
 * of the smallest entries takes. */
#define CHAIN_MAX 1024u

#define TEXT_MAX 1023u

/* A hole in a file is filled this much at a time. */
#define STEP (64u * 1024)

struct cpprof__scripts_head {
    char magic[8];
    uint32_t n_used;    /* bytes given out, this head counted; may be a little
                         * more than there are */
    uint32_t n_refused; /* entries that found no room */
    /* Offsets of the first entry, 0: none. */
    uint32_t texts[TEXTS];
    uint32_t functions[FUNCTIONS];
    uint32_t locations[LOCATIONS];
};

enum kind { TEXT = 0x54584554, FUNCTION = 0x434e5546, LOCATION = 0x43414c50 };

/* What all entries begin with; they lie at multiples of 8. */
struct entry {
    uint32_t next;
    uint32_t kind;
};

struct text {
    struct entry entry;
    uint32_t n;
    char bytes[]; /* n and a 0 */
};

struct function {
    struct entry entry;
    uint64_t key;
    int64_t start_line;
    uint32_t mapping, name, system_name, file; /* texts; 0: "" */
};

struct location {
    struct entry entry;
    int64_t line;
    uint32_t function;
    uint32_t zero;
};

_Static_assert(sizeof(struct cpprof__scripts_head) % 8 == 0, "aligned");
_Static_assert(sizeof(struct function) == 40, "no padding");
_Static_assert(sizeof(struct location) == 24, "no padding");

struct cpprof__scripts cpprof__scripts;
const struct cpprof__interp_ops *cpprof__interp_ops;

/* ---- bounds ----------------------------------------------------------- */

/* The n bytes there, or NULL. */
static void *
bytes_at(const struct cpprof__scripts *s, uint64_t at, size_t n)
{
    if (at < sizeof *s->head || at % 8 || at > s->n_bytes ||
        n > s->n_bytes - at)
        return NULL;
    return (char *)s->head + at;
}

static void *
entry_at(const struct cpprof__scripts *s, uint64_t at, size_t n, enum kind kind)
{
    struct entry *entry = bytes_at(s, at, n);

    return entry && load_relaxed(&entry->kind) == (uint32_t)kind ? entry : NULL;
}

static const struct text *
text_at(const struct cpprof__scripts *s, uint32_t at)
{
    const struct text *text = entry_at(s, at, sizeof *text, TEXT);
    size_t n = text ? text->n : 0;

    if (!text || n > TEXT_MAX || !bytes_at(s, at, sizeof *text + n + 1) ||
        text->bytes[n])
        return NULL;
    return text;
}

/* ---- room ------------------------------------------------------------- */

/* May the first n bytes be touched? Filling the same hole twice does no harm.
 */
static bool
is_ready(struct cpprof__scripts *s, uint32_t n)
{
    uint32_t ready = load_acquire(&s->n_ready);
    uint32_t to = (n + STEP - 1) / STEP * STEP;

    if (!s->path || n <= ready)
        return true;
    if (cpprof__fill_hole((char *)s->head, ready, to - ready, s->path))
        return false;
    while (ready < to && !cas_acq_rel(&s->n_ready, &ready, to))
        ;
    return true;
}

/* Room for a new entry of n bytes, which is in no chain yet; 0: there is none.
 */
static uint32_t
reserve(struct cpprof__scripts *s, size_t n, enum kind kind)
{
    struct cpprof__scripts_head *head = s->head;
    struct entry *entry = NULL;
    uint32_t at = 0;

    n = (n + 7) / 8 * 8;
    /* Looked at first, so that the count stays near the bound. */
    if (load_relaxed(&head->n_used) <= s->n_bytes - n) {
        at = add_relaxed(&head->n_used, (uint32_t)n);
        entry = bytes_at(s, at, n);
    }
    if (!entry || !is_ready(s, at + (uint32_t)n)) {
        add_relaxed(&head->n_refused, 1u);
        return 0;
    }
    entry->kind = kind;
    return at;
}

/* ---- chains ----------------------------------------------------------- */

/* An entry that is looked for. make() adds it if it is not there, and returns
 * its offset, or 0 without room. */
struct wanted {
    bool (*is)(const struct cpprof__scripts *s, uint32_t at, const void *ctx);
    uint32_t (*make)(struct cpprof__scripts *s, const void *ctx);
    const void *ctx;
};

/* Search a chain from one entry up to another, or to its end. False: the chain
 * is too long, or leads out of the table. *found stays 0 if the entry is not
 * there. */
static bool
find(const struct cpprof__scripts *s, uint32_t at, uint32_t end,
     const struct wanted *w, uint32_t *found)
{
    const struct entry *entry;
    unsigned i;

    for (i = 0; at && at != end && i < CHAIN_MAX; i++) {
        entry = bytes_at(s, at, sizeof *entry);
        if (!entry)
            return false;
        if (w->is(s, at, w->ctx)) {
            *found = at;
            return true;
        }
        at = load_relaxed(&entry->next);
    }
    return i < CHAIN_MAX;
}

/* The entry in that chain, made if it is not there; 0 without room. */
static uint32_t
intern(struct cpprof__scripts *s, uint32_t *first, const struct wanted *w)
{
    uint32_t front = load_acquire(first), seen = 0, found = 0, made = 0;

    for (;;) {
        if (!find(s, front, seen, w, &found))
            return 0;
        if (found)
            return found;
        if (!made)
            made = w->make(s, w->ctx);
        if (!made)
            return 0;
        ((struct entry *)bytes_at(s, made, sizeof(struct entry)))->next = front;
        seen = front;
        if (cas_acq_rel(first, &front, made))
            return made;
    }
}

static uint64_t
mix(uint64_t hash, uint64_t x)
{
    return cpprof__mix_u64(hash ^ x);
}

/* ---- texts ------------------------------------------------------------ */

struct piece {
    const char *text;
    size_t n;
};

static bool
goes_on(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* A text that is too long is cut, between two characters if it is UTF-8. */
static struct piece
piece_of(const char *text)
{
    struct piece piece = {text ? text : "", 0};
    size_t n = TEXT_MAX;

    while (piece.n <= TEXT_MAX && piece.text[piece.n])
        piece.n++;
    if (piece.n <= TEXT_MAX)
        return piece;
    while (n > TEXT_MAX - 3 && goes_on(piece.text[n]))
        n--;
    piece.n = n;
    return piece;
}

static bool
is_piece(const struct cpprof__scripts *s, uint32_t at, const void *ctx)
{
    const struct piece *piece = ctx;
    const struct text *text = at ? text_at(s, at) : NULL;
    size_t i;

    if (!at)
        return !piece->n;
    if (!text || text->n != piece->n)
        return false;
    for (i = 0; i < piece->n && text->bytes[i] == piece->text[i]; i++)
        ;
    return i == piece->n;
}

static uint32_t
make_text(struct cpprof__scripts *s, const void *ctx)
{
    const struct piece *piece = ctx;
    uint32_t at = reserve(s, sizeof(struct text) + piece->n + 1, TEXT);
    struct text *text = (void *)((char *)s->head + at);

    if (!at)
        return 0;
    text->n = (uint32_t)piece->n;
    __builtin_memcpy(text->bytes, piece->text, piece->n);
    text->bytes[piece->n] = 0;
    return at;
}

/* False: there is no room. */
static bool
intern_text(struct cpprof__scripts *s, const char *text, uint32_t *at)
{
    struct piece piece = piece_of(text);
    const struct wanted wanted = {is_piece, make_text, &piece};
    uint64_t hash = piece.n;
    size_t i;

    *at = 0;
    if (!piece.n)
        return true;
    for (i = 0; i < piece.n; i++)
        hash = (hash ^ (unsigned char)piece.text[i]) * 0x100000001b3u;
    *at = intern(s, &s->head->texts[mix(hash, 0) % TEXTS], &wanted);
    return *at != 0;
}

/* ---- functions -------------------------------------------------------- */

/* A function with a key is compared by that, another one by all that it has. */
static bool
is_function(const struct cpprof__scripts *s, uint32_t at, const void *ctx)
{
    const struct function *f = ctx;
    const struct function *found = entry_at(s, at, sizeof *found, FUNCTION);

    if (!found || found->key != f->key || found->mapping != f->mapping)
        return false;
    return f->key ||
           (found->start_line == f->start_line && found->file == f->file &&
            load_relaxed(&found->name) == f->name &&
            load_relaxed(&found->system_name) == f->system_name);
}

static uint32_t
make_function(struct cpprof__scripts *s, const void *ctx)
{
    uint32_t at = reserve(s, sizeof(struct function), FUNCTION);

    if (at)
        __builtin_memcpy((char *)s->head + at, ctx, sizeof(struct function));
    return at;
}

static uint64_t
function_hash(const struct function *f)
{
    uint64_t hash = mix(f->mapping, f->key);

    return f->key ? hash
                  : mix(mix(mix(mix(hash, f->name), f->system_name), f->file),
                        (uint64_t)f->start_line);
}

/* Set a name that became known. For a moment a reader may see the old one of
 * the two names. */
static void
rename_function(struct cpprof__scripts *s, struct function *f,
                const struct cpprof__script_location *location)
{
    struct piece name = piece_of(location->name);
    struct piece system_name = piece_of(location->system_name);
    uint32_t at;

    if (!is_piece(s, load_relaxed(&f->name), &name) &&
        intern_text(s, location->name, &at))
        store_release(&f->name, at);
    if (!is_piece(s, load_relaxed(&f->system_name), &system_name) &&
        intern_text(s, location->system_name, &at))
        store_release(&f->system_name, at);
}

static bool
all_texts(struct cpprof__scripts *s,
          const struct cpprof__script_location *location, struct function *f)
{
    return intern_text(s, location->name, &f->name) &&
           intern_text(s, location->system_name, &f->system_name) &&
           intern_text(s, location->file, &f->file);
}

/* Its offset; 0 without room. */
static uint32_t
function_of(struct cpprof__scripts *s,
            const struct cpprof__script_location *location)
{
    struct function f = {.entry.kind = FUNCTION,
                         .key = location->key,
                         .start_line = location->start_line};
    const struct wanted wanted = {is_function, make_function, &f};
    uint32_t *first, found = 0;

    if (!intern_text(s, location->mapping, &f.mapping) ||
        (!f.key && !all_texts(s, location, &f)))
        return 0;
    first = &s->head->functions[function_hash(&f) % FUNCTIONS];
    if (!find(s, load_acquire(first), 0, &wanted, &found) ||
        (!found && f.key && !all_texts(s, location, &f)))
        return 0;
    if (!found)
        found = intern(s, first, &wanted);
    if (found && f.key && location->has_name)
        rename_function(s, (void *)((char *)s->head + found), location);
    return found;
}

/* ---- locations -------------------------------------------------------- */

static bool
is_location(const struct cpprof__scripts *s, uint32_t at, const void *ctx)
{
    const struct location *p = ctx;
    const struct location *found = entry_at(s, at, sizeof *found, LOCATION);

    return found && found->function == p->function && found->line == p->line;
}

static uint32_t
make_location(struct cpprof__scripts *s, const void *ctx)
{
    uint32_t at = reserve(s, sizeof(struct location), LOCATION);

    if (at)
        __builtin_memcpy((char *)s->head + at, ctx, sizeof(struct location));
    return at;
}

uint64_t
cpprof__scripts_add(struct cpprof__scripts *s,
                    const struct cpprof__script_location *location)
{
    struct location p = {.entry.kind = LOCATION, .line = location->line};
    const struct wanted wanted = {is_location, make_location, &p};
    uint64_t hash;

    if (!load_acquire(&s->head))
        return CPPROF__SCRIPT_NO_ROOM;
    p.function = function_of(s, location);
    if (!p.function)
        return CPPROF__SCRIPT_NO_ROOM;
    hash = mix(mix(0, p.function), (uint64_t)p.line);
    return CPPROF__SCRIPT_PC |
           intern(s, &s->head->locations[hash % LOCATIONS], &wanted);
}

/* ---- making and reading ----------------------------------------------- */

bool
cpprof__scripts_make(struct cpprof__scripts *s, void *block, const char *path)
{
    struct cpprof__scripts_head *head = block;

    s->head = head;
    s->n_bytes = CPPROF__SCRIPTS_BYTES;
    s->path = path;
    s->n_ready = 0;
    if (!is_ready(s, sizeof *head))
        return false;
    head->n_used = sizeof *head;
    __builtin_memcpy(head->magic, MAGIC, sizeof head->magic);
    return true;
}

bool
cpprof__scripts_open(struct cpprof__scripts *s, void *block, size_t n)
{
    const struct cpprof__scripts_head *head = block;

    if (n < sizeof *head || (uintptr_t)block % 8 ||
        __builtin_memcmp(head->magic, MAGIC, sizeof head->magic) != 0)
        return false;
    s->head = block;
    s->n_bytes = n < CPPROF__SCRIPTS_BYTES ? n : CPPROF__SCRIPTS_BYTES;
    s->path = NULL;
    s->n_ready = 0;
    return true;
}

/* All that is in use is there already, and mapped at once. */
bool
cpprof__scripts_open_shared(struct cpprof__scripts *s, void *block,
                            const char *path)
{
    if (!cpprof__scripts_open(s, block, CPPROF__SCRIPTS_BYTES))
        return false;
    s->path = path;
    return is_ready(s, (uint32_t)cpprof__scripts_in_use(s));
}

void
cpprof__scripts_set(struct cpprof__scripts *s,
                    const struct cpprof__scripts *made)
{
    s->n_bytes = made->n_bytes;
    s->path = made->path;
    s->n_ready = made->n_ready;
    store_release(&s->head, made->head);
}

size_t
cpprof__scripts_head_bytes(void)
{
    return sizeof(struct cpprof__scripts_head);
}

size_t
cpprof__scripts_in_use(const struct cpprof__scripts *s)
{
    uint32_t n = load_acquire(&s->head->n_used);

    return n < CPPROF__SCRIPTS_BYTES ? n : CPPROF__SCRIPTS_BYTES;
}

static bool
read_text(const struct cpprof__scripts *s, uint32_t at, const char **to)
{
    const struct text *text = at ? text_at(s, at) : NULL;

    if (text)
        *to = text->bytes;
    return !at || text;
}

static bool
read_function(const struct cpprof__scripts *s, const struct function *f,
              struct cpprof__script_location *location)
{
    location->key = f->key;
    location->start_line = f->start_line;
    return read_text(s, f->mapping, &location->mapping) &&
           read_text(s, load_acquire(&f->name), &location->name) &&
           read_text(s, load_acquire(&f->system_name),
                     &location->system_name) &&
           read_text(s, f->file, &location->file);
}

bool
cpprof__scripts_read(const struct cpprof__scripts *s, uint64_t pc,
                     struct cpprof__script_location *location)
{
    const struct cpprof__script_location nothing = {"", "", "", "",
                                                    0,  0,  0,  false};
    const struct location *p = NULL;
    const struct function *f;

    *location = nothing;
    if (cpprof__is_script(pc) && load_acquire(&s->head))
        p = entry_at(s, pc & ~CPPROF__SCRIPT_PC, sizeof *p, LOCATION);
    f = p ? entry_at(s, p->function, sizeof *f, FUNCTION) : NULL;
    if (!f || !read_function(s, f, location)) {
        *location = nothing;
        return false;
    }
    location->line = p->line;
    location->has_name = *location->name != 0;
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "collect/heap/heap_profile.h"

#include <string.h>

/* clang-format off */

/* ORDER: as hidden[] and templates[] below. */
const char cpprof__heap_drop_frames[] =
    "calloc|cfree|malloc|free|memalign|do_memalign|(__)?posix_memalign|"
    "pvalloc|valloc|realloc|reallocarray|aligned_alloc|free_sized|"
    "free_aligned_sized|"
    "__libc_(calloc|malloc|memalign|pvalloc|realloc|valloc)|"
    "tcmalloc::.*|"
    "tc_(calloc|cfree|malloc|free|memalign|posix_memalign|pvalloc|valloc|"
    "realloc|new|delete|newarray|deletearray|new_nothrow|newarray_nothrow)|"
    "(je_)?(mallocx|rallocx|xallocx)|je_.*|mi_.*|"
    "BaseArena::.*|(::)?do_malloc(_no_errno|_pages)?|DoSampledAllocation|"
    "MallocedMemBlock::MallocedMemBlock|_M_allocate|"
    "__builtin_(vec_)?(delete|new)|__malloc_alloc_template::allocate|"
    "cpp_alloc|simple_alloc::allocate|operator new(\\[\\])?|"
    "(__gnu_cxx::|std::__)new_allocator(<.*>)?::allocate|"
    "std::allocator(_traits)?<.*>::allocate|"
    "cpprof_heap_record(_in)?|cpprof__.*";

static const char *const hidden[] = {
    "calloc", "cfree", "malloc", "free", "memalign", "do_memalign",
    "__posix_memalign", "posix_memalign", "pvalloc", "valloc", "realloc",
    "reallocarray", "aligned_alloc", "free_sized", "free_aligned_sized",
    "__libc_calloc", "__libc_malloc", "__libc_memalign", "__libc_pvalloc",
    "__libc_realloc", "__libc_valloc",
    "tc_calloc", "tc_cfree", "tc_malloc", "tc_free", "tc_memalign",
    "tc_posix_memalign", "tc_pvalloc", "tc_valloc", "tc_realloc", "tc_new",
    "tc_delete", "tc_newarray", "tc_deletearray", "tc_new_nothrow",
    "tc_newarray_nothrow", "mallocx", "rallocx", "xallocx", "do_malloc",
    "do_malloc_no_errno", "do_malloc_pages", "::do_malloc",
    "::do_malloc_no_errno", "::do_malloc_pages", "DoSampledAllocation",
    "MallocedMemBlock::MallocedMemBlock", "_M_allocate", "__builtin_delete",
    "__builtin_vec_delete", "__builtin_new", "__builtin_vec_new",
    "__malloc_alloc_template::allocate", "cpp_alloc",
    "simple_alloc::allocate", "operator new", "operator new[]",
    "__gnu_cxx::new_allocator::allocate", "cpprof_heap_record",
    "cpprof_heap_record_in",
};

/* Whatever begins so. */
static const char *const families[] = {
    "tcmalloc::", "je_", "mi_", "BaseArena::", "cpprof__",
};

/* PREFIX<...>::allocate */
static const char *const templates[] = {
    "__gnu_cxx::new_allocator<", "std::__new_allocator<", "std::allocator<",
    "std::allocator_traits<",
};
/* clang-format on */

/* Does a name end here? Parameters or a version may follow. */
static bool
ends_at(char c)
{
    return c == 0 || c == '(' || c == '@';
}

static bool
is_template(const char *name, const char *prefix)
{
    const char *end = "::allocate", *at, *next;

    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    at = strstr(name, end);
    while (at && (next = strstr(at + 1, end)))
        at = next;
    return at && ends_at(at[strlen(end)]);
}

bool
cpprof__heap_hides(const char *name)
{
    size_t i, n = strcspn(name, "(@");

    for (i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (strlen(hidden[i]) == n && memcmp(name, hidden[i], n) == 0)
            return true;
    for (i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return true;
    for (i = 0; i < sizeof templates / sizeof *templates; i++)
        if (is_template(name, templates[i]))
            return true;
    return false;
}

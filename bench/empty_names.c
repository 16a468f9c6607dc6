/* SPDX-License-Identifier: MIT */
/* A library with nothing in it but as many names as libcpprof.so exports: what
 * the loader takes to look through one of that kind. */
#define NAMES_2(n)                                                             \
    void cpprof_empty_##n(void);                                               \
    void cpprof_empty_##n(void)                                                \
    {                                                                          \
    }
#define NAMES_1(n)                                                             \
    NAMES_2(n##0)                                                              \
    NAMES_2(n##1)                                                              \
    NAMES_2(n##2)                                                              \
    NAMES_2(n##3)                                                              \
    NAMES_2(n##4)                                                              \
    NAMES_2(n##5)                                                              \
    NAMES_2(n##6)                                                              \
    NAMES_2(n##7)                                                              \
    NAMES_2(n##8)                                                              \
    NAMES_2(n##9)
#define NAMES(n)                                                               \
    NAMES_1(n##0)                                                              \
    NAMES_1(n##1)                                                              \
    NAMES_1(n##2)                                                              \
    NAMES_1(n##3)                                                              \
    NAMES_1(n##4)                                                              \
    NAMES_1(n##5)                                                              \
    NAMES_1(n##6)                                                              \
    NAMES_1(n##7)                                                              \
    NAMES_1(n##8)                                                              \
    NAMES_1(n##9)                                                              \
    NAMES_1(n##a)

#pragma GCC visibility push(default)
NAMES(0)
NAMES(1)
#pragma GCC visibility pop

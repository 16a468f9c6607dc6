/* SPDX-License-Identifier: MIT */
#include "profile/text/go_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000

/* ".25" for 250 of 1000; nothing for 0. scale is a power of ten. */
static size_t
fraction(char *out, uint64_t part, uint64_t scale)
{
    size_t n = 0;

    if (!part)
        return 0;
    out[n++] = '.';
    while (part) {
        scale /= 10;
        out[n++] = (char)('0' + part / scale);
        part %= scale;
    }
    return n;
}

static size_t
below_a_second(char *out, uint64_t ns)
{
    static const struct {
        uint64_t ns;
        const char *unit;
    } units[] = {{1000000, "ms"}, {1000, "\xc2\xb5s"}, {1, "ns"}};
    size_t i = 0, n;

    while (units[i].ns > ns && units[i].ns > 1)
        i++;
    n = (size_t)sprintf(out, "%u", (unsigned)(ns / units[i].ns));
    n += fraction(out + n, ns % units[i].ns, units[i].ns);
    return n + (size_t)sprintf(out + n, "%s", units[i].unit);
}

size_t
cpprof__go_duration(char out[CPPROF__GO_TIME_MAX], int64_t ns)
{
    uint64_t all = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, s = all / NS_PER_S;
    size_t n = 0;

    if (!all)
        return (size_t)sprintf(out, "0s");
    if (ns < 0)
        out[n++] = '-';
    if (!s)
        return n + below_a_second(out + n, all);
    if (s >= 3600)
        n += (size_t)sprintf(out + n, "%lluh", (unsigned long long)(s / 3600));
    if (s >= 60)
        n += (size_t)sprintf(out + n, "%um", (unsigned)(s / 60 % 60));
    n += (size_t)sprintf(out + n, "%u", (unsigned)(s % 60));
    n += fraction(out + n, all % NS_PER_S, NS_PER_S);
    out[n++] = 's';
    out[n] = 0;
    return n;
}

size_t
cpprof__go_time(char out[CPPROF__GO_TIME_MAX], int64_t ns)
{
    time_t seconds = (time_t)(ns / NS_PER_S);
    int64_t part = ns % NS_PER_S;
    struct tm tm = {0};
    size_t n;
    long minutes;

    if (part < 0) {
        part += NS_PER_S;
        seconds--;
    }
    if (!localtime_r(&seconds, &tm))
        gmtime_r(&seconds, &tm);
    n = strftime(out, CPPROF__GO_TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm);
    n += fraction(out + n, (uint64_t)part, NS_PER_S);
    minutes = tm.tm_gmtoff / 60;
    n += (size_t)sprintf(out + n, " %c%02ld%02ld ", minutes < 0 ? '-' : '+',
                         labs(minutes) / 60, labs(minutes) % 60);
    n += (size_t)snprintf(out + n, CPPROF__GO_TIME_MAX - n, "%s",
                          tm.tm_zone ? tm.tm_zone : "UTC");
    return n < CPPROF__GO_TIME_MAX ? n : CPPROF__GO_TIME_MAX - 1;
}

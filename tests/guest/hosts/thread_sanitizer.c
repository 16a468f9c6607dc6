/* SPDX-License-Identifier: MIT */
/* guest: 5. A program built with ThreadSanitizer ends without an error. It is
 * not profiled: ThreadSanitizer ends programs with threads that it does not
 * know. sanitizer: thread, static */
#include "address_sanitizer.c"

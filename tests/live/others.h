/* SPDX-License-Identifier: MIT */
/* The other threads of this process, as the kernel has them. */
#ifndef LIVE_OTHERS_H
#define LIVE_OTHERS_H

/* Returns once all of them sleep: what they have to wait for, they wait for
 * now, however long a busy machine took. After 10 s, whatever they do. */
void
let_others_sleep(void);

#endif

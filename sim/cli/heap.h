/* Configures how the C library keeps freed memory. Call before threads start; no effect unless the
 * library is glibc. */
#ifndef CS_CLI_HEAP_H
#define CS_CLI_HEAP_H

/* For one large run: returns large blocks to the system immediately. glibc keeps blocks up to
 * the size of one that was freed before, which in a run of millions of tasks is a fifth of its
 * memory. */
void cs_heap_give_back(void);

/* For many runs: keeps freed memory for the next run. Otherwise each run gets new, zeroed pages
 * from the system. */
void cs_heap_keep(void);

#endif

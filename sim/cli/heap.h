/* What the C library does with memory that is freed. To be said before threads begin; without
 * effect where the library is not glibc. */
#ifndef CS_CLI_HEAP_H
#define CS_CLI_HEAP_H

/* For one large run: large blocks go back to the system at once. glibc keeps those that are not
 * larger than one that was freed before, which for a run of millions of tasks is a fifth of its
 * memory. */
void cs_heap_give_back(void);

/* For many runs: what one of them frees, the next one takes. Otherwise the system takes pages away
 * and gives them again, zeroed, for each run. */
void cs_heap_keep(void);

#endif

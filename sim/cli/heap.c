#include "sim/cli/heap.h"

#include <stdlib.h> /* defines __GLIBC__ */
#ifdef __GLIBC__
#include <malloc.h>
#endif

void cs_heap_give_back(void)
{
#ifdef __GLIBC__
    enum { LARGE = 4 << 20 };
    (void)mallopt(M_MMAP_THRESHOLD, LARGE);
#endif
}

void cs_heap_keep(void)
{
#ifdef __GLIBC__
    enum { LARGE = 32 << 20, KEPT = 64 << 20 }; /* per thread */
    (void)mallopt(M_MMAP_THRESHOLD, LARGE);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT);
#endif
}

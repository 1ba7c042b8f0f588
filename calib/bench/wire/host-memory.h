/* The memory of this host, as the system reports it. */
#ifndef CS_CALIB_HOST_MEMORY_H
#define CS_CALIB_HOST_MEMORY_H

#include <stdint.h>

/* Returns the bytes of the last-level cache; 32 MiB if the system does not report it. */
int64_t cs_host_cache_bytes(void);

/* Returns the bytes that this process can still allocate: the available memory, limited by
 * the control group; INT64_MAX if neither is known. */
int64_t cs_host_free_bytes(void);

#endif

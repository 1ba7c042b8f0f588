/* The memory of this host, as the system reports it. */
#ifndef CS_CALIB_HOST_MEMORY_H
#define CS_CALIB_HOST_MEMORY_H

#include <stdint.h>

/* Bytes of the last cache before memory; 32 MiB where the system does not report it. */
int64_t cs_host_cache_bytes(void);

/* Bytes that this process and others may still take: what is available, and what its control group
 * leaves; INT64_MAX where neither is known. */
int64_t cs_host_free_bytes(void);

#endif

/* HDF5 file driver that writes to a file on disk and never reports a failure to HDF5.
 *
 * After a failed write, HDF5 tries again when the file is closed and at the end of the process.
 * This driver records the first failure and drops all later writes, so files need not be made in
 * memory.
 */
#ifndef CS_TRACE_H5_DISK_H
#define CS_TRACE_H5_DISK_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct cs_h5_disk {
    int file;     /* open for reading and writing; owned by the caller */
    int failure;  /* errno of the first failure, or 0 */
    bool ended;   /* whether writing has ended */
    uint64_t end; /* size of the file as HDF5 sees it, bytes */
    hid_t driver; /* registered driver, until cs_h5_disk_finish */
} cs_h5_disk;

/* HDF5 1.13 and newer have another driver interface, which is not supported. */
#define CS_H5_DISK !H5_VERSION_GE(1, 13, 0)

/* Access properties for a file on disk; the caller closes them, and `disk` must outlive the file.
 * Negative if HDF5 fails. */
hid_t cs_h5_disk_access(cs_h5_disk *disk);

/* To be called after HDF5 has closed the file, because closing uses the driver. Allowed on a zeroed
 * struct. */
void cs_h5_disk_finish(cs_h5_disk *disk);

#endif

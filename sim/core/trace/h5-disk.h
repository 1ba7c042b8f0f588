/* A file driver of HDF5 that writes to a file on the disk, and never tells HDF5 of a failure.
 *
 * HDF5 that cannot write tries again when the file is closed, and at the end of the process. Here
 * what fails first is remembered, and all that comes after is dropped. So files need not be made in
 * memory.
 */
#ifndef CS_TRACE_H5_DISK_H
#define CS_TRACE_H5_DISK_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct cs_h5_disk {
    int file;     /* open for reading and writing; the caller's */
    int failure;  /* errno of what failed first, or 0 */
    bool ended;   /* nothing is written any more */
    uint64_t end; /* bytes of the file, as HDF5 sees it */
    hid_t driver; /* what HDF5 knows it by, until cs_h5_disk_finish */
} cs_h5_disk;

/* HDF5 of version 1.13 or newer has another interface for drivers: there is none. */
#define CS_H5_DISK !H5_VERSION_GE(1, 13, 0)

/* Properties of access, to be closed, of a file that is made on the disk; `disk` must live until it
 * is closed. Negative where HDF5 fails. */
hid_t cs_h5_disk_access(cs_h5_disk *disk);

/* HDF5 has closed the file. It uses the driver while it does so: it must be told of the end of it
 * after that. Accepts a zeroed one. */
void cs_h5_disk_finish(cs_h5_disk *disk);

#endif

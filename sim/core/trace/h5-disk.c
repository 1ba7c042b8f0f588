#include "sim/core/trace/h5-disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if CS_H5_DISK

/* HDF5's part of an open file must come first. */
typedef struct open_file {
    H5FD_t own;
    cs_h5_disk *disk;
} open_file;

static cs_h5_disk *disk_of(const H5FD_t *file)
{
    return ((const open_file *)file)->disk;
}

static H5FD_t *open_disk(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    (void)name, (void)flags, (void)most;
    cs_h5_disk *const *disk = H5Pget_driver_info(access);
    open_file *made = disk ? calloc(1, sizeof(*made)) : NULL;
    if (!made)
        return NULL;
    made->disk = *disk;
    return &made->own;
}

static herr_t close_disk(H5FD_t *file)
{
    free(file);
    return 0;
}

/* Same features as for files in memory. */
static herr_t query(const H5FD_t *file, unsigned long *features)
{
    (void)file;
    *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
                H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t get_end(const H5FD_t *file, H5FD_mem_t what)
{
    (void)what;
    return disk_of(file)->end;
}

static herr_t set_end(H5FD_t *file, H5FD_mem_t what, haddr_t end)
{
    (void)what;
    disk_of(file)->end = end;
    return 0;
}

/* Bytes that were never written, or could not be, read as zeros. */
static herr_t read_disk(H5FD_t *file, H5FD_mem_t what, hid_t how, haddr_t at, size_t n, void *to)
{
    (void)what, (void)how;
    char *next = to;
    while (n > 0) {
        const ssize_t got = pread(disk_of(file)->file, next, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        next += got;
        at += (haddr_t)got;
        n -= (size_t)got;
    }
    memset(next, 0, n);
    return 0;
}

static herr_t write_disk(H5FD_t *file, H5FD_mem_t what, hid_t how, haddr_t at, size_t n,
                         const void *from)
{
    (void)what, (void)how;
    cs_h5_disk *disk = disk_of(file);
    const char *next = from;
    while (n > 0 && !disk->failure && !disk->ended) {
        const ssize_t put = pwrite(disk->file, next, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            disk->failure = put < 0 ? errno : EIO;
            break;
        }
        next += put;
        at += (haddr_t)put;
        n -= (size_t)put;
    }
    return 0;
}

static const H5FD_class_t on_disk = {
    .name = "simdisk",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(cs_h5_disk *),
    .open = open_disk,
    .close = close_disk,
    .query = query,
    .get_eoa = get_end,
    .set_eoa = set_end,
    .get_eof = get_end,
    .read = read_disk,
    .write = write_disk,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t cs_h5_disk_access(cs_h5_disk *disk)
{
    disk->driver = H5FDregister(&on_disk);
    const hid_t access = disk->driver < 0 ? disk->driver : H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_driver(access, disk->driver, &disk) >= 0)
        return access;
    H5Pclose(access);
    return H5I_INVALID_HID;
}

void cs_h5_disk_finish(cs_h5_disk *disk)
{
    if (disk->driver > 0)
        H5FDunregister(disk->driver);
    disk->driver = 0;
}

#else

hid_t cs_h5_disk_access(cs_h5_disk *disk)
{
    (void)disk;
    return H5I_INVALID_HID;
}

void cs_h5_disk_finish(cs_h5_disk *disk)
{
    (void)disk;
}

#endif

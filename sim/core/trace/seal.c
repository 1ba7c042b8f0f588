#include "sim/core/trace/seal.h"

#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/base/interrupt.h"
#include "sim/core/trace/file-layout.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned char mark[8] = {'s', 'i', 'm', 's', 'e', 'a', 'l', '1'};

static void put(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static void write_seal(unsigned char seal[CS_SEAL_BYTES], uint64_t size, uint64_t hash)
{
    memcpy(seal, mark, sizeof(mark));
    put(seal + 8, size);
    put(seal + 16, hash);
}

void cs_seal(const void *image, size_t size, unsigned char seal[CS_SEAL_BYTES])
{
    write_seal(seal, size, cs_hash_bytes(image, size, 0));
}

bool cs_seal_file(int file, uint64_t size, unsigned char seal[CS_SEAL_BYTES])
{
    uint64_t hash = 0;
    if (lseek(file, 0, SEEK_SET) < 0 || !cs_hash_file(file, size, &hash))
        return false;
    write_seal(seal, size, hash);
    return true;
}

/* ---- a process that reads it ---- */

/* Bytes that the process has mapped; 0: unknown. */
static rlim_t mapped(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    const bool read = file && fscanf(file, "%llu", &pages) == 1;
    if (file)
        fclose(file);
    return read ? (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Limits memory and time in proportion to the size of the file, because packed numbers expand. */
static void limit(uint64_t size)
{
    const rlim_t memory = mapped() + ((rlim_t)2 << 30) + (rlim_t)64 * size;
    const rlim_t seconds = 10 + (rlim_t)size / 10000000;
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    (void)setrlimit(RLIMIT_AS, &(struct rlimit){memory, memory});
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds});
}

static bool read_values(hid_t type, hid_t space, hid_t object, bool dataset)
{
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    const hid_t memory = H5Tget_native_type(type, H5T_DIR_DEFAULT);
    const size_t size = memory < 0 ? 0 : H5Tget_size(memory);
    if (n < 0 || size == 0 || (uint64_t)n > SIZE_MAX / size)
        return false;
    void *values = calloc((size_t)n + 1, size);
    if (!values)
        return false;
    const herr_t done = dataset ? H5Dread(object, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values)
                                : H5Aread(object, memory, values);
    if (done >= 0)
        (void)H5Dvlen_reclaim(memory, space, H5P_DEFAULT, values);
    free(values);
    H5Tclose(memory);
    return done >= 0;
}

static herr_t read_attribute(hid_t at, const char *name, const H5A_info_t *info, void *context)
{
    (void)info, (void)context;
    const hid_t attribute = H5Aopen(at, name, H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    return type >= 0 && space >= 0 && read_values(type, space, attribute, false) ? 0 : -1;
}

static herr_t read_object(hid_t root, const char *name, const H5O_info_t *info, void *context)
{
    const hid_t object = H5Oopen(root, name, H5P_DEFAULT);
    if (object < 0 ||
        H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, read_attribute, context) < 0)
        return -1;
    bool done = true;
    if (info->type == H5O_TYPE_DATASET) {
        const hid_t type = H5Dget_type(object), space = H5Dget_space(object);
        done = type >= 0 && space >= 0 && read_values(type, space, object, true);
    }
    H5Oclose(object);
    return done ? 0 : -1;
}

/* Values are not read if the structure is wrong, because they may be in other files; the reader
 * reports such a file later. Objects left open are closed when the process ends. */
static bool read_all(const char *path)
{
    cs_arena arena;
    cs_file_layout layout;
    cs_arena_init(&arena);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        return false;
    return cs_file_layout_read(&layout, path, file, &arena, NULL) != CS_OK ||
           H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, read_object, NULL) >= 0;
}

/* Suppresses the C library's message about a heap that HDF5 damaged. */
static void silence(void)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0)
        (void)dup2(nowhere, STDERR_FILENO);
}

static const char unreadable[] = "%s: damaged, or cut off: it cannot be read to its end";

/* A file with a correct checksum may be damaged on purpose. HDF5 may crash on it in this process
 * although it did not in the other one, depending on the contents of memory. */
static void blame(const char *path)
{
    cs_error error;
    cs_error_init(&error);
    (void)cs_error_add(&error, CS_INVALID, unreadable, path);
    cs_interrupt_blame(error.text);
}

static cs_status try_apart(const char *path, uint64_t size, cs_error *error)
{
    sigset_t before;
    int code = 0;
    cs_interrupt_hold(&before);
    const pid_t child = fork();
    if (child == 0) {
        cs_interrupt_reset();
        cs_interrupt_release(&before);
        limit(size);
        silence();
        _exit(read_all(path) ? 0 : 1);
    }
    cs_interrupt_release(&before);
    if (child < 0)
        return cs_error_system(error, CS_FAILED, path, "no process to read it in", errno);
    while (waitpid(child, &code, 0) < 0)
        if (errno != EINTR)
            return cs_error_system(error, CS_FAILED, path, "no process to read it in", errno);
    return code == 0 ? CS_OK : cs_error_add(error, CS_INVALID, unreadable, path);
}

/* ---- the check ---- */

typedef enum found { NOT_SEALED, WHOLE, BROKEN, NO_MEMORY } found;

static found look(int file, uint64_t size)
{
    unsigned char seal[CS_SEAL_BYTES], expected[CS_SEAL_BYTES];
    uint64_t hash = 0;
    if (size < CS_SEAL_BYTES)
        return NOT_SEALED;
    size -= CS_SEAL_BYTES;
    if (pread(file, seal, sizeof(seal), (off_t)size) != (ssize_t)sizeof(seal) ||
        memcmp(seal, mark, sizeof(mark)) != 0)
        return NOT_SEALED;
    if (!cs_hash_file(file, size, &hash))
        return errno == ENOMEM ? NO_MEMORY : BROKEN;
    write_seal(expected, size, hash);
    return memcmp(seal, expected, sizeof(seal)) == 0 ? WHOLE : BROKEN;
}

cs_status cs_seal_check(const char *path, cs_error *error)
{
    struct stat info;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0) {
        const int code = errno;
        if (file >= 0)
            close(file);
        return cs_error_system(error, CS_INVALID, path, "cannot read", code);
    }
    const found what = look(file, (uint64_t)info.st_size);
    close(file);
    if (what == NO_MEMORY)
        return cs_error_no_memory(error);
    if (what == BROKEN)
        return cs_error_add(error, CS_INVALID,
                            "%s: damaged: its checksum is not that of its contents (changed by "
                            "another program on purpose: cut the last 24 bytes off)",
                            path);
    if (what == NOT_SEALED)
        CS_TRY(try_apart(path, (uint64_t)info.st_size, error));
    blame(path);
    return CS_OK;
}

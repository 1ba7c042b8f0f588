#include "sim/core/trace/h5.h"

#include "sim/base/file.h"
#include "sim/core/trace/h5-disk.h"
#include "sim/core/trace/pack.h"
#include "sim/core/trace/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK_ROWS = 1 << 16,       /* rows gathered at once; also the length of a chunk */
    COMPRESSED_FROM = 1 << 12,  /* rows; shorter columns are stored as they are */
    DEFLATE_LEVEL = 1,          /* what the file says that columns were packed with */
    MEMORY_INCREMENT = 1 << 20, /* bytes by which the file in memory grows */
    NAME_BYTES = 64,
    TEXT_BYTES = 1024,
};

struct cs_h5_file {
    cs_file_draft draft;
    const cs_progress *progress;
    const cs_h5_receiver *receiver; /* NULL: it is a file */
    cs_packer *packer;              /* once there is something to pack */
    cs_h5_disk disk;                /* of a file that HDF5 makes on the disk; file < 0: in memory */
    hid_t id;                       /* negative once closed */
};

/* A column on its way into a file. */
typedef struct writer {
    cs_h5_file *file;
    const cs_h5_table *table;
    const cs_h5_column *column;
    hid_t group, memory_type, file_type, dataset;
    size_t size; /* bytes of a value */
    cs_pack_history history;
} writer;

static herr_t keep_innermost(unsigned int n, const H5E_error2_t *entry, void *data)
{
    if (n == 0)
        snprintf(data, TEXT_BYTES, "%s", entry->desc ? entry->desc : "");
    return 0;
}

/* One message for the failed call before, with what HDF5 has to say at the bottom of its stack. */
static cs_status fail(const cs_h5_file *file, cs_error *error, const char *group, const char *name)
{
    char reason[TEXT_BYTES] = "";
    if (file->disk.failure)
        return cs_error_system(error, CS_IO, file->draft.path, "cannot write", file->disk.failure);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, reason);
    return cs_error_add(error, CS_IO, "%s: cannot store %s%s%s: HDF5: %s", file->draft.path, group,
                        *group && *name ? "/" : "", name, *reason ? reason : "failed");
}

/* Closes an id of any kind; one that was never opened is fine. What HDF5 said about a failure
 * before is kept for the message: every call that succeeds forgets it. */
static bool close_id(hid_t id)
{
    if (id < 0)
        return true;
    const bool failed = H5Eget_num(H5E_DEFAULT) > 0;
    const hid_t said = failed ? H5Eget_current_stack() : H5I_INVALID_HID;
    const bool closed = H5Idec_ref(id) >= 0;
    if (closed && said >= 0)
        H5Eset_current_stack(said); /* which closes it */
    else if (said >= 0)
        H5Eclose_stack(said);
    return closed;
}

/* ---- attributes ---- */

static bool set_attribute(hid_t object, const char *name, hid_t type, hsize_t count,
                          const void *value)
{
    hid_t space = count > 0 ? H5Screate_simple(1, &count, NULL) : H5Screate(H5S_SCALAR);
    hid_t attribute =
        space < 0 ? space : H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool done = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    done = close_id(attribute) && done;
    return close_id(space) && done;
}

/* Of variable length: an attribute then has no limit of 64 KiB, h5py gives a string, not bytes, and
 * the netCDF library can read it (strings of fixed length crash it). */
static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0 || (H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0))
        return type;
    close_id(type);
    return H5I_INVALID_HID;
}

/* A copy, to be closed. */
static hid_t memory_type(cs_h5_type type)
{
    switch (type) {
    case CS_H5_INT64:
        return H5Tcopy(H5T_NATIVE_INT64);
    case CS_H5_UINT32:
        return H5Tcopy(H5T_NATIVE_UINT32);
    case CS_H5_UINT8:
        return H5Tcopy(H5T_NATIVE_UINT8);
    case CS_H5_UINT64:
        return H5Tcopy(H5T_NATIVE_UINT64);
    case CS_H5_DOUBLE:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case CS_H5_TEXT:
        return text_type();
    }
    return H5I_INVALID_HID;
}

static hid_t file_type(cs_h5_type type)
{
    switch (type) {
    case CS_H5_INT64:
        return H5Tcopy(H5T_STD_I64LE);
    case CS_H5_UINT32:
        return H5Tcopy(H5T_STD_U32LE);
    case CS_H5_UINT8:
        return H5Tcopy(H5T_STD_U8LE);
    case CS_H5_UINT64:
        return H5Tcopy(H5T_STD_U64LE);
    case CS_H5_DOUBLE:
        return H5Tcopy(H5T_IEEE_F64LE);
    case CS_H5_TEXT:
        return text_type();
    }
    return H5I_INVALID_HID;
}

static bool set_text(hid_t object, const char *name, const char *text)
{
    hid_t type = text_type();
    bool done = type >= 0 && set_attribute(object, name, type, 0, &text);
    return close_id(type) && done;
}

static bool set_value(hid_t object, const char *name, cs_h5_type type, cs_h5_value value)
{
    if (type == CS_H5_TEXT)
        return set_text(object, name, value.text);
    hid_t memory = memory_type(type);
    bool done = memory >= 0 && set_attribute(object, name, memory, 0, &value);
    return close_id(memory) && done;
}

cs_status cs_h5_set(cs_h5_file *file, const char *name, cs_h5_type type, cs_h5_value value,
                    cs_error *error)
{
    if (file->receiver)
        return file->receiver->attribute(file->receiver->context, name, type, value, error);
    return set_value(file->id, name, type, value) ? CS_OK : fail(file, error, "", name);
}

cs_status cs_h5_set_text(cs_h5_file *file, const char *name, const char *text, cs_error *error)
{
    return cs_h5_set(file, name, CS_H5_TEXT, (cs_h5_value){.text = text}, error);
}

cs_status cs_h5_set_int64(cs_h5_file *file, const char *name, int64_t value, cs_error *error)
{
    return cs_h5_set(file, name, CS_H5_INT64, (cs_h5_value){.int64 = value}, error);
}

cs_status cs_h5_set_uint64(cs_h5_file *file, const char *name, uint64_t value, cs_error *error)
{
    return cs_h5_set(file, name, CS_H5_UINT64, (cs_h5_value){.uint64 = value}, error);
}

cs_status cs_h5_set_double(cs_h5_file *file, const char *name, double value, cs_error *error)
{
    return cs_h5_set(file, name, CS_H5_DOUBLE, (cs_h5_value){.float64 = value}, error);
}

/* "forward backward ...": what the values of a column stand for, as CF wants it. */
static bool set_flags(hid_t dataset, const char *const *meanings)
{
    uint8_t values[UINT8_MAX];
    char words[TEXT_BYTES] = "";
    size_t used = 0;
    hsize_t count = 0;
    for (; meanings[count] && count < UINT8_MAX; count++) {
        int added = snprintf(words + used, sizeof(words) - used, "%s%s", count > 0 ? " " : "",
                             meanings[count]);
        if (added < 0 || (size_t)added >= sizeof(words) - used)
            return false;
        used += (size_t)added;
        values[count] = (uint8_t)count;
    }
    return set_attribute(dataset, "flag_values", H5T_NATIVE_UINT8, count, values) &&
           set_text(dataset, "flag_meanings", words);
}

static bool describe(hid_t dataset, const cs_h5_column *column)
{
    static const uint32_t none = CS_H5_NONE;
    if (!set_text(dataset, "units", column->units) ||
        !set_text(dataset, "long_name", column->long_name))
        return false;
    if (column->optional && !set_attribute(dataset, "_FillValue", H5T_NATIVE_UINT32, 1, &none))
        return false;
    return !column->meanings || set_flags(dataset, column->meanings);
}

/* ---- columns ---- */

static bool choose_types(writer *w)
{
    w->memory_type = memory_type(w->column->type);
    w->file_type = file_type(w->column->type);
    w->size = cs_h5_size(w->column->type);
    return w->memory_type >= 0 && w->file_type >= 0;
}

size_t cs_h5_size(cs_h5_type type)
{
    static const size_t sizes[] = {
        [CS_H5_INT64] = sizeof(int64_t), [CS_H5_UINT32] = sizeof(uint32_t),
        [CS_H5_UINT8] = sizeof(uint8_t), [CS_H5_UINT64] = sizeof(uint64_t),
        [CS_H5_DOUBLE] = sizeof(double), [CS_H5_TEXT] = sizeof(const char *),
    };
    return sizes[type];
}

void cs_h5_row_numbers(const void *source, uint64_t first, uint64_t count, uint32_t which,
                       void *values)
{
    (void)source, (void)which;
    uint32_t *out = values;
    for (uint64_t i = 0; i < count; i++)
        out[i] = (uint32_t)(first + i);
}

/* The same member of every record: copies of a fixed size are single moves. */
static void gather_members(const char *from, size_t step, size_t size, uint64_t count, char *to)
{
    if (size == sizeof(uint64_t))
        for (uint64_t i = 0; i < count; i++, from += step, to += sizeof(uint64_t))
            memcpy(to, from, sizeof(uint64_t));
    else if (size == sizeof(uint32_t))
        for (uint64_t i = 0; i < count; i++, from += step, to += sizeof(uint32_t))
            memcpy(to, from, sizeof(uint32_t));
    else
        for (uint64_t i = 0; i < count; i++, from += step)
            *to++ = *from;
}

/* Every member of a cs_h5_value stands at its beginning. */
void cs_h5_gather(const cs_h5_table *table, const cs_h5_column *column, uint64_t first,
                  uint64_t count, void *values)
{
    const size_t size = cs_h5_size(column->type);
    if (count == 0) /* a table without rows may have no source */
        return;
    if (column->fill) {
        column->fill(table->source, first, count, column->which, values);
        return;
    }
    if (!column->get) {
        gather_members((const char *)table->source + first * table->row_size + column->which,
                       table->row_size, size, count, values);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        const cs_h5_value value = column->get(table->source, first + i, column->which);
        memcpy((char *)values + i * size, &value, size);
    }
}

/* A shaped column comes in one block, which is all of it. */
static bool write_block(const writer *w, hsize_t first, hsize_t count, const void *block)
{
    hid_t memory = H5Screate_simple(1, &count, NULL);
    hid_t space = H5Dget_space(w->dataset);
    bool done = memory >= 0 && space >= 0 &&
                (w->table->shape ||
                 H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL) >= 0) &&
                H5Dwrite(w->dataset, w->memory_type, memory, space, H5P_DEFAULT, block) >= 0;
    done = close_id(space) && done;
    return close_id(memory) && done;
}

/* Long columns of numbers are packed here, not by HDF5. */
static bool is_packed(const writer *w)
{
    return w->table->n_rows >= COMPRESSED_FROM && !w->table->shape && w->column->type != CS_H5_TEXT;
}

/* The last chunk is as long as the others: what is beyond the rows nobody reads; it repeats the
 * last value. */
static cs_status pack_block(writer *w, hsize_t first, uint64_t count, uint64_t room, char *block,
                            cs_error *error)
{
    const void *packed;
    size_t packed_size;
    for (uint64_t i = count, n; i < room; i += n) { /* twice as many each time */
        n = i - count + 1 < room - i ? i - count + 1 : room - i;
        memcpy(block + i * w->size, block + (count - 1) * w->size, n * w->size);
    }
    if (!w->file->packer)
        w->file->packer = cs_packer_create();
    if (!w->file->packer ||
        !cs_packer_pack(w->file->packer, &w->history, block, room, w->size, &packed, &packed_size))
        return cs_error_no_memory(error);
    if (H5Dwrite_chunk(w->dataset, H5P_DEFAULT, 0, &first, packed_size, packed) >= 0)
        return CS_OK;
    return fail(w->file, error, w->table->group, w->column->name);
}

/* Times of creation would make equal results differ. An array of several dimensions is one chunk.
 */
static hid_t creation_properties(uint64_t n_rows, int rank, const hsize_t *sizes)
{
    hsize_t rows = n_rows < BLOCK_ROWS ? n_rows : BLOCK_ROWS;
    const hsize_t *chunk = rank == 1 ? &rows : sizes;
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (properties < 0)
        return properties;
    bool done = H5Pset_obj_track_times(properties, false) >= 0;
    if (n_rows >= COMPRESSED_FROM)
        done = done && H5Pset_chunk(properties, rank, chunk) >= 0 &&
               H5Pset_shuffle(properties) >= 0 && H5Pset_deflate(properties, DEFLATE_LEVEL) >= 0;
    if (done)
        return properties;
    close_id(properties);
    return H5I_INVALID_HID;
}

static bool create_dataset(writer *w)
{
    const cs_h5_shape *shape = w->table->shape;
    hsize_t sizes[H5S_MAX_RANK] = {w->table->n_rows};
    for (uint32_t i = 0; shape && i < shape->n; i++)
        sizes[i] = shape->sizes[i];
    int rank = shape ? (int)shape->n : 1;
    hid_t space = H5Screate_simple(rank, sizes, NULL);
    hid_t properties = creation_properties(w->table->n_rows, rank, sizes);
    if (space >= 0 && properties >= 0)
        w->dataset = H5Dcreate2(w->group, w->column->name, w->file_type, space, H5P_DEFAULT,
                                properties, H5P_DEFAULT);
    bool closed = close_id(properties);
    return close_id(space) && closed && w->dataset >= 0;
}

/* ---- an index, and the columns that refer to it ----
 *
 * As H5DSattach_scale does, which reads and writes anew for each column what the index knows of the
 * others: the attribute DIMENSION_LIST of a column refers to its index, REFERENCE_LIST of the index
 * to all columns (HDF5 Dimension Scale Specification). */

static const char dimension_list[] = "DIMENSION_LIST", reference_list[] = "REFERENCE_LIST";

typedef struct user {
    hobj_ref_t dataset;
    unsigned dimension; /* of the dataset, that the index is of */
} user;

static bool refer_to_index(const writer *w)
{
    hobj_ref_t index;
    hvl_t list = {1, &index};
    const hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
    bool done = type >= 0 &&
                H5Rcreate(&index, w->group, w->table->index, H5R_OBJECT, H5I_INVALID_HID) >= 0 &&
                set_attribute(w->dataset, dimension_list, type, 1, &list);
    return close_id(type) && done;
}

static hid_t user_type(void)
{
    const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(user));
    if (type < 0 || (H5Tinsert(type, "dataset", HOFFSET(user, dataset), H5T_STD_REF_OBJ) >= 0 &&
                     H5Tinsert(type, "dimension", HOFFSET(user, dimension), H5T_NATIVE_INT) >= 0))
        return type;
    close_id(type);
    return H5I_INVALID_HID;
}

/* How many the index has already, of an earlier table of its group; -1: it cannot be read. */
static hssize_t count_users(hid_t index)
{
    const htri_t there = H5Aexists(index, reference_list);
    if (there <= 0)
        return there;
    const hid_t attribute = H5Aopen(index, reference_list, H5P_DEFAULT);
    const hid_t space = attribute < 0 ? attribute : H5Aget_space(attribute);
    const hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    close_id(space);
    close_id(attribute);
    return n;
}

/* Takes the list off the index. */
static bool take_users(hid_t index, hid_t type, user *users)
{
    const hid_t attribute = H5Aopen(index, reference_list, H5P_DEFAULT);
    const bool done = attribute >= 0 && H5Aread(attribute, type, users) >= 0;
    return close_id(attribute) && done && H5Adelete(index, reference_list) >= 0;
}

static bool refers_to_index(const writer *w, const cs_h5_column *column)
{
    return !w->table->shape && strcmp(column->name, w->table->index) != 0;
}

/* Adds the columns of the table to the `before` users that there are. */
static bool store_users(const writer *w, hid_t index, hid_t type, user *users, hsize_t before)
{
    hsize_t n = before;
    if (before > 0 && !take_users(index, type, users))
        return false;
    for (const cs_h5_column *column = w->table->columns; column->name; column++)
        if (refers_to_index(w, column)) {
            memset(&users[n], 0, sizeof(users[n]));
            if (H5Rcreate(&users[n++].dataset, w->group, column->name, H5R_OBJECT,
                          H5I_INVALID_HID) < 0)
                return false;
        }
    return n == 0 || set_attribute(index, reference_list, type, n, users);
}

static cs_status name_users(const writer *w, cs_error *error)
{
    size_t n = 0;
    if (w->table->shape)
        return CS_OK;
    while (w->table->columns[n].name)
        n++;
    const hid_t index = H5Dopen2(w->group, w->table->index, H5P_DEFAULT);
    const hid_t type = user_type();
    const hssize_t before = index < 0 ? -1 : count_users(index);
    user *users = before < 0 ? NULL : calloc((size_t)before + n + 1, sizeof(*users));
    bool done = type >= 0 && users && store_users(w, index, type, users, (hsize_t)before);
    cs_status status = CS_OK;
    if (before >= 0 && !users)
        status = cs_error_no_memory(error);
    else if (!done)
        status = fail(w->file, error, w->table->group, w->table->index);
    free(users);
    done = close_id(type);
    done = close_id(index) && done;
    return status == CS_OK && !done ? fail(w->file, error, w->table->group, w->table->index)
                                    : status;
}

static bool attach_scale(const writer *w, const char *name, uint32_t dimension)
{
    hid_t scale = H5Dopen2(w->group, name, H5P_DEFAULT);
    bool done = scale >= 0 && H5DSattach_scale(w->dataset, scale, dimension) >= 0;
    return close_id(scale) && done;
}

/* The index becomes a scale; a column written after it refers to it. */
static bool join_index(const writer *w)
{
    const cs_h5_shape *shape = w->table->shape;
    if (!shape && !refers_to_index(w, w->column))
        return H5DSset_scale(w->dataset, w->table->index) >= 0;
    if (!shape)
        return refer_to_index(w);
    bool done = true;
    for (uint32_t i = 0; i < shape->n && done; i++)
        done = attach_scale(w, shape->scales[i], i);
    return done;
}

static cs_status begin_column(writer *w, cs_error *error)
{
    if (choose_types(w) && create_dataset(w) && describe(w->dataset, w->column) && join_index(w))
        return CS_OK;
    return fail(w->file, error, w->table->group, w->column->name);
}

static cs_status end_column(const writer *w, cs_status status, cs_error *error)
{
    bool closed = close_id(w->dataset);
    closed = close_id(w->file_type) && closed;
    closed = close_id(w->memory_type) && closed;
    if (!closed && status == CS_OK)
        return fail(w->file, error, w->table->group, w->column->name);
    return status;
}

/* ---- rows ---- */

static uint64_t rows_at_once(const cs_h5_table *table)
{
    return table->n_rows < BLOCK_ROWS || table->shape ? table->n_rows : BLOCK_ROWS;
}

/* The next rows of a column. */
static cs_status write_part(writer *w, uint64_t first, uint64_t count, void *block, cs_error *error)
{
    cs_h5_gather(w->table, w->column, first, count, block);
    if (is_packed(w))
        return pack_block(w, first, count, rows_at_once(w->table), block, error);
    if (write_block(w, first, count, block))
        return CS_OK;
    return fail(w->file, error, w->table->group, w->column->name);
}

/* The next rows of all n columns, and word of that to whoever watches: what a column needs of its
 * source is near what the one before did. */
static cs_status write_next(writer *columns, size_t n, uint64_t first, uint64_t count, void *block,
                            cs_error *error)
{
    const cs_h5_table *table = columns->table;
    for (size_t c = 0; c < n; c++)
        CS_TRY(write_part(&columns[c], first, count, block, error));
    if (columns->file->disk.failure)
        return fail(columns->file, error, table->group, "");
    if (cs_progress_step(columns->file->progress, "writing results", first + count, table->n_rows))
        return CS_OK;
    return cs_error_add(error, CS_INTERRUPTED, "%s: interrupted, nothing was written",
                        columns->file->draft.path);
}

static cs_status write_rows(writer *columns, size_t n, cs_error *error)
{
    const cs_h5_table *table = columns->table;
    const uint64_t room = rows_at_once(table);
    void *block = malloc(room * sizeof(cs_h5_value) + 1);
    cs_status status = block ? CS_OK : cs_error_no_memory(error);
    for (uint64_t first = 0; first < table->n_rows && status == CS_OK; first += room) {
        const uint64_t left = table->n_rows - first;
        status = write_next(columns, n, first, left < room ? left : room, block, error);
    }
    free(block);
    return status;
}

static cs_status write_columns(const writer *like, cs_error *error)
{
    size_t n = 0, begun = 0;
    while (like->table->columns[n].name)
        n++;
    writer *columns = malloc((n + 1) * sizeof(*columns));
    cs_status status = columns ? CS_OK : cs_error_no_memory(error);
    while (begun < n && status == CS_OK) {
        columns[begun] = *like;
        columns[begun].column = &like->table->columns[begun];
        status = begin_column(&columns[begun++], error);
    }
    if (status == CS_OK && n > 0)
        status = write_rows(columns, n, error);
    while (begun > 0)
        status = end_column(&columns[--begun], status, error);
    free(columns);
    return status;
}

/* Names come back in the order in which they were written, not sorted. */
static hid_t create_group(hid_t file, const char *name)
{
    hid_t group = H5I_INVALID_HID;
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);
    if (properties >= 0 && H5Pset_obj_track_times(properties, false) >= 0 &&
        H5Pset_link_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0)
        group = H5Gcreate2(file, name, H5P_DEFAULT, properties, H5P_DEFAULT);
    close_id(properties);
    return group;
}

cs_status cs_h5_write_table(cs_h5_file *file, const cs_h5_table *table, cs_error *error)
{
    if (file->receiver)
        return file->receiver->table(file->receiver->context, table, error);
    if (!cs_h5_has_room())
        return cs_error_no_memory(error);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    htri_t there = H5Lexists(file->id, table->group, H5P_DEFAULT);
    writer w = {.file = file,
                .table = table,
                .group = there,
                .memory_type = H5I_INVALID_HID,
                .file_type = H5I_INVALID_HID,
                .dataset = H5I_INVALID_HID};
    if (there >= 0)
        w.group = there ? H5Gopen2(file->id, table->group, H5P_DEFAULT)
                        : create_group(file->id, table->group);
    if (w.group < 0)
        return fail(file, error, table->group, "");
    cs_status status = write_columns(&w, error);
    if (status == CS_OK)
        status = name_users(&w, error);
    if (!close_id(w.group) && status == CS_OK)
        status = fail(file, error, table->group, "");
    return status;
}

/* ---- files ---- */

bool cs_h5_has_room(void)
{
    enum { ROOM = 8 << 20 };            /* twice what opening a file takes of address space */
    void *volatile room = malloc(ROOM); /* volatile: a compiler may leave such a pair out */
    const bool has = room != NULL;
    free(room);
    return has;
}

static hid_t in_memory(void)
{
    const hid_t properties = H5Pcreate(H5P_FILE_ACCESS);
    if (properties < 0 || H5Pset_fapl_core(properties, MEMORY_INCREMENT, false) >= 0)
        return properties;
    close_id(properties);
    return H5I_INVALID_HID;
}

/* Closing also closes whatever a failure left open. */
static hid_t access_properties(cs_h5_file *file)
{
    const hid_t properties = file->disk.file >= 0 ? cs_h5_disk_access(&file->disk) : in_memory();
    if (properties < 0 ||
        (H5Pset_libver_bounds(properties, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) >= 0 &&
         H5Pset_fclose_degree(properties, H5F_CLOSE_STRONG) >= 0))
        return properties;
    close_id(properties);
    return H5I_INVALID_HID;
}

/* HDF5 refuses to open one name twice; the temporary one is unique. */
static hid_t create(cs_h5_file *of)
{
    hid_t file = H5I_INVALID_HID;
    hid_t access = access_properties(of);
    hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    if (access >= 0 && creation >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
        H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0)
        file = H5Fcreate(of->draft.temporary, H5F_ACC_TRUNC, creation, access);
    close_id(creation);
    close_id(access);
    return file;
}

cs_status cs_h5_create(const char *path, const cs_progress *progress, cs_h5_file **file,
                       cs_error *error)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    cs_h5_file *made = cs_h5_has_room() ? calloc(1, sizeof(*made)) : NULL;
    if (!made)
        return cs_error_no_memory(error);
    made->id = H5I_INVALID_HID;
    made->disk.file = -1;
    made->progress = progress;
    cs_status status = cs_file_draft_begin(&made->draft, path, error);
    if (status == CS_OK && CS_H5_DISK && !cs_file_draft_is_direct(&made->draft)) {
        made->disk.file = open(made->draft.temporary, O_RDWR | O_CLOEXEC);
        if (made->disk.file < 0)
            status = cs_error_system(error, CS_IO, path, "cannot write", errno);
    }
    if (status == CS_OK) {
        made->id = create(made);
        if (made->id < 0)
            status = fail(made, error, "", "the file");
    }
    if (status != CS_OK) {
        cs_h5_destroy(made);
        return status;
    }
    *file = made;
    return CS_OK;
}

cs_status cs_h5_create_for(const cs_h5_receiver *receiver, cs_h5_file **file, cs_error *error)
{
    cs_h5_file *made = calloc(1, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    made->id = H5I_INVALID_HID;
    made->disk.file = -1;
    made->receiver = receiver;
    *file = made;
    return CS_OK;
}

void cs_h5_destroy(cs_h5_file *file)
{
    if (!file)
        return;
    file->disk.ended = true; /* what was not committed need not be complete */
    close_id(file->id);
    cs_h5_disk_finish(&file->disk);
    if (file->disk.file >= 0)
        close(file->disk.file);
    cs_packer_destroy(file->packer);
    cs_file_draft_drop(&file->draft);
    free(file);
}

/* The superblock's flags of consistency say "open to be written" until the file is closed. Where
 * they are is what versions 0 and 1 have in common; access_properties asks for 0. */
enum { VERSION_AT = 8, FLAGS_AT = 20, FLAG_BYTES = 4, VERSION_MOST = 1 };

/* What HDF5 has in its memory, until the file is closed: as H5Fget_file_image copies it, which
 * clears the flags as well. */
static cs_status find_image(const cs_h5_file *file, const void **image, size_t *size,
                            cs_error *error)
{
    unsigned char **memory = NULL;
    const ssize_t length = H5Fget_file_image(file->id, NULL, 0);
    if (length < FLAGS_AT + FLAG_BYTES ||
        H5Fget_vfd_handle(file->id, H5P_DEFAULT, (void **)&memory) < 0 || !memory ||
        (*memory)[VERSION_AT] > VERSION_MOST)
        return fail(file, error, "", "the file");
    memset(*memory + FLAGS_AT, 0, FLAG_BYTES);
    *image = *memory;
    *size = (size_t)length;
    return CS_OK;
}

static cs_status write_image(const cs_h5_file *file, cs_error *error)
{
    const void *image = NULL;
    size_t size = 0;
    unsigned char seal[CS_SEAL_BYTES];
    CS_TRY(find_image(file, &image, &size, error));
    cs_seal(image, size, seal);
    FILE *out = fopen(file->draft.temporary, "wb");
    bool written = out && fwrite(image, 1, size, out) == size &&
                   fwrite(seal, 1, sizeof(seal), out) == sizeof(seal);
    int code = errno;
    if (out && fclose(out) != 0 && written) {
        written = false;
        code = errno;
    }
    return written ? CS_OK : cs_error_system(error, CS_IO, file->draft.path, "cannot write", code);
}

/* The same of a file on the disk, to which HDF5 adds nothing more. */
static cs_status seal_disk(cs_h5_file *file, cs_error *error)
{
    static const unsigned char flags[FLAG_BYTES];
    cs_h5_disk *disk = &file->disk;
    unsigned char version = UINT8_MAX, seal[CS_SEAL_BYTES];
    disk->ended = true;
    if (disk->failure ||
        (pread(disk->file, &version, 1, VERSION_AT) == 1 && version > VERSION_MOST))
        return fail(file, error, "", "the file");
    errno = EIO; /* of what is written in part */
    if (ftruncate(disk->file, (off_t)disk->end) != 0 ||
        pwrite(disk->file, flags, sizeof(flags), FLAGS_AT) != (ssize_t)sizeof(flags) ||
        !cs_seal_file(disk->file, disk->end, seal) ||
        pwrite(disk->file, seal, sizeof(seal), (off_t)disk->end) != (ssize_t)sizeof(seal))
        return cs_error_system(error, CS_IO, file->draft.path, "cannot write", errno);
    return CS_OK;
}

cs_status cs_h5_commit(cs_h5_file *file, cs_error *error)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0)
        return fail(file, error, "", "the file");
    const cs_status status =
        file->disk.file >= 0 ? seal_disk(file, error) : write_image(file, error);
    const bool closed = close_id(file->id);
    file->id = H5I_INVALID_HID;
    if (status != CS_OK || !closed)
        return status == CS_OK ? fail(file, error, "", "the file") : status;
    return cs_file_draft_commit(&file->draft, error);
}

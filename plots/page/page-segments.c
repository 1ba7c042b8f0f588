#include "plots/page/page-segments.h"

#include <math.h>

/* Columns of /allocator; the objects use the same names. */
static const char *const figures[] = {
    "peak_allocated", "peak_reserved", "peak_time",   "segments",    "retries",
    "failures",       "failed_bytes",  "failed_time", "failed_free", "failed_largest",
};

enum { N_FIGURES = sizeof(figures) / sizeof(figures[0]) };

typedef struct devices {
    const int64_t *figures[N_FIGURES], *capacity;
    const uint32_t *played_as, *failed_task, *sample_device;
    uint64_t n, n_samples;
} devices;

static cs_status read_devices(cs_reader *reader, devices *d, cs_error *error)
{
    char names[N_FIGURES][64];
    cs_reader_column columns[N_FIGURES + 2] = {
        [N_FIGURES] = {"allocator/played_as", CS_READER_UINT32, &d->played_as},
        [N_FIGURES + 1] = {"allocator/failed_task", CS_READER_UINT32, &d->failed_task}};
    const cs_reader_column capacity = {"devices/capacity", CS_READER_INT64, &d->capacity};
    const cs_reader_column sample = {"reserved/device", CS_READER_UINT32, &d->sample_device};
    uint64_t n = 0;
    for (size_t i = 0; i < N_FIGURES; i++) {
        snprintf(names[i], sizeof(names[i]), "allocator/%s", figures[i]);
        columns[i] = (cs_reader_column){names[i], CS_READER_INT64, &d->figures[i]};
    }
    CS_TRY(cs_reader_read(reader, columns, N_FIGURES + 2, &d->n, error));
    CS_TRY(cs_reader_read(reader, &sample, 1, &d->n_samples, error));
    CS_TRY(cs_reader_read(reader, &capacity, 1, &n, error));
    return n == d->n && n <= UINT32_MAX
               ? CS_OK
               : cs_error_add(error, CS_INVALID, "%s: allocator: must have a row for each device",
                              reader->path);
}

static cs_status add_device(cs_page_json *json, cJSON *list, cs_reader *reader, const devices *d,
                            uint32_t device, cs_error *error)
{
    const char *name = cs_reader_kind_name(reader, d->played_as, (uint32_t)d->n, device);
    cJSON *object = cs_page_append_object(json, list);
    if (!name)
        return cs_error_no_memory(error);
    cs_page_add_text(json, object, "name", name);
    cs_page_add_number(json, object, "device", device);
    cs_page_add_number(json, object, "capacity",
                       d->capacity[device] == INT64_MAX ? NAN : (double)d->capacity[device]);
    cs_page_add_number(json, object, "failed_task",
                       d->failed_task[device] == UINT32_MAX ? (double)NAN
                                                            : (double)d->failed_task[device]);
    for (size_t i = 0; i < N_FIGURES; i++)
        cs_page_add_number(json, object, figures[i], (double)d->figures[i][device]);
    return CS_OK;
}

static cs_status pack_tables(cs_reader *reader, cs_page_part *run, cs_error *error)
{
    static const cs_page_column columns[] = {
        {"reserved/device", CS_CELL_U32},
        {"reserved/time", CS_CELL_F64},
        {"reserved/allocated", CS_CELL_F64},
        {"reserved/reserved", CS_CELL_F64},
        {"reserved/most_allocated", CS_CELL_F64},
        {"reserved/most_reserved", CS_CELL_F64},
        {"blocks/device", CS_CELL_U32},
        {"blocks/task", CS_CELL_U32},
        {"blocks/moment", CS_CELL_U8},
        {"blocks/pool", CS_CELL_U8},
        {"blocks/stream", CS_CELL_U8},
        {"blocks/state", CS_CELL_U8},
        {"blocks/category", CS_CELL_U8},
        {"blocks/segment_address", CS_CELL_F64},
        {"blocks/address", CS_CELL_F64},
        {"blocks/bytes", CS_CELL_F64},
        {"blocks/requested", CS_CELL_F64},
        {NULL, CS_CELL_U8},
    };
    return cs_page_part_pack(run, reader, columns, error);
}

/* Relies on the samples being grouped by device. */
cs_status cs_page_segments_read(cs_reader *reader, cs_page_part *run, cs_error *error)
{
    devices d;
    const char *const *words;
    uint32_t n = 0;
    if (!cs_reader_has(reader, "allocator"))
        return CS_OK;
    CS_TRY(read_devices(reader, &d, error));
    CS_TRY(cs_reader_meanings(reader, "blocks/category", &words, &n, error));
    cs_page_add_words(&run->json, "holds", words, n);
    cJSON *list = cs_page_add_list(&run->json, run->json.root, "allocator");
    for (uint64_t i = 0; i < d.n_samples; i++) {
        const uint32_t device = d.sample_device[i];
        if (i > 0 && device == d.sample_device[i - 1])
            continue;
        if (device >= d.n)
            return cs_error_add(error, CS_INVALID, "%s: reserved/device: there is no device %u",
                                reader->path, device);
        CS_TRY(add_device(&run->json, list, reader, &d, device, error));
    }
    return pack_tables(reader, run, error);
}

#include "sim/model/allocator/memory-snapshot.h"

#include "sim/base/file.h"
#include "sim/base/text-stream.h"
#include "sim/base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void cs_history_finish(cs_history *history)
{
    free(history->entries);
    *history = (cs_history){0};
}

cs_status cs_history_add(cs_history *history, const cs_history_entry *entry, cs_error *error)
{
    if (!cs_vector_reserve((void **)&history->entries, &history->capacity, history->n + UINT64_C(1),
                           sizeof(*history->entries)))
        return cs_error_no_memory(error);
    history->entries[history->n++] = *entry;
    return CS_OK;
}

/* ---- pickle ---- */

/* Opcodes of pickle protocol 2 (table: Python's pickletools). */
enum {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    DICT = '}',
    SET_ITEMS = 'u',
    LIST = ']',
    APPENDS = 'e',
    TEXT = 'X',
    SMALL = 'K', /* integer of one byte */
    LONG = 0x8a, /* integer with its length in bytes first; little-endian, signed */
    TRUE_VALUE = 0x88,
    FALSE_VALUE = 0x89,
    PAIR = 0x86,
};

static void put_bytes(FILE *out, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        putc((int)(value >> (8 * i) & 0xff), out);
}

static void put_text(FILE *out, const char *text)
{
    const size_t length = strlen(text);
    putc(TEXT, out);
    put_bytes(out, length, 4);
    fwrite(text, 1, length, out);
}

static void put_number(FILE *out, int64_t value)
{
    if (value >= 0 && value < 256) {
        putc(SMALL, out);
        put_bytes(out, (uint64_t)value, 1);
        return;
    }
    putc(LONG, out);
    putc(8, out);
    put_bytes(out, (uint64_t)value, 8);
}

static void put_bool(FILE *out, bool value)
{
    putc(value ? TRUE_VALUE : FALSE_VALUE, out);
}

static void begin_dict(FILE *out)
{
    putc(DICT, out);
    putc(MARK, out);
}

static void end_dict(FILE *out)
{
    putc(SET_ITEMS, out);
}

static void begin_list(FILE *out)
{
    putc(LIST, out);
    putc(MARK, out);
}

static void end_list(FILE *out)
{
    putc(APPENDS, out);
}

static void put_entry(FILE *out, const char *key, int64_t value)
{
    put_text(out, key);
    put_number(out, value);
}

/* Writes a stack with a single frame, whose function name is the label. */
static void put_frames(FILE *out, const char *label)
{
    put_text(out, "frames");
    begin_list(out);
    if (label) {
        begin_dict(out);
        put_text(out, "name");
        put_text(out, label);
        put_text(out, "filename");
        put_text(out, "sim");
        put_entry(out, "line", 0);
        end_dict(out);
    }
    end_list(out);
}

/* ---- segments ---- */

typedef struct writer {
    FILE *out;
    const cs_history *history;
} writer;

/* Returns the label of the last allocation at an address; NULL: none. */
static const char *label_of(const cs_history *history, int64_t address)
{
    for (uint32_t i = history->n; i-- > 0;) {
        const cs_history_entry *entry = &history->entries[i];
        if (entry->event.action == CS_CACHING_ALLOC && entry->event.address == address)
            return entry->label;
    }
    return NULL;
}

static void put_block(const writer *w, const cs_block_view *block)
{
    static const char *const states[] = {"inactive", "active_allocated", "active_pending_free"};
    begin_dict(w->out);
    put_entry(w->out, "address", block->address);
    put_entry(w->out, "size", block->size);
    put_entry(w->out, "requested_size",
              block->state == CS_BLOCK_FREE ? block->size : block->requested);
    put_text(w->out, "state");
    put_text(w->out, states[block->state]);
    put_frames(w->out, block->state == CS_BLOCK_FREE ? NULL : label_of(w->history, block->address));
    end_dict(w->out);
}

static int64_t sum_blocks(const cs_segment_view *view, bool active)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < view->n_blocks; i++) {
        const cs_block_state state = view->blocks[i].state;
        if (state == CS_BLOCK_ALLOCATED || (active && state == CS_BLOCK_PENDING))
            sum += view->blocks[i].size;
    }
    return sum;
}

static bool put_segment(void *context, const cs_segment_view *view)
{
    const writer *w = context;
    int64_t requested = 0;
    for (uint32_t i = 0; i < view->n_blocks; i++)
        requested += view->blocks[i].requested;
    begin_dict(w->out);
    put_entry(w->out, "device", 0);
    put_entry(w->out, "address", view->address);
    put_entry(w->out, "total_size", view->size);
    put_entry(w->out, "allocated_size", sum_blocks(view, false));
    put_entry(w->out, "active_size", sum_blocks(view, true));
    put_entry(w->out, "requested_size", requested);
    put_entry(w->out, "stream", view->stream);
    put_text(w->out, "segment_type");
    put_text(w->out, view->small ? "small" : "large");
    put_text(w->out, "segment_pool_id");
    put_number(w->out, 0);
    put_number(w->out, 0);
    putc(PAIR, w->out);
    put_text(w->out, "is_expandable");
    put_bool(w->out, view->expandable);
    put_frames(w->out, NULL);
    put_text(w->out, "blocks");
    begin_list(w->out);
    for (uint32_t i = 0; i < view->n_blocks; i++)
        put_block(w, &view->blocks[i]);
    end_list(w->out);
    end_dict(w->out);
    return true;
}

/* ---- history and settings ---- */

static void put_history(FILE *out, const cs_history *history)
{
    put_text(out, "device_traces");
    begin_list(out);
    begin_list(out);
    for (uint32_t i = 0; i < history->n; i++) {
        const cs_history_entry *entry = &history->entries[i];
        begin_dict(out);
        put_text(out, "action");
        put_text(out, cs_caching_action_names[entry->event.action]);
        put_entry(out, entry->event.action == CS_CACHING_OOM ? "device_free" : "addr",
                  entry->event.address);
        put_entry(out, "size", entry->event.size);
        put_entry(out, "stream", entry->event.stream);
        put_entry(out, "time_us", entry->time_us);
        put_frames(out, entry->label);
        end_dict(out);
    }
    end_list(out);
    end_list(out);
}

static void put_settings(FILE *out, const cs_caching_options *options)
{
    put_text(out, "allocator_settings");
    begin_dict(out);
    put_entry(out, "max_split_size",
              options->max_split_size == INT64_MAX ? -1 : options->max_split_size);
    put_text(out, "expandable_segments");
    put_bool(out, options->expandable_segments);
    end_dict(out);
}

cs_status cs_memory_snapshot_write(const char *path, const cs_caching_allocator *allocator,
                                   const cs_caching_options *options, const cs_history *history,
                                   cs_error *error)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = cs_text_stream(&text, &length);
    if (!out)
        return cs_error_no_memory(error);
    writer w = {out, history};
    putc(PROTO, out);
    putc(2, out);
    begin_dict(out);
    put_text(out, "segments");
    begin_list(out);
    cs_status status = cs_caching_visit(allocator, put_segment, &w, error);
    end_list(out);
    put_history(out, history);
    put_settings(out, options);
    end_dict(out);
    putc(STOP, out);
    if (fclose(out) != 0 && status == CS_OK)
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_file_write(path, text, length, error);
    free(text);
    return status;
}

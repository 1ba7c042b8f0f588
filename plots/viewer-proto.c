#include "plots/viewer-out.h"

#include "sim/base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Writes Perfetto's own format: a Trace is a list of TracePackets, and each packet belongs to a
 * sequence. Field numbers are from protos/perfetto/trace in Perfetto's sources (trace_packet,
 * trace_packet_defaults, clock_snapshot, track_event/track_event, track_descriptor,
 * process_descriptor, counter_descriptor, debug_annotation, interned_data).
 *
 * The descriptors of all tracks form one sequence; the events of each track form another. The
 * first packet of a track's sequence begins the sequence, makes this track the default of its
 * events, and makes their times relative to the previous event (an incremental clock of the
 * sequence). Names, categories and argument names are interned: a packet of the sequence defines
 * each of them before the first packet that uses its number. Times are whole nanoseconds. */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 }; /* wire types */

enum packet_field {
    PACKET_CLOCKS = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_DESCRIPTOR = 60,
};

enum event_field {
    EVENT_CATEGORY = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_COUNTER = 30,
    EVENT_FLOW = 47,
    EVENT_FLOW_END = 48,
};

enum event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_COUNTER = 4 };

enum descriptor_field {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_ORDERING = 11,
    TRACK_RANK = 12,
};

enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2, CLOCK_INCREMENTAL = 3 };
enum { CLOCK_BOOT = 6, CLOCK_OF_SEQUENCE = 64 };
enum { DEFAULTS_EVENT = 11, DEFAULTS_CLOCK = 58 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { COUNTER_UNIT = 3, UNIT_BYTES = 3 };
enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_ARGUMENT = 3 };
enum { ENTRY_NUMBER = 1, ENTRY_NAME = 2 };
enum { ARGUMENT_NAME = 1, ARGUMENT_UINT = 3 };
enum { FLAG_CLEARED = 1, FLAG_NEEDED = 2, ORDER_EXPLICIT = 3, PS_PER_NS = 1000 };

static const char *const arguments[] = {"task",        "stage",        "mini_batch",
                                        "micro_batch", "version_read", "version_made",
                                        "to_device",   "from_device",  "bytes"};

enum argument {
    ARG_TASK,
    ARG_STAGE,
    ARG_MINI_BATCH,
    ARG_MICRO_BATCH,
    ARG_READ,
    ARG_MADE,
    ARG_TO,
    ARG_FROM,
    ARG_BYTES,
    N_ARGUMENTS
};

/* A message under construction. Texts are cut so that a whole packet fits. */
enum { MESSAGE = 512, TEXT = 120 };

typedef struct message {
    uint32_t size;
    unsigned char bytes[MESSAGE];
} message;

typedef struct writer {
    const cs_drawn_run *run;
    cs_viewer_out *out;
    bool begun; /* a descriptor packet has been written */
    /* per kind and number: uuid of the latest track that interned the name; 0: none */
    uint64_t *named;
    uint32_t n_numbers; /* numbers per kind */
    /* per device: uuid of its process track; the uuids of its lanes and counters follow */
    uint64_t *tracks;
    uint64_t *times;        /* per track: time of its latest event, in ns */
    cs_drawn_slice *sorted; /* buffer for the slices of a device */
    uint64_t *places;       /* per track of a device: index in `sorted` for its next slice */
} writer;

/* sequence of the descriptors; the sequence of a track is its uuid + DESCRIPTORS */
enum { DESCRIPTORS = 1 };

/* ---- wire format ---- */

static void put_varint(message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        m->bytes[m->size++] = (unsigned char)(value | 0x80);
    m->bytes[m->size++] = (unsigned char)value;
}

static void put_number(message *m, uint32_t field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3 | VARINT);
    put_varint(m, value);
}

static void put_fixed(message *m, uint32_t field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3 | FIXED64);
    for (int shift = 0; shift < 64; shift += 8)
        m->bytes[m->size++] = (unsigned char)(value >> shift);
}

static void put_bytes(message *m, uint32_t field, const void *data, size_t size)
{
    put_varint(m, (uint64_t)field << 3 | BYTES);
    put_varint(m, size);
    memcpy(m->bytes + m->size, data, size);
    m->size += (uint32_t)size;
}

static void put_text(message *m, uint32_t field, const char *text)
{
    const size_t length = strlen(text);
    put_bytes(m, field, text, length < TEXT ? length : TEXT);
}

static void put_message(message *m, uint32_t field, const message *inner)
{
    put_bytes(m, field, inner->bytes, inner->size);
}

/* Writes a packet as a field of the Trace, which is the whole file. */
static void write_packet(writer *w, message *packet, uint64_t sequence, uint64_t flags)
{
    message head;
    head.size = 0;
    put_number(packet, PACKET_SEQUENCE, sequence);
    if (flags)
        put_number(packet, PACKET_FLAGS, flags);
    put_varint(&head, 1 << 3 | BYTES);
    put_varint(&head, packet->size);
    cs_viewer_out_bytes(w->out, head.bytes, head.size);
    cs_viewer_out_bytes(w->out, packet->bytes, packet->size);
}

static void write_descriptor(writer *w, const message *track)
{
    message packet;
    packet.size = 0;
    put_message(&packet, PACKET_DESCRIPTOR, track);
    write_packet(w, &packet, DESCRIPTORS, w->begun ? 0 : FLAG_CLEARED);
    w->begun = true;
}

static uint64_t sequence_of(uint64_t track)
{
    return DESCRIPTORS + track;
}

static void put_clock(message *clocks, uint64_t id, bool incremental)
{
    message clock;
    clock.size = 0;
    put_number(&clock, CLOCK_ID, id);
    put_number(&clock, CLOCK_TIME, 0);
    if (incremental)
        put_number(&clock, CLOCK_INCREMENTAL, 1);
    put_message(clocks, CLOCKS_CLOCK, &clock);
}

/* Begins the sequence of a track. Its clock is 0 when the machine's clock is 0. */
static void begin_sequence(writer *w, uint64_t track)
{
    message packet, clocks, defaults, event;
    packet.size = clocks.size = defaults.size = event.size = 0;
    put_clock(&clocks, CLOCK_BOOT, false);
    put_clock(&clocks, CLOCK_OF_SEQUENCE, true);
    put_message(&packet, PACKET_CLOCKS, &clocks);
    put_number(&event, EVENT_TRACK, track);
    put_message(&defaults, DEFAULTS_EVENT, &event);
    put_number(&defaults, DEFAULTS_CLOCK, CLOCK_OF_SEQUENCE);
    put_message(&packet, PACKET_DEFAULTS, &defaults);
    write_packet(w, &packet, sequence_of(track), FLAG_CLEARED);
}

/* ---- names ---- */

static void intern(message *interned, uint32_t field, uint64_t number, const char *text)
{
    message entry;
    entry.size = 0;
    put_number(&entry, ENTRY_NUMBER, number);
    put_text(&entry, ENTRY_NAME, text);
    put_message(interned, field, &entry);
}

static void write_interned(writer *w, uint64_t track, uint32_t field, uint64_t number,
                           const char *text)
{
    message packet, interned;
    packet.size = interned.size = 0;
    intern(&interned, field, number, text);
    put_message(&packet, PACKET_INTERNED, &interned);
    write_packet(w, &packet, sequence_of(track), FLAG_NEEDED);
}

static void write_words(writer *w, uint64_t track)
{
    for (uint32_t i = 0; i < N_ARGUMENTS; i++)
        write_interned(w, track, INTERNED_ARGUMENT, i + 1, arguments[i]);
    for (uint32_t k = 0; k < w->run->tasks.is.n_kinds; k++)
        write_interned(w, track, INTERNED_CATEGORY, k + 1, w->run->tasks.is.kinds[k]);
}

/* Returns the number of a slice's name; interns the name if it is new to the track. */
static uint64_t name_of(writer *w, uint64_t track, uint32_t task, uint32_t kind)
{
    const uint32_t number = cs_drawn_number(w->run, task), last = w->n_numbers - 1;
    const uint64_t place = (uint64_t)kind * w->n_numbers + (number < last ? number : last);
    if (w->named[place] != track) {
        char name[TEXT];
        cs_text_format(name, sizeof(name), "%.60s %" PRIu32, w->run->tasks.is.kinds[kind], number);
        write_interned(w, track, INTERNED_NAME, place + 1, name);
        w->named[place] = track;
    }
    return place + 1;
}

/* ---- tracks of a device: the process, then computations, sends, receives and counters ---- */

static uint64_t track_of(const writer *w, uint64_t device, const cs_drawn_slice *s)
{
    const uint64_t first = w->tracks[device] + 1;
    return s->side == CS_DRAWN_COMPUTES ? first
           : s->side == CS_DRAWN_SENDS  ? first + 1 + s->lane
                                        : first + 1 + w->run->rows[device].sends + s->lane;
}

static uint64_t counter_of(const writer *w, uint64_t device, uint32_t category)
{
    const cs_drawn_row *d = &w->run->rows[device];
    return w->tracks[device] + 2 + d->sends + d->receives + category;
}

static uint64_t capacity_of(const writer *w, uint64_t device)
{
    return counter_of(w, device, w->run->memory.n_categories);
}

static void write_process(writer *w, uint64_t device)
{
    message track, process;
    char name[48];
    track.size = process.size = 0;
    cs_drawn_row_name(w->run, device, name, sizeof(name));
    /* process id 0 is invalid */
    put_number(&process, PROCESS_PID, w->run->rows[device].device + 1ULL);
    put_text(&process, PROCESS_NAME, name);
    put_number(&track, TRACK_UUID, w->tracks[device]);
    put_message(&track, TRACK_PROCESS, &process);
    put_number(&track, TRACK_ORDERING, ORDER_EXPLICIT);
    write_descriptor(w, &track);
}

static void write_track(writer *w, uint64_t device, uint64_t uuid, const char *name, bool counts)
{
    message track, counter;
    track.size = counter.size = 0;
    put_number(&track, TRACK_UUID, uuid);
    put_number(&track, TRACK_PARENT, w->tracks[device]);
    put_text(&track, TRACK_NAME, name);
    put_number(&track, TRACK_RANK, uuid - w->tracks[device]);
    put_number(&counter, COUNTER_UNIT, UNIT_BYTES);
    if (counts)
        put_message(&track, TRACK_COUNTER, &counter);
    write_descriptor(w, &track);
    begin_sequence(w, uuid);
}

static void write_lanes(writer *w, uint64_t device, const char *what, uint64_t first, uint32_t n)
{
    char name[48];
    for (uint32_t lane = 0; lane < n; lane++) {
        snprintf(name, sizeof(name), n == 1 ? "%s" : "%s %" PRIu32, what, lane + 1);
        write_track(w, device, first + lane, name, false);
    }
}

static void write_tracks(writer *w, uint64_t device)
{
    const cs_drawn_run *run = w->run;
    const cs_drawn_row *d = &run->rows[device];
    const uint64_t first = w->tracks[device] + 1;
    char name[TEXT];
    write_process(w, device);
    write_track(w, device, first, "compute", false);
    write_lanes(w, device, "sends", first + 1, d->sends);
    write_lanes(w, device, "receives", first + 1 + d->sends, d->receives);
    for (uint32_t c = 0; c < run->memory.n_categories; c++) {
        cs_text_format(name, sizeof(name), "memory: %.60s", run->memory.categories[c]);
        if (run->memory.held[device * run->memory.n_categories + c])
            write_track(w, device, counter_of(w, device, c), name, true);
    }
    if (w->run->memory.capacity[device] != INT64_MAX)
        write_track(w, device, capacity_of(w, device), "memory: capacity", true);
}

/* ---- events ---- */

/* Writes an event. The events of a track must be in order of time. */
static void write_event(writer *w, uint64_t track, cs_time time, const message *event)
{
    const uint64_t now = ((uint64_t)time + PS_PER_NS / 2) / PS_PER_NS;
    message packet;
    packet.size = 0;
    put_number(&packet, PACKET_TIMESTAMP, now - w->times[track]);
    put_message(&packet, PACKET_EVENT, event);
    write_packet(w, &packet, sequence_of(track), FLAG_NEEDED);
    w->times[track] = now;
}

static void put_argument(message *event, enum argument argument, uint64_t value)
{
    if (value == UINT32_MAX && argument != ARG_BYTES)
        return;
    put_varint(event, EVENT_ANNOTATION << 3 | BYTES);
    const uint32_t length = event->size++; /* the length is below 128, so one byte */
    put_number(event, ARGUMENT_NAME, argument + 1);
    put_number(event, ARGUMENT_UINT, value);
    event->bytes[length] = (unsigned char)(event->size - length - 1);
}

/* Writes the arguments of a task. The receiving end of a message omits them, as its arrow
 * identifies the task. */
static void put_arguments(const cs_drawn_run *run, uint32_t task, message *event)
{
    put_argument(event, ARG_TASK, task);
    put_argument(event, ARG_STAGE, run->tasks.is.stage[task]);
    put_argument(event, ARG_MINI_BATCH, run->tasks.is.mini_batch[task]);
    put_argument(event, ARG_MICRO_BATCH, run->tasks.is.micro_batch[task]);
    put_argument(event, cs_drawn_updates(run, task) ? ARG_MADE : ARG_READ,
                 run->tasks.version[task]);
}

/* Writes the arguments and the arrow of a message. The arrow's id is the task's number, counted
 * from 1. */
static void put_message_of(const cs_drawn_run *run, const cs_drawn_slice *s, message *event)
{
    const bool sends = s->side == CS_DRAWN_SENDS;
    put_argument(
        event, sends ? ARG_TO : ARG_FROM,
        cs_drawn_device(run, sends ? run->tasks.is.peer[s->task] : run->tasks.is.device[s->task]));
    put_argument(event, ARG_BYTES, (uint64_t)run->tasks.bytes[s->task]);
    put_fixed(event, sends ? EVENT_FLOW : EVENT_FLOW_END, s->task + 1ULL);
}

static void write_slice(writer *w, uint64_t device, const cs_drawn_slice *s)
{
    const cs_drawn_run *run = w->run;
    const uint32_t task = s->task;
    const uint32_t kind =
        s->side == CS_DRAWN_COMPUTES ? run->tasks.is.kind[task] : run->tasks.is.origin[task];
    const uint64_t track = track_of(w, device, s), name = name_of(w, track, task, kind);
    message event;
    event.size = 0;
    put_number(&event, EVENT_TYPE, TYPE_BEGIN);
    put_number(&event, EVENT_CATEGORY, kind + 1ULL);
    put_number(&event, EVENT_NAME, name);
    if (s->side != CS_DRAWN_RECEIVES)
        put_arguments(run, task, &event);
    if (s->side != CS_DRAWN_COMPUTES)
        put_message_of(run, s, &event);
    write_event(w, track, run->tasks.is.start[task], &event);
    event.size = 0;
    put_number(&event, EVENT_TYPE, TYPE_END);
    write_event(w, track, run->tasks.is.end[task], &event);
}

static void write_count(writer *w, uint64_t track, cs_time time, int64_t value)
{
    message event;
    event.size = 0;
    put_number(&event, EVENT_TYPE, TYPE_COUNTER);
    put_number(&event, EVENT_COUNTER, (uint64_t)value);
    write_event(w, track, time, &event);
}

static uint64_t lanes_of(const cs_drawn_row *d)
{
    return 1 + (uint64_t)d->sends + d->receives;
}

/* Sorts the slices of a device by track; within a track they stay in order of time. Similar slices
 * then follow each other, which compresses well. */
static void sort_slices(writer *w, uint64_t device)
{
    const cs_drawn_row *d = &w->run->rows[device];
    const cs_drawn_slice *slices = &w->run->slices[d->first];
    const uint64_t first = w->tracks[device] + 1, n = lanes_of(d);
    memset(w->places, 0, (n + 1) * sizeof(*w->places));
    for (uint64_t i = 0; i < d->n; i++)
        w->places[track_of(w, device, &slices[i]) - first + 1]++;
    for (uint64_t lane = 0; lane < n; lane++)
        w->places[lane + 1] += w->places[lane];
    for (uint64_t i = 0; i < d->n; i++)
        w->sorted[w->places[track_of(w, device, &slices[i]) - first]++] = slices[i];
}

static void write_device(writer *w, uint64_t device)
{
    const cs_drawn_row *d = &w->run->rows[device];
    write_tracks(w, device);
    for (uint64_t lane = 0; lane < lanes_of(d); lane++)
        write_words(w, w->tracks[device] + 1 + lane);
    sort_slices(w, device);
    for (uint64_t i = 0; i < d->n; i++)
        write_slice(w, device, &w->sorted[i]);
    if (w->run->memory.capacity[device] == INT64_MAX)
        return;
    write_count(w, capacity_of(w, device), 0, w->run->memory.capacity[device]);
    write_count(w, capacity_of(w, device), w->run->reader->makespan,
                w->run->memory.capacity[device]);
}

/* Assigns uuids to tracks and sets *n to the first unused one; allocates buffers for the device
 * that needs most. */
static bool number_tracks(writer *w, uint64_t *n)
{
    const cs_drawn_run *run = w->run;
    uint64_t uuid = 1, most = 0, lanes = 0;
    w->tracks = malloc((run->n_rows + 1) * sizeof(*w->tracks));
    for (uint64_t d = 0; d < run->n_rows && w->tracks; d++) {
        const cs_drawn_row *device = &run->rows[d];
        w->tracks[d] = uuid;
        uuid = capacity_of(w, d) + 1;
        most = device->n > most ? device->n : most;
        lanes = lanes_of(device) > lanes ? lanes_of(device) : lanes;
    }
    w->sorted = malloc((most + 1) * sizeof(*w->sorted));
    w->places = malloc((lanes + 1) * sizeof(*w->places));
    *n = uuid;
    return w->tracks && w->sorted && w->places;
}

static bool prepare(writer *w)
{
    const cs_drawn_run *run = w->run;
    uint64_t n = 0;
    for (uint64_t i = 0; i < run->tasks.is.n; i++) {
        const uint32_t number = cs_drawn_number(run, (uint32_t)i);
        w->n_numbers = number >= w->n_numbers && number < UINT32_MAX ? number + 1 : w->n_numbers;
    }
    w->n_numbers++; /* one more, for tasks without a number */
    w->named = calloc((size_t)w->n_numbers * run->tasks.is.n_kinds + 1, sizeof(*w->named));
    if (!w->named || !number_tracks(w, &n))
        return false;
    w->times = calloc(n, sizeof(*w->times));
    return w->times != NULL;
}

/* Writes the counters one after the other: similar samples then follow each other, which compresses
 * well. */
static void write_counters(writer *w)
{
    const cs_drawn_run *run = w->run;
    const cs_drawn_memory *memory = &run->memory;
    for (uint64_t row = 0; row < run->n_rows; row++)
        for (uint32_t c = 0; c < memory->n_categories; c++) {
            const cs_drawn_row *of = &run->rows[row];
            const bool held = memory->held[row * memory->n_categories + c];
            for (uint64_t i = of->first_sample; held && i < of->first_sample + of->n_samples; i++) {
                const uint64_t sample = memory->by_row[i];
                if (memory->category[sample] == c)
                    write_count(w, counter_of(w, row, c), memory->time[sample],
                                memory->bytes[sample]);
            }
        }
}

cs_status cs_viewer_write_proto(const cs_drawn_run *run, cs_viewer_out *out, cs_error *error)
{
    writer w = {.run = run, .out = out};
    bool done = prepare(&w);
    for (uint64_t device = 0; device < run->n_rows && done; device++)
        write_device(&w, device);
    if (done)
        write_counters(&w);
    free(w.named);
    free(w.tracks);
    free(w.times);
    free(w.sorted);
    free(w.places);
    return done ? CS_OK : cs_error_no_memory(error);
}

#include "plots/viewer-run.h"

#include <inttypes.h>
#include <stdlib.h>

/* The Trace Event Format (viewer.h). Threads of a device: 0 computes, from 1 on those that send,
 * then those that receive. */

enum { PS_PER_US = 1000000 };

typedef struct writer {
    const cs_viewer_run *run;
    cs_viewer_out *out;
    bool begun; /* an event was written */
} writer;

/* A text of the results file behind `key`. */
static void write_text(cs_viewer_out *out, const char *key, const char *text)
{
    cs_viewer_out_text(out, "%s\"", key);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at < ' ')
            cs_viewer_out_text(out, "\\u%04x", *at);
        else
            cs_viewer_out_text(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    }
    cs_viewer_out_text(out, "\"");
}

static void write_time(cs_viewer_out *out, const char *key, cs_time time)
{
    cs_viewer_out_text(out, ",\"%s\":%" PRId64 ".%06" PRId64, key, time / PS_PER_US,
                       time % PS_PER_US);
}

static void begin_event(writer *w, const char *phase, uint64_t device, uint32_t thread)
{
    cs_viewer_out_text(w->out, "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu32,
                       w->begun ? "," : "", phase, device, thread);
    w->begun = true;
}

/* A name of a process or a thread, and its place among the others. */
static void name_track(writer *w, const char *track, uint64_t device, uint32_t thread,
                       const char *name, uint64_t position)
{
    begin_event(w, "M", device, thread);
    cs_viewer_out_text(w->out, ",\"name\":\"%s_name\",\"args\":{\"name\":\"%s\"}}", track, name);
    begin_event(w, "M", device, thread);
    cs_viewer_out_text(w->out, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRIu64 "}}",
                       track, position);
}

static void write_argument(writer *w, const char *key, uint32_t value, const char **separator)
{
    if (value == UINT32_MAX)
        return;
    cs_viewer_out_text(w->out, "%s\"%s\":%" PRIu32, *separator, key, value);
    *separator = ",";
}

static uint32_t thread_of(const cs_viewer_device *device, const cs_viewer_slice *s)
{
    return s->side == CS_SLICE_COMPUTES ? 0
           : s->side == CS_SLICE_SENDS  ? 1u + s->lane
                                        : 1u + device->sends + s->lane;
}

/* An arrow leads from what is sent to what is received; both are bound to the slices around. */
static void write_flow(writer *w, uint64_t device, uint32_t thread, const cs_viewer_slice *s)
{
    begin_event(w, s->side == CS_SLICE_SENDS ? "s" : "f", device, thread);
    cs_viewer_out_text(w->out, ",\"cat\":\"message\",\"name\":\"message\",\"id\":%" PRIu32 "%s",
                       s->task, s->side == CS_SLICE_SENDS ? "" : ",\"bp\":\"e\"");
    write_time(w->out, "ts", w->run->tasks.start[s->task]);
    cs_viewer_out_text(w->out, "}");
}

/* Named as in pictures: by the micro-batch, what belongs to none by the mini-batch. */
static void write_slice(writer *w, uint64_t device, const cs_viewer_slice *s)
{
    const cs_viewer_run *run = w->run;
    const uint32_t task = s->task, thread = thread_of(&run->devices[device], s);
    const char *word = cs_viewer_word(run, task), *separator = "";
    char name[64];
    snprintf(name, sizeof(name), "%.40s %" PRIu32, word, cs_viewer_number(run, task));
    begin_event(w, "X", device, thread);
    write_text(w->out, ",\"cat\":", word);
    write_text(w->out, ",\"name\":", name);
    write_time(w->out, "ts", run->tasks.start[task]);
    write_time(w->out, "dur", run->tasks.end[task] - run->tasks.start[task]);
    cs_viewer_out_text(w->out, ",\"args\":{");
    write_argument(w, "task", task, &separator);
    write_argument(w, "stage", run->tasks.stage[task], &separator);
    write_argument(w, "mini_batch", run->tasks.mini_batch[task], &separator);
    write_argument(w, "micro_batch", run->tasks.micro_batch[task], &separator);
    write_argument(w, cs_viewer_updates(run, task) ? "version_made" : "version_read",
                   run->read[task], &separator);
    if (s->side != CS_SLICE_COMPUTES) {
        const bool sends = s->side == CS_SLICE_SENDS;
        write_argument(w, sends ? "to_device" : "from_device",
                       sends ? run->tasks.peer[task] : run->tasks.device[task], &separator);
        cs_viewer_out_text(w->out, "%s\"bytes\":%" PRId64, separator, run->bytes[task]);
    }
    cs_viewer_out_text(w->out, "}}");
    if (s->side != CS_SLICE_COMPUTES)
        write_flow(w, device, thread, s);
}

static void name_lanes(writer *w, uint64_t device, const char *what, uint32_t first, uint32_t n)
{
    char name[48];
    for (uint32_t lane = 0; lane < n; lane++) {
        snprintf(name, sizeof(name), n == 1 ? "%s" : "%s %" PRIu32, what, lane + 1);
        name_track(w, "thread", device, first + lane, name, first + lane);
    }
}

static void write_capacity(writer *w, uint64_t device, cs_time time)
{
    begin_event(w, "C", device, 0);
    cs_viewer_out_text(w->out, ",\"name\":\"memory capacity (bytes)\"");
    write_time(w->out, "ts", time);
    cs_viewer_out_text(w->out, ",\"args\":{\"capacity\":%" PRId64 "}}",
                       w->run->devices[device].capacity);
}

static void write_device(writer *w, uint64_t device)
{
    char name[48];
    const cs_viewer_device *d = &w->run->devices[device];
    snprintf(name, sizeof(name), "device %" PRIu64, device);
    name_track(w, "process", device, 0, name, device);
    name_track(w, "thread", device, 0, "compute", 0);
    for (uint64_t i = 0; i < d->n; i++)
        write_slice(w, device, &w->run->slices[d->first + i]);
    name_lanes(w, device, "sends", 1, d->sends);
    name_lanes(w, device, "receives", 1 + d->sends, d->receives);
    if (d->capacity == INT64_MAX)
        return;
    write_capacity(w, device, 0);
    write_capacity(w, device, w->run->reader->makespan);
}

/* All categories that the device ever has, so that viewers stack them. */
static void write_counter(writer *w, uint32_t device, cs_time time, const int64_t *live)
{
    const cs_viewer_run *run = w->run;
    const uint64_t first = device * (uint64_t)run->n_categories;
    const char *separator = "";
    begin_event(w, "C", device, 0);
    cs_viewer_out_text(w->out, ",\"name\":\"memory (bytes)\"");
    write_time(w->out, "ts", time);
    cs_viewer_out_text(w->out, ",\"args\":{");
    for (uint32_t i = 0; i < run->n_categories; i++) {
        if (!run->held[first + i])
            continue;
        write_text(w->out, separator, run->categories[i]);
        cs_viewer_out_text(w->out, ":%" PRId64, live[first + i]);
        separator = ",";
    }
    cs_viewer_out_text(w->out, "}}");
}

/* Samples of one instant and device follow each other, and become one event. */
static void write_memory(writer *w, int64_t *live)
{
    const cs_viewer_run *run = w->run;
    for (uint64_t i = 0; i < run->n_samples; i++) {
        const uint32_t device = run->memory_device[i];
        live[device * (uint64_t)run->n_categories + run->category[i]] = run->memory_bytes[i];
        if (i + 1 == run->n_samples || run->memory_device[i + 1] != device ||
            run->memory_time[i + 1] != run->memory_time[i])
            write_counter(w, device, run->memory_time[i], live);
    }
}

cs_status cs_viewer_write_json(const cs_viewer_run *run, cs_viewer_out *out, cs_error *error)
{
    writer w = {.run = run, .out = out};
    int64_t *live = calloc((size_t)(run->n_devices * run->n_categories) + 1, sizeof(*live));
    const struct {
        const char *key, *value;
    } about[] = {{"\"name\":", run->reader->name},
                 {",\"topology\":", run->reader->topology},
                 {",\"schedule\":", run->reader->schedule}};
    if (!live)
        return cs_error_no_memory(error);
    cs_viewer_out_text(out, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{");
    for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++)
        write_text(out, about[i].key, about[i].value ? about[i].value : "");
    cs_viewer_out_text(out, "},\n\"traceEvents\":[");
    for (uint64_t device = 0; device < run->n_devices; device++)
        write_device(&w, device);
    write_memory(&w, live);
    cs_viewer_out_text(out, "\n]}\n");
    free(live);
    return CS_OK;
}

#include "plots/viewer-out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the Trace Event Format (viewer.h). Thread 0 of a device computes; the next threads are its
 * lanes of sends, followed by its lanes of receives. */

enum { PS_PER_US = 1000000, US_DIGITS = 6, LINE = 1 << 16, SHORT = 64, DIGITS = 20 };

/* A text of the results file, escaped for JSON. */
typedef struct word {
    char *text;
    size_t n; /* length of the text */
} word;

/* Buffers the output. A run has millions of events of about twenty pieces each; printf would parse
 * a format for every piece. The buffer always has room for SHORT more bytes. */
typedef struct writer {
    const cs_drawn_run *run;
    cs_viewer_out *out;
    word *kinds, *names; /* names: the kinds, cut to the length that fits into names of slices */
    word *categories;
    bool begun; /* an event has been written */
    size_t used;
    char line[LINE];
} writer;

static void flush(writer *w)
{
    cs_viewer_out_bytes(w->out, w->line, w->used);
    w->used = 0;
}

/* Advances by n <= SHORT bytes, already stored after the used part of the buffer. */
static inline void add(writer *w, size_t n)
{
    w->used += n;
    if (w->used > LINE - SHORT)
        flush(w);
}

/* Writes a literal. Its length is known to the compiler, so the copy is a few moves. */
#define PUT(w, literal)                                                                            \
    do {                                                                                           \
        _Static_assert(sizeof(literal) <= SHORT, "too long");                                      \
        memcpy((w)->line + (w)->used, literal, sizeof(literal) - 1);                               \
        add(w, sizeof(literal) - 1);                                                               \
    } while (0)

static void put_long(writer *w, const char *bytes, size_t n)
{
    flush(w);
    cs_viewer_out_bytes(w->out, bytes, n);
}

static inline void put_word(writer *w, const word *of)
{
    if (of->n > SHORT) {
        put_long(w, of->text, of->n);
        return;
    }
    memcpy(w->line + w->used, of->text, of->n);
    add(w, of->n);
}

static void put(writer *w, const char *text)
{
    put_word(w, &(word){(char *)text, strlen(text)});
}

/* The numbers 00 to 99. */
static const char pairs[] = "0001020304050607080910111213141516171819"
                            "2021222324252627282930313233343536373839"
                            "4041424344454647484950515253545556575859"
                            "6061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

/* Writes the digits of a value so that they end before `end`. Returns their start. */
static inline char *write_digits(char *end, uint64_t value)
{
    for (; value >= 100; value /= 100)
        memcpy(end -= 2, pairs + 2 * (value % 100), 2);
    if (value >= 10)
        memcpy(end -= 2, pairs + 2 * value, 2);
    else
        *--end = (char)('0' + value);
    return end;
}

/* Always copies DIGITS bytes, which is faster than a variable length; later output overwrites the
 * excess. */
static inline void put_unsigned(writer *w, uint64_t value)
{
    char digits[2 * DIGITS] = {0};
    if (value < 10) {
        w->line[w->used] = (char)('0' + value);
        add(w, 1);
        return;
    }
    const char *from = write_digits(digits + DIGITS, value);
    memcpy(w->line + w->used, from, DIGITS);
    add(w, (size_t)(digits + DIGITS - from));
}

static inline void put_signed(writer *w, int64_t value)
{
    if (value < 0)
        PUT(w, "-");
    put_unsigned(w, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Escapes the first `most` bytes of a text for use in a JSON string. Returns allocated memory; NULL
 * if memory runs out. */
static char *escape(const char *text, size_t most)
{
    enum { LONGEST = 6 };
    const size_t length = strlen(text), n = length < most ? length : most;
    char *made = malloc(LONGEST * n + 1), *at = made;
    for (size_t i = 0; made && i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < ' ')
            at += snprintf(at, LONGEST + 1, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            at += snprintf(at, LONGEST + 1, "\\%c", c);
        else
            *at++ = (char)c;
    }
    if (made)
        *at = '\0';
    return made;
}

/* Writes a time in microseconds, with all decimals. */
static inline void put_time(writer *w, cs_time time)
{
    const uint64_t size = time < 0 ? -(uint64_t)time : (uint64_t)time;
    const uint32_t rest = (uint32_t)(size % PS_PER_US);
    char point[1 + US_DIGITS] = {'.'};
    memcpy(point + 1, pairs + 2 * (rest / 10000), 2);
    memcpy(point + 3, pairs + 2 * (rest / 100 % 100), 2);
    memcpy(point + 5, pairs + 2 * (rest % 100), 2);
    if (time < 0)
        PUT(w, "-");
    put_unsigned(w, size / PS_PER_US);
    memcpy(w->line + w->used, point, sizeof(point));
    add(w, sizeof(point));
}

static inline void begin_event(writer *w, char phase, uint64_t device, uint32_t thread)
{
    if (w->begun)
        PUT(w, ",");
    PUT(w, "\n{\"ph\":\"");
    w->line[w->used] = phase;
    add(w, 1);
    PUT(w, "\",\"pid\":");
    put_unsigned(w, w->run->rows[device].device);
    PUT(w, ",\"tid\":");
    put_unsigned(w, thread);
    w->begun = true;
}

/* Writes the name of a process or a thread, and its position among the others. */
static void name_track(writer *w, const char *track, uint64_t device, uint32_t thread,
                       const char *name, uint64_t position)
{
    begin_event(w, 'M', device, thread);
    PUT(w, ",\"name\":\"");
    put(w, track);
    PUT(w, "_name\",\"args\":{\"name\":\"");
    put(w, name);
    PUT(w, "\"}}");
    begin_event(w, 'M', device, thread);
    PUT(w, ",\"name\":\"");
    put(w, track);
    PUT(w, "_sort_index\",\"args\":{\"sort_index\":");
    put_unsigned(w, position);
    PUT(w, "}}");
}

/* Writes an argument unless the task lacks it (UINT32_MAX). */
#define PUT_ARGUMENT(w, key, value)                                                                \
    do {                                                                                           \
        if ((value) != UINT32_MAX) {                                                               \
            PUT(w, ",\"" key "\":");                                                               \
            put_unsigned(w, value);                                                                \
        }                                                                                          \
    } while (0)

static uint32_t thread_of(const cs_drawn_row *device, const cs_drawn_slice *s)
{
    return s->side == CS_DRAWN_COMPUTES ? 0
           : s->side == CS_DRAWN_SENDS  ? 1u + s->lane
                                        : 1u + device->sends + s->lane;
}

/* Writes one end of the arrow from the send to the receive of a message; viewers attach it to the
 * enclosing slice. */
static void write_flow(writer *w, uint64_t device, uint32_t thread, const cs_drawn_slice *s)
{
    begin_event(w, s->side == CS_DRAWN_SENDS ? 's' : 'f', device, thread);
    PUT(w, ",\"cat\":\"message\",\"name\":\"message\",\"id\":");
    put_unsigned(w, s->task);
    if (s->side != CS_DRAWN_SENDS)
        PUT(w, ",\"bp\":\"e\"");
    PUT(w, ",\"ts\":");
    put_time(w, w->run->tasks.is.start[s->task]);
    PUT(w, "}");
}

/* Writes a slice, named as in pictures: by the micro-batch, or by the mini-batch if it belongs to
 * no micro-batch. */
static void write_slice(writer *w, uint64_t device, const cs_drawn_slice *s)
{
    const cs_drawn_run *run = w->run;
    const uint32_t task = s->task, thread = thread_of(&run->rows[device], s);
    const uint32_t named =
        s->side == CS_DRAWN_COMPUTES ? run->tasks.is.kind[task] : run->tasks.is.origin[task];
    begin_event(w, 'X', device, thread);
    PUT(w, ",\"cat\":\"");
    put_word(w, &w->kinds[named]);
    PUT(w, "\",\"name\":\"");
    put_word(w, &w->names[named]);
    PUT(w, " ");
    put_unsigned(w, cs_drawn_number(run, task));
    PUT(w, "\",\"ts\":");
    put_time(w, run->tasks.is.start[task]);
    PUT(w, ",\"dur\":");
    put_time(w, run->tasks.is.end[task] - run->tasks.is.start[task]);
    PUT(w, ",\"args\":{\"task\":");
    put_unsigned(w, task);
    PUT_ARGUMENT(w, "stage", run->tasks.is.stage[task]);
    PUT_ARGUMENT(w, "mini_batch", run->tasks.is.mini_batch[task]);
    PUT_ARGUMENT(w, "micro_batch", run->tasks.is.micro_batch[task]);
    if (cs_drawn_updates(run, task))
        PUT_ARGUMENT(w, "version_made", run->tasks.version[task]);
    else
        PUT_ARGUMENT(w, "version_read", run->tasks.version[task]);
    if (s->side == CS_DRAWN_SENDS)
        PUT_ARGUMENT(w, "to_device", cs_drawn_device(run, run->tasks.is.peer[task]));
    else if (s->side == CS_DRAWN_RECEIVES)
        PUT_ARGUMENT(w, "from_device", cs_drawn_device(run, run->tasks.is.device[task]));
    if (s->side != CS_DRAWN_COMPUTES) {
        PUT(w, ",\"bytes\":");
        put_signed(w, run->tasks.bytes[task]);
    }
    PUT(w, "}}");
    if (s->side != CS_DRAWN_COMPUTES)
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
    begin_event(w, 'C', device, 0);
    PUT(w, ",\"name\":\"memory capacity (bytes)\",\"ts\":");
    put_time(w, time);
    PUT(w, ",\"args\":{\"capacity\":");
    put_signed(w, w->run->memory.capacity[device]);
    PUT(w, "}}");
}

static void write_device(writer *w, uint64_t device)
{
    char name[48];
    const cs_drawn_row *d = &w->run->rows[device];
    cs_drawn_row_name(w->run, device, name, sizeof(name));
    name_track(w, "process", device, 0, name, device);
    name_track(w, "thread", device, 0, "compute", 0);
    for (uint64_t i = 0; i < d->n; i++)
        write_slice(w, device, &w->run->slices[d->first + i]);
    name_lanes(w, device, "sends", 1, d->sends);
    name_lanes(w, device, "receives", 1 + d->sends, d->receives);
    if (w->run->memory.capacity[device] == INT64_MAX)
        return;
    write_capacity(w, device, 0);
    write_capacity(w, device, w->run->reader->makespan);
}

/* Writes a memory sample with all categories that the device ever uses, so that viewers stack
 * them. */
static void write_counter(writer *w, uint32_t device, cs_time time, const int64_t *live)
{
    const cs_drawn_run *run = w->run;
    const uint64_t first = device * (uint64_t)run->memory.n_categories;
    bool begun = false;
    begin_event(w, 'C', device, 0);
    PUT(w, ",\"name\":\"memory (bytes)\",\"ts\":");
    put_time(w, time);
    PUT(w, ",\"args\":{");
    for (uint32_t i = 0; i < run->memory.n_categories; i++) {
        if (!run->memory.held[first + i])
            continue;
        if (begun)
            PUT(w, ",");
        PUT(w, "\"");
        put_word(w, &w->categories[i]);
        PUT(w, "\":");
        put_signed(w, live[first + i]);
        begun = true;
    }
    PUT(w, "}}");
}

/* Writes the memory samples. Samples of the same time and device, which are consecutive, are merged
 * into one event. */
static void write_memory(writer *w, int64_t *live)
{
    const cs_drawn_run *run = w->run;
    for (uint64_t i = 0; i < run->memory.n; i++) {
        const uint32_t device = run->memory.row[i];
        live[device * (uint64_t)run->memory.n_categories + run->memory.category[i]] =
            run->memory.bytes[i];
        if (i + 1 == run->memory.n || run->memory.row[i + 1] != device ||
            run->memory.time[i + 1] != run->memory.time[i])
            write_counter(w, device, run->memory.time[i], live);
    }
}

static void free_words(word *words, uint32_t n)
{
    for (uint32_t i = 0; words && i < n; i++)
        free(words[i].text);
    free(words);
}

/* Escapes n words. NULL if memory runs out. */
static word *escape_all(const char *const *words, uint32_t n, size_t most)
{
    word *made = calloc((size_t)n + 1, sizeof(*made));
    bool done = made;
    for (uint32_t i = 0; i < n && done; i++) {
        made[i].text = escape(words[i], most);
        done = made[i].text;
        made[i].n = done ? strlen(made[i].text) : 0;
    }
    if (done)
        return made;
    free_words(made, n);
    return NULL;
}

static bool write_about(writer *w, const char *key, const char *text)
{
    char *value = escape(text ? text : "", SIZE_MAX);
    put(w, key);
    put(w, value ? value : "");
    PUT(w, "\"");
    free(value);
    return value;
}

static bool write_all(writer *w)
{
    const cs_drawn_run *run = w->run;
    const cs_reader *reader = run->reader;
    int64_t *live = calloc((size_t)(run->n_rows * run->memory.n_categories) + 1, sizeof(*live));
    PUT(w, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{");
    const bool done = live && write_about(w, "\"name\":\"", reader->name) &&
                      write_about(w, ",\"topology\":\"", reader->topology) &&
                      write_about(w, ",\"schedule\":\"", reader->schedule);
    PUT(w, "},\n\"traceEvents\":[");
    for (uint64_t device = 0; device < run->n_rows && done; device++)
        write_device(w, device);
    if (done)
        write_memory(w, live);
    PUT(w, "\n]}\n");
    flush(w);
    free(live);
    return done;
}

cs_status cs_viewer_write_json(const cs_drawn_run *run, cs_viewer_out *out, cs_error *error)
{
    enum { NAME_BYTES = 40 };
    const cs_reader_tasks *tasks = &run->tasks.is;
    writer *w = malloc(sizeof(*w));
    if (!w)
        return cs_error_no_memory(error);
    w->run = run;
    w->out = out;
    w->begun = false;
    w->used = 0;
    w->kinds = escape_all(tasks->kinds, tasks->n_kinds, SIZE_MAX);
    w->names = escape_all(tasks->kinds, tasks->n_kinds, NAME_BYTES);
    w->categories = escape_all(run->memory.categories, run->memory.n_categories, SIZE_MAX);
    const bool done = w->kinds && w->names && w->categories && write_all(w);
    free_words(w->kinds, tasks->n_kinds);
    free_words(w->names, tasks->n_kinds);
    free_words(w->categories, run->memory.n_categories);
    free(w);
    return done ? CS_OK : cs_error_no_memory(error);
}

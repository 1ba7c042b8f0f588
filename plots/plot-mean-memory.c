#include "plots/drawn-run.h"
#include "plots/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Draws mean live memory per device over time: for one run, its categories stacked; for several
 * runs, one line each. Thin lines show the fullest device at each time. */

enum { MAX_CATEGORIES = 16, HEIGHT = 210, MARK_EVERY = 70 };

/* Memory from `time` on, until the next level. */
typedef struct level {
    cs_time time;
    /* mean bytes per category; for several runs, the total in the first element */
    double of[MAX_CATEGORIES];
    double fullest; /* bytes on the fullest device */
} level;

typedef struct run_memory {
    cs_drawn_run drawn;
    double all;     /* number of devices */
    int64_t *live;  /* bytes, per device and category */
    double *totals; /* bytes, per device */
    uint32_t fullest;
    bool fullest_is_known;
} run_memory;

typedef struct mean_memory {
    cs_sheet *sheet;
    run_memory runs[CS_PLOT_INPUTS_MAX];
    const char *const *categories;
    uint32_t n_categories, n_layers; /* n_layers: n_categories for one run, otherwise 1 */
    bool used[MAX_CATEGORIES];
    double most, capacity; /* bytes; capacity 0: no limit is drawn */
    double time_unit;
    const cs_byte_unit *unit;
} mean_memory;

static const uint32_t colours[CS_PLOT_INPUTS_MAX] = {0x0072B2, 0xE69F00, 0x009E73, 0xD55E00,
                                                     0x56B4E9, 0xCC79A7, 0x101010, 0x808080};

/* gnuplot's point types, one per run, shown on the lines. */
static const int points[CS_PLOT_INPUTS_MAX] = {7, 5, 9, 13, 11, 15, 6, 4};

/* ---- reading ---- */

static cs_status read_run(mean_memory *m, uint32_t r, cs_error *error)
{
    run_memory *run = &m->runs[r];
    CS_TRY(cs_drawn_run_read(m->sheet->readers[r], CS_DRAWN_MEMORY, &run->drawn, error));
    CS_TRY(cs_drawn_run_need_memory(&run->drawn, MAX_CATEGORIES, error));
    const cs_drawn_memory *memory = &run->drawn.memory;
    if (!m->categories || memory->n_categories > m->n_categories) {
        m->categories = memory->categories;
        m->n_categories = memory->n_categories;
    }
    for (uint64_t d = 0; d < run->drawn.n_rows; d++)
        run->all += run->drawn.rows[d].stands_for;
    run->totals = calloc(run->drawn.n_rows + 1, sizeof(*run->totals));
    run->live = calloc((run->drawn.n_rows + 1) * MAX_CATEGORIES, sizeof(*run->live));
    return run->totals && run->live ? CS_OK : cs_error_no_memory(error);
}

/* ---- levels ---- */

typedef void each_level(mean_memory *m, uint32_t run, const level *at, void *data);

/* Finds the memory of the fullest device; searches all devices only if the previously fullest one
 * has freed memory. */
static void find_fullest(run_memory *run, level *at)
{
    if (run->fullest_is_known) {
        at->fullest = run->totals[run->fullest];
        return;
    }
    run->fullest = 0;
    for (uint32_t d = 1; d < run->drawn.n_rows; d++)
        if (run->totals[d] > run->totals[run->fullest])
            run->fullest = d;
    run->fullest_is_known = true;
    at->fullest = run->totals[run->fullest];
}

static void change_total(run_memory *run, uint32_t device, double change)
{
    run->totals[device] += change;
    if (device == run->fullest && change < 0)
        run->fullest_is_known = false;
    else if (run->fullest_is_known && run->totals[device] > run->totals[run->fullest])
        run->fullest = device;
}

/* Calls `each` for every level in the time range shown. Samples before the range count at its
 * start. */
static void walk(mean_memory *m, uint32_t r, each_level *each, void *data)
{
    run_memory *run = &m->runs[r];
    const cs_drawn_memory *samples = &run->drawn.memory;
    level at = {.time = m->sheet->from};
    run->fullest_is_known = false;
    memset(run->live, 0, (run->drawn.n_rows + 1) * MAX_CATEGORIES * sizeof(*run->live));
    memset(run->totals, 0, (run->drawn.n_rows + 1) * sizeof(*run->totals));
    for (uint64_t i = 0; i < samples->n && samples->time[i] < m->sheet->until; i++) {
        const uint32_t device = samples->row[i], category = samples->category[i];
        if (samples->time[i] > at.time) {
            find_fullest(run, &at);
            each(m, r, &at, data);
            at.time = samples->time[i];
        }
        if (device >= run->drawn.n_rows)
            continue;
        int64_t *live = &run->live[(size_t)device * MAX_CATEGORIES + category];
        const double change = (double)samples->bytes[i] - (double)*live;
        *live = samples->bytes[i];
        change_total(run, device, change);
        at.of[m->n_layers > 1 ? category : 0] +=
            change * run->drawn.rows[device].stands_for / run->all;
    }
    find_fullest(run, &at);
    each(m, r, &at, data);
}

static double total_of(const mean_memory *m, const level *at)
{
    double sum = 0;
    for (uint32_t c = 0; c < m->n_layers; c++)
        sum += at->of[c];
    return sum;
}

static void note_most(mean_memory *m, uint32_t run, const level *at, void *data)
{
    (void)run;
    (void)data;
    m->most = fmax(m->most, at->fullest);
    for (uint32_t c = 0; c < m->n_layers; c++)
        m->used[c] = m->used[c] || at->of[c] > 0.5;
}

/* ---- data ---- */

typedef struct files {
    FILE *layers[MAX_CATEGORIES], *fullest, *marks;
    double next_mark; /* in units from the left */
    /* bytes written last, per layer; the last element is for the fullest device */
    double last[MAX_CATEGORIES + 1];
    double place; /* position of the level written last, in units; < 0: none */
} files;

static void write_step(const mean_memory *m, FILE *out, cs_time time, double before, double bytes)
{
    const double at = (double)time / m->time_unit;
    if (time > m->sheet->from)
        fprintf(out, "%.15g %.9g\n", at, before / m->unit->bytes);
    fprintf(out, "%.15g %.9g\n", at, bytes / m->unit->bytes);
}

/* Writes marks on the lines of runs, so that they can be distinguished not only by colour. */
static void write_marks(const mean_memory *m, uint32_t run, files *f, double until)
{
    const cs_sheet *sheet = m->sheet;
    const double width = sheet->width - sheet->left - sheet->right;
    const double unit = (double)(sheet->until - sheet->from) / width;
    for (; f->next_mark < until && m->n_layers == 1; f->next_mark += MARK_EVERY)
        fprintf(f->marks, "%.15g %.9g %d %u\n",
                ((double)sheet->from + f->next_mark * unit) / m->time_unit,
                f->last[0] / m->unit->bytes, points[run], colours[run]);
}

/* Whether a level has to be written. Levels within a quarter of a unit of the last one would be
 * indistinguishable from it, so they are skipped unless they change much. */
static bool is_seen(const mean_memory *m, const files *f, double place, double total,
                    double fullest)
{
    const double much = m->most / 300;
    return place - f->place >= 0.25 || fabs(total - f->last[m->n_layers - 1]) > much ||
           fabs(fullest - f->last[MAX_CATEGORIES]) > much;
}

static void write_level(mean_memory *m, uint32_t run, const level *at, void *data)
{
    files *f = data;
    const cs_sheet *sheet = m->sheet;
    const double scale =
        (sheet->width - sheet->left - sheet->right) / (double)(sheet->until - sheet->from);
    const double place = (double)(at->time - sheet->from) * scale;
    double sum = 0;
    if (!is_seen(m, f, place, total_of(m, at), at->fullest))
        return;
    if (f->place >= 0)
        write_marks(m, run, f, place);
    for (uint32_t c = 0; c < m->n_layers; c++) {
        sum += at->of[c];
        if (f->layers[c])
            write_step(m, f->layers[c], at->time, f->last[c], sum);
        f->last[c] = sum;
    }
    write_step(m, f->fullest, at->time, f->last[MAX_CATEGORIES], at->fullest);
    f->last[MAX_CATEGORIES] = at->fullest;
    f->place = place;
}

static void write_ends(const mean_memory *m, uint32_t run, files *f)
{
    write_marks(m, run, f, m->sheet->width - m->sheet->left - m->sheet->right);
    for (uint32_t c = 0; c < m->n_layers; c++)
        if (f->layers[c])
            write_step(m, f->layers[c], m->sheet->until, f->last[c], f->last[c]);
    write_step(m, f->fullest, m->sheet->until, f->last[MAX_CATEGORIES], f->last[MAX_CATEGORIES]);
}

static void write_run(mean_memory *m, uint32_t run, uint32_t *n_layers)
{
    cs_gnuplot *job = m->sheet->job;
    files f = {.place = -1, .next_mark = MARK_EVERY * (run + 1.) / (m->sheet->n_readers + 1.)};
    char name[32];
    for (uint32_t c = 0; c < m->n_layers; c++) {
        if (!m->used[c])
            continue;
        snprintf(name, sizeof(name), "mean-%u.dat", ++*n_layers);
        f.layers[c] = cs_gnuplot_file(job, name);
    }
    snprintf(name, sizeof(name), "fullest-%u.dat", run + 1);
    f.fullest = cs_gnuplot_file(job, name);
    snprintf(name, sizeof(name), "marks-%u.dat", run + 1);
    f.marks = cs_gnuplot_file(job, name);
    walk(m, run, write_level, &f);
    write_ends(m, run, &f);
}

/* ---- the picture ---- */

/* Chooses the unit, and whether to draw the capacity: a capacity far above all memory would flatten
 * the curves. */
static void choose_scale(mean_memory *m)
{
    int64_t least = INT64_MAX;
    for (uint32_t r = 0; r < m->sheet->n_readers; r++)
        for (uint64_t d = 0; d < m->runs[r].drawn.n_rows; d++)
            least = m->runs[r].drawn.memory.capacity[d] < least
                        ? m->runs[r].drawn.memory.capacity[d]
                        : least;
    m->unit = cs_byte_unit_of(m->most);
    m->capacity = (double)least <= 2 * m->most ? (double)least : 0;
}

static uint32_t layer_colour(const mean_memory *m, uint32_t layer)
{
    return m->sheet->n_readers > 1 ? colours[layer] : cs_style_of(m->categories[layer])->colour;
}

static void write_legend(const mean_memory *m)
{
    cs_legend_entry entries[MAX_CATEGORIES + CS_PLOT_INPUTS_MAX + 3];
    char names[CS_PLOT_INPUTS_MAX][128];
    uint32_t n = 0;
    for (uint32_t c = 0; c < m->n_categories && m->n_layers > 1; c++)
        if (m->used[c])
            entries[n++] =
                (cs_legend_entry){m->categories[c], layer_colour(m, c), layer_colour(m, c)};
    for (uint32_t r = 0; r < m->sheet->n_readers && m->n_layers == 1; r++)
        entries[n++] =
            (cs_legend_entry){.text = cs_sheet_run_name(m->sheet, r, names[r], sizeof(names[r])),
                              .colour = colours[r],
                              .other = colours[r],
                              .exact = true,
                              .sign = (cs_sheet_sign)(CS_SIGN_POINT + points[r])};
    entries[n++] = (cs_legend_entry){.text = "thin line: fullest device"};
    if (m->capacity > 0)
        entries[n++] =
            (cs_legend_entry){"capacity", CS_COLOUR_TEXT, CS_COLOUR_TEXT, true, CS_SIGN_LINE};
    cs_sheet_legend(m->sheet, entries, n);
}

static void write_parameters(mean_memory *m, uint32_t n_layers)
{
    cs_sheet *sheet = m->sheet;
    char list[MAX_CATEGORIES * 12] = "", name[64];
    size_t used = 0;
    for (uint32_t c = 0; c < (m->n_layers > 1 ? m->n_layers : sheet->n_readers); c++)
        if (m->n_layers == 1 || m->used[c])
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%u ", layer_colour(m, c));
    const double highest = 1.08 * fmax(m->most, m->capacity) / m->unit->bytes;
    cs_gnuplot_number(sheet->job, "from", (double)sheet->from / m->time_unit);
    cs_gnuplot_number(sheet->job, "until", (double)sheet->until / m->time_unit);
    cs_gnuplot_number(sheet->job, "highest", highest);
    cs_gnuplot_number(sheet->job, "step",
                      cs_sheet_tick_step(highest, sheet->height - sheet->top - sheet->bottom));
    cs_gnuplot_number(sheet->job, "capacity", m->capacity / m->unit->bytes);
    cs_gnuplot_number(sheet->job, "n_layers", n_layers);
    cs_gnuplot_number(sheet->job, "n_runs", sheet->n_readers);
    cs_gnuplot_number(sheet->job, "stacked", m->n_layers > 1);
    cs_gnuplot_text(sheet->job, "colours", list);
    snprintf(name, sizeof(name), "mean memory of a device (%s)", m->unit->name);
    cs_sheet_time_axis(sheet, name);
}

static cs_status prepare(mean_memory *m, cs_error *error)
{
    cs_sheet *sheet = m->sheet;
    uint32_t n_layers = 0;
    for (uint32_t r = 0; r < sheet->n_readers; r++)
        CS_TRY(read_run(m, r, error));
    m->n_layers = sheet->n_readers > 1 ? 1 : m->n_categories;
    for (uint32_t r = 0; r < sheet->n_readers; r++)
        walk(m, r, note_most, NULL);
    m->most = fmax(m->most, 1);
    m->time_unit = cs_sheet_time_unit(sheet);
    choose_scale(m);
    cs_sheet_run_title(sheet);
    write_legend(m);
    if (sheet->height == 0)
        sheet->height = ceil(sheet->top + HEIGHT + sheet->bottom);
    for (uint32_t r = 0; r < sheet->n_readers; r++)
        write_run(m, r, &n_layers);
    write_parameters(m, n_layers);
    return CS_OK;
}

cs_status cs_plot_mean_memory(cs_sheet *sheet, const char *output, cs_error *error)
{
    mean_memory m = {.sheet = sheet};
    const cs_status status = prepare(&m, error);
    for (uint32_t r = 0; r < sheet->n_readers; r++) {
        cs_drawn_run_finish(&m.runs[r].drawn);
        free(m.runs[r].totals);
        free(m.runs[r].live);
    }
    return status == CS_OK ? cs_sheet_draw(sheet, output, "mean-memory.gp", error) : status;
}

#include "sim/run/print/report.h"

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/model/op-shape.h"
#include "sim/run/figures.h"
#include "sim/run/print/capacity.h"
#include "sim/run/print/mesh-report.h"
#include "sim/run/print/origins-report.h"
#include "sim/run/print/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { DIGITS = 4, DEVICE_ROWS = 16 };

typedef cs_units_value text;

static text time_text(double picoseconds)
{
    return cs_units_text(picoseconds / (double)CS_PS_PER_SEC, CS_QUANTITY_TIME, DIGITS);
}

static text bytes_text(double bytes)
{
    return cs_units_text(bytes, CS_QUANTITY_BYTES, DIGITS);
}

static text number_text(double value, const char *format)
{
    text out;
    snprintf(out.s, sizeof(out.s), format, value);
    return out;
}

/* ---- metrics ---- */

static text figure_text(cs_figure figure, double value)
{
    switch (figure) {
    case CS_FIGURE_MAKESPAN:
    case CS_FIGURE_ITERATION_TIME:
    case CS_FIGURE_EPOCH_TIME:
        return time_text(value);
    case CS_FIGURE_PEAK_VERSIONS:
    case CS_FIGURE_VERSION_DIFFERENCE:
        return number_text(value, "%.0f");
    case CS_FIGURE_PEAK_ACTIVATIONS:
    case CS_FIGURE_PEAK_MEMORY:
        return bytes_text(value);
    case CS_FIGURE_BUBBLE:
    case CS_FIGURE_PIPELINE_BUBBLE:
    case CS_N_FIGURES:
        break;
    }
    return number_text(100 * value, "%.4g %%");
}

static bool equal(cs_figure figure, double simulated, double closed)
{
    /* Makespans, bytes and counts are exact integers. Other metrics are quotients, whose last
     * digits depend on rounding. */
    const bool is_quotient = cs_figure_is_fraction(figure) || figure == CS_FIGURE_ITERATION_TIME ||
                             figure == CS_FIGURE_EPOCH_TIME;
    return fabs(simulated - closed) <= (is_quotient ? 1e-12 : 0) * fabs(closed);
}

/* Formats the simulated value relative to the closed form. */
static text comparison_text(cs_figure figure, double simulated, double closed)
{
    if (isnan(simulated))
        return number_text(0, "-");
    double difference = simulated - closed;
    if (equal(figure, simulated, closed))
        return number_text(0, "equal");
    if (cs_figure_is_fraction(figure))
        return number_text(100 * fabs(difference),
                           difference > 0 ? "+%.3g points" : "-%.3g points");
    if (closed <= 0)
        return number_text(0, "more");
    return number_text(100 * fabs(difference) / closed, difference > 0 ? "+%.3g %%" : "-%.3g %%");
}

enum { VALUE_COLUMN = 19, COMPARISON_COLUMN = 32, FORMULA_COLUMN = 50 };

static void print_figure(const char *label, const char *value, FILE *out)
{
    fprintf(out, "%-*s%s\n", VALUE_COLUMN, label, value);
}

/* How a closed form relates to the simulation. */
static const char *standing(const cs_form *form, bool is_known, bool is_equal)
{
    if (!form->applies)
        return "NOT MET HERE:";
    if (form->comparison || !is_known)
        return "stated for";
    return is_equal ? "holds for" : "PROMISED FOR:";
}

/* Prints all closed forms for a metric of the whole run. */
static void print_forms(const cs_simulation *simulation, const char *key, FILE *out)
{
    for (uint32_t f = 0; f < simulation->forms.n && !simulation->trace.stopped; f++) {
        const cs_form *form = &simulation->forms.forms[f];
        if (form->device == CS_NONE && strcmp(cs_figure_key(form->figure), key) == 0) {
            double simulated = cs_simulation_figure(simulation, form), closed = cs_form_value(form);
            fprintf(out, "%-*s%-*s%-*s ", VALUE_COLUMN, "  closed form",
                    COMPARISON_COLUMN - VALUE_COLUMN, figure_text(form->figure, closed).s,
                    FORMULA_COLUMN - COMPARISON_COLUMN - 1,
                    comparison_text(form->figure, simulated, closed).s);
            cs_wrap(out, FORMULA_COLUMN, FORMULA_COLUMN, CS_WRAP_REPORT, form->formula);
            fprintf(out, "%*s%-*s", COMPARISON_COLUMN, "", FORMULA_COLUMN - COMPARISON_COLUMN,
                    standing(form, !isnan(simulated), equal(form->figure, simulated, closed)));
            cs_wrap(out, FORMULA_COLUMN, FORMULA_COLUMN, CS_WRAP_REPORT, form->assumes);
        }
    }
}

/* Prints the sources of all formulas, each once. */
static void print_sources(const cs_forms *forms, FILE *out)
{
    char line[1024];
    size_t end = (size_t)snprintf(line, sizeof(line), "formulas:");
    for (uint32_t f = 0; f < forms->n && end < sizeof(line); f++) {
        bool known = false;
        for (uint32_t i = 0; i < f && !known; i++)
            known = strcmp(forms->forms[i].source, forms->forms[f].source) == 0;
        if (!known)
            end += (size_t)snprintf(line + end, sizeof(line) - end, "%s %s", f > 0 ? ";" : "",
                                    forms->forms[f].source);
    }
    fputc('\n', out);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}

/* Appends ", 36 % of a100's peak in bf16" to the line. */
static void add_value(char *line, size_t size, const cs_run_figure *figure,
                      const cs_outcome *outcome)
{
    const double value = figure->get(outcome);
    const size_t end = strlen(line);
    char number[CS_UNIT_TEXT_BYTES], detail[128] = "";
    if (isnan(value))
        return;
    snprintf(line + end, size - end, "%s%s%s", *line ? ", " : "",
             cs_unit_format(figure->unit, value, number, sizeof(number)),
             figure->detail ? figure->detail(outcome, detail, sizeof(detail)) : "");
}

/* Prints nothing if the run has no value, and "-" if it would require tasks that were dropped. */
static void print_line(const cs_run_figure *figure, const cs_outcome *outcome, FILE *out)
{
    const bool dropped = figure->shown & CS_OF_TASKS && outcome->simulation->without_tasks;
    char line[512] = "";
    if (!dropped && (!cs_run_figure_given(figure, outcome) || isnan(figure->get(outcome))))
        return;
    if (dropped)
        snprintf(line, sizeof(line), "-");
    else
        add_value(line, sizeof(line), figure, outcome);
    for (const cs_run_figure *next = figure + 1; next->shown & CS_SHOWN_JOINED; next++)
        if (cs_run_figure_given(next, outcome))
            add_value(line, sizeof(line), next, outcome);
    print_figure(figure->label, line, out);
    print_forms(outcome->simulation, figure->key, out);
}

/* Prints the version difference if the schedule states it. */
static void print_version_difference(const cs_simulation *simulation, FILE *out)
{
    const cs_figure figure = CS_FIGURE_VERSION_DIFFERENCE;
    const double value = cs_simulation_figure(simulation, &(cs_form){.figure = figure});
    uint32_t f = 0;
    while (f < simulation->forms.n && simulation->forms.forms[f].figure != figure)
        f++;
    if (f == simulation->forms.n)
        return;
    print_figure(cs_figure_label(figure),
                 isnan(value) ? "not steady" : figure_text(figure, value).s, out);
    print_forms(simulation, cs_figure_key(figure), out);
}

/* ---- devices ---- */

/* Prints "...: P - s versions", with the assumptions if some device differs because of them.
 * `first` names the subject. */
static void print_formula(const char *first, const cs_simulation *simulation, const cs_form *form,
                          FILE *out)
{
    char line[768];
    bool unmet = false;
    for (uint32_t f = 0; f < simulation->forms.n && !simulation->trace.stopped; f++) {
        const cs_form *other = &simulation->forms.forms[f];
        unmet |=
            other->figure == form->figure && !other->applies &&
            !equal(other->figure, cs_simulation_figure(simulation, other), cs_form_value(other));
    }
    snprintf(line, sizeof(line), "%s: %s%s%s", first, form->formula,
             unmet ? "; NOT MET HERE: " : "", unmet ? form->assumes : "");
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}

/* Compares peaks of memory or versions with the schedule's formula: one line, plus one per device
 * that differs. */
static void compare_peaks(const cs_simulation *simulation, cs_figure figure, FILE *out)
{
    const cs_form *last = NULL;
    uint32_t n = 0, n_equal = 0;
    for (uint32_t f = 0; f < simulation->forms.n; f++) {
        const cs_form *form = &simulation->forms.forms[f];
        if (form->figure != figure)
            continue;
        double simulated = cs_simulation_figure(simulation, form), closed = cs_form_value(form);
        bool same = equal(form->figure, simulated, closed);
        last = form;
        n++;
        n_equal += same;
        if (!same && n - n_equal <= DEVICE_ROWS)
            fprintf(out, "closed form of %s on device %u: %s, simulated: %s\n",
                    cs_figure_label(figure), form->device, figure_text(figure, closed).s,
                    comparison_text(figure, simulated, closed).s);
    }
    char first[128];
    if (!last)
        return;
    snprintf(first, sizeof(first), "closed form of %s: equal on %u of %u devices",
             cs_figure_label(figure), n_equal, n);
    print_formula(first, simulation, last, out);
}

static bool is_peak_of(const cs_form *form, uint32_t device)
{
    return form->figure == CS_FIGURE_PEAK_ACTIVATIONS && form->device == device;
}

/* Schedules state the forms of devices in order, so the position of the first one gives all
 * others. */
static const cs_form *peak_form(const cs_simulation *simulation, uint32_t device)
{
    const cs_forms *forms = &simulation->forms;
    uint32_t f = 0;
    while (f < forms->n && forms->forms[f].figure != CS_FIGURE_PEAK_ACTIVATIONS)
        f++;
    if (device < forms->n - f && is_peak_of(&forms->forms[f + device], device))
        return &forms->forms[f + device];
    for (; f < forms->n; f++) {
        if (is_peak_of(&forms->forms[f], device))
            return &forms->forms[f];
    }
    return NULL;
}

/* Description of a device, without its number. Adjacent devices with the same text share a line; as
 * a rule they are replicas. */
typedef struct device_line {
    char text[768];
} device_line;

/* Writes a line; empty if there is nothing to report. */
typedef void line_writer(const cs_simulation *simulation, uint32_t device, device_line *line);

/* Returns the first device after `first` with a different line. */
static uint32_t group_end(const cs_simulation *simulation, line_writer *write, uint32_t first)
{
    device_line line, other;
    uint32_t end = first + 1;
    write(simulation, first, &line);
    for (; end < simulation->trace.n_devices; end++) {
        if (cs_graph_stand_in(&simulation->graph, end) ==
            cs_graph_stand_in(&simulation->graph, first))
            continue;
        write(simulation, end, &other);
        if (strcmp(line.text, other.text) != 0)
            break;
    }
    return end;
}

/* Returns the first device of the last group with equal lines. */
static uint32_t last_group(const cs_simulation *simulation, line_writer *write)
{
    device_line line, other;
    uint32_t first = simulation->trace.n_devices - 1;
    write(simulation, first, &line);
    for (; first > 0; first--) {
        write(simulation, first - 1, &other);
        if (strcmp(line.text, other.text) != 0)
            break;
    }
    return first;
}

static bool are_many(const cs_simulation *simulation, line_writer *write)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < simulation->trace.n_devices && n <= DEVICE_ROWS; n++)
        d = group_end(simulation, write, d);
    return n > DEVICE_ROWS;
}

/* Returns the width of the first column, for numbers such as "960-1023". */
static int name_width(const cs_simulation *simulation)
{
    const int range = snprintf(NULL, 0, "%u-", simulation->trace.n_devices - 1) * 2 - 1;
    return range > 6 ? range : 6;
}

/* Prints a line per simulated device of a folded graph. */
static void print_kinds(const cs_simulation *simulation, line_writer *write, FILE *out)
{
    const cs_graph *graph = &simulation->graph;
    uint32_t rows = 0, more = 0;
    for (uint32_t d = 0; d < graph->n_devices; d++) {
        device_line line;
        char devices[32];
        if (!cs_graph_has(graph, d))
            continue;
        if (rows++ >= DEVICE_ROWS) {
            more++;
            continue;
        }
        write(simulation, d, &line);
        /* Name the devices that it represents: "0-63" if they are adjacent, else "0 x64". */
        uint32_t n = 0, last = d;
        for (uint32_t other = d; other < graph->n_devices; other++) {
            if (cs_graph_stand_in(graph, other) != d)
                continue;
            last = other;
            n++;
        }
        if (n > 1 && last - d + 1 != n)
            snprintf(devices, sizeof(devices), "%u x%u", d, n);
        else
            snprintf(devices, sizeof(devices), n == 1 ? "%u" : "%u-%u", d, last);
        fprintf(out, "%*s %s\n", name_width(simulation), devices, line.text);
    }
    if (more > 0)
        fprintf(out, "   ... %u more simulated devices, see --json\n", more);
}

/* Prints a line per group of equal devices, starting with "0-63"; if there are many, the first ones
 * and the last. */
static void print_lines(const cs_simulation *simulation, line_writer *write, FILE *out)
{
    const uint32_t n = simulation->trace.n_devices;
    if (simulation->graph.stands_for) {
        print_kinds(simulation, write, out);
        return;
    }
    const bool many = are_many(simulation, write);
    for (uint32_t first = 0, row = 0, end; first < n; first = end, row++) {
        device_line line;
        char devices[32];
        if (many && row == DEVICE_ROWS - 2) {
            const uint32_t last = last_group(simulation, write);
            fprintf(out, "   ... %u more devices, see --json or the results file\n", last - first);
            first = last;
        }
        end = group_end(simulation, write, first);
        write(simulation, first, &line);
        snprintf(devices, sizeof(devices), end == first + 1 ? "%u" : "%u-%u", first, end - 1);
        fprintf(out, "%*s %s\n", name_width(simulation), devices, line.text);
    }
}

static text percent_text(const cs_analysis *analysis, cs_time time)
{
    double share = analysis->makespan > 0 ? (double)time / (double)analysis->makespan : 0;
    return number_text(100 * share, "%.1f %%");
}

static cs_time all_compute(const cs_time_use *use)
{
    cs_time sum = 0;
    for (uint32_t kind = 0; kind < CS_N_KINDS; kind++)
        sum += use->compute[kind];
    return sum;
}

static void write_use(const cs_simulation *simulation, uint32_t device, device_line *line)
{
    const cs_analysis *analysis = &simulation->analysis;
    const cs_time_use *use = &analysis->devices[device];
    const cs_device_record *record = &simulation->trace.devices[device];
    const cs_form *form = peak_form(simulation, device);
    const bool known = !simulation->without_tasks;
    snprintf(line->text, sizeof(line->text), "%9s %9s %10s %9s   %-10s %-10s %-11s %s%s",
             percent_text(analysis, all_compute(use)).s,
             known ? percent_text(analysis, use->communication).s : "-",
             known ? percent_text(analysis, use->dependency).s : "-",
             known ? percent_text(analysis, use->flush).s : "-", bytes_text((double)record->peak).s,
             time_text((double)record->peak_time).s,
             bytes_text((double)record->category_peak[CS_MEMORY_ACTIVATIONS]).s,
             form ? bytes_text(cs_form_value(form)).s : "-",
             record->out_of_memory ? "  OUT OF MEMORY" : "");
}

/* Writes " weights 1 GB, activations 2 GB", skipping empty categories. */
static void write_categories(const int64_t *bytes, char *out, size_t size)
{
    const char *separator = " ";
    size_t end = 0;
    *out = '\0';
    for (uint32_t c = 0; c < CS_N_CATEGORIES && end < size; c++) {
        if (bytes[c] == 0)
            continue;
        end += (size_t)snprintf(out + end, size - end, "%s%s %s", separator, cs_category_name(c),
                                bytes_text((double)bytes[c]).s);
        separator = ", ";
    }
}

static void print_devices(const cs_platform *platform, const cs_simulation *simulation, FILE *out)
{
    const uint32_t n = simulation->trace.n_devices;
    const int width = name_width(simulation);
    fprintf(out, "\n%*s %9s %9s %10s %9s   %-10s %-10s %-11s %s\n", width, "", "", "exposed",
            "waiting", "waiting", "peak", "", "peak", "closed");
    fprintf(out, "%*s %9s %9s %10s %9s   %-10s %-10s %-11s %s\n", width, "device", "computing",
            "messages", "for others", "for flush", "memory", "at", "activations", "form");
    print_lines(simulation, write_use, out);
    /* Print the composition of the largest peak, on the first device that reaches it. */
    char categories[512], line[640];
    uint32_t fullest = 0;
    for (uint32_t d = 1; d < simulation->trace.n_devices; d++)
        if (simulation->trace.devices[d].peak > simulation->trace.devices[fullest].peak)
            fullest = d;
    if (simulation->trace.n_devices != 0 && simulation->trace.devices[fullest].peak > 0) {
        write_categories(simulation->trace.devices[fullest].at_peak, categories,
                         sizeof(categories));
        snprintf(line, sizeof(line), "peak of device %" PRIu32 ":%s", fullest, categories);
        cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
    }
    cs_capacity_print(platform, out);
    cs_capacity_print_fit(&simulation->fit, out);
    const cs_form *form = n > 0 ? peak_form(simulation, 0) : NULL;
    if (form)
        print_formula("closed form of peak activations", simulation, form, out);
    compare_peaks(simulation, CS_FIGURE_PEAK_MEMORY, out);
}

/* ---- the allocator ---- */

static void write_allocations(const cs_simulation *simulation, uint32_t device, device_line *line)
{
    const cs_caching_stats *stats = &simulation->allocations.devices[device].stats;
    const double wasted = stats->peak_reserved > 0
                              ? 1 - (double)stats->peak_allocated / (double)stats->peak_reserved
                              : 0;
    snprintf(line->text, sizeof(line->text), "  %-10s %-10s %9.1f %%",
             bytes_text((double)stats->peak_allocated).s,
             bytes_text((double)stats->peak_reserved).s, 100 * wasted);
}

/* Reports the first failing device only. */
static void print_allocations(const cs_simulation *simulation, FILE *out)
{
    const cs_allocations *allocations = &simulation->allocations;
    const int width = name_width(simulation);
    uint32_t d = 0;
    if (allocations->n_devices == 0)
        return;
    fputs("\nPyTorch's allocator:\n", out);
    fprintf(out, "%*s  %-10s %s\n", width, "", "peak", "peak");
    fprintf(out, "%*s  %-10s %-10s %11s\n", width, "device", "allocated", "reserved", "fragmented");
    print_lines(simulation, write_allocations, out);
    while (d < allocations->n_devices && !allocations->devices[d].failure.failed)
        d++;
    if (d < allocations->n_devices) {
        /* Print the first failed allocation, and the memory that was free but unusable. */
        const cs_failed_allocation *failure = &simulation->allocations.devices[d].failure;
        char task[96] = "resident memory", line[512];
        if (failure->failed) {
            if (failure->task != CS_NONE)
                cs_graph_describe(&simulation->graph, failure->task, task, sizeof(task));
            snprintf(line, sizeof(line),
                     "OUT OF MEMORY on device %" PRIu32
                     ": tried to allocate %s for %s; %s allocated, %s "
                     "reserved, %s free in blocks of up to %s",
                     d, bytes_text((double)failure->bytes).s, task,
                     bytes_text((double)failure->allocated).s,
                     bytes_text((double)failure->reserved).s, bytes_text((double)failure->free).s,
                     bytes_text((double)failure->largest).s);
            cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
        }
    }
}

/* ---- staleness ---- */

static bool is_stale(const cs_staleness *staleness)
{
    for (uint32_t s = 0; s < staleness->n_slots; s++) {
        if (staleness->slots[s].peak_versions > 1 || staleness->slots[s].max_gradient_delay > 0)
            return true;
    }
    return false;
}

/* Writes a device's largest number of versions, largest delay and mean delay, over all its
 * weights. */
static void write_staleness(const cs_simulation *simulation, uint32_t device, device_line *line)
{
    const cs_staleness *staleness = &simulation->analysis.staleness;
    const double mean = cs_staleness_mean(staleness, device);
    char delay_text[24] = "-", mean_text[24] = "-";
    int64_t delay = CS_STALENESS_NONE;
    uint32_t versions = 0;
    for (uint32_t s = 0; s < staleness->n_slots; s++) {
        const cs_slot_staleness *slot = &staleness->slots[s];
        if (slot->device != device)
            continue;
        versions = slot->peak_versions > versions ? slot->peak_versions : versions;
        delay = slot->max_gradient_delay > delay ? slot->max_gradient_delay : delay;
    }
    if (delay != CS_STALENESS_NONE)
        snprintf(delay_text, sizeof(delay_text), "%" PRId64, delay);
    if (!isnan(mean))
        snprintf(mean_text, sizeof(mean_text), "%.4g", mean);
    snprintf(line->text, sizeof(line->text), "%9" PRIu32 " %9s %6s", versions, delay_text,
             mean_text);
}

/* Prints whether a run without a flush is periodic. */
static void print_recurrence(const cs_scenario *scenario, const cs_simulation *simulation,
                             FILE *out)
{
    const cs_recurrence *found = &simulation->analysis.recurrence;
    char line[256];
    if (!scenario->schedule->asynchronous || found->end == 0)
        return;
    if (found->n > 0)
        snprintf(line, sizeof(line),
                 "periodic from mini-batch %u on: %u mini-batch%s every %s, %u in flight",
                 found->first, found->n, found->n == 1 ? "" : "es",
                 time_text((double)found->period).s, found->end);
    else
        snprintf(line, sizeof(line),
                 "not periodic within %u mini-batches: %u in flight when half of them have "
                 "entered, %u when all have",
                 scenario->job.iterations, found->half, found->end);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}

/* ---- other parts ---- */

static text seconds_text(double seconds)
{
    return time_text(seconds * (double)CS_PS_PER_SEC);
}

/* Prints the mean communication per device. */
static void print_communication(const cs_analysis *analysis, FILE *out)
{
    const cs_mean_use mean = analysis->mean;
    char line[320], slowed[96] = "";
    if (!(mean.active > 0))
        return;
    if (mean.slowed > 0)
        snprintf(slowed, sizeof(slowed), "; computing slowed by communication: %s",
                 seconds_text(mean.slowed).s);
    snprintf(line, sizeof(line),
             "communication: %s per device, %.1f %% overlapped; exposed: messages %s, "
             "collectives %s%s",
             seconds_text(mean.active).s, 100 * mean.hidden / mean.active,
             seconds_text(mean.messages).s, seconds_text(mean.collectives).s, slowed);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
    const double computing = cs_time_seconds(analysis->makespan) * (1 - analysis->bubble_fraction);
    if (mean.hidden > computing * (1 + 1e-9))
        fprintf(out,
                "  more is overlapped than the device computes, %s: /collectives/tensor_overlap or "
                "expert_overlap is too large\n",
                seconds_text(computing).s);
}

static void print_path(const cs_analysis *analysis, FILE *out)
{
    char line[400];
    int used = snprintf(line, sizeof(line), "critical path: %u step%s:", analysis->n_steps,
                        analysis->n_steps == 1 ? "" : "s");
    for (uint32_t kind = 0; kind < CS_N_KINDS; kind++) {
        if (analysis->path.compute[kind] > 0)
            used += snprintf(line + used, sizeof(line) - (size_t)used, " %s %s,",
                             cs_kind_name(kind), time_text((double)analysis->path.compute[kind]).s);
    }
    used += snprintf(line + used, sizeof(line) - (size_t)used, " messages %s",
                     time_text((double)analysis->path.communication).s);
    if (analysis->path.dependency > 0)
        snprintf(line + used, sizeof(line) - (size_t)used, ", waiting %s",
                 time_text((double)analysis->path.dependency).s);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}

/* "the forward of mini-batch 0, micro-batch 13" */
static void describe_culprit(const cs_graph *graph, uint32_t task, char *out, size_t size)
{
    if (task == CS_NONE)
        snprintf(out, size, "resident memory");
    else if (!graph->tasks)
        snprintf(out, size, "task %u", task);
    else
        snprintf(out, size, "the %s of mini-batch %u, micro-batch %u, stage %u",
                 cs_kind_name(cs_graph_class(graph, task)->kind), cs_graph_mini_batch(graph, task),
                 cs_graph_micro_batch(graph, task), cs_graph_class(graph, task)->stage);
}

static void write_oom(const cs_simulation *simulation, uint32_t device, device_line *line)
{
    const cs_device_record *record = &simulation->trace.devices[device];
    char culprit[128], *out = line->text;
    const size_t size = sizeof(line->text);
    int64_t live = 0;
    *out = '\0';
    if (!record->out_of_memory)
        return;
    describe_culprit(&simulation->graph, record->oom_task, culprit, sizeof(culprit));
    for (uint32_t c = 0; c < CS_N_CATEGORIES; c++)
        live += record->at_oom[c];
    size_t end = (size_t)snprintf(
        out, size, "at %s, by %s: %s in use, capacity %s:", time_text((double)record->oom_time).s,
        culprit, bytes_text((double)live).s, bytes_text((double)record->capacity).s);
    if (end < size)
        write_categories(record->at_oom, out + end, size - end);
}

/* Reports groups of devices that run out of memory alike: each of a few groups, or else only the
 * first to run out. */
static void print_out_of_memory(const cs_simulation *simulation, FILE *out)
{
    enum { FEW = 3 };
    const cs_device_record *devices = simulation->trace.devices;
    uint32_t groups = 0, earliest = 0;
    device_line line;
    for (uint32_t first = 0; first < simulation->trace.n_devices;
         first = group_end(simulation, write_oom, first)) {
        if (!devices[first].out_of_memory)
            continue;
        if (groups++ == 0 || devices[first].oom_time < devices[earliest].oom_time)
            earliest = first;
    }
    if (groups > 0)
        fputc('\n', out);
    for (uint32_t first = 0, end; first < simulation->trace.n_devices; first = end) {
        end = group_end(simulation, write_oom, first);
        write_oom(simulation, first, &line);
        if (*line.text && (groups <= FEW || first == earliest)) {
            /* "out of memory: devices 0 to 63, at ..." */
            char whole[sizeof(line.text) + 64], to[16] = "";
            if (end > first + 1)
                snprintf(to, sizeof(to), " to %u", end - 1);
            snprintf(whole, sizeof(whole), "out of memory: device%s %u%s, %s", *to ? "s" : "",
                     first, to, line.text);
            cs_wrap(out, 0, 2, CS_WRAP_REPORT, whole);
        }
    }
    if (groups > FEW) {
        /* Count the devices out of memory outside the group that has been reported. */
        const uint32_t told_end = group_end(simulation, write_oom, earliest);
        uint32_t more = 0;
        cs_time last = 0;
        for (uint32_t d = 0; d < simulation->trace.n_devices; d++) {
            const cs_device_record *record = &simulation->trace.devices[d];
            if (!record->out_of_memory || (d >= earliest && d < told_end))
                continue;
            last = record->oom_time > last ? record->oom_time : last;
            more++;
        }
        fprintf(out, "out of memory: %u more devices, the last at %s\n", more,
                time_text((double)last).s);
    }
    if (simulation->trace.stopped)
        fprintf(out, "the run was stopped there (--stop-on-oom)\n");
}

/* Prints the number of collectives per algorithm and protocol that NCCL picks. */
static void print_choices(const cs_lower_report *lowering, FILE *out)
{
    const char *before = "NCCL picks ";
    bool any = false;
    for (int a = 0; a < CS_NCCL_ALGORITHMS; a++)
        for (int p = 0; p < CS_NCCL_PROTOCOLS; p++) {
            if (lowering->nccl[a][p] == 0)
                continue;
            fprintf(out, "%s%s %s for %llu", any ? ", " : before, cs_nccl_algorithm_names[a],
                    cs_nccl_protocol_names[p], (unsigned long long)lowering->nccl[a][p]);
            any = true;
        }
    if (any)
        fputs("\n\n", out);
}

static const char *delay_text(const cs_lower_report *lowering)
{
    if (lowering->fidelity != CS_FIDELITY_ANALYTIC)
        return "by the alpha-beta model";
    return lowering->beside ? "without contention except by the same collective in other groups"
                            : "without contention";
}

/* Prints how links are shared and how collectives are modelled. */
static void print_network(const cs_platform *platform, const cs_lower_report *lowering, FILE *out)
{
    char sharing[CS_SHARING_TEXT_BYTES], links[CS_SHARING_TEXT_BYTES + 32] = "", line[600];
    const unsigned long long messages = lowering->n_flows;
    const bool any = lowering->n_collectives > 0, delays = lowering->fidelity != CS_FIDELITY_FLOW;
    if (cs_sharing_text(platform, sharing))
        snprintf(links, sizeof(links), "links shared by %s%s", sharing, any ? "; " : "");
    if (!any && !*links)
        return;
    int used = snprintf(line, sizeof(line), "%s", links);
    if (any)
        used += snprintf(line + used, sizeof(line) - (size_t)used, "%llu collective%s by %s, ",
                         (unsigned long long)lowering->n_collectives,
                         lowering->n_collectives == 1 ? "" : "s", lowering->algorithms);
    if (any && delays)
        snprintf(line + used, sizeof(line) - (size_t)used,
                 "each modelled as one delay, %s (%llu messages not simulated)",
                 delay_text(lowering), messages);
    else if (any)
        snprintf(line + used, sizeof(line) - (size_t)used, "%llu messages", messages);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
    fputc('\n', out);
    print_choices(lowering, out);
}

/* Warns if devices that are simulated as one differ. */
static void print_unlike(const cs_lower_report *lowering, FILE *out)
{
    char line[320];
    if (!*lowering->unlike)
        return;
    snprintf(
        line, sizeof(line),
        "warning: devices that are simulated as one differ: %s; all are simulated like the slowest",
        lowering->unlike);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
    fputc('\n', out);
}

/* Prints the kinds of noise. Closed forms do not cover them. */
static void print_noise(const cs_scenario *scenario, FILE *out)
{
    const cs_noise *noise = &scenario->noise;
    const struct {
        bool on;
        const char *name;
    } parts[] = {{noise->jitter.mean > 0, "jitter of links"},
                 {noise->slow_devices.mean > 0, "slow devices"},
                 {noise->slow_tasks.mean > 0, "slow computations"},
                 {noise->n_sources > 0, "background messages"}};
    const char *separator = "";
    if (!cs_noise_is_on(noise))
        return;
    fprintf(out, "seed %llu: ", (unsigned long long)scenario->seed);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].on)
            fprintf(out, "%s%s", separator, parts[i].name);
        separator = parts[i].on ? ", " : separator;
    }
    fputs("; no closed form applies\n\n", out);
}

enum { MISSING_ROWS = 8 };

static void print_costs(const cs_scenario *scenario, const cs_lower_report *lowering, FILE *out)
{
    const cs_costs_use *use = &scenario->costs;
    const uint32_t times = use->n_measured + use->n_estimated;
    if (!use->given)
        return;
    fputs("costs ", out);
    cs_text_puts(out, use->files);
    fprintf(out, use->devices[0] ? " (%s): " : ": ", use->devices);
    if (times > 0)
        fprintf(out, "%u of %u times of operators measured%s\n", use->n_measured, times,
                use->n_estimated > 0 ? ", the others by roofline" : "");
    else
        fprintf(out, "the times of layers come from the model\n");
    for (uint32_t i = 0; i < use->n_warnings; i++)
        fprintf(out, "  warning: %s\n", use->warnings[i]);
    for (uint32_t i = 0; i < use->n_missing && i < MISSING_ROWS; i++) {
        const cs_missing_cost *at = &use->missing[i];
        fprintf(out, "  not measured: %s:", at->op);
        for (uint32_t pass = 0; pass < CS_N_PASSES; pass++)
            if (at->passes & 1u << pass)
                fprintf(out, " %s", cs_pass_names[pass]);
        fprintf(out, " (%u)\n", at->count);
    }
    if (use->n_missing > MISSING_ROWS)
        fprintf(out, "  ... %u more, see --json\n", use->n_missing - MISSING_ROWS);
    if (lowering->n_collectives > 0 && scenario->collectives.measured) {
        if (lowering->fidelity != CS_FIDELITY_ANALYTIC)
            fprintf(out,
                    "  the fidelity %s ignores measured times of collectives; use \"analytic\"\n",
                    cs_fidelity_name(lowering->fidelity));
        else
            fprintf(out,
                    "  %llu of %llu collectives take measured times, the others computed times\n",
                    (unsigned long long)lowering->n_measured,
                    (unsigned long long)lowering->n_collectives);
        if (lowering->n_extrapolated > 0)
            fprintf(out, "  extrapolated: %llu collectives are larger than all measured ones\n",
                    (unsigned long long)lowering->n_extrapolated);
        for (uint32_t i = 0; i < lowering->n_unmeasured; i++) {
            const cs_unmeasured *at = &lowering->unmeasured[i];
            fprintf(out, "  not measured: %s of %u ranks, %s (%llu)\n", cs_kind_name(at->kind),
                    at->ranks, at->network ? "network" : "node", (unsigned long long)at->count);
        }
    }
    fputc('\n', out);
}

void cs_report_print(const cs_scenario *scenario, const cs_simulation *simulation, FILE *out)
{
    const cs_job *job = &scenario->job;
    fprintf(out, "%s: %s, %u device%s (%s), ", scenario->name, scenario->schedule->name,
            scenario->platform.n_devices, scenario->platform.n_devices == 1 ? "" : "s",
            scenario->platform.topology);
    fprintf(out, "%u mini-batch%s of %u sample%s, %u micro-batch%s of %u", job->iterations,
            job->iterations == 1 ? "" : "es", scenario->batch_size,
            scenario->batch_size == 1 ? "" : "s", job->micro_batches,
            job->micro_batches == 1 ? "" : "es", job->micro_samples);
    if (scenario->origins.is_assumed)
        fprintf(out, "; runtime assumed: %s", scenario->origins.runtime);
    fputc('\n', out);
    if (scenario->schedule->reading)
        fprintf(out, "%s: %s\n", scenario->schedule->name,
                scenario->schedule->reading(scenario->params));
    cs_mesh_report_print(scenario, out);
    fputc('\n', out);
    cs_origins_report_print(&scenario->origins, out);
    print_costs(scenario, &simulation->lowering, out);
    print_network(&scenario->platform, &simulation->lowering, out);
    print_unlike(&simulation->lowering, out);
    print_noise(scenario, out);
    const cs_outcome outcome = {.scenario = scenario, .simulation = simulation};
    fprintf(out, "%-*s%-*s%-*s%s\n", VALUE_COLUMN, "", COMPARISON_COLUMN - VALUE_COLUMN, "value",
            FORMULA_COLUMN - COMPARISON_COLUMN, "vs. formula", "formula and assumptions");
    for (const cs_run_figure *figure = cs_run_figures; figure->key; figure++)
        if (figure->shown & CS_SHOWN_REPORT)
            print_line(figure, &outcome, out);
    print_version_difference(simulation, out);
    print_devices(&scenario->platform, simulation, out);
    print_allocations(simulation, out);
    /* Print a table if versions of weights are kept, or gradients are delayed. */
    if (is_stale(&simulation->analysis.staleness)) {
        const int width = name_width(simulation);
        fprintf(out, "\n%*s %9s  %s\n%*s %9s %9s %6s\n", width, "", "versions", " gradient delay",
                width, "device", "kept", "largest", "mean");
        print_lines(simulation, write_staleness, out);
        compare_peaks(simulation, CS_FIGURE_PEAK_VERSIONS, out);
    }
    fputc('\n', out);
    print_communication(&simulation->analysis, out);
    /* Print, per purpose, time of communication, exposed time, bytes and mean rate, except for
     * stopped runs, which have sent fewer bytes than counted. */
    const cs_mean_use mean = simulation->analysis.mean;
    if (mean.active > 0 && !simulation->trace.stopped) {
        fprintf(out, "%14s %10s %10s  %-10s %s\n", "purpose", "time", "exposed", "sent",
                "rate per device");
        for (uint32_t p = 0; p < CS_N_PURPOSES; p++) {
            const double moved = simulation->lowering.moved[p] / simulation->trace.n_devices;
            const double active = mean.active_for[p];
            if (moved > 0)
                fprintf(out, "%14s %10s %10s  %-10s %s\n", cs_purpose_name(p),
                        seconds_text(active).s, seconds_text(mean.exposed[p]).s,
                        bytes_text(moved).s,
                        active > 0 ? cs_units_text(moved / active, CS_QUANTITY_BANDWIDTH, DIGITS).s
                                   : "-");
        }
    }
    /* Print the largest use of host memory. */
    int64_t most = 0;
    for (uint32_t d = 0; simulation->host_peaks && d < simulation->trace.n_devices; d++)
        most = simulation->host_peaks[d] > most ? simulation->host_peaks[d] : most;
    if (most > 0)
        fprintf(out, "offloaded to the host: at most %s per device\n", bytes_text((double)most).s);
    print_recurrence(scenario, simulation, out);
    if (simulation->without_tasks) {
        char line[320];
        snprintf(line, sizeof(line),
                 "%u tasks were dropped after they ran: waiting times, overlap, critical path and "
                 "staleness are unknown (hash %016" PRIx64 ")",
                 simulation->graph.n_tasks, simulation->hash);
        cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
    } else
        print_path(&simulation->analysis, out);
    if (simulation->forms.n > 0)
        print_sources(&simulation->forms, out);
    print_out_of_memory(simulation, out);
}

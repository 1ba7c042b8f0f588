#include "sim/cli/report.h"

#include "sim/base/units.h"

#include <inttypes.h>
#include <math.h>

enum { DIGITS = 4, DEVICE_ROWS = 16 };

typedef struct text {
    char characters[CS_UNITS_TEXT_BYTES];
} text;

static text time_text(double picoseconds)
{
    text out;
    cs_units_format(picoseconds / (double)CS_PS_PER_SEC, CS_QUANTITY_TIME, DIGITS, out.characters,
                    sizeof(out.characters));
    return out;
}

static text bytes_text(double bytes)
{
    text out;
    cs_units_format(bytes, CS_QUANTITY_BYTES, DIGITS, out.characters, sizeof(out.characters));
    return out;
}

static text number_text(double value, const char *format)
{
    text out;
    snprintf(out.characters, sizeof(out.characters), format, value);
    return out;
}

/* ---- figures ---- */

static text figure_text(cs_figure figure, double value)
{
    switch (figure) {
    case CS_FIGURE_MAKESPAN:
        return time_text(value);
    case CS_FIGURE_PEAK_ACTIVATIONS:
        return bytes_text(value);
    case CS_FIGURE_BUBBLE:
    case CS_N_FIGURES:
        break;
    }
    return number_text(value, "%.6f");
}

static const char *figure_label(cs_figure figure)
{
    static const char *const labels[CS_N_FIGURES] = {
        [CS_FIGURE_MAKESPAN] = "makespan",
        [CS_FIGURE_BUBBLE] = "bubble fraction",
        [CS_FIGURE_PEAK_ACTIVATIONS] = "peak activations",
    };
    return labels[figure];
}

/* "equal", or by how much the simulation is above the closed form. */
static text difference_text(double simulated, double closed)
{
    if (simulated == closed)
        return number_text(0, "equal");
    return closed != 0 ? number_text(100 * (simulated / closed - 1), "%+.3g %%")
                       : number_text(simulated, "%+.3g");
}

static void print_form(const cs_simulation *simulation, const cs_form *form, FILE *out)
{
    double simulated = cs_simulation_figure(simulation, form), closed = cs_form_value(form);
    fprintf(out, "%-18s %-16s %-16s %-10s %s\n", figure_label(form->figure),
            figure_text(form->figure, simulated).characters,
            figure_text(form->figure, closed).characters,
            difference_text(simulated, closed).characters, form->formula);
    fprintf(out, "%-18s %-16s %-16s %-10s   %s%s\n", "", "", "", "",
            form->applies ? "holds for: " : "does not apply here, for: ", form->assumes);
}

static bool has_form(const cs_simulation *simulation, cs_figure figure)
{
    for (uint32_t f = 0; f < simulation->forms.n; f++) {
        if (simulation->forms.forms[f].figure == figure)
            return true;
    }
    return false;
}

static void print_figures(const cs_simulation *simulation, FILE *out)
{
    const cs_analysis *analysis = &simulation->analysis;
    fprintf(out, "%-18s %-16s %-16s %-10s %s\n", "", "simulated", "closed form", "difference",
            "formula");
    for (uint32_t f = 0; f < simulation->forms.n; f++) {
        if (simulation->forms.forms[f].device == CS_NONE)
            print_form(simulation, &simulation->forms.forms[f], out);
    }
    if (!has_form(simulation, CS_FIGURE_MAKESPAN))
        fprintf(out, "%-18s %s\n", "makespan",
                time_text((double)simulation->trace.makespan).characters);
    if (!has_form(simulation, CS_FIGURE_BUBBLE))
        fprintf(out, "%-18s %.6f\n", "bubble fraction", analysis->bubble_fraction);
    if (simulation->trace.stopped)
        return;
    fprintf(out, "%-18s %s\n", "iteration time",
            time_text(analysis->iteration_time * (double)CS_PS_PER_SEC).characters);
    fprintf(out, "%-18s %.6g samples/s\n", "throughput", analysis->throughput);
}

/* ---- devices ---- */

static const cs_form *peak_form(const cs_simulation *simulation, uint32_t device)
{
    for (uint32_t f = 0; f < simulation->forms.n; f++) {
        const cs_form *form = &simulation->forms.forms[f];
        if (form->figure == CS_FIGURE_PEAK_ACTIVATIONS && form->device == device)
            return form;
    }
    return NULL;
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

static void print_device(const cs_simulation *simulation, uint32_t device, FILE *out)
{
    const cs_analysis *analysis = &simulation->analysis;
    const cs_time_use *use = &analysis->devices[device];
    const cs_device_record *record = &simulation->trace.devices[device];
    const cs_form *form = peak_form(simulation, device);
    fprintf(out, "%6u %9s %9s %10s %9s   %-10s %-10s %-11s %-11s%s\n", device,
            percent_text(analysis, all_compute(use)).characters,
            percent_text(analysis, use->communication).characters,
            percent_text(analysis, use->dependency).characters,
            percent_text(analysis, use->flush).characters,
            bytes_text((double)record->peak).characters,
            time_text((double)record->peak_time).characters,
            bytes_text((double)record->category_peak[CS_MEMORY_ACTIVATIONS]).characters,
            form ? bytes_text(cs_form_value(form)).characters : "-",
            record->out_of_memory ? "  OUT OF MEMORY" : "");
}

static void print_devices(const cs_simulation *simulation, FILE *out)
{
    uint32_t n = simulation->trace.n_devices;
    fprintf(out, "\n%6s %9s %9s %10s %9s   %-10s %-10s %-11s %s\n", "", "", "exposed", "waiting",
            "waiting", "peak", "", "peak", "closed");
    fprintf(out, "%6s %9s %9s %10s %9s   %-10s %-10s %-11s %s\n", "device", "computing", "messages",
            "for others", "for flush", "memory", "at", "activations", "form");
    for (uint32_t d = 0; d < n; d++) {
        if (n > DEVICE_ROWS && d == DEVICE_ROWS - 2) {
            fprintf(out, "   ... %u more devices, all of them in --json and the results file\n",
                    n - DEVICE_ROWS + 1);
            d = n - 1;
        }
        print_device(simulation, d, out);
    }
    const cs_form *form = n > 0 ? peak_form(simulation, 0) : NULL;
    if (form)
        fprintf(out, "peak activations in closed form: %s (%s)\n", form->formula, form->source);
}

/* ---- the rest ---- */

static void print_path(const cs_analysis *analysis, FILE *out)
{
    fprintf(out, "\ncritical path: %u steps:", analysis->n_steps);
    for (uint32_t kind = 0; kind < CS_N_KINDS; kind++) {
        if (analysis->path.compute[kind] > 0)
            fprintf(out, " %s %s,", cs_kind_name(kind),
                    time_text((double)analysis->path.compute[kind]).characters);
    }
    fprintf(out, " messages %s", time_text((double)analysis->path.communication).characters);
    if (analysis->path.dependency > 0)
        fprintf(out, ", waiting %s", time_text((double)analysis->path.dependency).characters);
    fputc('\n', out);
}

static void print_oom(const cs_simulation *simulation, uint32_t device, FILE *out)
{
    const cs_device_record *record = &simulation->trace.devices[device];
    char task[96] = "what is resident from the start";
    if (record->oom_task != CS_NONE)
        cs_graph_describe(&simulation->graph, record->oom_task, task, sizeof(task));
    fprintf(out, "out of memory: device %u (%s) at %s, by %s:", device,
            bytes_text((double)record->capacity).characters,
            time_text((double)record->oom_time).characters, task);
    for (uint32_t c = 0; c < CS_N_CATEGORIES; c++) {
        if (record->at_oom[c] > 0)
            fprintf(out, " %s %s", cs_category_name(c),
                    bytes_text((double)record->at_oom[c]).characters);
    }
    fputc('\n', out);
}

static void print_out_of_memory(const cs_simulation *simulation, FILE *out)
{
    uint32_t shown = 0, n = 0;
    for (uint32_t d = 0; d < simulation->trace.n_devices; d++) {
        if (!simulation->trace.devices[d].out_of_memory)
            continue;
        if (n++ == 0)
            fputc('\n', out);
        if (shown < DEVICE_ROWS) {
            print_oom(simulation, d, out);
            shown++;
        }
    }
    if (n > shown)
        fprintf(out, "out of memory: %u more devices\n", n - shown);
    if (simulation->trace.stopped)
        fprintf(out, "the run was stopped there, as asked\n");
}

static void print_collectives(const cs_lower_report *lowering, FILE *out)
{
    if (lowering->n_collectives == 0)
        return;
    fprintf(out, "%llu collective%s by %s, ", (unsigned long long)lowering->n_collectives,
            lowering->n_collectives == 1 ? "" : "s", lowering->algorithms);
    if (lowering->analytic)
        fprintf(out, "each one delay as when nothing else runs (%llu messages not simulated)\n\n",
                (unsigned long long)lowering->n_flows);
    else
        fprintf(out, "%llu messages\n\n", (unsigned long long)lowering->n_flows);
}

void cs_report_print(const cs_scenario *scenario, const cs_simulation *simulation, FILE *out)
{
    const cs_job *job = &scenario->job;
    fprintf(out, "%s: %s, %u x %s, ", scenario->name, scenario->schedule->name,
            scenario->platform.n_devices, scenario->platform.topology);
    fprintf(out, "%u mini-batch%s of %u samples, %u micro-batch%s of %u\n\n", job->iterations,
            job->iterations == 1 ? "" : "es", scenario->batch_size, job->micro_batches,
            job->micro_batches == 1 ? "" : "es", job->micro_samples);
    print_collectives(&simulation->lowering, out);
    print_figures(simulation, out);
    print_devices(simulation, out);
    print_path(&simulation->analysis, out);
    print_out_of_memory(simulation, out);
}

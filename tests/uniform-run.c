#include "tests/uniform-run.h"

#include "tests/expect.h"
#include "tests/listed-formula.h"

static const char uniform[] = "\"forward\": \"1 s\", \"backward\": \"2 s\", \"weights\": \"1 GB\", "
                              "\"activation\": \"1 GB\"";
static const char ideal[] = "\"topology\": \"ideal\"";

cs_status uniform_run_init(scenario_run *run, const uniform_text *text, cs_error *error)
{
    *run = (scenario_run){0};
    return scenario_run_init(
        run, error,
        "{'schema_version': 1, 'iterations': %u, 'model': {'uniform': {'layers': %u, %s}}, "
        "'platform': {'devices': %u, 'memory': '1000 TB', %s}, 'schedule': %s}",
        text->iterations ? text->iterations : 1, text->layers,
        text->uniform ? text->uniform : uniform, text->devices,
        text->platform ? text->platform : ideal, text->schedule);
}

void uniform_run_expect(scenario_run *run, const uniform_text *text)
{
    cs_error error = {0};
    cs_status status = uniform_run_init(run, text, &error);
    expect_error(text->schedule, CS_OK, "", status, &error);
}

uint32_t uniform_run_check_forms(const char *row, const scenario_run *run)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->simulation.forms.n; i++) {
        const cs_form *form = &run->simulation.forms.forms[i];
        if (!lists_form(run->scenario.schedule, form))
            fail_msg("%s: %s is not listed as it is stated", row, form->formula);
        if (!cs_form_is_promised(form))
            continue;
        char text[5000];
        snprintf(text, sizeof(text), "%s: %s (%s), device %d", row, cs_figure_key(form->figure),
                 form->formula, (int)form->device);
        double expected = cs_form_value(form), got = cs_simulation_figure(&run->simulation, form);
        /* a fraction is one minus a quotient of times: two roundings; an iteration's time, of whole
         * picoseconds, comes as a quotient in seconds */
        double off = cs_figure_is_fraction(form->figure)        ? 1e-12
                     : form->figure == CS_FIGURE_ITERATION_TIME ? 1e-15 * expected
                                                                : 0;
        if (!(got >= expected - off && got <= expected + off))
            expect_double(text, expected, got);
        n++;
    }
    return n;
}

uint32_t uniform_run_find(const scenario_run *run, cs_kind kind, uint32_t stage, uint32_t item)
{
    const cs_graph *graph = &run->simulation.graph;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind == kind && cls->stage == stage && graph->tasks[task].item == item)
            return task;
    }
    return CS_NONE;
}

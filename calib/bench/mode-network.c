#include "calib/bench/bench-main.h"
#include "calib/bench/measure-network.h"
#include "sim/base/text.h"

#include <stdio.h>
#include <string.h>

/* All of them where none are named. */
static cs_status choose(const cJSON *names, uint32_t *collectives, cs_error *error)
{
    const cJSON *name;
    *collectives = names ? 0 : (UINT32_C(1) << CS_N_COST_COLLECTIVES) - 1;
    cJSON_ArrayForEach(name, names)
    {
        const char *text = cJSON_IsString(name) ? name->valuestring : "";
        cs_guess guess;
        uint32_t found = CS_N_COST_COLLECTIVES;
        cs_guess_init(&guess, text);
        for (uint32_t c = 0; c < CS_N_COST_COLLECTIVES; c++) {
            cs_guess_add(&guess, cs_cost_collective_names[c]);
            if (strcmp(cs_cost_collective_names[c], text) == 0)
                found = c;
        }
        if (found == CS_N_COST_COLLECTIVES)
            return cs_error_add(error, CS_USAGE, "unknown collective %s", cs_guess_text(&guess));
        *collectives |= UINT32_C(1) << found;
    }
    return CS_OK;
}

static void tell(const cs_costs *costs)
{
    for (uint32_t i = 0; i < costs->n_network; i++) {
        const cs_cost_network *entry = &costs->network[i];
        fprintf(stderr, "%s, %u ranks:", cs_cost_collective_names[entry->collective], entry->ranks);
        for (uint32_t r = 0; r < entry->n_regimes; r++) {
            const cs_cost_regime *regime = &entry->regimes[r];
            fprintf(stderr, "%s from %lld B %.3g us + bytes / %.4g GB/s", r > 0 ? ";" : "",
                    (long long)regime->from, 1e6 * regime->alpha.value, 1e-9 / regime->beta.value);
        }
        fputc('\n', stderr);
    }
}

static cs_status add_source(const cs_request *request, const cs_wire *wire, cs_costs *costs,
                            uint32_t *id, cs_error *error)
{
    char library[128], notes[256], places[64];
    cs_cost_source source = {.source = request->command,
                             .date = request->date,
                             .notes = notes,
                             .driver = "",
                             .clock = ""};
    cs_bench_places(wire->backend, wire->size, places, sizeof(places));
    snprintf(notes, sizeof(notes), "%s%s%u processes of one machine, %s", request->notes,
             request->notes[0] ? "; " : "", wire->size,
             wire->carrier ? "each on a GPU of its own" : places);
    wire->backend->describe(wire->bench, &source);
    source.libraries = cs_wire_library(wire, library, sizeof(library));
    return cs_costs_add_source(costs, &source, id, error);
}

static cs_status measure(const cs_request *request, cs_wire *wire, const cs_progress *progress,
                         cs_error *error)
{
    cs_costs costs;
    cs_network_options options = {.wire = wire,
                                  .min_bytes = request->min_bytes,
                                  .max_bytes = request->max_bytes,
                                  .time_limit = cs_time_seconds(request->time_limit),
                                  .progress = wire->rank == 0 ? progress : NULL};
    cs_costs_init(&costs);
    cs_status status = choose(request->collectives, &options.collectives, error);
    if (status == CS_OK)
        status = add_source(request, wire, &costs, &options.source, error);
    if (status == CS_OK && wire->size < 2)
        status = cs_error_add(error, CS_USAGE, "messages need two processes or more");
    if (status == CS_OK)
        status = cs_measure_network(&options, &costs, error);
    if (wire->rank == 0 && costs.n_network > 0) {
        cs_status saved = cs_request_save(request, &costs, error);
        status = status == CS_OK ? saved : status;
        tell(&costs);
    }
    cs_costs_finish(&costs);
    return status;
}

static cs_status open_and_measure(const cs_backend *backend, const cs_request *request,
                                  cs_wire *wire, const cs_progress *progress, cs_error *error)
{
    cs_bench *bench = NULL;
    (void)cs_bench_pin(backend, wire->place);
    cs_status status = backend->open(wire->place, &bench, error);
    status = cs_wire_agree(wire, status, error);
    if (status == CS_OK)
        status = cs_wire_connect(wire, backend, bench, error);
    if (status == CS_OK)
        status = measure(request, wire, progress, error);
    cs_wire_disconnect(wire);
    backend->close(bench);
    return status;
}

cs_status cs_bench_network(const cs_backend *backend, const cs_request *request,
                           const cs_progress *progress, cs_error *error)
{
    cs_wire wire = {0};
    cs_status status = cs_wire_open(&wire, error);
    if (status == CS_OK)
        status = open_and_measure(backend, request, &wire, progress, error);
    cs_bench_leave(&wire, status, error);
    return status;
}

void cs_bench_leave(cs_wire *wire, cs_status status, cs_error *error)
{
    bool alike = status == CS_INVALID || status == CS_USAGE || wire->alike;
    if (status != CS_OK && wire->size > 1 && (!alike || wire->rank == 0))
        fprintf(stderr, "sim: error: %s\n", error->text);
    if (status != CS_OK && wire->size > 1)
        cs_error_init(error);
    cs_wire_close(wire, status != CS_OK && !alike);
}

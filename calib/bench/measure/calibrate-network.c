#include "calib/bench/measure/calibrate.h"

#include "calib/bench/device/cores.h"
#include "calib/bench/measure/measure-network.h"
#include "calib/bench/wire/core-count.h"
#include "calib/costs-text.h"

#include <stdio.h>

/* Returns the chosen collectives; all if none are named. */
static uint32_t choose(const cs_list *names)
{
    const uint32_t *chosen = names->items;
    uint32_t collectives = names->n > 0 ? 0 : (UINT32_C(1) << CS_N_COST_COLLECTIVES) - 1;
    for (uint32_t i = 0; i < names->n; i++)
        collectives |= UINT32_C(1) << chosen[i];
    return collectives;
}

static void tell(const cs_costs *costs)
{
    char line[CS_COSTS_TEXT_BYTES];
    for (uint32_t i = 0; i < costs->n_network; i++) {
        const cs_cost_network *entry = &costs->network[i];
        fprintf(stderr, "%s of %u ranks, %s: %u sizes\n",
                cs_cost_collective_names[entry->collective], entry->ranks,
                cs_cost_level_names[entry->level], entry->n_points);
        for (uint32_t r = 0; r < entry->n_regimes; r++)
            fprintf(stderr, "  %s\n", cs_costs_regime_text(entry, &entry->regimes[r], line));
        fprintf(stderr, "  %s\n", cs_costs_largest_text(entry, line));
        if (*cs_costs_end_text(entry, line))
            fprintf(stderr, "  WARNING: %s\n", line);
        if (cs_costs_unsettled_text(entry, CS_NETWORK_PERCENT / 100.0, line)[0])
            fprintf(stderr, "  %s\n", line);
    }
}

/* ---- where processes run ---- */

static cs_status describe_places(const cs_wire *wire, char *text, size_t size, cs_error *error)
{
    cs_core_count count = {.cores = wire->size};
    char where[80];
    cs_status status = wire->carrier ? CS_OK : cs_count_cores(wire, &count, error);
    if (wire->carrier)
        snprintf(where, sizeof(where), "each on a GPU of its own");
    else if (count.cores == wire->size)
        snprintf(where, sizeof(where), "each on a core of its own");
    else if (count.cores == 0)
        snprintf(where, sizeof(where), "not bound to cores");
    else
        snprintf(where, sizeof(where), "taking turns on %u cores", count.cores);
    snprintf(text, size, "%u processes of %u machine%s%s, %s", wire->size, wire->n_nodes,
             wire->n_nodes == 1 ? "" : "s", wire->pretended ? " (simulated)" : "", where);
    if (status == CS_OK && count.cores < wire->size && wire->rank == 0)
        fprintf(stderr,
                "sim: warning: %s: times are not realistic for processes that have a core "
                "each\n",
                text);
    return status;
}

static cs_status add_source(const cs_request *request, const cs_wire *wire, cs_costs *costs,
                            uint32_t *id, cs_error *error)
{
    char library[128], notes[512], places[160];
    cs_cost_source source = {.source = request->command,
                             .date = request->date,
                             .notes = notes,
                             .driver = "",
                             .clock = ""};
    CS_TRY(describe_places(wire, places, sizeof(places), error));
    snprintf(notes, sizeof(notes), "%s%s%s", request->notes, request->notes[0] ? "; " : "", places);
    wire->backend->describe(wire->bench, &source);
    source.libraries = cs_wire_library(wire, library, sizeof(library));
    return cs_costs_add_source(costs, &source, id, error);
}

/* Fails if messages would take a detour through host memory, because the request is for NCCL. */
static cs_status check_carrier(const cs_wire *wire, cs_error *error)
{
    if (!wire->backend->own_memory || wire->carrier)
        return CS_OK;
    if (!wire->backend->carrier)
        return cs_error_add(error, CS_USAGE,
                            "this program was built without NCCL: install it and build again, or "
                            "measure the messages of processes with --backend mpi");
    return cs_error_add(error, CS_USAGE,
                        "NCCL needs one GPU per process, but %u processes share GPUs: lower "
                        "--processes, or measure the messages of processes with --backend mpi",
                        wire->size);
}

static cs_status measure(const cs_request *request, cs_wire *wire, const cs_progress *progress,
                         cs_error *error)
{
    cs_costs costs;
    cs_network_options options = {.wire = wire,
                                  .collectives = choose(&request->collectives),
                                  .min_bytes = request->min_bytes,
                                  .max_bytes = request->max_bytes,
                                  .time_limit = cs_time_seconds(request->time_limit),
                                  .progress = wire->rank == 0 ? progress : NULL};
    cs_costs_init(&costs);
    cs_status status = CS_OK;
    if (wire->size < 2)
        status = cs_error_add(error, CS_USAGE, "messages need at least two processes");
    if (status == CS_OK)
        status = add_source(request, wire, &costs, &options.source, error);
    if (status == CS_OK)
        status = cs_measure_network(&options, &costs, error);
    if (wire->rank == 0 && costs.n_network > 0) {
        cs_status saved = cs_costs_add_to_file(&costs, request->output, error);
        status = status == CS_OK ? saved : status;
        tell(&costs);
    }
    cs_costs_finish(&costs);
    return status;
}

cs_status cs_bench_network(const cs_backend *backend, const cs_request *request, cs_wire *wire,
                           const cs_progress *progress, cs_error *error)
{
    cs_bench *bench = NULL;
    (void)cs_bench_pin(backend, wire->place);
    cs_status status = backend->open(wire->place, &bench, error);
    status = cs_wire_agree(wire, status, error);
    if (status == CS_OK)
        status = cs_wire_connect(wire, backend, bench, error);
    if (status == CS_OK)
        status = check_carrier(wire, error);
    if (status == CS_OK)
        status = measure(request, wire, progress, error);
    status = cs_wire_disconnect(wire, status, error);
    backend->close(bench);
    return status;
}

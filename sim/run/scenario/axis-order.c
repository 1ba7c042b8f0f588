/* Warns if axes that split layers cross nodes although another order of the axes would keep them
 * inside. */
#include "sim/run/scenario/build.h"

#include <stdio.h>
#include <stdlib.h>

/* Axes along which devices communicate within each layer, those with most traffic first. */
static const cs_axes_name talkers[] = {CS_AXES_TENSOR, CS_AXES_EXPERT, CS_AXES_CONTEXT,
                                       CS_AXES_SPACE};
enum { N_TALKERS = sizeof(talkers) / sizeof(talkers[0]), ORDER_BYTES = 96 };

/* Whether each group of these axes is inside one node. */
static bool lies_within(const cs_parallel *parallel, cs_axes axes, const uint32_t *devices,
                        uint32_t node_devices)
{
    const uint32_t places = cs_grid_places(&parallel->split.grid);
    for (uint32_t r = 0; r < parallel->n_ranks; r++) {
        const uint32_t *of = devices + (size_t)r * places;
        for (uint32_t i = 0; i < places; i++)
            if (of[i] / node_devices != of[cs_axes_first(axes, i)] / node_devices)
                return false;
    }
    return true;
}

/* Bit i: talker i lies within nodes. */
static uint32_t which_within(const cs_parallel *parallel, const uint32_t *devices,
                             uint32_t node_devices)
{
    uint32_t within = 0;
    for (uint32_t i = 0; i < N_TALKERS; i++) {
        const cs_axes axes = cs_grid_axes(&parallel->split.grid, talkers[i]);
        if (axes.size == 1 || lies_within(parallel, axes, devices, node_devices))
            within |= 1u << i;
    }
    return within;
}

/* Advances to the next permutation of the first `n` axes in lexicographic order. Returns false
 * after the last one. */
static bool next_order(uint32_t order[CS_N_MESH_AXES], int n)
{
    int i = n - 2, j = n - 1;
    while (i >= 0 && order[i] > order[i + 1])
        i--;
    if (i < 0)
        return false;
    while (order[j] < order[i])
        j--;
    const uint32_t swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        const uint32_t kept = order[a];
        order[a] = order[b];
        order[b] = kept;
    }
    return true;
}

/* Finds an order that moves a talker into nodes and keeps the talkers of `kept` there. Returns
 * false if there is none. */
static bool find_order(const cs_parallel *parallel, uint32_t node_devices, uint32_t kept,
                       uint32_t talker, uint32_t *devices, uint32_t order[CS_N_MESH_AXES])
{
    const uint32_t wanted = kept | 1u << talker;
    int used = 0, unused = CS_N_MESH_AXES; /* axes of size 1 come last: their place is irrelevant */
    for (uint32_t i = 0; i < CS_N_MESH_AXES; i++) {
        const bool uses =
            cs_mesh_axis_size(&parallel->split.grid, parallel->n_ranks, (cs_mesh_axis)i) > 1;
        order[uses ? used++ : --unused] = i;
    }
    do {
        cs_mesh_number(&parallel->split.grid, parallel->n_ranks, order, NULL, devices);
        if ((which_within(parallel, devices, node_devices) & wanted) == wanted)
            return true;
    } while (next_order(order, used));
    return false;
}

/* Prefers an order that keeps all axes inside nodes that are there now; else accepts one that moves
 * out only axes with less traffic. */
static bool find_better(const cs_parallel *parallel, uint32_t node_devices, uint32_t within,
                        uint32_t talker, uint32_t *devices, uint32_t order[CS_N_MESH_AXES])
{
    const uint32_t more = within & ((1u << talker) - 1);
    return find_order(parallel, node_devices, within, talker, devices, order) ||
           (more != within && find_order(parallel, node_devices, more, talker, devices, order));
}

/* "tensor", "data", "pipeline" */
static const char *order_text(const cs_parallel *parallel, const uint32_t order[CS_N_MESH_AXES],
                              char text[ORDER_BYTES])
{
    size_t end = 0;
    for (uint32_t i = 0; i < CS_N_MESH_AXES; i++)
        if (cs_mesh_axis_size(&parallel->split.grid, parallel->n_ranks, (cs_mesh_axis)order[i]) > 1)
            end += (size_t)snprintf(text + end, ORDER_BYTES - end, "%s\"%s\"", end > 0 ? ", " : "",
                                    cs_mesh_axis_names[order[i]]);
    return text;
}

void cs_scenario_warn_of_order(const cs_sections *sections, const cs_parallel *parallel,
                               const cs_platform *platform, cs_error *warnings)
{
    const cs_json_place place = {.up = &sections->root, .key = "parallel"};
    const cs_json_place key = {.up = &place, .key = "order"};
    const uint32_t node = platform->node_devices, n = platform->n_devices;
    uint32_t *devices = node > 0 && node < n ? malloc(n * sizeof(*devices)) : NULL;
    if (!devices) /* a single node, or no memory for a mere warning */
        return;
    const uint32_t within = which_within(parallel, parallel->devices, node);
    for (uint32_t i = 0; i < N_TALKERS; i++) {
        const cs_axes axes = cs_grid_axes(&parallel->split.grid, talkers[i]);
        uint32_t order[CS_N_MESH_AXES];
        char text[ORDER_BYTES] = "";
        if (within & 1u << i || axes.size > node ||
            !find_better(parallel, node, within, i, devices, order))
            continue;
        (void)cs_json_invalid(
            &key, warnings,
            "the %u devices of the axis \"%s\" do not share a node of %u devices; with "
            "[%s]%s they would",
            axes.size, cs_axes_text(talkers[i]), node, order_text(parallel, order, text),
            sections->parallel.ranks.items ? " and without \"ranks\"" : "");
    }
    free(devices);
}

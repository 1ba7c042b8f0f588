#include "schedules/matrices.h"

#include "schedules/states.h"

#include <stdlib.h>

/* What one place has. */
typedef struct load {
    int64_t bytes;
    cs_time update;
} load;

static bool is_less(const load *a, const load *b)
{
    return a->bytes < b->bytes;
}

/* The first of a heap has become larger. */
static void sink(load *heap, uint32_t n)
{
    for (uint32_t i = 0, least = 1; least < n; least = 2 * i + 1) {
        least += least + 1 < n && is_less(&heap[least + 1], &heap[least]);
        if (!is_less(&heap[least], &heap[i]))
            break;
        const load moved = heap[i];
        heap[i] = heap[least];
        heap[i = least] = moved;
    }
}

/* The largest first, of equal ones the slowest. */
static int compare_sizes(const void *a, const void *b)
{
    const cs_layer_matrix *left = a, *right = b;
    const int order = (left->bytes < right->bytes) - (left->bytes > right->bytes);
    return order != 0 ? order : (left->update < right->update) - (left->update > right->update);
}

static load most_of(const load *places, uint32_t n)
{
    load most = {0};
    for (uint32_t i = 0; i < n; i++) {
        most.bytes = places[i].bytes > most.bytes ? places[i].bytes : most.bytes;
        most.update = places[i].update > most.update ? places[i].update : most.update;
    }
    return most;
}

/* The most that one of n places has of matrices, which get sorted. */
static cs_status divide(cs_layer_matrix *matrices, uint32_t n_matrices, uint32_t n, load *most,
                        cs_error *error)
{
    load *places = calloc(n, sizeof(*places));
    if (!places)
        return cs_error_no_memory(error);
    qsort(matrices, n_matrices, sizeof(*matrices), compare_sizes);
    for (uint32_t i = 0; i < n_matrices; i++) {
        for (uint32_t k = 0; k < matrices[i].n; k++) {
            places[0].bytes += matrices[i].bytes;
            places[0].update += matrices[i].update;
            sink(places, n);
        }
    }
    *most = most_of(places, n);
    free(places);
    return CS_OK;
}

/* Copies those of a kind; returns how many. */
static uint32_t collect(const cs_job *job, uint32_t stage, bool expert, cs_layer_matrix *to)
{
    const cs_stage *of = &job->plan->stages[stage];
    uint32_t n = 0;
    for (uint32_t l = of->first_layer; l < of->end_layer; l++) {
        const cs_layer *layer = &job->model->layers[l];
        for (uint32_t i = 0; i < layer->n_matrices; i++) {
            if (layer->matrices[i].expert != expert)
                continue;
            if (to)
                to[n] = layer->matrices[i];
            n++;
        }
    }
    return n;
}

static cs_status find_kind(const cs_job *job, uint32_t stage, bool expert, load *all, load *most,
                           cs_error *error)
{
    const uint32_t n = collect(job, stage, expert, NULL);
    const uint32_t places = job->states.zero > 0 ? cs_states_shards(job, expert) : 1;
    cs_layer_matrix *matrices = calloc(n + 1ULL, sizeof(*matrices));
    if (!matrices)
        return cs_error_no_memory(error);
    collect(job, stage, expert, matrices);
    cs_status status = divide(matrices, n, 1, all, error);
    if (status == CS_OK)
        status = divide(matrices, n, places, most, error);
    free(matrices);
    return status;
}

cs_status cs_stage_matrices_find(const cs_job *job, uint32_t stage, cs_stage_matrices *found,
                                 cs_error *error)
{
    load all[2], most[2];
    for (int expert = 0; expert < 2; expert++)
        CS_TRY(find_kind(job, stage, expert > 0, &all[expert], &most[expert], error));
    *found = (cs_stage_matrices){
        .all = {all[0].bytes, all[1].bytes, all[0].update + all[1].update},
        .most = {most[0].bytes, most[1].bytes, most[0].update + most[1].update}};
    return CS_OK;
}

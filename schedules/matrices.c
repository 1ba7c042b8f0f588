#include "schedules/matrices.h"

#include "schedules/states.h"

#include <stdlib.h>

/* Matrices assigned to one place: bytes, update time and messages. */
typedef struct load {
    int64_t bytes;
    cs_time update;
    cs_matrix_messages messages;
} load;

static bool is_less(const load *a, const load *b)
{
    return a->bytes < b->bytes;
}

/* Adds a matrix to a load. Returns false if its messages overflow. */
static bool add(load *to, const cs_layer_matrix *matrix)
{
    cs_matrix_messages *m = &to->messages;
    int64_t summed;
    to->bytes += matrix->bytes;
    to->update += matrix->update;
    m->n_gathered += matrix->gather_bytes > 0;
    return !__builtin_add_overflow(m->n_summed, matrix->n_sums, &m->n_summed) &&
           !__builtin_mul_overflow(matrix->sum_bytes, (int64_t)matrix->n_sums, &summed) &&
           !__builtin_add_overflow(m->summed, summed, &m->summed) &&
           !__builtin_add_overflow(m->gathered, matrix->gather_bytes, &m->gathered);
}

/* Restores the heap after its first element has grown. */
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

/* Sorts by size, largest first, then by update time, slowest first. */
static int compare_sizes(const void *a, const void *b)
{
    const cs_layer_matrix *left = a, *right = b;
    const int order = (left->bytes < right->bytes) - (left->bytes > right->bytes);
    return order != 0 ? order : (left->update < right->update) - (left->update > right->update);
}

static void take_most(cs_matrix_messages *most, const cs_matrix_messages *one)
{
    most->gathered = one->gathered > most->gathered ? one->gathered : most->gathered;
    most->summed = one->summed > most->summed ? one->summed : most->summed;
    most->n_gathered = one->n_gathered > most->n_gathered ? one->n_gathered : most->n_gathered;
    most->n_summed = one->n_summed > most->n_summed ? one->n_summed : most->n_summed;
}

static load most_of(const load *places, uint32_t n)
{
    load most = {0};
    for (uint32_t i = 0; i < n; i++) {
        most.bytes = places[i].bytes > most.bytes ? places[i].bytes : most.bytes;
        most.update = places[i].update > most.update ? places[i].update : most.update;
        take_most(&most.messages, &places[i].messages);
    }
    return most;
}

/* Finds the largest load among n places. Sorts the matrices. */
static cs_status divide(cs_layer_matrix *matrices, uint32_t n_matrices, uint32_t n, load *most,
                        cs_error *error)
{
    load *places = calloc(n, sizeof(*places));
    bool fits = true;
    if (!places)
        return cs_error_no_memory(error);
    qsort(matrices, n_matrices, sizeof(*matrices), compare_sizes);
    for (uint32_t i = 0; i < n_matrices; i++) {
        for (uint32_t k = 0; k < matrices[i].n; k++) {
            fits &= add(&places[0], &matrices[i]);
            sink(places, n);
        }
    }
    *most = most_of(places, n);
    free(places);
    return fits ? CS_OK
                : cs_error_add(error, CS_OVERFLOW, "messages of matrices do not fit 64 bits");
}

/* Copies matrices that are experts' or not, and returns their number. */
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

/* Joins the loads of dense matrices and experts. */
static cs_matrices join(const load of[2])
{
    return (cs_matrices){of[0].bytes, of[1].bytes, of[0].update + of[1].update, of[0].messages,
                         of[1].messages};
}

cs_status cs_stage_matrices_find(const cs_job *job, uint32_t stage, cs_stage_matrices *found,
                                 cs_error *error)
{
    load all[2], most[2];
    for (int expert = 0; expert < 2; expert++)
        CS_TRY(find_kind(job, stage, expert > 0, &all[expert], &most[expert], error));
    *found = (cs_stage_matrices){join(all), join(most)};
    return CS_OK;
}

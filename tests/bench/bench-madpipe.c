/* Measures MadPipe's first phase: bench-madpipe [LAYERS...]
 *
 * ResNet-101 at 1000 x 1000 pixels, batch 8, on 8 devices of 12 GB/s: 73 layers, adjacent layers
 * merged if fewer are requested (the shortest pair first). For each number of layers and each
 * memory it prints the time of algorithm 1 with K = 10, the best expected period over the load per
 * device, the size of the search, and a hash of all allocations: a speed-up that changes it changed
 * the answers. Without arguments: 21 40 73. Fails when a case takes longer than the limit.
 */
#include "schedules/plan/madpipe-dp.h"
#include "sim/base/hash.h"
#include "sim/run/scenario/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const double gigabytes[] = {3, 4, 6, 8, 12, 16};

static cs_status make_model(cs_model *model, cs_error *error)
{
    cs_net net = {0};
    cJSON *parameters = cJSON_Parse("{\"image\": 1000}");
    cs_workload workload = {
        .name = "resnet101", .parameters = parameters, .device = "v100", .batch_size = 8};
    cs_json_place place = {.key = "model"};
    cs_status status = cs_workload_network(&workload, &place, &net, error);
    if (status == CS_OK)
        status = cs_workload_model(&workload, &net, model, error);
    cs_net_finish(&net);
    cJSON_Delete(parameters);
    return status;
}

static double seconds_for(uint32_t layers)
{
    return layers <= 21 ? 0.3 : layers <= 40 ? 2 : 10;
}

static cs_time both(const cs_chain *chain, uint32_t l)
{
    return cs_chain_load(chain, l, l + 2);
}

static void remove_boundary(cs_chain *chain, uint32_t b)
{
    for (uint32_t i = b; i < chain->n_layers; i++) {
        chain->sum_forward[i] = chain->sum_forward[i + 1];
        chain->sum_backward[i] = chain->sum_backward[i + 1];
        chain->sum_fixed[i] = chain->sum_fixed[i + 1];
        chain->sum_kept[i] = chain->sum_kept[i + 1];
        chain->boundary[i] = chain->boundary[i + 1];
        chain->message[i] = chain->message[i + 1];
    }
    chain->n_layers--;
}

static void join(cs_chain *chain, uint32_t n_layers)
{
    while (chain->n_layers > n_layers) {
        uint32_t least = 0;
        for (uint32_t l = 1; l + 2 <= chain->n_layers; l++)
            if (both(chain, l) < both(chain, least))
                least = l;
        remove_boundary(chain, least + 1);
    }
}

static uint64_t hash_of(const cs_madpipe_allocations *found)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < found->n; i++) {
        const cs_madpipe_allocation *one = &found->all[i];
        hash = cs_hash_bytes(&one->promised, sizeof(one->promised), hash);
        hash = cs_hash_bytes(one->plan.stages, one->plan.n_stages * sizeof(cs_stage), hash);
        hash = cs_hash_bytes(one->plan.devices, one->plan.n_stages * sizeof(uint32_t), hash);
    }
    return hash;
}

static double load_per_device(const cs_chain *chain)
{
    return (double)cs_chain_load(chain, 0, chain->n_layers) / chain->n_devices;
}

static cs_status run(const cs_chain *chain, const cs_madpipe_options *options, const char *name,
                     double *slowest, cs_error *error)
{
    cs_madpipe_allocations found = {0};
    clock_t start = clock();
    cs_status status = cs_madpipe_allocate(chain, options, &found, error);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (status != CS_OK)
        return status;
    double promised = found.n > 0 ? (double)found.all[0].promised : 0;
    printf("%6" PRIu32 " %6.0f  %-10s %8.3f %12.4f %12" PRIu32 " %10" PRIu64 " %10" PRIu64
           "  %016" PRIx64 "\n",
           chain->n_layers, (double)chain->memory / 1e9, name, seconds,
           promised / load_per_device(chain), found.n, found.work.labels, found.work.stages,
           hash_of(&found));
    *slowest = seconds > *slowest ? seconds : *slowest;
    cs_madpipe_allocations_finish(&found);
    return CS_OK;
}

static cs_status run_specials(const cs_chain *chain, double *slowest, cs_error *error)
{
    static const char *const specials[] = {"optimistic", "safe", "none"};
    cs_madpipe_options options = {.loads = 101, .memories = 11, .delays = 51, .iterations = 10};
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < 3 && status == CS_OK; i++) {
        options.special = i;
        status = run(chain, &options, specials[i], slowest, error);
    }
    return status;
}

static cs_status bench(const cs_model *model, uint32_t layers, cs_error *error)
{
    cs_chain_options options = {.model = model,
                                .n_devices = 8,
                                .micro_samples = 8,
                                .speed = 1,
                                .memory = INT64_MAX,
                                .bandwidth = 12e9,
                                .kept = CS_KEPT_LITERAL,
                                .weight_copies = 3};
    cs_chain chain;
    cs_status status = cs_chain_make(&options, &chain, error);
    if (status != CS_OK)
        return status;
    join(&chain, layers);
    double slowest = 0;
    for (size_t m = 0; m < sizeof(gigabytes) / sizeof(*gigabytes) && status == CS_OK; m++) {
        chain.memory = (int64_t)(gigabytes[m] * 1e9);
        status = run_specials(&chain, &slowest, error);
    }
    if (status == CS_OK && slowest > seconds_for(layers))
        status = cs_error_add(error, CS_LIMIT, "%" PRIu32 " layers took %.3f s, more than %g s",
                              layers, slowest, seconds_for(layers));
    cs_chain_finish(&chain);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"21", "40", "73"};
    cs_model model = {0};
    cs_error error;
    cs_error_init(&error);
    cs_status status = make_model(&model, &error);
    int n = argc > 1 ? argc - 1 : (int)(sizeof(usual) / sizeof(*usual));
    printf("layers memory  special     seconds  period/load  allocations     labels     stages  "
           "hash\n");
    for (int i = 0; i < n && status == CS_OK; i++)
        status = bench(&model, (uint32_t)atoi(argc > 1 ? argv[i + 1] : usual[i]), &error);
    cs_model_finish(&model);
    if (status != CS_OK)
        fprintf(stderr, "bench-madpipe: %s\n", error.text);
    return status != CS_OK;
}

/* What a user asks for when a model comes from an architecture: the network, its parameters, and
 * how it is trained on what. Scenarios and `sim model` read it from the same table of fields.
 */
#ifndef CS_SCENARIO_WORKLOAD_H
#define CS_SCENARIO_WORKLOAD_H

#include "sim/model/net-adapters.h"
#include "sim/model/net-model.h"

typedef struct cs_workload {
    const char *name;        /* of the zoo, a config.json of transformers, or a file (net-file.h) */
    const cJSON *parameters; /* of the network, an object or NULL; must live on */
    const char *device;      /* NULL: none, all times are 0 */
    uint32_t precision;      /* cs_precision */
    uint32_t granularity;    /* cs_granularity */
    bool recompute, early_stop;
    cs_list recompute_operators; /* const char *, names as recompute.h has them */
    cs_list discard_operators;   /* the same */
    cs_adapters *lora;           /* what is trained beside frozen weights, or NULL */
    const char *measured;        /* a model file whose layers' times replace estimates, or NULL */
    /* not from the table: */
    uint32_t batch_size;
    double optimizer_states; /* values per weight, see cs_net_options */
    cs_muon muon;            /* zeroed: another optimizer */
    bool float_gradients;    /* gradients in float32 */
    cs_optimizer_storage storage;
    cs_runtime_kernels kernels; /* zeroed: rooflines */
    cs_kept_rules kept;
    bool offloads; /* something is offloaded, by these rules */
    cs_offload_rules offload;
    bool tapes;               /* tensors one by one are asked for */
    const cs_measured *costs; /* measured times of operators, or NULL */
    const cs_split *split;    /* the model is one device's part of the network; NULL: all of it */
    const char *from;         /* the file that paths are relative to, or NULL */
    const char *date;         /* of the provenance, or NULL */
} cs_workload;

/* name, parameters, device, precision, granularity, recompute, recompute_operators,
 * discard_operators, lora, measured; ended by {0}. */
extern const cs_field cs_workload_fields[];

/* The network that is asked for. `place` is where the object with the parameters stands. */
CS_MUST_CHECK cs_status cs_workload_network(const cs_workload *workload, const cs_json_place *place,
                                            cs_net *net, cs_error *error);

/* Takes the precision that a config.json asks for, where the user does not say one. */
void cs_workload_take_precision(cs_workload *workload, const cs_net *net);

/* The device and the options for net-model.h. The device is the caller's to finish. */
CS_MUST_CHECK cs_status cs_workload_options(const cs_workload *workload, cs_accelerator *device,
                                            cs_net_options *options, cs_error *error);

/* The model of a network, measured times in the place of estimates where there are any. */
CS_MUST_CHECK cs_status cs_workload_model(const cs_workload *workload, const cs_net *net,
                                          cs_model *model, cs_error *error);

/* Adds what the network takes for `samples` samples, at least 1, to its model, unless it is there.
 * */
CS_MUST_CHECK cs_status cs_workload_add_batch(const cs_workload *workload, const cs_net *net,
                                              uint32_t samples, cs_model *model, cs_error *error);

/* Replaces the times of the layers of `model` that `measured` has by name, scaled to the batch, and
 * says in its provenance how many: `origin` is what the measurements are called. *n gets how many.
 */
CS_MUST_CHECK cs_status cs_model_take_times(cs_model *model, const cs_model *measured,
                                            const char *origin, uint32_t *n, cs_error *error);

#endif

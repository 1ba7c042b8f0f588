/* A model that is built from an architecture: the network, its parameters, and how it is trained on
 * which device. Scenarios and `sim model` read it with the same table of fields. */
#ifndef CS_SCENARIO_WORKLOAD_H
#define CS_SCENARIO_WORKLOAD_H

#include "sim/model/net-adapters.h"
#include "sim/model/net-model.h"

typedef struct cs_workload {
    const char *name;        /* name of a built-in model, a config.json of transformers, or a
                              * network file (net-file.h) */
    const cJSON *parameters; /* parameters of the network, an object or NULL; must outlive the
                              * workload */
    const char *device;      /* NULL: no device, all times are 0 */
    uint32_t precision;      /* cs_precision */
    uint32_t granularity;    /* cs_granularity */
    bool recompute, early_stop;
    cs_list recompute_operators; /* const char *, names as in recompute.h */
    cs_list discard_operators;   /* likewise */
    cs_adapters *lora;           /* adapters to train while all other weights are frozen, or NULL */
    const char *measured;        /* path of a model file whose layer times replace the estimates, or
                                  * NULL */
    /* not from the table: */
    uint32_t batch_size;
    double optimizer_states; /* values per weight, see cs_net_options */
    cs_muon muon;            /* zeroed: the optimizer is not Muon */
    bool float_gradients;    /* gradients in float32 */
    cs_optimizer_storage storage;
    cs_runtime_kernels kernels; /* zeroed: rooflines */
    cs_kept_rules kept;
    bool offloads; /* tensors are offloaded by the rules in `offload` */
    cs_offload_rules offload;
    bool tapes;               /* tensors are listed one by one, for an allocator */
    const cs_measured *costs; /* measured times of operators, or NULL */
    const cs_split *split;    /* how the network is split; the model is one device's part. NULL: not
                               * split */
    const char *from;         /* file that paths are relative to, or NULL */
    const char *date;         /* date for the provenance, or NULL */
} cs_workload;

/* Fields: name, parameters, device, precision, granularity, recompute, recompute_operators,
 * discard_operators, lora, measured; ended by {0}. */
extern const cs_field cs_workload_fields[];

/* Builds the network. `place` is the JSON object that contains the key "parameters". */
CS_MUST_CHECK cs_status cs_workload_network(const cs_workload *workload, const cs_json_place *place,
                                            cs_net *net, cs_error *error);

/* Takes the precision from the network's config.json, if it states one. */
void cs_workload_take_precision(cs_workload *workload, const cs_net *net);

/* Loads the device and sets the options for net-model.h. The caller finishes the device. */
CS_MUST_CHECK cs_status cs_workload_options(const cs_workload *workload, cs_accelerator *device,
                                            cs_net_options *options, cs_error *error);

/* Builds the model of a network; measured times replace estimates where available. */
CS_MUST_CHECK cs_status cs_workload_model(const cs_workload *workload, const cs_net *net,
                                          cs_model *model, cs_error *error);

/* Adds times and sizes for `samples` samples, at least 1, to the network's model, unless it has
 * them. */
CS_MUST_CHECK cs_status cs_workload_add_batch(const cs_workload *workload, const cs_net *net,
                                              uint32_t samples, cs_model *model, cs_error *error);

/* Replaces the times of the layers of `model` that `measured` contains under the same name, scaled
 * to the batch size, and notes their number in the provenance; `origin` names the measurements. *n
 * gets the number of replaced layers. */
CS_MUST_CHECK cs_status cs_model_take_times(cs_model *model, const cs_model *measured,
                                            const char *origin, uint32_t *n, cs_error *error);

#endif

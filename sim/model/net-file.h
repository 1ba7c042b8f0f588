/* Networks as JSON: the operators of each layer and their inputs, as `sim model --json` prints them
 * and `sim model --output` writes them to a model file (docs/reference/model-file.md).
 *
 *     {"name": ..., "inputs": [{"name": "input", "shape": [3, 224, 224]}],
 *      "layers": [{"operators": [{"name": "conv1", "kind": "conv", "inputs": ["input"], ...}]}]}
 *
 * Operators are in the order of execution, and refer by name to inputs and earlier operators. Keys
 * that follow from the rest are optional: shapes, except result shapes that do not follow from the
 * inputs, as for linear layers and views; and parameters, except in tables. Optional keys
 * that are given must be correct.
 */
#ifndef CS_WORKLOAD_NET_FILE_H
#define CS_WORKLOAD_NET_FILE_H

#include "sim/model/net-model.h"

#include <cjson/cJSON.h>

/* Whether a JSON document is a network in this form. */
bool cs_net_is_file(const cJSON *root);

/* Reads a network. CS_INVALID, with the place, for keys that are missing or values that are
 * impossible. */
CS_MUST_CHECK cs_status cs_net_read(const cJSON *root, const cs_json_place *place, cs_net *net,
                                    cs_error *error);

/* Adds "inputs" to a document, "carried" if a tensor is carried, and "operators" to each of its
 * "layers", which are the layers of the chain. False if memory runs out. */
bool cs_net_operators_write(const cs_net *net, const cs_net_chain *chain, cJSON *root);

/* Writes a network and its chain as JSON with all values computed from the architecture: totals,
 * and per layer its operators with kind, shapes, parameters, flop of the three passes, bytes moved,
 * saved activations, workspace and seconds. Keys end in their unit. NULL if memory runs out. */
cJSON *cs_net_json(const cs_net *net, const cs_net_options *options, const cs_net_chain *chain);

#endif

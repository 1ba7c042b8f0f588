/* Networks as JSON: the operators of each layer with what they read, as `sim model --json` prints
 * them and `sim model --output` puts them into a model file (docs/reference/model-file.md).
 *
 *     {"name": ..., "inputs": [{"name": "input", "shape": [3, 224, 224]}],
 *      "layers": [{"operators": [{"name": "conv1", "kind": "conv", "inputs": ["input"], ...}]}]}
 *
 * Operators stand in the order of execution and read inputs and operators before them, by name.
 * What follows from the rest need not be there: shapes, but for what a layer or a view makes of its
 * input, and parameters, but for those of tables. What is there has to be right.
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

/* Reader of config.json, the file that transformers stores next to a model's weights.
 *
 * "model_type" names a file in facts/model-types, or a user's FILE.json of the same form, which
 * says what the keys of the config mean:
 *
 *     {"name": "mistral", "family": "decoder", "like": "llama", "source": ...,
 *      "keys": {"hidden_size": "hidden", "sliding_window": {"key": "window", "default": 4096}},
 *      "sequence": "max_position_embeddings", "parameters": {"bias": false},
 *      "fixed": {"mlp_bias": false}}
 *
 * "keys" maps each key of the config to the key of the family (sim/model/zoo) that it sets, or to
 * an object with these members:
 *
 *     "key"       the key of the family; without it, the value is a size that other members use
 *     "default"   the value if the config lacks the key; without it, a missing key is an error
 *     "null"      the value if the config has null
 *     "values"    replacements of words
 *     "count"     an object whose members are counted if the key is missing
 *     "limit"     if true, the key only limits the value that the user gives
 *
 * "sequence" names the key with the number of positions. "parameters" has keys of the family that
 * are the same for all configs. "fixed" has keys of the config that have only one supported value.
 * "products" has two lists of keys whose products must be equal. "pattern" gives the kinds of
 * layers (read_pattern in huggingface.c). All other keys of the config are ignored. */
#ifndef CS_FOREIGN_HUGGINGFACE_H
#define CS_FOREIGN_HUGGINGFACE_H

#include "sim/base/facts.h"
#include "sim/model/net.h"

/* The files in facts/model-types, for cs_facts_load. */
extern const cs_facts_kind cs_model_type_kind;

/* Reads a network from a config.json. `parameters` (an object at `place`, or NULL) has the values
 * that the file lacks:
 *
 *     "sequence"           tokens per sample; default: the number of positions, at most 4096
 *     "attention"          "flash" or "math"
 *     "capacity"           capacity of experts
 *     "decoder_sequence"   tokens of T5's decoder
 *     "next_tokens"        modules of multi-token prediction
 *
 * Errors name the file; the error for an unknown model type says where to find the known types. */
CS_MUST_CHECK cs_status cs_huggingface_load(const char *path, const cJSON *parameters,
                                            const cs_json_place *place, cs_net *net,
                                            cs_error *error);
CS_MUST_CHECK cs_status cs_huggingface_read(const cJSON *root, const char *file,
                                            const cJSON *parameters, const cs_json_place *place,
                                            cs_net *net, cs_error *error);

#endif

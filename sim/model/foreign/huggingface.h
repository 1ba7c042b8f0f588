/* Reader of config.json, the file that transformers stores beside a model's weights.
 *
 * "model_type" names a file of facts/model-types, or a user's FILE.json of the same form, which
 * says what the keys of the config mean:
 *
 *     {"name": "mistral", "family": "decoder", "like": "llama", "source": ...,
 *      "keys": {"hidden_size": "hidden", "sliding_window": {"key": "window", "default": 4096}},
 *      "sequence": "max_position_embeddings", "parameters": {"bias": false},
 *      "fixed": {"mlp_bias": false}}
 *
 * "keys": per key of the config the key of the family (sim/model/zoo) that it gives; without
 * "key" it is a size that other members use. "default" holds if the config lacks the key, which is
 * an error without one; "null" if its value is null; "values" replaces words; "count" names an
 * object whose members are counted if the key is missing; "limit": the user's value is at most
 * this. "sequence" names the key with the number of positions, "parameters" has keys of the family
 * that are the same for all configs, "fixed" has keys of the config with the only value that can be
 * built, "products" two lists of keys with equal products, "pattern" the kinds of layers
 * (read_pattern in huggingface.c). All other keys of the config are ignored.
 */
#ifndef CS_FOREIGN_HUGGINGFACE_H
#define CS_FOREIGN_HUGGINGFACE_H

#include "sim/base/facts.h"
#include "sim/model/net.h"

/* The files of facts/model-types, for cs_facts_load. */
extern const cs_facts_kind cs_model_type_kind;

/* `parameters` (an object or NULL, at `place`) are what the file does not tell: "sequence", the
 * tokens of a sample (default: as many as there are positions, 4096 at most), "attention", "flash"
 * or "math", "capacity" of experts, "decoder_sequence" of T5, and "next_tokens", modules of
 * multi-token prediction. Errors name the file; an unknown model type lists the known ones. */
CS_MUST_CHECK cs_status cs_huggingface_load(const char *path, const cJSON *parameters,
                                            const cs_json_place *place, cs_net *net,
                                            cs_error *error);
CS_MUST_CHECK cs_status cs_huggingface_read(const cJSON *root, const char *file,
                                            const cJSON *parameters, const cs_json_place *place,
                                            cs_net *net, cs_error *error);

#endif

/* Reader of config.json, the file that transformers stores beside a model's weights.
 *
 * Known values of "model_type": gpt2, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe,
 * deepseek_v2, deepseek_v3, gpt_oss, mamba2, bamba, t5, bert, vit. Keys that do not change sizes
 * are left alone; those that do are read with the defaults of transformers, and checked; one whose
 * value would make a network that cannot be built is an error with its name.
 */
#ifndef CS_FOREIGN_HUGGINGFACE_H
#define CS_FOREIGN_HUGGINGFACE_H

#include "sim/base/json.h"
#include "sim/workload/net.h"

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

/* Families of networks described in JSON: files in facts/families, or a user's file of this form:
 *
 *     {"name": "lenet", "summary": ..., "source": ...,
 *      "keys": [{"name": "image", "default": 32, "min": 1, "max": 1024, "doc": "pixels"},
 *               {"name": "pool", "choices": ["max", "mean"], "default": "max", "doc": ...}],
 *      "constants": {"widths": [6, 16]},
 *      "checks": [{"key": "image", "if": "image % 4", "message": "must be a multiple of 4"}],
 *      "parts": {"stage": [{"conv": "conv", "out": "width", "kernel": 5, "bias": true},
 *                          {"relu": "relu"},
 *                          {"max_pool": "pool", "kernel": 2}]},
 *      "network": [{"image": "x", "shape": [1, "image", "image"]},
 *                  {"repeat": "i", "times": "widths.n", "steps": [
 *                    {"block": "stage{i + 1}"},
 *                    {"part": "stage", "with": {"width": "widths[i]"}}]},
 *                  ...]}
 *
 * "keys" are the parameters that users set. A value is a whole number (any number with "type":
 * "number"), true or false, one of "choices", or with "most": N a number or a list of up to N
 * numbers. The first key of a step, except "if" and "in", says what the step does:
 *
 *     "block"                      begins a layer of the coarse chain
 *     "steps"                      runs these steps
 *     "repeat": "i"                runs "steps" as often as "times" says, with i = 0, 1, ...
 *     "let": {name: formula}       sets numbers
 *     "part": name                 runs the steps of a part, with the numbers in "with"
 *     "take": tensor               gives a tensor another name: "as"
 *     "image" "token_ids" "more_token_ids"   adds an input with its "shape" or number of "tokens"
 *     "carry": tensor              see cs_net_carry
 *     "flatten" "tokens" "features" "first_of" "learned"   calls cs_net_flatten, tokens, features
 *                                  ("out"), take_first or add_learned
 *     any kind of operator         adds an operator of that kind, with the keys of network files
 *                                  (net-file.h). "out": features or channels of its result. One
 *                                  number gives equal sizes in all directions
 *
 * A step may have "if" (a formula), "else" (steps), and "in" (a scope of names). If the formula
 * "if" of a check is true, the check refuses the key; with "repeat" and "times" it is tested for
 * each i. An operator reads "of" (a tensor or a list; default "x"), and "as" names its result
 * (default "x"). Numbers are formulas (formula.h) of keys, constants, numbers set by "let", and
 * KEY.CHOICE (1 if that choice was made); names may contain {formulas}. */
#ifndef CS_MODEL_DESCRIBED_H
#define CS_MODEL_DESCRIBED_H

#include "sim/model/zoo/zoo.h"

/* Reads a family from its description, into the arena; messages name the document `file`. */
CS_MUST_CHECK cs_status cs_family_read(const cJSON *root, const char *file, cs_arena *arena,
                                       cs_zoo_entry *family, cs_error *error);

#endif

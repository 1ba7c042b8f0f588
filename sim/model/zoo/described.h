/* Families of networks that JSON describes: facts/families, or a user's file of this form.
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
 * "keys" are the parameters that users set: whole numbers, or with "type": "number" any numbers;
 * true or false; one of "choices"; with "most" a number or a list of up to that many. The first key
 * of a step, except "if" and "in", says what it does:
 *
 *     "block"                      begins a layer of the coarse chain
 *     "steps"                      does these
 *     "repeat": "i"                does "steps" as many "times", with i = 0, 1, ...
 *     "let": {name: formula}       sets numbers
 *     "part": name                 does the steps of a part, "with" numbers
 *     "take": tensor               gives a tensor another name, "as"
 *     "image" "token_ids" "more_token_ids"   an input: its "shape", or "tokens"
 *     "carry": tensor              see cs_net_carry
 *     "flatten" "tokens" "features" "first_of" "learned"   cs_net_flatten, tokens, features ("out"),
 *                                  take_first and add_learned
 *     any kind of operator         adds one of that name, with the keys of files of networks
 *                                  (net-file.h). "out": features or channels of its result. One
 *                                  number gives equal sizes in all directions
 *
 * A step may have "if", a formula, and "else", steps; and "in", a scope of names. A check whose "if"
 * holds refuses the key; with "repeat" and "times" it is tested for each. An operator reads "of" (a tensor or a list;
 * default "x") and its result is called "as" (default "x"). Numbers are formulas (formula.h) of
 * keys, constants, numbers that were let, and KEY.CHOICE (1 if that is chosen); names may have
 * {formulas} in them. */
#ifndef CS_MODEL_DESCRIBED_H
#define CS_MODEL_DESCRIBED_H

#include "sim/model/zoo/zoo.h"

/* Makes a family of its description, in the arena; messages call the document `file`. */
CS_MUST_CHECK cs_status cs_family_read(const cJSON *root, const char *file, cs_arena *arena,
                                       cs_zoo_entry *family, cs_error *error);

#endif

/* Weights and samples that do not depend on how a network is divided: each number is a function of
 * its position in the whole tensor. */
#ifndef CS_CALIB_NUMBERS_H
#define CS_CALIB_NUMBERS_H

#include "calib/bench/train/trainer.h"

/* Fills the weights and then the biases that this place has of an operator. They are uniform
 * around 0, or around 1 for the scale of a norm, and as wide as keeps the variance of the
 * layer's input. */
CS_MUST_CHECK cs_status cs_numbers_parameters(const cs_trainer *trainer, uint32_t op, float *to,
                                              cs_error *error);

/* Fills an input of the network, for samples from `sample` on. Ids are less than `ids`. */
void cs_numbers_input(const cs_trainer *trainer, cs_tensor tensor, uint64_t sample, int64_t ids,
                      void *to);

#endif

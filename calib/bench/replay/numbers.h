/* Weights and samples that are the same however a network is divided: each number is drawn from its
 * place in the whole tensor. */
#ifndef CS_CALIB_NUMBERS_H
#define CS_CALIB_NUMBERS_H

#include "calib/bench/train/trainer.h"

/* The weights, then the biases, that the place has of an operator of its part of the network:
 * uniform around 0, or of a norm's scale around 1, and as wide as keeps the variance of what a
 * layer reads. */
CS_MUST_CHECK cs_status cs_numbers_parameters(const cs_trainer *trainer, uint32_t op, float *to,
                                              cs_error *error);

/* An input of the network, for samples from number `sample` on. Ids are below `ids`. */
void cs_numbers_input(const cs_trainer *trainer, cs_tensor tensor, uint64_t sample, int64_t ids,
                      void *to);

#endif

/* Deterministic random streams for GSL's distributions.
 *
 * One seed for a run; each use draws from a stream of its own, named by text, so that adding a use
 * changes no other one. The generator is xoshiro256** (Blackman and Vigna 2021), its state filled
 * by splitmix64 from the hash of seed and name.
 */
#ifndef CS_BASE_RANDOM_H
#define CS_BASE_RANDOM_H

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* A generator to use with gsl_ran_*; free it with gsl_rng_free. NULL when memory runs out (if the
 * program has turned off GSL's error handler, which would abort before). */
gsl_rng *cs_random_stream(uint64_t seed, const char *name);

#endif

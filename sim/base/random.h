/* Deterministic random streams for GSL's distributions.
 *
 * A run has one seed; each use draws from its own stream, identified by name, so that adding a use
 * does not change the others. The generator is xoshiro256** (Blackman and Vigna 2021), whose state
 * splitmix64 fills from the hash of seed and name.
 */
#ifndef CS_BASE_RANDOM_H
#define CS_BASE_RANDOM_H

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* Returns a generator for gsl_ran_*; free it with gsl_rng_free. NULL if memory runs out (provided
 * the program has turned off GSL's error handler, which aborts). */
gsl_rng *cs_random_stream(uint64_t seed, const char *name);

#endif

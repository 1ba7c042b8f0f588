/* Random small scenarios of a schedule, as text: layers of few picoseconds and bytes, alike or not,
 * on devices alike or not, over links free, slow or shared, with blocking messages now and then.
 * Most hold some assumption of a closed form just so, or just not. */
#ifndef CS_TESTS_RANDOM_SCENARIO_H
#define CS_TESTS_RANDOM_SCENARIO_H

#include <gsl/gsl_rng.h>

enum { RANDOM_SCENARIO_BYTES = 4000 };

/* JSON with ' in place of ", for scenario_run_init. `kind` names a schedule other than custom. */
void random_scenario(gsl_rng *random, const char *kind, char text[RANDOM_SCENARIO_BYTES]);

#endif

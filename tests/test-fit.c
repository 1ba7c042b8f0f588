#include "calib/fit.h"
#include "sim/base/random.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>

#include <cmocka.h>
int main(void){return 0;}

/* The ranked plans as a table with one column per choice that differs. Choices that all plans share
 * are printed once, above it. Internal to sim/study/advise. */
#ifndef CS_ADVISE_ADVISE_TABLE_H
#define CS_ADVISE_ADVISE_TABLE_H

#include "sim/study/advise/advise.h"

#include <stdio.h>

void cs_advice_table_print(const cs_advice *advice, FILE *out);

#endif

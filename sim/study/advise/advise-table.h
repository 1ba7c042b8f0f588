/* The ranked plans as a table: a column for each choice in which they differ; what they have in
 * common is said once. Internal to sim/study/advise. */
#ifndef CS_ADVISE_ADVISE_TABLE_H
#define CS_ADVISE_ADVISE_TABLE_H

#include "sim/study/advise/advise.h"

#include <stdio.h>

void cs_advice_table_print(const cs_advice *advice, FILE *out);

#endif

/* Closed forms that a schedule states are among those that it lists. */
#ifndef CS_TESTS_LISTED_FORMULA_H
#define CS_TESTS_LISTED_FORMULA_H

#include "schedules/schedule.h"

#include <string.h>

static inline bool lists_formula(const cs_schedule *schedule, const char *formula)
{
    for (size_t i = 0; schedule->formulas && schedule->formulas[i]; i++) {
        if (strcmp(schedule->formulas[i], formula) == 0)
            return true;
    }
    return false;
}

#endif

/* Closed forms that a schedule states are among those that it lists, of the same figure and
 * standing.
 */
#ifndef CS_TESTS_LISTED_FORMULA_H
#define CS_TESTS_LISTED_FORMULA_H

#include "schedules/schedule.h"

#include <string.h>

static inline bool lists_form(const cs_schedule *schedule, const cs_form *form)
{
    for (const cs_formula *at = schedule->formulas; at && at->text; at++) {
        if (strcmp(at->text, form->formula) == 0 && at->figure == form->figure &&
            at->comparison == form->comparison)
            return true;
    }
    return false;
}

#endif

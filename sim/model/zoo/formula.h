/* Formulas of numbers, in descriptions of networks: "intermediate or 4 * hidden".
 *
 *     or and not      `a or b` is a unless a is 0; `a and b` is b unless a is 0
 *     = != < <= > >=  1 or 0
 *     + - * / %       of doubles; / is exact division, % the remainder of whole numbers
 *     ( )  12  name  list[index]
 *
 * in the order of binding, `or` binds least. Names may contain dots. */
#ifndef CS_MODEL_FORMULA_H
#define CS_MODEL_FORMULA_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the value of a name, of element `index` of a list, or (index -1) of a number. False: the
 * name is unknown. */
typedef bool cs_formula_names(const void *context, const char *name, int index, double *value);

/* Evaluates a formula. On failure returns false and says in `wrong` what is wrong with it. */
bool cs_formula_value(const char *text, cs_formula_names *names, const void *context, double *value,
                      char *wrong, size_t size);

#endif

/* Formulas with numbers, for descriptions of networks: "intermediate or 4 * hidden".
 *
 *     or and not      `a or b` is a unless a is 0; `a and b` is b unless a is 0
 *     = != < <= > >=  1 or 0
 *     + - * / %       of doubles; / is exact division, % the remainder of whole numbers
 *     ( )  12  name  list[index]
 *
 * Operators that bind less tightly are listed first: `or` binds least. Names may contain dots. */
#ifndef CS_MODEL_FORMULA_H
#define CS_MODEL_FORMULA_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the value of a name: element `index` of a list, or a number if index is -1. Returns false
 * if the name is unknown. */
typedef bool cs_formula_names(const void *context, const char *name, int index, double *value);

/* Evaluates a formula. On failure returns false and writes a message to `wrong`. */
bool cs_formula_value(const char *text, cs_formula_names *names, const void *context, double *value,
                      char *wrong, size_t size);

#endif

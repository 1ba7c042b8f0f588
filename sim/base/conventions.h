/* Conditions on the values of keys, and conventions: values that keys get under conditions. They
 * are stated in files of facts, and in users' files of the same form.
 *
 * A convention is an object
 *
 *     {"key": "/runtime/flash", "value": "cudnn", "with": "/model/precision!=fp32
 *      /device/architecture/capability>=9", "source": "..."}
 *
 * It sets a key of a document if the document does not state the key and all conditions in "with"
 * hold. Conditions are separated by blanks:
 *
 *     /model/name                  the key is given
 *     !/parallel/rules             the key is not given
 *     /schedule/kind=1f1b|gpipe    its value (text, number, true, false) is one of these
 *     /platform/topology=dgx1*     its value begins with "dgx1": '*' is any text, '?' any
 *                                  character
 *     /runtime/fused!=true         it has another value, or is not given
 *     /parallel/pipeline>1         also >=, < and <=. In a text, the numbers between dots are
 *     /runtime/release<2.10        compared: 2.10 is later than 2.9
 *     /schedule/micro_batches%/parallel/pipeline      a multiple of another key's number,
 *     /model/parameters/sequence%2:/parallel/context  or of twice that number
 *
 * The first convention in a list that applies to a key wins. Later conditions see the values that
 * earlier conventions have set.
 */
#ifndef CS_BASE_CONVENTIONS_H
#define CS_BASE_CONVENTIONS_H

#include "sim/base/json.h"

/* Returns the value of a key; NULL: not given. A value that is in no document can be written into
 * `made`. */
typedef const cJSON *cs_key_value(void *context, const char *key, cJSON *made);

/* Whether all conditions hold (NULL and "": yes). A comparison other than "!=" with a key that is
 * not given yields `missing`. */
bool cs_conditions_hold(const char *conditions, bool missing, cs_key_value *value, void *context);

/* Returns CS_INVALID if a condition has none of the forms above. */
CS_MUST_CHECK cs_status cs_conditions_check(const char *conditions, const cs_json_place *place,
                                            cs_error *error);

/* Called for each convention that applies. Returns the value for its key; NULL: the key stays
 * as it is. */
typedef const cJSON *cs_convention_use(void *context, const cJSON *convention, const char *key);

/* Sets keys of `root` by the conventions of a list (NULL: none). The value null leaves a key unset
 * and stops later conventions from setting it. Conditions ask `value` (NULL: look keys up in
 * `root`). `use` chooses the value (NULL: the convention's own). Messages name `origin`. */
CS_MUST_CHECK cs_status cs_conventions_apply(const cJSON *conventions, cJSON *root,
                                             cs_key_value *value, cs_convention_use *use,
                                             void *context, const char *origin, cs_error *error);

#endif

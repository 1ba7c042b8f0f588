#include "sim/run/print/print-json.h"

#include "sim/base/version.h"

#include <stdlib.h>

/* Moves the keys of `root` after the versions. */
static cJSON *with_versions(cJSON *root)
{
    cJSON *all = cJSON_CreateObject();
    bool done = cJSON_AddNumberToObject(all, "schema_version", CS_PRINTED_SCHEMA_VERSION) &&
                cJSON_AddStringToObject(all, "program_version", SIM_VERSION);
    while (done && root->child) {
        cJSON *item = cJSON_DetachItemViaPointer(root, root->child);
        done = cJSON_AddItemToObject(all, item->string, item);
        if (!done)
            cJSON_Delete(item);
    }
    cJSON_Delete(root);
    if (done)
        return all;
    cJSON_Delete(all);
    return NULL;
}

cs_status cs_print_json(cJSON *root, FILE *out, cs_error *error)
{
    cJSON *all = root ? with_versions(root) : NULL;
    char *text = all ? cs_json_print(all) : NULL;
    cJSON_Delete(all);
    if (!text)
        return cs_error_or_no_memory(error);
    fputs(text, out);
    free(text);
    return CS_OK;
}

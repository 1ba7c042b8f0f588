/* Costs files: whatever is read can be written and read again, with as many entries. */
#include "calib/costs.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static cs_status read_costs(const char *text, size_t length, cs_costs *costs, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("c.json", text, length, &root, error);
    if (status != CS_OK)
        return status;
    const cs_json_place place = {.file = "c.json"};
    status = cs_costs_read(root, &place, costs, error);
    cJSON_Delete(root);
    return status;
}

static char *write_costs(const cs_costs *costs)
{
    cJSON *json = cs_costs_json(costs);
    char *text = json ? cs_json_print(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        abort();
    return text;
}

static void check_round_trip(const cs_costs *costs)
{
    cs_costs again;
    cs_error error;
    char *text = write_costs(costs);
    if (read_costs(text, strlen(text), &again, &error) != CS_OK ||
        again.n_compute != costs->n_compute || again.n_network != costs->n_network)
        abort();
    free(text);
    cs_costs_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_costs costs;
    cs_error error;
    if (read_costs((const char *)data, size, &costs, &error) != CS_OK) {
        if (error.count == 0)
            abort();
        return 0;
    }
    check_round_trip(&costs);
    cs_costs_finish(&costs);
    return 0;
}

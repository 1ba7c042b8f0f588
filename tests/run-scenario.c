#include "tests/run-scenario.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

enum { TEXT_BYTES = 4096 };

static cs_status read_text(char *text, cs_scenario *scenario, cs_error *error)
{
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    cJSON *root;
    cs_status status = cs_json_parse("test", text, strlen(text), &root, error);
    if (status != CS_OK)
        return status;
    status = cs_scenario_read(root, "test", scenario, error);
    cJSON_Delete(root);
    return status;
}

static void fill(char *text, const char *format, va_list arguments)
{
    const int length = vsnprintf(text, TEXT_BYTES, format, arguments);
    assert(length > 0 && length < TEXT_BYTES);
    (void)length;
}

cs_status scenario_run_read(scenario_run *run, cs_error *error, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    fill(text, format, arguments);
    va_end(arguments);
    *run = (scenario_run){0};
    return read_text(text, &run->scenario, error);
}

cs_status scenario_run_init(scenario_run *run, cs_error *error, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    fill(text, format, arguments);
    va_end(arguments);
    *run = (scenario_run){0};
    cs_status status = read_text(text, &run->scenario, error);
    if (status != CS_OK)
        return status;
    status = cs_simulate(&run->scenario, &(cs_simulation_options){0}, &run->simulation, error);
    if (status != CS_OK)
        cs_scenario_finish(&run->scenario);
    return status;
}

void scenario_run_finish(scenario_run *run)
{
    cs_simulation_finish(&run->simulation);
    cs_scenario_finish(&run->scenario);
}

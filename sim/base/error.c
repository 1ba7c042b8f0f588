#include "sim/base/error.h"

#include <stdio.h>
#include <string.h>

void cs_error_init(cs_error *error)
{
    error->status = CS_OK;
    error->count = 0;
    error->stored = 0;
    error->text[0] = '\0';
}

/* The first message is kept even where it must be cut off; a later one whole or not at all. */
cs_status cs_error_addv(cs_error *error, cs_status status, const char *format, va_list arguments)
{
    if (!error)
        return status;
    if (error->count++ == 0)
        error->status = status;
    size_t used = strlen(error->text);
    size_t separator = used > 0 ? 1 : 0;
    size_t room = sizeof(error->text) - used;
    if (room <= separator + 1)
        return status;
    char *end = error->text + used;
    int length = vsnprintf(end + separator, room - separator, format, arguments);
    if (used > 0 && (length < 0 || (size_t)length >= room - separator)) {
        *end = '\0';
        return status;
    }
    if (used > 0)
        *end = '\n';
    error->stored++;
    return status;
}

cs_status cs_error_add(cs_error *error, cs_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cs_error_addv(error, status, format, arguments);
    va_end(arguments);
    return status;
}

cs_status cs_error_system(cs_error *error, cs_status status, const char *place, const char *what,
                          int code)
{
    char reason[128];
    if (strerror_r(code, reason, sizeof(reason)) != 0)
        snprintf(reason, sizeof(reason), "error %d", code);
    return cs_error_add(error, status, "%s: %s: %s", place, what, reason);
}

cs_status cs_error_no_memory(cs_error *error)
{
    return cs_error_add(error, CS_NO_MEMORY, "out of memory on this machine");
}

cs_status cs_error_or_no_memory(cs_error *error)
{
    return error && error->count > 0 ? error->status : cs_error_no_memory(error);
}

static const struct {
    const char *name;
    const char *doc;
    int exit_code;
} statuses[] = {
#define CS_STATUS_ROW(name, exit_code, doc) {#name, doc, exit_code},
    CS_STATUS_MAP(CS_STATUS_ROW)
#undef CS_STATUS_ROW
};

const char *cs_status_name(cs_status status)
{
    return statuses[status].name;
}

const char *cs_status_describe(cs_status status)
{
    return statuses[status].doc;
}

int cs_status_exit_code(cs_status status)
{
    return statuses[status].exit_code;
}

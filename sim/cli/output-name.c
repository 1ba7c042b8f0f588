#include "sim/cli/output-name.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

const char *const cs_endings_of_results[] = {".h5", ".hdf5", NULL};
const char *const cs_endings_of_sweeps[] = {".h5", ".hdf5", ".csv", NULL};
const char *const cs_endings_of_pictures[] = {".svg", ".png", ".pdf", NULL};
const char *const cs_endings_of_pages[] = {".html", ".htm", NULL};
const char *const cs_endings_of_costs[] = {".json", NULL};
const char *const cs_endings_of_json[] = {".json", "-", NULL};
const char *const cs_endings_of_traces[] = {".json",       ".json.gz", ".pftrace",
                                            ".pftrace.gz", "-",        NULL};
const char *const cs_endings_of_topologies[] = {".json", ".dot", ".svg", ".png", ".pdf", "-", NULL};

static const char standard_output[] = "-";

bool cs_output_ends_in(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);
    if (strcmp(ending, standard_output) == 0)
        return strcmp(name, standard_output) == 0;
    return length >= tail && strcasecmp(name + length - tail, ending) == 0;
}

static bool is_no_file(const char *name)
{
    struct stat info;
    return stat(name, &info) == 0 && !S_ISREG(info.st_mode);
}

cs_status cs_output_check(const cs_arguments *arguments, const char *option,
                          const char *const *endings, cs_error *error)
{
    char known[128];
    const char *name = cs_arguments_value(arguments, option);
    if (!name || is_no_file(name))
        return CS_OK;
    for (size_t i = 0; endings[i]; i++) {
        if (cs_output_ends_in(name, endings[i]))
            return CS_OK;
    }
    /* Write ".json, .dot or .svg, or be - for standard output". */
    char *text = known;
    const size_t size = sizeof(known);
    bool prints = false;
    size_t n = 0, used = 0;
    while (endings[n])
        prints |= strcmp(endings[n++], standard_output) == 0;
    n -= prints; /* without "-", which is last */
    *text = '\0';
    for (size_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0       ? ""
                                 : i + 1 == n ? " or "
                                              : ", ",
                                 endings[i]);
    if (prints && used < size)
        snprintf(text + used, size - used, ", or be - for standard output");
    return cs_error_add(error, CS_USAGE, "%s: --%s %s: must end in %s", arguments->command->name,
                        option, name, known);
}

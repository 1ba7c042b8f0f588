#include "plots/viewer.h"

#include "plots/viewer-out.h"
#include "sim/base/file.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

typedef struct form {
    const char *ending;
    bool proto, compressed;
} form;

static const form forms[] = {
    {".json", false, false},
    {".json.gz", false, true},
    {".pftrace", true, false},
    {".pftrace.gz", true, true},
};

static form form_of(const char *output)
{
    const size_t length = strlen(output);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const size_t end = strlen(forms[i].ending);
        if (length >= end && strcasecmp(output + length - end, forms[i].ending) == 0)
            return forms[i];
    }
    return forms[0];
}

static cs_status write_stream(const cs_drawn_run *run, FILE *stream, const form *as,
                              const char *path, cs_error *error)
{
    cs_viewer_out *out = cs_viewer_out_create(stream, as->compressed);
    if (!out)
        return cs_error_no_memory(error);
    const cs_status status =
        as->proto ? cs_viewer_write_proto(run, out, error) : cs_viewer_write_json(run, out, error);
    const cs_status closed = cs_viewer_out_destroy(out, path, status == CS_OK ? error : NULL);
    return status == CS_OK ? closed : status;
}

static cs_status write_file(const cs_drawn_run *run, const char *output, cs_error *error)
{
    const form as = form_of(output);
    cs_file_draft draft;
    CS_TRY(cs_file_draft_begin(&draft, output, error));
    FILE *stream = fopen(draft.temporary, "wb");
    cs_status status = stream ? write_stream(run, stream, &as, output, error) : CS_IO;
    const bool closed = stream && fclose(stream) == 0;
    if (!stream || (!closed && status == CS_OK))
        status = cs_error_add(error, CS_IO, "%s: cannot write: %s", output, strerror(errno));
    if (status == CS_OK)
        status = cs_file_draft_commit(&draft, error);
    cs_file_draft_drop(&draft);
    return status;
}

cs_status cs_viewer_write(const char *input, const char *output, FILE *out, cs_error *error)
{
    const uint32_t parts = CS_DRAWN_TASKS | CS_DRAWN_ARGUMENTS | CS_DRAWN_SLICES | CS_DRAWN_MEMORY;
    cs_reader reader;
    cs_drawn_run run = {0};
    CS_TRY(cs_reader_init(&reader, input, error));
    cs_status status = cs_reader_fold(&reader, error);
    if (status == CS_OK)
        status = cs_drawn_run_read(&reader, parts, &run, error);
    if (status == CS_OK)
        status = strcmp(output, "-") == 0
                     ? write_stream(&run, out, &forms[0], "standard output", error)
                     : write_file(&run, output, error);
    cs_drawn_run_finish(&run);
    cs_reader_finish(&reader);
    return status;
}

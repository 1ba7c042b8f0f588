#include "plots/page/page-part.h"

#include "sim/base/text.h"

#include <stdlib.h>
#include <string.h>

static cs_status pack_column(cs_page_part *part, cs_reader *reader, const cs_page_column *of,
                             cs_error *error)
{
    const cs_reader_type type = of->cell == CS_CELL_F64 ? CS_READER_DOUBLE : CS_READER_UINT32;
    const void *values;
    uint64_t n = 0;
    const cs_reader_column column = {of->name, type, &values};
    CS_TRY(cs_reader_read(reader, &column, 1, &n, error));
    if (of->cell != CS_CELL_U8)
        return cs_packed_add(&part->packed, of->name, of->cell, values, n, error);
    const uint32_t *wide = values;
    uint8_t *narrow = malloc((size_t)n + 1);
    if (!narrow)
        return cs_error_no_memory(error);
    for (uint64_t i = 0; i < n; i++)
        narrow[i] = (uint8_t)wide[i];
    const cs_status status = cs_packed_add(&part->packed, of->name, of->cell, narrow, n, error);
    free(narrow);
    return status;
}

cs_status cs_page_part_pack(cs_page_part *part, cs_reader *reader, const cs_page_column *columns,
                            cs_error *error)
{
    for (; columns->name; columns++)
        CS_TRY(pack_column(part, reader, columns, error));
    return CS_OK;
}

cs_status cs_page_part_end(cs_page_part *part, cs_error *error)
{
    cJSON *columns = part->packed.columns;
    if (part->json.failed || !columns ||
        !cJSON_AddItemToObject(part->json.root, "columns", columns))
        return cs_error_no_memory(error);
    part->packed.columns = NULL;
    return CS_OK;
}

/* Writes JSON in a script element. Escapes "<", so that no text can end the element. */
static void write_json(const char *json, FILE *out)
{
    for (size_t left = strlen(json), n; left > 0; json += n, left -= n) {
        n = cs_text_character(json, left);
        if (*json == '<')
            fputs("\\u003c", out);
        else if (n == 0) /* names of files need not be UTF-8 */
            fputc('?', out);
        else
            fwrite(json, 1, n, out);
        n += n == 0;
    }
}

cs_status cs_page_part_write(const cs_page_part *part, const char *kind, size_t i, FILE *out,
                             cs_error *error)
{
    char id[32];
    char *json = cJSON_PrintUnformatted(part->json.root);
    if (!json)
        return cs_error_no_memory(error);
    fprintf(out, "<script type=\"application/json\" id=\"%s-%zu\">", kind, i);
    write_json(json, out);
    fputs("</script>\n", out);
    cJSON_free(json);
    snprintf(id, sizeof(id), "columns-%zu", i);
    return cs_packed_write(&part->packed, id, out, error);
}

void cs_page_part_finish(cs_page_part *part)
{
    cJSON_Delete(part->json.root);
    cs_packed_finish(&part->packed);
    *part = (cs_page_part){0};
}

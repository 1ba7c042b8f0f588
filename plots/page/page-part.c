#include "plots/page/page-part.h"

#include "sim/base/text.h"

#include <string.h>

cs_status cs_page_part_end(cs_page_part *part, cs_error *error)
{
    cJSON *columns = part->packed.columns;
    if (part->json.failed || !columns ||
        !cJSON_AddItemToObject(part->json.root, "columns", columns))
        return cs_error_no_memory(error);
    part->packed.columns = NULL;
    return CS_OK;
}

/* JSON in a script element: no "<" of a text can end the element. */
static void write_json(const char *json, FILE *out)
{
    for (size_t left = strlen(json), n; left > 0; json += n, left -= n) {
        n = cs_text_character(json, left);
        if (*json == '<')
            fputs("\\u003c", out);
        else if (n == 0) /* of a file's name, which need not be UTF-8 */
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

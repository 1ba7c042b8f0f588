/* JSON of a page under construction. cJSON's functions do nothing if an argument is NULL, so a
 * failure is only recorded, in `failed`, and checked once at the end. Internal to plots/page. */
#ifndef CS_PLOTS_PAGE_PAGE_JSON_H
#define CS_PLOTS_PAGE_PAGE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct cs_page_json {
    cJSON *root;
    bool failed; /* memory ran out for a part of the JSON */
} cs_page_json;

cJSON *cs_page_add_list(cs_page_json *json, cJSON *object, const char *key);
cJSON *cs_page_append_object(cs_page_json *json, cJSON *list);

/* Adds a text; NULL adds nothing. */
void cs_page_add_text(cs_page_json *json, cJSON *object, const char *key, const char *text);

/* Adds a number; null if it is not finite. */
void cs_page_add_number(cs_page_json *json, cJSON *object, const char *key, double value);
void cs_page_add_flag(cs_page_json *json, cJSON *object, const char *key, bool value);

/* Adds a colour as a text: 0x56B4E9 as "#56b4e9". */
void cs_page_add_colour(cs_page_json *json, cJSON *object, const char *key, uint32_t colour);

/* Adds the list `key` to the root: the words of a coded column, with the style that they have in
 * every picture (plots/sheet.h). */
void cs_page_add_words(cs_page_json *json, const char *key, const char *const *words, uint32_t n);

#endif

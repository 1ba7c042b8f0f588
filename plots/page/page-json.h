/* JSON of a page in the making. cJSON's functions take NULL and then do nothing, so that a failure
 * is noted once, here, and looked at when all is made. Internal to plots/page.
 */
#ifndef CS_PLOTS_PAGE_PAGE_JSON_H
#define CS_PLOTS_PAGE_PAGE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct cs_page_json {
    cJSON *root;
    bool failed; /* there was no memory for a part of it */
} cs_page_json;

cJSON *cs_page_add_list(cs_page_json *json, cJSON *object, const char *key);
cJSON *cs_page_append_object(cs_page_json *json, cJSON *list);

/* Nothing of NULL. */
void cs_page_add_text(cs_page_json *json, cJSON *object, const char *key, const char *text);

/* What is not finite becomes null. */
void cs_page_add_number(cs_page_json *json, cJSON *object, const char *key, double value);
void cs_page_add_flag(cs_page_json *json, cJSON *object, const char *key, bool value);

/* 0x56B4E9 as "#56b4e9". */
void cs_page_add_colour(cs_page_json *json, cJSON *object, const char *key, uint32_t colour);

/* The list `key` of the root: the words of a coded column, with what they look like in every
 * picture (plots/sheet.h). */
void cs_page_add_words(cs_page_json *json, const char *key, const char *const *words, uint32_t n);

#endif

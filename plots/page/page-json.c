#include "plots/page/page-json.h"

#include "plots/sheet.h"

#include <stdio.h>

cJSON *cs_page_add_list(cs_page_json *json, cJSON *object, const char *key)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);
    json->failed |= !list;
    return list;
}

cJSON *cs_page_append_object(cs_page_json *json, cJSON *list)
{
    cJSON *object = cJSON_CreateObject();
    if (!object || !cJSON_AddItemToArray(list, object)) {
        cJSON_Delete(object);
        object = NULL;
    }
    json->failed |= !object;
    return object;
}

void cs_page_add_text(cs_page_json *json, cJSON *object, const char *key, const char *text)
{
    if (text)
        json->failed |= !cJSON_AddStringToObject(object, key, text);
}

void cs_page_add_number(cs_page_json *json, cJSON *object, const char *key, double value)
{
    json->failed |= !cJSON_AddNumberToObject(object, key, value);
}

void cs_page_add_flag(cs_page_json *json, cJSON *object, const char *key, bool value)
{
    json->failed |= !cJSON_AddBoolToObject(object, key, value);
}

void cs_page_add_colour(cs_page_json *json, cJSON *object, const char *key, uint32_t colour)
{
    char text[8];
    snprintf(text, sizeof(text), "#%06x", colour & 0xFFFFFF);
    cs_page_add_text(json, object, key, text);
}

void cs_page_add_words(cs_page_json *json, const char *key, const char *const *words, uint32_t n)
{
    cJSON *list = cs_page_add_list(json, json->root, key);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *word = cs_page_append_object(json, list);
        const cs_style *style = cs_style_of(words[i]);
        cs_page_add_text(json, word, "word", words[i]);
        cs_page_add_colour(json, word, "colour", style->colour);
        cs_page_add_flag(json, word, "moves", style->moves);
    }
}

#include "sim/base/json.h"
#include "sim/base/number.h"
#include "sim/base/text-stream.h"
#include "sim/base/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cJSON's own printer rounds doubles, so that not all of them read back, and writes whole numbers
 * beyond 10^15 with an exponent. Failed writes are checked once, at the end: a stream remembers
 * them. */

enum { INDENT = 2 };

static void print_string(FILE *out, const char *text)
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    fputc('"', out);
    size_t length = text ? strlen(text) : 0;
    for (size_t n; length > 0; text += n, length -= n) {
        const char *found = strchr(special, *text);
        const size_t bytes = cs_text_character(text, length);
        n = bytes > 0 ? bytes : 1;
        if (found)
            fprintf(out, "\\%c", letters[found - special]);
        else {
            /* File names may contain bytes that are not UTF-8 (bytes == 0), which JSON cannot
             * represent. Characters that a terminal would interpret are escaped. */
            if (*text >= 0x20 && *text < 0x7f)
                fputc(*text, out);
            else if (bytes == 0)
                fputs("\ufffd", out);
            else if (cs_text_has_control(text, bytes))
                fprintf(out, "\\u%04x", cs_text_code(text, bytes));
            else
                fwrite(text, 1, bytes, out);
        }
    }
    fputc('"', out);
}

static bool is_container(const cJSON *value)
{
    return cJSON_IsArray(value) || cJSON_IsObject(value);
}

/* Whether the value takes several lines: non-empty objects, and arrays of containers. */
static bool is_tall(const cJSON *value)
{
    if (cJSON_IsObject(value))
        return value->child;
    for (const cJSON *child = value->child; child; child = child->next) {
        if (is_container(child))
            return true;
    }
    return false;
}

static void start_line(FILE *out, int depth)
{
    fprintf(out, "\n%*s", depth * INDENT, "");
}

static void print_value(FILE *out, const cJSON *value, int depth);

static void print_value(FILE *out, const cJSON *value, int depth)
{
    if (is_container(value)) {
        bool tall = is_tall(value), object = cJSON_IsObject(value);
        fputc(object ? '{' : '[', out);
        for (const cJSON *child = value->child; child; child = child->next) {
            if (tall)
                start_line(out, depth + 1);
            if (object) {
                print_string(out, child->string);
                fputs(": ", out);
            }
            print_value(out, child, depth + 1);
            if (child->next)
                fputs(tall ? "," : ", ", out);
        }
        if (tall)
            start_line(out, depth);
        fputc(object ? '}' : ']', out);
    } else if (cJSON_IsString(value))
        print_string(out, value->valuestring);
    else if (cJSON_IsNumber(value)) {
        char text[CS_NUMBER_TEXT_BYTES];
        if (isfinite(value->valuedouble))
            fputs(cs_number_format(value->valuedouble, text, sizeof(text)), out);
        else
            fputs("null", out);
    } else
        fputs(cJSON_IsTrue(value) ? "true" : cJSON_IsFalse(value) ? "false" : "null", out);
}

char *cs_json_print(const cJSON *root)
{
    char *text = NULL;
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    if (!out)
        return NULL;
    print_value(out, root, 0);
    fputc('\n', out);
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* Joins the printed lines. Line breaks within strings are escaped, so every one is the
 * printer's. */
char *cs_json_line(const cJSON *value)
{
    char *text = cs_json_print(value), *end = text;
    for (const char *at = text; text && *at; at++) {
        if (*at == '\n')
            at += strspn(at + 1, " ");
        else
            *end++ = *at;
    }
    if (text)
        *end = '\0';
    return text;
}

/* The first byte chooses the quantity ("0" to "4"), the rest is the text. Accepted values are
 * finite, and read back from their printed form, up to rounding. */
#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* 17 digits are exact; the remaining errors are one rounding each for scaling down and up. The
 * largest doubles may round up to infinity. */
static void check_shown(double value, cs_quantity quantity)
{
    char text[CS_UNITS_TEXT_BYTES];
    for (int digits = 0; digits < 20; digits++) {
        double again = 0;
        cs_units_format(value, quantity, digits, text, sizeof(text));
        require(strlen(text) < sizeof(text) - 1);
        if (fabs(value) > 1e307)
            continue;
        require(cs_units_parse(text, quantity, &again, NULL) == CS_OK);
        if (digits >= 17)
            require(fabs(again - value) <= 1e-15 * fabs(value) + 5e-324);
    }
}

static void check_number(const char *text)
{
    double value = 0, again = 1;
    char shown[CS_NUMBER_TEXT_BYTES];
    if (!cs_number_parse(text, strlen(text), &value))
        return;
    require(isfinite(value));
    cs_number_format(value, shown, sizeof(shown));
    require(cs_number_parse(shown, strlen(shown), &again));
    require(memcmp(&value, &again, sizeof(value)) == 0);
}

static void check_words(const char *text)
{
    char quoted[CS_TEXT_QUOTED_BYTES], tiny[8];
    cs_text_quote(text, quoted, sizeof(quoted));
    require(quoted[0] == '"' && quoted[strlen(quoted) - 1] == '"' && !strchr(quoted, '\n'));
    cs_text_quote(text, tiny, sizeof(tiny));
    cs_text_show(text, tiny, sizeof(tiny));
    cs_guess guess;
    cs_guess_init(&guess, text);
    cs_guess_add(&guess, text);
    require(strlen(cs_guess_text(&guess)) < sizeof(guess.text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    cs_quantity quantity = (cs_quantity)((data[0] + 2) % 5); /* '0' is 48 */
    char *text = strndup((const char *)data + 1, size - 1);
    double value = NAN;
    cs_error error;
    cs_error_init(&error);
    require(text);
    cs_status status = cs_units_parse(text, quantity, &value, &error);
    require(status == CS_OK ? error.count == 0 && isfinite(value)
                            : status == CS_INVALID && error.count == 1 && isnan(value));
    if (status == CS_OK)
        check_shown(value, quantity);
    check_number(text);
    check_words(text);
    free(text);
    return 0;
}

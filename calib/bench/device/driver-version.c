#include "calib/bench/device/driver-version.h"

#include <stdbool.h>
#include <string.h>

static bool is_version(const char *word, size_t length)
{
    const char *point = memchr(word, '.', length);
    return strspn(word, "0123456789.") == length && point && point != word &&
           word[length - 1] != '.';
}

char *cs_driver_version(const char *line, char *text, size_t size)
{
    static const char blanks[] = " \t\n";
    text[0] = '\0';
    for (const char *word = line + strspn(line, blanks); *word != '\0';) {
        size_t length = strcspn(word, blanks);
        if (is_version(word, length) && length < size) {
            memcpy(text, word, length);
            text[length] = '\0';
            break;
        }
        word += length + strspn(word + length, blanks);
    }
    return text;
}

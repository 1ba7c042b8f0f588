#include "sim/base/text.h"

#include "sim/base/terms.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static size_t character_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead < 0xe0)
        return 2;
    if (lead >= 0xe0 && lead < 0xf0)
        return 3;
    return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

size_t cs_text_character(const char *text, size_t length)
{
    /* smaller codes are overlong */
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (length == 0)
        return 0;
    unsigned char lead = (unsigned char)text[0];
    size_t n = character_length(lead);
    if (n <= 1)
        return n;
    if (n > length)
        return 0;
    uint32_t code = lead & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        unsigned char next = (unsigned char)text[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (next & 0x3fu);
    }
    if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return n;
}

uint32_t cs_text_code(const char *text, size_t n)
{
    uint32_t code = n == 1 ? (unsigned char)*text : (unsigned char)*text & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3fu);
    return code;
}

/* Whether a terminal interprets the character: control characters (also 0x80 to 0x9f) and those
 * that change the direction of text. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* Writes one input character with escapes; *used is the number of input bytes. */
static size_t show_character(const char *text, size_t length, size_t *used, char shown[8])
{
    size_t n = cs_text_character(text, length);
    *used = n > 0 ? n : 1;
    if (n == 0)
        return (size_t)snprintf(shown, 8, "\\x%02x", (unsigned char)*text);
    if (*text == '\n')
        return (size_t)snprintf(shown, 8, "\\n");
    const uint32_t code = cs_text_code(text, n);
    if (is_control(code))
        return (size_t)snprintf(shown, 8, "\\u%04x", code);
    memcpy(shown, text, n);
    return n;
}

/* Within quotes, the quote and the backslash are escaped too. */
static size_t quote_character(const char *text, size_t length, size_t *used, char shown[8])
{
    if (*text != '"' && *text != '\\')
        return show_character(text, length, used, shown);
    *used = 1;
    return (size_t)snprintf(shown, 8, "\\%c", *text);
}

typedef size_t (*character_writer)(const char *text, size_t length, size_t *used, char shown[8]);

/* Writes at most `room` bytes, ending in "..." if the text is longer, and returns their number.
 * `kept`: where to cut, the longest beginning that leaves room for the dots. */
static size_t write_shown(const char *text, char *out, size_t room, character_writer write)
{
    size_t length = strlen(text), end = 0, kept = 0;
    while (length > 0) {
        char shown[8];
        size_t used, n = write(text, length, &used, shown);
        if (end + n > room) {
            memcpy(out + kept, "...", 3);
            return kept + 3;
        }
        memcpy(out + end, shown, n);
        end += n;
        if (end + 3 <= room)
            kept = end;
        text += used;
        length -= used;
    }
    return end;
}

char *cs_text_show(const char *text, char *out, size_t size)
{
    out[write_shown(text, out, size - 1, show_character)] = '\0';
    return out;
}

char *cs_text_quote(const char *text, char *out, size_t size)
{
    out[0] = '"';
    size_t end = 1 + write_shown(text, out + 1, size - 3, quote_character);
    out[end] = '"';
    out[end + 1] = '\0';
    return out;
}

void cs_text_print(FILE *out, const char *text, size_t length)
{
    while (length > 0) {
        char shown[8];
        size_t used, n = show_character(text, length, &used, shown);
        fwrite(shown, 1, n, out);
        text += used;
        length -= used;
    }
}

void cs_text_puts(FILE *out, const char *text)
{
    cs_text_print(out, text, strlen(text));
}

const char *cs_text_shown(const char *text, cs_arena *arena)
{
    const size_t length = strlen(text);
    if (!cs_text_has_control(text, length))
        return text;
    const size_t size = CS_TEXT_SHOWN_MOST * length + 1;
    char *shown = cs_arena_alloc(arena, size, 1);
    return shown ? cs_text_show(text, shown, size) : NULL;
}

void cs_text_print_word(FILE *out, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-=,:+@%";
    if (cs_text_has_control(word, strlen(word))) {
        /* Escape single bytes: shells interpret code points differently. */
        size_t length = strlen(word);
        fputs("$'", out);
        for (size_t n; length > 0; word += n, length -= n) {
            n = cs_text_character(word, length);
            const bool shown = n > 0 && !is_control(cs_text_code(word, n));
            n = n > 0 ? n : 1;
            if (shown)
                fprintf(out, "%s%.*s", *word == '\'' || *word == '\\' ? "\\" : "", (int)n, word);
            for (size_t i = 0; !shown && i < n; i++)
                fprintf(out, "\\%03o", (unsigned char)word[i]);
        }
        fputc('\'', out);
        return;
    }
    const bool quotes = !*word || word[strspn(word, plain)] != '\0';
    fputs(quotes ? "'" : "", out);
    for (; *word; word++)
        fprintf(out, *word == '\'' ? "'\\''" : "%c", *word);
    fputs(quotes ? "'" : "", out);
}

size_t cs_text_keep_characters(char *text)
{
    const size_t length = strlen(text);
    size_t kept = 0, at = 0;
    while (at < length) {
        const size_t n = cs_text_character(text + at, length - at);
        memmove(text + kept, text + at, n);
        kept += n;
        at += n > 0 ? n : 1;
    }
    text[kept] = '\0';
    return kept;
}

int cs_text_formatv(char *out, size_t size, const char *format, va_list arguments)
{
    const int length = vsnprintf(out, size, format, arguments);
    if (length < 0 || size == 0)
        return length;
    const size_t kept = cs_text_keep_characters(out);
    return (size_t)length < size ? (int)kept : length;
}

int cs_text_format(char *out, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = cs_text_formatv(out, size, format, arguments);
    va_end(arguments);
    return length;
}

bool cs_text_has_control(const char *text, size_t length)
{
    for (size_t n; length > 0; text += n, length -= n) {
        n = cs_text_character(text, length);
        if (n == 0 || is_control(cs_text_code(text, n)))
            return true;
    }
    return false;
}

enum { LONGEST_WORD = 64 };

/* Cost of replacing a letter, in half edits: a change of case is half an edit, so that "gb" finds
 * "GB". */
static unsigned int replace_cost(char a, char b)
{
    if (a == b)
        return 0;
    return tolower((unsigned char)a) == tolower((unsigned char)b) ? 1 : 2;
}

static unsigned int smaller(unsigned int a, unsigned int b)
{
    return a < b ? a : b;
}

/* Edit distance in half edits, where swapping two neighbouring letters is one edit (Damerau,
 * CACM 7(3), 1964; no letter is edited twice: optimal string alignment). Only three rows are
 * kept. Words longer than LONGEST_WORD are far apart; words that differ only in case are close
 * at any length. */
static unsigned int edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned int rows[3][LONGEST_WORD + 1];
    if (n > LONGEST_WORD || m > LONGEST_WORD)
        return UINT_MAX;
    if (strcasecmp(a, b) == 0)
        return 1;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (unsigned int)(2 * j);
    for (size_t i = 1; i <= n; i++) {
        unsigned int *row = rows[i % 3];
        const unsigned int *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned int)(2 * i);
        for (size_t j = 1; j <= m; j++) {
            /* transposed: a[i - 2], a[i - 1] equal b[j - 1], b[j - 2] */
            row[j] = smaller(above[j - 1] + replace_cost(a[i - 1], b[j - 1]),
                             smaller(above[j], row[j - 1]) + 2);
            if (i > 1 && j > 1 && a[i - 1] != a[i - 2] && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], two_above[j - 2] + 2);
        }
    }
    return rows[n % 3][m];
}

void cs_guess_init(cs_guess *guess, const char *word)
{
    guess->word = word;
    guess->closest = NULL;
    guess->term = cs_term_find(word);
    /* A third of the word may be wrong (in half edits: two thirds of its length), but only one
     * letter of a short word. */
    size_t length = strlen(word);
    guess->distance = length > LONGEST_WORD ? 0 : (unsigned int)(2 * length / 3);
    if (guess->distance < 2)
        guess->distance = 2;
    guess->distance++;
    guess->known[0] = '\0';
    guess->text[0] = '\0';
}

/* Breaks a tie: the word with fewer edits wins; if equal, the word with the right first letter,
 * because first letters are usually right. */
static bool is_closer(const char *word, const char *known, const char *than)
{
    const unsigned int edits = edit_distance(word, known), others = edit_distance(word, than);
    return edits < others || (edits == others && known[0] == word[0] && than[0] != word[0]);
}

/* Whether one word is the plural of the other: "gpus" of "gpu". */
static bool is_plural(const char *word, const char *known)
{
    const size_t n = strlen(word), m = strlen(known);
    return (n == m + 1 && word[m] == 's' && strncmp(word, known, m) == 0) ||
           (m == n + 1 && known[n] == 's' && strncmp(word, known, n) == 0);
}

void cs_guess_add(cs_guess *guess, const char *known)
{
    if (guess->term) { /* a known term: its meaning decides, not how similar the spelling is */
        const char *meaning = cs_term_meaning(guess->term, known);
        guess->closest = cs_term_first(guess->term, guess->closest, meaning);
        if (is_plural(guess->word, known)) {
            guess->term = NULL;
            guess->closest = known;
            guess->distance = 0;
        }
    } else {
        const unsigned int edits = edit_distance(guess->word, known);
        /* one word is a prefix of the other, with at least four letters */
        const size_t n = strlen(guess->word), m = strlen(known), shorter = n < m ? n : m;
        const unsigned int distance =
            (shorter >= 4 && strncasecmp(guess->word, known, shorter) == 0) ? 2 : edits;
        const bool tie = guess->closest && distance == guess->distance &&
                         is_closer(guess->word, known, guess->closest);
        if ((distance < guess->distance || tie) && distance < 2 * strlen(known)) {
            guess->distance = distance;
            guess->closest = known;
        }
    }
    size_t used = strlen(guess->known), room = sizeof(guess->known) - used;
    const char *separator = used > 0 ? ", " : "";
    if (strlen(separator) + strlen(known) + sizeof(", ...") <= room)
        snprintf(guess->known + used, room, "%s%s", separator, known);
    else if (used < 3 || strcmp(guess->known + used - 3, "...") != 0)
        snprintf(guess->known + used, room, "%s...", separator);
}

const char *cs_guess_text(cs_guess *guess)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    cs_text_quote(guess->word, quoted, sizeof(quoted));
    const int name = guess->closest ? (int)strcspn(guess->closest, ":") : 0;
    if (guess->closest)
        snprintf(guess->text, sizeof(guess->text), "%s; did you mean \"%.*s\"%.64s? known: %s",
                 quoted, name < 64 ? name : 64, guess->closest, guess->closest + name,
                 guess->known);
    else if (guess->term)
        snprintf(guess->text, sizeof(guess->text), "%s: %s%s%s", quoted, guess->term->text,
                 guess->known[0] ? "; known: " : "", guess->known);
    else
        snprintf(guess->text, sizeof(guess->text), "%s; known: %s", quoted, guess->known);
    return guess->text;
}

bool cs_guess_find(cs_guess *guess, const char *const *words, const char *word, uint32_t *found)
{
    for (uint32_t i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0) {
            *found = i;
            return true;
        }
    }
    cs_guess_init(guess, word);
    for (; *words; words++)
        cs_guess_add(guess, *words);
    return false;
}

static bool two_digits(const char *text, int low, int high, int *out)
{
    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
        return false;
    *out = (text[0] - '0') * 10 + (text[1] - '0');
    return *out >= low && *out <= high;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

bool cs_text_is_date(const char *text)
{
    int century, year, month, day;
    /* Evaluated from left to right: the NUL of a short text fails a check before later characters
     * are read. */
    return two_digits(text, 0, 99, &century) && two_digits(text + 2, 0, 99, &year) &&
           text[4] == '-' && two_digits(text + 5, 1, 12, &month) && text[7] == '-' &&
           two_digits(text + 8, 1, days_of(century * 100 + year, month), &day) && text[10] == '\0';
}

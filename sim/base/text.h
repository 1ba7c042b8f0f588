/* Text from users: quoting it in messages, truncating between characters, guessing what it
 * means. */
#ifndef CS_BASE_TEXT_H
#define CS_BASE_TEXT_H

#include "sim/base/arena.h"
#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes `text` in double quotes into `out` and returns it. Control characters and bytes that are
 * not UTF-8 are escaped, so that a message stays one printable line; a text that is too long ends
 * in "...". `size` is at least 8. */
char *cs_text_quote(const char *text, char *out, size_t size);

/* Without quotes: for names and places at the beginning of a message. A byte becomes at most
 * CS_TEXT_SHOWN_MOST bytes. */
enum { CS_TEXT_SHOWN_MOST = 6 };
char *cs_text_show(const char *text, char *out, size_t size);

enum { CS_TEXT_QUOTED_BYTES = 80 }; /* bytes of quoted text in messages */

/* Prints all of it with the same escapes; cs_text_puts prints up to the NUL. */
void cs_text_print(FILE *out, const char *text, size_t length);
void cs_text_puts(FILE *out, const char *text);

/* Returns the whole text with escapes: the text itself if nothing needs escaping, otherwise a copy
 * in the arena. NULL if memory runs out. */
const char *cs_text_shown(const char *text, cs_arena *arena);

/* Prints a word of a command for a shell, in single quotes if needed, and in $'...' if it has
 * characters that must be escaped. */
void cs_text_print_word(FILE *out, const char *word);

/* Removes all bytes that are not part of a well-formed character, such as a truncated one. Returns
 * the length. */
size_t cs_text_keep_characters(char *text);

/* snprintf for texts that contain names from users: bytes of ill-formed characters are removed, so
 * that neither `size` nor a precision cuts a character. Returns the bytes in `out` or, like
 * snprintf, at least `size` if the text was truncated. */
int cs_text_format(char *out, size_t size, const char *format, ...) CS_PRINTF(3, 4);
int cs_text_formatv(char *out, size_t size, const char *format, va_list arguments) CS_PRINTF(3, 0);

/* Whether a terminal would interpret the text: it has control characters, characters that change
 * the direction of text, or bytes that are not UTF-8. */
bool cs_text_has_control(const char *text, size_t length);

/* Length (1 to 4 bytes) of the well-formed UTF-8 character at the start of `text`; 0: none
 * (overlong, surrogate, beyond U+10FFFF, truncated). */
size_t cs_text_character(const char *text, size_t length);

/* Code point of a well-formed character of 1 to 4 bytes. */
uint32_t cs_text_code(const char *text, size_t bytes);

/* Guesses the meaning of an unknown word. Add every known word, then print:
 *
 *     cs_guess guess;
 *     cs_guess_init(&guess, "fif");
 *     for (...) cs_guess_add(&guess, names[i]);
 *     ... "unknown sharing %s", cs_guess_text(&guess)
 *         -> unknown sharing "fif"; did you mean "fifo"? known: none, fifo, phi
 *
 * Terms of the field, such as "tp" or "fsdp", are not guessed: if one of their meanings is known,
 * it is proposed; otherwise the text explains what the term is called here.
 */
typedef struct cs_guess {
    const char *word;
    const struct cs_term *term; /* the word's term, or NULL (terms.h) */
    const char *closest;        /* NULL: none is close */
    unsigned int distance;
    char known[512]; /* "none, fifo, phi"; ends in "..." if they do not fit */
    char text[1000];
} cs_guess;

void cs_guess_init(cs_guess *guess, const char *word);
void cs_guess_add(cs_guess *guess, const char *known);
const char *cs_guess_text(cs_guess *guess);

/* Finds a word in a NULL-terminated list and sets *found to its index. If it returns false, `guess`
 * has all words. */
bool cs_guess_find(cs_guess *guess, const char *const *words, const char *word, uint32_t *found);

/* Whether the text is a calendar date, YYYY-MM-DD. */
bool cs_text_is_date(const char *text);

#endif

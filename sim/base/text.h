/* What users wrote: shown back to them in quotes, cut between characters, guessed at, checked for
 * being a date. */
#ifndef CS_BASE_TEXT_H
#define CS_BASE_TEXT_H

#include "sim/base/arena.h"
#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes `text` in double quotes into `out` and returns it. Control characters and bytes that are
 * not UTF-8 are escaped, so that a message stays one printable line; what does not fit is replaced
 * by "..." before the closing quote. `size` is 8 at least. */
char *cs_text_quote(const char *text, char *out, size_t size);

/* The same without the quotes: for names and places at the beginning of a message. A byte becomes
 * CS_TEXT_SHOWN_MOST at most. */
enum { CS_TEXT_SHOWN_MOST = 6 };
char *cs_text_show(const char *text, char *out, size_t size);

enum { CS_TEXT_QUOTED_BYTES = 80 }; /* what messages use */

/* Prints it the same way, all of it; the second function up to the NUL. */
void cs_text_print(FILE *out, const char *text, size_t length);
void cs_text_puts(FILE *out, const char *text);

/* The whole text as it is shown: itself where nothing has to be escaped, else a copy in the arena.
 * NULL when memory runs out. */
const char *cs_text_shown(const char *text, cs_arena *arena);

/* Prints a word of a command as a shell reads it: in single quotes where it has to, and in $'...'
 * where characters are shown escaped. */
void cs_text_print_word(FILE *out, const char *word);

/* Takes out all bytes that belong to no well-formed character, as those of one that was cut.
 * Returns the length. */
size_t cs_text_keep_characters(char *text);

/* snprintf for what holds names that users wrote: such bytes are left out, so that no character is
 * cut, neither by `size` nor by a precision. Returns the bytes that
 * are in `out`, or, like snprintf, at least `size` where the end found no room. */
int cs_text_format(char *out, size_t size, const char *format, ...) CS_PRINTF(3, 4);
int cs_text_formatv(char *out, size_t size, const char *format, va_list arguments) CS_PRINTF(3, 0);

/* False when a terminal would show the text as it is: there are neither control characters in it,
 * nor some that turn the direction of what follows, nor bytes that are not UTF-8. */
bool cs_text_has_control(const char *text, size_t length);

/* The bytes (1 to 4) of the well-formed UTF-8 character at the start of `text`; 0 when there is
 * none: overlong forms, surrogates, beyond U+10FFFF, cut off. */
size_t cs_text_character(const char *text, size_t length);

/* The code point of a well-formed character of 1 to 4 bytes. */
uint32_t cs_text_code(const char *text, size_t bytes);

/* What an unknown word may have been meant to be. Give it every known word, then print:
 *
 *     cs_guess guess;
 *     cs_guess_init(&guess, "fif");
 *     for (...) cs_guess_add(&guess, names[i]);
 *     ... "unknown sharing %s", cs_guess_text(&guess)
 *         -> unknown sharing "fif"; did you mean "fifo"? known: none, fifo, phi
 *
 * A word of the field, such as "tp" or "fsdp", is not guessed at: if one of its meanings is known,
 * that is meant; if not, the text says what it is here.
 */
typedef struct cs_guess {
    const char *word;
    const struct cs_term *term; /* the term that the word is, or NULL (terms.h) */
    const char *closest;        /* NULL when none is close */
    unsigned int distance;
    char known[512]; /* "none, fifo, phi"; with "..." at its end when they do not fit */
    char text[1000];
} cs_guess;

void cs_guess_init(cs_guess *guess, const char *word);
void cs_guess_add(cs_guess *guess, const char *known);
const char *cs_guess_text(cs_guess *guess);

/* The position of a word in a list that NULL ends. False where it is not there: then `guess` has
 * all words. */
bool cs_guess_find(cs_guess *guess, const char *const *words, const char *word, uint32_t *found);

/* True for a day of the calendar, written YYYY-MM-DD. */
bool cs_text_is_date(const char *text);

#endif

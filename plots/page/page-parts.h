/* What every page has: style, program, the library that it uses and its licence. Made by embed.py
 * when sim is built. Internal to plots/page.
 */
#ifndef CS_PLOTS_PAGE_PAGE_PARTS_H
#define CS_PLOTS_PAGE_PAGE_PARTS_H

extern const char cs_page_style[];
extern const char cs_page_library[]; /* "": sim was built without it */
extern const char cs_page_program[];

/* A Content-Security-Policy by which a browser runs these two programs, known by their hashes, and
 * nothing else, and fetches nothing. */
extern const char cs_page_policy[];

/* Licences of the library. */
extern const char cs_page_notices[];

#endif

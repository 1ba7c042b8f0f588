/* Facts about the world: the JSON files of facts/, which are compiled in, and users' own files of
 * the same form.
 *
 * A description of a device, a runtime, a machine or a model is a file in the folder of its kind:
 *
 *     {"name": "h100-nvl", "like": "h100", "aliases": ["H100 NVL"], ...}
 *
 * "like" names the description whose values hold where this one states none: objects are merged
 * key by key, all else is replaced, and null removes a value. A list that the kind joins has the
 * file's own items first, and then the items of the description that it is like, except for items
 * whose "name" the file's own items have. "name", "title", "aliases" and "except" are never taken
 * over.
 *
 * "aliases" are other ways to write the name. An alias fits if the text has all its words, in any
 * case and any order; a number fits with "GB" or "G" after it. The alias with the most words wins.
 * A file is not meant if one of its "except" fits. So "NVIDIA A100-PCIE-40GB" is the device with
 * the alias "A100 PCIe 40", not the one with "A100". If aliases of two files fit equally well, the
 * name is ambiguous and finds neither.
 */
#ifndef CS_BASE_FACTS_H
#define CS_BASE_FACTS_H

#include "sim/base/json.h"

typedef struct cs_facts_file {
    const char *folder;           /* "devices"; "": facts/ itself */
    const char *name;             /* without ".json" */
    const char *aliases, *except; /* its lists of these names, one per line */
    const char *text;
} cs_facts_file;

/* All that are compiled in, by folder and name; ended by {NULL}. */
extern const cs_facts_file cs_facts_files[];

/* A kind of descriptions. */
typedef struct cs_facts_kind {
    const char *folder;        /* its folder: "devices" */
    const char *what;          /* for messages: "device" */
    const char *page;          /* that says how to describe one's own */
    const char *const *joined; /* lists that are joined, ended by NULL; NULL: none */
    bool exact; /* cs_facts_load takes names only; aliases are what other programs call it */
    /* Checks a user's file before it takes over anything, so that messages name the file that is
     * wrong; NULL: whoever loads a description does. */
    cs_status (*check)(const cJSON *root, const char *path, cs_error *error);
} cs_facts_kind;

/* Whether a name is a file, FILE.json. */
bool cs_facts_is_file(const char *name);

/* The text of a file that is compiled in, or NULL. */
const char *cs_facts_text(const char *folder, const char *name);

/* The name of file `i` of a folder, NULL after the last one. */
const char *cs_facts_name(const char *folder, size_t i);

/* The name of the description that is called `name` or that has an alias that fits; NULL: none, or
 * several, or `name` is FILE.json. */
const char *cs_facts_find(const cs_facts_kind *kind, const char *name);

/* Loads a description by its name, by an alias, or from FILE.json (relative to the folder of the
 * file `from`; NULL: to the current folder), with the values that it takes over by "like". *root is
 * the caller's, NULL on failure. CS_INVALID: the name is unknown or ambiguous, and the message has
 * the nearest names; CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_facts_load(const cs_facts_kind *kind, const char *name, const char *from,
                                      cJSON **root, cs_error *error);

#endif

/* Facts about the world: the JSON files of facts/, which are compiled in, and users' own files of
 * the same form.
 *
 * A description of a device, a runtime, a machine or a model is a file in the folder of its kind:
 *
 *     {"name": "h100-nvl", "like": "h100", "aliases": ["H100 NVL"], ...}
 *
 * "like" names a base description, which supplies the values that this one does not state: objects
 * are merged key by key, anything else is replaced, and null removes a value. A list that the kind
 * joins has the file's own items first, then the base's items, except those with the "name" of an
 * own item. "name", "title", "aliases" and "except" are never inherited.
 *
 * "aliases" are other ways to write the name. An alias matches if the text contains all its words,
 * in any case and order; a number also matches with "GB" or "G" appended. The alias with the most
 * words wins. A file whose "except" matches is ruled out. So "NVIDIA A100-PCIE-40GB" is the device
 * with the alias "A100 PCIe 40", not the row with "A100". If aliases of two files match equally
 * well, the name is ambiguous and finds neither.
 */
#ifndef CS_BASE_FACTS_H
#define CS_BASE_FACTS_H

#include "sim/base/json.h"

typedef struct cs_facts_file {
    const char *folder;           /* "devices"; "": facts/ itself */
    const char *name;             /* without ".json" */
    const char *aliases, *except; /* its "aliases" and "except", one per line */
    const char *text;
} cs_facts_file;

/* All files that are compiled in, ordered by folder and name; the last has a NULL name. */
extern const cs_facts_file cs_facts_files[];

/* A kind of description */
typedef struct cs_facts_kind {
    const char *folder;        /* its folder: "devices" */
    const char *what;          /* for messages: "device" */
    const char *page;          /* page that explains how to describe one's own */
    const char *const *joined; /* lists that are joined, NULL-terminated; NULL: none */
    bool exact; /* cs_facts_load accepts names only; aliases are names that other programs use */
    /* Checks a user's file before it inherits values, so that messages name the right file; NULL:
     * left to the function that loads the description. */
    cs_status (*check)(const cJSON *root, const char *path, cs_error *error);
} cs_facts_kind;

/* Whether a name is a file name, FILE.json. */
bool cs_facts_is_file(const char *name);

/* Returns the text of a compiled-in file, or NULL. */
const char *cs_facts_text(const char *folder, const char *name);

/* Returns the name of file `i` of a folder; NULL after the last. */
const char *cs_facts_name(const char *folder, size_t i);

/* Returns the name of the description that is called `name` or has the best matching alias; NULL:
 * none, several, or `name` is FILE.json. */
const char *cs_facts_find(const cs_facts_kind *kind, const char *name);

/* Loads a description, with its inherited values, by its name, an alias, or from FILE.json
 * (relative to the folder of the file `from`; NULL: to the current folder). The caller frees *root,
 * which is NULL on failure. CS_INVALID: the name is unknown or ambiguous, and the message proposes
 * the nearest names; CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_facts_load(const cs_facts_kind *kind, const char *name, const char *from,
                                      cJSON **root, cs_error *error);

#endif

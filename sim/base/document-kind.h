/* Which of the program's JSON files a document is, so that the wrong one is told by its kind and
 * not key by key. */
#ifndef CS_BASE_DOCUMENT_KIND_H
#define CS_BASE_DOCUMENT_KIND_H

#include "sim/base/json.h"

/* In step with the table in document-kind.c. */
typedef enum cs_document_kind {
    CS_DOCUMENT_SCENARIO,
    CS_DOCUMENT_MODEL,
    CS_DOCUMENT_DEVICE,  /* has sources as well: comes before costs */
    CS_DOCUMENT_VARIANT, /* a device, machine, runtime or model that is like another */
    CS_DOCUMENT_COSTS,
    CS_DOCUMENT_PLAN,
    CS_DOCUMENT_PLATFORM,
    CS_DOCUMENT_MACHINE,
    CS_DOCUMENT_HUGGING_FACE, /* a config.json of transformers */
    CS_DOCUMENT_TRACE,
    CS_N_DOCUMENT_KINDS
} cs_document_kind;

/* CS_INVALID ("m.json: is a model file; must be a scenario; ...") where the document has a key that
 * only another kind has, and none of its own; what else is wrong with it is for its reader. */
CS_MUST_CHECK cs_status cs_document_expect(cs_document_kind wanted, const cJSON *root,
                                           const cs_json_place *place, cs_error *error);

#endif

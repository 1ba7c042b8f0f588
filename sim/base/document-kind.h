/* Recognises which of the program's JSON files a document is, so that a wrong file is reported as
 * such and not key by key. */
#ifndef CS_BASE_DOCUMENT_KIND_H
#define CS_BASE_DOCUMENT_KIND_H

#include "sim/base/json.h"

/* same order as the table in document-kind.c */
typedef enum cs_document_kind {
    CS_DOCUMENT_SCENARIO,
    CS_DOCUMENT_MODEL,
    CS_DOCUMENT_DEVICE,  /* devices have "sources" too, so they come before costs */
    CS_DOCUMENT_VARIANT, /* a device, machine, runtime or model with "like" */
    CS_DOCUMENT_COSTS,
    CS_DOCUMENT_PLAN,
    CS_DOCUMENT_PLATFORM,
    CS_DOCUMENT_MACHINE,
    CS_DOCUMENT_HUGGING_FACE, /* a config.json of transformers */
    CS_DOCUMENT_TRACE,
    CS_N_DOCUMENT_KINDS
} cs_document_kind;

/* Returns CS_INVALID ("m.json: is a model file; must be a scenario; ...") if the document has a key
 * that only another kind has and none of its own kind's. Other mistakes are left to its reader. */
CS_MUST_CHECK cs_status cs_document_expect(cs_document_kind wanted, const cJSON *root,
                                           const cs_json_place *place, cs_error *error);

#endif

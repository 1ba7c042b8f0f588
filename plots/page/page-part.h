/* The part of a page that shows one file: JSON, and packed columns that the JSON describes.
 * Internal to plots/page. */
#ifndef CS_PLOTS_PAGE_PAGE_PART_H
#define CS_PLOTS_PAGE_PAGE_PART_H

#include "plots/page/packed.h"
#include "plots/page/page-json.h"
#include "sim/core/trace/results-reader.h"

typedef struct cs_page_part {
    cs_page_json json;
    cs_packed packed;
} cs_page_part;

/* A column of a results file, and the size of its numbers when packed. */
typedef struct cs_page_column {
    const char *name; /* "tasks/start"; NULL ends a list */
    cs_cell cell;
} cs_page_column;

/* Packs columns unchanged; if cs_reader_fold was called, the folded columns. CS_INVALID,
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_part_pack(cs_page_part *part, cs_reader *reader,
                                          const cs_page_column *columns, cs_error *error);

/* Adds the description of the columns to the JSON; call it last. CS_NO_MEMORY, also if memory ran
 * out earlier for a part of the JSON. */
CS_MUST_CHECK cs_status cs_page_part_end(cs_page_part *part, cs_error *error);

/* Writes the part as the script elements KIND-I and columns-I. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_part_write(const cs_page_part *part, const char *kind, size_t i,
                                           FILE *out, cs_error *error);

/* Allowed on a zeroed part. */
void cs_page_part_finish(cs_page_part *part);

#endif

/* One file's part of a page: JSON, and packed columns that it describes. Internal to plots/page. */
#ifndef CS_PLOTS_PAGE_PAGE_PART_H
#define CS_PLOTS_PAGE_PAGE_PART_H

#include "plots/page/packed.h"
#include "plots/page/page-json.h"
#include "sim/core/trace/results-reader.h"

typedef struct cs_page_part {
    cs_page_json json;
    cs_packed packed;
} cs_page_part;

/* A column of a results file, and the cells in which it is packed. */
typedef struct cs_page_column {
    const char *name; /* "tasks/start"; NULL ends a list */
    cs_cell cell;
} cs_page_column;

/* Packs columns as they are; those of cs_reader_fold where it was called. CS_INVALID,
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_part_pack(cs_page_part *part, cs_reader *reader,
                                          const cs_page_column *columns, cs_error *error);

/* Once all is added: the JSON gets the description of the columns. CS_NO_MEMORY, also where a part
 * of the JSON was not made. */
CS_MUST_CHECK cs_status cs_page_part_end(cs_page_part *part, cs_error *error);

/* As the script elements KIND-I and columns-I. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_part_write(const cs_page_part *part, const char *kind, size_t i,
                                           FILE *out, cs_error *error);

/* Accepts a zeroed part. */
void cs_page_part_finish(cs_page_part *part);

#endif

/* The tables /groups, /ranking, /trends and /peers of a file of predictions and measurements. */
#ifndef CS_VALIDATE_JUDGEMENT_TABLES_H
#define CS_VALIDATE_JUDGEMENT_TABLES_H

#include "sim/core/trace/h5.h"
#include "sim/study/validate/judgement.h"

/* Writes the tables. Errors: see cs_h5_write_table. */
CS_MUST_CHECK cs_status cs_judgement_write_tables(cs_h5_file *file, const cs_judgement *judgement,
                                                  cs_error *error);

#endif

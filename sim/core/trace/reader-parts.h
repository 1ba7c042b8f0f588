/* What the sources of the reader of results files share. Internal to sim/core/trace. */
#ifndef CS_TRACE_READER_PARTS_H
#define CS_TRACE_READER_PARTS_H

#include "sim/core/trace/results-reader.h"

#include <hdf5.h>

/* One message about a column, an attribute or (with the name "") the file, with HDF5's own words:
 * CS_INVALID, or CS_NO_MEMORY where that was the reason. */
CS_MUST_CHECK cs_status cs_reader_fail(const cs_reader *reader, cs_error *error, const char *name,
                                       const char *what);

/* The value of an attribute as text in the arena, NULL when there is none of that type. */
const char *cs_reader_attribute(cs_reader *reader, hid_t object, const char *name);

#endif

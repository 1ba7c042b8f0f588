/* Shared by the sources of the results file reader. Internal to sim/core/trace. */
#ifndef CS_TRACE_READER_PARTS_H
#define CS_TRACE_READER_PARTS_H

#include "sim/core/trace/results-reader.h"

#include <hdf5.h>

/* Reports an error of a column, an attribute or (name "") the file, with HDF5's message.
 * CS_NO_MEMORY if that was the cause, else CS_INVALID. */
CS_MUST_CHECK cs_status cs_reader_fail(const cs_reader *reader, cs_error *error, const char *name,
                                       const char *what);

/* Value of an attribute as text in the arena; NULL if there is no such attribute or it is not a
 * text. */
const char *cs_reader_attribute(cs_reader *reader, hid_t object, const char *name);

#endif

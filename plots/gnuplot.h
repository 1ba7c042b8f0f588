/* Runs gnuplot on one of the programs plots/NAME.gp.
 *
 * A job is a temporary folder with the data that the program draws and parameters.gp, which says in
 * plain assignments what a program needs to know besides. gnuplot is started without a shell and
 * without the user's own start-up files.
 *
 * The programs are looked for in the folder that the environment variable SIM_PLOTS_DIR names, else
 * where they were installed.
 */
#ifndef CS_PLOTS_GNUPLOT_H
#define CS_PLOTS_GNUPLOT_H

#include "sim/base/temporary.h"

#include <stdio.h>

typedef struct cs_gnuplot {
    cs_temporary temporary;
    const char *folder; /* of the data, the temporary one; ends without a slash */
    FILE *parameters;   /* "parameters.gp" in it */
    FILE **files;       /* data, open until gnuplot runs */
    uint32_t n_files, capacity;
    int failure; /* errno of a file that could not be opened, or 0 */
} cs_gnuplot;

CS_MUST_CHECK cs_status cs_gnuplot_init(cs_gnuplot *job, cs_error *error);

/* Also removes the folder and what is in it. Accepts a zeroed job. */
void cs_gnuplot_finish(cs_gnuplot *job);

/* A new data file of the job, to be written; the job closes it. If it cannot be opened, what is
 * written is lost, and cs_gnuplot_run reports it. */
FILE *cs_gnuplot_file(cs_gnuplot *job, const char *name);

/* A character of a text as it may stand in pictures, and how many bytes of the text it is: "?"
 * where a picture cannot have it. */
enum { CS_GNUPLOT_CHARACTER = 5 };
size_t cs_gnuplot_character(const char *text, size_t length, char shown[CS_GNUPLOT_CHARACTER]);

/* Defines a variable of the program. Whether writing worked is said by cs_gnuplot_run. */
void cs_gnuplot_text(cs_gnuplot *job, const char *name, const char *text);
/* The same of the name of a file, which is no text in a picture: "]]>" stays as it is. */
void cs_gnuplot_path(cs_gnuplot *job, const char *name, const char *path);
void cs_gnuplot_number(cs_gnuplot *job, const char *name, double value);

/* Runs `program` ("timeline.gp") and waits for it. CS_FAILED when gnuplot is missing or fails, with
 * the first line of what it said. */
CS_MUST_CHECK cs_status cs_gnuplot_run(cs_gnuplot *job, const char *program, cs_error *error);

#endif

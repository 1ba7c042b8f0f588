/* Runs gnuplot on one of the programs plots/NAME.gp.
 *
 * A job is a temporary folder with the data to draw and with parameters.gp, which sets the
 * program's other variables by plain assignments. gnuplot is started without a shell and without
 * the user's start-up files.
 *
 * The programs are read from the folder that the environment variable SIM_PLOTS_DIR names,
 * otherwise from where they were installed. */
#ifndef CS_PLOTS_GNUPLOT_H
#define CS_PLOTS_GNUPLOT_H

#include "sim/base/temporary.h"

#include <stdio.h>

typedef struct cs_gnuplot {
    cs_temporary temporary;
    const char *folder; /* the temporary folder with the data; no trailing slash */
    FILE *parameters;   /* "parameters.gp" in this folder */
    FILE **files;       /* data files, open until gnuplot runs */
    uint32_t n_files, capacity;
    int failure; /* errno of a file that could not be opened; 0: none */
} cs_gnuplot;

CS_MUST_CHECK cs_status cs_gnuplot_init(cs_gnuplot *job, cs_error *error);

/* Closes all files and removes the folder with its contents. Allowed on a zeroed job. */
void cs_gnuplot_finish(cs_gnuplot *job);

/* Opens a new data file of the job for writing; the job closes it. If the file cannot be opened,
 * text written to it is lost, and cs_gnuplot_run reports the failure. */
FILE *cs_gnuplot_file(cs_gnuplot *job, const char *name);

/* Writes the first character of a text to `shown`, in a form allowed in pictures: "?" if the
 * character is not allowed. Returns the length of the character in bytes of `text`. */
enum { CS_GNUPLOT_CHARACTER = 5 };
size_t cs_gnuplot_character(const char *text, size_t length, char shown[CS_GNUPLOT_CHARACTER]);

/* Defines a variable of the program. cs_gnuplot_run reports write errors. */
void cs_gnuplot_text(cs_gnuplot *job, const char *name, const char *text);
/* Same, for the name of a file. Names of files are not shown in pictures, so "]]>" is not
 * replaced. */
void cs_gnuplot_path(cs_gnuplot *job, const char *name, const char *path);
void cs_gnuplot_number(cs_gnuplot *job, const char *name, double value);

/* Runs `program` (e.g. "timeline.gp") and waits for it. CS_FAILED if gnuplot is missing or fails,
 * with the reason from its output. */
CS_MUST_CHECK cs_status cs_gnuplot_run(cs_gnuplot *job, const char *program, cs_error *error);

#endif

/* A run as a picture of characters, for terminals: what each device does over time, and what its
 * memory holds at its peak. */
#ifndef CS_PRINT_RUN_PICTURE_H
#define CS_PRINT_RUN_PICTURE_H

#include "sim/run/simulate.h"

#include <stdio.h>

typedef struct cs_text_canvas {
    uint32_t columns; /* of the terminal; what is drawn takes 40 to 160 */
    bool unicode;     /* else ASCII */
    bool colour;      /* ECMA-48's; nothing is told by colour alone */
} cs_text_canvas;

/* A character of the timeline stands for a part of the makespan, and is what took most of it. 16
 * rows at most; devices that follow each other and look the same share one. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_run_picture(const cs_simulation *simulation,
                                       const cs_text_canvas *canvas, FILE *out, cs_error *error);

#endif

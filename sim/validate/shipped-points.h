/* The measured runs that come with the program (facts/points/README.md), as text. */
#ifndef CS_VALIDATE_SHIPPED_POINTS_H
#define CS_VALIDATE_SHIPPED_POINTS_H

typedef struct cs_shipped_points {
    const char *name; /* of the file: "facts/points/zero-bubble.json" */
    const char *text;
} cs_shipped_points;

/* Errors of predictions whose figures were fitted to other sources: facts/left-out.json, as text. */
extern const char cs_shipped_left_out[];

/* In the order of names, ended by {0}. */
extern const cs_shipped_points cs_shipped_points_files[];

#endif

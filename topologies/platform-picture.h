/* Platforms as pictures: a graph in Graphviz' language that fits on a page.
 *
 * Similar parts are drawn once. Switches with the same links to the same vertices become one box
 * ("spine0 ... spine9"), and so do devices if there are at least MERGED. Links between the same two
 * boxes become one line, whose width grows with their total bandwidth; two opposite links of the
 * same bandwidth become one line without an arrow. The legend gives the number and bandwidth of the
 * links that a line represents. Of a cluster (vertices called "node3/gpu0") two nodes are drawn.
 * Parts of a network that are on no route between the drawn devices, and not similar to a part that
 * is, are omitted; a line below the picture counts them.
 *
 * Boxes are drawn in layers, by distance from the devices. If most links are within a layer (rings,
 * tori, dragonflies), Graphviz places the boxes by distance instead.
 */
#ifndef CS_TOPOLOGIES_PLATFORM_PICTURE_H
#define CS_TOPOLOGIES_PLATFORM_PICTURE_H

#include "topologies/platform.h"

#include <stdio.h>

/* CS_NO_MEMORY; CS_IO: writing failed. */
CS_MUST_CHECK cs_status cs_platform_dot(const cs_platform *platform, FILE *out, cs_error *error);

#endif

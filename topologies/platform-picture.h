/* Platforms as pictures: a graph in the language of Graphviz, which fits a page.
 *
 * What is alike is drawn once. Switches with the same links to the same vertices become one box
 * ("spine0 ... spine9"), from MERGED devices on also devices; links between the same two boxes
 * become one line, whose width grows with what they carry together, and a link that has an equal
 * one back one line without an arrow. The legend says how many links of which bandwidth a line is.
 * Of a cluster (vertices called "node3/gpu0") two nodes are drawn. Of a network, what no route
 * between the devices that are drawn passes, nor anything that is linked as what they pass, is left
 * out; a line below the picture counts it.
 *
 * Boxes are drawn in layers, by their distance from the devices; where most links join equals
 * (rings, tori, dragonflies), Graphviz lays the graph out by its distances.
 */
#ifndef CS_TOPOLOGIES_PLATFORM_PICTURE_H
#define CS_TOPOLOGIES_PLATFORM_PICTURE_H

#include "topologies/platform.h"

#include <stdio.h>

/* CS_NO_MEMORY, or CS_IO when writing failed. */
CS_MUST_CHECK cs_status cs_platform_dot(const cs_platform *platform, FILE *out, cs_error *error);

#endif

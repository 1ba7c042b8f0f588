/* Platforms as JSON: what `sim export topology` writes and the topology "file" reads (README.md,
 * "The JSON form"). */
#ifndef CS_TOPOLOGIES_FABRIC_JSON_H
#define CS_TOPOLOGIES_FABRIC_JSON_H

#include "topologies/fabric.h"
#include "topologies/topology.h"

/* Draws what the document says. The net is the caller's to destroy; *relays is for
 * cs_fabric_finish. Names of vertices must be unique; links and routes must name vertices and links
 * that there are. */
CS_MUST_CHECK cs_status cs_fabric_from_json(const cJSON *root, const cs_json_place *place,
                                            cs_fabric **net, uint32_t *relays, cs_error *error);

/* The document of a platform, to free with cJSON_Delete. Routes that a search would not find are
 * written out. CS_INVALID when there are too many devices, or no links at all. */
CS_MUST_CHECK cs_status cs_platform_json(const cs_platform *platform, cJSON **root,
                                         cs_error *error);

#endif

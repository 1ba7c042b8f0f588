/* Platforms as JSON, written by `sim export topology` and read by the topology "file" (README.md,
 * "The JSON form"). */
#ifndef CS_TOPOLOGIES_FABRIC_JSON_H
#define CS_TOPOLOGIES_FABRIC_JSON_H

#include "topologies/fabric.h"
#include "topologies/topology.h"

/* Builds the net that the document describes; the caller destroys it. *relays is for
 * cs_fabric_finish. Names of vertices must be unique; links and routes must refer to existing
 * vertices and links. */
CS_MUST_CHECK cs_status cs_fabric_from_json(const cJSON *root, const cs_json_place *place,
                                            cs_fabric **net, uint32_t *relays, cs_error *error);

/* Returns the document of a platform; free it with cJSON_Delete. It states the routes that a search
 * would not find. CS_INVALID: too many devices, or no links. */
CS_MUST_CHECK cs_status cs_platform_json(const cs_platform *platform, cJSON **root,
                                         cs_error *error);

#endif

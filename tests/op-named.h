/* An operator of a network by the last part of its name. */
#ifndef CS_TESTS_OP_NAMED_H
#define CS_TESTS_OP_NAMED_H

#include "sim/model/net.h"

/* "up" for "layers.0.mlp.up"; of several the first. Fails where there is none. */
const cs_op *op_named(const cs_net *net, const char *name);

#endif

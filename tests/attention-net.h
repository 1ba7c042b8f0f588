/* A small network with one attention, for tests of its costs. */
#ifndef CS_TESTS_ATTENTION_NET_H
#define CS_TESTS_ATTENTION_NET_H

#include "sim/model/net.h"

/* 8 tokens of 8 features; 2 heads of queries, and as many of keys and values as `of` says, with 4
 * features each. Returns the operator, which lives as long as the network; the caller finishes
 * that. */
cs_op *attention_net(cs_net *net, const cs_attention *of);

#endif

/* That what the program prices, place 0 of a grid, is what no other place exceeds. */
#ifndef CS_TESTS_LARGEST_PLACE_H
#define CS_TESTS_LARGEST_PLACE_H

#include "sim/model/net-model.h"

/* Fails if any size of the model of `how->place` exceeds the size at place 0. */
void expect_largest(const char *row, const cs_net *net, const cs_net_options *how);

#endif

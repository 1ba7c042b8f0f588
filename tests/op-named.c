#include "tests/op-named.h"

#include "tests/expect.h"

#include <string.h>

const cs_op *op_named(const cs_net *net, const char *name)
{
    for (uint32_t p = 0; p < net->n_ops; p++)
        if (strcmp(strrchr(net->ops[p].name, '.') + 1, name) == 0)
            return &net->ops[p];
    fail_msg("unknown operator %s", name);
    return NULL;
}

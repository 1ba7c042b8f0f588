#include "sim/workload/zoo/transformer.h"

#include "sim/workload/zoo/families.h"

const char *const cs_attention_kernels[] = {
    [CS_ATTENTION_FLASH] = "flash", [CS_ATTENTION_MATH] = "math", NULL};

bool cs_net_check_heads(cs_net *net, uint32_t hidden, uint32_t heads)
{
    if (heads > 0 && hidden % heads == 0)
        return true;
    cs_net_refuse(net, "heads", "must divide hidden, %u (got %u)", hidden, heads);
    return false;
}

cs_tensor cs_net_positions(cs_net *net, const char *name, cs_tensor x, uint32_t positions)
{
    if (x == CS_NO_TENSOR)
        return x;
    uint32_t features = cs_net_tensor(net, x)->shape.dims[1];
    return cs_net_add_table(net, name, x, (int64_t)positions * features);
}

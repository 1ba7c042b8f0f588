#include "sim/model/split.h"

cs_grid cs_grid_single(void)
{
    return (cs_grid){.tensor = 1,
                     .space = {1, 1, 1},
                     .context = 1,
                     .data = 1,
                     .copies = 1,
                     .expert = 1,
                     .expert_tensor = 1,
                     .shard = 1,
                     .expert_shard = 1};
}

cs_split cs_split_none(void)
{
    return (cs_split){.grid = cs_grid_single(), .routing = {.imbalance = 1, .concentration = 1}};
}

static uint32_t n_space(const cs_grid *grid)
{
    return grid->space[0] * grid->space[1] * grid->space[2];
}

uint32_t cs_grid_places(const cs_grid *grid)
{
    return grid->tensor * n_space(grid) * grid->context * grid->data;
}

cs_axes cs_grid_axes(const cs_grid *grid, cs_axes_name name)
{
    const uint32_t places = cs_grid_places(grid), tensor = grid->tensor, space = n_space(grid);
    const uint32_t experts = grid->expert_tensor * grid->expert;
    switch (name) {
    case CS_AXES_TENSOR:
        return (cs_axes){tensor, 1};
    case CS_AXES_SPACE_X:
        return (cs_axes){grid->space[0], tensor};
    case CS_AXES_SPACE_Y:
        return (cs_axes){grid->space[1], tensor * grid->space[0]};
    case CS_AXES_SPACE_Z:
        return (cs_axes){grid->space[2], tensor * grid->space[0] * grid->space[1]};
    case CS_AXES_SPACE:
        return (cs_axes){space, tensor};
    case CS_AXES_CONTEXT:
        return (cs_axes){grid->context, tensor * space};
    case CS_AXES_DATA:
        return (cs_axes){grid->data, tensor * space * grid->context};
    case CS_AXES_GRADIENT:
        return (cs_axes){places / tensor, tensor};
    case CS_AXES_SHARD:
        return (cs_axes){grid->shard, tensor};
    case CS_AXES_REPLICA:
        return (cs_axes){places / tensor / grid->shard, tensor * grid->shard};
    case CS_AXES_EXPERT_TENSOR:
        return (cs_axes){grid->expert_tensor, 1};
    case CS_AXES_EXPERT:
        return (cs_axes){grid->expert, grid->expert_tensor};
    case CS_AXES_EXPERT_DATA:
        return (cs_axes){places / experts, experts};
    case CS_AXES_EXPERT_SHARD:
        return (cs_axes){grid->expert_shard, experts};
    case CS_AXES_EXPERT_REPLICA:
        return (cs_axes){places / experts / grid->expert_shard, experts * grid->expert_shard};
    case CS_AXES_COPIES:
        return (cs_axes){grid->copies > 0 ? grid->copies : 1, 1};
    case CS_N_AXES:
        break;
    }
    return (cs_axes){1, 1};
}

const char *cs_axes_text(cs_axes_name name)
{
    static const char *const texts[] = {
#define CS_AXES_TEXT(name, text) text,
        CS_AXES_MAP(CS_AXES_TEXT)
#undef CS_AXES_TEXT
    };
    return texts[name];
}

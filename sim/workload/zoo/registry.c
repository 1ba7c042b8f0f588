#include "sim/base/text.h"
#include "sim/workload/zoo/image.h"
#include "sim/workload/zoo/zoo.h"

#include <string.h>

extern const cs_zoo_entry cs_zoo_vgg16, cs_zoo_resnet18, cs_zoo_resnet50, cs_zoo_resnet101,
    cs_zoo_resnet152, cs_zoo_inception_v3, cs_zoo_densenet121, cs_zoo_vit_b16, cs_zoo_gpt,
    cs_zoo_llama, cs_zoo_mixtral, cs_zoo_qwen3, cs_zoo_deepseek_v2, cs_zoo_deepseek_v3,
    cs_zoo_gpt_oss, cs_zoo_decoder, cs_zoo_mamba2, cs_zoo_bamba, cs_zoo_bert, cs_zoo_t5,
    cs_zoo_cosmoflow, cs_zoo_mingpt;

const cs_zoo_entry *const cs_zoo[] = {
    &cs_zoo_vgg16,
    &cs_zoo_resnet18,
    &cs_zoo_resnet50,
    &cs_zoo_resnet101,
    &cs_zoo_resnet152,
    &cs_zoo_densenet121,
    &cs_zoo_vit_b16,
    &cs_zoo_inception_v3,
    &cs_zoo_cosmoflow,
    &cs_zoo_gpt,
    &cs_zoo_llama,
    &cs_zoo_mixtral,
    &cs_zoo_qwen3,
    &cs_zoo_deepseek_v2,
    &cs_zoo_deepseek_v3,
    &cs_zoo_gpt_oss,
    &cs_zoo_decoder,
    &cs_zoo_mamba2,
    &cs_zoo_bamba,
    &cs_zoo_bert,
    &cs_zoo_t5,
    &cs_zoo_mingpt,
    NULL,
};

const cs_field cs_image_fields[] = {
    CS_IMAGE_FIELD(cs_image_params, "224"),
    CS_CLASSES_FIELD(cs_image_params),
    {0},
};

cs_tensor cs_net_picture(cs_net *net, const cs_image_params *params)
{
    return cs_net_image(net, 3, (cs_extent){2, {params->image, params->image}});
}

cs_status cs_zoo_find(const char *name, const cs_zoo_entry **entry, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (size_t i = 0; cs_zoo[i]; i++) {
        if (strcmp(cs_zoo[i]->name, name) == 0) {
            *entry = cs_zoo[i];
            return CS_OK;
        }
        cs_guess_add(&guess, cs_zoo[i]->name);
    }
    return cs_error_add(error, CS_INVALID, "unknown model %s", cs_guess_text(&guess));
}

cs_status cs_zoo_build(const cs_zoo_entry *entry, const cJSON *params, const cs_json_place *place,
                       cs_net *net, cs_error *error)
{
    cs_net made;
    cs_net_begin(&made, entry->name, error);
    void *values = cs_arena_alloc(&made.arena, 1, entry->params_size);
    cs_status status =
        values ? cs_field_read(params, place, (const cs_field *const[]){entry->fields, NULL},
                               (void *const[]){values}, &made.arena, error)
               : cs_error_no_memory(error);
    made.place = place;
    made.has_keys = true;
    if (status == CS_OK) {
        entry->build(&made, entry->variant, values);
        status = cs_net_end(&made);
    }
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    *net = made;
    return CS_OK;
}

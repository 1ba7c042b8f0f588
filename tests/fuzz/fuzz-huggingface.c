/* config.json of transformers: everything that is accepted becomes a chain with the parameters of
 * the network. */
#include "sim/model/foreign/huggingface.h"
#include "sim/model/net-model.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_chain(const cs_net *net)
{
    cs_accelerator none;
    cs_net_chain chain;
    cs_accelerator_none(&none);
    const cs_net_options how = {.batch_size = 1, .device = &none, .source = "fuzz"};
    int64_t parameters = 0;
    cs_status status = cs_net_chain_find(net, &how, &chain, NULL);
    if (status != CS_OK)
        return;
    for (uint32_t i = 0; i < chain.n_layers; i++)
        parameters += chain.layers[i].weights + chain.layers[i].biases;
    if (parameters != cs_net_parameters(net) || parameters < 0)
        abort();
    cs_net_chain_finish(&chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const cs_json_place place = {.file = "p"};
    cJSON *root;
    cs_net net;
    cs_error error;
    cs_error_init(&error);
    if (cs_json_parse("c", (const char *)data, size, &root, &error) != CS_OK)
        return 0;
    if (cs_huggingface_read(root, "c", NULL, &place, &net, &error) == CS_OK) {
        check_chain(&net);
        cs_net_finish(&net);
    } else if (error.count == 0) {
        abort();
    }
    cJSON_Delete(root);
    return 0;
}

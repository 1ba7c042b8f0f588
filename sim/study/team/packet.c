#include "sim/study/team/packet.h"

#include "sim/base/json.h"

#include <stdlib.h>
#include <string.h>

void *cs_packet_pack(const cs_packet *packet, size_t *bytes)
{
    *bytes = sizeof(*packet);
    for (int i = 0; i < CS_N_PACKET_PARTS; i++)
        *bytes += packet->parts[i].bytes;
    char *data = malloc(*bytes), *at = data;
    if (!data)
        return NULL;
    memcpy(at, packet, sizeof(*packet)); /* pointers in it mean nothing to the receiver */
    at += sizeof(*packet);
    for (int i = 0; i < CS_N_PACKET_PARTS; i++) {
        if (packet->parts[i].bytes > 0)
            memcpy(at, packet->parts[i].data, packet->parts[i].bytes);
        at += packet->parts[i].bytes;
    }
    return data;
}

bool cs_packet_unpack(const void *data, size_t bytes, cs_packet *packet)
{
    size_t at = sizeof(*packet);
    if (bytes < at)
        return false;
    memcpy(packet, data, sizeof(*packet));
    for (int i = 0; i < CS_N_PACKET_PARTS; i++) {
        if (packet->parts[i].bytes > bytes - at)
            return false;
        packet->parts[i].data = (const char *)data + at;
        at += packet->parts[i].bytes;
    }
    return at == bytes && packet->kind < CS_N_PACKET_KINDS;
}

static void set_part(cs_packet *packet, int part, const void *data, size_t bytes)
{
    packet->parts[part].data = data;
    packet->parts[part].bytes = data ? bytes : 0;
}

void *cs_packet_of_item(const cs_pool_item *item, uint32_t round, size_t *bytes)
{
    cs_packet packet = {.kind = CS_PACKET_ITEM,
                        .round = round,
                        .point = item->point,
                        .status = (uint32_t)item->status};
    char *figures = item->figures ? cs_json_print(item->figures) : NULL;
    if (item->figures && !figures)
        return NULL;
    set_part(&packet, CS_PACKET_FIGURES, figures, figures ? strlen(figures) : 0);
    set_part(&packet, CS_PACKET_RECORD, item->record, item->record ? strlen(item->record) : 0);
    set_part(&packet, CS_PACKET_VALUE, item->value, item->value_bytes);
    if (item->status != CS_OK)
        set_part(&packet, CS_PACKET_ERROR, item->error, sizeof(*item->error));
    void *data = cs_packet_pack(&packet, bytes);
    free(figures);
    return data;
}

/* A copy with a NUL behind it; NULL of nothing, and, which `whole` tells, when memory runs out. */
static void *copy_of(const cs_packet *packet, int part, bool *whole)
{
    const size_t bytes = packet->parts[part].bytes;
    char *copy = bytes > 0 ? malloc(bytes + 1) : NULL;
    *whole = *whole && (copy || bytes == 0);
    if (copy) {
        memcpy(copy, packet->parts[part].data, bytes);
        copy[bytes] = '\0';
    }
    return copy;
}

static bool fill_item(const cs_packet *packet, cs_pool_item *item)
{
    const size_t error_bytes = packet->parts[CS_PACKET_ERROR].bytes;
    const size_t n = packet->parts[CS_PACKET_FIGURES].bytes;
    bool whole = error_bytes == 0 || error_bytes == sizeof(*item->error);
    item->status = (cs_status)packet->status;
    item->record = copy_of(packet, CS_PACKET_RECORD, &whole);
    item->value = copy_of(packet, CS_PACKET_VALUE, &whole);
    item->value_bytes = packet->parts[CS_PACKET_VALUE].bytes;
    item->error = malloc(sizeof(*item->error));
    whole = whole && item->error;
    if (whole && error_bytes > 0)
        memcpy(item->error, packet->parts[CS_PACKET_ERROR].data, error_bytes);
    else if (whole)
        cs_error_init(item->error);
    if (whole && n > 0)
        whole = cs_json_parse("figures", packet->parts[CS_PACKET_FIGURES].data, n, &item->figures,
                              NULL) == CS_OK;
    return whole;
}

cs_pool_item *cs_packet_item(const cs_packet *packet)
{
    cs_pool_item *item = cs_pool_item_create(packet->point);
    if (item && fill_item(packet, item))
        return item;
    if (item)
        cs_pool_item_destroy(item);
    return NULL;
}

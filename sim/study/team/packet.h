/* What the processes of a team tell each other. Internal to sim/study/team. */
#ifndef CS_TEAM_PACKET_H
#define CS_TEAM_PACKET_H

#include "sim/base/pool.h"

typedef enum cs_packet_kind {
    CS_PACKET_HELLO,  /* a helper is ready: cs_hello */
    CS_PACKET_WORK,   /* points for a helper */
    CS_PACKET_ITEM,   /* what came of a point */
    CS_PACKET_FAILED, /* a helper cannot help: why */
    CS_PACKET_WAIT,   /* the leader is interrupted, and has yet to say what is done */
    CS_PACKET_END,    /* there is no more to do */
    CS_N_PACKET_KINDS
} cs_packet_kind;

typedef struct cs_hello {
    uint64_t identity; /* of what is worked on */
    uint32_t jobs;
    char host[64];
} cs_hello;

enum { CS_PACKET_FIGURES, CS_PACKET_RECORD, CS_PACKET_VALUE, CS_PACKET_ERROR, CS_N_PACKET_PARTS };

typedef struct cs_packet {
    uint32_t kind;
    uint32_t round; /* of the pool that it is about, counted by the first process */
    uint32_t stage; /* of work: which pool of the helper does it */
    uint32_t point, status;
    struct {
        const void *data;
        uint64_t bytes;
    } parts[CS_N_PACKET_PARTS]; /* texts without their NUL */
} cs_packet;

/* As one piece, for the caller to free; NULL when memory runs out. */
void *cs_packet_pack(const cs_packet *packet, size_t *bytes);

/* Parts lie in `data`. False when it is no packet. */
bool cs_packet_unpack(const void *data, size_t bytes, cs_packet *packet);

/* A packed item; NULL when memory runs out. */
void *cs_packet_of_item(const cs_pool_item *item, uint32_t round, size_t *bytes);

/* The item of a packet; NULL when memory runs out, or it holds none. */
cs_pool_item *cs_packet_item(const cs_packet *packet);

#endif

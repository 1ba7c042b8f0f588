/* Messages between the processes of a team. Internal to sim/study/team. */
#ifndef CS_TEAM_PACKET_H
#define CS_TEAM_PACKET_H

#include "sim/base/pool.h"

typedef enum cs_packet_kind {
    CS_PACKET_HELLO,  /* a helper is ready: cs_hello */
    CS_PACKET_WORK,   /* points for a helper */
    CS_PACKET_ITEM,   /* result of a point */
    CS_PACKET_FAILED, /* a helper failed: its message */
    CS_PACKET_WAIT,   /* the leader was interrupted and has not yet reported its results */
    CS_PACKET_END,    /* no more work */
    CS_N_PACKET_KINDS
} cs_packet_kind;

typedef struct cs_hello {
    uint64_t identity; /* hash of the work; must be the same in all processes */
    uint32_t jobs;
    char host[64];
} cs_hello;

enum { CS_PACKET_FIGURES, CS_PACKET_RECORD, CS_PACKET_VALUE, CS_PACKET_ERROR, CS_N_PACKET_PARTS };

typedef struct cs_packet {
    uint32_t kind;
    uint32_t round; /* number of the pool's run, counted by the leader */
    uint32_t stage; /* WORK: pool of the helper to use */
    uint32_t point, status;
    struct {
        const void *data;
        uint64_t bytes;
    } parts[CS_N_PACKET_PARTS]; /* texts without their NUL */
} cs_packet;

/* Serialises a packet; the caller frees it. NULL if memory runs out. */
void *cs_packet_pack(const cs_packet *packet, size_t *bytes);

/* Parses a packet; its parts point into `data`. Returns false if it is malformed. */
bool cs_packet_unpack(const void *data, size_t bytes, cs_packet *packet);

/* Serialises an item; NULL if memory runs out. */
void *cs_packet_of_item(const cs_pool_item *item, uint32_t round, size_t *bytes);

/* Returns the item in a packet; NULL if memory runs out or it holds none. */
cs_pool_item *cs_packet_item(const cs_packet *packet);

#endif

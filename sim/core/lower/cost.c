#include "sim/core/lower/cost.h"

#include "sim/base/hash.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

/* Message between two ranks of a side. */
typedef struct message {
    uint32_t from, to, round;
    int64_t bytes;
} message;

typedef struct messages {
    message *of;
    uint32_t n, capacity;
} messages;

/* Set of sides that send the same messages between their ranks. */
typedef struct shape {
    cs_collective collective; /* with bytes rounded up so that they divide */
    const cs_algorithm *algorithm;
    uint32_t alike; /* number of rounds like the first one, or 0 */
    /* messages of all rounds (several shapes only); messages of the current round */
    messages all, now;
    uint32_t at; /* position in `all` */
} shape;

/* Solved round: speeds of the messages of the wanted sides, side by side. */
typedef struct solution {
    uint64_t hash;
    message *key; /* messages with `round` 0; bytes are 0 or 1 if only that matters */
    uint32_t n;   /* number of messages per side */
    cs_speed *speeds;
} solution;

/* Solutions are all dropped when they exceed either limit. */
enum { SOLUTIONS_MAX = 256, SPEEDS_MAX = 1 << 20 };

struct cs_solutions {
    solution of[SOLUTIONS_MAX];
    uint32_t n;
    uint64_t n_speeds;
};

typedef struct account {
    const cs_sides *sides;
    const cs_platform *platform;
    const cs_alpha_beta *levels; /* NULL: rates come from the links; otherwise also: */
    /* per rank and side: time spent sending and receiving in this round */
    cs_time *busy;
    shape *shapes;
    uint32_t *shape_of; /* per side: its shape */
    uint32_t n_shapes, most_ranks;
    /* solver in use; own_network is set if the caller passed none */
    cs_round *network, *own_network;
    cs_solutions *solutions, *own;
    cs_sent *sent;
    cs_speed *speeds;
    messages key; /* key of the round to look up */
    uint32_t cap_sent, cap_speeds, round;
    cs_time *costs;
    cs_status status;
} account;

cs_solutions *cs_solutions_create(void)
{
    return calloc(1, sizeof(cs_solutions));
}

static void forget(cs_solutions *solutions)
{
    for (uint32_t i = 0; i < solutions->n; i++) {
        free(solutions->of[i].key);
        free(solutions->of[i].speeds);
    }
    solutions->n = 0;
    solutions->n_speeds = 0;
}

void cs_solutions_destroy(cs_solutions *solutions)
{
    if (solutions)
        forget(solutions);
    free(solutions);
}

/* ---- one round ---- */

static bool push(messages *list, message made)
{
    if (!cs_vector_reserve((void **)&list->of, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->of)))
        return false;
    list->of[list->n++] = made;
    return true;
}

static uint32_t messages_of(const account *a, uint32_t side)
{
    return a->shapes[a->shape_of[side]].now.n;
}

/* Lists the messages of all sides, between devices. */
static bool list_sent(account *a, uint32_t *n)
{
    uint64_t all = 0;
    for (uint32_t s = 0; s < a->sides->n; s++)
        all += messages_of(a, s);
    if (all >= UINT32_MAX ||
        !cs_vector_reserve((void **)&a->sent, &a->cap_sent, all, sizeof(*a->sent)) ||
        !cs_vector_reserve((void **)&a->speeds, &a->cap_speeds, all, sizeof(*a->speeds)))
        return false;
    cs_sent *out = a->sent;
    for (uint32_t s = 0; s < a->sides->n; s++) {
        const messages *now = &a->shapes[a->shape_of[s]].now;
        const uint32_t *devices = a->sides->of[s].devices;
        for (uint32_t i = 0; i < now->n; i++)
            *out++ =
                (cs_sent){devices[now->of[i].from], devices[now->of[i].to], s, now->of[i].bytes};
    }
    *n = (uint32_t)all;
    return true;
}

/* Makes the key of a round. Rates depend on senders and receivers; under fifo also on bytes;
 * otherwise on whether there are any bytes. */
static bool make_key(account *a)
{
    a->key.n = 0;
    for (uint32_t s = 0; s < a->n_shapes; s++) {
        const messages *now = &a->shapes[s].now;
        for (uint32_t i = 0; i < now->n; i++) {
            message made;
            memset(&made, 0, sizeof(made)); /* keys are compared as bytes */
            made.from = now->of[i].from;
            made.to = now->of[i].to;
            made.round = s;
            made.bytes =
                a->platform->sharing == CS_SHARING_FIFO ? now->of[i].bytes : now->of[i].bytes > 0;
            if (!push(&a->key, made))
                return false;
        }
    }
    return true;
}

static const cs_speed *find_solution(const account *a, uint64_t hash)
{
    for (uint32_t i = a->solutions->n; i-- > 0;) {
        const solution *at = &a->solutions->of[i];
        if (at->hash == hash && at->n == a->key.n &&
            memcmp(at->key, a->key.of, at->n * sizeof(*at->key)) == 0)
            return at->speeds;
    }
    return NULL;
}

/* Stores the speeds of the wanted sides, one side after the other. */
static bool keep_solution(account *a, uint64_t hash)
{
    uint32_t from = 0, to = 0;
    for (uint32_t s = 0; s < a->sides->n; s++) {
        const uint32_t n = messages_of(a, s);
        if (a->sides->wanted[s]) {
            memmove(a->speeds + to, a->speeds + from, n * sizeof(*a->speeds));
            to += n;
        }
        from += n;
    }
    if (a->solutions->n == SOLUTIONS_MAX || a->solutions->n_speeds + to > SPEEDS_MAX)
        forget(a->solutions);
    solution made = {.hash = hash,
                     .key = malloc(((size_t)a->key.n + 1) * sizeof(*made.key)),
                     .n = a->key.n,
                     .speeds = malloc(((size_t)to + 1) * sizeof(*made.speeds))};
    if (!made.key || !made.speeds) {
        free(made.key);
        free(made.speeds);
        return false;
    }
    memcpy(made.key, a->key.of, a->key.n * sizeof(*made.key));
    memcpy(made.speeds, a->speeds, to * sizeof(*made.speeds));
    a->solutions->of[a->solutions->n++] = made;
    a->solutions->n_speeds += to;
    return true;
}

/* Finds the speeds of the wanted sides' messages in the current round. */
static cs_status solve(account *a, const cs_speed **speeds)
{
    uint32_t n;
    if (!make_key(a))
        return CS_NO_MEMORY;
    const uint64_t hash = cs_hash_bytes(a->key.of, a->key.n * sizeof(*a->key.of), 0);
    *speeds = find_solution(a, hash);
    if (*speeds)
        return CS_OK;
    if (!list_sent(a, &n))
        return CS_NO_MEMORY;
    CS_TRY(cs_round_solve(a->network, a->sent, n, a->sides->wanted, a->speeds));
    if (!keep_solution(a, hash))
        return CS_NO_MEMORY;
    *speeds = a->solutions->of[a->solutions->n - 1].speeds;
    return CS_OK;
}

/* Adds a message to the ports of its ranks: a rank sends one message at a time and receives one at
 * a time. */
static bool add_to_ports(account *a, const message *of, cs_time time, cs_time *slowest)
{
    cs_time *ports[] = {&a->busy[2 * of->from], &a->busy[2 * of->to + 1]};
    for (size_t i = 0; i < 2; i++) {
        if (!cs_time_add(*ports[i], time, ports[i]))
            return false;
        *slowest = *ports[i] > *slowest ? *ports[i] : *slowest;
    }
    return true;
}

/* Finds the time of a side's slowest message. */
static bool find_slowest(account *a, uint32_t side, const cs_speed *speeds, cs_time *slowest)
{
    const messages *now = &a->shapes[a->shape_of[side]].now;
    *slowest = 0;
    if (a->levels)
        memset(a->busy, 0, 2 * (size_t)a->most_ranks * sizeof(*a->busy));
    for (uint32_t i = 0; i < now->n; i++) {
        cs_time time;
        if (!cs_time_transfer((double)now->of[i].bytes, speeds[i].rate, &time) ||
            !cs_time_add(time, speeds[i].latency, &time) ||
            (a->levels && !add_to_ports(a, &now->of[i], time, slowest)))
            return false;
        *slowest = time > *slowest ? time : *slowest;
    }
    return true;
}

/* Adds the time of the current round `times` times. */
static void add_round(account *a, uint32_t times)
{
    const cs_speed *speeds = NULL;
    if (a->status == CS_OK)
        a->status = solve(a, &speeds);
    for (uint32_t s = 0; s < a->sides->n && a->status == CS_OK; s++) {
        cs_time slowest;
        if (!a->sides->wanted[s])
            continue;
        if (!find_slowest(a, s, speeds, &slowest) ||
            __builtin_mul_overflow(slowest, times, &slowest) ||
            !cs_time_add(a->costs[s], slowest, &a->costs[s]))
            a->status = CS_OVERFLOW;
        speeds += messages_of(a, s);
    }
}

/* ---- all rounds of one shape, as they come ---- */

static bool visit(void *context, const cs_send *send)
{
    account *a = context;
    shape *of = &a->shapes[0];
    if (of->alike > 0 && send->round > 0)
        return false;
    if (send->round != a->round && of->now.n > 0) {
        add_round(a, 1);
        of->now.n = 0;
    }
    a->round = send->round;
    if (a->status == CS_OK &&
        !push(&of->now, (message){send->from, send->to, send->round, send->bytes}))
        a->status = CS_NO_MEMORY;
    return a->status == CS_OK;
}

static void play_one(account *a)
{
    const shape *of = &a->shapes[0];
    if ((of->algorithm->walk(&of->collective, visit, a) || of->alike > 0) && of->now.n > 0)
        add_round(a, of->alike > 0 ? of->alike : 1);
}

/* ---- of several shapes, side by side ---- */

enum { STORED_MAX = 1 << 24 };

static bool store(void *context, const cs_send *send)
{
    shape *of = context;
    if (of->alike > 0 && send->round > 0)
        return false;
    return of->all.n < STORED_MAX &&
           push(&of->all, (message){send->from, send->to, send->round, send->bytes});
}

/* Sets the messages of a round. Returns how many rounds, starting with this one, have the same
 * messages. */
static uint32_t take_round(shape *of, uint32_t round)
{
    of->now.n = 0;
    if (of->alike > 0 && round < of->alike) {
        of->now.n = of->all.n;
        return of->alike - round;
    }
    if (of->alike > 0 || of->at == of->all.n)
        return UINT32_MAX;
    uint32_t end = of->at;
    while (end < of->all.n && of->all.of[end].round == round)
        end++;
    memcpy(of->now.of, of->all.of + of->at, (end - of->at) * sizeof(*of->now.of));
    of->now.n = end - of->at;
    of->at = end;
    return 1;
}

static cs_status store_all(account *a)
{
    for (uint32_t s = 0; s < a->n_shapes; s++) {
        shape *of = &a->shapes[s];
        if (!of->algorithm->walk(&of->collective, store, of) && of->alike == 0)
            return of->all.n == STORED_MAX ? CS_FAILED : CS_NO_MEMORY;
        of->now.of = malloc(((size_t)of->all.n + 1) * sizeof(*of->now.of));
        if (!of->now.of)
            return CS_NO_MEMORY;
        if (of->alike > 0) /* The messages are the same in all rounds. */
            memcpy(of->now.of, of->all.of, of->all.n * sizeof(*of->now.of));
    }
    return CS_OK;
}

static void play_several(account *a)
{
    a->status = store_all(a);
    for (uint32_t round = 0, times; a->status == CS_OK; round += times) {
        times = UINT32_MAX;
        for (uint32_t s = 0; s < a->n_shapes; s++) {
            const uint32_t same = take_round(&a->shapes[s], round);
            times = same < times ? same : times;
        }
        if (times == UINT32_MAX)
            return;
        add_round(a, times);
    }
}

/* ---- the whole ---- */

/* Rounds the bytes up so that all ranks have equal shares and rounds are alike, for collectives
 * that split their vector. */
static cs_collective round_up(cs_collective of)
{
    const bool whole = of.kind == CS_BROADCAST || of.kind == CS_REDUCE || of.kind == CS_HALO ||
                       of.kind == CS_SHIFT;
    if (!whole && of.bytes % of.n != 0 && of.bytes < INT64_MAX - of.n)
        of.bytes += of.n - of.bytes % of.n;
    return of;
}

static bool same_shape(const shape *of, const cs_side *side, const cs_collective *even)
{
    const cs_collective *have = &of->collective;
    return of->algorithm == side->algorithm && have->kind == even->kind && have->n == even->n &&
           have->bytes == even->bytes && have->bytes_back == even->bytes_back &&
           have->chunks == even->chunks && have->copies == even->copies &&
           have->experts == even->experts && have->node_ranks == even->node_ranks &&
           have->rings == even->rings && have->links == even->links;
}

static void find_shapes(account *a)
{
    for (uint32_t i = 0; i < a->sides->n; i++) {
        const cs_side *side = &a->sides->of[i];
        const cs_collective even = round_up(side->collective);
        uint32_t s = 0;
        while (s < a->n_shapes && !same_shape(&a->shapes[s], side, &even))
            s++;
        a->shape_of[i] = s;
        if (s < a->n_shapes)
            continue;
        a->shapes[a->n_shapes++] = (shape){.collective = even,
                                           .algorithm = side->algorithm,
                                           .alike = cs_algorithm_alike(side->algorithm, &even)};
        a->most_ranks = even.n > a->most_ranks ? even.n : a->most_ranks;
    }
}

static bool reserve(account *a)
{
    a->shapes = calloc((size_t)a->sides->n + 1, sizeof(*a->shapes));
    a->shape_of = calloc((size_t)a->sides->n + 1, sizeof(*a->shape_of));
    if (!a->shapes || !a->shape_of)
        return false;
    find_shapes(a);
    /* a solution does not record which side has which shape */
    const bool keep = a->sides->solutions && a->n_shapes == 1;
    a->own_network = a->sides->round ? NULL : cs_round_create(a->platform, a->levels, NULL);
    a->network = a->sides->round ? a->sides->round : a->own_network;
    a->own = keep ? NULL : cs_solutions_create();
    a->solutions = keep ? a->sides->solutions : a->own;
    if (!a->network || !a->solutions)
        return false;
    a->busy = a->levels ? calloc(2 * (size_t)a->most_ranks + 1, sizeof(*a->busy)) : NULL;
    return a->busy || !a->levels;
}

static void release(account *a)
{
    for (uint32_t s = 0; a->shapes && s < a->n_shapes; s++) {
        free(a->shapes[s].all.of);
        free(a->shapes[s].now.of);
    }
    free(a->shapes);
    free(a->shape_of);
    free(a->busy);
    free(a->sent);
    free(a->speeds);
    free(a->key.of);
    cs_round_destroy(a->own_network);
    cs_solutions_destroy(a->own);
}

cs_status cs_collective_costs(const cs_sides *sides, const cs_platform *platform,
                              const cs_alpha_beta *levels, cs_time *costs, cs_error *error)
{
    account a = {.sides = sides, .platform = platform, .levels = levels, .costs = costs};
    for (uint32_t s = 0; s < sides->n; s++)
        costs[s] = 0;
    if (!reserve(&a))
        a.status = CS_NO_MEMORY;
    else if (a.n_shapes == 1)
        play_one(&a);
    else
        play_several(&a);
    release(&a);
    if (a.status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    if (a.status == CS_FAILED)
        return cs_error_add(error, a.status,
                            "too large to simulate: unlike collectives side by side, one of more "
                            "than %d messages",
                            STORED_MAX);
    if (a.status != CS_OK)
        return cs_error_add(error, a.status, "a collective takes 2^63 ps or more");
    return CS_OK;
}

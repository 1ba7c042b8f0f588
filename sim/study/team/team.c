#include "sim/study/team/team.h"

#include "sim/base/beside.h"
#include "sim/base/hash.h"
#include "sim/base/interrupt.h"
#include "sim/base/time.h"
#include "sim/base/version.h"
#include "sim/study/team/packet.h"
#include "sim/study/team/transport.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const long look_every = 1000000; /* ns between checks for messages */
static const double look_ahead = 0.01;  /* s of work that a process has queued in addition */
static const double last_words = 0.25;  /* s that an interrupted process waits for the leader */

/* The leader's view of a process; the first is the leader itself. */
typedef struct member {
    bool ready;
    uint32_t jobs;
    uint32_t queued; /* points handed out and not finished */
    uint32_t n_done;
    double since; /* cs_clock_seconds() when it got the first points of this round */
} member;

struct cs_team {
    const cs_transport *transport;
    uint32_t rank, size;
    uint64_t identity;
    uint32_t round;
    member *members;   /* leader only */
    bool greeted;      /* helper: the leader knows this process */
    bool waits, ended; /* helper: the leader sent WAIT, END */
    bool orphan;       /* helper: interrupted, and the leader sent neither */
    cs_packet packet;  /* helper: work of a later stage */
    void *data;        /* data of the packet; NULL: none */
    char why[CS_TRANSPORT_WHY_BYTES];
};

/* ---- messages ---- */

static cs_status fail(const cs_team *team, cs_error *error)
{
    return cs_error_add(error, CS_FAILED, "process %u: %s", team->rank, team->why);
}

/* Posts `data` and frees it. NULL means that memory ran out. */
static cs_status post(cs_team *team, uint32_t to, void *data, size_t bytes, cs_error *error)
{
    const bool posted = data && team->transport->post(to, data, bytes, team->why);
    const cs_status status = !data ? cs_error_no_memory(error) : posted ? CS_OK : fail(team, error);
    free(data);
    return status;
}

static cs_status post_packet(cs_team *team, uint32_t to, const cs_packet *packet, cs_error *error)
{
    size_t bytes;
    void *data = cs_packet_pack(packet, &bytes);
    return post(team, to, data, bytes, error);
}

/* Receives the next message; *data is NULL if there is none. */
static cs_status receive(cs_team *team, uint32_t *from, cs_packet *packet, void **data,
                         cs_error *error)
{
    size_t bytes;
    uint32_t n;
    if (!team->transport->in_flight(&n, team->why) ||
        !team->transport->receive(from, data, &bytes, team->why))
        return fail(team, error);
    if (!*data || cs_packet_unpack(*data, bytes, packet))
        return CS_OK;
    free(*data);
    return cs_error_add(error, CS_FAILED, "process %u sent what this version of sim cannot read",
                        *from);
}

static void rest(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = look_every}, NULL);
}

/* ---- joining and leaving ---- */

/* Folders of libsim-mpi.so when built and when installed, relative to the folder of `sim`. */
static const char *const places[] = {"../study/team", "../libexec/sim", ".", NULL};

static cs_status load_module(const cs_launch *launch, const cs_transport **transport,
                             cs_error *error)
{
    char path[PATH_MAX];
    /* RTLD_GLOBAL: libraries that Open MPI loads later look up symbols in it */
    const bool found = cs_beside_find("libsim-mpi.so", places, R_OK, path, sizeof(path));
    void *module = found ? dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) : NULL;
    *transport = module ? dlsym(module, CS_TRANSPORT_SYMBOL) : NULL;
    if (*transport)
        return CS_OK;
    const char *why = found ? dlerror() : NULL;
    return cs_error_add(error, CS_FAILED, "sim was started as %u processes (%s), but %s%s",
                        launch->size, launch->variable,
                        found ? "cannot load its module for MPI: "
                              : "was built without MPI: start it once, or install an MPI (Debian: "
                                "libopenmpi-dev openmpi-bin) and build again (meson setup "
                                "--reconfigure -Dmpi=enabled build reports what it lacks)",
                        why ? why : "");
}

static cs_status join(const cs_launch *launch, cs_team *team, cs_error *error)
{
    CS_TRY(load_module(launch, &team->transport, error));
    if (!team->transport->open(&team->rank, &team->size, team->why))
        return fail(team, error);
    if (team->size != launch->size)
        return cs_error_add(error, CS_FAILED,
                            "sim was started as %u processes (%s), but MPI knows of %u: start them "
                            "with the mpirun of the MPI that sim was built with, or with srun "
                            "--mpi=pmix",
                            launch->size, launch->variable, team->size);
    team->members = calloc(team->size, sizeof(*team->members));
    return team->members ? CS_OK : cs_error_no_memory(error);
}

cs_status cs_team_open(cs_team **opened, cs_error *error)
{
    const cs_launch launch = cs_launch_find();
    *opened = NULL;
    if (launch.size <= 1)
        return CS_OK;
    if (launch.rank > 0) {
        cs_interrupt_silence();
        (void)cs_interrupt_asked(); /* from now on a signal gives it a grace period: wait_for_end */
    }
    cs_team *team = calloc(1, sizeof(*team));
    if (!team)
        return cs_error_no_memory(error);
    const cs_status status = join(&launch, team, error);
    if (status == CS_OK)
        *opened = team;
    else
        free(team);
    return status;
}

bool cs_team_helps(const cs_team *team)
{
    return team && team->rank > 0;
}

bool cs_team_is_orphan(const cs_team *team)
{
    return team && team->orphan && team->rank == 1;
}

void cs_team_identify(cs_team *team, uint64_t identity)
{
    if (team)
        team->identity = cs_hash_bytes(SIM_VERSION, sizeof(SIM_VERSION), identity);
}

static void tell_helpers(cs_team *team, cs_packet_kind kind)
{
    const cs_packet packet = {.kind = kind};
    for (uint32_t to = 1; to < team->size; to++)
        (void)post_packet(team, to, &packet, NULL);
}

/* Receives messages until one has work, and keeps that until it is taken. */
static cs_status look(cs_team *team, cs_error *error)
{
    uint32_t from;
    if (team->data || team->ended)
        return CS_OK;
    CS_TRY(receive(team, &from, &team->packet, &team->data, error));
    if (!team->data || team->packet.kind == CS_PACKET_WORK)
        return CS_OK;
    team->waits = team->waits || team->packet.kind == CS_PACKET_WAIT;
    team->ended = team->packet.kind == CS_PACKET_END;
    free(team->data);
    team->data = NULL;
    return CS_OK;
}

/* Waits until the leader has ended. mpirun kills all processes as soon as one that it interrupted
 * has ended, so no helper ends before the leader, which has results to report; and if the leader is
 * gone, none ends before rank 1, which reports that. */
static void wait_for_end(cs_team *team)
{
    const double patience = team->rank == 1 ? last_words : 2 * last_words;
    double since = (double)INFINITY;
    while (!team->ended && (team->waits || cs_clock_seconds() < since + patience)) {
        if (cs_interrupt_asked() && cs_clock_seconds() < since)
            since = cs_clock_seconds();
        free(team->data);
        team->data = NULL;
        if (look(team, NULL) != CS_OK)
            break;
        if (!team->data)
            rest();
    }
    team->orphan = !team->ended && !team->waits;
}

void cs_team_close(cs_team *team, cs_status status, const cs_error *why)
{
    if (!team)
        return;
    /* everything has been reported; if a process died, leaving can take long */
    cs_interrupt_silence();
    if (team->rank == 0)
        tell_helpers(team, CS_PACKET_END);
    if (team->rank > 0 && !team->ended && status != CS_OK && status != CS_INTERRUPTED) {
        cs_packet packet = {.kind = CS_PACKET_FAILED, .status = (uint32_t)status};
        packet.parts[CS_PACKET_ERROR].data = why;
        packet.parts[CS_PACKET_ERROR].bytes = sizeof(*why);
        (void)post_packet(team, 0, &packet, NULL);
    }
    if (team->rank > 0 && !team->orphan)
        wait_for_end(team);
    /* Give the last messages a moment to be sent. */
    const double until = cs_clock_seconds() + last_words;
    uint32_t n;
    while (team->transport->in_flight(&n, team->why) && n > 0 && cs_clock_seconds() < until)
        rest();
    if (!cs_interrupt_asked())
        team->transport->close();
    free(team->data);
    free(team->members);
    free(team);
}

/* ---- helping ---- */

static cs_status greet(cs_team *team, const cs_pool *pool, cs_error *error)
{
    cs_hello hello = {.identity = team->identity, .jobs = pool->jobs};
    cs_packet packet = {.kind = CS_PACKET_HELLO};
    if (team->greeted)
        return CS_OK;
    (void)gethostname(hello.host, sizeof(hello.host) - 1);
    packet.parts[CS_PACKET_VALUE].data = &hello;
    packet.parts[CS_PACKET_VALUE].bytes = sizeof(hello);
    team->greeted = true;
    return post_packet(team, 0, &packet, error);
}

static cs_status send_items(cs_team *team, cs_pool_item *items, cs_error *error)
{
    cs_status status = CS_OK;
    while (items) {
        cs_pool_item *next = items->next;
        size_t bytes = 0;
        void *data = status == CS_OK ? cs_packet_of_item(items, team->round, &bytes) : NULL;
        if (status == CS_OK)
            status = post(team, 0, data, bytes, error);
        cs_pool_item_destroy(items);
        items = next;
    }
    return status;
}

/* Takes work. Work of a new round cancels the previous round. */
static cs_status take_work(cs_team *team, const cs_pool *pool, cs_crew **crew, cs_error *error)
{
    const uint32_t *points = team->packet.parts[CS_PACKET_VALUE].data;
    const uint64_t bytes = team->packet.parts[CS_PACKET_VALUE].bytes;
    cs_status status = CS_OK;
    if (team->packet.round != team->round) {
        cs_crew_destroy(*crew);
        *crew = NULL;
        team->round = team->packet.round;
    }
    if (!*crew)
        status = cs_crew_start(pool, crew, error);
    if (status == CS_OK)
        status = cs_crew_put(*crew, points, (uint32_t)(bytes / sizeof(*points)), error);
    free(team->data);
    team->data = NULL;
    return status;
}

static cs_status help(cs_team *team, uint32_t stage, const cs_pool *pool,
                      const cs_progress *progress, cs_error *error)
{
    cs_crew *crew = NULL;
    cs_status status = greet(team, pool, error);
    while (status == CS_OK) {
        cs_pool_item *items = NULL;
        status = look(team, error);
        if (status != CS_OK || team->ended || (team->data && team->packet.stage != stage))
            break;
        if (team->data)
            status = take_work(team, pool, &crew, error);
        else if (!crew)
            rest();
        if (status == CS_OK && crew)
            status = cs_crew_wait(crew, look_every, &items, error);
        if (status == CS_OK)
            status = send_items(team, items, error);
        if (status == CS_OK && !cs_progress_step(progress, pool->what, 0, 0))
            status = CS_INTERRUPTED;
    }
    cs_crew_destroy(crew);
    if (status == CS_INTERRUPTED)
        wait_for_end(team);
    return status;
}

/* ---- leading ---- */

typedef struct leading {
    cs_team *team;
    const cs_pool *pool;
    uint32_t stage;
    cs_crew *crew;
    uint32_t *points, next; /* points[next ...] are still to be handed out */
    cs_pool_gauge done;
} leading;

/* Most points that a process may have queued: more than its threads only while each process would
 * get as many again. */
static uint32_t most_in_hand(const leading *l, const member *of)
{
    const double took = cs_clock_seconds() - of->since;
    const double ahead = of->n_done > 0 && took > 0 ? of->n_done / took * look_ahead : 0;
    const uint32_t share = (l->pool->n_points - l->next) / (2 * l->team->size);
    return of->jobs + (ahead < share ? (uint32_t)ahead : share);
}

static cs_status give(leading *l, uint32_t to, uint32_t n, cs_error *error)
{
    const uint32_t *points = &l->points[l->next - n];
    cs_packet packet = {.kind = CS_PACKET_WORK, .round = l->team->round, .stage = l->stage};
    if (n == 0)
        return CS_OK;
    packet.parts[CS_PACKET_VALUE].data = points;
    packet.parts[CS_PACKET_VALUE].bytes = n * sizeof(*points);
    return to == 0 ? cs_crew_put(l->crew, points, n, error)
                   : post_packet(l->team, to, &packet, error);
}

static cs_status take_item(leading *l, uint32_t from, const cs_pool_item *item, cs_error *error)
{
    CS_TRY(l->pool->collect(l->pool->collect_context, item, error));
    l->team->members[from].queued--;
    l->team->members[from].n_done++;
    cs_pool_gauge_add(&l->done, item->point);
    return CS_OK;
}

static cs_status take_own(leading *l, cs_error *error)
{
    cs_pool_item *items;
    cs_status status = cs_crew_wait(l->crew, look_every, &items, error);
    while (items) {
        cs_pool_item *next = items->next;
        if (status == CS_OK)
            status = take_item(l, 0, items, error);
        cs_pool_item_destroy(items);
        items = next;
    }
    return status;
}

static cs_status take_packet(leading *l, uint32_t from, const cs_packet *packet, cs_error *error)
{
    if (packet->kind == CS_PACKET_HELLO) {
        cs_hello hello;
        if (packet->parts[CS_PACKET_VALUE].bytes != sizeof(hello))
            return cs_error_add(error, CS_FAILED, "process %u is of another version of sim", from);
        memcpy(&hello, packet->parts[CS_PACKET_VALUE].data, sizeof(hello));
        if (hello.identity != l->team->identity)
            return cs_error_add(
                error, CS_FAILED,
                "process %u, on %.63s, works on something else: its scenario, a file "
                "that the scenario names, or its version of sim differs",
                from, hello.host);
        l->team->members[from].ready = true;
        l->team->members[from].jobs = hello.jobs;
        return CS_OK;
    }
    if (packet->kind == CS_PACKET_FAILED) {
        cs_error why;
        if (packet->parts[CS_PACKET_ERROR].bytes != sizeof(why))
            return cs_error_add(error, CS_FAILED, "process %u failed", from);
        memcpy(&why, packet->parts[CS_PACKET_ERROR].data, sizeof(why));
        return cs_error_add(error, (cs_status)packet->status, "process %u: %.*s", from,
                            (int)strcspn(why.text, "\n"), why.text);
    }
    if (packet->kind != CS_PACKET_ITEM || packet->round != l->team->round)
        return CS_OK; /* from a round that was cancelled */
    cs_pool_item *item = cs_packet_item(packet);
    if (!item)
        return cs_error_no_memory(error);
    const cs_status status = take_item(l, from, item, error);
    cs_pool_item_destroy(item);
    return status;
}

static cs_status take_packets(leading *l, cs_error *error)
{
    for (;;) {
        uint32_t from;
        cs_packet packet;
        void *data;
        CS_TRY(receive(l->team, &from, &packet, &data, error));
        if (!data)
            return CS_OK;
        const cs_status status = take_packet(l, from, &packet, error);
        free(data);
        if (status != CS_OK)
            return status;
    }
}

static cs_status lead(leading *l, const cs_progress *progress, cs_error *error)
{
    const cs_pool *pool = l->pool;
    CS_TRY(cs_crew_start(pool, &l->crew, error));
    CS_TRY(cs_pool_order(pool, &l->points, error));
    cs_pool_gauge_init(&l->done, pool);
    while (l->done.n < pool->n_points) {
        /* Top up each process. The leader comes last, because its queue waits for no message. */
        cs_team *team = l->team;
        for (uint32_t k = 0; k < team->size; k++) {
            const uint32_t to = (k + 1) % team->size;
            member *m = &team->members[to];
            const uint32_t most = m->ready ? most_in_hand(l, m) : 0;
            uint32_t n = 0;
            for (; m->queued < most && l->next < l->pool->n_points; n++, m->queued++, l->next++)
                ;
            if (m->since == 0 && n > 0)
                m->since = cs_clock_seconds();
            CS_TRY(give(l, to, n, error));
        }

        CS_TRY(take_own(l, error));
        CS_TRY(take_packets(l, error));
        const bool wanted = cs_pool_gauge_step(&l->done, progress);
        if (!wanted && cs_interrupt_asked())
            tell_helpers(l->team, CS_PACKET_WAIT);
        if (!wanted)
            return cs_error_add(error, CS_INTERRUPTED, "interrupted after %u of %u %s", l->done.n,
                                pool->n_points, pool->points_are);
    }
    return CS_OK;
}

cs_status cs_team_run(cs_team *team, uint32_t stage, const cs_pool *pool,
                      const cs_progress *progress, cs_error *error)
{
    leading l = {.team = team, .pool = pool, .stage = stage};
    if (!team)
        return cs_pool_run(pool, progress, error);
    if (team->rank > 0)
        return help(team, stage, pool, progress, error);
    team->round++;
    team->members[0] = (member){.ready = true, .jobs = pool->jobs};
    for (uint32_t i = 1; i < team->size; i++)
        team->members[i] = (member){team->members[i].ready, team->members[i].jobs, 0, 0, 0};
    const cs_status status = lead(&l, progress, error);
    cs_crew_destroy(l.crew);
    free(l.points);
    return status;
}

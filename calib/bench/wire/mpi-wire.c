#include "calib/bench/wire/wire.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cs_wire_group {
    MPI_Comm members;
};

/* Longer messages are split, because counts are int. */
static const int64_t piece = INT64_C(1) << 30;

static cs_status check(int code, const char *call, cs_error *error)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code == MPI_SUCCESS)
        return CS_OK;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof(text), "error %d", code);
    return cs_error_add(error, CS_FAILED, "%s: %s", call, text);
}

static MPI_Comm members_of(const cs_wire *wire)
{
    return MPI_Comm_f2c(wire->group);
}

/* ---- nodes ---- */

/* Finds the lowest rank on this rank's node. */
static cs_status find_leader(const cs_wire *wire, uint32_t *leader, cs_error *error)
{
    MPI_Comm node;
    int lowest = (int)wire->rank;
    CS_TRY(check(
        MPI_Comm_split_type(members_of(wire), MPI_COMM_TYPE_SHARED, lowest, MPI_INFO_NULL, &node),
        "MPI_Comm_split_type", error));
    cs_status status = check(MPI_Bcast(&lowest, 1, MPI_INT, 0, node), "MPI_Bcast", error);
    *leader = (uint32_t)lowest;
    cs_status freed = check(MPI_Comm_free(&node), "MPI_Comm_free", status == CS_OK ? error : NULL);
    return status == CS_OK ? freed : status;
}

/* ---- processes ---- */

cs_status cs_wire_open(cs_wire *wire, cs_error *error)
{
    int rank, size;
    CS_TRY(check(MPI_Init(NULL, NULL), "MPI_Init", error));
    CS_TRY(check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                 "MPI_Comm_set_errhandler", error));
    CS_TRY(check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank", error));
    CS_TRY(check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size", error));
    *wire = (cs_wire){
        .rank = (uint32_t)rank, .size = (uint32_t)size, .group = MPI_Comm_c2f(MPI_COMM_WORLD)};
    const char *asked = getenv("SIM_BENCH_RANKS_PER_NODE");
    const long per_node = asked ? strtol(asked, NULL, 10) : 0;
    double *leaders = calloc(wire->size, sizeof(*leaders));
    wire->nodes = calloc(wire->size, sizeof(*wire->nodes));
    wire->pretended = per_node > 0;
    uint32_t leader = per_node > 0 ? wire->rank / (uint32_t)per_node * (uint32_t)per_node : 0;
    cs_status status = leaders && wire->nodes ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK && per_node <= 0)
        status = find_leader(wire, &leader, error);
    if (status == CS_OK) {
        leaders[wire->rank] = leader;
        status = cs_wire_largest(wire, leaders, wire->size, error);
    }
    for (uint32_t i = 0; i < wire->size && status == CS_OK; i++) {
        leader = (uint32_t)leaders[i];
        wire->nodes[i] = leader == i ? wire->n_nodes++ : wire->nodes[leader];
    }
    for (uint32_t i = 0; i < wire->rank && status == CS_OK; i++)
        wire->place += wire->nodes[i] == wire->nodes[wire->rank];
    free(leaders);
    return status;
}

void cs_wire_close(cs_wire *wire, bool failed)
{
    if (failed && wire->size > 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (wire->size > 0)
        MPI_Finalize();
    free(wire->nodes);
    *wire = (cs_wire){0};
}

cs_status cs_wire_barrier(const cs_wire *wire, cs_error *error)
{
    return check(MPI_Barrier(members_of(wire)), "MPI_Barrier", error);
}

cs_status cs_wire_largest(const cs_wire *wire, double *values, uint32_t n, cs_error *error)
{
    return check(MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, MPI_MAX, members_of(wire)),
                 "MPI_Allreduce", error);
}

cs_status cs_wire_agree(cs_wire *wire, cs_status status, cs_error *error)
{
    double succeeded = status == CS_OK ? 1 : 0;
    cs_status told = cs_wire_largest(wire, &succeeded, 1, status == CS_OK ? error : NULL);
    wire->alike = told == CS_OK && succeeded == 0;
    return status == CS_OK ? told : status;
}

cs_status cs_wire_tell(const cs_wire *wire, void *data, int64_t bytes, cs_error *error)
{
    return check(MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, members_of(wire)), "MPI_Bcast", error);
}

cs_status cs_wire_join(const cs_wire *all, const bool *members, cs_wire *group, cs_error *error)
{
    MPI_Comm made;
    int rank, size;
    const bool member = members[all->rank];
    *group = (cs_wire){0};
    cs_status status =
        check(MPI_Comm_split(members_of(all), member ? 0 : MPI_UNDEFINED, (int)all->rank, &made),
              "MPI_Comm_split", error);
    if (status != CS_OK || !member)
        return status;
    group->group = MPI_Comm_c2f(made);
    CS_TRY(check(MPI_Comm_rank(made, &rank), "MPI_Comm_rank", error));
    CS_TRY(check(MPI_Comm_size(made, &size), "MPI_Comm_size", error));
    group->rank = (uint32_t)rank;
    group->size = (uint32_t)size;
    return cs_wire_connect(group, all->backend, all->bench, error);
}

cs_status cs_wire_leave(cs_wire *group, cs_status status, cs_error *error)
{
    if (group->size == 0)
        return status;
    status = cs_wire_disconnect(group, status, error);
    MPI_Comm made = members_of(group);
    if (status == CS_OK)
        status = check(MPI_Comm_free(&made), "MPI_Comm_free", error);
    *group = (cs_wire){0};
    return status;
}

/* ---- host memory ---- */

static int piece_of(int64_t bytes)
{
    return (int)(bytes < piece ? bytes : piece);
}

static cs_status send(const cs_wire *wire, uint32_t to, const void *data, int64_t bytes,
                      cs_error *error)
{
    const char *at = data;
    cs_status status = CS_OK;
    do {
        int n = piece_of(bytes);
        status = check(MPI_Send(at, n, MPI_BYTE, (int)to, 0, members_of(wire)), "MPI_Send", error);
        at += n;
        bytes -= n;
    } while (bytes > 0 && status == CS_OK);
    return status;
}

static cs_status receive(const cs_wire *wire, uint32_t from, void *data, int64_t bytes,
                         cs_error *error)
{
    char *at = data;
    cs_status status = CS_OK;
    do {
        int n = piece_of(bytes);
        status = check(MPI_Recv(at, n, MPI_BYTE, (int)from, 0, members_of(wire), MPI_STATUS_IGNORE),
                       "MPI_Recv", error);
        at += n;
        bytes -= n;
    } while (bytes > 0 && status == CS_OK);
    return status;
}

/* Sends or receives a window of messages, like osu_bw. */
static cs_status window(const cs_wire *wire, bool sends, uint32_t peer, void *const *data,
                        uint32_t n, int64_t bytes, cs_error *error)
{
    MPI_Request requests[CS_WIRE_WINDOW];
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < n && status == CS_OK; i++)
        status = sends ? check(MPI_Isend(data[i], (int)bytes, MPI_BYTE, (int)peer, 0,
                                         members_of(wire), &requests[i]),
                               "MPI_Isend", error)
                       : check(MPI_Irecv(data[i], (int)bytes, MPI_BYTE, (int)peer, 0,
                                         members_of(wire), &requests[i]),
                               "MPI_Irecv", error);
    return status == CS_OK
               ? check(MPI_Waitall((int)n, requests, MPI_STATUSES_IGNORE), "MPI_Waitall", error)
               : status;
}

static cs_status collective_of(cs_cost_collective collective, const cs_wire *wire, const void *from,
                               void *to, int64_t bytes, cs_error *error)
{
    MPI_Comm all = members_of(wire);
    int count = (int)(bytes / 4), share = count / (int)wire->size;
    if (bytes / 4 > INT32_MAX)
        return cs_error_add(error, CS_OVERFLOW, "a collective of %lld bytes is too long for MPI",
                            (long long)bytes);
    switch (collective) {
    case CS_COST_ALL_REDUCE:
        return check(
            MPI_Allreduce(from == to ? MPI_IN_PLACE : from, to, count, MPI_FLOAT, MPI_SUM, all),
            "MPI_Allreduce", error);
    case CS_COST_ALL_GATHER:
        return check(MPI_Allgather(from, share, MPI_FLOAT, to, share, MPI_FLOAT, all),
                     "MPI_Allgather", error);
    case CS_COST_REDUCE_SCATTER:
        return check(MPI_Reduce_scatter_block(from, to, share, MPI_FLOAT, MPI_SUM, all),
                     "MPI_Reduce_scatter_block", error);
    case CS_COST_BROADCAST:
        return check(MPI_Bcast(to, count, MPI_FLOAT, 0, all), "MPI_Bcast", error);
    case CS_COST_REDUCE:
        return check(MPI_Reduce(from, to, count, MPI_FLOAT, MPI_SUM, 0, all), "MPI_Reduce", error);
    case CS_COST_ALL_TO_ALL:
        return check(MPI_Alltoall(from, share, MPI_FLOAT, to, share, MPI_FLOAT, all),
                     "MPI_Alltoall", error);
    case CS_COST_SCATTER:
        return check(MPI_Scatter(from, share, MPI_FLOAT, to, share, MPI_FLOAT, 0, all),
                     "MPI_Scatter", error);
    case CS_COST_GATHER:
        return check(MPI_Gather(from, share, MPI_FLOAT, to, share, MPI_FLOAT, 0, all), "MPI_Gather",
                     error);
    default:
        return cs_error_add(error, CS_FAILED, "%s is not a collective of all ranks",
                            cs_cost_collective_names[collective]);
    }
}

/* ---- devices ---- */

cs_status cs_wire_connect(cs_wire *wire, const cs_backend *backend, cs_bench *bench,
                          cs_error *error)
{
    bool fits = false;
    wire->backend = backend;
    wire->bench = bench;
    if (!backend->carrier)
        return CS_OK;
    cs_status status = backend->carrier->connect(wire, &fits, error);
    wire->carrier = status == CS_OK && fits ? backend->carrier : NULL;
    return status;
}

cs_status cs_wire_disconnect(cs_wire *wire, cs_status status, cs_error *error)
{
    cs_status ended =
        wire->carrier ? wire->carrier->disconnect(wire, status != CS_OK, error) : CS_OK;
    free(wire->host[0]);
    free(wire->host[1]);
    wire->host[0] = wire->host[1] = NULL;
    wire->room[0] = wire->room[1] = 0;
    wire->carrier = NULL;
    wire->backend = NULL;
    wire->bench = NULL;
    return status == CS_OK ? ended : status;
}

char *cs_wire_library(const cs_wire *wire, char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (wire->carrier) {
        wire->carrier->library(text, size);
        return text;
    }
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS)
        length = 0;
    version[strcspn(version, ",\n")] = '\0';
    snprintf(text, size, "%s%s", length > 0 ? version : "MPI",
             wire->backend && wire->backend->own_memory ? ", through the host's memory" : "");
    return text;
}

static bool is_apart(const cs_wire *wire)
{
    return wire->backend && wire->backend->own_memory;
}

static cs_status have_room(cs_wire *wire, int which, int64_t bytes, cs_error *error)
{
    if (bytes <= wire->room[which])
        return CS_OK;
    free(wire->host[which]);
    wire->room[which] = 0;
    wire->host[which] = malloc((size_t)bytes);
    if (!wire->host[which])
        return cs_error_no_memory(error);
    wire->room[which] = bytes;
    return CS_OK;
}

/* Copies the device's data to host memory. */
static cs_status fetch(cs_wire *wire, int which, const void *data, int64_t bytes, cs_error *error)
{
    CS_TRY(have_room(wire, which, bytes, error));
    return wire->backend->copy(wire->bench, CS_COPY_FROM_DEVICE, wire->host[which], data, bytes,
                               error);
}

cs_status cs_wire_send(cs_wire *wire, uint32_t to, const void *data, int64_t bytes, cs_error *error)
{
    if (wire->carrier)
        return wire->carrier->send(wire, to, data, bytes, error);
    if (!is_apart(wire))
        return send(wire, to, data, bytes, error);
    CS_TRY(fetch(wire, 0, data, bytes, error));
    return send(wire, to, wire->host[0], bytes, error);
}

cs_status cs_wire_receive(cs_wire *wire, uint32_t from, void *data, int64_t bytes, cs_error *error)
{
    if (wire->carrier)
        return wire->carrier->receive(wire, from, data, bytes, error);
    if (!is_apart(wire))
        return receive(wire, from, data, bytes, error);
    CS_TRY(have_room(wire, 1, bytes, error));
    CS_TRY(receive(wire, from, wire->host[1], bytes, error));
    return wire->backend->copy(wire->bench, CS_COPY_TO_DEVICE, data, wire->host[1], bytes, error);
}

cs_status cs_wire_window(cs_wire *wire, bool sends, uint32_t peer, void *const *data, uint32_t n,
                         int64_t bytes, cs_error *error)
{
    cs_status status = CS_OK;
    if (!wire->carrier && !is_apart(wire) && bytes <= piece)
        return window(wire, sends, peer, data, n, bytes, error);
    for (uint32_t i = 0; i < n && status == CS_OK; i++)
        status = sends ? cs_wire_send(wire, peer, data[i], bytes, error)
                       : cs_wire_receive(wire, peer, data[i], bytes, error);
    return status;
}

/* Copies both buffers to the host, because the part that a rank contributes depends on the
 * collective. */
cs_status cs_wire_collective(cs_wire *wire, cs_cost_collective collective, const void *from,
                             void *to, int64_t bytes, cs_error *error)
{
    if (wire->carrier)
        return wire->carrier->collective(wire, collective, from, to, bytes, error);
    if (!is_apart(wire))
        return collective_of(collective, wire, from, to, bytes, error);
    cs_status status = fetch(wire, 1, to, bytes, error);
    if (status == CS_OK && from != to)
        status = fetch(wire, 0, from, bytes, error);
    if (status == CS_OK)
        status = collective_of(collective, wire, from == to ? wire->host[1] : wire->host[0],
                               wire->host[1], bytes, error);
    return status == CS_OK ? wire->backend->copy(wire->bench, CS_COPY_TO_DEVICE, to, wire->host[1],
                                                 bytes, error)
                           : status;
}

/* ---- groups of processes ---- */

static cs_status make_group(const int *ranks, uint32_t n, cs_wire_group *made, cs_error *error)
{
    MPI_Group all, some;
    CS_TRY(check(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group", error));
    cs_status status = check(MPI_Group_incl(all, (int)n, ranks, &some), "MPI_Group_incl", error);
    if (status == CS_OK) {
        status = check(MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &made->members),
                       "MPI_Comm_create_group", error);
        MPI_Group_free(&some);
    }
    MPI_Group_free(&all);
    return status == CS_OK ? check(MPI_Comm_set_errhandler(made->members, MPI_ERRORS_RETURN),
                                   "MPI_Comm_set_errhandler", error)
                           : status;
}

cs_status cs_wire_group_open(const uint32_t *ranks, uint32_t n, cs_wire_group **group,
                             cs_error *error)
{
    cs_wire_group *made = malloc(sizeof(*made));
    int *numbers = calloc(n + UINT64_C(1), sizeof(*numbers));
    cs_status status = made && numbers ? CS_OK : cs_error_no_memory(error);
    for (uint32_t i = 0; i < n && status == CS_OK; i++)
        numbers[i] = (int)ranks[i];
    if (made)
        made->members = MPI_COMM_NULL;
    if (status == CS_OK)
        status = make_group(numbers, n, made, error);
    free(numbers);
    if (status == CS_OK)
        *group = made;
    else
        cs_wire_group_close(made);
    return status;
}

void cs_wire_group_close(cs_wire_group *group)
{
    if (group && group->members != MPI_COMM_NULL)
        MPI_Comm_free(&group->members);
    free(group);
}

static cs_status reduce_in(MPI_Comm members, MPI_Op op, void *data, int64_t bytes, cs_error *error)
{
    if (bytes / 4 > INT32_MAX)
        return cs_error_add(error, CS_OVERFLOW, "a collective of %lld bytes is too long for MPI",
                            (long long)bytes);
    return check(MPI_Allreduce(MPI_IN_PLACE, data, (int)(bytes / 4), MPI_FLOAT, op, members),
                 "MPI_Allreduce", error);
}

static MPI_Comm members_in(const cs_wire *wire, const cs_wire_group *group)
{
    return group ? group->members : members_of(wire);
}

static cs_status reduce(cs_wire *wire, const cs_wire_group *group, MPI_Op op, void *data,
                        int64_t bytes, cs_error *error)
{
    if (!is_apart(wire))
        return reduce_in(members_in(wire, group), op, data, bytes, error);
    CS_TRY(fetch(wire, 1, data, bytes, error));
    CS_TRY(reduce_in(members_in(wire, group), op, wire->host[1], bytes, error));
    return wire->backend->copy(wire->bench, CS_COPY_TO_DEVICE, data, wire->host[1], bytes, error);
}

cs_status cs_wire_sum(cs_wire *wire, const cs_wire_group *group, void *data, int64_t bytes,
                      cs_error *error)
{
    if (!group)
        return cs_wire_collective(wire, CS_COST_ALL_REDUCE, data, data, bytes, error);
    return reduce(wire, group, MPI_SUM, data, bytes, error);
}

cs_status cs_wire_most(cs_wire *wire, const cs_wire_group *group, void *data, int64_t bytes,
                       cs_error *error)
{
    return reduce(wire, group, MPI_MAX, data, bytes, error);
}

/* Converts counts to the format of MPI: counts, then offsets. */
static cs_status count_parts(const int64_t *counts, uint32_t n, int *made, cs_error *error)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        made[n + k] = (int)sum;
        made[k] = (int)counts[k];
        sum += counts[k];
        if (sum > INT32_MAX)
            return cs_error_add(error, CS_OVERFLOW,
                                "a collective of %lld numbers is too long for MPI", (long long)sum);
    }
    return CS_OK;
}

/* Moves parts between members. `out` and `in` are the counts and offsets of sent and received
 * parts; they differ only for an all-to-all. */
static cs_status move_parts(MPI_Comm members, cs_cost_collective collective, uint32_t n,
                            const int *out, const int *in, const float *from, float *to,
                            cs_error *error)
{
    int rank;
    CS_TRY(check(MPI_Comm_rank(members, &rank), "MPI_Comm_rank", error));
    switch (collective) {
    case CS_COST_ALL_GATHER:
        return check(MPI_Allgatherv(from == to ? MPI_IN_PLACE : from, out[rank], MPI_FLOAT, to, out,
                                    out + n, MPI_FLOAT, members),
                     "MPI_Allgatherv", error);
    case CS_COST_REDUCE_SCATTER:
        return check(MPI_Reduce_scatter(from == to ? MPI_IN_PLACE : from, to, out, MPI_FLOAT,
                                        MPI_SUM, members),
                     "MPI_Reduce_scatter", error);
    case CS_COST_ALL_TO_ALL:
        return check(
            MPI_Alltoallv(from, out, out + n, MPI_FLOAT, to, in, in + n, MPI_FLOAT, members),
            "MPI_Alltoallv", error);
    default:
        return cs_error_add(error, CS_FAILED, "%s has no variant with parts",
                            cs_cost_collective_names[collective]);
    }
}

cs_status cs_wire_parts_move(cs_wire *wire, const cs_wire_group *group,
                             cs_cost_collective collective, const cs_wire_parts *parts,
                             const float *from, float *to, cs_error *error)
{
    const uint32_t n = parts->n;
    int *lists = calloc(4 * (size_t)n + 1, sizeof(*lists));
    if (!lists)
        return cs_error_no_memory(error);
    cs_status status = count_parts(parts->counts, n, lists, error);
    if (status == CS_OK && parts->got)
        status = count_parts(parts->got, n, lists + 2 * (size_t)n, error);
    if (status == CS_OK)
        status = move_parts(members_in(wire, group), collective, n, lists, lists + 2 * (size_t)n,
                            from, to, error);
    free(lists);
    return status;
}

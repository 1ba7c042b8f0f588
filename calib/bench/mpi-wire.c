#include "calib/bench/wire.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* Longer messages go in pieces: counts are int. */
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

cs_status cs_wire_open(cs_wire *wire, cs_error *error)
{
    int rank, size;
    cs_status status = check(MPI_Init(NULL, NULL), "MPI_Init", error);
    if (status == CS_OK)
        status = check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                       "MPI_Comm_set_errhandler", error);
    if (status == CS_OK)
        status = check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank", error);
    if (status == CS_OK)
        status = check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size", error);
    if (status == CS_OK)
        *wire = (cs_wire){(uint32_t)rank, (uint32_t)size};
    return status;
}

void cs_wire_close(cs_wire *wire, bool failed)
{
    if (failed && wire->size > 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (wire->size > 0)
        MPI_Finalize();
    *wire = (cs_wire){0};
}

char *cs_wire_library(char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS)
        length = 0;
    version[strcspn(version, ",\n")] = '\0';
    snprintf(text, size, "%s", length > 0 ? version : "MPI");
    return text;
}

cs_status cs_wire_barrier(cs_error *error)
{
    return check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier", error);
}

static int piece_of(int64_t bytes)
{
    return (int)(bytes < piece ? bytes : piece);
}

cs_status cs_wire_send(uint32_t to, const void *data, int64_t bytes, cs_error *error)
{
    const char *at = data;
    cs_status status = CS_OK;
    do {
        int n = piece_of(bytes);
        status = check(MPI_Send(at, n, MPI_BYTE, (int)to, 0, MPI_COMM_WORLD), "MPI_Send", error);
        at += n;
        bytes -= n;
    } while (bytes > 0 && status == CS_OK);
    return status;
}

cs_status cs_wire_receive(uint32_t from, void *data, int64_t bytes, cs_error *error)
{
    char *at = data;
    cs_status status = CS_OK;
    do {
        int n = piece_of(bytes);
        status = check(MPI_Recv(at, n, MPI_BYTE, (int)from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                       "MPI_Recv", error);
        at += n;
        bytes -= n;
    } while (bytes > 0 && status == CS_OK);
    return status;
}

cs_status cs_wire_largest(double *values, uint32_t n, cs_error *error)
{
    return check(MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD),
                 "MPI_Allreduce", error);
}

cs_status cs_wire_collective(cs_cost_collective collective, const cs_wire *wire, void *from,
                             void *to, int64_t bytes, cs_error *error)
{
    MPI_Comm all = MPI_COMM_WORLD;
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
        return cs_error_add(error, CS_FAILED, "%s is no collective of all ranks",
                            cs_cost_collective_names[collective]);
    }
}

cs_status cs_wire_collect(const cs_wire *wire, const void *own, const int64_t *sizes, void *all,
                          cs_error *error)
{
    char *to = all;
    cs_status status = CS_OK;
    if (wire->rank > 0)
        return cs_wire_send(0, own, sizes[wire->rank], error);
    memcpy(to, own, (size_t)sizes[0]);
    for (uint32_t r = 1; r < wire->size && status == CS_OK; r++) {
        to += sizes[r - 1];
        status = cs_wire_receive(r, to, sizes[r], error);
    }
    return status;
}

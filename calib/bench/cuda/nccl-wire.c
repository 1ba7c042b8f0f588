#include "calib/bench/cuda/nccl-wire.h"

#include "calib/bench/cuda/cuda-device.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cs_status check(ncclResult_t code, const char *call, int line, cs_error *error)
{
    if (code == ncclSuccess)
        return CS_OK;
    return cs_cuda_complain(call, __FILE__, line, ncclGetErrorString(code), ncclGetLastError(NULL),
                            error);
}

#define CS_NCCL(call, error) check(call, #call, __LINE__, error)

/* ---- connecting ---- */

/* Returns a number that identifies a GPU of any machine: 48 bits of its identifier, which a double
 * can hold. */
static cs_status identify(const cs_wire *wire, double *number, cs_error *error)
{
    struct cudaDeviceProp gpu;
    uint64_t bits = 0;
    CS_TRY(CS_CUDA(cudaGetDeviceProperties(&gpu, wire->bench->index), error));
    for (size_t i = 0; i < sizeof(gpu.uuid.bytes); i++)
        bits = bits * UINT64_C(1099511628211) + (unsigned char)gpu.uuid.bytes[i];
    *number = 1 + (double)(bits >> 16);
    return CS_OK;
}

/* Whether every process has its own GPU, which NCCL requires. All processes get the same answer. */
static cs_status have_own_gpus(const cs_wire *wire, bool *own, cs_error *error)
{
    double *numbers = calloc(wire->size, sizeof(*numbers));
    if (!numbers)
        return cs_error_no_memory(error);
    cs_status status = identify(wire, &numbers[wire->rank], error);
    if (status == CS_OK)
        status = cs_wire_largest(wire, numbers, wire->size, error);
    *own = true;
    for (uint32_t i = 0; i < wire->size; i++)
        for (uint32_t k = 0; k < i; k++)
            *own &= numbers[i] != numbers[k];
    free(numbers);
    return status;
}

static cs_status connect(cs_wire *wire, bool *fits, cs_error *error)
{
    ncclUniqueId id = {0};
    ncclComm_t all;
    cs_status status = have_own_gpus(wire, fits, error);
    if (status != CS_OK || !*fits)
        return status;
    if (wire->rank == 0)
        status = CS_NCCL(ncclGetUniqueId(&id), error);
    if (status == CS_OK)
        status = cs_wire_tell(wire, &id, sizeof(id), error);
    if (status == CS_OK)
        status = CS_NCCL(ncclCommInitRank(&all, (int)wire->size, id, (int)wire->rank), error);
    if (status == CS_OK)
        wire->carried = all;
    return status;
}

/* Disconnects. After a failure, aborts and ignores its result, because destroying would wait
 * forever for work that needs the failed process. */
static cs_status disconnect(cs_wire *wire, bool failed, cs_error *error)
{
    cs_status status = CS_OK;
    if (failed)
        (void)ncclCommAbort(wire->carried);
    else
        status = CS_NCCL(ncclCommDestroy(wire->carried), error);
    wire->carried = NULL;
    return status;
}

static void library(char *text, size_t size)
{
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess)
        version = 0;
    snprintf(text, size, "NCCL %d.%d.%d", version / 10000, version % 10000 / 100, version % 100);
}

/* ---- messages ---- */

static cs_status send(cs_wire *wire, uint32_t to, const void *data, int64_t bytes, cs_error *error)
{
    return CS_NCCL(
        ncclSend(data, (size_t)bytes, ncclChar, (int)to, wire->carried, wire->bench->stream),
        error);
}

static cs_status receive(cs_wire *wire, uint32_t from, void *data, int64_t bytes, cs_error *error)
{
    return CS_NCCL(
        ncclRecv(data, (size_t)bytes, ncclChar, (int)from, wire->carried, wire->bench->stream),
        error);
}

/* Exchanges equal shares, all at the same time: from rank 0 to each (scatters), from each to rank 0
 * (gathers), or both. */
static cs_status exchange(cs_wire *wire, const char *from, char *to, int64_t share, bool scatters,
                          bool gathers, cs_error *error)
{
    bool root = wire->rank == 0;
    cs_status status = CS_NCCL(ncclGroupStart(), error);
    for (uint32_t r = 0; r < wire->size && status == CS_OK; r++) {
        bool sends = scatters ? root || gathers : r == 0;
        bool receives = gathers ? root || scatters : r == 0;
        if (sends)
            status = send(wire, r, scatters ? from + r * share : from, share, error);
        if (status == CS_OK && receives)
            status = receive(wire, r, gathers ? to + r * share : to, share, error);
    }
    cs_status ended = CS_NCCL(ncclGroupEnd(), status == CS_OK ? error : NULL);
    return status == CS_OK ? ended : status;
}

static cs_status collective_of(cs_wire *wire, cs_cost_collective collective, const void *from,
                               void *to, int64_t bytes, cs_error *error)
{
    ncclComm_t all = wire->carried;
    cudaStream_t stream = wire->bench->stream;
    size_t count = (size_t)bytes / 4, share = count / wire->size;
    switch (collective) {
    case CS_COST_ALL_REDUCE:
        return CS_NCCL(ncclAllReduce(from, to, count, ncclFloat, ncclSum, all, stream), error);
    case CS_COST_ALL_GATHER:
        return CS_NCCL(ncclAllGather(from, to, share, ncclFloat, all, stream), error);
    case CS_COST_REDUCE_SCATTER:
        return CS_NCCL(ncclReduceScatter(from, to, share, ncclFloat, ncclSum, all, stream), error);
    case CS_COST_BROADCAST:
        return CS_NCCL(ncclBroadcast(to, to, count, ncclFloat, 0, all, stream), error);
    case CS_COST_REDUCE:
        return CS_NCCL(ncclReduce(from, to, count, ncclFloat, ncclSum, 0, all, stream), error);
    case CS_COST_ALL_TO_ALL:
        return exchange(wire, from, to, (int64_t)share * 4, true, true, error);
    case CS_COST_SCATTER:
        return exchange(wire, from, to, (int64_t)share * 4, true, false, error);
    case CS_COST_GATHER:
        return exchange(wire, from, to, (int64_t)share * 4, false, true, error);
    default:
        return cs_error_add(error, CS_FAILED, "%s is not a collective of all ranks",
                            cs_cost_collective_names[collective]);
    }
}

const cs_carrier cs_carrier_nccl = {connect, disconnect, library, send, receive, collective_of};

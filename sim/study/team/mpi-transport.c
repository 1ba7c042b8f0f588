#include "sim/study/team/transport.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A message under way. */
typedef struct posted {
    struct posted *next;
    MPI_Request request;
    char data[];
} posted;

/* Of the process: MPI is so too. */
static posted *first_posted;

static bool fail(const char *text, char *why)
{
    snprintf(why, CS_TRANSPORT_WHY_BYTES, "%s", text);
    return false;
}

static bool check(int code, const char *call, char *why)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code == MPI_SUCCESS)
        return true;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof(text), "error %d", code);
    snprintf(why, CS_TRANSPORT_WHY_BYTES, "%s: %s", call, text);
    return false;
}

static bool open_all(uint32_t *rank, uint32_t *size, char *why)
{
    int level, mine, all;
    if (!check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread", why) ||
        !check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
               "MPI_Comm_set_errhandler", why) ||
        !check(MPI_Comm_rank(MPI_COMM_WORLD, &mine), "MPI_Comm_rank", why) ||
        !check(MPI_Comm_size(MPI_COMM_WORLD, &all), "MPI_Comm_size", why))
        return false;
    if (level < MPI_THREAD_FUNNELED)
        return fail("this MPI does not allow threads", why);
    *rank = (uint32_t)mine;
    *size = (uint32_t)all;
    return true;
}

static bool post(uint32_t to, const void *data, size_t bytes, char *why)
{
    posted *message = bytes <= INT_MAX ? malloc(sizeof(*message) + bytes) : NULL;
    if (!message)
        return fail(bytes > INT_MAX ? "a result is too long for MPI" : "out of memory", why);
    memcpy(message->data, data, bytes);
    if (!check(MPI_Isend(message->data, (int)bytes, MPI_BYTE, (int)to, 0, MPI_COMM_WORLD,
                         &message->request),
               "MPI_Isend", why)) {
        free(message);
        return false;
    }
    message->next = first_posted;
    first_posted = message;
    return true;
}

static bool under_way(uint32_t *n, char *why)
{
    *n = 0;
    for (posted **at = &first_posted; *at;) {
        posted *message = *at;
        int done;
        if (!check(MPI_Test(&message->request, &done, MPI_STATUS_IGNORE), "MPI_Test", why))
            return false;
        *n += !done;
        if (done) {
            *at = message->next;
            free(message);
        } else {
            at = &message->next;
        }
    }
    return true;
}

static bool receive(uint32_t *from, void **data, size_t *bytes, char *why)
{
    MPI_Status status;
    int arrived, n;
    *data = NULL;
    if (!check(MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &arrived, &status), "MPI_Iprobe", why))
        return false;
    if (!arrived)
        return true;
    if (!check(MPI_Get_count(&status, MPI_BYTE, &n), "MPI_Get_count", why))
        return false;
    void *got = malloc((size_t)n + 1);
    if (!got)
        return fail("out of memory", why);
    if (!check(MPI_Recv(got, n, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
               "MPI_Recv", why)) {
        free(got);
        return false;
    }
    *from = (uint32_t)status.MPI_SOURCE;
    *bytes = (size_t)n;
    *data = got;
    return true;
}

static void close_all(void)
{
    (void)MPI_Finalize();
}

extern const cs_transport cs_transport_of_mpi;
__attribute__((visibility("default")))
const cs_transport cs_transport_of_mpi = {open_all, post, receive, under_way, close_all};

#include "plots/viewer-out.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BUFFER = 1 << 18 };

/* Compressing takes as long as producing the trace, so a separate thread compresses one buffer
 * while the other one is being filled. */
struct cs_viewer_out {
    FILE *stream;
    bool compressed;
    /* errno of the first failure, or 0; accessed only by the thread while it has a buffer */
    int failure;
    z_stream zlib;
    size_t used; /* bytes in the buffer that is being filled */
    int filling; /* index of this buffer */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int packing;    /* index of the buffer that the thread compresses; -1: none */
    size_t to_pack; /* bytes in this buffer */
    bool last;      /* it is the last buffer */
    unsigned char buffers[2][BUFFER], packed[BUFFER];
};

static void put(cs_viewer_out *out, const void *data, size_t size)
{
    if (!out->failure && fwrite(data, 1, size, out->stream) != size)
        out->failure = errno ? errno : EIO;
}

static void pack(cs_viewer_out *out, unsigned char *from, size_t size, int how)
{
    out->zlib.next_in = from;
    out->zlib.avail_in = (uInt)size;
    do {
        out->zlib.next_out = out->packed;
        out->zlib.avail_out = BUFFER;
        if (deflate(&out->zlib, how) == Z_STREAM_ERROR)
            out->failure = out->failure ? out->failure : EIO;
        put(out, out->packed, BUFFER - out->zlib.avail_out);
    } while (out->zlib.avail_out == 0 && !out->failure);
}

static void *pack_all(void *data)
{
    cs_viewer_out *out = data;
    bool last = false;
    while (!last) {
        pthread_mutex_lock(&out->lock);
        while (out->packing < 0)
            pthread_cond_wait(&out->changed, &out->lock);
        const int buffer = out->packing;
        const size_t size = out->to_pack;
        last = out->last;
        pthread_mutex_unlock(&out->lock);
        pack(out, out->buffers[buffer], size, last ? Z_FINISH : Z_NO_FLUSH);
        pthread_mutex_lock(&out->lock);
        out->packing = -1;
        pthread_cond_signal(&out->changed);
        pthread_mutex_unlock(&out->lock);
    }
    return NULL;
}

static bool begin_packing(cs_viewer_out *out)
{
    enum { FASTEST = 1, GZIP = 15 + 16, MEMORY = 9 };
    out->packing = -1;
    if (deflateInit2(&out->zlib, FASTEST, Z_DEFLATED, GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    pthread_mutex_init(&out->lock, NULL);
    pthread_cond_init(&out->changed, NULL);
    if (pthread_create(&out->thread, NULL, pack_all, out) == 0)
        return true;
    pthread_cond_destroy(&out->changed);
    pthread_mutex_destroy(&out->lock);
    deflateEnd(&out->zlib);
    return false;
}

cs_viewer_out *cs_viewer_out_create(FILE *stream, bool compressed)
{
    cs_viewer_out *out = calloc(1, sizeof(*out));
    if (!out)
        return NULL;
    out->stream = stream;
    out->compressed = compressed;
    if (compressed && !begin_packing(out)) {
        free(out);
        return NULL;
    }
    return out;
}

/* Passes the filled buffer to the thread once the thread has finished the other one. */
static void hand_over(cs_viewer_out *out, bool last)
{
    pthread_mutex_lock(&out->lock);
    while (out->packing >= 0)
        pthread_cond_wait(&out->changed, &out->lock);
    out->packing = out->filling;
    out->to_pack = out->used;
    out->last = last;
    pthread_cond_signal(&out->changed);
    pthread_mutex_unlock(&out->lock);
    out->filling = 1 - out->filling;
}

static void flush(cs_viewer_out *out, bool last)
{
    if (out->compressed)
        hand_over(out, last);
    else
        put(out, out->buffers[0], out->used);
    out->used = 0;
}

void cs_viewer_out_bytes(cs_viewer_out *out, const void *data, size_t size)
{
    const unsigned char *from = data;
    while (size > 0) {
        const size_t room = BUFFER - out->used, part = size < room ? size : room;
        memcpy(out->buffers[out->filling] + out->used, from, part);
        out->used += part;
        from += part;
        size -= part;
        if (out->used == BUFFER)
            flush(out, false);
    }
}

static void end_packing(cs_viewer_out *out)
{
    pthread_join(out->thread, NULL);
    pthread_cond_destroy(&out->changed);
    pthread_mutex_destroy(&out->lock);
    deflateEnd(&out->zlib);
}

cs_status cs_viewer_out_destroy(cs_viewer_out *out, const char *path, cs_error *error)
{
    if (!out)
        return CS_OK;
    flush(out, true);
    if (out->compressed)
        end_packing(out);
    if (!out->failure && fflush(out->stream) != 0)
        out->failure = errno;
    const int failure = out->failure;
    free(out);
    return failure ? cs_error_add(error, CS_IO, "%s: cannot write: %s", path, strerror(failure))
                   : CS_OK;
}

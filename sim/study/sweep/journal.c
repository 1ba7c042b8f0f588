#include "sim/study/sweep/journal.h"

#include "sim/base/file.h"
#include "sim/base/hash.h"
#include "sim/base/interrupt.h"
#include "sim/base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HASH_DIGITS = 16, PREFIX = HASH_DIGITS + 1, HEADER_BYTES = 64 };

static const char magic[] = "sim sweep journal 1 ";
static const double flush_every = 0.1; /* s */

static const char *shown(const cs_journal *journal)
{
    return journal->path ? journal->path : "temporary file";
}

static cs_status fail(const cs_journal *journal, const char *what, cs_error *error)
{
    return cs_error_system(error, CS_IO, shown(journal), what, errno);
}

/* ---- lines ---- */

/* "0123456789abcdef text\n": the hash is of the text. */
static void write_prefix(char *line, const char *text, size_t length)
{
    snprintf(line, PREFIX, "%016" PRIx64, cs_hash_bytes(text, length, 0));
    line[HASH_DIGITS] = ' ';
}

static bool is_whole(const char *line, size_t length)
{
    char prefix[PREFIX];
    if (length <= PREFIX)
        return false;
    write_prefix(prefix, line + PREFIX, length - PREFIX);
    return memcmp(prefix, line, PREFIX) == 0;
}

cs_status cs_journal_append(cs_journal *journal, const char *text, size_t length,
                            cs_journal_place *place, cs_error *error)
{
    char *line = malloc(PREFIX + length + 1);
    if (!line)
        return cs_error_no_memory(error);
    write_prefix(line, text, length);
    memcpy(line + PREFIX, text, length);
    line[PREFIX + length] = '\n';
    bool written = cs_file_write_all(journal->file, line, PREFIX + length + 1);
    free(line);
    if (!written)
        return fail(journal, "cannot write", error);
    *place = (cs_journal_place){journal->end + PREFIX, length};
    journal->end += PREFIX + length + 1;
    journal->unflushed = true;
    return CS_OK;
}

cs_status cs_journal_flush(cs_journal *journal, bool now, cs_error *error)
{
    if (!journal->path || !journal->unflushed)
        return CS_OK;
    if (!now && cs_clock_seconds() - journal->flushed < flush_every)
        return CS_OK;
    if (fdatasync(journal->file) != 0)
        return fail(journal, "cannot flush to the disk", error);
    journal->unflushed = false;
    journal->flushed = cs_clock_seconds();
    return CS_OK;
}

cs_status cs_journal_read(const cs_journal *journal, cs_journal_place place, char **text,
                          cs_error *error)
{
    char *bytes = malloc(place.length + 1);
    size_t done = 0;
    if (!bytes)
        return cs_error_no_memory(error);
    while (done < place.length) {
        ssize_t got =
            pread(journal->file, bytes + done, place.length - done, (off_t)(place.start + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            free(bytes);
            return fail(journal, "cannot read", error);
        }
        done += (size_t)got;
    }
    bytes[done] = '\0';
    *text = bytes;
    return CS_OK;
}

/* ---- opening ---- */

/* What an earlier run left. */
typedef struct earlier {
    char *text;
    size_t length;
    size_t first; /* offset of its first point; 0: it has no header, or there was no file */
    bool same;    /* it is of this sweep */
} earlier;

static void header_text(char *text, size_t size, uint64_t identity)
{
    snprintf(text, size, "%s%016" PRIx64, magic, identity);
}

/* Writes the complete first line. Returns its length. */
static size_t header_line(char line[PREFIX + HEADER_BYTES], uint64_t identity)
{
    char *text = line + PREFIX;
    header_text(text, HEADER_BYTES, identity);
    const size_t length = strlen(text);
    write_prefix(line, text, length);
    text[length] = '\n';
    return PREFIX + length + 1;
}

static size_t line_length(const earlier *e, size_t start)
{
    const char *end = memchr(e->text + start, '\n', e->length - start);
    return end ? (size_t)(end - (e->text + start)) : 0;
}

static cs_status read_earlier(const cs_journal *journal, uint64_t identity, earlier *e,
                              cs_error *error)
{
    char header[HEADER_BYTES];
    struct stat info;
    if (!journal->path)
        return CS_OK;
    if (fstat(journal->file, &info) != 0)
        return fail(journal, "cannot read", error);
    cs_journal_place all = {0, (uint64_t)info.st_size};
    CS_TRY(cs_journal_read(journal, all, &e->text, error));
    e->length = (size_t)info.st_size;
    size_t length = line_length(e, 0);
    if (!is_whole(e->text, length) || strncmp(e->text + PREFIX, magic, sizeof(magic) - 1) != 0)
        return CS_OK;
    header_text(header, sizeof(header), identity);
    e->first = length + 1;
    e->same =
        length == PREFIX + strlen(header) && memcmp(e->text + PREFIX, header, strlen(header)) == 0;
    return CS_OK;
}

/* Hands out whole lines; returns where the first other one begins. */
static size_t take_points(earlier *e, cs_journal_reader *reader, void *context)
{
    size_t start = e->first;
    for (size_t length; (length = line_length(e, start)) > 0; start += length + 1) {
        char *line = e->text + start;
        if (!is_whole(line, length))
            break;
        line[length] = '\0';
        cs_journal_place place = {start + PREFIX, length - PREFIX};
        bool taken = reader(context, line + PREFIX, place);
        line[length] = '\n';
        if (!taken)
            break;
    }
    return start;
}

/* Removes the points first and then replaces the header, which has the same length. A process that
 * is killed in between leaves the journal of one sweep or the other. */
static cs_status begin_anew(cs_journal *journal, const earlier *e, uint64_t identity,
                            cs_error *error)
{
    char header[HEADER_BYTES];
    cs_journal_place place;
    if (ftruncate(journal->file, (off_t)e->first) != 0 || lseek(journal->file, 0, SEEK_SET) != 0)
        return fail(journal, "cannot write", error);
    journal->end = 0;
    header_text(header, sizeof(header), identity);
    CS_TRY(cs_journal_append(journal, header, strlen(header), &place, error));
    if (ftruncate(journal->file, (off_t)journal->end) != 0)
        return fail(journal, "cannot write", error);
    return cs_journal_flush(journal, true, error);
}

static cs_status go_on(cs_journal *journal, earlier *e, cs_journal_reader *reader, void *context,
                       cs_error *error)
{
    journal->end = take_points(e, reader, context);
    if (ftruncate(journal->file, (off_t)journal->end) != 0 ||
        lseek(journal->file, (off_t)journal->end, SEEK_SET) < 0)
        return fail(journal, "cannot write", error);
    return CS_OK;
}

/* Whether a file without a header may be this sweep's journal after a power failure. */
static bool is_torn(const earlier *e, uint64_t identity, bool resume)
{
    char line[PREFIX + HEADER_BYTES];
    const size_t length = header_line(line, identity);
    return e->length == 0 ? resume : e->length < length && memcmp(line, e->text, e->length) == 0;
}

static cs_status begin(cs_journal *journal, uint64_t identity, bool resume,
                       cs_journal_reader *reader, void *context, cs_error *error)
{
    earlier e = {0};
    cs_status status = read_earlier(journal, identity, &e, error);
    if (status == CS_OK && resume && e.first > 0 && !e.same)
        status = cs_error_add(error, CS_INVALID,
                              "%s: belongs to another %s, or the scenario, its files or the "
                              "program changed since; without --resume it is begun anew",
                              journal->path, journal->what);
    else if (status == CS_OK && !resume && e.same && line_length(&e, e.first) > 0)
        status = cs_error_add(error, CS_USAGE,
                              "%s: this %s was begun before; go on with --resume, or remove "
                              "the file",
                              journal->path, journal->what);
    else if (status == CS_OK && e.same)
        status = go_on(journal, &e, reader, context, error);
    else if (status == CS_OK && journal->path && e.first == 0 && !is_torn(&e, identity, resume))
        status = cs_error_add(error, CS_INVALID,
                              "%s: is not the journal of a %s; remove it, or choose another output",
                              journal->path, journal->what);
    else if (status == CS_OK)
        status = begin_anew(journal, &e, identity, error);
    free(e.text);
    return status;
}

static cs_status open_nameless(cs_journal *journal, cs_error *error)
{
    char name[4096];
    const char *folder = getenv("TMPDIR");
    int length =
        snprintf(name, sizeof(name), "%s/sim-sweep-XXXXXX", folder && *folder ? folder : "/tmp");
    if (length >= (int)sizeof(name))
        return cs_error_add(error, CS_IO, "TMPDIR: is too long");
    sigset_t before;
    cs_interrupt_hold(&before);
    journal->file = mkstemp(name);
    cs_status status = journal->file < 0 ? fail(journal, "cannot create", error) : CS_OK;
    if (status == CS_OK)
        unlink(name);
    cs_interrupt_release(&before);
    return status;
}

/* Makes the file, with its header, under its name at once: a file there without a header is somebody
 * else's. link fails where another process was faster, whose file is then opened; rename is for file
 * systems without links. */
static cs_status make_file(const cs_journal *journal, uint64_t identity, cs_error *error)
{
    char line[PREFIX + HEADER_BYTES];
    cs_file_draft draft;
    CS_TRY(cs_file_draft_begin(&draft, journal->path, error));
    const size_t length = header_line(line, identity);
    const int file = open(draft.temporary, O_WRONLY | O_CLOEXEC);
    const bool written = file >= 0 && cs_file_write_all(file, line, length) && fdatasync(file) == 0;
    cs_status status = CS_OK;
    if (!written || (link(draft.temporary, journal->path) != 0 && errno != EEXIST &&
                     rename(draft.temporary, journal->path) != 0))
        status = fail(journal, "cannot create", error);
    if (file >= 0)
        close(file);
    cs_file_draft_drop(&draft);
    return status;
}

static cs_status open_file(cs_journal *journal, uint64_t identity, cs_error *error)
{
    struct stat info;
    if (!journal->path)
        return open_nameless(journal, error);
    if (lstat(journal->path, &info) != 0 && errno == ENOENT)
        CS_TRY(make_file(journal, identity, error));
    journal->file = open(journal->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (journal->file < 0)
        return fail(journal, "cannot open", error);
    if (fstat(journal->file, &info) == 0 && !S_ISREG(info.st_mode))
        return cs_error_add(error, CS_IO, "%s: must be a file, to keep what is finished",
                            journal->path);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(journal->file, F_SETLK, &lock) == 0 || (errno != EACCES && errno != EAGAIN))
        return CS_OK; /* some file systems have no locks */
    return cs_error_add(error, CS_IO, "%s: another process is running this %s", journal->path,
                        journal->what);
}

cs_status cs_journal_open(cs_journal *journal, const char *what, const char *path,
                          uint64_t identity, bool resume, cs_journal_reader *reader, void *context,
                          cs_error *error)
{
    *journal = (cs_journal){.what = what, .path = path ? strdup(path) : NULL, .file = -1};
    if (path && !journal->path)
        return cs_error_no_memory(error);
    cs_status status = open_file(journal, identity, error);
    if (status == CS_OK)
        status = begin(journal, identity, resume, reader, context, error);
    if (status != CS_OK)
        cs_journal_close(journal);
    return status;
}

void cs_journal_close(cs_journal *journal)
{
    if (journal->file >= 0)
        close(journal->file);
    free(journal->path);
    *journal = (cs_journal){.file = -1};
}

void cs_journal_remove(cs_journal *journal)
{
    struct stat named, opened;
    if (journal->path && lstat(journal->path, &named) == 0 && fstat(journal->file, &opened) == 0 &&
        named.st_dev == opened.st_dev && named.st_ino == opened.st_ino)
        unlink(journal->path);
    cs_journal_close(journal);
}

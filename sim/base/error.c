#include "sim/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void cs_error_init(cs_error *error)
{
    error->status = CS_OK;
    error->count = 0;
    error->stored = 0;
    error->subject_bytes = 0;
    error->proposal_bytes = 0;
    error->text[0] = '\0';
}

/* The first message is truncated if it is too long; a later one is stored whole or not at all. */
cs_status cs_error_addv(cs_error *error, cs_status status, const char *format, va_list arguments)
{
    if (!error)
        return status;
    if (error->count++ == 0)
        error->status = status;
    size_t used = strlen(error->text);
    size_t separator = used > 0 ? 1 : 0;
    size_t room = sizeof(error->text) - used;
    if (room <= separator + 1)
        return status;
    char *end = error->text + used;
    int length = vsnprintf(end + separator, room - separator, format, arguments);
    if (used > 0 && (length < 0 || (size_t)length >= room - separator)) {
        *end = '\0';
        return status;
    }
    if (used > 0)
        *end = '\n';
    if (error->stored < CS_ERROR_PLACES)
        error->marks[error->stored] = (struct cs_error_mark){0};
    error->stored++;
    return status;
}

cs_status cs_error_add(cs_error *error, cs_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cs_error_addv(error, status, format, arguments);
    va_end(arguments);
    return status;
}

/* The mark of the latest message; NULL if the message was not stored. */
static struct cs_error_mark *last_mark(cs_error *error)
{
    if (!error || error->stored != error->count || error->stored > CS_ERROR_PLACES)
        return NULL;
    return error->stored > 0 ? &error->marks[error->stored - 1] : NULL;
}

void cs_error_place(cs_error *error, size_t file, size_t pointer)
{
    struct cs_error_mark *mark = last_mark(error);
    if (!mark)
        return;
    mark->file = (uint16_t)file;
    mark->pointer = (uint16_t)pointer;
}

void cs_error_set_kind(cs_error *error, cs_error_kind kind, const char *subject)
{
    struct cs_error_mark *mark = last_mark(error);
    const size_t bytes = strlen(subject) + 1;
    if (!mark || bytes > CS_ERROR_SUBJECT_BYTES - error->subject_bytes)
        return;
    mark->kind = (uint8_t)kind;
    mark->subject = (uint16_t)error->subject_bytes;
    memcpy(error->subjects + error->subject_bytes, subject, bytes);
    error->subject_bytes += (uint32_t)bytes;
}

void cs_error_propose(cs_error *error, bool first, const char *pointer, const char *format, ...)
{
    char value[256];
    va_list arguments;
    if (!error || error->count != 1)
        return;
    va_start(arguments, format);
    const int length = vsnprintf(value, sizeof(value), format, arguments);
    va_end(arguments);
    const size_t bytes = 1 + strlen(pointer) + 1 + strlen(value) + 1;
    if (length < 0 || (size_t)length >= sizeof(value) ||
        bytes > CS_ERROR_PROPOSAL_BYTES - error->proposal_bytes)
        return;
    char *at = error->proposals + error->proposal_bytes;
    *at = first ? 1 : 0;
    memcpy(at + 1, pointer, strlen(pointer) + 1);
    memcpy(at + 1 + strlen(pointer) + 1, value, strlen(value) + 1);
    error->proposal_bytes += (uint32_t)bytes;
}

bool cs_error_next_proposal(const cs_error *error, uint32_t *at, cs_error_proposal *proposal)
{
    if (*at >= error->proposal_bytes)
        return false;
    const char *from = error->proposals + *at;
    const char *value = from + 1 + strlen(from + 1) + 1;
    *proposal = (cs_error_proposal){*from == 1, from + 1, value};
    *at = (uint32_t)(value + strlen(value) + 1 - error->proposals);
    return true;
}

void cs_error_append(cs_error *error, const char *text)
{
    const size_t used = strlen(error->text), length = strlen(text);
    if (used + length < sizeof(error->text))
        memcpy(error->text + used, text, length + 1);
}

bool cs_error_message_at(const cs_error *error, uint32_t i, cs_error_message *message)
{
    const char *line = error->text;
    if (i >= error->stored)
        return false;
    for (uint32_t k = 0; k < i; k++)
        line = strchr(line, '\n') + 1;
    const size_t bytes = strcspn(line, "\n");
    const struct cs_error_mark none = {0};
    const struct cs_error_mark *mark = i < CS_ERROR_PLACES ? &error->marks[i] : &none;
    const size_t file = mark->file, pointer = mark->pointer;
    size_t before = file + (pointer > 0 ? pointer + 2 : 0);
    if (before > 0 && before < bytes)
        before += 1 + (line[before + 1] == ' '); /* skip ":" or ": " */
    if (before > bytes)                          /* the message was truncated within the place */
        before = 0;
    *message = (cs_error_message){.file = line,
                                  .pointer = line + file + 2,
                                  .text = line + before,
                                  .file_bytes = before > 0 ? (int)file : 0,
                                  .pointer_bytes = before > 0 ? (int)pointer : 0,
                                  .text_bytes = (int)(bytes - before),
                                  .kind = mark->kind};
    if (mark->kind != CS_ERROR_OTHER)
        message->subject = error->subjects + mark->subject;
    return true;
}

void cs_error_add_all(cs_error *error, const cs_error *from)
{
    cs_error_message message;
    for (uint32_t i = 0; cs_error_message_at(from, i, &message); i++) {
        (void)cs_error_add(error, from->status, "%.*s",
                           (int)(message.text - message.file) + message.text_bytes, message.file);
        cs_error_place(error, (size_t)message.file_bytes, (size_t)message.pointer_bytes);
        if (message.subject)
            cs_error_set_kind(error, message.kind, message.subject);
    }
    if (error)
        error->count += from->count - from->stored;
}

cs_status cs_error_system(cs_error *error, cs_status status, const char *place, const char *what,
                          int code)
{
    /* A shortage on this machine says nothing about the file. */
    char reason[128];
    if (status == CS_INVALID && (code == EMFILE || code == ENFILE || code == ENOMEM || code == EIO))
        status = CS_IO;
    if (strerror_r(code, reason, sizeof(reason)) != 0)
        snprintf(reason, sizeof(reason), "error %d", code);
    (void)cs_error_add(error, status, "%s: %s: %s", place, what, reason);
    cs_error_place(error, strlen(place), 0);
    return status;
}

cs_status cs_error_no_memory(cs_error *error)
{
    return cs_error_add(error, CS_NO_MEMORY, "out of memory on this machine");
}

cs_status cs_error_or_no_memory(cs_error *error)
{
    return error && error->count > 0 ? error->status : cs_error_no_memory(error);
}

static const struct {
    const char *name;
    const char *doc;
    int exit_code;
} statuses[] = {
#define CS_STATUS_ROW(name, exit_code, doc) {#name, doc, exit_code},
    CS_STATUS_MAP(CS_STATUS_ROW)
#undef CS_STATUS_ROW
};

const char *cs_status_name(cs_status status)
{
    return statuses[status].name;
}

const char *cs_status_describe(cs_status status)
{
    return statuses[status].doc;
}

int cs_status_exit_code(cs_status status)
{
    return statuses[status].exit_code;
}

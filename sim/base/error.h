/* Statuses and error records.
 *
 * A function that can fail returns a cs_status. Whoever discovers the failure also writes
 * down, once, where it is and what would be right, in the cs_error that its caller handed
 * in; callers in between only pass the status on. Outputs are written on success only.
 *
 * One cs_error can hold several messages (a scenario with three wrong keys reports three):
 * they are separated by newlines, and what does not fit is counted, not stored. A record is
 * a plain value: no allocation, so it can also say that memory ran out.
 *
 * A message reads "place: what is wrong and what would be right", the place being
 * "file: /json/pointer" or "file:line:column"; who wrote it may say which part is the place
 * (cs_error_place), for those who hand it on to programs. Where a program reacts to one kind of
 * mistake, the message says of which kind it is (cs_error_kind); nobody looks for words in a text.
 */
#ifndef CS_BASE_ERROR_H
#define CS_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, exit code of the program, description for its manual; those of one code together */
#define CS_STATUS_MAP(X)                                                                           \
    X(OK, 0, "Done")                                                                               \
    X(FAILED, 1, "The run failed")                                                                 \
    X(NO_MEMORY, 1, "Out of memory on this machine")                                               \
    X(IO, 1, "Input or output failed")                                                             \
    X(OVERFLOW, 1, "A time or a size does not fit 64 bits")                                        \
    X(USAGE, 2, "Wrong use of the command line")                                                   \
    X(INVALID, 3, "Bad input file; the message names file and place. Nothing was written")         \
    X(LIMIT, 4, "A requested limit or comparison did not hold, for example with --fail-on-oom")    \
    X(INTERRUPTED, 130, "Interrupted")

typedef enum cs_status {
#define CS_STATUS_ENUM(name, exit_code, doc) CS_##name,
    CS_STATUS_MAP(CS_STATUS_ENUM)
#undef CS_STATUS_ENUM
} cs_status;

#define CS_MUST_CHECK       __attribute__((warn_unused_result))
#define CS_PRINTF(fmt, arg) __attribute__((format(printf, fmt, arg)))

/* Passes a failure on: "CS_TRY(cs_json_load(path, &root, error));" returns what the call did unless
 * that is CS_OK. For functions with nothing to clean up. */
#define CS_TRY(call)                                                                               \
    do {                                                                                           \
        const cs_status cs_tried = (call);                                                         \
        if (cs_tried != CS_OK)                                                                     \
            return cs_tried;                                                                       \
    } while (0)

/* What a message says, and what its subject is */
typedef enum cs_error_kind {
    CS_ERROR_OTHER,       /* whatever else; no subject */
    CS_ERROR_UNKNOWN_KEY, /* nothing has such a key; its JSON pointer */
} cs_error_kind;

enum { CS_ERROR_TEXT_BYTES = 4096, CS_ERROR_PLACES = 64, CS_ERROR_SUBJECT_BYTES = 1024 };

enum { CS_ERROR_PROPOSAL_BYTES = 1024 };

typedef struct cs_error {
    cs_status status; /* of the first message; CS_OK while there is none */
    uint32_t count;   /* messages added */
    uint32_t stored;  /* messages that fit into text */
    char text[CS_ERROR_TEXT_BYTES];
    struct cs_error_mark {
        uint16_t file, pointer; /* bytes; 0: there is none */
        uint16_t subject;       /* where it begins in subjects, if the kind has one */
        uint8_t kind;           /* cs_error_kind */
    } marks[CS_ERROR_PLACES];   /* of the first messages that are stored */
    uint32_t subject_bytes;     /* that are used */
    char subjects[CS_ERROR_SUBJECT_BYTES];
    uint32_t proposal_bytes; /* used bytes; see cs_error_propose */
    char proposals[CS_ERROR_PROPOSAL_BYTES];
} cs_error;

void cs_error_init(cs_error *error);

/* Adds one message and returns `status`, so that `return cs_error_add(...)` reads well.
 * `error` may be NULL: then only the status travels. */
cs_status cs_error_add(cs_error *error, cs_status status, const char *format, ...) CS_PRINTF(3, 4);
cs_status cs_error_addv(cs_error *error, cs_status status, const char *format, va_list arguments)
    CS_PRINTF(3, 0);

/* "place: what: reason", the reason being that of an errno: "f.json: cannot read: Permission
 * denied". Too many open files, no memory and a failing disk make CS_INVALID CS_IO. */
cs_status cs_error_system(cs_error *error, cs_status status, const char *place, const char *what,
                          int code);

/* The message that was added last begins with a file of that many bytes, and then, where `pointer`
 * > 0, with ": " and a pointer of that many. */
void cs_error_place(cs_error *error, size_t file, size_t pointer);

/* The message that was added last is of that kind. A subject that does not fit makes it
 * CS_ERROR_OTHER. */
void cs_error_set_kind(cs_error *error, cs_error_kind kind, const char *subject);

/* Proposes a change of the document that may remove the cause of the first message: `value` (JSON)
 * at a JSON pointer. The value satisfies the rule that found the mistake, but may break another one,
 * so cs_scenario_read tries it before it is printed. `first` begins a group; the first accepted
 * proposal of a group is printed. Does nothing unless there is exactly one message, or when the
 * buffer is full. */
void cs_error_propose(cs_error *error, bool first, const char *pointer, const char *format, ...)
    CS_PRINTF(4, 5);

typedef struct cs_error_proposal {
    bool first;
    const char *pointer, *value;
} cs_error_proposal;

/* Reads the proposal at *at (0: the first) and advances *at. False after the last one. */
bool cs_error_next_proposal(const cs_error *error, uint32_t *at, cs_error_proposal *proposal);

/* Appends to the latest message, if there is room. */
void cs_error_append(cs_error *error, const char *text);

/* A message, taken apart; what has no place has a file of 0 bytes. */
typedef struct cs_error_message {
    const char *file, *pointer, *text;
    int file_bytes, pointer_bytes, text_bytes;
    cs_error_kind kind;
    const char *subject; /* ends with a NUL; NULL of CS_ERROR_OTHER */
} cs_error_message;

/* Message number `i` of those that are stored; false behind the last. */
bool cs_error_message_at(const cs_error *error, uint32_t i, cs_error_message *message);

/* Adds all messages of `from` as they are, places and kinds included. */
void cs_error_add_all(cs_error *error, const cs_error *from);

/* The usual message for a failed allocation. */
cs_status cs_error_no_memory(cs_error *error);

/* For what returns NULL with a message, or without one when memory runs out: the status of the
 * message, or cs_error_no_memory. */
cs_status cs_error_or_no_memory(cs_error *error);

/* The name ("INVALID"), the description, the program's exit code. */
const char *cs_status_name(cs_status status);
const char *cs_status_describe(cs_status status);
int cs_status_exit_code(cs_status status);

#endif

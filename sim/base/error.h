/* Statuses and error records.
 *
 * A function that can fail returns a cs_status. The function that discovers the failure writes one
 * message, which says where it is and what would be right, into the cs_error that its caller passed
 * in; callers in between only return the status. Outputs are written on success only.
 *
 * One cs_error can hold several messages (a scenario with three wrong keys reports three),
 * separated by newlines. Messages that do not fit are counted, not stored. A record is a plain
 * value without allocations, so it can also report that memory ran out.
 *
 * A message reads "place: the error and the remedy", where the place is "file:
 * /json/pointer" or "file:line:column". cs_error_place records which part is the place, for callers
 * that pass it on to other programs. Where the program reacts to one kind of mistake, the message
 * has a kind (cs_error_kind); no code searches the text of a message.
 */
#ifndef CS_BASE_ERROR_H
#define CS_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, exit code of the program, description for the manual; rows with the same code are
 * adjacent */
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

/* Returns from the calling function if `call` fails: "CS_TRY(cs_json_load(path, &root, error));".
 * For functions with nothing to clean up. */
#define CS_TRY(call)                                                                               \
    do {                                                                                           \
        const cs_status cs_tried = (call);                                                         \
        if (cs_tried != CS_OK)                                                                     \
            return cs_tried;                                                                       \
    } while (0)

/* Kind of a message; its subject */
typedef enum cs_error_kind {
    CS_ERROR_OTHER,       /* any other mistake; no subject */
    CS_ERROR_UNKNOWN_KEY, /* unknown key; the key's JSON pointer */
} cs_error_kind;

enum { CS_ERROR_TEXT_BYTES = 4096, CS_ERROR_PLACES = 64, CS_ERROR_SUBJECT_BYTES = 1024 };

enum { CS_ERROR_PROPOSAL_BYTES = 1024 };

typedef struct cs_error {
    cs_status status; /* status of the first message; CS_OK: no message */
    uint32_t count;   /* messages added */
    uint32_t stored;  /* messages that fit into text */
    char text[CS_ERROR_TEXT_BYTES];
    struct cs_error_mark {
        uint16_t file, pointer; /* bytes of the file's name and of the pointer; 0: none */
        uint16_t subject;       /* offset in `subjects`, if the kind has a subject */
        uint8_t kind;           /* cs_error_kind */
    } marks[CS_ERROR_PLACES];   /* places of the first CS_ERROR_PLACES stored messages */
    uint32_t subject_bytes;     /* bytes used of `subjects` */
    char subjects[CS_ERROR_SUBJECT_BYTES];
    uint32_t proposal_bytes; /* bytes used of `proposals`; see cs_error_propose */
    char proposals[CS_ERROR_PROPOSAL_BYTES];
} cs_error;

void cs_error_init(cs_error *error);

/* Adds one message and returns `status`, so that callers can write `return cs_error_add(...)`. If
 * `error` is NULL, only the status is returned. */
cs_status cs_error_add(cs_error *error, cs_status status, const char *format, ...) CS_PRINTF(3, 4);
cs_status cs_error_addv(cs_error *error, cs_status status, const char *format, va_list arguments)
    CS_PRINTF(3, 0);

/* Adds "place: what: reason", with the reason of an errno: "f.json: cannot read: Permission
 * denied". Turns CS_INVALID into CS_IO if the cause is too many open files, no memory or a failing
 * disk. */
cs_status cs_error_system(cs_error *error, cs_status status, const char *place, const char *what,
                          int code);

/* Records the place of the latest message: its first `file` bytes name the file, followed, if
 * `pointer` > 0, by ": " and a pointer of `pointer` bytes. */
void cs_error_place(cs_error *error, size_t file, size_t pointer);

/* Sets the kind of the latest message. If the subject does not fit, the kind stays
 * CS_ERROR_OTHER. */
void cs_error_set_kind(cs_error *error, cs_error_kind kind, const char *subject);

/* Proposes a change of the document that may remove the cause of the first message: `value` (JSON)
 * at a JSON pointer. The value satisfies the rule that found the mistake but may break another one,
 * so cs_scenario_read tries it before it is printed. `first` begins a group; the first accepted
 * proposal of a group is printed. Does nothing unless there is exactly one message, or if the
 * buffer is full. */
void cs_error_propose(cs_error *error, bool first, const char *pointer, const char *format, ...)
    CS_PRINTF(4, 5);

typedef struct cs_error_proposal {
    bool first;
    const char *pointer, *value;
} cs_error_proposal;

/* Reads the proposal at *at (0: the first) and advances *at. False after the last one. */
bool cs_error_next_proposal(const cs_error *error, uint32_t *at, cs_error_proposal *proposal);

/* Appends to the latest message, if it fits. */
void cs_error_append(cs_error *error, const char *text);

/* The parts of a message; without a place, file_bytes is 0 */
typedef struct cs_error_message {
    const char *file, *pointer, *text;
    int file_bytes, pointer_bytes, text_bytes;
    cs_error_kind kind;
    const char *subject; /* NUL-terminated; NULL: CS_ERROR_OTHER */
} cs_error_message;

/* Reads stored message `i`. Returns false after the last. */
bool cs_error_message_at(const cs_error *error, uint32_t i, cs_error_message *message);

/* Adds all messages of `from` as they are, places and kinds included. */
void cs_error_add_all(cs_error *error, const cs_error *from);

/* Adds the usual message for a failed allocation. */
cs_status cs_error_no_memory(cs_error *error);

/* Status after a function returned NULL: the status of its message, or cs_error_no_memory if it
 * left none. */
cs_status cs_error_or_no_memory(cs_error *error);

/* The status' name ("INVALID"), its description, and the program's exit code. */
const char *cs_status_name(cs_status status);
const char *cs_status_describe(cs_status status);
int cs_status_exit_code(cs_status status);

#endif

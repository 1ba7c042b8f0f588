/* Loaded before a program (LD_PRELOAD): only its allocation number $FAIL_AT fails; with
 * $FAIL_COUNT=FILE it writes the number of allocations there. Allocations of HDF5 are not counted:
 * version 1.10 crashes when one fails.
 *
 * With $FAIL_EACH=FILE each allocation, or each $FAIL_EVERY-th, fails in turn in a copy of the
 * process (fork) that continues from there, while the process itself continues normally. FILE gets
 * a line "try NUMBER CODE THREAD" per copy: its exit status, or minus the signal that ended it;
 * "main", or "other" for a thread. A copy has one thread: it ends when it hands something over to
 * others or waits for them. If the copy crashed or did not report memory, its message and call
 * stack follow. Only for runs without output files: copies have the descriptors of the process.
 *
 * With $FAIL_STACKS=N, an allocation fails if its call stack (innermost frames) allocates for the
 * 1st, 2nd, 4th, 8th, ..., Nth time: the first iterations of a loop, and ever fewer later ones. */
#define _GNU_SOURCE /* dladdr, RTLD_NEXT, memfd_create */

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *data, size_t size);

enum { PATIENCE = 20, HANDED_OVER = 111, SAID_BYTES = 4096, FRAMES = 24, STACKS = 1 << 16 };

static atomic_long count;
static long fail_at = -1; /* -1: not begun yet */
static long every = 1;
static pid_t owner; /* programs that it starts are not attacked */
static pthread_t main_thread;
static int report = -1;        /* number of copies */
static unsigned long of_stack; /* as $FAIL_STACKS says; 0: not by stacks */
static bool is_copy, is_alone; /* alone: a copy of a process that had several threads */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* copy at a time */
static int (*next_signal)(pthread_cond_t *);
static int (*next_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

/* ---- HDF5 in the program ---- */

/* Functions whose names begin with H5, by address: HDF5, if linked into the program. */
static struct function {
    uintptr_t start, end;
} * functions;
static size_t n_functions;

static int by_address(const void *left, const void *right)
{
    const struct function *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int take_base(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1; /* the program is the first */
}

static void list_functions(const char *image, const ElfW(Shdr) * sections, const ElfW(Shdr) * table)
{
    const ElfW(Sym) *symbols = (const void *)(image + table->sh_offset);
    const char *names = image + sections[table->sh_link].sh_offset;
    const size_t n = table->sh_size / sizeof(*symbols);
    uintptr_t base = 0;
    (void)dl_iterate_phdr(take_base, &base);
    functions = __libc_calloc(n + 1, sizeof(*functions));
    for (size_t i = 0; functions && i < n; i++)
        if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
            strncmp(names + symbols[i].st_name, "H5", 2) == 0 && symbols[i].st_size > 0)
            functions[n_functions++] = (struct function){
                base + symbols[i].st_value, base + symbols[i].st_value + symbols[i].st_size};
    if (n_functions > 0)
        qsort(functions, n_functions, sizeof(*functions), by_address);
}

static void read_program(void)
{
    struct stat info;
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const bool known = file >= 0 && fstat(file, &info) == 0;
    const char *image =
        known ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (image == MAP_FAILED)
        return;
    const ElfW(Ehdr) *header = (const void *)image;
    const ElfW(Shdr) *sections = (const void *)(image + header->e_shoff);
    for (uint32_t i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            list_functions(image, sections, &sections[i]);
    munmap((void *)image, (size_t)info.st_size);
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT");
    void *frame;
    (void)backtrace(&frame, 1); /* the first one loads a library */
    const char *each = getenv("FAIL_EACH"), *step = getenv("FAIL_EVERY");
    owner = getpid();
    main_thread = pthread_self();
    every = step ? strtol(step, NULL, 10) : 1;
    report = each ? open(each, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    const char *stacks = getenv("FAIL_STACKS");
    of_stack = stacks ? strtoul(stacks, NULL, 10) : 0;
    next_signal = (int (*)(pthread_cond_t *))dlsym(RTLD_NEXT, "pthread_cond_signal");
    next_wait = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(
        RTLD_NEXT, "pthread_cond_timedwait");
    read_program();
    fail_at = at ? strtol(at, NULL, 10) : 0;
    unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    FILE *out = path && getpid() == owner ? fopen(path, "w") : NULL;
    if (!out)
        return;
    fprintf(out, "%ld\n", atomic_load(&count));
    fclose(out);
}

static bool is_of_program(uintptr_t at)
{
    size_t from = 0, to = n_functions;
    while (from < to) { /* the first that ends after it */
        const size_t middle = from + (to - from) / 2;
        if (functions[middle].end <= at)
            from = middle + 1;
        else
            to = middle;
    }
    return from < n_functions && functions[from].start <= at;
}

static bool is_in_library(void *const *frames, int n)
{
    Dl_info info;
    for (int i = 0; i < n; i++)
        if (is_of_program((uintptr_t)frames[i]) ||
            (dladdr(frames[i], &info) != 0 && info.dli_fname && strstr(info.dli_fname, "libhdf5")))
            return true;
    return false;
}

/* ---- copies ---- */

static void tell_place(void)
{
    void *frames[FRAMES];
    const int n = backtrace(frames, FRAMES);
    backtrace_symbols_fd(frames, n, report);
}

/* Reports the output of a copy that ended wrongly. */
static void tell(long at, int status, bool is_main, int said)
{
    char text[SAID_BYTES];
    const ssize_t n = pread(said, text, sizeof(text) - 1, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    text[n > 0 ? n : 0] = '\0';
    dprintf(report, "try %ld %d %s\n", at, code, is_main ? "main" : "other");
    if (code == 0 || code == HANDED_OVER || (code == 1 && strstr(text, "memory")))
        return;
    dprintf(report, "%.1000s\n", text);
    tell_place();
}

static bool has_threads(void)
{
    char text[SAID_BYTES];
    const int file = open("/proc/self/stat", O_RDONLY);
    const ssize_t n = read(file, text, sizeof(text) - 1);
    const char *at = n > 0 ? (text[n] = '\0', strrchr(text, ')')) : NULL;
    int number = 1;
    if (at) /* field 20; the bracket ends the second */
        (void)sscanf(at + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
                     &number);
    close(file);
    return number > 1;
}

/* Waits for it up to PATIENCE s, then kills it. */
static int wait_for(pid_t pid)
{
    const struct timespec tick = {.tv_nsec = 200000};
    int status = 0;
    for (long i = 0; i < PATIENCE * 5000L; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        nanosleep(&tick, NULL);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* True in the copy, whose allocation fails. */
static bool copy(long at)
{
    pthread_mutex_lock(&one);
    const bool many = has_threads();
    const int said = memfd_create("said", MFD_CLOEXEC), nowhere = open("/dev/null", O_WRONLY);
    const pid_t pid = fork();
    if (pid == 0) {
        is_copy = true;
        is_alone = many;
        dup2(said, STDERR_FILENO);
        dup2(nowhere, STDOUT_FILENO);
        return true;
    }
    tell(at, pid > 0 ? wait_for(pid) : -1, pthread_equal(main_thread, pthread_self()), said);
    close(said);
    close(nowhere);
    pthread_mutex_unlock(&one);
    return false;
}

/* ---- call stacks ---- */

static bool is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

/* How often a stack has allocated, this time included; 1 for stacks that the table has no room
 * for. */
static uint32_t count_stack(void *const *frames, int n)
{
    static struct {
        uint64_t hash;
        uint32_t count;
    } seen[STACKS];
    uint64_t hash = 14695981039346656037u; /* FNV-1a, of whole addresses */
    for (int i = 0; i < n; i++)
        hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
    hash ^= hash >> 32;
    for (size_t i = 0; i < STACKS; i++) {
        const size_t at = (hash + i) % STACKS;
        if (seen[at].count == 0)
            seen[at].hash = hash;
        if (seen[at].hash == hash)
            return ++seen[at].count;
    }
    return 1;
}

/* True if this allocation fails in a copy, as $FAIL_STACKS and $FAIL_EVERY want. */
static bool is_chosen(long at, void *const *frames, int n)
{
    if (of_stack == 0)
        return at % every == 0;
    pthread_mutex_lock(&one);
    const uint32_t time = count_stack(frames, n);
    const bool chosen = is_power_of_two(time) && time <= of_stack;
    pthread_mutex_unlock(&one);
    return chosen;
}

static bool fails(void)
{
    static _Thread_local bool within;
    if (fail_at < 0 || within || is_copy)
        return false;
    within = true;
    void *frames[FRAMES];
    const int n = backtrace(frames, FRAMES);
    const bool counts = !is_in_library(frames, n);
    const long at = counts ? atomic_fetch_add(&count, 1) + 1 : 0;
    bool failing = counts && at == fail_at;
    if (counts && report >= 0 && getpid() == owner && is_chosen(at, frames, n))
        failing = copy(at);
    within = false;
    if (failing)
        errno = ENOMEM;
    return failing;
}

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *data, size_t size)
{
    return fails() ? NULL : __libc_realloc(data, size);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    if (is_alone)
        _exit(HANDED_OVER);
    return next_signal(condition);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    if (is_alone)
        _exit(HANDED_OVER);
    return next_wait(condition, mutex, until);
}

#pragma GCC visibility pop

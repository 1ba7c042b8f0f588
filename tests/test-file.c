/* Files: read whole, replaced whole or not at all. Works in a folder of its own under $TMPDIR or
 * /tmp, which it removes. */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw */

#include "sim/base/file.h"
#include "sim/base/inputs.h"
#include "sim/base/interrupt.h"
#include "sim/base/temporary.h"
#include "tests/expect.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LIMIT = 1 << 20 };

/* The group's folder, which is also the current one while the tests run. */
static int enter_folder(void **state)
{
    const char *base = getenv("TMPDIR");
    char *folder = malloc(PATH_BYTES);
    if (!folder)
        return -1;
    snprintf(folder, PATH_BYTES, "%s/test-file.XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        free(folder);
        return -1;
    }
    umask(022);
    *state = folder;
    return 0;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static int leave_folder(void **state)
{
    char *folder = *state;
    int failed = chdir("/");
    failed |= nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(folder);
    return failed;
}

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *open = opendir(folder);
    assert_non_null(open);
    while (readdir(open))
        count++;
    closedir(open);
    return count - 2; /* without . and .. */
}

static void expect_content(const char *path, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_file_read(path, LIMIT, &text, &length, &error);
    expect_error(path, CS_OK, "", status, &error);
    expect_int(path, (int64_t)strlen(expected), (int64_t)length);
    expect_text(path, expected, text);
    free(text);
}

static void put(const char *path, const char *text)
{
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_file_write(path, text, strlen(text), &error);
    expect_error(path, CS_OK, "", status, &error);
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    assert_int_equal(mkdir("plain", 0777), 0);
    put("plain/a", "first");
    expect_content("plain/a", "first");
    put("plain/a", "");
    expect_content("plain/a", "");
    put("plain/a", "second, longer than the first");
    expect_content("plain/a", "second, longer than the first");
    expect_int("nothing is left over", 1, count_entries("plain"));
}

static void large_and_binary_files_read_back(void **state)
{
    (void)state;
    enum { BYTES = 300000 };
    char *bytes = malloc(BYTES), *read = NULL;
    size_t length = 0;
    assert_non_null(bytes);
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (char)(i % 251);
    assert_int_equal(cs_file_write("large", bytes, BYTES, NULL), CS_OK);
    assert_int_equal(cs_file_read("large", BYTES, &read, &length, NULL), CS_OK);
    expect_int("length", BYTES, (int64_t)length);
    assert_memory_equal(bytes, read, BYTES);
    assert_int_equal(read[BYTES], '\0');
    free(read);
    free(bytes);
}

static void names_with_and_without_folder(void **state)
{
    char path[PATH_BYTES + 16];
    put("bare", "1");
    put("./dotted", "2");
    snprintf(path, sizeof(path), "%s/absolute", (const char *)*state);
    put(path, "3");
    expect_content("bare", "1");
    expect_content("dotted", "2");
    expect_content("absolute", "3");
}

static void long_names_fit(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    put(name, "longest name that Linux has");
    expect_content(name, "longest name that Linux has");
}

static const struct {
    const char *path, *message;
    size_t limit;
} unreadable[] = {
    {"missing", "missing: cannot read: No such file or directory", LIMIT},
    {"", ": cannot read: No such file or directory", LIMIT},
    {".", ".: is a folder; must be a file", LIMIT},
    {"five/x", "five/x: cannot read: Not a directory", LIMIT},
    {"five", "five: too large; must be at most 4 bytes", 4},
    {"/dev/zero", "/dev/zero: is a device; must be a file", 100000},
};

static void refuses_to_read(void **state)
{
    (void)state;
    put("five", "12345");
    for (size_t i = 0; i < ROWS(unreadable); i++) {
        char *text = NULL;
        size_t length = 42;
        cs_error error;
        cs_error_init(&error);
        cs_status status =
            cs_file_read(unreadable[i].path, unreadable[i].limit, &text, &length, &error);
        expect_error(unreadable[i].path, CS_INVALID, unreadable[i].message, status, &error);
        assert_null(text);
        expect_int(unreadable[i].path, 42, (int64_t)length);
    }
}

static void reads_up_to_the_limit(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    put("five", "12345");
    assert_int_equal(cs_file_read("five", 5, &text, &length, NULL), CS_OK);
    expect_int("length", 5, (int64_t)length);
    free(text);
}

static const struct {
    const char *path, *message;
} unwritable[] = {
    {"none/x", "none/x: cannot create: No such file or directory"},
    {".", ".: is a folder; must be the name of a file"},
    {"/", "/: is a folder; must be the name of a file"},
    {"none/", "none/: must be the name of a file"},
    {"", "\"\": must be the name of a file"},
    {"five/x", "five/x: cannot create: Not a directory"},
    {"round", "round: cannot create: Too many levels of symbolic links"},
    {"astray", "astray: cannot create: No such file or directory"},
};

static void refuses_to_write(void **state)
{
    (void)state;
    put("five", "12345");
    assert_int_equal(symlink("round", "round"), 0);
    assert_int_equal(symlink("none/x", "astray"), 0);
    int before = count_entries(".");
    for (size_t i = 0; i < ROWS(unwritable); i++) {
        cs_error error;
        cs_file_draft draft;
        cs_error_init(&error);
        cs_status status = cs_file_write(unwritable[i].path, "x", 1, &error);
        expect_error(unwritable[i].path, CS_IO, unwritable[i].message, status, &error);
        expect_int(unwritable[i].path, CS_IO,
                   cs_file_draft_begin(&draft, unwritable[i].path, NULL));
        cs_file_draft_drop(&draft);
    }
    expect_int("nothing is left over", before, count_entries("."));
}

/* Root may write anywhere, so these rows say something only for others. */
static void respects_write_protection(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip();
    put("protected", "old");
    assert_int_equal(chmod("protected", 0444), 0);
    assert_int_equal(mkdir("closed", 0555), 0);
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_file_write("protected", "new", 3, &error);
    expect_error("file", CS_IO, "protected: cannot write: Permission denied", status, &error);
    expect_content("protected", "old");
    cs_error_init(&error);
    status = cs_file_write("closed/a", "new", 3, &error);
    expect_error("folder", CS_IO, "closed/a: cannot create: Permission denied", status, &error);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void new_files_have_usual_permissions(void **state)
{
    (void)state;
    put("usual", "");
    expect_int("umask 022", 0644, mode_of("usual"));
    umask(027);
    put("usual", "");
    expect_int("umask 027", 0640, mode_of("usual"));
    umask(022);
}

static void a_draft_shows_only_when_committed(void **state)
{
    (void)state;
    cs_file_draft draft;
    assert_int_equal(mkdir("draft", 0777), 0);
    put("draft/a", "old");
    assert_int_equal(cs_file_draft_begin(&draft, "draft/a", NULL), CS_OK);
    expect_text("path", "draft/a", draft.path);
    assert_memory_equal(draft.temporary, "draft/.a.", strlen("draft/.a."));
    expect_int("length", (int64_t)strlen("draft/.a.sim~XXXXXX/.content"),
               (int64_t)strlen(draft.temporary));
    FILE *out = fopen(draft.temporary, "w");
    assert_non_null(out);
    fputs("new", out);
    fclose(out);
    expect_content("draft/a", "old");
    assert_int_equal(cs_file_draft_commit(&draft, NULL), CS_OK);
    expect_content("draft/a", "new");
    cs_file_draft_drop(&draft); /* after a commit it does nothing */
    expect_int("entries", 1, count_entries("draft"));
}

static void a_dropped_draft_leaves_nothing(void **state)
{
    (void)state;
    cs_file_draft draft, none = {0};
    assert_int_equal(mkdir("dropped", 0777), 0);
    assert_int_equal(cs_file_draft_begin(&draft, "dropped/a", NULL), CS_OK);
    expect_int("while it is open", 1, count_entries("dropped"));
    cs_file_draft_drop(&draft);
    cs_file_draft_drop(&draft);
    cs_file_draft_drop(&none);
    cs_file_draft_drop(NULL);
    expect_int("afterwards", 0, count_entries("dropped"));
}

static void a_draft_that_vanished_is_an_error(void **state)
{
    (void)state;
    cs_file_draft draft;
    cs_error error;
    cs_error_init(&error);
    put("kept", "old");
    assert_int_equal(cs_file_draft_begin(&draft, "kept", NULL), CS_OK);
    assert_int_equal(unlink(draft.temporary), 0);
    cs_status status = cs_file_draft_commit(&draft, &error);
    expect_error("vanished", CS_IO, "kept: cannot open to flush: No such file or directory", status,
                 &error);
    expect_content("kept", "old");
}

static void a_name_taken_by_a_folder_meanwhile_is_an_error(void **state)
{
    (void)state;
    cs_file_draft draft;
    cs_error error;
    cs_error_init(&error);
    int before = count_entries(".");
    assert_int_equal(cs_file_draft_begin(&draft, "taken", NULL), CS_OK);
    assert_int_equal(mkdir("taken", 0777), 0);
    cs_status status = cs_file_draft_commit(&draft, &error);
    expect_error("taken", CS_IO,
                 "taken: cannot rename the finished file to this name: Is a directory", status,
                 &error);
    expect_int("the temporary file is removed", before + 1, count_entries("."));
}

static void two_drafts_of_one_file_do_not_meet(void **state)
{
    (void)state;
    cs_file_draft one, two;
    assert_int_equal(cs_file_draft_begin(&one, "twice", NULL), CS_OK);
    assert_int_equal(cs_file_draft_begin(&two, "twice", NULL), CS_OK);
    assert_string_not_equal(one.temporary, two.temporary);
    assert_int_equal(cs_file_draft_commit(&one, NULL), CS_OK);
    assert_int_equal(cs_file_draft_commit(&two, NULL), CS_OK);
    expect_content("twice", "");
}

/* ln -s: the file at the other end of a chain of links is made, and then replaced, by relative and
 * absolute names. The links stay. */
static void a_link_to_nowhere_is_followed(void **state)
{
    char absolute[PATH_BYTES];
    assert_int_equal(mkdir("links", 0777), 0);
    assert_int_equal(mkdir("targets", 0777), 0);
    snprintf(absolute, sizeof(absolute), "%s/targets/absolute", (const char *)*state);
    assert_int_equal(symlink("../targets/relative", "links/one"), 0);
    assert_int_equal(symlink("one", "links/two"), 0);
    assert_int_equal(symlink(absolute, "links/three"), 0);
    for (int i = 0; i < 2; i++) {
        put("links/two", i == 0 ? "a" : "b");
        put("links/three", i == 0 ? "c" : "d");
        expect_content("targets/relative", i == 0 ? "a" : "b");
        expect_content("targets/absolute", i == 0 ? "c" : "d");
    }
    struct stat info;
    for (const char *const *name =
             (const char *const[]){"links/one", "links/two", "links/three", NULL};
         *name; name++) {
        assert_int_equal(lstat(*name, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
    }
    expect_int("links", 3, count_entries("links"));
    expect_int("targets", 2, count_entries("targets"));
}

/* A child that makes a draft, and a temporary folder with a file in it whose path it tells. */
static pid_t start_writer(const char *name, int *told, cs_temporary *folder)
{
    int both[2];
    assert_int_equal(pipe(both), 0);
    const pid_t child = fork();
    if (child == 0) {
        cs_file_draft draft;
        cs_temporary made;
        char path[PATH_BYTES];
        if (cs_file_draft_begin(&draft, name, NULL) != CS_OK ||
            cs_temporary_folder(&made, "claimed", NULL) != CS_OK)
            _exit(1);
        FILE *inside = NULL;
        if (cs_temporary_entry(&made, "inside", path, sizeof(path), NULL) == CS_OK)
            inside = fopen(path, "w");
        const size_t length = strlen(made.folder);
        if (!inside || fclose(inside) != 0 || write(both[1], made.folder, length) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(both[1]);
    *told = both[0];
    folder->folder = calloc(PATH_BYTES, 1);
    assert_non_null(folder->folder);
    assert_true(read(both[0], folder->folder, PATH_BYTES - 1) > 0);
    return child;
}

static void end_writer(pid_t child, int told)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(told);
}

static void what_a_killed_writer_left_is_removed_by_the_next(void **state)
{
    cs_temporary left = {0}, own;
    cs_file_draft draft;
    int told;
    assert_int_equal(mkdir("claims", 0777), 0);
    put("claims/.a.backup", "a user's");
    assert_int_equal(setenv("TMPDIR", *state, 1), 0);
    const pid_t child = start_writer("claims/a", &told, &left);
    expect_int("the writer's and the user's", 2, count_entries("claims"));

    /* it is alive: nothing goes */
    assert_int_equal(cs_file_draft_begin(&draft, "claims/a", NULL), CS_OK);
    assert_int_equal(cs_temporary_folder(&own, "claimed", NULL), CS_OK);
    expect_int("two writers' and the user's", 3, count_entries("claims"));
    assert_int_equal(access(left.folder, F_OK), 0);
    cs_file_draft_drop(&draft);
    cs_temporary_remove(&own);

    end_writer(child, told);
    expect_int("after it was killed", 2, count_entries("claims"));
    assert_int_equal(cs_file_draft_begin(&draft, "claims/b", NULL), CS_OK);
    expect_int("another file's writer removes nothing", 3, count_entries("claims"));
    cs_file_draft_drop(&draft);
    assert_int_equal(cs_file_draft_begin(&draft, "claims/a", NULL), CS_OK);
    assert_int_equal(cs_temporary_folder(&own, "claimed", NULL), CS_OK);
    expect_int("its own and the user's", 2, count_entries("claims"));
    assert_int_not_equal(access(left.folder, F_OK), 0);
    cs_file_draft_drop(&draft);
    cs_temporary_remove(&own);
    expect_int("the user's", 1, count_entries("claims"));
    assert_int_equal(unsetenv("TMPDIR"), 0);
    free(left.folder);
}

static void copy(const char *from, const char *to)
{
    char *text = NULL;
    size_t length = 0;
    assert_int_equal(cs_file_read(from, LIMIT, &text, &length, NULL), CS_OK);
    put(to, text);
    free(text);
}

/* Files and folders with names as sim gives them to temporary ones, which somebody else made; also
 * a copy of one of sim's own, one that was renamed, and a link to one. Only what sim made itself
 * is removed; a file that a user added stays. */
static void what_users_made_stays(void **state)
{
    static const char mark[] = ".sim-temporary";
    cs_temporary left = {0}, own;
    cs_file_draft draft;
    int told;
    char path[PATH_BYTES], renamed[PATH_BYTES];
    assert_int_equal(mkdir("users", 0777), 0);
    assert_int_equal(setenv("TMPDIR", *state, 1), 0);
    for (int i = 0; i < 3; i++) {
        end_writer(start_writer("users/a", &told, &left), told);
        if (i < 2)
            free(left.folder);
        /* the folder of the draft, the only entry that is not renamed yet */
        DIR *list = opendir("users");
        struct dirent *entry;
        assert_non_null(list);
        while ((entry = readdir(list)))
            if (strncmp(entry->d_name, ".a.sim~", 7) == 0 && strstr(entry->d_name, "own") == NULL)
                snprintf(path, sizeof(path), "users/%s", entry->d_name);
        closedir(list);
        snprintf(renamed, sizeof(renamed), "users/%s",
                 i == 0   ? ".a.sim~ownnew" /* renamed */
                 : i == 1 ? "elsewhere"
                          : "");
        if (i < 2)
            assert_int_equal(rename(path, renamed), 0);
    }
    /* a file in a folder that was left behind */
    char added[PATH_BYTES + 16];
    snprintf(added, sizeof(added), "%s/notes", path);
    put(added, "a user's");
    /* a copy of such a folder, with its mark */
    assert_int_equal(mkdir("users/.a.sim~owncop", 0777), 0);
    snprintf(added, sizeof(added), "%s/%s", path, mark);
    copy(added, "users/.a.sim~owncop/.sim-temporary");
    put("users/.a.sim~owncop/.content", "a copy");
    /* links, a file, a folder, and one with a file of the mark's name */
    assert_int_equal(symlink("elsewhere", "users/.a.sim~ownlnk"), 0);
    put("users/.a.sim~backup", "a user's");
    assert_int_equal(mkdir("users/.a.sim~ownfol", 0777), 0);
    assert_int_equal(mkdir("users/.a.sim~ownfol/deep", 0777), 0);
    put("users/.a.sim~ownfol/deep/file", "a user's");
    assert_int_equal(mkdir("users/.a.sim~ownmrk", 0777), 0);
    put("users/.a.sim~ownmrk/.sim-temporary", "notes on sim's temporary folders");
    assert_int_equal(mkdir("claimed-backup", 0777), 0);
    put("claimed-backup/file", "a user's");

    assert_int_equal(cs_file_draft_begin(&draft, "users/a", NULL), CS_OK);
    assert_int_equal(cs_temporary_folder(&own, "claimed", NULL), CS_OK);
    cs_file_draft_drop(&draft);
    cs_temporary_remove(&own);
    cs_file_clear_drafts("users/a");

    expect_content("users/.a.sim~ownnew/.content", "");
    expect_content("users/elsewhere/.content", "");
    expect_content("users/.a.sim~owncop/.content", "a copy");
    expect_content("users/.a.sim~backup", "a user's");
    expect_content("users/.a.sim~ownfol/deep/file", "a user's");
    expect_content("users/.a.sim~ownmrk/.sim-temporary", "notes on sim's temporary folders");
    expect_content("users/.a.sim~ownlnk/.content", "");
    expect_content("claimed-backup/file", "a user's");
    snprintf(added, sizeof(added), "%s/notes", path);
    expect_content(added, "a user's");
    expect_int("only the user's file remains", 1, count_entries(path));
    assert_int_not_equal(access(left.folder, F_OK), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    free(left.folder);
}

/* Folders in a temporary folder are removed with their contents; links in them are
 * not followed. Other entries stay. */
static void listed_entries_are_removed_and_no_others(void **state)
{
    cs_temporary made;
    char within[PATH_BYTES], path[PATH_BYTES + 16], kept[PATH_BYTES];
    assert_int_equal(setenv("TMPDIR", *state, 1), 0);
    assert_int_equal(mkdir("aim", 0777), 0);
    put("aim/file", "a user's");
    assert_int_equal(cs_temporary_folder(&made, "listed", NULL), CS_OK);
    assert_int_equal(cs_temporary_subfolder(&made, "t", within, sizeof(within), NULL), CS_OK);
    snprintf(path, sizeof(path), "%s/deep", within);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/deep/file", within);
    put(path, "another program's");
    snprintf(path, sizeof(path), "%s/link", within);
    assert_int_equal(symlink("../../aim", path), 0);
    snprintf(path, sizeof(path), "%s/file", made.folder);
    put(path, "a user's");
    snprintf(kept, sizeof(kept), "%s", made.folder);
    cs_temporary_remove(&made);
    expect_content("aim/file", "a user's");
    expect_content(path, "a user's");
    expect_int("only the user's file remains", 1, count_entries(kept));
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* With cs_inputs_protect, no name of an input may be an output; files that were read
 * before the call may. Runs in a child, because cs_inputs_protect affects the whole process. */
static void an_input_is_not_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *output, *message;
    } rows[] = {
        {"inputs/a", "inputs/a: is an input of this command; choose another name for the output"},
        {"inputs/hard", "inputs/hard: is the same file as the input inputs/a; choose another name "
                        "for the output"},
        {"inputs/soft", "inputs/soft: is the same file as the input inputs/a; choose another name "
                        "for the output"},
        {"inputs/../inputs/a", "inputs/../inputs/a: is the same file as the input inputs/a; choose "
                               "another name for the output"},
        {"inputs/new", "inputs/new: is also another output of this command; choose two names"},
    };
    int code;
    assert_int_equal(mkdir("inputs", 0777), 0);
    put("inputs/a", "input");
    put("inputs/other", "no input");
    assert_int_equal(link("inputs/a", "inputs/hard"), 0);
    assert_int_equal(symlink("a", "inputs/soft"), 0);
    const pid_t child = fork();
    if (child == 0) {
        cs_error error;
        char *text = NULL;
        size_t length = 0;
        int wrong = cs_file_read("inputs/other", LIMIT, &text, &length, NULL) != CS_OK;
        free(text);
        cs_inputs_protect();
        wrong += cs_file_read("inputs/a", LIMIT, &text, &length, NULL) != CS_OK;
        free(text);
        wrong += cs_file_write("inputs/new", "new", 3, NULL) != CS_OK;
        wrong += cs_file_write("inputs/other", "replaced", 8, NULL) != CS_OK;
        for (size_t i = 0; i < ROWS(rows); i++) {
            cs_error_init(&error);
            const cs_status status = cs_file_write(rows[i].output, "x", 1, &error);
            wrong += status != CS_USAGE || strcmp(error.text, rows[i].message) != 0;
            if (strcmp(error.text, rows[i].message) != 0)
                print_error("%s\n%s\n", rows[i].message, error.text);
        }
        cs_inputs_allow("inputs/soft");
        wrong += cs_file_write("inputs/a", "input and more", 14, NULL) != CS_OK;
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    expect_int("wrong", 0, WIFEXITED(code) ? WEXITSTATUS(code) : -1);
    expect_content("inputs/a", "input and more");
    expect_content("inputs/hard", "input");
    expect_content("inputs/other", "replaced");
    expect_content("inputs/new", "new");
    expect_int("nothing is left over", 5, count_entries("inputs"));
}

/* A child that is writing when it crashes, with something to blame or without; its exit code, or
 * the signal below 0, and what it said. */
static int crash_while_writing(const char *blamed, int number, char said[PATH_BYTES])
{
    int both[2], code;
    assert_int_equal(pipe(both), 0);
    const pid_t child = fork();
    if (child == 0) {
        cs_file_draft draft;
        if (dup2(both[1], STDERR_FILENO) < 0)
            _exit(1);
        for (int i = SIGHUP; i <= SIGTERM; i++)
            (void)signal(i, SIG_DFL); /* cmocka has them */
        cs_interrupt_catch(0);
        if (blamed)
            cs_interrupt_blame(blamed);
        if (cs_file_draft_begin(&draft, "crashed/a", NULL) == CS_OK)
            (void)raise(number);
        _exit(2);
    }
    close(both[1]);
    const ssize_t length = read(both[0], said, PATH_BYTES - 1);
    said[length > 0 ? length : 0] = '\0';
    close(both[0]);
    assert_int_equal(waitpid(child, &code, 0), child);
    return WIFSIGNALED(code) ? -WTERMSIG(code) : WEXITSTATUS(code);
}

static void a_crash_is_blamed_on_a_file_and_leaves_nothing(void **state)
{
    (void)state;
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    static const char blamed[] = "x.h5: damaged";
    char said[PATH_BYTES];
    assert_int_equal(mkdir("crashed", 0777), 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        expect_int("code", 3, crash_while_writing(blamed, numbers[i], said));
        assert_string_equal(said, "sim: error: x.h5: damaged\n");
        expect_int("left", 0, count_entries("crashed"));
        expect_int("signal", -numbers[i], crash_while_writing(NULL, numbers[i], said));
        assert_string_equal(said, "");
        expect_int("nobody removed it", 1, count_entries("crashed"));
        cs_file_clear_drafts("crashed/b");
        expect_int("nor who looks for another's", 1, count_entries("crashed"));
        cs_file_clear_drafts("crashed/a");
        expect_int("the next does", 0, count_entries("crashed"));
    }
}

static void a_link_stays_and_its_file_is_replaced(void **state)
{
    (void)state;
    struct stat info;
    assert_int_equal(mkdir("behind", 0777), 0);
    put("behind/file", "old");
    assert_int_equal(symlink("behind/file", "link"), 0);
    put("link", "new");
    expect_content("behind/file", "new");
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    expect_int("entries", 1, count_entries("behind"));
}

static void devices_are_written_in_place(void **state)
{
    (void)state;
    struct stat info;
    cs_file_draft draft;
    put("/dev/null", "gone");
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_int_equal(cs_file_draft_begin(&draft, "/dev/null", NULL), CS_OK);
    expect_text("temporary", "/dev/null", draft.temporary);
    cs_file_draft_drop(&draft);
    assert_int_equal(stat("/dev/null", &info), 0);
}

static void a_full_device_is_an_error(void **state)
{
    (void)state;
    cs_error error;
    cs_error_init(&error);
    if (access("/dev/full", W_OK) != 0)
        skip();
    cs_status status = cs_file_write("/dev/full", "x", 1, &error);
    expect_error("full", CS_IO, "/dev/full: cannot write: No space left on device", status, &error);
}

/* The limit simulates a full disk: the second half of the file cannot be written. */
static void a_file_that_cannot_be_completed_leaves_the_earlier_one(void **state)
{
    (void)state;
    struct rlimit before, small;
    char bytes[20000] = "";
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(mkdir("full", 0777), 0);
    put("full/a", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 10000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    cs_status status = cs_file_write("full/a", bytes, sizeof(bytes), &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    expect_error("full", CS_IO, "full/a: cannot write: File too large", status, &error);
    expect_content("full/a", "old");
    expect_int("nothing is left over", 1, count_entries("full"));
}

/* Opened for reading and writing, a pipe does not wait for the other side. */
static void pipes_are_written_in_place(void **state)
{
    (void)state;
    char text[8] = "";
    struct stat info;
    assert_int_equal(mkfifo("pipe", 0666), 0);
    int fd = open("pipe", O_RDWR);
    assert_true(fd >= 0);
    put("pipe", "through");
    assert_int_equal(read(fd, text, sizeof(text) - 1), 7);
    expect_text("pipe", "through", text);
    close(fd);
    assert_int_equal(stat("pipe", &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
}

/* A pipe that no process has opened. */
static void pipes_are_not_waited_for(void **state)
{
    (void)state;
    cs_error error;
    cs_file_draft draft;
    char *text = NULL;
    size_t length = 0;
    assert_int_equal(mkfifo("lonely", 0666), 0);
    cs_error_init(&error);
    expect_error("in", CS_INVALID,
                 "lonely: is a pipe that no program writes into; write to a file, and read that",
                 cs_file_read("lonely", 100, &text, &length, &error), &error);
    cs_error_init(&error);
    expect_error("out", CS_IO, "lonely: is a pipe that no program reads; start one first",
                 cs_file_draft_begin(&draft, "lonely", &error), &error);
}

/* A pipe whose writer is late and slow. */
static void pipes_are_read_to_their_end(void **state)
{
    (void)state;
    static const struct timespec moment = {.tv_nsec = 200 * 1000 * 1000};
    cs_error error;
    char *text = NULL;
    size_t length = 0;
    cs_error_init(&error);
    assert_int_equal(mkfifo("slow", 0666), 0);
    const pid_t child = fork();
    if (child == 0) {
        nanosleep(&moment, NULL);
        const int fd = open("slow", O_WRONLY);
        nanosleep(&moment, NULL);
        bool written = write(fd, "one ", 4) == 4;
        nanosleep(&moment, NULL);
        written = write(fd, "two", 3) == 3 && written;
        _exit(written ? 0 : 1);
    }
    assert_true(child > 0);
    expect_error("slow", CS_OK, "", cs_file_read("slow", 100, &text, &length, &error), &error);
    expect_text("slow", "one two", text);
    assert_int_equal(waitpid(child, NULL, 0), child);
    free(text);
}

static void minus_is_standard_output(void **state)
{
    (void)state;
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    int fd = open("captured", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(saved >= 0 && fd >= 0);
    assert_true(dup2(fd, STDOUT_FILENO) >= 0);
    cs_status status = cs_file_write("-", "out", 3, NULL);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    close(saved);
    close(fd);
    expect_int("status", CS_OK, status);
    expect_content("captured", "out");
}

static const struct {
    const char *from, *name, *path;
} relatives[] = {
    {"s.json", "m.json", "m.json"},
    {"dir/s.json", "m.json", "dir/m.json"},
    {"dir/s.json", "../m.json", "dir/../m.json"},
    {"/abs/s.json", "models/m.json", "/abs/models/m.json"},
    {"/s.json", "m.json", "/m.json"},
    {"dir/s.json", "/abs/m.json", "/abs/m.json"},
    {"dir/s.json", "", "dir/"},
    {"-", "m.json", "m.json"},
};

static void names_are_relative_to_the_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(relatives); i++) {
        char *path = cs_file_relative(relatives[i].from, relatives[i].name);
        assert_non_null(path);
        expect_text(relatives[i].from, relatives[i].path, path);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(large_and_binary_files_read_back),
        cmocka_unit_test(names_with_and_without_folder),
        cmocka_unit_test(long_names_fit),
        cmocka_unit_test(refuses_to_read),
        cmocka_unit_test(reads_up_to_the_limit),
        cmocka_unit_test(refuses_to_write),
        cmocka_unit_test(respects_write_protection),
        cmocka_unit_test(new_files_have_usual_permissions),
        cmocka_unit_test(a_draft_shows_only_when_committed),
        cmocka_unit_test(a_dropped_draft_leaves_nothing),
        cmocka_unit_test(a_draft_that_vanished_is_an_error),
        cmocka_unit_test(a_name_taken_by_a_folder_meanwhile_is_an_error),
        cmocka_unit_test(two_drafts_of_one_file_do_not_meet),
        cmocka_unit_test(what_a_killed_writer_left_is_removed_by_the_next),
        cmocka_unit_test(a_link_to_nowhere_is_followed),
        cmocka_unit_test(what_users_made_stays),
        cmocka_unit_test(listed_entries_are_removed_and_no_others),
        cmocka_unit_test(an_input_is_not_replaced),
        cmocka_unit_test(a_crash_is_blamed_on_a_file_and_leaves_nothing),
        cmocka_unit_test(a_link_stays_and_its_file_is_replaced),
        cmocka_unit_test(devices_are_written_in_place),
        cmocka_unit_test(a_full_device_is_an_error),
        cmocka_unit_test(a_file_that_cannot_be_completed_leaves_the_earlier_one),
        cmocka_unit_test(pipes_are_written_in_place),
        cmocka_unit_test(pipes_are_not_waited_for),
        cmocka_unit_test(pipes_are_read_to_their_end),
        cmocka_unit_test(minus_is_standard_output),
        cmocka_unit_test(names_are_relative_to_the_file),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

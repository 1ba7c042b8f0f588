/* The main of a fuzz target where no fuzzing engine is linked: gives every file of the folders (or
 * every file) named on the command line to the target once. A target that finds something aborts. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH_BYTES = 4096 };

/* The size is exact, so that reading past the end is seen by a sanitizer. */
static bool replay_bytes(FILE *in, size_t size)
{
    uint8_t *data = malloc(size > 0 ? size : 1);
    bool read = data && fread(data, 1, size, in) == size;
    if (read)
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return read;
}

static bool replay_file(const char *path, off_t size, unsigned int *count)
{
    FILE *in = fopen(path, "rb");
    bool done = in && replay_bytes(in, (size_t)size);
    if (in)
        fclose(in);
    if (done)
        ++*count;
    else
        perror(path);
    return done;
}

static bool replay(const char *path, unsigned int *count);

static bool replay_folder(const char *path, unsigned int *count)
{
    char inner[PATH_BYTES];
    bool done = true;
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        int length = snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        done &= length > 0 && length < PATH_BYTES && replay(inner, count);
    }
    closedir(folder);
    return done;
}

static bool replay(const char *path, unsigned int *count)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        perror(path);
        return false;
    }
    if (S_ISDIR(info.st_mode))
        return replay_folder(path, count);
    return replay_file(path, info.st_size, count);
}

enum { MOST_INPUTS = 100 }; /* a test has to be short */

/* An empty corpus is a mistake in the build, not a success. */
int main(int argc, char **argv)
{
    unsigned int count = 0;
    bool done = true;
    for (int i = 1; i < argc; i++)
        done &= replay(argv[i], &count);
    printf("%u inputs, of at most %d\n", count, MOST_INPUTS);
    return done && count > 0 && count <= MOST_INPUTS ? EXIT_SUCCESS : EXIT_FAILURE;
}

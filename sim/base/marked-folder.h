/* Folders that sim may remove: those that carry its mark.
 *
 * The mark is a file in the folder that contains a fixed text, the folder's name and inode, and the
 * names of the entries that were put into the folder. A folder that somebody else made, or that was
 * copied or renamed, has no valid mark and is never removed, whatever its name is. Removal deletes
 * the listed entries, then the mark, then the folder if it is empty. Symbolic links are removed,
 * not followed.
 *
 * The process that makes a folder holds a lock on it (flock), which ends with the process. An
 * unlocked marked folder was left by a process that was killed: cs_marked_folder_clear removes it.
 * On file systems without such locks it stays.
 */
#ifndef CS_BASE_MARKED_FOLDER_H
#define CS_BASE_MARKED_FOLDER_H

#include <stdbool.h>

/* Descriptors that the folder's creator keeps open, so that the folder can be removed even if no
 * more descriptors can be opened. 0: none. */
typedef struct cs_marked_folder {
    int folder; /* holds the lock */
    int mark;
} cs_marked_folder;

/* Makes a folder that only this user may enter, locks it and marks it. `path` must end in "XXXXXX",
 * which is replaced to make the name unique. On failure returns false and sets errno. */
bool cs_marked_folder_make(char *path, cs_marked_folder *made);

/* Lists an entry (file or folder) in the mark, before it is created in the folder. `name` contains
 * neither slash nor newline. On failure returns false and sets errno. */
bool cs_marked_folder_list(const cs_marked_folder *made, const char *name);

/* Removes the folder. Returns false if an entry could not be removed. Does nothing if `path` now
 * names another folder. Async-signal-safe. */
bool cs_marked_folder_remove(const char *path, const cs_marked_folder *made);

/* Unlocks the folder. */
void cs_marked_folder_close(cs_marked_folder *made);

/* Removes this user's unlocked marked folders whose paths are `beginning` followed by six
 * characters. */
void cs_marked_folder_clear(const char *beginning);

#endif

/* Folders that sim may remove: those that carry its mark.
 *
 * The mark is a file in the folder. It holds a fixed text, the folder's name and inode, and the
 * names of the entries that were put into the folder. A folder that somebody else made, or that was
 * copied or renamed, has no valid mark and is never removed, whatever its name is. Removing takes
 * the listed entries away, then the mark, then the folder if nothing else is left in it. Symbolic
 * links are removed, not followed.
 *
 * The process that makes a folder holds a lock on it (flock), which ends with the process. A marked
 * folder without a lock was left behind by a process that was killed: cs_marked_folder_clear
 * removes it. On a file system without such locks it stays.
 */
#ifndef CS_BASE_MARKED_FOLDER_H
#define CS_BASE_MARKED_FOLDER_H

#include <stdbool.h>

/* Descriptors that the folder's creator keeps open, so that the folder can be removed even when no
 * further descriptor can be opened. 0: none. */
typedef struct cs_marked_folder {
    int folder; /* holds the lock */
    int mark;
} cs_marked_folder;

/* Makes a folder that only this user may enter, locks it and marks it. `path` must end in "XXXXXX",
 * which is replaced so that the name is free. False with errno set if that fails. */
bool cs_marked_folder_make(char *path, cs_marked_folder *made);

/* Lists an entry, a file or a folder, before it is put into the folder. `name` has no slash and no
 * newline. False with errno set if that fails. */
bool cs_marked_folder_list(const cs_marked_folder *made, const char *name);

/* Returns false if some entry could not be removed. Does nothing if `path` now names another folder.
 * May be called in a signal handler. */
bool cs_marked_folder_remove(const char *path, const cs_marked_folder *made);

/* Unlocks the folder. */
void cs_marked_folder_close(cs_marked_folder *made);

/* Removes the marked folders that are this user's, are not locked, and whose names are `beginning`
 * (a path) followed by six characters. */
void cs_marked_folder_clear(const char *beginning);

#endif

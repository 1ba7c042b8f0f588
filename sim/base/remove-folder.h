/* Taking a folder away with all that is in it. */
#ifndef CS_BASE_REMOVE_FOLDER_H
#define CS_BASE_REMOVE_FOLDER_H

#include <stdbool.h>

/* True once there is no such folder. Links are removed, not followed; below 16 levels nothing is
 * touched. May be called in a signal handler. */
bool cs_remove_folder(const char *path);

#endif

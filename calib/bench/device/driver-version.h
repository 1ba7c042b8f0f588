/* The version in the first line of /proc/driver/nvidia/version, such as "535.104.05":
 *     NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023
 *     NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build
 */
#ifndef CS_CALIB_DRIVER_VERSION_H
#define CS_CALIB_DRIVER_VERSION_H

#include <stddef.h>

/* Writes the first word that consists of digits and at least one point and ends with a digit; "" if
 * there is none or it does not fit. Returns `text`. */
char *cs_driver_version(const char *line, char *text, size_t size);

#endif

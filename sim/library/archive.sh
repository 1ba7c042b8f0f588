#!/bin/sh
# An archive of one object, whose symbols are local except the public functions:
# archive.sh LD OBJCOPY AR RESULT.a FRONT.a LIBRARY.a...
# It has all of FRONT.a, and what that needs of the others. Without it, names of ours (cs_...) would
# clash with names of programs that link the archive.
set -e
ld=$1 objcopy=$2 ar=$3 result=$4 front=$5
shift 5
"$ld" -r --whole-archive "$front" --no-whole-archive --start-group "$@" --end-group -o "$result.o"
"$objcopy" --localize-hidden "$result.o"
rm -f "$result"
"$ar" rcs "$result" "$result.o"
rm "$result.o"

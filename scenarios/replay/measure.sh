#!/bin/sh
# Measures this machine, predicts, replays and compares all scenarios of this folder, again and again:
#
#   scenarios/replay/measure.sh SIM FOLDER [ROUNDS [TIME]]
#
# SIM: the program; FOLDER: a new one, for cost files and results; ROUNDS: default 5; TIME: limit of
# each calibration, default 20s. Calibrations and replays take turns, so that a machine that gets
# slower or faster meanwhile does so for both.
set -eu
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
sim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
rounds=${3:-5} limit=${4:-20s}
mkdir -p "$2"
cd "$2"
cp "$here"/v*.json .

# Alone for the scenarios on one device; by two processes at once for those on two, which share caches
# and memory as the two devices do.
calibrate() # MODEL, PARAMETER...
{
    model=$1
    shift
    for processes in 1 2; do
        # shellcheck disable=SC2046 # one word per option
        "$sim" calibrate compute --model "$model" $(printf ' --param %s' "$@") --batch 8 \
            --optimizer momentum --processes $processes --time-limit "$limit" \
            -o costs-$processes.json
    done
}

replay() # NAME
{
    for schedule in sequential dp gpipe 1f1b pipedream nf1b; do
        "$sim" run "$1-$schedule.json" -o "$round-$1-$schedule.h5" >/dev/null
        "$sim" replay "$1-$schedule.json" --runs 3 -o "$round-$1-$schedule-measured.h5"
        pairs="$pairs $round-$1-$schedule.h5 $round-$1-$schedule-measured.h5"
    done
}

pairs=''
round=1
while [ "$round" -le "$rounds" ]; do
    rm -f costs-1.json costs-2.json
    "$sim" calibrate network --collective send --collective all_reduce --max-bytes '16 MiB' \
        -o costs-2.json
    calibrate vgg16 image=64 width=16 dense=256 classes=100
    replay vgg
    calibrate vit_b16 image=64 patch=8 layers=6 hidden=192 heads=4 classes=100
    replay vit
    round=$((round + 1))
done
# shellcheck disable=SC2086 # two words per pair
"$sim" compare $pairs

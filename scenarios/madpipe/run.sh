#!/bin/sh
# The study: run.sh SIM FOLDER
# Sweeps, tables and figures in FOLDER. After an interruption the same command goes on. Needs gnuplot,
# perl, and a Python 3 with h5py: python3, or what the variable PYTHON names.
set -eu
python=${PYTHON:-python3}
"$python" -c "import h5py" 2> /dev/null || {
    echo "$0: $python has no h5py (Debian: python3-h5py)" >&2
    exit 1
}
for tool in gnuplot perl; do
    command -v "$tool" > /dev/null || { echo "$0: $tool is not installed" >&2; exit 1; }
done
sim=$(command -v "$1")
sim=$(realpath "$sim")
here=$(realpath "$(dirname "$0")")
mkdir -p "$2"
cd "$2"

[ -e literal.h5 ] || "$sim" sweep "$here/study.json" --resume -o literal.h5 > literal.txt
[ -e full.h5 ] || "$sim" sweep "$here/study.json" --resume -o full.h5 \
    -s /schedule/kept=full -s /schedule/count_workspace=true \
    --vary /model/name=resnet50,resnet101,inception_v3,densenet121 \
    --vary /platform/devices=2..8 --vary '/platform/memory=3..16 GB' \
    --vary '/platform/link_bandwidth="12 GB/s"' \
    --vary '/schedule/partition={"planner": "pipedream", "memory_rule": "depth"},"contiguous_optimal",{"planner": "madpipe", "special": "optimistic", "node_limit": 10000, "time_limit": "5 s"},{"planner": "madpipe", "special": "safe", "node_limit": 10000, "time_limit": "5 s"}' \
    > full.txt
"$python" "$here/tables.py" literal.h5 full.h5 --data data > tables.md
gnuplot -e "folder = 'data'" "$here/figures.gp"
# gnuplot opens groups in which nothing is drawn, and says what is so anyway
perl -0pi -e 's/<g fill[^>]*>\s*<\/g>\s*//g; s/<title>gnuplot_plot[^<]*<\/title>//g;
              s/ (color="black"|stroke-linecap="butt"|stroke-linejoin="miter")//g;
              s/[ \t]+/ /g; s/(\d\.\d)\d\b/$1/g' periods.svg ratios.svg speedups.svg

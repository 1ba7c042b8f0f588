#!/bin/sh
# Sets sim up on a fresh machine, and then does one thing with it:
#
#   ./setup.sh                      install what is missing, and build
#   ./setup.sh run [SCENARIO.json]  ... and simulate a scenario, with two pictures (in out/)
#   ./setup.sh test                 ... and run the whole test suite
#
# On Debian 12 and Ubuntu 22.04 or newer, packages are installed with apt-get, as root or with a
# sudo that asks for no password. Elsewhere, or without root, what is there is used, and what is
# missing is named. It asks nothing, and can be run again at any time. A build/ that was copied or
# moved here from another folder is kept as build-moved/, and a new one is set up.
set -eu
here=$PWD
cd "$(dirname "$0")"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }
show() { printf '+ %s\n' "$*" >&2; "$@"; }

# ---- what is needed: package, what it is, a command that succeeds when it is there ----

has() { command -v "$1" >/dev/null 2>&1; }
has_library() { pkg-config --exists "$1" 2>/dev/null; }
has_module() { python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null; }

has_compiler()
{
    for compiler in ${CC:-cc gcc clang}; do
        if echo '#include <stdio.h>' | "$compiler" -E - >/dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}

has_hdf5() { has_library hdf5 || has_library hdf5-serial || has h5cc; }

has_d3() { [ -f "/usr/share/nodejs/$1/dist/$1.min.js" ]; }

build_needs='
gcc              | a C17 compiler (gcc or clang)  | has_compiler
libc6-dev        | the C library and its headers  | has_compiler
meson            | meson 0.61 or newer            | has meson
ninja-build      | ninja                          | has ninja
pkg-config       | pkg-config                     | has pkg-config
libgsl-dev       | GNU Scientific Library         | has_library gsl
libcjson-dev     | cJSON                          | has_library libcjson
libhdf5-dev      | HDF5, with its high-level part | has_hdf5
libxxhash-dev    | xxHash                         | has_library libxxhash
zlib1g-dev       | zlib                           | has_library zlib
libexpat1-dev    | expat, reads XML               | has_library expat
coinor-libcbc-dev | CBC, solves integer programs   | has_library cbc
'
picture_needs='
gnuplot-nox      | gnuplot, which draws pictures  | has gnuplot
graphviz         | Graphviz, draws topologies     | has dot
'
# sim report; built without it where these are missing
report_extras='
node-d3-scale    | scales of D3, for reports      | has_d3 d3-scale
node-d3-zoom     | zoom of D3, for reports        | has_d3 d3-zoom
'
test_needs='
libcmocka-dev    | cmocka, for unit tests         | has_library cmocka
python3          | Python 3                       | has python3
binutils         | nm                             | has nm
'
# measuring and replaying on this machine (sim calibrate, sim replay)
measure_extras='
libopenblas-dev  | OpenBLAS                       | has_library openblas
libopenmpi-dev   | Open MPI, for its headers      | has_library mpi
openmpi-bin      | mpirun                         | has mpirun
'
# tests that need these are skipped without them
test_extras='
chromium         | a browser, to test reports     | has chromium
hdf5-tools       | h5dump and its kin             | has h5dump
python3-h5py     | h5py, a second reader of HDF5  | has_module h5py
python3-xarray   | xarray, with pandas and numpy  | has_module xarray
python3-nbclient | nbclient, which runs notebooks | has_module nbclient
python3-ipykernel | the kernel of notebooks       | has_module ipykernel
python3-mesonpy  | meson-python, for the wheel    | has_module mesonpy
python3-pip      | pip, for the wheel             | has_module pip
python3-venv     | virtual environments           | has_module ensurepip
patchelf         | patchelf, for the wheel        | has patchelf
libxml2-utils    | xmllint, for SVG               | has xmllint
man-db           | man, for the manual page       | has man
zsh              | zsh, for its completion        | has zsh
fish             | fish, for its completion       | has fish
groff-base       | groff, for the manual page     | has groff
slurm-wlm        | Slurm, to run studies under it | has slurmctld
iproute2         | ip, which makes a second host  | has ip
'

# Prints the packages, or with "what" the descriptions, of those rows of $1 that are missing.
missing()
{
    echo "$1" | while IFS='|' read -r package what test; do
        if [ -n "$test" ] && ! eval "$test"; then
            [ "${2:-package}" = what ] && echo " $what" || echo "$package"
        fi
    done
}

# ---- installing ----

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

can_install()
{
    has apt-get && { [ "$(id -u)" -eq 0 ] || { has sudo && sudo -n true 2>/dev/null; }; }
}

apt()
{
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >&2
}

# Installs what is missing of the rows $1 (without which it ends) and $2 (without which it goes on).
provide()
{
    packages=$({ missing "$1"; missing "$2"; } | xargs)
    [ -n "$packages" ] || return 0
    if can_install; then
        say "installing $packages"
        apt update || say "apt-get update failed; trying with the lists that are there"
        # one that a system does not have would keep apt-get from installing the others
        known=$(for package in $packages; do
            apt-cache show "$package" >/dev/null 2>&1 && echo "$package"
        done | xargs)
        # shellcheck disable=SC2086 # one word per package
        apt install --no-install-recommends $known || say "apt-get install failed"
    fi
    packages=$(missing "$1" | xargs)
    if [ -n "$packages" ]; then
        say "missing, and cannot be installed from here:"
        missing "$1" what >&2
        die "on Debian or Ubuntu: sudo apt-get install $packages"
    fi
    packages=$(missing "$2" | xargs)
    [ -z "$packages" ] || say "going on without $packages; what needs them is left out"
}

# ---- building ----

# The folder that build/ was set up as, if it is another one: it was copied or moved here. There ninja
# would go on building, or set up again and again.
built_elsewhere()
{
    python3 -c '
import json, os
with open("build/meson-info/meson-info.json", encoding="utf-8") as info:
    folder = json.load(info)["directories"]["build"]
if folder != os.path.realpath("build"):
    print(ascii(folder))' 2>/dev/null || :
}

configure()
{
    if [ ! -f build/build.ninja ]; then
        show meson setup build "$@"
    elif elsewhere=$(built_elsewhere) && [ -n "$elsewhere" ]; then
        aside=build-moved
        while [ -e "$aside" ] || [ -L "$aside" ]; do aside=$aside+; done
        say "build/ was set up as $elsewhere; setting it up anew, with its options; it is kept as $aside/"
        show mv build "$aside"
        # meson reads the options from these two files; the folder contains nothing else, so wiping
        # it deletes no file of yours
        mkdir -p build/meson-private
        cp "$aside/meson-private/coredata.dat" "$aside/meson-private/cmd_line.txt" build/meson-private
        show meson setup --wipe build "$@" || die "remove build/, and run this again"
    elif [ $# -gt 0 ] && ! meson introspect --buildoptions build | tr '{' '\n' |
        grep '"name": "tests"' | grep -q '"value": "enabled"'; then
        show meson setup --reconfigure build "$@"
    fi
}

build()
{
    configure "$@"
    show ninja -C build
}

run()
{
    scenario=${1:-scenarios/resnet50-1f1b.json}
    case $1:$scenario in
    :* | *:/*) ;;
    *) [ "$here" = "$PWD" ] || scenario=$here/$scenario ;;
    esac
    [ -f "$scenario" ] || die "$scenario: no such scenario"
    provide "$build_needs$picture_needs" "$report_extras"
    build
    name=$(basename "$scenario" .json)
    mkdir -p out
    show build/sim/cli/sim run "$scenario" -o "out/$name.h5"
    show build/sim/cli/sim plot "out/$name.h5" --kind timeline -o "out/$name-timeline.svg"
    show build/sim/cli/sim plot "out/$name.h5" --kind memory -o "out/$name-memory.svg"
}

run_tests()
{
    provide "$build_needs$picture_needs$test_needs" "$report_extras$measure_extras$test_extras"
    build -Dtests=enabled
    show meson test -C build --print-errorlogs
}

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }

case ${1-build}:$# in
build:0)
    provide "$build_needs" "$picture_needs$report_extras$measure_extras"
    build
    say "the program is build/sim/cli/sim"
    ;;
run:1 | run:2) run "${2-}" ;;
test:1) run_tests ;;
-h:1 | --help:1) usage ;;
*) usage >&2 && exit 2 ;;
esac

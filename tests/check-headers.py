#!/usr/bin/env python3
"""Every header compiles alone, and twice: check-headers.py SOURCE_ROOT BUILD_ROOT [COMPILER]...

Flags come from the build's compile_commands.json. The first compiler that is there is used, and all
with SIM_TESTS=long: .ci/run compiles everything with gcc and clang anyway.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

FOLDERS = ('sim', 'schedules', 'topologies', 'calib', 'plots', 'tests')
# These need headers of CUDA, which are not everywhere.
CUDA = re.compile(r'calib/bench/cuda/(cuda|nccl)-[a-z]+\.h')
WARNINGS = ['-std=c17', '-Wall', '-Wextra', '-Werror', '-fsyntax-only']


def flags_of(root, build):
    """All -I, -isystem and -D_ of the build, each once. Folders of our own are left out: files are
    included by their path from the top level, and sim/base/time.h must not shadow <time.h>."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = json.load(file)
    own = [os.path.realpath(root), os.path.realpath(build)]
    flags = {'-I' + root: None}
    for command in commands:
        for word in shlex.split(command['command']):
            match = re.fullmatch(r'(-I|-isystem)(.+)', word)
            path = match and os.path.realpath(os.path.join(command['directory'], match.group(2)))
            if path and not any(os.path.commonpath([path, o]) == o for o in own):
                flags[match.group(1) + path] = None
            elif word.startswith('-D_'):
                flags[word] = None
    return list(flags)


def headers_of(root):
    for top in FOLDERS:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in sorted(files):
                if name.endswith('.h'):
                    yield os.path.relpath(os.path.join(folder, name), root)


def compile_alone(compiler, flags, root, header):
    """What the compiler says, or ''."""
    # the declaration: a C file must not be empty
    text = f'#include "{header}"\n#include "{header}"\nextern int not_empty;\n'
    done = subprocess.run([compiler, *WARNINGS, *flags, '-x', 'c', '-'], input=text,
                          capture_output=True, text=True, check=False)
    return f'{header}, {compiler}:\n{done.stderr}' if done.returncode else ''


def main(root, build, compilers):
    found = [c for c in compilers if shutil.which(c)]
    if os.environ.get('SIM_TESTS') != 'long':
        found = found[:1]
    flags = flags_of(root, build)
    cuda = any(os.path.exists(os.path.join(re.sub('^-(isystem|I)', '', flag), 'cublasLt.h'))
               for flag in flags)
    jobs = [(c, h) for c in found for h in headers_of(root) if cuda or not CUDA.fullmatch(h)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda job: compile_alone(job[0], flags, root, job[1]), jobs))
    wrong = [text for text in said if text]
    print(''.join(wrong) or f'{len(jobs)} compilations with {", ".join(found)}')
    return 1 if wrong or not jobs else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

#!/usr/bin/env python3
"""Lines are not too wide, and C code stands as clang-format puts it: check-format.py SOURCE_ROOT

Python and Meson files have at most WIDTH characters a line. Versions of clang-format differ in
details; with another one than MAJOR the rest of the test is skipped. To put all C code right:
clang-format -i FILE...
"""
import os
import re
import shutil
import subprocess
import sys

MAJOR = 14
WIDTH = 100
SKIPPED = 77
FOLDERS = ('sim', 'schedules', 'topologies', 'calib', 'plots', 'tests')


def find_program():
    """The program and its major version."""
    for name in (f'clang-format-{MAJOR}', 'clang-format'):
        if shutil.which(name):
            said = subprocess.run([name, '--version'], capture_output=True, text=True, check=True)
            return name, int(re.search(r'version (\d+)', said.stdout).group(1))
    return None, None


def files_of(root, endings):
    """Below the root, without what was built there: folders with a build.ninja."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith('.') and
                            not os.path.exists(os.path.join(folder, f, 'build.ninja')))
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(endings))


def wide_lines(root):
    """"file:line: characters" of each."""
    for path in files_of(root, ('.py', 'meson.build')):
        with open(path, encoding='utf-8') as file:
            for number, line in enumerate(file, 1):
                if len(line.rstrip('\n')) > WIDTH:
                    yield f'{os.path.relpath(path, root)}:{number}: {len(line) - 1} characters'


def main(root):
    wide = list(wide_lines(root))
    if wide:
        print('\n'.join(wide))
        return 1
    program, major = find_program()
    if major != MAJOR:
        print(f'skipped: needs clang-format {MAJOR}, found ' + (str(major) if major else 'none'))
        return SKIPPED
    files = [path for top in FOLDERS for path in files_of(os.path.join(root, top), ('.c', '.h'))]
    said = subprocess.run([program, '--dry-run', '-Werror', *files], capture_output=True, text=True,
                          check=False)
    places = sorted({line.split(': error')[0] for line in said.stderr.splitlines()
                     if ': error' in line})
    print('\n'.join(os.path.relpath(p, root) for p in places) or f'{len(files)} files')
    return 1 if said.returncode else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))

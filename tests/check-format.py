#!/usr/bin/env python3
"""C code stands as clang-format puts it: check-format.py SOURCE_ROOT

Versions of clang-format differ in details; with another one than MAJOR the test is skipped. To put
everything right: clang-format -i FILE...
"""
import os
import re
import shutil
import subprocess
import sys

MAJOR = 14
SKIPPED = 77
FOLDERS = ('sim', 'schedules', 'topologies', 'calib', 'plots', 'tests')


def find_program():
    """The program and its major version."""
    for name in (f'clang-format-{MAJOR}', 'clang-format'):
        if shutil.which(name):
            said = subprocess.run([name, '--version'], capture_output=True, text=True, check=True)
            return name, int(re.search(r'version (\d+)', said.stdout).group(1))
    return None, None


def main(root):
    program, major = find_program()
    if major != MAJOR:
        print(f'skipped: needs clang-format {MAJOR}, found ' + (str(major) if major else 'none'))
        return SKIPPED
    files = [os.path.join(folder, name) for top in FOLDERS
             for folder, _, names in os.walk(os.path.join(root, top))
             for name in sorted(names) if name.endswith(('.c', '.h'))]
    said = subprocess.run([program, '--dry-run', '-Werror', *files], capture_output=True, text=True,
                          check=False)
    places = sorted({line.split(': error')[0] for line in said.stderr.splitlines()
                     if ': error' in line})
    print('\n'.join(os.path.relpath(p, root) for p in places) or f'{len(files)} files')
    return 1 if said.returncode else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))

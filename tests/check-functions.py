#!/usr/bin/env python3
"""How long functions are: check-functions.py SOURCE_ROOT

Prints the distribution and the longest ones, and fails over LONGEST lines. Counted from the line
after the signature to the closing brace, which the house style puts in the first column.
"""
import os
import re
import sys

LONGEST = 80
FOLDERS = ('sim', 'schedules', 'topologies', 'calib', 'plots', 'tests')


def functions_of(path):
    """(lines, name, number of the first line) of each function."""
    with open(path, encoding='utf-8') as file:
        lines = file.read().splitlines()
    start = name = None
    for number, line in enumerate(lines, 1):
        match = re.match(r'[a-z].*?(\w+)\(', line)
        if match:
            name = match.group(1)
        if line == '{':
            start = number
        elif line == '}' and start:
            yield number - start + 1, name, start
            start = None


def main(root):
    found = []
    for top in FOLDERS:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for file in sorted(files):
                path = os.path.join(folder, file)
                if file.endswith(('.c', '.h')):
                    found += [(n, f'{os.path.relpath(path, root)}:{line}: {name}')
                              for n, name, line in functions_of(path)]
    found.sort(reverse=True)
    lengths = [n for n, _ in found]
    print(f'{len(found)} functions: median {lengths[len(found) // 2]} lines, '
          f'nine in ten up to {lengths[len(found) // 10]}')
    for length, place in found[:10]:
        print(f'{length:4} {place}' + (f'  more than {LONGEST}' if length > LONGEST else ''))
    return 1 if not found or lengths[0] > LONGEST else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))

#!/usr/bin/env python3
"""Checks how the tree is laid out: check-folders.py SOURCE_ROOT

- who includes whom, against the table of folders in CONTRIBUTING.md, whose rows are in order: a row
  names only rows above it, folders within a row are in order too, and no row grants access that
  nobody uses
- no meson.build compiles files of another folder
- no file name twice, so that a name alone says which file is meant
- no type of ours in two headers, so that a name alone says which type is meant
- no notes of unfinished work
- every test program and fuzz target is in a meson.build
- the root holds what belongs there and nothing else
"""
import collections
import os
import re
import subprocess
import sys

# These names may be there more than once.
COMMON_NAMES = {
    'meson.build': "meson's name",
    'README.md': 'shown by whoever lists a folder',
    'registry.c': 'one of schedules and one of topologies, always named with the folder',
}
ROOT = {'.ci', '.clang-format', '.editorconfig', '.gitignore', 'CONTRIBUTING.md', 'LICENSE',
        'README.md', 'calib', 'docs', 'facts', 'meson.build', 'meson_options.txt',
        'papers', 'plots', 'pyproject.toml', 'python', 'scenarios', 'schedules',
        'setup.sh', 'sim', 'tests', 'topologies'}
CODE = ('.c', '.h', '.cu')
TEXT = CODE + ('.py', '.sh', '.gp', '.md', '.build')
UNFINISHED = re.compile(r'\b(TO' r'DO|FIX' r'ME|HA' r'CK)\b')


def files_of(root):
    """Paths of all files, relative to the root; hidden and built folders left out."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not n.startswith(('.', 'build', '__pycache__'))
                          and not (folder == root and n == 'out'))
        for name in sorted(files):
            yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def read_table(root):
    """Rows | `folder` | holds | may include |, in order: {folder: (rooms, grants)}. Rooms are the
    folders inside the row, from the bottom up, each with its path; grants is None for
    'everything'."""
    table = {}
    for line in read(root, 'CONTRIBUTING.md').splitlines():
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        match = re.fullmatch(r'`([a-z/]+)`', cells[0])
        if not match or len(cells) != 3:
            continue
        folder = match.group(1)
        rooms = [folder if name == '.' else f'{folder}/{name}'
                 for names in re.findall(r'((?:`[a-z.]+`(?:, )?)+):', cells[1])
                 for name in re.findall(r'`([^`]+)`', names)] or [folder]
        grants = None if cells[2] == 'everything' else re.findall(r'`([^`]+)`', cells[2])
        table[folder] = rooms, grants
    return table


def longest(path, folders):
    """The longest of the folders that holds the file, or None."""
    folder = os.path.dirname(path)
    while folder and folder not in folders:
        folder = os.path.dirname(folder)
    return folder or None


def check_table(root, table):
    """Each row names folders that exist, and grants only rows above it."""
    if not table:
        yield 'CONTRIBUTING.md: no table of folders found'
    above = set()
    for folder, (rooms, grants) in table.items():
        for name in [folder] + rooms + (grants or []):
            if not os.path.isdir(os.path.join(root, name)):
                yield f'CONTRIBUTING.md: the table names {name}, which does not exist'
        for name in grants or []:
            if name not in above:
                yield f'CONTRIBUTING.md: {folder} may include {name}, which no row above has'
        above |= {folder, *rooms}


def check_include(root, path, name, table, used):
    """What is wrong with #include "name" in the file, or None; adds to `used` what was needed."""
    local = os.path.join(os.path.dirname(path), name)
    if os.path.exists(os.path.join(root, local)) and '/' not in name:
        return None if path.startswith('tests/') else 'write the path from the top level'
    if name == 'sim/base/version.h':
        return None  # made by the build
    if not os.path.exists(os.path.join(root, name)):
        return 'there is no such file'
    row, other = longest(path, table), longest(name, table)
    rooms, grants = table[row]
    if grants is None:
        return None
    if row == other:
        mine, its = (rooms.index(r) if r in rooms else None
                     for r in (longest(path, rooms), longest(name, rooms)))
        if mine is None or its is None:
            return f'{row}: a folder that the table lacks'
        return None if its <= mine else f'{rooms[mine]} stands below {rooms[its]}'
    allowed = [g for g in grants if name.startswith(g + '/') and longest(name, table) in
               (g, longest(g + '/x', table))]
    used[row].update(allowed)
    return None if allowed else f'{row} may include {", ".join(grants) or "nothing of ours"}'


def check_includes(root, paths, table):
    """Who includes whom; and a row grants nothing that it does not use."""
    used = collections.defaultdict(set)
    for path in paths:
        if not path.endswith(CODE):
            continue
        if longest(path, table) is None:
            yield f'{path}: not in a folder of the table in CONTRIBUTING.md'
            continue
        for number, line in enumerate(read(root, path).splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            wrong = match and check_include(root, path, match.group(1), table, used)
            if wrong:
                yield f'{path}:{number}: includes "{match.group(1)}": {wrong}'
    for row, (_, grants) in table.items():
        for name in sorted(set(grants or []) - used[row]):
            yield f'CONTRIBUTING.md: {row} may include {name} without using it: take it out'


def check_names(paths):
    places = collections.defaultdict(list)
    for path in paths:
        if '/corpus/' not in path and not path.startswith('facts/'):
            places[os.path.basename(path)].append(path)
    for name, found in sorted(places.items()):
        if len(found) > 1 and name not in COMMON_NAMES:
            yield f'{name}: {len(found)} files have this name: {", ".join(found)}'


def without_comments(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*', ' ', text, flags=re.S)


def types_of(text):
    """('typedef' or 'body', name) of each type that a header makes: a body may stand apart from the
    typedef, where only some files know it."""
    text = without_comments(text)
    for match in re.finditer(r'\b(?:struct|union|enum)\s+(\w+)\s*\{', text):
        yield 'body', match.group(1)
    bare = text
    while re.search(r'\{[^{}]*\}', bare):
        bare = re.sub(r'\{[^{}]*\}', ' ', bare)
    for match in re.finditer(r'\btypedef\b([^;]*);', bare):
        made = match.group(1)
        function = re.match(r'[\w\s*]+\(\s*\*\s*(\w+)\s*\)',
                            made) or re.match(r'[\w\s*]*?(\w+)\s*\(', made)
        yield 'typedef', function.group(1) if function else re.findall(r'\w+',
                                                                       made.split('[')[0])[-1]


def check_types(root, paths):
    places = collections.defaultdict(set)
    for path in paths:
        if path.endswith('.h'):
            for made in types_of(read(root, path)):
                places[made].add(path)
    for (made, name), found in sorted(places.items()):
        if len(found) > 1:
            yield (f'{name}: {len(found)} headers have a {made} of this name: '
                   f'{", ".join(sorted(found))}')


def check_compiled(root, paths):
    """A file that two folders compile belongs to neither. Programs of tests share their helpers."""
    builds = {os.path.dirname(p) for p in paths if os.path.basename(p) == 'meson.build'}
    for folder in sorted(builds):
        path = os.path.join(folder, 'meson.build')
        for number, line in enumerate(read(root, path).splitlines(), 1):
            for name in re.findall(r"'([^']*/[^']*\.(?:c|cu|cpp))'", line.split('#')[0]):
                target = os.path.normpath(os.path.join(folder, name))
                owner = longest(target, builds) or ''
                if owner != folder and not (owner == 'tests' and folder.startswith('tests/')):
                    yield f'{path}:{number}: compiles {target}: link the library of {owner}'


def check_unfinished(root, paths):
    for path in paths:
        if not path.endswith(TEXT):
            continue
        for number, line in enumerate(read(root, path).splitlines(), 1):
            match = UNFINISHED.search(line)
            if match:
                yield f'{path}:{number}: says {match.group()}; finish it, or write down what is so'


def check_wired(root, paths):
    """A test that nothing builds passes for ever."""
    builds = ''.join(read(root, p) for p in paths
                     if p.startswith('tests/') and p.endswith('meson.build'))
    words = set(re.findall(r"[\w-]+", builds))
    for path in paths:
        match = re.fullmatch(r'tests/(?:\w+/)?((?:test|fuzz|bench|check)-([\w-]+))\.(?:c|py)', path)
        if match and not words & {match.group(1), match.group(2)}:
            yield f'{path}: no meson.build in tests names it'


def check_root(root):
    """Stray files that were committed; without git there is nothing to ask."""
    try:
        listed = subprocess.run(['git', '-C', root, 'ls-files'], check=True, capture_output=True,
                                text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return
    for name in sorted({line.split('/')[0] for line in listed.splitlines()} - ROOT):
        yield f'{name}: does not belong at the root (tests/check-folders.py lists what does)'


def main(root):
    paths = list(files_of(root))
    table = read_table(root)
    wrong = [*check_table(root, table), *check_includes(root, paths, table), *check_names(paths),
             *check_types(root, paths), *check_compiled(root, paths),
             *check_unfinished(root, paths), *check_wired(root, paths), *check_root(root)]
    print('\n'.join(wrong) or f'{len(paths)} files, {len(table)} rows: all is in its place')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))

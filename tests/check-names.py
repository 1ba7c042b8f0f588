#!/usr/bin/env python3
"""No C source compares a name of the world: check-names.py SOURCE_ROOT

Devices, runtimes, machines, frameworks, releases, data sets and models are described in facts/.
What a prediction needs to know about them is stated there; no line of C may ask how one is called.
A literal of the sources is reported if it is such a name, one of its aliases or their beginning,
and is not the definition of a name (".name = ...") that a user of the program can write.
"""
import glob
import json
import os
import re
import sys

FOLDERS = ('sim', 'topologies', 'schedules', 'plots', 'calib')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# (file, literal): what it is instead of a name of the world
EXCEPTIONS = {}


def names_of(root):
    """{name in lower case: where it is from}."""
    names = {}
    for path in sorted(glob.glob(os.path.join(root, 'facts/**/*.json'), recursive=True)):
        kind = os.path.relpath(os.path.dirname(path), os.path.join(root, 'facts'))
        with open(path, encoding='utf-8') as file:
            document = json.load(file)
        found = []
        if kind == 'points':
            found.append(document['dataset'])
            for point in [document.get('common', {})] + document['points']:
                found += [point.get('framework'), point.get('model', {}).get('name'),
                          point.get('hardware', {}).get('gpu')]
        elif kind not in ('.', 'words') and isinstance(document, dict):
            found += [os.path.basename(path)[:-len('.json')], document.get('name'),
                      *(a if isinstance(a, str) else a.get('words', '')
                        for a in document.get('aliases', []))]
        for name in found:
            if name:
                names.setdefault(name.lower(), os.path.relpath(path, root))
    return names


def literals(text):
    """(line, literal) of C, without comments and what #include names."""
    text = re.sub(r'/\*.*?\*/', lambda m: re.sub(r'[^\n]', ' ', m.group()), text, flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith('#include') or re.search(r'\.name = \(?"', line):
            continue
        for match in LITERAL.finditer(line):
            yield number, match.group(1)


def main():
    root = sys.argv[1]
    names = names_of(root)
    found, used = [], set()
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(root, folder, '**/*.[ch]'), recursive=True)):
            with open(path, encoding='utf-8') as file:
                text = file.read()
            where = os.path.relpath(path, root)
            for number, literal in literals(text):
                word = literal.strip(' (').lower()
                if len(word) < 3 or word not in names and not (
                        len(word) > 6 and any(name.startswith(word) for name in names)):
                    continue
                if (where, literal) in EXCEPTIONS:
                    used.add((where, literal))
                    continue
                found.append(f'{where}:{number}: "{literal}" ({names.get(word, "beginning")})')
    found += [f'{where}: "{literal}" is not there: take it out of EXCEPTIONS'
              for where, literal in EXCEPTIONS.keys() - used]
    print('\n'.join(found) or f'{len(names)} names, none in C')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())

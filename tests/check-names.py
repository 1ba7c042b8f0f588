#!/usr/bin/env python3
"""No C source asks how something of the world is called: check-names.py SOURCE_ROOT

Devices, runtimes, machines, frameworks, releases, data sets and models are described in facts/, and
predictions read facts from there. The check reports literals that are, or begin with, such a name
or alias, if the code compares them or they begin a row of a table. Figures of papers (papers)
name the models and machines that a paper is about.
"""
import glob
import json
import os
import re
import sys

FOLDERS = ('sim', 'topologies', 'schedules', 'plots', 'calib')
PAPERS = 'papers/'
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMPARES = re.compile(r'(?:str\w*cmp|strn?str|strcasestr|\bis|\bis_\w+|starts\w*|begins\w*|'
                      r'contains|contains|\bhas_\w+|says|_is|equals?)\([^;{}]*$')
# (file, literal): its meaning
EXCEPTIONS = {
    ('sim/run/scenario/ignored-keys.c', 'ideal'): 'a topology that C builds',
    ('sim/run/osdp-study.c', 'FSDP'): 'a row of the OSDP paper',
}


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


def asked_names(text):
    """(line, literal) of those that are compared or begin a row, without comments."""
    text = re.sub(r'/\*.*?\*/', lambda m: re.sub(r'[^\n]', ' ', m.group()), text, flags=re.S)
    for match in LITERAL.finditer(text):
        before = text[max(0, match.start() - 200):match.start()]
        if before.rstrip().endswith('{') or COMPARES.search(before):
            yield text.count('\n', 0, match.start()) + 1, match.group(1)


def name_in(literal, names):
    """The name that a literal is, or that it begins with."""
    word = literal.strip(' (').lower()
    if word in names:
        return word
    return next((name for name in names if len(name) > 3 and word.startswith(name)
                 and word[len(name):][:1] in tuple(' \t\n(-')), None)


def main():
    root = sys.argv[1]
    names = names_of(root)
    found, used = [], set()
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(root, folder, '**/*.[ch]'), recursive=True)):
            where = os.path.relpath(path, root)
            if where.startswith(PAPERS):
                continue
            with open(path, encoding='utf-8') as file:
                text = file.read()
            for number, literal in asked_names(text):
                name = name_in(literal, names)
                if name and (where, literal) in EXCEPTIONS:
                    used.add((where, literal))
                elif name:
                    found.append(f'{where}:{number}: "{literal}" ({names[name]})')
    found += [f'{where}: "{literal}" is not there: take it out of EXCEPTIONS'
              for where, literal in EXCEPTIONS.keys() - used]
    print('\n'.join(found) or f'{len(names)} names, none in C')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())

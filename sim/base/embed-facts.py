#!/usr/bin/env python3
"""Makes a table of C (facts.h) from the JSON files below a folder.

    embed-facts.py FACTS OUTPUT.c DEPFILE

The depfile names the folders too: a file that is added or removed is found by the next build.
"""
import json
import os
import sys


def main():
    root, output, depfile = sys.argv[1:]
    rows, needed = [], []
    for folder, inner, names in sorted(os.walk(root)):
        inner.sort()
        needed.append(folder)
        for name in sorted(name[:-len('.json')] for name in names if name.endswith('.json')):
            path = os.path.join(folder, name + '.json')
            needed.append(path)
            with open(path, encoding='utf-8') as file:
                lines = file.read().splitlines(keepends=True)
            json.loads(''.join(lines))
            root_value = json.loads(''.join(lines))
            described = root_value if isinstance(root_value, dict) else {}
            names_of = [json.dumps('\n'.join(described.get(key, [])), ensure_ascii=False)
                        for key in ('aliases', 'except')]
            kind = os.path.relpath(folder, root).replace(os.sep, '/')
            text = '\n     '.join(json.dumps(line, ensure_ascii=False).replace('?', '\\?')
                                  for line in lines)
            rows.append(f'    {{{json.dumps("" if kind == "." else kind)}, '
                        f'{json.dumps(name)}, {", ".join(names_of)},\n     {text}}},\n')
    with open(output, 'w', encoding='utf-8') as file:
        file.write('/* Written by embed-facts.py. */\n#include "sim/base/facts.h"\n\n'
                   'const cs_facts_file cs_facts_files[] = {\n' + ''.join(rows)
                   + '    {NULL, NULL, NULL, NULL, NULL},\n};\n')
    with open(depfile, 'w', encoding='utf-8') as file:
        file.write(output.replace(' ', '\\ ') + ': '
                   + ' '.join(name.replace(' ', '\\ ') for name in needed) + '\n')


main()

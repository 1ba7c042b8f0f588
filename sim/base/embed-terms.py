#!/usr/bin/env python3
"""Makes a table of C (terms.h) from facts/terms.json.

    embed-terms.py TERMS.json OUTPUT.c
"""
import json
import sys


def text(value):
    return json.dumps(value)


def words(values):
    return '(const char *const[]){' + ', '.join([text(value) for value in values] + ['NULL']) + '}'


def main():
    source, output = sys.argv[1:]
    with open(source, encoding='utf-8') as file:
        terms = json.load(file)['terms']
    rows = [f'    {{{words(term["words"])},\n     {words(term["means"])},\n     '
            f'{text(term["text"])}}},\n' for term in terms]
    with open(output, 'w', encoding='utf-8') as file:
        file.write('/* Written by embed-terms.py from facts/terms.json. */\n'
                   '#include "sim/base/terms.h"\n\n'
                   'const cs_term cs_terms[] = {\n' + ''.join(rows)
                   + '    {NULL, NULL, NULL},\n};\n')


main()

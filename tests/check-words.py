#!/usr/bin/env python3
"""Checks the tables that make scenarios of run descriptions: check-words.py SOURCE_ROOT SIM

Rows of facts/words and of the lists "assumes" in facts/runtimes: members, forms of conditions, and
keys. A key that is misspelt would be one that is never there: so each key of a description must be
in `sim list points`, and each key below /is that is read must be written somewhere.
"""
import glob
import json
import os
import re
import subprocess
import sys

CONDITION = re.compile(r'!?(/[^!=<>%\s]+)(?:(?:!=|[<>]=?|=)[^\s=<>]+|%(?:\d+:)?(/\S+))?$')
MEMBERS = {'key', 'value', 'with', 'needs', 'missing', 'assumed', 'note', 'source', 'fitted',
           'word', 'operators', 'discards'}
SECTIONS = ('model', 'hardware', 'parallel', 'batch', 'options')
# objects with keys of other programs, of devices, or of the scenario
OPEN = re.compile(r'/(args|env|device|scenario|model/mla|is/words)(/|$)')


def tables(root):
    """(file, list, rows, whether the file has a source for all of them)"""
    for path in sorted(glob.glob(os.path.join(root, 'facts', 'words', '*.json'))):
        with open(path, encoding='utf-8') as file:
            document = json.load(file)
        for name, rows in document.items():
            if isinstance(rows, list):
                yield os.path.relpath(path, root), name, rows, 'source' in document
    for path in sorted(glob.glob(os.path.join(root, 'facts', 'runtimes', '*.json'))):
        with open(path, encoding='utf-8') as file:
            document = json.load(file)
        yield os.path.relpath(path, root), 'assumes', document.get('assumes', []), False


def keys_of_descriptions(sim):
    found = set(SECTIONS)
    for entry in json.loads(subprocess.run([sim, 'list', 'points', '--json'], check=True,
                                           capture_output=True, text=True).stdout)['points']:
        section, _, part = entry['name'].partition('.')
        if section == 'run':
            found |= {f'{part}/{field["name"]}'.lstrip('/') for field in entry['parameters']}
    return found


def keys_made_in_c(root):
    """Keys below /is that the program itself writes."""
    made = set()
    for path in glob.glob(os.path.join(root, 'sim', 'run', 'recipe', '*.c')):
        with open(path, encoding='utf-8') as file:
            made |= set(re.findall(r'"(/is/\w+)"', file.read()))
    for path in glob.glob(os.path.join(root, 'facts', 'runtimes', '*.json')):
        with open(path, encoding='utf-8') as file:
            made |= {'/is/' + key for key in json.load(file).get('is', {})}
    # sizes of latent attention
    return made | {f'/is/{size}' for size in ('q_lora_rank', 'kv_lora_rank', 'qk_head_dim',
                                              'qk_pos_emb_head_dim', 'v_head_dim')}


def check_row(row, has_source):
    """What is wrong with the row itself."""
    for member in row.keys() - MEMBERS:
        yield f'unknown member {member}'
    for member in ('with', 'needs'):
        for condition in row.get(member, '').split():
            if not CONDITION.match(condition):
                yield f'{member}: {condition} is no condition'
    if 'key' in row and 'value' not in row:
        yield 'no value'
    value = row.get('value')
    is_key = isinstance(value, str) and value.startswith('/')
    derived = is_key or row.get('key', '').startswith('/is')
    if not has_source and not derived and len(row.get('source', '')) < 8:
        yield 'no source'


def keys_read(row):
    for member in ('with', 'needs'):
        for condition in row.get(member, '').split():
            match = CONDITION.match(condition)
            yield from (key for key in match.groups() if key) if match else ()
    value = row.get('value')
    if isinstance(value, str) and value.startswith('/'):
        yield value
    for member in ('note', 'missing', 'assumed'):
        yield from re.findall(r'\{(/[^}]+)\}', row.get(member, ''))


def main(root, sim):
    known, made = keys_of_descriptions(sim), keys_made_in_c(root)
    rows = []
    for path, name, table, has_source in tables(root):
        words = set()  # the first row of a word has its source
        for i, row in enumerate(table):
            rows.append((f'{path}: {name}[{i}]', row, has_source or row.get('word') in words))
            words |= {row['word']} if 'word' in row else set()
    made |= {row['key'] for _, row, _ in rows if row.get('key', '').startswith('/is/')}
    wrong = []
    for place, row, has_source in rows:
        wrong += [f'{place}: {what}' for what in check_row(row, has_source)]
        for key in {*keys_read(row), *([row['key']] if 'key' in row else [])}:
            if OPEN.match(key) or key in made or key.lstrip('/') in known:
                continue
            wrong.append(f'{place}: no description has the key {key}, and no rule makes it')
    print('\n'.join(wrong) or f'{len(rows)} rows: all is well')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

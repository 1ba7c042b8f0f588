#!/usr/bin/env python3
"""Small faults that unit tests should notice: mutants.py ROOT [-n N] [--seed S] [--seconds S]
[--files FILE ...] [--tests NAME ...] [--folder FOLDER] [--slowest S]

Draws N places in C files. There an operator becomes another one, operands are swapped, a number is
off by one, or a term is dropped. All faults are compiled into one build, in a copy of the tree, and
the environment variable CS_MUTANT chooses one, so a fault needs no compilation. The unit tests run
once without a fault, which shows the faults that each test reaches. Then each fault runs the tests
that reach it, the fastest first, until one fails. --seconds ends the campaign early, and says
how many faults were tried. With --folder, the copy and its build stay for the next time.

Some faults change nothing: a comparison of two values that are never equal, a size that is only
reserved. A person has to read the faults that are missed.
"""
import argparse
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

CORE = ('sim/core/engine/*.c', 'sim/core/lower/*.c', 'sim/model/allocator/*.c',
        'sim/model/split*.c', 'sim/model/net-local.c', 'sim/run/player.c', 'sim/run/allocations.c',
        'sim/run/resident-tensors.c', 'schedules/states.c', 'schedules/mesh.c',
        'schedules/stage-buffers.c', 'schedules/program*.c')
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
                   r'|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*'
                   r'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*'
                   r'|->|\+\+|--|<<=|>>=|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||\S', re.S | re.M)
OTHER = {'+': '-', '-': '+', '*': '/', '/': '*', '%': '/', '<': '<=', '<=': '<', '>': '>=',
         '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&', '|': '&', '&': '|'}
ASSIGN = ('=', '+=', '-=', '*=', '/=', '|=', '&=')
OPEN, CLOSE = '([{', ')]}'
# Before the code of a file. A test writes which faults it reaches while none is chosen.
PROLOGUE = '''#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static inline int cs_mutant(int n)
{
    static int chosen = -2;
    static unsigned char seen[65536];
    if (chosen == -2)
        chosen = getenv("CS_MUTANT") ? atoi(getenv("CS_MUTANT")) : -1;
    if (chosen == -1 && !seen[n] && getenv("CS_MUTANTS_REACHED")) {
        char text[16];
        const int file = open(getenv("CS_MUTANTS_REACHED"), O_WRONLY | O_APPEND | O_CREAT, 0600);
        seen[n] = 1;
        if (write(file, text, (size_t)snprintf(text, sizeof(text), "%d\\n", n)) < 0)
            abort();
        close(file);
    }
    return n == chosen;
}
#line 1
'''


def tokens_of(text):
    """(start, end, token) without comments and lines of the preprocessor."""
    return [(m.start(), m.end(), m.group()) for m in TOKEN.finditer(text)
            if not m.group().lstrip().startswith(('/*', '//', '#'))]


def closing(tokens, i):
    """The index of the bracket that closes the one at i."""
    depth = 0
    for k in range(i, len(tokens)):
        depth += (tokens[k][2] in OPEN) - (tokens[k][2] in CLOSE)
        if depth == 0:
            return k
    return len(tokens) - 1


def end_of(tokens, i, ends):
    """The index of the first token of `ends`, or closing bracket, at the depth of token i."""
    depth = 0
    for k in range(i, len(tokens)):
        word = tokens[k][2]
        if depth == 0 and (word in ends or word in CLOSE):
            return k
        depth += (word in OPEN) - (word in CLOSE)
    return len(tokens) - 1


def bodies(tokens):
    """(first, last) token of each function's body."""
    i = 0
    while i < len(tokens):
        if tokens[i][2] == '{':
            end = closing(tokens, i)
            if i > 0 and tokens[i - 1][2] == ')':
                yield i + 1, end
            i = end
        i += 1


def regions(tokens):
    """(first, end, drops) of expressions in functions: conditions, results, assigned values;
    `drops`: the value is added to something."""
    for first, last in bodies(tokens):
        i = first
        while i < last:
            word = tokens[i][2]
            starts = tokens[i - 1][2] in (';', '{', '}')
            if starts and word in ('static', 'enum', 'struct', 'typedef'):
                i = end_of(tokens, i, (';',))
            elif word == 'return' and tokens[i + 1][2] != ';':
                yield i + 1, end_of(tokens, i + 1, (';',)), False
            elif word in ('if', 'while') and tokens[i + 1][2] == '(':
                yield i + 2, closing(tokens, i + 1), False
            elif word == 'for':
                middle = end_of(tokens, i + 2, (';',)) + 1
                yield middle, end_of(tokens, middle, (';',)), False
            elif word in ASSIGN and tokens[i + 1][2] != '{':
                yield i + 1, end_of(tokens, i + 1, (';', ',')), word in ('+=', '-=')
            i += 1


def operand_after(tokens, i, end):
    """The token after a name or number, its members, indices and arguments; i if there is none."""
    if i >= end or not re.match(r'\w', tokens[i][2]) or tokens[i][2] == 'sizeof':
        return i
    k = i + 1
    while k < end and tokens[k][2] in ('(', '[', '.', '->'):
        k = closing(tokens, k) + 1 if tokens[k][2] in OPEN else k + 2
    return k


def faults_in(text, tokens, first, end, drops):
    """(what, expression with a fault) of a region."""
    start, stop = tokens[first][0], tokens[end - 1][1]

    def put(a, b, by):
        return text[start:a] + by + text[b:stop]

    if drops:
        yield 'dropped', '0'
    for i in range(first, end):
        a, b, word = tokens[i]
        before = tokens[i - 1][2] if i > first else ''
        after = tokens[i + 1][2] if i + 1 < end else ''
        binary = re.match(r'[\w)\]]', before) and before != 'sizeof' and after != ')'
        if word in OTHER and binary and not re.search(r'\b(const|struct|_t|cs_\w+) *$',
                                                      text[max(start, a - 24):a]):
            yield f'{word} to {OTHER[word]}', put(a, b, OTHER[word])
        if word in ('+', '-') and binary and operand_after(tokens, i + 1, end) > i + 1:
            yield 'dropped', put(a, tokens[operand_after(tokens, i + 1, end) - 1][1], '')
        if word in ('-', '/') and binary and re.match(r'[A-Za-z_]', before) and \
                (i - 1 == first or tokens[i - 2][2] not in ('.', '->')):
            last = operand_after(tokens, i + 1, end)
            if last > i + 1:
                name = text[tokens[i + 1][0]:tokens[last - 1][1]]
                yield 'swapped', put(tokens[i - 1][0], tokens[last - 1][1],
                                     f'{name} {word} {before}')
        if re.fullmatch(r'\d+', word) and before not in ('.', '->'):
            yield f'{word} to {int(word) + 1}', put(a, b, str(int(word) + 1))
        if word == '?':
            colon = end_of(tokens, i + 1, (':',))
            if '?' not in [t[2] for t in tokens[i + 1:end]] and colon < end:
                one, two = text[b:tokens[colon][0]].strip(), text[tokens[colon][1]:stop].strip()
                if not any(t[2] in CLOSE for t in tokens[colon + 1:end]):
                    yield 'swapped', put(b, stop, f' {two} : {one}')


def places(path, text):
    """All faults of a file: {path, line, what, span, is, was}."""
    tokens = tokens_of(text)
    for first, end, drops in regions(tokens):
        if end <= first:
            continue
        span = tokens[first][0], tokens[end - 1][1]
        was = text[span[0]:span[1]]
        if re.search(r'/\*|//|"', was):
            continue
        for what, made in faults_in(text, tokens, first, end, drops):
            yield {'path': path, 'line': text.count('\n', 0, span[0]) + 1, 'what': what,
                   'span': span, 'is': made, 'was': was}


def apply(text, faults):
    """The file with its faults; CS_MUTANT turns one on. No region holds another one."""
    by_span = {}
    for fault in faults:
        by_span.setdefault(fault['span'], []).append(fault)
    for (start, stop), here in sorted(by_span.items(), reverse=True):
        chosen = ''.join(f'cs_mutant({f["number"]}) ? ({f["is"]}) : ' for f in here)
        text = f'{text[:start]}({chosen}({text[start:stop]})){text[stop:]}'
    return PROLOGUE + text


def without_inner(faults):
    """Faults whose regions do not hold each other."""
    kept = []
    for fault in faults:
        a, b = fault['span']
        if all(o['path'] != fault['path'] or o['span'] == fault['span'] or o['span'][1] <= a or
               b <= o['span'][0] for o in kept):
            kept.append(fault)
    return kept


def draw(texts, n, seed):
    found = [f for path, text in texts.items() for f in places(path, text)]
    random.Random(seed).shuffle(found)
    chosen = sorted(without_inner(found)[:n], key=lambda f: (f['path'], f['span']))
    for number, fault in enumerate(chosen):
        fault['number'] = number
    return chosen


def copy_tree(root, folder):
    names = subprocess.run(['git', '-C', root, 'ls-files', '-co', '--exclude-standard'], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    for name in names:
        target = os.path.join(folder, name)
        if os.path.isfile(os.path.join(root, name)):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(os.path.join(root, name), 'rb') as file:
                new = file.read()
            if not os.path.exists(target) or open(target, 'rb').read() != new:
                shutil.copy2(os.path.join(root, name), target)


def build(texts, folder, faults, programs):
    """Builds the tests with all faults; returns those that compile."""
    made = os.path.join(folder, 'build')
    while True:
        for path in {f['path'] for f in faults}:
            text = apply(texts[path], [f for f in faults if f['path'] == path])
            with open(os.path.join(folder, path), 'w', encoding='utf-8') as file:
                file.write(text)
        done = subprocess.run(['ninja', '-k', '0', '-C', made, *programs], capture_output=True,
                              text=True, check=False)
        if done.returncode == 0:
            return faults
        lines = {(os.path.basename(p), int(n)) for p, n in
                 re.findall(r'^([^\s:]+\.c):(\d+):\d+: error', done.stdout, re.M)}
        wrong = [f for f in faults if any(
            os.path.basename(f['path']) == p and f['line'] <= n <= f['line'] + f['was'].count('\n')
            for p, n in lines)]
        if not wrong:
            sys.exit(done.stdout[-4000:])
        print(f'{len(wrong)} faults do not compile', flush=True)
        faults = [f for f in faults if f not in wrong]


def run(test, folder, limit, **more):
    """(status, seconds) of a test."""
    environment = {**os.environ, **test['env'], **{k: str(v) for k, v in more.items()}}
    before = time.monotonic()
    try:
        done = subprocess.run(test['cmd'], cwd=os.path.join(folder, 'build'), env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit,
                              check=False)
    except subprocess.TimeoutExpired:
        return 'timeout', time.monotonic() - before
    return done.returncode, time.monotonic() - before


def baseline(tests, folder):
    """Runs each test without a fault: its time, and the faults that it reaches."""
    reached = os.path.join(folder, 'reached')
    for test in tests:
        if os.path.exists(reached):
            os.remove(reached)
        status, test['seconds'] = run(test, folder, 3600, CS_MUTANTS_REACHED=reached)
        if status != 0:
            sys.exit(f'{test["name"]} fails without a fault')
        test['reached'] = set()
        if os.path.exists(reached):
            with open(reached, encoding='ascii') as file:
                test['reached'] = {int(line) for line in file}
        print(f'{test["name"]:28} {test["seconds"]:6.1f} s, reaches {len(test["reached"])}',
              flush=True)


def hunt(faults, tests, folder, end):
    """Tries the faults; returns how many were tried, and the missed ones."""
    tried, missed = 0, []
    for fault in random.Random(1).sample(faults, len(faults)):
        if time.monotonic() > end:
            break
        tried += 1
        by = None
        able = sorted((t for t in tests if fault['number'] in t['reached']),
                      key=lambda t: t['seconds'])
        for test in able:
            if run(test, folder, 20 + 10 * test['seconds'], CS_MUTANT=fault['number'])[0] != 0:
                by = test['name']
                break
        place = f'{fault["path"]}:{fault["line"]}: {fault["what"]}: ' \
                f'{" ".join(fault["was"].split())} -> {" ".join(fault["is"].split())}'
        found = f'caught by {by}' if by else f'MISSED by {len(able)} tests'
        print(f'{fault["number"]} {found}: {place}', flush=True)
        if not by:
            missed.append((len(able), place))
    return tried, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('root')
    parser.add_argument('-n', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=float('inf'))
    parser.add_argument('--files', nargs='+', help='instead of the core')
    parser.add_argument('--tests', nargs='+', help='instead of the whole suite of unit tests')
    parser.add_argument('--folder')
    parser.add_argument('--slowest', type=float, default=float('inf'), metavar='S',
                        help='leave out tests that take longer without a fault')
    parser.add_argument('--list', action='store_true', help='only print the faults')
    asked = parser.parse_args()
    end = time.monotonic() + asked.seconds
    root = os.path.abspath(asked.root)
    files = asked.files or sorted(os.path.relpath(p, root) for pattern in CORE
                                  for p in glob.glob(os.path.join(root, pattern)))
    texts = {}
    for path in files:
        with open(os.path.join(root, path), encoding='utf-8') as file:
            texts[path] = file.read()
    faults = draw(texts, asked.n, asked.seed)
    if asked.list:
        for f in faults:
            print(f'{f["path"]}:{f["line"]}: {f["what"]}: {f["was"]} -> {f["is"]}')
        return 0
    folder = os.path.abspath(asked.folder or tempfile.mkdtemp(prefix='sim-mutants-'))
    copy_tree(root, folder)
    made = os.path.join(folder, 'build')
    if not os.path.exists(os.path.join(made, 'build.ninja')):
        subprocess.run(['meson', 'setup', made, folder, '-Dtests=enabled'], check=True,
                       stdout=subprocess.DEVNULL)
    listed = json.loads(subprocess.run(['meson', 'introspect', '--tests', made], check=True,
                                       capture_output=True, text=True).stdout)
    tests = [t for t in listed if any(s.endswith('unit') for s in t['suite']) and
             (not asked.tests or t['name'] in asked.tests) and
             os.path.basename(t['cmd'][0]).startswith('test-')]
    programs = [os.path.relpath(t['cmd'][0], made) for t in tests]
    faults = build(texts, folder, faults, programs)
    baseline(tests, folder)
    tests = [t for t in tests if t['seconds'] <= asked.slowest]
    tried, missed = hunt(faults, tests, folder, end)
    print(f'{tried} of {len(faults)} faults tried in {len({f["path"] for f in faults})} files; '
          f'{len(missed)} missed, {sum(n == 0 for n, _ in missed)} of them by no test reached')
    if not asked.folder:
        shutil.rmtree(folder)
    return 0


if __name__ == '__main__':
    sys.exit(main())

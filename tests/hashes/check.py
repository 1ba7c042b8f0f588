#!/usr/bin/env python3
"""Holds results against known hashes: check.py SIM ROOT [--update] [BENCHMARK ...]

hashes.txt has a row for each shipped scenario, for each drawn one (drawn.jsonl, which draw.py made)
and for each case of the benchmarks. A row of a scenario has the hash of its results and one of its
closed forms: figure, device, value, and whether it applies. A change that is meant to change no
answer leaves all rows as they are; one that mends a wrong answer changes its rows by --update, and
its commit says why.

With BENCHMARK, a command and its arguments, runs that one and compares the hashes that it prints,
in the last column of a line; else runs all scenarios.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = os.path.join(HERE, 'hashes.txt')
HEAD = ('# What is run, the hash of its results, and of scenarios one of their closed forms.\n'
        '# tests/hashes/check.py compares these, and writes them with --update.\n')
FORM_KEYS = ('figure', 'device', 'closed_form', 'applies')


def read_rows():
    """{what: hashes}, in order."""
    try:
        with open(ROWS, encoding='utf-8') as file:
            lines = [line.split() for line in file if not line.startswith('#')]
    except FileNotFoundError:
        lines = []
    return {line[0]: ' '.join(line[1:]) for line in lines}


def write_rows(rows):
    with open(ROWS, 'w', encoding='utf-8') as file:
        file.write(HEAD + ''.join(f'{what} {hashes}\n' for what, hashes in rows.items()))


def shipped_scenarios(root):
    """Files below scenarios/ that have a schedule, by their path there."""
    folder = os.path.join(root, 'scenarios')
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(at, name)
            if name.endswith('.json'):
                with open(path, encoding='utf-8') as file:
                    if 'schedule' in json.load(file):
                        yield os.path.relpath(path, folder), path


def drawn_scenarios(folder):
    """The lines of drawn.jsonl, each in a file of its own."""
    with open(os.path.join(HERE, 'drawn.jsonl'), encoding='utf-8') as file:
        for i, line in enumerate(file):
            path = os.path.join(folder, f'drawn-{i:03}.json')
            with open(path, 'w', encoding='utf-8') as out:
                out.write(line)
            yield f'drawn-{i:03}-{json.loads(line)["schedule"]["kind"]}', path


def hashes_of(sim, path):
    done = subprocess.run([sim, 'run', '--no-output', '--json', path], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        return f'exit-{done.returncode}', done.stderr.strip()
    found = json.loads(done.stdout)
    forms = [[form.get(key) for key in FORM_KEYS] for form in found['closed_forms']]
    digest = hashlib.sha256(json.dumps(forms).encode()).hexdigest()[:16]
    return f"{found['hash']} {digest}", ''


def scenario_rows(sim, root):
    """{what: (hashes, message)}"""
    with tempfile.TemporaryDirectory(prefix='sim-hashes-') as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        cases = [*shipped_scenarios(root), *drawn_scenarios(folder)]
        found = pool.map(lambda case: hashes_of(sim, case[1]), cases)
        return {what: one for (what, _), one in zip(cases, found)}


def benchmark_rows(command):
    """The same of the lines of a benchmark that end with a hash: "bench-engine-8x64/0"."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end='')
    if done.returncode != 0:
        sys.exit(f'{command[0]}: exit {done.returncode}')
    name = '-'.join([os.path.basename(command[0]), *command[1:]])
    hashes = re.findall(r'\b([0-9a-f]{16})$', done.stdout, re.MULTILINE)
    return {f'{name}/{i}': (found, '') for i, found in enumerate(hashes)}


def main():
    words = [word for word in sys.argv[1:] if word != '--update']
    sim, root, command = os.path.abspath(words[0]), words[1], words[2:]
    known = read_rows()
    found = benchmark_rows(command) if command else scenario_rows(sim, root)
    start = list(found)[0].split('/')[0] + '/' if command else None
    rest = {what: hashes for what, hashes in known.items()
            if not (what.startswith(start) if command else not what.startswith('bench-'))}
    if '--update' in sys.argv:
        rows = {what: hashes for what, (hashes, _) in found.items()}
        write_rows({**rest, **rows} if command else {**rows, **rest})
        return
    found.update({what: ('nothing', '') for what in known if what not in rest | found})
    wrong = 0
    for what, (hashes, message) in found.items():
        if known.get(what) != hashes:
            wrong += 1
            print(f'{what}: expected {known.get(what, "no such row")}, got {hashes} {message}')
    print(f'{len(found) - wrong} of {len(found)} as in {os.path.relpath(ROWS, root)}')
    sys.exit(wrong > 0 or not found)


if __name__ == '__main__':
    main()

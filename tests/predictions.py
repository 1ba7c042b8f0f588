#!/usr/bin/env python3
"""Predictions of measured runs do not change unnoticed.

predictions.py SIM TABLE [--update] [POINTS.json ...]

TABLE has a row for each run that comes with the program, or of the files named: a hash of the
scenario that the rules make of it, the predicted step time and memory, and the verdict. A commit
that changes rows says why. test-truth.py compares the same.
"""
import csv
import hashlib
import io
import json
import os
import subprocess
import sys

FIELDS = ['id', 'scenario', 'state', 'step_time_s', 'allocated', 'least_allocated', 'reserved',
          'device', 'out_of_memory']


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f'{" ".join(arguments[1:4])}: status {done.returncode}\n{done.stderr}')
    return done.stdout


def files_of(name):
    """The file of a run that comes with the program: without one, all of them are read."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'facts', 'points',
                        name.split('/')[0] + '.json')
    return [path] if os.path.exists(path) else []


def scenario_hash(sim, name, files):
    """Of the scenario without its name; "-": the run cannot be expressed."""
    done = subprocess.run([sim, 'validate', '--scenario', name, *(files or files_of(name))],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return '-'
    scenario = json.loads(done.stdout)
    del scenario['name']
    text = json.dumps(scenario, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def rows(sim, points, files=()):
    for point in points:
        yield {'id': point['id'], 'scenario': scenario_hash(sim, point['id'], files),
               'state': point['state'], 'step_time_s': point.get('predicted_step_time_s'),
               'allocated': point.get('predicted_allocated_bytes'),
               'least_allocated': point.get('predicted_least_allocated_bytes'),
               'reserved': point.get('predicted_reserved_bytes'),
               'device': point.get('predicted_device_memory_bytes'),
               'out_of_memory': point.get('out_of_memory')}


def as_table(made):
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator='\n')
    writer.writeheader()
    writer.writerows(made)
    return out.getvalue()


def differences(expected, found):
    """Between two tables, a line each."""
    old = {row['id']: row for row in csv.DictReader(io.StringIO(expected))}
    new = {row['id']: row for row in csv.DictReader(io.StringIO(found))}
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            yield f'{name}: {"new" if before is None else "gone"}'
            continue
        for field in FIELDS:
            if before[field] != after[field]:
                yield f'{name}: {field}: {before[field]} -> {after[field]}'


def compare(sim, points, table, files=()):
    """What differs between TABLE and the predictions of `sim validate --json`."""
    with open(table, encoding='utf-8') as file:
        return list(differences(file.read(), as_table(rows(sim, points, files))))


def main():
    sim, table, *rest = sys.argv[1:]
    sim = os.path.abspath(sim)
    files = [each for each in rest if each != '--update']
    points = json.loads(run(sim, 'validate', '--json', *files))['points']
    if '--update' in rest:
        with open(table, 'w', encoding='utf-8') as file:
            file.write(as_table(rows(sim, points, files)))
        return 0
    changed = compare(sim, points, table, files)
    print(*(changed or [f'{len(points)} predictions as they were']), sep='\n')
    if changed:
        print('If a fact was wrong, run this again with --update and say in the commit what was.')
    return bool(changed)


if __name__ == '__main__':
    sys.exit(main())

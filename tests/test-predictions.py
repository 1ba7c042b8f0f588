#!/usr/bin/env python3
"""Predictions of measured runs do not change unnoticed.

test-predictions.py SIM TABLE [--update] [POINTS.json ...]

TABLE has a row for each run that comes with the program, or of the files named: a hash of the
scenario that the rules make of it, the predicted step time and memory, and the verdict. A commit
that changes rows says why.
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


def scenario_hash(sim, name, files):
    """Of the scenario without its name; "-": the run cannot be expressed."""
    done = subprocess.run([sim, 'validate', '--scenario', name, *files], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        return '-'
    scenario = json.loads(done.stdout)
    del scenario['name']
    text = json.dumps(scenario, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def rows(sim, files):
    for point in json.loads(run(sim, 'validate', '--json', *files))['points']:
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


def main():
    sim, table, *rest = sys.argv[1:]
    update = '--update' in rest
    files = [each for each in rest if each != '--update']
    found = as_table(rows(os.path.abspath(sim), files))
    if update:
        with open(table, 'w', encoding='utf-8') as file:
            file.write(found)
        return 0
    with open(table, encoding='utf-8') as file:
        expected = file.read()
    if found == expected:
        print(f'{len(found.splitlines()) - 1} predictions as they were')
        return 0
    old = {row['id']: row for row in csv.DictReader(io.StringIO(expected))}
    new = {row['id']: row for row in csv.DictReader(io.StringIO(found))}
    for name in old.keys() | new.keys():
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            print(f'{name}: {"new" if before is None else "gone"}')
            continue
        for field in FIELDS:
            if before[field] != after[field]:
                print(f'{name}: {field}: {before[field]} -> {after[field]}')
    print('If a fact was wrong, run this again with --update and say in the commit what was.')
    return 1


if __name__ == '__main__':
    sys.exit(main())

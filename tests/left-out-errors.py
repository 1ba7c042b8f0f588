#!/usr/bin/env python3
"""Writes facts/left-out.json: errors of predicted step times of runs that no figure was fitted
to.

  left-out-errors.py SIM DEVICES --fitted POINTS.json ... --unseen POINTS.json ... > left-out.json

Files after --fitted are those that fit-figures.py fits figures to. The error of each of their
points is that with the figures fitted to all other sources (fit-figures.py, "by others"). Files
after --unseen have sources that no figure was ever fitted to: their errors are taken as they are.
Points of quality C are left out. `sim validate --like` reads the result (sim/validate/interval.h).
"""
import collections
import importlib
import json
import math
import subprocess
import sys

FIT = importlib.import_module('fit-figures')  # next to this file

# Studies that count as one source: the same people measured on the same machine.
SAME = {'vtrain-a100-cluster': 'vtrain-a100'}


def predict(sim, files):
    """Traits of each predicted point, and log(predicted / measured) if its time is known."""
    text = subprocess.run([sim, 'validate', *files, '--json'], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout
    return {p['id']: (p['traits'], math.log1p(p['step_time_error']))
            for p in json.loads(text)['points'] if p['step_time_error'] is not None}


def quality(files):
    return {p['id']: p.get('quality') or 'C' for name in files
            for p in FIT.KINDS.read_points(name)['points']}


def errors_left_out(sim, devices, files):
    program = FIT.Program(sim, devices, files)
    values = FIT.current(devices)
    errors = FIT.evaluate(program, values)
    slopes = FIT.derive(program, values, errors)
    away = [math.log(value / start) for value, start in zip(values, FIT.STARTS)]
    return FIT.left_out(errors, slopes, away)


def main():
    arguments = sys.argv[1:]
    split, last = arguments.index('--fitted'), arguments.index('--unseen')
    (sim, devices), fitted = arguments[:split], arguments[split + 1:last]
    unseen = arguments[last + 1:]
    graded = quality(fitted + unseen)
    found = {i: (traits, error) for i, (traits, error) in predict(sim, unseen).items()
             if not graded[i].startswith('C')}
    traits = {i: traits for i, (traits, _) in predict(sim, fitted).items()}
    for i, error in errors_left_out(sim, devices, fitted).items():
        found[i] = (traits[i], error)
    sources = collections.defaultdict(lambda: collections.defaultdict(list))
    for i in sorted(found):
        name = i.split('/')[0]
        sources[SAME.get(name, name)][json.dumps(found[i][0])].append(
            round(100 * math.expm1(found[i][1]), 1))
    print('{\n  "title": "Errors of predicted step times of runs that the fitted figures do not '
          'know",\n  "made_by": "tests/left-out-errors.py",\n  "traits": "times, network, device, '
          'precision, runtime, sharded weights, pipeline, tensor parallelism",\n  "sources": [')
    for k, (name, groups) in enumerate(sorted(sources.items())):
        rows = ',\n'.join(
            f'      {{"traits": {key}, "errors_percent": {json.dumps(sorted(errors))}}}'
            for key, errors in sorted(groups.items()))
        print(f'    {{"source": "{name}", "groups": [\n{rows}]}}' + ',' * (k + 1 < len(sources)))
    print('  ]\n}')


if __name__ == '__main__':
    main()

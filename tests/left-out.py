#!/usr/bin/env python3
"""Leave-one-dataset-out: left-out.py SIM POINTS.json ...

For each kind of GPU one factor is fitted to the step times of all datasets but one, the median of measured over
predicted, and tried on the one that is left out. Printed are the mean absolute errors of the dataset as it is
predicted, with the factor of the others, and with its own, which nothing fitted elsewhere can beat on average:
a device's figures generalise where the second is close to the third. Exits with 4 where more than half of the
datasets with at least five points get more than 1.5 times their own error from the others.
"""
import collections
import json
import statistics
import subprocess
import sys

ENOUGH = 5
WITHIN = 1.5


def read(sim, files):
    """(dataset, GPU, predicted, measured) of each point with both times."""
    gpus = {}
    for name in files:
        with open(name, encoding='utf-8') as file:
            gpus.update({point['id']: point['hardware']['gpu'] for point in json.load(file)['points']})
    done = subprocess.run([sim, 'validate', *files, '--json'], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    rows = []
    for point in json.loads(done.stdout)['points']:
        times = point.get('predicted_step_time_s'), point.get('measured_step_time_s')
        if None not in times:
            rows.append((point['id'].split('/')[0], gpus[point['id']], *times))
    return rows


def mean_error(rows, factor):
    return statistics.mean(abs(p * factor.get(g, 1) / m - 1) for _, g, p, m in rows)


def factors(rows):
    ratios = collections.defaultdict(list)
    for _, gpu, predicted, measured in rows:
        ratios[gpu].append(measured / predicted)
    return {gpu: statistics.median(each) for gpu, each in ratios.items()}


def main():
    rows = read(sys.argv[1], sys.argv[2:])
    worse = checked = 0
    print(f'{"dataset":20} points  as predicted  others\' factor  own factor')
    for dataset in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == dataset]
        others = [row for row in rows if row[0] != dataset]
        errors = [mean_error(own, f) for f in ({}, factors(others), factors(own))]
        print(f'{dataset:20} {len(own):6}  ' + '  '.join(f'{100 * e:12.2f} %' for e in errors))
        if len(own) >= ENOUGH:
            checked += 1
            worse += errors[1] > WITHIN * errors[2]
    print(f'{worse} of {checked} datasets with {ENOUGH} points or more: over {WITHIN} times their own error')
    return 4 if 2 * worse > checked else 0


if __name__ == '__main__':
    sys.exit(main())

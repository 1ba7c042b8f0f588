#!/usr/bin/env python3
"""Writes facts/left-out.json: errors of predicted step times of runs that no parameter was fitted
to, and the model of the intervals of `sim validate --like`.

  left-out-errors.py PREDICTIONS.json ... [--left-out FILE] [--fitted DATASET ...] > left-out.json

PREDICTIONS.json are outputs of `sim validate POINTS.json --json`, one or more. Runs of quality C
are left out. No simulation is run: it takes a minute for 3,000 runs.

Datasets that parameters were fitted to need the errors with parameters fitted to all other
datasets: `fit-figures.py --left-out=FILE` writes them. Datasets after --fitted were fitted to, but
are not in FILE: their errors are not left-out errors. They count in centres and spreads, but not in
the factor that makes the interval hold (see below), nor in its coverage.

The model, for y = log(measured / predicted) of a run of a new source (sim/validate/interval.h says
how it is used):

  centre = sum of effects of the values of its traits, by weighted least squares,
  spread = exp(sum of effects), by the same of log(|y - centre| + FLOOR), times
           sqrt(1 + sum over traits of 1 / (n + 1)), n the number of sources with that value,
  factor = the quantile 0.9 (K + 1) / K of |y - centre| / spread over K sources.

In centres and spreads each source has the same weight. Each effect is held to 0 by a penalty that
weighs as much as one source. In the quantile a source has the square root of its number of runs as
weight: nine of ten shall hold both for sources, which would be equal weights, and for runs, most of
which are from a few large studies. For the factor, the model of each source is fitted to all other
sources: so the factor also covers what a model does not know of a new source. This is conformal
prediction with sources as the exchangeable units; it does not depend on the model being right. The
coverage is that of each source, with both model and factor from the other sources.
"""
import argparse
import collections
import json
import math
import sys

TRAITS = ('times', 'network', 'device', 'precision', 'runtime', 'sharded weights', 'pipeline',
          'tensor parallelism', 'generation', 'devices', 'launch gaps')  # of sim/validate
USED = tuple(t for t in TRAITS if t != 'device')  # the generation stands for the device
SHARE = 0.9
FLOOR = 0.03  # the same run measured twice differs by 1.3 % (median) to 6.4 % (one in ten)
POWER = 0.5  # of its number of runs: the weight of a source in the quantile
LEAST = 9  # sources: 0.9 (K + 1) > K for fewer

# Studies that count as one source: the same people measured on the same machine.
SAME = {'vtrain-a100-cluster': 'vtrain-a100'}


# ---- the model ----

def solve(matrix, right):
    """Gauss, without pivoting: the matrix is symmetric and positive definite."""
    rows = [[*row, r] for row, r in zip(matrix, right)]
    n = len(rows)
    for i in range(n):
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            if factor:
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    found = [0.0] * n
    for i in reversed(range(n)):
        rest = sum(rows[i][k] * found[k] for k in range(i + 1, n))
        found[i] = (rows[i][n] - rest) / rows[i][i]
    return found


def regress(groups, target):
    """Base and effects of values of traits: {(trait, value): effect}. `groups` are (values, weight)
    with weights that add up to the number of sources, `target` their means."""
    total = sum(weight for _, weight in groups)
    base = sum(weight * t for (_, weight), t in zip(groups, target)) / total
    columns = {value: k for k, value in
               enumerate(sorted({v for values, _ in groups for v in values}))}
    matrix = [[float(i == j) for j in range(len(columns))] for i in range(len(columns))]
    right = [0.0] * len(columns)
    for (values, weight), t in zip(groups, target):
        at = [columns[value] for value in values]
        for i in at:
            right[i] += weight * (t - base)
            for j in at:
                matrix[i][j] += weight
    return base, dict(zip(columns, solve(matrix, right)))


class Model:
    """Centre and spread of a new source's runs; sources: {source: {values: [y, ...]}}."""

    def __init__(self, sources):
        self.counts = collections.Counter(
            value for groups in sources.values() for value in {v for g in groups for v in g})
        keys, runs = [], []
        for groups in sources.values():
            n = sum(map(len, groups.values()))
            for values, ys in groups.items():
                keys.append((values, len(ys) / n))
                runs.append(ys)
        self.base, self.effects = regress(keys, [sum(ys) / len(ys) for ys in runs])
        spreads = []
        for (values, _), ys in zip(keys, runs):
            centre = self.centre(values)
            spreads.append(sum(math.log(abs(y - centre) + FLOOR) for y in ys) / len(ys))
        self.log_spread, self.spreads = regress(keys, spreads)

    def centre(self, values):
        return self.base + sum(self.effects.get(value, 0) for value in values)

    def spread(self, values):
        doubt = 1 + sum(1 / (self.counts[value] + 1) for value in values)
        return math.exp(self.log_spread + sum(self.spreads.get(value, 0) for value in values)
                        ) * math.sqrt(doubt)

    def scores(self, groups):
        """|y - centre| / spread of each run of a source."""
        return [abs(y - self.centre(values)) / self.spread(values)
                for values, ys in groups.items() for y in ys]


def quantile(scores):
    """0.9 (K + 1) / K of K lists of scores, each with the weight n^POWER of n scores; None: K is too
    small. The new source, which the one in K + 1 stands for, has the mean weight."""
    if len(scores) < LEAST:
        return None
    rows = sorted((score, len(of) ** (POWER - 1)) for of in scores for score in of)
    all_weights = sum(len(of) ** POWER for of in scores)
    enough = SHARE * all_weights * (1 + 1 / len(scores)) * (1 - 1e-12)
    total = 0
    for score, weight in rows:
        total += weight
        if total >= enough:
            return score
    return rows[-1][0]


class Intervals:
    """Models without some sources, each fitted once."""

    def __init__(self, sources, calibrating):
        self.sources, self.calibrating, self.models = sources, calibrating, {}

    def without(self, *names):
        key = frozenset(names)
        if key not in self.models:
            self.models[key] = Model({s: g for s, g in self.sources.items() if s not in key})
        return self.models[key]

    def factor(self, *without):
        return quantile([self.without(s, *without).scores(self.sources[s])
                         for s in self.calibrating if s not in without])

    def coverage(self):
        """Of each source, the share of its runs within the interval made of the others; and the
        mean half width of these intervals, relative to the prediction."""
        held, widths = {}, {}
        for name in self.calibrating:
            factor, model = self.factor(name), self.without(name)
            if factor is None:
                continue
            groups = self.sources[name]
            scores = model.scores(groups)
            held[name] = sum(score <= factor for score in scores) / len(scores)
            widths[name] = sum(
                len(ys) * math.exp(model.centre(v)) * math.sinh(factor * model.spread(v))
                for v, ys in groups.items()) / len(scores)
        return held, widths


# ---- files ----

def values_of(traits):
    return tuple((name, value) for name, value in zip(TRAITS, traits) if name in USED)


def read(files, left_out):
    """Runs: (dataset, traits, log(predicted / measured), whether that is a left-out error)."""
    found = []
    for path in files:
        with open(path, encoding='utf-8') as file:
            points = json.load(file)['points']
        for p in points:
            if p['step_time_error'] is None or p['quality'].startswith('C'):
                continue
            if len(p['traits']) != len(TRAITS):
                sys.exit(f'{path}: {p["id"]} has {len(p["traits"])} traits, not {len(TRAITS)}: '
                         'made by another version of sim')
            error = left_out.get(p['id'], math.log1p(p['step_time_error']))
            found.append((p['dataset'], tuple(p['traits']), error, p['id'] in left_out))
    return found


def describe(source, runs, fitted, inside):
    groups = collections.defaultdict(list)
    for _, traits, error, _ in runs:
        groups[traits].append(round(100 * math.expm1(error), 1))
    return {'source': source, 'datasets': sorted({run[0] for run in runs}), 'fitted': fitted,
            'left_out': not inside,
            'groups': [{'traits': list(traits), 'errors_percent': sorted(errors)}
                       for traits, errors in sorted(groups.items())]}


def write(document, out):
    """As json.dump, with a list of scalars on one line."""
    text = json.dumps(document, indent=1, sort_keys=False)
    lines, inside = [], False
    for line in text.split('\n'):
        word = line.strip()
        if inside and not word.startswith(('[', '{', ']', '}')) and not word.endswith(('[', '{')):
            lines[-1] += word + (' ' if word.endswith(',') else '')
        elif inside and word.startswith(']') and not lines[-1].endswith(('}', '{')):
            lines[-1] += word
        else:
            lines.append(line)
        inside = lines[-1].rstrip().endswith('[') or (inside and not word.startswith((']', '}')))
    out.write('\n'.join(lines) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('predictions', nargs='+')
    parser.add_argument('--left-out', metavar='FILE')
    parser.add_argument('--fitted', nargs='+', default=[], metavar='DATASET')
    given = parser.parse_args()
    left_out = {}
    if given.left_out:
        with open(given.left_out, encoding='utf-8') as file:
            left_out = json.load(file)
    by_source = collections.defaultdict(list)
    for run in read(given.predictions, left_out):
        by_source[SAME.get(run[0], run[0])].append(run)
    described, sources, calibrating = [], {}, []
    for name, runs in sorted(by_source.items()):
        is_left_out = any(run[3] for run in runs)
        inside = any(run[0] in given.fitted and not run[3] for run in runs)
        described.append(describe(name, runs, is_left_out or inside, inside))
        groups = collections.defaultdict(list)
        for _, traits, error, _ in runs:
            groups[values_of(traits)].append(-error)
        sources[name] = groups
        if not inside:
            calibrating.append(name)
    intervals = Intervals(sources, calibrating)
    model, factor = intervals.without(), intervals.factor()
    held, widths = intervals.coverage()
    runs_of = {name: sum(map(len, groups.values())) for name, groups in sources.items()}
    by_run = (sum(held[s] * runs_of[s] for s in held) / sum(runs_of[s] for s in held)
              if held else None)
    effects = collections.defaultdict(dict)
    for (trait, value), n in sorted(model.counts.items()):
        effects[trait][value] = {'sources': n, 'centre': round(model.effects[trait, value], 4),
                                 'spread': round(model.spreads[trait, value], 4)}
    rounded = {key: None if value is None else round(value, 4) for key, value in (
        ('centre', model.base), ('spread', model.log_spread), ('factor', factor),
        ('by_run', by_run),
        ('by_source', sum(held.values()) / len(held) if held else None),
        ('width', sum(widths.values()) / len(widths) if widths else None))}
    write({'title': 'Errors of predicted step times of runs that the fitted parameters do not know',
           'made_by': 'tests/left-out-errors.py', 'traits': list(TRAITS),
           'interval': {'sources': len(calibrating), 'runs': sum(runs_of[s] for s in calibrating),
                        **{key: rounded[key] for key in ('centre', 'spread', 'factor')},
                        'coverage': {key: rounded[key]
                                     for key in ('by_run', 'by_source', 'width')},
                        'effects': effects},
           'sources': described}, sys.stdout)
    inside = [s for s in sources if s not in calibrating]
    print(f'{sum(runs_of.values())} runs of {len(sources)} sources; left out: '
          f'{len(calibrating)} sources' + (f'; not left out: {", ".join(inside)}' if inside else ''),
          file=sys.stderr)
    if held:
        print(f'intervals hold for {100 * by_run:.1f} % of runs, '
              f'{100 * rounded["by_source"]:.1f} % by source; mean half width '
              f'{100 * rounded["width"]:.1f} %', file=sys.stderr)
        for name in sorted(held, key=held.get):
            print(f'  {name:24} {runs_of[name]:5} runs  held {100 * held[name]:5.1f} %  '
                  f'half width {100 * widths[name]:5.1f} %', file=sys.stderr)


if __name__ == '__main__':
    main()

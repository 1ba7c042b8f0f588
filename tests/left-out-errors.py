#!/usr/bin/env python3
"""Writes facts/left-out.json: errors of predicted step times of runs that no parameter was fitted
to, and the model of the intervals of `sim validate --like`.

  left-out-errors.py PREDICTIONS.json ... [--fit FIT] [--left-out FILE] > facts/left-out.json

PREDICTIONS.json are outputs of `sim validate POINTS.json --json`, one or more. Runs of quality C
are left out. No simulation is run: it takes a minute for 3,000 runs.

Errors of datasets that parameters were fitted to must be those with parameters fitted to all other
datasets. FIT is the output of fit-figures.py, or a page that has it; without --fit it is
docs/reference/fitted-figures.md. Its datasets are the fitted ones, and it has their bias with all
datasets and "by others": the errors of a dataset are shifted by the ratio of the two. If the fit
was made with --left-out=FILE, FILE has the errors of single runs by others, which are used instead.

The model, for y = log(measured / predicted) of a run of a new source (sim/study/validate/interval.h
says how it is used):

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
coverage is measured for each source, with both model and factor from the other sources.
"""
import argparse
import collections
import json
import math
import os
import re
import sys

TRAITS = ('times', 'network', 'device', 'precision', 'runtime', 'sharded weights', 'pipeline',
          'tensor parallelism', 'generation', 'devices', 'launch gaps')  # of sim/study/validate
USED = tuple(t for t in TRAITS if t != 'device')  # the generation represents the device
SHARE = 0.9
FLOOR = 0.01  # the same run, measured twice, differs by 1.3 % (median)
POWER = 0.5  # of its number of runs: the weight of a source in the quantile
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, 'docs', 'reference', 'fitted-figures.md')
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
    """0.9 (K + 1) / K of K lists of scores, each with the weight n^POWER of n scores; None: K is
    too small. The new source, the 1 in K + 1, has the mean weight."""
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

    def __init__(self, sources):
        self.sources, self.models = sources, {}

    def without(self, *names):
        key = frozenset(names)
        if key not in self.models:
            self.models[key] = Model({s: g for s, g in self.sources.items() if s not in key})
        return self.models[key]

    def factor(self, *without):
        others = [s for s in self.sources if s not in without]
        if len(others) < LEAST:
            return None
        return quantile([self.without(s, *without).scores(self.sources[s]) for s in others])

    def coverage(self):
        """Of each source, the share of its runs within the interval made of the others; and the
        mean half width of these intervals, relative to the prediction."""
        held, widths = {}, {}
        for name in self.sources:
            factor = self.factor(name)
            if factor is None:
                continue
            model = self.without(name)
            groups = self.sources[name]
            scores = model.scores(groups)
            held[name] = sum(score <= factor for score in scores) / len(scores)
            widths[name] = sum(
                len(ys) * math.exp(model.centre(v)) * math.sinh(factor * model.spread(v))
                for v, ys in groups.items()) / len(scores)
        return held, widths


# ---- datasets that were fitted ----

def shifts(text):
    """{dataset: log of (1 + bias by others) / (1 + bias with all)} of a fit's output."""
    number = r'\s+([+-]?[0-9.]+) %'
    row = re.compile(r'^(\S+)\s+[0-9]+' + 6 * number + '$', re.M)
    head = re.search(r'^dataset +points +before .*by others .*$', text, re.M)
    end = re.search(r'^kind of run', text, re.M)
    rows = row.findall(text[head.end():end.start()]) if head and end else []
    return {found[0]: math.log((1 + float(found[6]) / 100) / (1 + float(found[4]) / 100))
            for found in rows}


# ---- files ----

def values_of(traits):
    return tuple((name, value) for name, value in zip(TRAITS, traits) if name in USED)


def read(files):
    """Runs with a measured time, except quality C."""
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
            found.append({'id': p['id'], 'dataset': p['dataset'], 'traits': tuple(p['traits']),
                          'error': math.log1p(p['step_time_error'])})
    return found


def describe(source, runs, left_out):
    groups = collections.defaultdict(list)
    for run in runs:
        groups[run['traits']].append(round(100 * math.expm1(run['error']), 1))
    return {'source': source, 'datasets': sorted({run['dataset'] for run in runs}),
            'fitted': left_out != 'never fitted', 'left_out': left_out,
            'groups': [{'traits': list(traits), 'errors_percent': sorted(errors)}
                       for traits, errors in sorted(groups.items())]}


def write(document, out):
    """As json.dump, with lists of scalars and effects on one line each."""
    def put(value, depth):
        if isinstance(value, dict):
            scalars = not any(isinstance(v, (dict, list)) for v in value.values())
            items, ends = [f'{json.dumps(k)}: {put(v, depth + 1)}' for k, v in value.items()], '{}'
        elif isinstance(value, list):
            scalars = not any(isinstance(v, (dict, list)) for v in value)
            items, ends = [put(v, depth + 1) for v in value], '[]'
        else:
            return json.dumps(value)
        if scalars or not items:
            return ends[0] + ', '.join(items) + ends[1]
        space = '\n' + ' ' * (depth + 1)
        return ends[0] + space + (',' + space).join(items) + space[:-1] + ends[1]
    out.write(put(document, 0) + '\n')


def model_of(intervals, runs_of):
    """The section "interval" of the file, coverage by source, and widths."""
    model, factor = intervals.without(), intervals.factor()
    held, widths = intervals.coverage()
    n = sum(runs_of[s] for s in held)
    coverage = {'by_run': sum(held[s] * runs_of[s] for s in held) / n if held else None,
                'by_source': sum(held.values()) / len(held) if held else None,
                'width': sum(widths.values()) / len(widths) if widths else None}
    effects = collections.defaultdict(dict)
    for (trait, value), count in sorted(model.counts.items()):
        effects[trait][value] = {'sources': count, 'centre': round(model.effects[trait, value], 4),
                                 'spread': round(model.spreads[trait, value], 4)}
    section = {'sources': len(runs_of), 'runs': sum(runs_of.values()), 'centre': model.base,
               'spread': model.log_spread, 'factor': factor, 'coverage': coverage}
    for part in (section, coverage):
        part.update({k: round(v, 4) for k, v in part.items() if isinstance(v, float)})
    return {**section, 'effects': effects}, held, widths


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('predictions', nargs='+')
    parser.add_argument('--fit', metavar='FIT', default=PAGE)
    parser.add_argument('--left-out', metavar='FILE')
    given = parser.parse_args()
    exact = {}
    if given.left_out:
        with open(given.left_out, encoding='utf-8') as file:
            exact = json.load(file)
    with open(given.fit, encoding='utf-8') as file:
        shift = shifts(file.read())
    if not shift:
        sys.exit(f'{given.fit}: has no table "dataset points before ... by others": it must be the '
                 'output of fit-figures.py')
    by_source = collections.defaultdict(list)
    for run in read(given.predictions):
        run['how'] = ('refitted' if run['id'] in exact else
                      'shifted' if run['dataset'] in shift else 'never fitted')
        run['error'] = exact.get(run['id'], run['error'] + shift.get(run['dataset'], 0))
        by_source[SAME.get(run['dataset'], run['dataset'])].append(run)
    described, sources, kinds = [], {}, collections.defaultdict(list)
    for name, of in sorted(by_source.items()):
        how = min({run['how'] for run in of}, key=('shifted', 'refitted', 'never fitted').index)
        described.append(describe(name, of, how))
        kinds[how].append(name)
        sources[name] = collections.defaultdict(list)
        for run in of:
            sources[name][values_of(run['traits'])].append(-run['error'])
    runs_of = {name: len(of) for name, of in by_source.items()}
    section, held, widths = model_of(Intervals(sources), runs_of)
    write({'title': 'Errors of predicted step times of runs that the fitted parameters do not know',
           'made_by': 'tests/left-out-errors.py', 'traits': list(TRAITS), 'interval': section,
           'sources': described}, sys.stdout)
    print(f'{sum(runs_of.values())} runs of {len(sources)} sources, each left out of the fit',
          file=sys.stderr)
    for how, names in sorted(kinds.items()):
        print(f'  {how}: {", ".join(names)}', file=sys.stderr)
    if held:
        coverage = section['coverage']
        print(f'intervals hold for {100 * coverage["by_run"]:.1f} % of runs, '
              f'{100 * coverage["by_source"]:.1f} % by source; mean half width '
              f'{100 * coverage["width"]:.1f} %', file=sys.stderr)
    for name in sorted(held, key=held.get):
        print(f'  {name:24} {runs_of[name]:5} runs  held {100 * held[name]:5.1f} %  half width '
              f'{100 * widths[name]:5.1f} %', file=sys.stderr)


if __name__ == '__main__':
    main()

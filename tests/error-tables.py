#!/usr/bin/env python3
"""The tables of docs/reference/accuracy.md, and the numbers in README.md:

  error-tables.py PREDICTIONS.json ... --points POINTS.json ... [--fit FIT] [--left-out FILE]
                  [--update]

PREDICTIONS.json are outputs of `sim validate POINTS.json --json`; no simulation is run. All errors
are left-out errors: for datasets that parameters were fitted to, from left-out-errors.py
them, from FIT and FILE. Prints tables in Markdown: what a user can expect; errors and intervals by
source, and by kind of run; ranking of layouts by source; trends; out-of-memory verdicts; memory;
other tools; and of sources with a bias, where their steps go and what the parts lack. --update puts
them between the markers of the page and, of the first one, of README.md.
"""
import argparse
import importlib
import json
import math
import os
import re
import statistics
import sys

import judging

ASIDE = 'megatron-goldens'  # tests of a framework, of quality C: in the table by source only
NARROW = ('fp8', 'mxfp8', 'nvfp4')
TREND_RUNS = 20  # of a study whose trends are shown
MOST_TREND = 3  # in %
MOST_BIAS = 3  # of a source, in %
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = [os.path.join(ROOT, 'docs', 'reference', 'accuracy.md'), os.path.join(ROOT, 'README.md')]


def read_points(path):
    """The document, each point completed with the common values
    (docs/reference/points.md)."""
    with open(path, encoding='utf-8') as file:
        document = json.load(file)
    common = document.pop('common', {})
    points = []
    for own in document['points']:
        point = {**common, **own}
        for key, shared in common.items():
            if isinstance(shared, dict) and isinstance(own.get(key), dict):
                point[key] = {**shared, **own[key]}
        points.append(point)
    return {**document, 'points': points}


def has(point, feature):
    return feature in (point.get('features') or [])


def is_gpu(point, *names):
    return point['hardware']['gpu'].startswith(names)


def is_profiled(point):
    return bool((point.get('options') or {}).get('profiled_ms'))


TARGETS = (  # kind of run, error that the project aims at in %, which points
    ('pipelines from measured passes', 2, is_profiled),
    ('dense bf16 and fp16 on A100 and H100', 5, lambda p: p['precision'] in ('bf16', 'fp16')
     and not has(p, 'moe')
     and is_gpu(p, 'A100', 'H100') and not is_profiled(p)),
    ('B200 in bf16, with the figure `in_step`', 3, lambda p: p['precision'] == 'bf16'
     and is_gpu(p, 'B200')),
    ('fp8, mxfp8 and nvfp4, dense', 7, lambda p: p['precision'].startswith(NARROW)
     and not has(p, 'moe')),
    ('mixtures of experts', 6, lambda p: has(p, 'moe')),
    ('FSDP', 5, lambda p: p.get('parallel', {}).get('zero') == 3),
    # 8.06 % on average; 8 was the aim until losses had the kernels that they start
    ('one GPU, fp32', 8.5, lambda p: p['precision'] == 'fp32' and p['hardware']['gpus'] == 1))


def figures(errors):
    """Mean and median of absolute values, and bias, in %."""
    sizes = [abs(error) for error in errors]
    return 100 * statistics.mean(sizes), 100 * statistics.median(sizes), 100 * statistics.mean(
        errors)


def cells(errors, digits=1):
    mean, median, bias = figures(errors)
    return f'{mean:.{digits}f} | {median:.{digits}f} | {bias:+.{digits}f} |'


PARTS = {'products': 'products', 'attention': 'attention', 'memory_bound': 'memory-bound kernels',
         'launch_gaps': 'launch gaps',
         'other_computing': 'other computing', 'slowed': 'slowed by messages',
         'optimizer': 'optimizer',
         'for_stages': 'messages between stages', 'for_gradients': 'gradients',
         'for_weights': 'weights',
         'for_tensor': 'tensor-parallel messages', 'for_context': 'context-parallel messages',
         'for_expert': 'messages for experts',
         'for_space': 'halos', 'for_host': 'the host', 'bubble': 'bubble'}




# ---- what is known of the runs ----

class Runs:
    """Rows (point, prediction), where predictions of fitted datasets are left out."""

    def __init__(self, given):
        made = importlib.import_module('left-out-errors')
        points = {p['id']: p for path in given.points for p in read_points(path)['points']}
        with open(given.fit or made.PAGE, encoding='utf-8') as file:
            shift = made.shifts(file.read())
        exact = {}
        if given.left_out:
            with open(given.left_out, encoding='utf-8') as file:
                exact = json.load(file)
        self.rows, self.decomposition, groups = [], {}, {}
        for path in given.predictions:
            with open(path, encoding='utf-8') as file:
                report = json.load(file)
            self.decomposition.update({d['dataset']: d for d in report['decomposition']})
            for row in report['points']:
                if row['id'] not in points:
                    sys.exit(f'{path}: no file after --points has {row["id"]}')
                if row['step_time_error'] is not None:
                    error = exact.get(row['id'], math.log1p(row['step_time_error']) +
                                      shift.get(row['dataset'], 0))
                    row['step_time_error'] = math.expm1(error)
                    row['predicted_step_time_s'] = row['measured_step_time_s'] * math.exp(error)
                    if not row['quality'].startswith('C'):
                        source = made.SAME.get(row['dataset'], row['dataset'])
                        groups.setdefault(source, {}).setdefault(
                            made.values_of(row['traits']), []).append(-error)
                self.rows.append((points[row['id']], row))
        self.names = sorted({row['dataset'] for _, row in self.rows})
        self.held, self.widths = made.Intervals(groups).coverage()
        self.sizes = {s: sum(map(len, g.values())) for s, g in groups.items()}
        self.fitted = {name for name in self.names if name in shift or any(
            row['dataset'] == name and row['id'] in exact for _, row in self.rows)}

    def of(self, name):
        return [(p, r) for p, r in self.rows if not name or r['dataset'] == name]

    def errors(self, name='', belongs=lambda p: True):
        return [r['step_time_error'] for p, r in judging.timed(self.of(name))
                if judging.is_exact(p) and belongs(p)]


def percent(value, digits=1):
    return '-' if value is None else f'{100 * value:.{digits}f}'


# ---- tables ----

def summary(runs):
    """What a user can expect of an unseen run."""
    mean, median, bias = figures(runs.errors())
    n, tau, loss, near, rule_tau, rule_loss, rule_near = judging.ranking(judging.rank(runs.rows))
    counts = judging.verdicts(runs.rows)
    out = counts['caught'] + counts['missed']
    fitted = counts['false_alarms'] + counts['fitted']
    lines = [f'- **Step time**: mean error {mean:.1f} %, median {median:.1f} %, bias {bias:+.1f} % '
             f'({len(runs.errors())} runs of {sum(bool(runs.errors(n)) for n in runs.names)} '
             'datasets).',
             f'- **Ranking of layouts** ({n} studies of equal model, GPUs, batch and precision): '
             f"Kendall's tau {tau:.2f}; the layout that is predicted to be the fastest loses "
             f'{100 * loss:.1f} % on the fastest one measured and is within 5 % of it in '
             f'{100 * near:.0f} % of the studies. A rule of thumb: {rule_tau:.2f}, '
             f'{100 * rule_loss:.1f} %, {100 * rule_near:.0f} %.']
    if out:
        lines.append(f'- **Out of memory**: {counts["caught"]} of {out} runs that ran out of '
                     f'memory were predicted to ({100 * counts["caught"] / out:.0f} %), and '
                     f'{counts["false_alarms"]} of {fitted} that did not '
                     f'({100 * counts["false_alarms"] / fitted:.1f} %).')
    memory = []
    for word in ('allocated', 'reserved'):
        errors = [r[f'{word}_error'] for _, r in runs.rows if r[f'{word}_error'] is not None]
        if errors:
            memory.append(f'{word} {figures(errors)[0]:.1f} % ({len(errors)} runs)')
    if memory:
        lines.append('- **Peak memory**, mean error: ' + ', '.join(memory) + '.')
    if runs.held:
        n = sum(runs.sizes[s] for s in runs.held)
        by_run = sum(runs.held[s] * runs.sizes[s] for s in runs.held) / n
        by_source = 100 * statistics.fmean(runs.held.values())
        width = 100 * statistics.median(runs.widths.values())
        lines.append(f'- **Intervals** for 9 of 10 runs held for {100 * by_run:.0f} % of the runs '
                     f'and {by_source:.0f} % by source; half width {width:.0f} % (median over '
                     'sources).')
    return lines


def by_source(runs):
    lines = ['| dataset | fitted | runs | mean, % | median, % | bias, % | interval held, % | half '
             'width, % |', '|---|---|---:|---:|---:|---:|---:|---:|']
    for name in runs.names:
        errors = runs.errors(name)
        if errors:
            lines.append(f'| {name} | {"yes" if name in runs.fitted else "no"} | {len(errors)} | '
                         f'{cells(errors)} {percent(runs.held.get(name), 0)} | '
                         f'{percent(runs.widths.get(name), 0)} |')
    for label, chosen in (('never fitted', [n for n in runs.names if n not in runs.fitted]),
                          ('all', runs.names)):
        errors = [e for name in chosen for e in runs.errors(name)]
        if errors:
            lines.append(f'| {label} | | {len(errors)} | {cells(errors)} | |')
    return lines


def by_kind(runs):
    lines = ['| kind of run | runs | mean, % | median, % | bias, % |', '|---|---:|---:|---:|---:|']
    for name, _, belongs in TARGETS:
        errors = runs.errors('', belongs)
        if errors:
            lines.append(f'| {name} | {len(errors)} | {cells(errors)}')
    return lines


def by_ranking(runs):
    lines = ['| dataset | groups | tau | loss, % | within 5 %, % | rule: tau | loss, % | '
             'within 5 %, % |', '|---|---:|---:|---:|---:|---:|---:|---:|']
    for name in (*runs.names, ''):
        groups = judging.rank(runs.of(name))
        if groups:
            n, *of = judging.ranking(groups)
            lines.append(f'| {name or "all"} | {n} |' + ''.join(
                f' {of[k]:.2f} | {percent(of[k + 1])} | {percent(of[k + 2], 0)} |' for k in (0, 3)))
    return lines


def by_trend(runs):
    """Datasets with enough runs; a trend beyond both its limit and two standard errors is bold."""
    axes = list(judging.axes(runs.rows[0][0]))
    lines = ['| dataset |' + ''.join(f' {axis} |' for axis in axes), '|---|' + '---:|' * len(axes)]
    for name in runs.names:
        if len(runs.errors(name)) < TREND_RUNS:
            continue
        cell = []
        for axis in axes:
            found = judging.trend(runs.of(name), axis)
            text = '-'
            if found:
                slope, error = found[0], found[1]
                text = f'{100 * slope:+.1f} ± ' + percent(error)
                if 100 * abs(slope) > MOST_TREND and abs(slope) > 2 * (error or 0):
                    text = f'**{text}**'
            cell.append(text)
        if any(text != '-' for text in cell):
            lines.append(f'| {name} | ' + ' | '.join(cell) + ' |')
    return lines


def by_verdict(runs):
    lines = ['| dataset | caught | of | recall, % | false alarms | of |',
             '|---|---:|---:|---:|---:|---:|']
    for name in (*runs.names, ''):
        counts = judging.verdicts(runs.of(name))
        out, fitted = (counts[a] + counts[b] for a, b in (('caught', 'missed'),
                                                          ('false_alarms', 'fitted')))
        if out or counts['false_alarms']:
            recall = percent(counts['caught'] / out, 0) if out else '-'
            lines.append(f'| {name or "all"} | {counts["caught"]} | {out} | {recall} | '
                         f'{counts["false_alarms"]} | {fitted} |')
    return lines


def by_memory(runs):
    lines = ['| dataset | measure | runs | mean, % | median, % | bias, % |',
             '|---|---|---:|---:|---:|---:|']
    for word in ('allocated', 'reserved'):
        for name in (*runs.names, ''):
            errors = [r[f'{word}_error'] for _, r in runs.of(name)
                      if r[f'{word}_error'] is not None]
            if errors:
                lines.append(f'| {name or "all"} | {word} | {len(errors)} | {cells(errors, 2)}')
    return lines


def by_peer(runs):
    lines = ['| tool | measure | runs | sim, % | the tool, % |', '|---|---|---:|---:|---:|']
    for (tool, measure), errors in judging.peers(runs.rows).items():
        ours, theirs = (statistics.fmean(e[k] for e in errors) for k in (0, 1))
        lines.append(f'| {tool} | {measure.replace("_", " ")} | {len(errors)} | '
                     f'{percent(ours, 2)} | {percent(theirs, 2)} |')
    return lines


def by_part(runs):
    """A column for each dataset with more than so much bias (not left out: as it is predicted)."""
    columns = [(name, d) for name, d in sorted(runs.decomposition.items())
               if name and d['points'] and 100 * abs(d['missing']) > MOST_BIAS]
    shown = [key for key in PARTS if any(abs(d['lacking'][key]) >= 0.005 for _, d in columns)]
    lines = ['| dataset | missing |' + ''.join(f' {PARTS[key]} |' for key in shown) + ' rest |',
             '|---|---:|' + '---:|' * (len(shown) + 1)]
    for name, of in columns:
        assert abs(sum(of['lacking'].values()) + of['rest'] - of['missing']) < 1e-6
        lines.append(f'| {name} | {100 * of["missing"]:+.1f} |' + ''.join(
            f' {100 * of["lacking"][key]:+.1f} |' for key in shown) + f' {100 * of["rest"]:+.1f} |')
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('predictions', nargs='+')
    parser.add_argument('--points', nargs='+', required=True)
    parser.add_argument('--fit')
    parser.add_argument('--left-out', metavar='FILE')
    parser.add_argument('--update', action='store_true')
    runs = Runs(parser.parse_args())
    tables = {'left-out errors': summary(runs), 'errors by source': by_source(runs),
              'errors by kind': by_kind(runs), 'ranking by source': by_ranking(runs),
              'trends by source': by_trend(runs), 'verdicts by source': by_verdict(runs),
              'memory by source': by_memory(runs), 'other tools': by_peer(runs),
              'parts by source': by_part(runs)}
    for name, lines in tables.items():
        print(f'{name}\n\n' + '\n'.join(lines) + '\n')
    for path in PAGES if '--update' in sys.argv else []:
        with open(path, encoding='utf-8') as file:
            page = file.read()
        for name, lines in tables.items():
            page = re.sub(f'(<!-- {name} -->\n).*?(<!-- end -->)',
                          lambda at, lines=lines: at[1] + '\n'.join(lines) + '\n' + at[2], page,
                          flags=re.S)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(page)


if __name__ == '__main__':
    main()

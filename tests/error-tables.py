#!/usr/bin/env python3
"""Errors of predictions, as docs/reference/accuracy.md has them: error-tables.py SIM POINTS...
[--update PAGE]

Prints tables in Markdown: errors of the step time by source, by kind of run beside what the project
aims at, and by feature; where the steps go of kinds that miss their target and of sources with a
bias, and what their parts lack; errors of memory by source; verdicts. `--update PAGE` puts them
between the page's markers.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile

ASIDE = 'megatron-goldens'  # tests of a framework, of quality C: in the table by source only
NARROW = ('fp8', 'mxfp8', 'nvfp4')
FEATURES = 12
MOST_BIAS = 3  # of a source, in %
# of a run that fitted
MEASURED = ('step_time_s', 'allocated_bytes', 'reserved_bytes', 'device_memory_bytes')


def read_points(path):
    """The document, each of its points with what it has in common with the others
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
    ('one GPU, fp32', 8, lambda p: p['precision'] == 'fp32' and p['hardware']['gpus'] == 1))


def figures(errors):
    """Mean and median of absolute values, and bias, in %."""
    sizes = [abs(error) for error in errors]
    return 100 * statistics.mean(sizes), 100 * statistics.median(sizes), 100 * statistics.mean(
        errors)


def cells(errors, digits=1):
    mean, median, bias = figures(errors)
    return f'{mean:.{digits}f} | {median:.{digits}f} | {bias:+.{digits}f} |'


def by_source(points):
    lines = ['| source | runs | compared | mean, % | median, % | bias, % |',
             '|---|---:|---:|---:|---:|---:|']
    for name in (*sorted({p['dataset'] for p in points}), 'all', 'all but ' + ASIDE):
        chosen = [p for p in points if p['dataset'] == name or name == 'all' or
                  (name.startswith('all but') and p['dataset'] != ASIDE)]
        errors = [p['error'] for p in chosen if p['error'] is not None]
        if errors:
            lines.append(f'| {name} | {len(chosen)} | {len(errors)} | {cells(errors)}')
    return lines


def by_target(points):
    lines = ['| kind of run | points | target, % | mean, % | median, % | bias, % |',
             '|---|---:|---:|---:|---:|---:|']
    for name, target, belongs in TARGETS:
        errors = [p['error'] for p in points if p['error'] is not None and p['dataset'] != ASIDE
                  and belongs(p)]
        if errors:
            lines.append(f'| {name} | {len(errors)} | {target} | {cells(errors)}')
    return lines


def by_feature(points):
    """Those with the largest bias first."""
    rows = []
    for name in {feature for p in points for feature in p.get('features') or []}:
        errors = [p['error'] for p in points if p['error'] is not None and p['dataset'] != ASIDE
                  and has(p, name)]
        if errors:
            rows.append(
                (-abs(figures(errors)[2]), name, f'| {name} | {len(errors)} | {cells(errors)}'))
    return ['| feature | runs | mean, % | median, % | bias, % |', '|---|---:|---:|---:|---:|',
            *(row[2] for row in sorted(rows)[:FEATURES])]


PARTS = {'products': 'products', 'attention': 'attention', 'memory_bound': 'memory-bound kernels',
         'launch_gaps': 'launch gaps',
         'other_computing': 'other computing', 'slowed': 'slowed by messages',
         'optimizer': 'optimizer',
         'for_stages': 'messages between stages', 'for_gradients': 'gradients',
         'for_weights': 'weights',
         'for_tensor': 'tensor-parallel messages', 'for_context': 'context-parallel messages',
         'for_expert': 'messages for experts',
         'for_space': 'halos', 'for_host': 'the host', 'bubble': 'bubble'}


def decompose(sim, chosen):
    """Of these points together, as `sim validate` divides and explains them; it adds up."""
    with tempfile.TemporaryDirectory(prefix='error-tables-') as folder:
        path = os.path.join(folder, 'points.json')
        files = []
        for name in sorted({p['dataset'] for p in chosen}):
            files.append(f'{path[:-5]}-{name}.json')
            with open(files[-1], 'w', encoding='utf-8') as file:
                json.dump({'schema': 'truth/1', 'dataset': name,
                           'points': [p['point'] for p in chosen if p['dataset'] == name]},
                          file)
        done = subprocess.run([os.path.abspath(sim), 'validate', *files, '--json'],
                              capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)['decomposition'][0]
    assert abs(sum(found['predicted'].values()) + found['missing'] - 1) < 1e-6
    assert abs(sum(found['lacking'].values()) + found['rest'] - found['missing']) < 1e-6
    return found


def by_part(sim, points):
    """A column for each kind of run whose target is missed, and for each source with more than so
    much bias."""
    compared = [p for p in points if p['error'] is not None]
    columns = []
    for name, target, belongs in TARGETS:
        chosen = [p for p in compared if p['dataset'] != ASIDE and belongs(p)]
        if chosen and figures([p['error'] for p in chosen])[0] > target:
            columns.append((name, decompose(sim, chosen)))
    for name in sorted({p['dataset'] for p in compared}):
        chosen = [p for p in compared if p['dataset'] == name]
        if abs(figures([p['error'] for p in chosen])[2]) > MOST_BIAS:
            columns.append((name, decompose(sim, chosen)))
    lines = ['| part |' + ''.join(f' {name} | lacks |' for name, _ in columns),
             '|---|' + '---:|---:|' * len(columns)]
    for key, name in PARTS.items():
        if any(abs(c['predicted'][key]) >= 0.0005 for _, c in columns):
            lines.append(f'| {name} |' + ''.join(f' {100 * c["predicted"][key]:.1f} | '
                                                 f'{100 * c["lacking"][key]:+.1f} |'
                                                 for _, c in columns))
    lines.append('| rest |' + ''.join(f' | {100 * c["rest"]:+.1f} |' for _, c in columns))
    lines.append('| in all |' + ''.join(f' {100 * sum(c["predicted"].values()):.1f} | '
                                        f'{100 * c["missing"]:+.1f} |'
                                        for _, c in columns))
    return lines


def by_memory(points):
    lines = ['| source | figure | points | mean, % | median, % | bias, % |',
             '|---|---|---:|---:|---:|---:|']
    for name in sorted({p['dataset'] for p in points}):
        for figure in ('allocated', 'reserved'):
            errors = [p[figure] for p in points if p['dataset'] == name and p[figure] is not None]
            if errors:
                lines.append(f'| {name} | {figure} | {len(errors)} | {cells(errors, 2)}')
    return lines


def verdicts(points):
    """Of runs that are known to have fitted; those whose verdict depends on what is recomputed are
    counted apart."""
    lines = ['| | right | undecided |', '|---|---:|---:|']
    for name, chosen in (('all', points),
                         ('that say it', [p for p in points if p['recompute'] != 'unknown'])):
        told = [p for p in chosen if p['has_verdict'] and not p['depends']]
        right = sum(p['out_of_memory'] == bool(p['measured'].get('oom')) for p in told)
        lines.append(f'| {name} | {right} of {len(told)} ({100 * right / len(told):.1f} %) | '
                     f'{sum(bool(p["depends"]) for p in chosen)} |')
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sim')
    parser.add_argument('points', nargs='+')
    parser.add_argument('--update', metavar='PAGE')
    given = parser.parse_args()
    done = subprocess.run([os.path.abspath(given.sim), 'validate', *given.points, '--json'],
                          capture_output=True, text=True,
                          check=True)
    found = {row['id']: row for row in json.loads(done.stdout)['points']}
    points = []
    for path in given.points:
        document = read_points(path)
        for point in document['points']:
            row = found[point['id']]
            points.append({**point, 'point': point, 'dataset': document['dataset'],
                           'error': row['step_time_error'],
                           'allocated': row['allocated_error'], 'reserved': row['reserved_error'],
                           'out_of_memory': row.get('out_of_memory'), 'depends': row.get('depends'),
                           'has_verdict': row.get('predicted_allocated_bytes') is not None and (
                               'oom' in point['measured']
                               or any(row[f'measured_{key}'] is not None for key in MEASURED))})
    tables = {'source': by_source(points), 'target': by_target(points),
              'feature': by_feature(points),
              'part': by_part(given.sim, points), 'memory': by_memory(points),
              'verdict': verdicts(points)}
    for name, lines in tables.items():
        print(f'by {name}\n\n' + '\n'.join(lines) + '\n')
    if given.update:
        with open(given.update, encoding='utf-8') as file:
            page = file.read()
        for name, lines in tables.items():
            page = re.sub(f'(<!-- errors by {name} -->\n).*?(<!-- end -->)',
                          lambda at, lines=lines: at[1] + '\n'.join(lines) + '\n' + at[2], page,
                          flags=re.S)
        with open(given.update, 'w', encoding='utf-8') as file:
            file.write(page)


if __name__ == '__main__':
    main()

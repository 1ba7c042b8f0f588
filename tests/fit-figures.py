#!/usr/bin/env python3
"""Fits the figures of training that no source states: fit-figures.py [--write]
[--all] [--left-out=FILE] SIM DEVICES POINTS.json ...

Each row of FIGURES is one figure of a device, or of devices of one kind, or of a runtime: a place
in files of DEVICES, or a key of scenarios, kept in the file of a runtime. Its logarithm is fitted,
with that of all others, to the step times of points whose quality is not C: with --all, of all
points that have at most 512 GPUs, else of at most 128 GPUs, and of large datasets some groups of
equal model and number of GPUs, drawn with a fixed seed. Least squares of log(predicted / measured),
Cauchy's loss beyond 10 %, so that what no figure explains moves none, every dataset with the square
root of its points as weight, and every figure held to where it starts (its source, or the best
guess) by a spring of the spread that its row states, so that what no run knows about stays there.
Gauss-Newton from the figures that DEVICES have, with differences of 5 %. Figures that would move by
less than 2 % stay as they are, and with them what other predictions say; one after the other, the
smallest move first, and the rest are fitted along with them.

Printed are the figures, before and after; the errors of each dataset before, after, and with
figures fitted to all other datasets (leave-one-out, with the derivatives of the last step); these
errors of each kind of run that has a target in error-tables.py, of all points and by dataset; and
how many figures a device and a runtime have. --write writes them to DEVICES and to the folder
runtimes next to it, whose fitted values are marked "fitted". --left-out=FILE writes, for
left-out-errors.py, log(predicted / measured) of each point with the figures that are fitted to all
other datasets.
"""
import collections
import fnmatch
import importlib
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

KINDS = importlib.import_module('error-tables')  # in this folder: kinds of run and their targets

ROBUST = 0.1  # error of a point that gets half weight
STEP = math.log(1.05)
ROUNDS = 1
# that a figure moves; the same run, measured twice, differs by 1.3 % (median)
LEAST = math.log(1.02)
# Of a run, and configurations of a dataset: larger runs are like smaller ones, and take long to
# simulate. With --all, and where some are drawn.
MOST_GPUS, MOST_GPUS_DRAWN, DRAWN = 512, 128, 12
SEED = 2026
NO_POINTS = 2  # exit status where none is selected
NOISE = 0.05  # share of a step time; weighs as much as a spring of one spread
MOST = 10  # figures of a device or runtime
LIMIT = 1.5  # times a kind's target: what figures of other datasets should predict it within

HOPPER, AMPERE = ['h100', 'h200', 'h200-nvl', 'h800', 'gh200'], ['a100', 'a100-40gb', 'a800']
PCIE = ['a100-40gb-pcie', 'a100-80gb-pcie', 'a30']
WARM = HOPPER + ['h100-96gb']
CARDS = ['h100-nvl', 'h100-pcie']
COLD = CARDS + ['h20']  # Hopper with less power or slower units: products differ
BLACKWELL = ['b200', 'b300', 'gb200', 'gb300']
CDNA = ['mi100', 'mi210', 'mi250', 'mi250x']

# One figure for all formats, where the points do not tell them apart.
NARROW = ['fp8/compute', 'mxfp8/compute', 'nvfp4/compute']
GROUPED_NARROW = ['grouped_' + place for place in NARROW]

# Kernels that only move reach, without a measurement, 0.75 of the bandwidth, as on A100.
MEMORY = (0.75, 0.15)

# Products of groups are as fast as single products if bytes are counted as well: 81 of SimuMax's on
# B200 (4dcaae51, b200_bf16_ceperm.json) 0.515 of the peak, by least squares of logarithms. Those in
# fp32 on MI210 0.758 where they are largest (zzc0721/torch-performance-test-data, issue 195); on
# other devices such a measurement stays as it is. name, devices, places in their "training", where
# it starts, spread of its logarithm
FIGURES = [
    ('A100 SXM in_step', AMPERE, ['in_step/factor'], 1.05, 0.1),
    ('A100 PCIe in_step', PCIE, ['in_step/factor'], 1.05, 0.1),
    ('H100 matrix', HOPPER, ['matrix/compute'], 0.865 / 1.1, 0.1),
    ('H100 500 W in_step', ['h100-96gb'], ['in_step/factor'], 1.2, 0.15),
    ('H100 memory', WARM + COLD, ['memory/memory'], *MEMORY),
    ('H100 narrow', WARM, ['fp8/compute'], 0.7, 0.15),
    ('H100 grouped', WARM, ['grouped/compute'], 0.79, 0.2),
    ('H100 grouped_narrow', WARM, ['grouped_fp8/compute'], 0.61, 0.2),
    ('B200 in_step', BLACKWELL, ['in_step/factor'], 1.054, 0.1),
    ('B200 grouped', ['b200', 'b300'], ['grouped/compute'], 0.515, 0.2),
    ('GB200 grouped', ['gb200', 'gb300'], ['grouped/compute'], 0.484, 0.2),
    ('B200 narrow', ['b200'], NARROW, 0.63, 0.15),
    ('B300 and GB300 narrow', ['b300', 'gb300'], NARROW, 0.66, 0.15),
    ('GB200 narrow', ['gb200'], NARROW, 0.6, 0.15),
    ('B200 grouped_narrow', ['b200', 'b300'], GROUPED_NARROW, 0.55, 0.2),
    ('GB200 grouped_narrow', ['gb200', 'gb300'], GROUPED_NARROW, 0.53, 0.2),
    ('V100 matrix', ['v100', 'v100-pcie'], ['matrix/compute'], 0.6, 0.2),
    ('MI100 to MI250X single', CDNA, ['single/compute'], 0.758, 0.2),
    ('MI100 to MI250X memory', CDNA, ['memory/memory', 'single/memory'], *MEMORY),
    ('MI355X narrow', ['mi355x', 'mi350x'], NARROW[:2], 0.5, 0.25),
]
CORE = ['a100', 'h100', 'h200', *BLACKWELL]
MEGATRON_CORE = ','.join('framework=' + name for name in (
    'Megatron-LM (dev*', 'Megatron-LM (lts*', 'Megatron-LM 2*', 'Megatron-Bridge*', 'NeMo*'))
# name, key of scenarios, which points, where it starts, its unit, spread, their devices, its
# file of facts/runtimes. Of a runtime's kernels nothing is known before: all start at 1, with the
# same spread. Its host starts at the time of a linear layer of TransformerEngine in addition to a
# kernel of PyTorch's: 99.7 us if that takes 37.1, and a DGX H100 takes 13.5
# (NVIDIA/TransformerEngine, issue 2053); a step at the remainder of SimuMax's on B200.
KEYS = [
    ('Megatron Core host', '/runtime/host', MEGATRON_CORE, 23, ' us', 0.7, CORE,
     'transformer-engine'),
    ('Megatron Core step', '/runtime/step', MEGATRON_CORE, 23, ' ms', 0.7, CORE, 'megatron-core'),
    ('Megatron-DeepSpeed host', '/runtime/host', 'framework=Megatron-DeepSpeed*', 23, ' us', 0.7,
     'a100', 'deepspeed'),
    ('Megatron-DeepSpeed kernels', '/runtime/kernels', 'framework=Megatron-DeepSpeed*', 1, '', 0.15,
     'a100', 'deepspeed'),
    ('PaxML kernels', '/runtime/kernels', 'framework=PaxML*', 1, '', 0.15, 'h100', 'paxml'),
    ('FSDP on H100 kernels', '/runtime/kernels',
     'framework=Composer*,framework=PyTorch FSDP*,gpu=H100*', 1, '', 0.15,
     'h100', 'pytorch-fsdp'),
]


# Points that a group of figures is about.
ABOUT = {'single': 'precision=fp32', 'fp8': 'precision=*fp8*,precision=nvfp4',
         'grouped': 'kind=decoder-moe',
         'grouped_fp8': 'kind=decoder-moe'}
NAMES = [f[0] for f in FIGURES] + [k[0] for k in KEYS]
STARTS = [f[3] for f in FIGURES] + [k[3] for k in KEYS]
SPREADS = [f[4] for f in FIGURES] + [k[5] for k in KEYS]
SOURCE = (
    'fitted to measured runs by tests/fit-figures.py, with all others (docs/reference/points.md)')


def configuration(point):
    """What a prediction depends on: releases of the same framework have it in common."""
    keys = ('model', 'hardware', 'parallel', 'batch', 'precision', 'recompute', 'schedule',
            'optimizer', 'options')
    framework = re.sub(r'[0-9.]+', '', point.get('framework') or '')
    return json.dumps([point['id'].split('/')[0], framework] + [point.get(k) for k in keys])


def time_of(point):
    """Of a measured step, s."""
    measured = point['measured']
    if measured.get('step_time_s'):
        return measured['step_time_s']
    if measured.get('samples_per_s'):
        return point['batch']['global'] / measured['samples_per_s']
    tokens = measured.get('tokens_per_s_per_gpu')
    return (point['batch']['global'] * point['model']['seq'] / tokens / point['hardware']['gpus']
            if tokens else None)


def draw(points, most, alike):
    """Whole groups of configurations with the same model and GPUs in the order of their
    drawn, until there are `most`."""
    groups = collections.defaultdict(list)
    for point in points:
        groups[json.dumps([point['model'], point['hardware'], point['precision']])].append(point)
    order = sorted(groups)
    random.Random(SEED).shuffle(order)
    drawn = []
    for group in order:
        if len(drawn) + len(groups[group]) <= most:
            drawn += groups[group]
    for point in points:
        if not any(point is other for other in drawn):
            del alike[configuration(point)]
    return drawn


def read(files, folder, gpus, most):
    """The points with at most MOST GPUs that the fit uses, by id; of each configuration one, of a
    dataset at most a given number, in files of `folder`; and how many points a dataset has, those
    that were not drawn included."""
    points, alike, written = {}, collections.defaultdict(list), []
    sizes = collections.Counter()
    for name in files:
        root = KINDS.read_points(name)
        kept = []
        for point in root['points']:
            if ((point.get('quality') or 'C') in ('C', 'A-memory')
                or point['hardware']['gpus'] > gpus):
                continue
            try:
                time = time_of(point)
            except (KeyError, TypeError):
                continue
            if time:
                same = alike[configuration(point)]
                kept += [] if same else [point]
                same.append((point['id'], time))
                sizes[dataset(point['id'])] += 1
                points[point['id']] = (point, f'{folder}/{os.path.basename(name)}')
        kept = draw(kept, most, alike) if len(kept) > most else kept
        if kept:
            root['points'] = kept
            written.append(f'{folder}/{os.path.basename(name)}')
            with open(written[-1], 'w', encoding='utf-8') as file:
                json.dump(root, file)
    return points, {same[0][0]: same for same in alike.values()}, written, sizes


class Program:
    """`sim validate` of some of the points, with devices and keys changed."""

    def __init__(self, sim, devices, files, everything):
        self.sim, self.devices, self.folder = sim, devices, tempfile.mkdtemp()
        most = (MOST_GPUS, math.inf) if everything else (MOST_GPUS_DRAWN, DRAWN)
        self.points, self.alike, self.files, self.sizes = read(files, self.folder, *most)
        self.base = self.ask([])
        self.gpus, self.of_device = collections.defaultdict(set), collections.defaultdict(set)
        seen = {}
        for identity in self.base:
            point, name = self.points[identity]
            gpu = point['hardware']['gpu']
            if point['options'].get('profiled_ms'):
                continue
            if gpu not in seen:
                text = subprocess.run([sim, 'validate', name, '--scenario', identity], check=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
                seen[gpu] = json.loads(text)['model']['device']
            self.gpus[seen[gpu]].add(gpu.split(',')[0] + '*' if ',' in gpu else gpu)
            self.of_device[seen[gpu]].add(name)

    def ask(self, arguments, files=None):
        """Predicted over measured, logarithms, of each point with both."""
        files = sorted(self.files if files is None else files)
        done = subprocess.run([self.sim, 'validate', *files, '--json', *arguments], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if not files or done.returncode == NO_POINTS:
            return {}
        assert done.returncode == 0, arguments
        found = {}
        for point in json.loads(done.stdout)['points']:
            time = point.get('predicted_step_time_s')
            found.update({i: math.log(time / measured) for i, measured in self.alike[point['id']]
                          if time})
        return found

    def of(self, device, values, only=None):
        """Of a device's points, or some of them, with the figures' values."""
        with open(f'{self.devices}/{device}.json', encoding='utf-8') as file:
            root = json.load(file)
        for figure, value in zip(FIGURES, values):
            for place in figure[2] if device in figure[1] else []:
                set_figure(root, place, value)
        path = f'{self.folder}/{device}.json'
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(root, file)
        sets = ['--set', f'/model/device="{path}"', '--select',
                ','.join('gpu=' + g for g in self.gpus[device])]
        sets += ['--select', only] if only else []
        files = set(self.of_device[device])
        mine = collections.defaultdict(list)  # changes by the points that they belong to
        for key, value in zip(KEYS, values[len(FIGURES):]):
            if device in devices_of(key) and (not only or only == key[2]
                                              or 'framework' not in only):
                mine[key[2]] += set_of(key, value)
        for selection in mine:
            files -= self.of_frameworks(selection)  # asked below
        found = self.ask(sets, files)
        for selection, changes in mine.items():
            found.update(self.ask([*sets, '--select', selection, *changes], self.of_device[device]))
        return found

    def of_frameworks(self, selection):
        """Files whose points all are of the selected frameworks."""
        names = [part.split('=')[1] for part in selection.split(',')]
        others = {name for point, name in self.points.values()
                  if not any(fnmatch.fnmatch(point.get('framework') or '', n) for n in names)}
        return set(self.files) - others

    def key(self, key, value):
        return self.ask(['--select', key[2], *set_of(key, value)])


def devices_of(key):
    return [key[6]] if isinstance(key[6], str) else key[6] or []


def set_of(key, value):
    shown = f'{value:.4g}{key[4]}'
    return ['--set', f'{key[1]}="{shown}"' if key[4] else f'{key[1]}={shown}']


def set_figure(root, place, value):
    """Sets training/GROUP/MEMBER of a device's description."""
    group, member = place.split('/')
    training = root.setdefault('training', {})
    if group not in training:
        training[group] = {'source': SOURCE} if group == 'in_step' else {'compute': 0.5,
                                                                         'memory': 0.8,
                                                                          'source': SOURCE}
    training[group][member] = float(f'{value:.3g}')
    if member != 'memory' or group == 'memory':
        training[group]['source'] = SOURCE


# ---- least squares ----

def solve(matrix, right):
    """Gauss, of a symmetric positive matrix."""
    n = len(right)
    rows = [list(matrix[i]) + [right[i]] for i in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i])]
    found = [0.0] * n
    for i in reversed(range(n)):
        found[i] = (rows[i][n] - sum(rows[i][k] * found[k] for k in range(i + 1, n))) / rows[i][i]
    return found


def dataset(identity):
    return identity.split('/')[0]


def step(errors, slopes, away, weights, ids, held=()):
    """Changes of the logarithms of all figures but those `held` that make the errors of `ids`
    least; `away`: distance of each from its start; `weights`: weights of datasets."""
    n = len(SPREADS)
    change = [0.0] * n
    for _ in range(20):
        matrix = [[0.0] * n for _ in range(n)]
        right = [0.0] * n
        for k in range(n):
            matrix[k][k] = SPREADS[k] ** -2
            right[k] = -away[k] * SPREADS[k] ** -2
        for i in ids:
            row = {k: s for k, s in slopes[i].items() if k not in held}
            error = errors[i] + sum(s * change[k] for k, s in row.items())
            weight = weights[dataset(i)] / NOISE ** 2 / (1 + (error / ROBUST) ** 2)
            for k, s in row.items():
                right[k] -= weight * s * errors[i]
                for m, t in row.items():
                    matrix[k][m] += weight * s * t
        change = solve(matrix, [0 if k in held else value for k, value in enumerate(right)])
    return change


def weights_of(program):
    """Weight of a point by its dataset: drawn points weigh as the root of all points."""
    drawn = collections.Counter(dataset(i) for i in program.base)
    return {name: program.sizes[name] ** 0.5 / n for name, n in drawn.items()}


def worth(errors, slopes, away, weights):
    """Changes of figures that move by LEAST or more, once those that would move by less are held
    where they are."""
    held = set()
    while True:
        change = step(errors, slopes, away, weights, list(errors), held)
        small = {k for k, c in enumerate(change) if abs(c) < LEAST} - held
        if not small:
            return change
        held.add(min(small, key=lambda k: abs(change[k])))


# ---- the fit ----

def evaluate(program, values):
    found = dict(program.base)
    for device in program.gpus:
        if any(device in figure[1] for figure in FIGURES):
            found.update(program.of(device, values))
    for key, value in zip(KEYS, values[len(FIGURES):]):
        if key[6] is None:
            found.update(program.key(key, value))
    return found


def derive(program, values, errors):
    """Of each point, by how much its error changes with the logarithms of figures."""
    slopes = collections.defaultdict(dict)
    for k, value in enumerate(values):
        moved = list(values)
        moved[k] = value * math.exp(STEP)
        found = {}
        if k < len(FIGURES):
            for device in FIGURES[k][1]:
                if device in program.gpus:
                    only = ABOUT.get(FIGURES[k][2][0].split('/')[0])
                    found.update(program.of(device, moved, only))
        elif KEYS[k - len(FIGURES)][6]:
            for device in devices_of(KEYS[k - len(FIGURES)]):
                if device in program.gpus:
                    found.update(program.of(device, moved, KEYS[k - len(FIGURES)][2]))
        else:
            found.update(program.key(KEYS[k - len(FIGURES)], moved[k]))
        for i, error in found.items():
            if abs(error - errors[i]) > 1e-6:
                slopes[i][k] = (error - errors[i]) / STEP
        print(f'  {NAMES[k]}', file=sys.stderr, flush=True)
    return slopes


def mean_error(errors):
    return statistics.mean(abs(math.expm1(e)) for e in errors)


def bias(errors):
    return statistics.mean(math.expm1(e) for e in errors)


def left_out(after, slopes, away, weights):
    """Errors of each point with the figures that are fitted to all datasets but its own."""
    found = {}
    for name in {dataset(i) for i in after}:
        change = step(after, slopes, away, weights, [i for i in after if dataset(i) != name])
        for i in after:
            if dataset(i) == name:
                found[i] = after[i] + sum(s * change[k] for k, s in slopes[i].items())
    return found


def print_errors(before, after, left):
    print(f'{"dataset":18} points    before      bias   fitted      bias  by others      bias')
    for name in sorted({dataset(i) for i in after}):
        shown = [[e[i] for i in after if dataset(i) == name] for e in (before, after, left)]
        print(f'{name:18} {len(shown[0]):6}' + ''.join(f'  {100 * mean_error(e):6.1f} % '
                                                       f'{100 * bias(e):+7.1f} %'
                                                       for e in shown))


def print_kinds(points, after, left):
    """Errors by others of each kind of run that has a target, against 1.5 times that; of all its
    points, and of each dataset's. Above the limit is marked."""
    print(f'{"kind of run, dataset":40} points   target   fitted  by others      bias  limit')
    for name, target, belongs in KINDS.TARGETS:
        own = [i for i in after if dataset(i) != KINDS.ASIDE and belongs(points[i][0])]
        names = sorted({dataset(i) for i in own})
        for row in [None, *names][:1 if len(names) == 1 else None] if own else []:
            chosen = [i for i in own if row in (None, dataset(i))]
            own_fit, others = [[e[i] for i in chosen] for e in (after, left)]
            limit = LIMIT * target
            print(f'{"  " + row if row else name:40} {len(chosen):6}  {target:5} %  '
                  f'{100 * mean_error(own_fit):5.1f} %'
                  f'    {100 * mean_error(others):5.1f} %  {100 * bias(others):+6.1f} %'
                  f'  {limit:4.1f}{" *" if 100 * mean_error(others) > limit else ""}')


def print_figures(values):
    counts = collections.Counter(device for figure in FIGURES for device in figure[1])
    for k, value in enumerate(values):
        print(f'{NAMES[k]:24} {STARTS[k]:7.4g} -> {value:7.4g}')
    print('fitted figures of a device: ' + ', '.join(f'{d} {n}' for d, n in counts.items()) +
          '; of a runtime: at most 2')
    assert max(counts.values()) <= MOST


def write(devices, values):
    for device in sorted({device for figure in FIGURES for device in figure[1]}):
        path = f'{devices}/{device}.json'
        with open(path, encoding='utf-8') as file:
            root = json.load(file)
        for figure, value in zip(FIGURES, values):
            for place in figure[2] if device in figure[1] else []:
                set_figure(root, place, value)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(json.dumps(root, indent=2) + '\n')


def runtime(devices, key):
    """The description of a runtime that has a fitted value of a key: its path, and its text."""
    path = os.path.join(devices, os.pardir, 'runtimes', key[7] + '.json')
    with open(path, encoding='utf-8') as file:
        return path, file.read()


def fitted(key, text):
    """The number of a fitted value, and its place in the text of its runtime."""
    root = json.loads(text)
    rows = [row for name in ('conventions', 'assumes') for row in root.get(name, ())
            if row.get('fitted')]
    row = next((row for row in rows if row['key'] == key[1]), rows[0])
    found = re.search(rf'"key": "{row["key"]}",\s+"value": "?([0-9.e+-]+)(?=[^}}]*"fitted": true)',
                      text)
    return float(found.group(1)), found.span(1)


def write_keys(devices, values):
    for key, value in zip(KEYS, values):
        path, text = runtime(devices, key)
        start, end = fitted(key, text)[1]
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text[:start] + f'{value:.3g}' + text[end:])


def current(devices):
    """Figures as the devices and the runtimes have them."""
    values = list(STARTS)
    for k, figure in enumerate(FIGURES):
        with open(f'{devices}/{figure[1][0]}.json', encoding='utf-8') as file:
            training = json.load(file).get('training', {})
        group, member = figure[2][0].split('/')
        values[k] = training.get(group, {}).get(member, STARTS[k])
    values[len(FIGURES):] = [fitted(key, runtime(devices, key)[1])[0] for key in KEYS]
    return values


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith('--')]
    option = '--left-out='
    outputs = [a[len(option):] for a in sys.argv[1:] if a.startswith(option)]
    program = Program(*arguments[:2], arguments[2:], '--all' in sys.argv)
    values, weights = current(arguments[1]), weights_of(program)
    errors = evaluate(program, values)
    slopes = {}
    for _ in range(ROUNDS):
        slopes = derive(program, values, errors)
        away = [math.log(v / s) for v, s in zip(values, STARTS)]
        change = worth(errors, slopes, away, weights)
        values = [v * math.exp(c) for v, c in zip(values, change)]
        errors = evaluate(program, values)
        print(f'mean error {100 * mean_error(errors.values()):.2f} %', file=sys.stderr, flush=True)
    print_figures(values)
    left = left_out(errors, slopes, [math.log(v / s) for v, s in zip(values, STARTS)], weights)
    for path in outputs:
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(left, file, indent=0)
    print_errors(program.base, errors, left)
    print_kinds(program.points, errors, left)
    if '--write' in sys.argv:
        write(arguments[1], values)
        write_keys(arguments[1], values[len(FIGURES):])
    return 0


if __name__ == '__main__':
    sys.exit(main())

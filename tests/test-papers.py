#!/usr/bin/env python3
"""Figures of papers: test-papers.py SIM SOURCE_ROOT [TEST ...] [--update [FIGURE ...]]

- The pages papers-*.md in docs/reference have the tables of `sim figures`: of all figures but the
  slow ones, which SIM_TESTS=long compares too; with --update the named figures are computed, or
  all, and the pages are written.
- In a short form, from scenarios with fewer points, rows are compared with evaluations of their
  own: formulas written down here, models that other commands print, pages that other tests check.
- Stopping and going on, the same bytes from any number of threads, errors.
"""
import html.parser
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SIM, ROOT = [os.path.abspath(word) for word in sys.argv[1:3]]
UPDATE = '--update' in sys.argv
NAMED = sys.argv[sys.argv.index('--update') + 1:] if UPDATE else []
PAPERS = ('cdp', 'timeprest', 'madpipe', 'osdp', 'paradl')
PAGES = {paper: os.path.join(ROOT, 'docs', 'reference', f'papers-{paper}.md') for paper in PAPERS}
BEGIN, END = '<!-- figures -->\n', '<!-- end of figures -->\n'
LONG = os.environ.get('SIM_TESTS') == 'long'
# more than a quarter of a minute each
SLOW = {'madpipe-targets', 'madpipe-fig6', 'madpipe-fig7', 'madpipe-fig8', 'osdp-table1',
        'paradl-fig3', 'timeprest-versions'}
FOLDER = tempfile.mkdtemp(prefix='sim-papers-')


def run(*words, status=0, env=None):
    done = subprocess.run([SIM, *words], capture_output=True, text=True, check=False, env=env)
    if done.returncode != status:
        raise AssertionError(f'{words}: status {done.returncode}: {done.stdout}{done.stderr}')
    return done.stdout if status == 0 else done.stderr


def read(*path):
    with open(os.path.join(*path), encoding='utf-8') as file:
        return file.read()


def ids():
    return re.findall(r'^  (\S+) ', run('figures', '--list'), re.MULTILINE)


def sections(text):
    """Of a report or of the page: each figure's text, without pictures."""
    parts = re.split(r'^### (\S+): .*$', re.sub(r'^## (?:.|\n)*?(?=^### )', '', text,
                                                flags=re.MULTILINE),
                     flags=re.MULTILINE)
    return {name: re.sub(r'\n!\[.*\n', '', body) for name, body in zip(parts[1::2], parts[2::2])}


def rows(body):
    """Cells of all rows of a figure's tables, by the first one."""
    found = {}
    for line in body.splitlines():
        if line.startswith('| ') and not line.startswith('|--'):
            cells = [re.sub(r'\\(.)', r'\1', cell).strip()
                     for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
            found[cells[0]] = cells[1:]
    return found


def number(cell):
    return float(re.search(r'-?[\d.]+', cell)[0])


def figures(name, *words, only=None, env=None):
    """The report's figures, computed in a folder of that name."""
    out = os.path.join(FOLDER, name)
    chosen = ['--only', ','.join(only)] if only else []
    run('figures', '-o', out, *chosen, *words, env=env)
    return sections(read(out, 'report.md'))


COMPUTED = {}


def computed(names):
    """Figures from the scenarios of the tree; all tests share them."""
    missing = [name for name in names if name not in COMPUTED]
    if missing:
        COMPUTED.update(figures(f'shared-{len(COMPUTED)}', only=missing))
    return {name: COMPUTED[name] for name in names}


def short(**changes):
    """A folder of scenarios, some with other values: name -> {pointer of "vary": values}."""
    folder = tempfile.mkdtemp(dir=FOLDER)
    for name in ('papers', 'madpipe'):
        shutil.copytree(os.path.join(ROOT, 'scenarios', name), os.path.join(folder, name))
    shutil.copy(os.path.join(ROOT, 'scenarios', 'timeprest-wn.json'), folder)
    for name, values in changes.items():
        path = os.path.join(folder, name.replace('__', '/').replace('_', '-') + '.json')
        document = json.loads(read(path))
        document['sweep']['vary'].update(values)
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(document, file)
    return folder


def page():
    """The tables of all pages."""
    texts = [read(PAGES[paper]) for paper in PAPERS]
    return ''.join('## \n' + text[text.index(BEGIN) + len(BEGIN):text.index(END)] for text in texts)


def gnuplot():
    return shutil.which('gnuplot') is not None


class Page(unittest.TestCase):
    @staticmethod
    def write(paper, report, made):
        """Writes a page with the new figures; without names, the report replaces all of them."""
        text = read(PAGES[paper])
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        body = text[begin:end]
        if not NAMED:
            body = next(part for part in re.split(r'^## .*\n', report, flags=re.MULTILINE)
                        if f'\n### {paper}-' in part).strip('\n')
            body = '\n' + re.sub(r'\n!\[.*\n', '', body) + '\n\n'
        for name in NAMED:
            body = re.sub(rf'(?<=^### )({name}: .*\n)(?:.|\n)*?(?=^###|\Z)',
                          lambda found, new=made[name]: found[1] + '\n' + new.strip('\n') + '\n\n',
                          body, flags=re.MULTILINE)
        with open(PAGES[paper], 'w', encoding='utf-8') as file:
            file.write(text[:begin] + body + text[end:])

    def test_tables(self):
        """The pages have what is computed."""
        if UPDATE:
            made = figures('all', only=NAMED or None)
            for paper in PAPERS:
                self.write(paper, read(FOLDER, 'all', 'report.md'), made)
            return
        known = ids()
        stated = sections(page() + '\n')
        self.assertEqual(list(stated), known, 'tests/test-papers.py --update writes the pages')
        made = computed([name for name in known if LONG or name not in SLOW])
        for name, body in made.items():
            self.assertEqual(stated[name].strip(), body.strip(), name)


class Rows(unittest.TestCase):
    def test_cdp_table(self):
        """Formulas of the paper's table 1, and of schedules/cdp.md, for another N; the unit is a
        stage of 1 GB. Bytes that cyclic ZeRO has to send are counted user by user below."""
        n, large = 6, 8
        found = rows(figures('cdp', '--scenarios', short(papers__cdp_table1={
            '/schedule/micro_batches': [2, n, large]}), only=['cdp-table1'])['cdp-table1'])
        expected = {
            'single GPU': [1, n * n, n], 'single GPU, cyclic': [1, n * (n + 1) / 2],
            'multi-GPU': [n, n, n, n], 'multi-GPU, cyclic': [n, n, n, n],
            'model parallel': [n * n, 1, 1, n + n - 1],
            'model parallel, cyclic': [n * (n + 1) / 2, 1, 1, n / 2 + n - 1],
            'pipeline, cyclic': [n, n, 2, n - 1],
            'ZeRO': [n, n, 2, 3 * n / 2],
            'ZeRO, cyclic': [n, n, 2, self.moves(n) / (2 * (n - 1))],
        }
        columns = ['GPUs', 'activations of a GPU', 'parameters of a GPU', 'volume']
        for setting, values in expected.items():
            for column, value in zip(columns, values):
                cell = found[f'{setting}, N = {n}: {column}'][2]
                self.assertAlmostEqual(number(cell), value, delta=0.051, msg=f'{setting}: {column}')
        for setting, ratio in (('multi-GPU', 1), ('model parallel', 1 / 2),
                               ('ZeRO', self.moves(large) / (3 * large * (large - 1)))):
            ours = found[f'{setting}, N = {large}: states sent, cyclic over DP'][2]
            self.assertAlmostEqual(number(ours), ratio, delta=0.051, msg=setting)
        name = f'GPUs of equal memory, batch B, N = {large}: '
        self.assertEqual(number(found[name + 'pipelines with DP'][2]), large * large)
        self.assertEqual(number(found[name + 'model parallel, cyclic'][2]), large * (large + 1) / 2)

    @staticmethod
    def moves(n):
        """Stages of 1 GB that change their GPU: micro-batch i of mini-batch t is on stage j in
        steps 2nt + 2i + j and, backward, 2nt + 2i + 2n - 1 - j (from 0). It reads version t if
        i + j >= n - 1, else version t - 1, which the last micro-batch of mini-batch t - 2 made."""
        weights = 0
        for j in range(n):
            users = []
            for t in (3, 4):
                for i in range(n):
                    if (t if i + j >= n - 1 else t - 1) == 3:
                        start = 2 * n * t + 2 * i
                        users += [(start + j, i), (start + 2 * n - 1 - j, i)]
            order = [n - 1] + [gpu for _, gpu in sorted(users)]
            weights += sum(a != b for a, b in zip(order, order[1:]))
        return weights + n * (n - 1)

    def test_cdp_memory(self):
        """Means of shifted copies, added up at 20,000 times of a period, and from the layers that
        `sim model` prints."""
        found = computed(['cdp-fig4'])['cdp-fig4']
        table = re.findall(r'^\| (\S+) \| (what .*?|with .*?) \| ([\d.]+) GB \| ([\d.]+) % \| '
                           r'([\d.]+) % \| ([\d.]+) % \|',
                           found, re.MULTILINE)
        self.assertEqual(len(table), 6)
        for name, title in (('resnet50', 'ResNet-50'), ('vit_b16', 'ViT-B/16')):
            path = os.path.join(FOLDER, name + '.json')
            run('model', name, '-d', 'a100', '-b', '32', '-o', path, '--date', '2000-01-01')
            layers = json.loads(read(path))['layers']
            for counted, held, tracked in (('what layers keep for backward', 0, 0),
                                           ('with gradients of weights', 1, 0),
                                           ('with gradients of weights and workspaces', 1, 1)):
                row = next(r for r in table if r[:2] == (title, counted))
                peaks = [self.peak(layers, workers, held, tracked) for workers in (1, 4, 8, 32)]
                self.assertAlmostEqual(float(row[2]), peaks[0] / 1e9, delta=0.006)
                for cell, peak in zip(row[3:], peaks[1:]):
                    # a grid of times may miss a short peak
                    self.assertAlmostEqual(float(cell), 100 * (1 - peak / peaks[0]), delta=0.15)

    @staticmethod
    def peak(layers, workers, held, tracked, samples=20000):
        spans, at, kept, gradients = [], 0, 0, 0
        for layer in layers:
            kept += layer['kept']
            spans.append((at, kept + tracked * layer['workspace']))
            at += layer['forward']
        for layer in reversed(layers):
            gradients += layer['weights']
            spans.append((at, kept + held * gradients + tracked * layer['workspace']))
            at += layer['backward_input'] + layer['backward_weight']
            kept -= layer['kept']
        curve, index = [], 0
        for i in range(samples):
            while index + 1 < len(spans) and spans[index + 1][0] <= at * i / samples:
                index += 1
            curve.append(spans[index][1])
        return max(sum(curve[(i + samples * w // workers) % samples]
                       for w in range(workers)) / workers
                   for i in range(samples))

    def test_versions(self):
        """v = ceil(W / (N + 1)) by the derivation of schedules/nf1b.md, next to the paper's formula
        it."""
        body = figures('versions', '--scenarios', short(timeprest_wn={
            '/schedule/workers': '2..14', '/schedule/micro_batches': '2..8'}),
            only=['timeprest-versions'])['timeprest-versions']
        grid = [(w, n) for w in range(2, 15) for n in range(2, 9)]
        same = sum(math.ceil(w / (n + 1)) == (w + n - 2) // n for w, n in grid)
        self.assertLess(same, len(grid))
        found = rows(body)
        self.assertEqual(number(found['points where v = floor((W + N - 2)/N)'][2]), same)
        self.assertEqual(found['points where v = 1 if and only if W <= N + 1'][3], 'none')
        self.assertTrue(found['points where v = floor((W + N - 2)/N)'][4].endswith(
            f'{len(grid)} hold'))
        true = {w: {n: math.ceil(w / (n + 1)) for n in range(2, 9)} for w in range(2, 15)}
        equations = {
            'v = 1 if and only if floor((W + N - 1)/N) <= 2':
                lambda w, n: (true[w][n] == 1) == ((w + n - 1) // n <= 2),
            'v > 1 if and only if floor((W + N - 1)/N) > 2':
                lambda w, n: (true[w][n] > 1) == ((w + n - 1) // n > 2),
            'v <= floor((W + N - 1)/N)': lambda w, n: true[w][n] <= (w + n - 1) // n,
            'mini-batches form v sequences': lambda w, n: True,
        }
        for what, holds in equations.items():
            self.assertEqual(number(found[f'points where {what}'][2]),
                             sum(holds(w, n) for w, n in grid), what)

    def test_proportional_times(self):
        """With times in proportion to samples N micro-batches take as long as their mini-batch, and
        the slower GPU, which is never idle, decides."""
        made = computed(['timeprest-fig15'])['timeprest-fig15']
        for what, cells in rows(made).items():
            if 'does not hold' in cells and 'wait' not in what:
                self.assertAlmostEqual(number(cells[4].split('samples it is')[1]), 1, delta=0.002)

    def test_slots_hold(self):
        """What is a picture of the paper comes out as it is there."""
        names = [name for name in ids()
                 if re.match(r'cdp-fig[12]|timeprest-fig([579]|10)|madpipe-fig[235]', name)]
        self.assertEqual(len(names), 11)
        for name, body in computed(names).items():
            for what, cells in rows(body).items():
                if what and cells[0].startswith('caption'):  # one that the drawing contradicts
                    n = int(re.search(r'N = (\d+)', what)[1])
                    self.assertAlmostEqual(number(cells[2]), 100 * (n - 1) / (2 * n), delta=0.06)
                elif what:
                    self.assertEqual(cells[3], 'none', f'{name}: {what}')

    def test_memory_of_stages(self):
        """PipeDream's and TiMePReSt's peaks as `sim run` has them, with the cut that balances
        PipeDream."""
        found = rows(computed(['timeprest-fig16'])['timeprest-fig16'])
        scenario = os.path.join(ROOT, 'scenarios', 'papers', 'timeprest-cifar.json')
        pipedream = json.loads(run('run', scenario, '--no-output', '--json'))
        path = os.path.join(FOLDER, 'vgg16.json')
        run('model', 'vgg16', '-d', 'titan-rtx', '-b', '64', '-p', 'image=32', '-p', 'classes=100',
            '-o', path, '--date', '2000-01-01')
        times = [sum(layer[part] for part in ('forward', 'backward_input', 'backward_weight'))
                 for layer in json.loads(read(path))['layers']]
        cut = min(range(1, len(times)), key=lambda c: max(sum(times[:c]), sum(times[c:]) / 0.62))
        schedule = {'kind': 'nf1b', 'micro_batches': 4, 'in_flight': 2, 'partition': [cut]}
        other = json.loads(run('run', scenario, '--no-output', '--json', '-s',
                               '/schedule=' + json.dumps(schedule)))
        for stage in (0, 1):
            peaks = [result['devices'][stage]['peak_memory_bytes'] for result in (other, pipedream)]
            ours = found[f'CIFAR-100, stage {stage}, TiMePReSt, N = 4, 2 in flight: less memory '
                         f'than PipeDream'][2]
            self.assertAlmostEqual(number(ours), 100 * (1 - peaks[0] / peaks[1]), delta=0.06)

    def test_madpipe(self):
        """Means and counts from the output of `sim sweep` for a corner of the study."""
        axes = {'/model/name': ['resnet50'], '/platform/devices': [2, 8],
                '/platform/memory': ['6 GB', '8 GB', '12 GB'],
                '/platform/link_bandwidth': ['12 GB/s']}
        folder = short(madpipe__study=axes)
        made = figures('madpipe', '--scenarios', folder, only=['madpipe-fig6', 'madpipe-fig7'])
        points = json.loads(run('sweep', os.path.join(folder, 'madpipe', 'study.json'),
                                '--no-output', '--json'))
        periods = {}
        for point in points['points']:
            planner = point['set']['/schedule/partition']
            kind = planner.get('memory_rule', planner.get('special', planner['planner']))
            key = point['set']['/platform/devices'], point['set']['/platform/memory']
            periods.setdefault(kind, {})[key] = point.get('result', {}).get('plan_period_s')
        names = {'depth': 'PipeDream, rule depth', 'original': 'PipeDream, rule original'}
        body = made['madpipe-fig7']
        for rule, name in names.items():
            pairs = [(periods[rule][key], periods['optimistic'][key]) for key in periods[rule]
                     if key[1] != '12 GB' and periods[rule][key] and periods['optimistic'][key]]
            mean = math.exp(sum(math.log(a / b) for a, b in pairs) / len(pairs))
            cells = re.search(rf'^\| {name} \| MadPipe \| ([\d.]+) \| [\d.]+ \| (\d+) \|', body,
                              re.MULTILINE)
            self.assertAlmostEqual(float(cells[1]), mean, delta=0.006)
            self.assertEqual(int(cells[2]), len(pairs))
            largest = max(periods[rule][key] / periods['optimistic'][key] for key in periods[rule]
                          if periods[rule][key] and periods['optimistic'][key])
            row = rows(made['madpipe-fig6'])[f"{name}: largest period over MadPipe's"]
            self.assertAlmostEqual(number(row[2]), largest, delta=0.06)

    def test_madpipe_patterns(self):
        """Delays of all patterns by a loop over whole stages, against proposition 1."""
        found = rows(computed(['madpipe-fig3'])['madpipe-fig3'])
        stages, period = [(1, 2), (1, 2), (2, 4), (1, 2), (1, 2)], 6
        fewest = [math.inf] * len(stages)
        for delays in itertools.product(range(0, 4 * period), repeat=2):
            waits, valid = 0, True  # the first stages wait as little as they can
            for s in range(len(stages) - 1, -1, -1):
                busy = sum(stages[s])
                delay = waits + (delays[4 - s] if s >= 3 else 0)
                while s < 3 and delay % period + busy > period:
                    delay += 1
                valid = valid and delay % period + busy <= period
                if valid:
                    fewest[s] = min(fewest[s], math.ceil((busy + delay) / period))
                waits = delay + busy
        for s, kept in enumerate(fewest):
            row = found[f'fewest activations of stage {s + 1} in any pattern']
            self.assertEqual([number(row[2]), row[3]], [kept, 'none'])

    def test_madpipe_grids(self):
        """More memory and a longer promised period: by the paper's grids, not by finer ones."""
        base = json.loads(read(ROOT, 'scenarios', 'madpipe', 'study.json'))
        del base['sweep']
        for finer in (1, 4):
            promised = []
            for memory in ('11 GB', '12 GB'):
                base['platform'].update(devices=4, memory=memory, link_bandwidth='24 GB/s')
                base['schedule']['partition'] = {
                    'planner': 'madpipe', 'special': 'safe', 'node_limit': 1, 'time_limit': '1 s',
                    'loads': 100 * finer + 1, 'memories': 10 * finer + 1,
                    'delays': 50 * finer + 1}
                path = os.path.join(FOLDER, 'grids.json')
                with open(path, 'w', encoding='utf-8') as file:
                    json.dump(base, file)
                promised.append(json.loads(run('run', path, '--no-output', '--json'))
                                ['plan_promised_period_s'])
            self.assertEqual(promised[1] > promised[0], finer == 1)

    def test_osdp(self):
        """Gains as in the table of schedules/osdp/osdp.md, which another test makes with `sim
        osdp`."""
        claims = read(ROOT, 'schedules', 'osdp', 'osdp.md')
        made = rows(page())
        for column, kind in enumerate(('N&D', 'W&S', 'I&C')):
            stated = next(line for line in claims.splitlines()
                          if line.startswith(f'| figure 5, {kind} |')).split(' | ')
            for row, cell in (('cost model', 2), ('of it by modes, at FSDP\'s batch', 3),
                              ('of it by slices', 4),
                              ('by modes, one sample a device', 5),
                              ('simulated, messages beside computing', 6)):
                self.assertEqual(made[row][column], stated[cell].rstrip(' |'), f'{kind}: {row}')
        for figure, what in (('figure 6, all, two servers', 'OSDP over FSDP, two servers'),
                             ('figure 9, all, checkpointing', 'OSDP over FSDP, checkpointing')):
            stated = next(line for line in claims.splitlines()
                          if line.startswith(f'| {figure} |')).split(' | ')[2]
            mean, largest, settings = re.match(r'([\d.]+), ([\d.]+) \((\d+)\)', stated).groups()
            for word, value in (('mean', mean), ('largest', largest)):
                ours = made[f'{what}: {word} ({settings} settings)'][2]
                self.assertAlmostEqual(number(ours), float(value), delta=0.051)

    @staticmethod
    def printed(*words):
        """JSON, also if nothing fits."""
        return json.loads(subprocess.run([SIM, *words], capture_output=True, text=True,
                                         check=False).stdout)

    def test_osdp_pure_strategies(self):
        """Wide models: OSDP's plan from `sim osdp`, over FSDP, and over pipelines and tensor
        parallelism, whose best batch is looked for here among powers of two."""
        scenario = json.loads(read(ROOT, 'scenarios', 'papers', 'osdp-8gpu.json'))
        axes = scenario.pop('sweep')['vary']
        gains = []
        for parameters in axes['/model/parameters'][4:8]:
            for memory in axes['/platform/memory']:
                scenario['model']['parameters'] = parameters
                scenario['platform']['memory'] = memory
                scenario['schedule'] = {'kind': 'sequential', 'micro_batches': 1}
                scenario['parallel'] = {'zero': 3}
                path = os.path.join(FOLDER, 'wide.json')
                with open(path, 'w', encoding='utf-8') as file:
                    json.dump(scenario, file)
                rates = {row['strategy']: row for row in
                         self.printed('osdp', path, '--json')['strategies']}
                osdp, fsdp = [rates[name].get('throughput_samples_per_s')
                              for name in ('OSDP', 'FSDP')]
                scenario['parallel'] = {'tensor': 8}
                best = 0
                for batch in (8 * 2 ** i for i in range(8)):
                    scenario['model']['batch_size'] = batch
                    with open(path, 'w', encoding='utf-8') as file:
                        json.dump(scenario, file)
                    done = self.printed('run', path, '--no-output', '--json')
                    if done['out_of_memory'] or not done.get('throughput_samples_per_s'):
                        break
                    best = max(best, done['throughput_samples_per_s'])
                scenario['model']['batch_size'] = 8
                gains += [100 * (osdp / rate - 1) for rate in (fsdp, best) if osdp and rate]
        row = rows(page())[f'W&S: OSDP over pure strategies: mean ({len(gains)} pairs)']
        self.assertAlmostEqual(number(row[2]), sum(gains) / len(gains), delta=0.06)

    def test_osdp_in_stages(self):
        """3D + OSDP over 3D with a small model: all combinations, batches and shares of sharded
        slices, each run by itself; the best of those that fit. The models of the study have to
        differ: in the probability of dropout, which takes no time."""
        model = {'layers': 4, 'hidden': 256, 'sequence': 64, 'vocabulary': 512}
        memories = ['30 MB', '60 MB']
        scenario = json.loads(read(ROOT, 'scenarios', 'papers', 'osdp-8gpu.json'))
        del scenario['sweep']
        scenario['model']['parameters'] = model
        path = os.path.join(FOLDER, 'stages.json')
        gains = []
        for memory in memories:
            scenario['platform']['memory'] = memory
            best = {'plain': 0, 'sharded': 0}
            for stages, tensor in ((1, 2), (1, 4), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2)):
                data = 8 // stages // tensor
                scenario['schedule'] = {'kind': 'gpipe', 'micro_batches': 8} if stages > 1 else \
                    {'kind': 'sequential', 'micro_batches': 1}
                batch, fits = 8 * data if stages > 1 else 8, True
                while fits:
                    scenario['model']['batch_size'] = batch
                    fits = False
                    for sharded, once in itertools.product(range(5 if data > 1 else 1), (0, 1)):
                        scenario['parallel'] = {'pipeline': stages, 'tensor': tensor, 'data': data}
                        if sharded:
                            scenario['parallel'].update(
                                rules=[{'layers': '*', 'sharded': sharded / 4}],
                                gather_once=bool(once))
                        with open(path, 'w', encoding='utf-8') as file:
                            json.dump(scenario, file)
                        made = self.printed('run', path, '--no-output', '--json')
                        if made['out_of_memory']:
                            continue
                        fits = True
                        rate = made['throughput_samples_per_s']
                        best['sharded'] = max(best['sharded'], rate)
                        if not sharded:
                            best['plain'] = max(best['plain'], rate)
                    batch *= 2
            gains.append(100 * (best['sharded'] / best['plain'] - 1))
        body = figures('stages', '--scenarios', short(papers__osdp_8gpu={
            '/model/parameters': [dict(model, dropout=0.01 * i) for i in range(1, 13)],
            '/platform/memory': memories,
            '/model/recompute': [False]}), only=['osdp-fig5'])['osdp-fig5']
        made = rows(body)
        self.assertGreater(max(gains), 1)
        for word, value in (('mean', sum(gains) / len(gains)), ('largest', max(gains))):
            self.assertAlmostEqual(number(made[f'3D + OSDP over 3D: {word} (24 pairs)'][2]), value,
                                   delta=0.06)

    def test_bound_of_modes(self):
        """16 bytes a parameter are whole in data mode, an eighth in sharded mode. With a share s in
        data mode 3 - s (with checkpointing 4 - 2 s) of the weights' bytes are moved. Of the table's
        models, to two decimals of billions; with checkpointing FSDP fits with all but the
        widest."""
        text = page()
        lines = [line.split(' | ') for line in text.splitlines()
                 if re.match(r'\| (N&D|W&S|I&C) \| \{', line)]
        made = rows(text)
        for prefix, moved in (('', 3), ('checkpointing, ', 4)):
            cells = made[prefix + 'bound of modes: no time to compute, no activations']
            for kind, cell in zip(('N&D', 'I&C'), (cells[0], cells[2])):
                bounds = []
                for line in (line for line in lines if line[0] == f'| {kind}'):
                    for memory in (8 * 2**30, 16 * 2**30):
                        room = memory / (16e9 * float(line[2].rstrip('B')))
                        share = min(max((room - 1 / 8) * 8 / 7, 0), 1)
                        bounds.append(100 * (moved / (moved - (moved - 2) * share) - 1))
                mean, largest, settings = re.match(r'([\d.]+), ([\d.]+) \((\d+)\)', cell).groups()
                self.assertAlmostEqual(float(largest), max(bounds), delta=0.7)
                if int(settings) == len(bounds):
                    self.assertAlmostEqual(float(mean), sum(bounds) / len(bounds), delta=0.3)
                else:  # the largest model at 8 GiB, where FSDP does not fit, has the least
                    self.assertAlmostEqual(float(mean), sum(sorted(bounds)[1:]) / 7, delta=0.3)
        self.assertLess(
            float(made['bound of modes: no time to compute, no activations'][0].split(',')[0]), 22)

    def test_vgg_in_chainer(self):
        """Layer by layer: 3 x 3 convolutions with biases, poolings that round 226 up to 113, ...,
        8."""
        side, channels, parameters = 226, 3, 0
        for block, features in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
            for _ in range(block):
                parameters += (9 * channels + 1) * features
                channels = features
            side = math.ceil(side / 2)
        for inputs, features in ((side * side * 512, 4096), (4096, 4096), (4096, 1000)):
            parameters += (inputs + 1) * features
        row = rows(page())['VGG16, 226 pixels in Chainer: parameters, millions']
        self.assertEqual(number(row[2]), round(parameters / 1e6, 1))
        self.assertEqual(math.floor(parameters / 1e6), number(row[1]))

    def test_paradl(self):
        """Closed forms as `sim strategies` has them, parameters as they are published."""
        made = rows(page())
        forms = json.loads(run('strategies', 'resnet50', '--devices', '16', '--batch', '512',
                               '--platform', 'abci',
                               '--device', 'v100', '--json'))['strategies']
        data = next(form for form in forms if form['strategy'] == 'data')
        row = made['data, ResNet-50, 16 GPUs: computing simulated']
        self.assertAlmostEqual(number(row[1].split('=')[1]), 1e3 * data['computing_s'], delta=0.006)
        row = made['data, ResNet-50, 16 GPUs: messages simulated']
        self.assertAlmostEqual(number(row[1].split('=')[1]), 1e3 * data['messages_s'], delta=0.006)
        # torchvision: 25,557,032; 60,192,808; 138,357,544
        for title, parameters in (('ResNet-50', 25.6), ('ResNet-152', 60.2), ('VGG16', 138.4)):
            self.assertEqual(number(made[f'{title}: parameters, millions'][2]), parameters)

    def test_paradl_one_ring(self):
        """One ring in the form and in the simulation: they differ in the gradients of biases of
        convolutions and linear layers and of batch norms, here of ResNet-50, VGG-16 and
        ResNet-152, and these are less than 0.3 % of the messages."""
        made = rows(page())
        self.assertGreater(number(made['accuracy, data'][2]), 99.9)
        row = made['data, ResNet-50, 16 GPUs: messages simulated']
        form, ours = number(row[1].split('=')[1]), number(row[2])
        biases = 26560 + 1000  # of batch norms, of the last layer
        self.assertAlmostEqual(ours / form, 25557032 / (25557032 - biases), delta=0.0005)
        # without its cause a difference closes
        causes = [line.split(' | ') for line in page().splitlines()
                  if re.match(r'\| (data \+ spatial|pipeline) \| (resnet|vgg)', line)]
        self.assertEqual(len(causes), 6)
        for cells in causes:
            self.assertLess(100 - number(cells[4]), 0.65 * (100 - number(cells[2])), cells)
        self.assertGreater(number(made['accuracy, CosmoFlow, data + spatial'][4].split('is ')[1]),
                           99)

    def test_paradl_update(self):
        """PyTorch's Adam took 8.7 % of VGG-16's computing with 32 samples, 15.6 % with 16."""
        row = rows(page())['VGG16: weight update, largest share of computing']
        self.assertAlmostEqual(number(row[2]), 15.6, delta=0.06)
        self.assertAlmostEqual(number(row[4].split('32 samples it is')[1]), 8.7, delta=0.06)

    def test_paradl_halo(self):
        """NVLinks of 50 GB/s between two GPUs, 10 GB/s between two sockets; a twentieth of
        messages' times are latencies."""
        row = rows(page())['halo exchange over gradient exchange, ResNet-50, 128 GPUs']
        nvlink = number(row[4].split('over NVLink it is')[1])
        self.assertAlmostEqual(number(row[2]) / nvlink, 50 / 10, delta=0.25)

    def test_paradl_layers(self):
        """ResNets are named after them; VGG-16: 13 convolutions, 15 ReLUs, 5 poolings, 3 linear
        layers and 2 dropouts, and torchvision's average pooling."""
        made = rows(page())
        path = 'layers, counted as convolutions and linear layers on the longest path'
        for title, layers in (('ResNet-50', 50), ('ResNet-152', 152)):
            self.assertEqual(number(made[f'{title}: {path}'][2]), layers)
        self.assertEqual(number(made['VGG16: layers, counted as all operators'][2]),
                         13 + 15 + 5 + 3 + 2 + 1)


class Cells(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.n, self.pictures, self.open = 0, [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.n += tag == 'tr'
        if tag == 'img':
            self.pictures.append(dict(attrs)['src'])
        elif tag not in ('meta', '!doctype'):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class Work(unittest.TestCase):
    CHOSEN = ['cdp-fig1', 'cdp-fig4', 'timeprest-versions', 'paradl-fig6']

    @classmethod
    def setUpClass(cls):
        cls.scenarios = short(timeprest_wn={'/schedule/workers': '2..9',
                                            '/schedule/micro_batches': '2..5'})

    def chosen(self, name, **more):
        return figures(name, '--scenarios', self.scenarios, *more.pop('words', ()),
                       only=self.CHOSEN, **more)

    def folder(self, name):
        """All files except journals, which have points in the order of completion."""
        top = os.path.join(FOLDER, name)
        contents = {}
        for file in sorted(os.listdir(top)):
            if os.path.isfile(os.path.join(top, file)):
                with open(os.path.join(top, file), 'rb') as opened:
                    contents[file] = opened.read()
        return contents

    def test_same_bytes(self):
        """With any number of threads, in another time zone and locale, and when nothing is left to
        do."""
        words = ['figures', '-o', os.path.join(FOLDER, 'one'), '--only', ','.join(self.CHOSEN),
                 '--scenarios', self.scenarios]
        first = run(*words, '-j', '1')
        self.assertNotIn('already there', first)
        self.chosen('three', words=['-j', '3'],
                    env=dict(os.environ, TZ='Asia/Tokyo', LC_ALL='de_DE.UTF-8'))
        self.assertEqual(self.folder('one'), self.folder('three'))
        again = run(*words)
        self.assertEqual(self.folder('one'), self.folder('three'))
        if gnuplot():
            self.assertEqual(again.count('already there'), len(self.CHOSEN))

    def test_goes_on(self):
        """Interrupted while it computes, the same command ends in the same report."""
        folder = short(madpipe__study={'/model/name': ['resnet50'], '/platform/devices': '2..5'})
        words = [SIM, 'figures', '-o', os.path.join(FOLDER, 'stopped'), '--only', 'madpipe-fig7',
                 '--scenarios', folder]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        journal = os.path.join(FOLDER, 'stopped', 'data', 'study.journal')
        for _ in range(600):
            time.sleep(0.05)
            if os.path.exists(journal) and read(journal).count('\n') > 20:
                break
        process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, 130)
        done = read(journal)
        self.assertFalse(os.path.exists(os.path.join(FOLDER, 'stopped', 'report.md')))
        stopped = figures('stopped', '--scenarios', folder, only=['madpipe-fig7'])
        self.assertTrue(read(journal).startswith(done[:done.rindex('\n')]),
                        'what was done is not done again')
        self.assertEqual(stopped, figures('whole', '--scenarios', folder, only=['madpipe-fig7']))

    def test_other_scenarios(self):
        """A scenario that changed is computed again."""
        self.assertIn('all = 32 ', figures('other', '--scenarios', self.scenarios,
                                              only=['timeprest-versions'])
                      ['timeprest-versions'])
        folder = short(
            timeprest_wn={'/schedule/workers': '2..4', '/schedule/micro_batches': '2..3'})
        body = figures('other', '--scenarios', folder,
                       only=['timeprest-versions'])['timeprest-versions']
        self.assertIn('all = 6 ', body)

    def test_html(self):
        self.chosen('html')
        page = Cells(read(FOLDER, 'html', 'report.html'))
        self.assertEqual(page.open, [])
        markdown = read(FOLDER, 'html', 'report.md')
        tables = [line for line in markdown.splitlines() if line.startswith('|')
                  and not line.startswith('|--')]
        self.assertEqual(page.n, len(tables))
        self.assertEqual(page.pictures, re.findall(r'\]\((\S+\.svg)\)', markdown))
        for picture in page.pictures:
            self.assertGreater(os.path.getsize(os.path.join(FOLDER, 'html', picture)), 1000)

    def test_errors(self):
        said = run('figures', '--only', 'cdp-fig44', status=2)
        self.assertIn('unknown figure "cdp-fig44"; did you mean "cdp-fig4"?', said)
        said = run('figures', '--only', 'cdp-fig4', '-o', os.path.join(FOLDER, 'e'), '--scenarios',
                   '/nowhere', status=3)
        self.assertIn('/nowhere/papers/cdp-fig4.json', said)
        said = run('figures', '--only', 'cdp-fig4', '-o', os.path.join(FOLDER, 'no', 'such'),
                   status=1)
        self.assertIn('cannot make the folder', said)

    def test_without_gnuplot(self):
        done = subprocess.run([SIM, 'figures', '--only', 'cdp-fig4', '-o',
                               os.path.join(FOLDER, 'plain')],
                              capture_output=True, text=True, check=True,
                              env=dict(os.environ, PATH='/nowhere'))
        self.assertIn('no pictures: ', done.stderr)
        self.assertNotIn('![', read(FOLDER, 'plain', 'report.md'))


if __name__ == '__main__':
    sys.argv = [sys.argv[0]] if UPDATE else [sys.argv[0], *sys.argv[3:]]
    try:
        unittest.main(defaultTest='Page' if UPDATE else None)
    finally:
        shutil.rmtree(FOLDER)

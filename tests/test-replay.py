#!/usr/bin/env python3
"""From measuring to comparing, as users see it: test-replay.py SIM [SIM-BENCH-CPU]

Without the second program (it needs OpenBLAS and MPI) only what needs no measurement is tested.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

BENCH = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else None
SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'

SANITIZED = 'SIM_SANITIZED' in os.environ

# A VGG with one channel where the real one has 64, on images of 32 x 32 pixels.
PARAMETERS = {'image': 32, 'width': 1, 'dense': 8, 'classes': 4}
UNIFORM = {
    'schema_version': 1,
    'name': 'uniform',
    'model': {'uniform': {'layers': 2, 'forward': '1 s', 'backward': '2 s', 'activation': '1 GB'}},
    'platform': {'topology': 'ring', 'devices': 2, 'bandwidth': '1 GB/s'},
    'schedule': {'kind': 'gpipe', 'micro_batches': 1},
}


def trained(kind, devices, **schedule):
    batch = 2 * schedule.get('micro_batches', 1) * (devices if kind == 'dp' else 1)
    return {
        'schema_version': 1,
        'name': f'tiny-{kind}',
        'model': {'name': 'vgg16', 'parameters': PARAMETERS, 'batch_size': batch,
                  'granularity': 'block', 'optimizer': 'momentum'},
        'costs': 'costs.json',
        'platform': {'topology': 'nvlink_switch', 'devices': devices, 'bandwidth': 'measured node',
                     'latency': 'measured node', 'blocking': True},
        'schedule': {'kind': kind, **schedule},
        'collectives': {'fidelity': 'analytic'},
        'iterations': 4,
    }


SCHEDULES = [trained('sequential', 1, micro_batches=2), trained('dp', 2, micro_batches=2),
             trained('gpipe', 2, micro_batches=2), trained('1f1b', 2, micro_batches=2),
             trained('pipedream', 2),
             # one in flight: with more, how many versions are kept depends on how long tasks take
             trained('nf1b', 2, micro_batches=2, backward_pass='micro_batches', in_flight=1)]


def partition(*stages):
    """Of [first layer, last layer, devices...]."""
    stages = [{'first_layer': first, 'last_layer': last, 'devices': devices}
              for first, last, *devices in stages]
    return {'inline': {'schema_version': 1, 'stages': stages}}


def children(pid):
    try:
        with open('/proc/%d/task/%d/children' % (pid, pid)) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def cores_of(pid):
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        return set()


def measured(folder, name):
    """A copy that says it was measured: a text of the same length, and no checksum, in the file."""
    with open(os.path.join(folder, name), 'rb') as file:
        data = file.read()
    assert data.count(b'simulated\0') == 1
    with open(os.path.join(folder, 'measured-' + name), 'wb') as file:
        file.write(data[:-24].replace(b'simulated\0', b'measured\0\0'))
    return 'measured-' + name


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='test-replay-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def sim(self, *words, status=0, **environment):
        # what MPI does not give back is none of ours
        environment = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0', **environment}
        done = subprocess.run([SIM, *words], capture_output=True, text=True, cwd=self.folder,
                              check=False, env=environment, timeout=300)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def write(self, name, value):
        with open(os.path.join(self.folder, name), 'w', encoding='utf-8') as file:
            json.dump(value, file)
        return name

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding='utf-8') as file:
            return json.load(file)

    def refused(self, said, *words, status=3, **environment):
        self.assertIn(said, self.sim(*words, status=status, **environment).stderr)


class Compare(Case):
    """Of two simulations, whose figures are known; one of them in the place of a measurement."""

    def simulate(self, name, *settings, scenario=None):
        self.sim('run', self.write('uniform.json', scenario or UNIFORM), '-o', name,
                 *(word for setting in settings for word in ('-s', setting)))
        return name

    def measured(self, name):
        return measured(self.folder, name)

    def test_figures(self):
        # 2 forwards, 2 backwards, 2 messages of 1 s each: 2 * 1 + 2 * 2 + 2 = 8 s; with forwards of
        # 3 s 12 s. The first is 8 / 12 - 1 = -1/3 off.
        a = self.simulate('a.h5')
        b = self.measured(self.simulate('b.h5', '/model/uniform/forward="3 s"'))
        done = json.loads(self.sim('compare', '--json', a, b).stdout)
        self.assertEqual(list(done)[:2], ['schema_version', 'program_version'])
        pair = done['pairs'][0]
        self.assertEqual(pair['iteration_time']['predicted_s'], 8)
        self.assertEqual(pair['iteration_time']['measured_s'], 12)
        self.assertAlmostEqual(pair['iteration_time']['error_fraction'], -1 / 3)
        kinds = {kind['kind']: kind for kind in pair['tasks']}
        self.assertEqual(list(kinds), ['forward', 'backward', 'update', 'transfer'])
        self.assertEqual(kinds['forward']['number'],
                         {'predicted': 2, 'measured': 2, 'error_fraction': 0})
        self.assertEqual(kinds['forward']['total']['predicted_s'], 2)
        self.assertEqual(kinds['forward']['median']['measured_s'], 3)
        self.assertEqual(kinds['backward']['total']['error_fraction'], 0)
        self.assertIsNone(kinds['update']['total']['error_fraction'])  # 0 s in both
        self.assertEqual(pair['differences'],
                         ['/model/uniform/forward: 1 predicted, 3 measured'])
        # 1 GB kept, and 1 GB that was received for the backward, on the first device
        peak = pair['devices'][0]['peak_memory']
        self.assertEqual(peak, {'predicted_bytes': 2e9, 'measured_bytes': 2e9, 'error_fraction': 0})
        self.assertAlmostEqual(done['median_absolute_error_fraction'], 1 / 3)

    def test_received_gradient_is_counted_once(self):
        # Workspace has the gradient that enters a layer: 1 GB kept + max(1 GB received, workspace).
        for workspace, peak in ((0, 2e9), (0.5e9, 2e9), (3e9, 4e9)):
            name = self.simulate('a.h5', f'/model/uniform/workspace={workspace}')
            done = self.sim('compare', '--json', name, self.measured(name))
            pair = json.loads(done.stdout)['pairs'][0]
            self.assertEqual(pair['devices'][0]['peak_memory']['predicted_bytes'], peak)

    def test_collectives(self):
        # A ring on 2 devices has 2 messages of each in turn, of half of 2 GB: 2 s from the first to
        # the last, once per mini-batch.
        dp = {**UNIFORM, 'schedule': {'kind': 'dp'}}
        dp['model'] = {'uniform': {**UNIFORM['model']['uniform'], 'weights': '1 GB'}}
        self.sim('run', self.write('dp.json', dp), '-o', 'ring.h5', '-s', '/iterations=3')
        self.sim('run', 'dp.json', '-o', 'whole.h5', '-s', '/iterations=3', '-s',
                 '/collectives={"fidelity": "analytic"}')
        done = json.loads(
            self.sim('compare', '--json', 'ring.h5', self.measured('whole.h5')).stdout)
        kinds = {kind['kind']: kind for kind in done['pairs'][0]['tasks']}
        self.assertNotIn('transfer', kinds)
        self.assertEqual(kinds['all_reduce']['number'],
                         {'predicted': 3, 'measured': 3, 'error_fraction': 0})
        self.assertEqual(kinds['all_reduce']['median']['predicted_s'], 2)
        self.assertEqual(kinds['all_reduce']['median']['measured_s'], 2)
        # Two buckets of 100 MB, after each backward of 2 s: on a ring 0.1 s each, from 4 s and
        # from 6 s on, when something is in flight; or 0.2 s in all, though it is 2.1 s from the
        # first to the last.
        buckets = {**dp, 'schedule': {'kind': 'dp', 'bucket': '100 MB'},
                   'model': {'uniform': {**dp['model']['uniform'], 'layers': 2, 'forward': '1 s',
                                         'backward': '2 s',
                                         'weights': '100 MB'}}}
        self.sim('run', self.write('buckets.json', buckets), '-o', 'buckets.h5')
        done = json.loads(self.sim('compare', '--json', 'buckets.h5', 'buckets.h5').stdout)
        kinds = {kind['kind']: kind for kind in done['pairs'][0]['tasks']}
        self.assertEqual((kinds['all_reduce']['number']['first'],
                          kinds['all_reduce']['total']['first_s']), (1, 0.2))
        text = self.sim('compare', 'buckets.h5', 'buckets.h5').stdout
        self.assertIn(' +0.00 points', text)  # x - x
        self.assertNotIn('-0.00', text)
        # sharing of links and algorithms of collectives are reported next to the metrics
        self.sim('run', 'dp.json', '-o', 'tree.h5', '-s', '/platform/sharing=none', '-s',
                 '/collectives/algorithm=tree')
        pair = json.loads(self.sim('compare', '--json', 'tree.h5',
                                   self.measured('ring.h5')).stdout)['pairs'][0]
        self.assertEqual(pair['sharing']['predicted'], 'none')
        self.assertEqual(pair['algorithms'], {'predicted': 'tree', 'measured': 'ring'})
        text = self.sim('compare', 'tree.h5', 'measured-ring.h5').stdout
        self.assertRegex(text, r'\nlink sharing +none +\w+\ncollectives by +tree +ring\n')

    def test_limit_and_rounds(self):
        a = self.simulate('a.h5')
        b = self.measured(self.simulate('b.h5', '/model/uniform/forward="3 s"'))
        self.sim('compare', a, b, '--fail-above', '34%')
        self.refused('the error of the iteration time is -33.33 %, above 30 %', 'compare', a, b,
                     '--fail-above', '0.3', status=4)
        # two rounds of one scenario: errors -1/3 and 0, whose median is -1/6
        same = self.measured(a)
        done = json.loads(self.sim('compare', '--json', a, b, a, same).stdout)
        self.assertEqual(len(done['pairs']), 2)
        self.assertEqual(len(done['scenarios']), 1)
        self.assertEqual(done['scenarios'][0]['rounds'], 2)
        self.assertAlmostEqual(done['scenarios'][0]['error_fraction'], -1 / 6)
        self.assertAlmostEqual(done['scenarios'][0]['lowest_error_fraction'], -1 / 3)
        self.assertEqual(done['scenarios'][0]['highest_error_fraction'], 0)
        text = self.sim('compare', a, b, a, same).stdout
        self.assertIn('median error of 1 scenarios', text)
        self.assertIn('pair 1, uniform: the scenarios differ:\n'
                      '  /model/uniform/forward: 1 predicted, 3 measured\n', text)
        self.assertNotIn('pair 2', text)

    def test_refusals(self):
        a = self.simulate('a.h5')
        b = self.measured(a)
        other = self.measured(self.simulate('other.h5', '/platform/devices=3',
                                            '/model/uniform/layers=3'))
        self.refused('a.h5 has 2 devices, measured-other.h5 has 3', 'compare', a, other)
        self.refused('measured-a.h5 was measured and a.h5 simulated: the prediction comes first',
                     'compare', b, a)
        for pair in ((a, a), (b, b)):
            self.refused('%s and %s are not a prediction and its measurement' % pair,
                         'compare', a, b, *pair, status=2)
        flushing = self.measured(self.simulate('1f1b.h5', '/schedule/kind=1f1b'))
        self.refused('a.h5 and measured-1f1b.h5 are of different schedules', 'compare', a, flushing)
        models = []
        for width in (1, 2):
            tiny = trained('sequential', 1)
            tiny['model'].update(device='v100', parameters={**PARAMETERS, 'width': width})
            del tiny['costs']
            tiny['platform'].update(bandwidth='1 GB/s', latency='1 us')
            models.append(self.simulate(f'width-{width}.h5', scenario=tiny))
        self.refused('are of different models', 'compare', models[0], self.measured(models[1]))
        self.refused('none.h5: cannot read', 'compare', a, 'none.h5')
        self.refused('uniform.json: not an HDF5 file', 'compare', a, 'uniform.json')
        self.refused('files must be pairs', 'compare', a, b, a, status=2)
        self.refused('--output is a picture of one pair', 'compare', a, b, a, b, '-o', 'x.svg',
                     status=2)
        for limit in ('ten', '-1', '1%%', 'nan'):
            self.refused('--fail-above must be a share', 'compare', a, b, '--fail-above=' + limit,
                         status=2)

    def test_side_by_side(self):
        # As above 8 s and 12 s for a mini-batch of one sample: half as much again, 1/12 less 1/8
        # samples/s.
        a = self.simulate('a.h5')
        b = self.simulate('b.h5', '/model/uniform/forward="3 s"')
        for first, second in ((a, b), (self.measured(a), self.measured(b))):
            done = json.loads(self.sim('compare', '--json', first, second).stdout)
            self.assertNotIn('scenarios', done)
            pair = done['pairs'][0]
            self.assertEqual([file['file'] for file in pair['files']], [first, second])
            self.assertEqual(pair['iteration_time'], {
                'first_s': 8, 'second_s': 12, 'difference_s': 4, 'change_fraction': 0.5})
            kinds = {kind['kind']: kind for kind in pair['tasks']}
            self.assertEqual(kinds['forward']['median'], {
                'first_s': 1, 'second_s': 3, 'difference_s': 2, 'change_fraction': 2})
            self.assertEqual(pair['differences'],
                             ['/model/uniform/forward: 1 in the first, 3 in the second'])
            text = self.sim('compare', first, second).stdout
            self.assertRegex(text, r'(?m)^first   %s: uniform, gpipe on ring$' % first)
            self.assertRegex(text, r'(?m)^iteration time +8 s +12 s +\+50.00 %$')
            self.assertNotIn('predicted', text)
        self.sim('compare', a, b, '--fail-above', '50%')
        self.refused('b.h5: the iteration time differs by +50.00 % from a.h5, more than 49 %',
                     'compare', a, b, '--fail-above', '49%', status=4)
        self.assertIsNone(self.only(a, a)['iteration_time']['change_fraction'] or None)

    def test_differences_are_told(self):
        """Of equally long lists the first element that differs, of others how long they are; of
        long texts that begin alike the last ten characters that are, and what is behind."""
        notes = 'the same words for longer than is shown, and for as long again, and then '
        layer = {'backward_input': 1, 'backward_weight': 1, 'update': 0, 'weights': 0, 'output': 0,
                 'kept': 0}
        models = [{'schema_version': 1, 'name': 'm', 'batch_size': 1, 'input': 0,
                   'provenance': {'source': 's', 'hardware': 'h', 'date': '2026-11-22',
                                  'notes': notes + last},
                   'layers': [{'name': f'{i}', 'forward': i + 1, **layer} for i in layers]}
                  for last, layers in (('one', (0, 1, 2)), ('two', (0, 2, 3)), ('one', (0, 1)))]
        files = [self.simulate(f'{i}.h5', scenario={**UNIFORM, 'model': {'inline': model}})
                 for i, model in enumerate(models)]
        self.assertEqual(self.only(files[0], files[1])['differences'], [
            '/model/inline/provenance/notes: ..." and then one" in the first, '
            '..." and then two" in the second',
            '/model/inline/layers/1/name: "1" in the first, "2" in the second',
            '/model/inline/layers/1/forward: 2 in the first, 3 in the second'])
        self.assertEqual(self.only(files[0], files[2])['differences'], [
            '/model/inline/layers: an array of 3 in the first, an array of 2 in the second'])

    def only(self, *files):
        return json.loads(self.sim('compare', '--json', *files).stdout)['pairs'][0]

    def test_side_by_side_of_other_scenarios(self):
        # Three devices against two, 1F1B against GPipe, and the second without room for 1 GB.
        a = self.simulate('a.h5')
        b = self.simulate('b.h5', '/platform/devices=3', '/model/uniform/layers=3',
                          '/schedule/kind=1f1b', '/platform/memory=0.5 GB')
        pair = self.only(a, b)
        self.assertEqual([file['devices_out_of_memory'] for file in pair['files']], [0, 3])
        self.assertEqual([file['schedule'] for file in pair['files']], ['gpipe', '1f1b'])
        peaks = [device['peak_memory'] for device in pair['devices']]
        self.assertEqual(len(peaks), 3)
        self.assertEqual(peaks[0]['first_bytes'], 2e9)
        self.assertIsNone(peaks[2]['first_bytes'])
        self.assertIsNone(peaks[2]['change_fraction'])
        self.assertGreater(peaks[2]['second_bytes'], 0.5e9)
        self.assertIn('; OUT OF MEMORY on 3 devices\n', self.sim('compare', a, b).stdout)
        self.assertIn('/platform/devices: 2 in the first, 3 in the second', pair['differences'])

    def test_picture(self):
        a = self.simulate('a.h5')
        b = self.measured(self.simulate('b.h5', '/model/uniform/forward="3 s"'))
        if subprocess.run(['sh', '-c', 'command -v gnuplot'], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest('no gnuplot')
        self.sim('compare', a, b, '-o', 'both.svg')
        with open(os.path.join(self.folder, 'both.svg'), encoding='utf-8') as file:
            text = file.read()
        for word in ('predicted', 'measured', 'error -33.3 %', 'time (s)'):
            self.assertIn(word, text)
        self.sim('compare', a, 'b.h5', '-o', 'both.svg')
        with open(os.path.join(self.folder, 'both.svg'), encoding='utf-8') as file:
            text = file.read()
        for word in ('a: iteration time 8 s', 'b: iteration time 12 s (+50.0 %)'):
            self.assertIn(word, text)
        self.assertNotIn('measured', text)
        more = self.simulate('more.h5', '/platform/devices=3', '/model/uniform/layers=3')
        self.sim('compare', a, more, '-o', 'both.svg')  # 3 forwards, 3 backwards, 4 messages
        with open(os.path.join(self.folder, 'both.svg'), encoding='utf-8') as file:
            self.assertIn('more: iteration time 13 s (+62.5 %)', file.read())


class Missing(Case):
    def test_shipped_scenarios(self):
        """Every time of theirs was measured: they need no device, and name their costs."""
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../scenarios/replay')
        names = [name for name in os.listdir(folder) if name.startswith('v')]
        self.assertEqual(len(names), 12)
        for name in names:
            done = self.sim('run', os.path.join(folder, name), '--no-output', '--json')
            costs = json.loads(done.stdout)['costs']
            self.assertEqual((costs['estimated_times'], costs['missing_collectives']), (0, []),
                             name)

    def test_walk_through(self):
        """The tutorial's predictions follow from the costs next to it."""
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../scenarios/replay')
        page = os.path.join(folder, '../../docs/how-to/replay.md')
        with open(page, encoding='utf-8') as file:
            blocks = re.findall(r'```\n(.*?)```', file.read(), re.DOTALL)
        run = next(b for b in blocks if b.startswith('$ sim run vgg-gpipe.json'))
        shown = run.split('\n')[1:-2]
        done = self.sim('run', os.path.join(folder, 'vgg-gpipe.json'), '-o', 'p.h5')
        self.assertEqual(shown, done.stdout.split('\n')[:len(shown)])
        self.assertGreater(len(shown), 6)
        compared = next(b for b in blocks if b.startswith('$ sim compare predicted.h5'))
        shown = compared.split('\n')[1:]
        made = self.sim('compare', 'p.h5', measured(self.folder, 'p.h5')).stdout.split('\n')
        tasks = next(i for i, line in enumerate(made) if line.startswith('tasks'))
        for i, line in enumerate(made): # label, number of tasks, predicted columns
            for first, end in ((0, 34),) if i < tasks else ((0, 24), (31, 42), (65, 76)):
                self.assertEqual(shown[i][first:end], line[first:end])

    def test_devices_of_costs(self):
        """Costs of another device than the model's, or of several, do not pass for its own."""
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../scenarios')
        several = '["costs-2.json", "../../calib/measured/made-up-8.json"]'
        v100 = 'times of operators were measured on AMD EPYC, not on NVIDIA Tesla V100 SXM2 16 GB'
        rows = [([], 'AMD EPYC', []),
                (['-s', '/model/device="v100"'], 'AMD EPYC', [v100]),
                (['-s', '/costs=' + several], 'AMD EPYC, Made-up GPU',
                 ['the costs were measured on different devices: AMD EPYC, Made-up GPU'])]
        for settings, devices, warnings in rows:
            words = ['run', os.path.join(folder, 'replay/vit-dp.json'), '--no-output', *settings]
            costs = json.loads(self.sim(*words, '--json').stdout)['costs']
            self.assertEqual((costs['devices'], costs['warnings']), (devices, warnings))
            self.assertEqual(costs['extrapolated_collectives'], 0) # 11 MB; 16 MiB were measured
            text = self.sim(*words).stdout
            self.assertIn(f'({devices}): 235 of 235 times', text)
            for warning in warnings:
                self.assertIn('  warning: ' + warning, text)
        # 553 MB of gradients, where the largest message that was measured is smaller
        dp = os.path.join(folder, 'dp-costs.json')
        with open(os.path.join(folder, '../calib/measured/made-up-8.json'),
                  encoding='utf-8') as file:
            points = [point for entry in json.load(file)['network'] for point in entry['points']]
        self.assertLess(max(size for size, _ in points), 553e6)
        costs = json.loads(self.sim('run', dp, '--no-output', '--json').stdout)['costs']
        self.assertEqual(costs['extrapolated_collectives'], costs['measured_collectives'])

    def test_no_program(self):
        """A program that cannot be found: of a backend that nobody has built here."""
        self.write('s.json', SCHEDULES[0])
        lonely = os.path.join(self.folder, 'sim')
        os.link(SIM, lonely) if os.stat(SIM).st_dev == os.stat(self.folder).st_dev else \
            subprocess.run(['cp', SIM, lonely], check=True)
        done = subprocess.run([lonely, 'calibrate', 'network', '-o', 'c.json'], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('cannot find the program sim-bench-cpu: install OpenBLAS and an MPI',
                      done.stderr)

    def test_usage(self):
        self.refused('calibrate compute: --model is missing', 'calibrate', 'compute', '-o',
                     'c.json',
                     status=2)
        self.refused('--output is missing', 'calibrate', 'network', status=2)
        self.refused('--backend must be cpu or cuda (got "mpi")', 'calibrate', 'compute',
                     '--backend', 'mpi', '-m', 'vgg16', '-o', 'c.json', status=2)
        self.refused('--backend must be mpi or nccl (got "cpu")', 'calibrate', 'network',
                     '--backend', 'cpu', '-o', 'c.json', status=2)
        self.refused('unknown key "wide"', 'calibrate', 'compute', '-m', 'vgg16', '--param',
                     'wide=3', '-o', 'c.json')


@unittest.skipUnless(BENCH, 'sim-bench-cpu was not built')
class Replay(Case):
    def calibrate(self, batches='2'):
        words = [word for key, value in PARAMETERS.items()
                 for word in ('--param', f'{key}={value}')]
        self.sim('calibrate', 'compute', '-m', 'vgg16', *words, '-b', batches, '--optimizer',
                 'momentum', '-t', '50 ms', '-o', 'costs.json')
        for _ in range(5):  # on a busy machine the longest may seem to take no longer
            self.sim('calibrate', 'network', '--backend', 'mpi', '-c', 'send', '-c', 'all_reduce',
                     '--max-bytes', '4 MiB', '-t', '2 ms', '-o', 'costs.json')
            if all(self.slope(entry) > 0 for entry in self.read('costs.json')['network']):
                break

    @staticmethod
    def slope(entry):
        """Time per byte of the longest messages."""
        beta = entry.get('regimes', [entry])[-1].get('beta_s_per_byte', 0)
        return beta if isinstance(beta, (int, float)) else beta.get('value', 0)

    def test_all_of_it(self):
        """Every schedule: the same tasks, the same memory; every time was measured."""
        self.calibrate()
        costs = self.read('costs.json')
        self.assertEqual({entry['collective'] for entry in costs['network']},
                         {'send', 'all_reduce'})
        self.assertIn('sim calibrate', json.dumps(costs['sources']))
        words = []
        for scenario in SCHEDULES:
            name = scenario['name']
            self.write(f'{name}.json', scenario)
            self.sim('run', f'{name}.json', '-o', f'{name}.h5')
            self.sim('replay', f'{name}.json', '-r', '2', '-o', f'{name}-measured.h5')
            words += [f'{name}.h5', f'{name}-measured.h5']
        done = json.loads(self.sim('compare', '--json', *words).stdout)
        self.assertEqual([pair['name'] for pair in done['pairs']],
                         [scenario['name'] for scenario in SCHEDULES])
        for pair in done['pairs']:
            self.assertEqual(pair['differences'], [])
            for kind in pair['tasks']:
                self.assertEqual(kind['number']['error_fraction'], 0, (pair['name'], kind))
                self.assertGreater(kind['total']['measured_s'], 0)
            self.check_memory(pair)
            self.assertGreater(pair['iteration_time']['measured_s'], 0)

    def check_memory(self, pair, share=0.01):
        """In nf1b a message that comes later keeps one version of the weights for longer. So how
        long messages take, on a busy machine, decides whether the peak is while there is such a
        version or while a kernel has a workspace; the two differ by less than the version."""
        for device in pair['devices']:
            peak, parts = device['peak_memory'], device['at_peak']
            version = parts['weights']['predicted_bytes'] if 'nf1b' in pair['name'] else 0
            self.assertLess(abs(peak['measured_bytes'] - peak['predicted_bytes']),
                            share * peak['measured_bytes'] + version, (pair['name'], device))

    def test_memory_of_models(self):
        """Attention with its weights in memory, dropout of them, tied weights: real bytes, and
        for parameters too."""
        small = {'layers': 2, 'hidden': 32, 'heads': 4}
        text = {**small, 'vocabulary': 50, 'sequence': 32, 'positions': 32}
        image = {**small, 'image': 32, 'patch': 2, 'classes': 10} # 257 tokens
        rows = [('vit_b16', {**image, 'attention': 'math'}),
                ('vit_b16', {**image, 'attention': 'math', 'dropout': 0.1}),
                ('vit_b16', {**image, 'dropout': 0.1}),
                ('bert', {**text, 'sequence': 128, 'positions': 128}),
                ('bert', {**text, 'attention': 'math'}),
                ('gpt', {**text, 'vocabulary': 5000, 'layers': 1}),
                ('llama', {**small, 'vocabulary': 50, 'sequence': 32, 'kv_heads': 2,
                           'intermediate': 64, 'tied': True})]
        for model, parameters in rows:
            words = [word for key, value in parameters.items()
                     for word in ('-p', f'{key}={json.dumps(value)}')]
            self.sim('calibrate', 'compute', '-m', model, *words, '-b', '2', '--optimizer', 'adam',
                     '-t', '1 ms', '-o', 'costs.json')
            scenario = trained('sequential', 1)
            scenario['model'].update(name=model, parameters=parameters, optimizer='adam')
            scenario['platform'].update(bandwidth='1 GB/s', latency='1 us')
            self.sim('run', self.write('s.json', scenario), '-o', 'p.h5')
            self.sim('replay', 's.json', '-r', '1', '-o', 'm.h5')
            pair = json.loads(self.sim('compare', '--json', 'p.h5', 'm.h5').stdout)['pairs'][0]
            self.check_memory(pair)
            parts = pair['devices'][0]['at_peak']
            weights = parts['weights']['predicted_bytes']
            for category, times in (('weights', 1), ('gradients', 1), ('optimizer_states', 2)):
                # kernels want parameters at 16 bytes: up to 12 more for each of some 20 operators
                self.assertLess(abs(parts[category]['measured_bytes'] - times * weights),
                                times * 400, (model, category, parts[category]))

    def test_schedules(self):
        """Every schedule in every setting: the same tasks as in the prediction, or refused with its
        place; nothing crashes, and nobody waits for ever. A share of 2 samples is 1."""
        self.calibrate('2,1')
        words = self.sim('list', 'schedules').stdout
        names = set(re.findall(r'^  (\S+): ', words, re.MULTILINE))
        n2 = {'micro_batches': 2}
        in_turn = {**n2, 'backward_pass': 'micro_batches'}
        in_halves = ['F0 F1 B0 W0 B1 W1', 'F0 B0 W0 F1 B1 W1']
        replicas = partition([0, 1, 0], [2, 8, 1, 2])
        rows = [('sequential', 1, n2, None), ('dp', 2, n2, None),
                ('dp', 2, {**n2, 'bucket': '1 kB'}, 'one per bucket'),
                ('gpipe', 2, n2, None), ('gpipe', 2, {**n2, 'recompute': True}, 'recompute'),
                ('1f1b', 2, n2, None), ('1f1b', 2, {**n2, 'recompute': True}, 'recompute'),
                ('pipedream', 2, {}, None), ('pipedream', 2, {'vertical_sync': True}, None),
                ('pipedream_2bw', 2, n2, None), ('nf1b', 2, {'micro_batches': 1}, None),
                ('nf1b', 2, {'micro_batches': 1, 'in_flight': 1}, None),
                ('nf1b', 2, {**in_turn, 'in_flight': 1}, None),
                ('nf1b', 2, in_turn, None), ('nf1b', 2, {**in_turn, 'strict': True}, None),
                *(('nf1b', 2, {**in_turn, 'version_at': place}, None)
                  for place in ('last_worker', 'per_stage')),
                ('interleaved_1f1b', 2, n2, None), ('zb_h1', 2, n2, 'backward_input'),
                ('zb_h2', 2, n2, 'backward_input'), ('zb_v', 2, n2, 'backward_input'),
                ('dualpipe_v', 2, {'micro_batches': 4}, 'backward_input'), ('hanayo', 2, n2, None),
                ('periodic', 2, n2, '/schedule/timing: must be asap'),
                ('periodic', 2, {**n2, 'timing': 'asap'}, None),
                ('custom', 2, {**n2, 'device_tasks': ['F0 F1 B0 B1', 'F0 B0 F1 B1']}, None),
                ('custom', 2, {**n2, 'device_tasks': in_halves}, 'backward_input')]
        for kind in ('cdp_dp', 'cdp_v1', 'cdp_v2', 'cdp_freshest'):
            dp = kind == 'cdp_dp'
            refused = None if dp else 'weights and sums of gradients cannot be sent'
            rows += [(kind, 1, {**n2, 'setting': 'single_gpu'}, None),
                     (kind, 2, {**n2, 'setting': 'multi_gpu'}, refused),
                     (kind, 4 if dp else 3, {**n2, 'setting': 'model_parallel'}, refused),
                     (kind, 2, {**n2, 'setting': 'pipeline'}, None),
                     (kind, 2, {**n2, 'setting': 'zero'}, 'broadcast' if dp else refused)]
        for kind in ('1f1b', 'pipedream'):
            more = n2 if kind == '1f1b' else {}
            rows += [(kind, 3, {**more, 'replicas': 'all_reduce', 'partition': replicas},
                      '/schedule/replicas: must be round_robin'),
                     (kind, 2, {**more, 'replicas': 'all_reduce',
                                'partition': partition([0, 8, 0, 1])},
                      '/schedule/replicas: must be round_robin')]
        rows += [('1f1b', 3, {**n2, 'replicas': 'round_robin', 'partition': replicas}, None),
                 ('pipedream', 3, {'replicas': 'round_robin', 'partition': replicas},
                  'collectives and chooses versions of weights')]
        self.assertEqual({row[0] for row in rows}, names)
        replayed = set()
        for kind, devices, schedule, refused in rows:
            # a device runs its tasks by the same functions in all settings of a schedule
            if refused or not (SANITIZED and kind in replayed):
                self.check_schedule(kind, devices, schedule, refused)
            if not refused:
                replayed.add(kind)

    def check_schedule(self, kind, devices, schedule, refused):
        what = f'{kind} {schedule}'
        scenario = trained(kind, devices, **schedule)
        scenario['iterations'] = 3
        scenario['platform'].update(bandwidth='1 GB/s', latency='1 us')
        self.sim('run', self.write('s.json', scenario), '-o', 'p.h5')
        done = subprocess.run([SIM, 'replay', 's.json', '-r', '1', '-o', 'm.h5'], timeout=300,
                              capture_output=True, text=True, cwd=self.folder, check=False,
                              env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
        if refused:
            self.assertEqual(done.returncode, 3, what + done.stderr)
            self.assertRegex(done.stderr, '^sim: error: s.json: /[^\n]*\n$', what)
            self.assertIn(refused, done.stderr, what)
            return
        self.assertEqual(done.returncode, 0, what + done.stderr)
        pair = json.loads(self.sim('compare', '--json', 'p.h5', 'm.h5').stdout)['pairs'][0]
        self.assertEqual(pair['differences'], [], what)
        for task in pair['tasks']:
            self.assertEqual(task['number']['error_fraction'], 0, (what, task))
        # of periodic, two versions are always there; of nf1b, with several in flight, as many as
        # are read, which depends on how long tasks take
        if kind != 'periodic' and (kind != 'nf1b' or 'in_flight' in schedule):
            self.check_memory(pair, 0.02)

    def test_runs(self):
        """Which run is kept, and the report about all of them."""
        self.calibrate()
        self.write('s.json', trained('sequential', 1))
        for runs, kept in ((1, 'the median run is kept'), (2, 'the shorter of the middle two')):
            said = self.sim('replay', 's.json', '-r', str(runs), '-o', 'm.h5').stderr
            self.assertIn(kept, said)
            median, lowest, highest = (
                float(x) for x in re.search(r'median (\S+) ms, from (\S+) to (\S+) ms',
                                            said).groups())
            self.assertEqual(median, lowest)
            self.assertEqual('took' in said, highest / lowest - 1 > 0.1, said)
        with open(os.path.join(self.folder, 'm.h5'), 'rb') as file:
            data = file.read()
        for word in (b'measured', b'"backend": "cpu"', b'"runs": 2',
                     b'sim replay s.json --output m.h5',
                     b'"processes_sharing_cores": 0'):
            self.assertIn(word, data)

    def test_sharing_cores(self):
        """More processes than cores are told, and the file has them."""
        self.calibrate()
        four = len(os.sched_getaffinity(0)) + 1
        if four > 6:
            self.skipTest('as many cores as layers')
        self.write('s.json', trained('gpipe', four, micro_batches=2))
        said = self.sim('replay', 's.json', '-r', '1', '-o', 'm.h5').stderr
        self.assertIn('sim: warning: 2 processes share cores', said)
        with open(os.path.join(self.folder, 'm.h5'), 'rb') as file:
            self.assertIn(b'"processes_sharing_cores": 2', file.read())

    def test_cores(self):
        """Processes that measure at once have a core each, for every size of a batch."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest('one core')
        seen = set()
        process = subprocess.Popen(
            [SIM, 'calibrate', 'compute', '-m', 'vgg16', '--batch', '1,2', '-n', '2', '-t', '1 s',
             *(word for item in PARAMETERS.items() for word in ('-p', '%s=%s' % item)), '-o',
             'c.json'],
            stderr=subprocess.PIPE, cwd=self.folder)
        while process.poll() is None:
            cores = [cores_of(pid) for program in children(process.pid)
                     for pid in [program, *children(program)]]
            if len(cores) == 2 and all(len(one) == 1 for one in cores):
                seen.add(cores[0] == cores[1])
            time.sleep(0.02)
        self.assertEqual(process.communicate()[1].count(b'steps after'), 2)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(seen, {False})

    def test_replay_refuses(self):
        self.calibrate()
        good = trained('gpipe', 2, micro_batches=2)
        rows = [
            ('/platform/blocking: must be true to be replayed',
             {'platform': {**good['platform'], 'blocking': False}}),
            ('/model: must have a "name" to be replayed', {'model': UNIFORM['model']}),
            ('/schedule/kind: tasks of the kind "backward_input" cannot be replayed',
             {'schedule': {'kind': 'zb_h1', 'micro_batches': 2}}),
            ('/schedule/kind: tasks of the kind "recompute" cannot be replayed',
             {'schedule': {'kind': 'gpipe', 'micro_batches': 2, 'recompute': True}}),
        ]
        for said, changes in rows:
            self.write('bad.json', {**good, **changes})
            self.refused('bad.json: ' + said, 'replay', 'bad.json', '-o', 'x.h5')
            # one line, and before any process is started
            done = self.sim('replay', 'bad.json', '-o', 'x.h5', status=3, PATH='/nowhere')
            self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        self.write('tied.json', {**good, 'model': {
            'name': 'gpt', 'batch_size': 4, 'device': 'v100', 'granularity': 'block',
            'parameters': {
                'vocabulary': 50, 'sequence': 8, 'layers': 2, 'hidden': 8, 'heads': 2}}})
        self.refused('tied.json: /model/name: operator head.lm_head of stage 1 shares the weights '
                     'of '
                     'embedding.wte of stage 0', 'replay', 'tied.json', '-o', 'x.h5')
        self.write('experts.json', {**good, 'model': {
            'name': 'mixtral', 'batch_size': 4, 'device': 'v100', 'parameters': {
                'vocabulary': 50, 'sequence': 8, 'layers': 2, 'hidden': 8, 'heads': 2,
                'kv_heads': 2,
                'expert_intermediate': 8}}})
        self.refused('experts.json: /model/name: mixtral: operator layers.0.mlp.top_k (top_k) can '
                     'be '
                     'estimated, but no backend can run it', 'replay', 'experts.json')
        self.write('half.json', {**good, 'model': {**good['model'], 'precision': 'bf16',
                                                   'device': 'h100'}})
        self.refused('half.json: /model/precision: must be fp32', 'replay', 'half.json')
        self.write('states.json', {**good, 'model': {**good['model'], 'states': 'bf16',
                                                     'optimizer': 'adam'}})
        self.refused('states.json: /model/states: must be fp32 to be replayed', 'replay',
                     'states.json')
        self.write('whole.json', {**good, 'model': {**good['model'], 'device': 'v100'},
                                  'schedule': {'kind': 'nf1b', 'micro_batches': 2}})
        self.refused('whole.json: /schedule/backward_pass: must be micro_batches to be replayed',
                     'replay', 'whole.json')
        self.assertNotIn('x.h5', os.listdir(self.folder))
        self.write('good.json', good)
        self.refused('--runs must be from 1', 'replay', 'good.json', '-r', '0', status=2)
        self.refused('unknown', 'replay', 'good.json', '--backend', 'tpu', status=2)
        self.refused('mpirun', 'replay', 'good.json', status=1, PATH='/nowhere')
        # later errors are reported once as well, and missing output is reported
        said = self.sim('replay', 'good.json', '-r', '1', '-o', 'none/x.h5', status=1).stderr
        self.assertRegex(said, r'^sim: error: none/x.h5[^\n]*\n$')
        with open(os.path.join(self.folder, 'mpirun'), 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\nexit 7\n')
        os.chmod(file.name, 0o755)
        said = self.sim('replay', 'good.json', status=1, PATH=self.folder + ':/usr/bin:/bin').stderr
        self.assertIn('mpirun ended with exit code 7 without an error message', said)
        # what it killed in the middle of writing leaves nothing behind; unmarked files, and
        # temporary files of other outputs, stay
        with open(file.name, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\nfor name in .x.h5.sim~AbCdEf .y.h5.sim~AbCdEf; do\n'
                       'mkdir $name; : > $name/.content; { echo "$MARK"; echo $name; '
                       'stat -c %i $name; echo .content; } > $name/.sim-temporary\n'
                       'done; : > .x.h5.sim~backup; exit 7\n')
        self.sim('replay', 'good.json', '-o', 'x.h5', status=1, MARK='temporary folder of sim, '
                 '5bd0f1c4-8e6a-4f0e-9d1b-73c2a6e0d9b7', PATH=self.folder + ':/usr/bin:/bin')
        self.assertEqual({name for name in os.listdir(self.folder) if name.startswith('.')},
                         {'.y.h5.sim~AbCdEf', '.x.h5.sim~backup'})

    def network(self, *words, status=0, **environment):
        done = self.sim('calibrate', 'network', '-o', 'n.json', '-t', '2 ms', *words, status=status,
                        **environment)
        return done, self.read('n.json') if status == 0 else None

    def test_groups(self):
        """Four ranks on two nodes that are made up: pairs, nodes, all; the notes say that they
        are."""
        done, costs = self.network('-n', '4', '-c', 'send', '-c', 'all_gather', '--max-bytes',
                                   '64 B',
                                   SIM_BENCH_RANKS_PER_NODE='2')
        found = [(e['collective'], e['level'], e['ranks']) for e in costs['network']]
        self.assertEqual(found, [('send', 'node', 2), ('all_gather', 'node', 2),
                                 ('send', 'network', 2), ('all_gather', 'network', 2),
                                 ('all_gather', 'network', 4)])
        self.assertIn('of 2 machines (simulated)', costs['sources'][0]['notes'])
        cores = len(os.sched_getaffinity(0))
        self.assertIn('each on a core of its own' if cores >= 4
                      else f'taking turns on {cores} cores', costs['sources'][0]['notes'])
        self.assertEqual(cores < 4, 'times are not realistic' in done.stderr)

    def test_points(self):
        """Intervals and samples; sizes that did not settle are counted as the stopping rule has
        it."""
        done, costs = self.network('-c', 'all_reduce', '--max-bytes', '64 B')
        points = costs['network'][0]['points']
        self.assertEqual([point[0] for point in points], [8, 16, 32, 64])
        for _, median, low, high, samples in points:
            self.assertTrue(0 < low <= median <= high)
            self.assertTrue(2 <= samples <= 4000)
        wide = [point for point in points
                if max(point[3] - point[1], point[1] - point[2]) > 0.02 * point[1] or point[4] < 6]
        self.assertEqual(f'{len(wide)} of 4 sizes NOT SETTLED' in done.stderr, bool(wide))
        # of two ranks the bus bandwidth of an all-reduce is its algorithm bandwidth: 2 (2 - 1) / 2
        # = 1
        said = re.search('  64 B take .*: algorithm bandwidth (.*), bus bandwidth (.*)\n',
                         done.stderr)
        self.assertEqual(said[1], said[2])

    def test_time_limit(self):
        """Long messages take longer than the limit: one that does not count, and two that do, and
        the window is short. Sixteen times 64 messages of 32 MiB would be 32 GiB."""
        _, costs = self.network('-c', 'stream', '--min-bytes', '16 MiB', '--max-bytes', '32 MiB',
                                '-t', '10 us')
        self.assertEqual([point[4] for point in costs['network'][0]['points']], [2, 2])

    def test_provenance(self):
        words = ('-c', 'send', '--max-bytes', '64 B', '--notes', "it's", '--launcher',
                 'mpirun --tag-output')
        done, costs = self.network(*words)
        self.assertIn('[1,0]<stderr>:send of 2 ranks', done.stderr)
        command = costs['sources'][0]['source']
        self.assertEqual(shlex.split(command)[:3], ['sim', 'calibrate', 'network'])
        for word in ('64 B', "it's", 'mpirun --tag-output', '2 ms'):
            self.assertIn(word, shlex.split(command))

    def test_network_refuses(self):
        """Up front, and by all processes: none is left waiting."""
        rows = [(('--min-bytes', '8', '--max-bytes', '8'),
                 '--min-bytes 8 and --max-bytes 8 give only one size'),
                (('--min-bytes', '64', '--max-bytes', '8'),
                 '--min-bytes (64) is above --max-bytes (8)'),
                (('-c', 'send', '--launcher', ' '), '--launcher is empty')]
        for words, said in rows:
            self.assertIn(said, self.network(*words, status=2)[0].stderr)
        self.assertIn('sim was started as 2 processes (PMI_SIZE)',
                      self.network(status=2, PMI_SIZE='2')[0].stderr)
        self.assertIn('no-such-launcher: cannot start: No such file',
                      self.network('--launcher', 'no-such-launcher', status=1)[0].stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_calibrate_refuses(self):
        done = self.sim('calibrate', 'network', '-c', 'all_gossip', '-o', 'c.json', status=2)
        self.assertIn('unknown collective "all_gossip"', done.stderr)
        self.assertNotIn('built without', done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == '__main__':
    unittest.main()

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
             trained('pipedream', 2), trained('nf1b', 2, micro_batches=2)]


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
    """Of two simulations, whose figures are known."""

    def simulate(self, name, *settings):
        self.sim('run', self.write('uniform.json', UNIFORM), '-o', name,
                 *(word for setting in settings for word in ('-s', setting)))
        return name

    def test_figures(self):
        # 2 forwards, 2 backwards, 2 messages of 1 s each: 2 * 1 + 2 * 2 + 2 = 8 s; with forwards of
        # 3 s 12 s. The first is 8 / 12 - 1 = -1/3 off.
        a = self.simulate('a.h5')
        b = self.simulate('b.h5', '/model/uniform/forward="3 s"')
        done = json.loads(self.sim('compare', '--json', a, b).stdout)
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
            pair = json.loads(self.sim('compare', '--json', name, name).stdout)['pairs'][0]
            self.assertEqual(pair['devices'][0]['peak_memory']['predicted_bytes'], peak)

    def test_collectives(self):
        # A ring on 2 devices has 2 messages of each in turn, of half of 2 GB: 2 s from the first to the
        # last, once per mini-batch.
        dp = {**UNIFORM, 'schedule': {'kind': 'dp'}}
        dp['model'] = {'uniform': {**UNIFORM['model']['uniform'], 'weights': '1 GB'}}
        self.sim('run', self.write('dp.json', dp), '-o', 'ring.h5', '-s', '/iterations=3')
        self.sim('run', 'dp.json', '-o', 'whole.h5', '-s', '/iterations=3', '-s',
                 '/collectives={"fidelity": "analytic"}')
        done = json.loads(self.sim('compare', '--json', 'ring.h5', 'whole.h5').stdout)
        kinds = {kind['kind']: kind for kind in done['pairs'][0]['tasks']}
        self.assertNotIn('transfer', kinds)
        self.assertEqual(kinds['all_reduce']['number'],
                         {'predicted': 3, 'measured': 3, 'error_fraction': 0})
        self.assertEqual(kinds['all_reduce']['median']['predicted_s'], 2)
        self.assertEqual(kinds['all_reduce']['median']['measured_s'], 2)

    def test_limit_and_rounds(self):
        a, b = self.simulate('a.h5'), self.simulate('b.h5', '/model/uniform/forward="3 s"')
        self.sim('compare', a, b, '--fail-above', '34%')
        self.refused('the error of the iteration time is -33.33 %, above 30 %', 'compare', a, b,
                     '--fail-above', '0.3', status=4)
        # two rounds of one scenario: errors -1/3 and 0, whose median is -1/6
        done = json.loads(self.sim('compare', '--json', a, b, a, a).stdout)
        self.assertEqual(len(done['pairs']), 2)
        self.assertEqual(len(done['scenarios']), 1)
        self.assertEqual(done['scenarios'][0]['rounds'], 2)
        self.assertAlmostEqual(done['scenarios'][0]['error_fraction'], -1 / 6)
        self.assertAlmostEqual(done['scenarios'][0]['lowest_error_fraction'], -1 / 3)
        self.assertEqual(done['scenarios'][0]['highest_error_fraction'], 0)
        self.assertIn('median error of 1 scenarios', self.sim('compare', a, b, a, a).stdout)

    def test_refusals(self):
        a = self.simulate('a.h5')
        other = self.simulate('other.h5', '/platform/devices=3', '/model/uniform/layers=3')
        self.refused('a.h5 has 2 devices, other.h5 has 3', 'compare', a, other)
        self.refused('none.h5: cannot read', 'compare', a, 'none.h5')
        self.refused('uniform.json: not an HDF5 file', 'compare', a, 'uniform.json')
        self.refused('files come in pairs', 'compare', a, a, a, status=2)
        self.refused('--output is a picture of one pair', 'compare', a, a, a, a, '-o', 'x.svg',
                     status=2)
        for limit in ('ten', '-1', '1%%', 'nan'):
            self.refused('--fail-above must be a share', 'compare', a, a, '--fail-above=' + limit,
                         status=2)

    def test_picture(self):
        a, b = self.simulate('a.h5'), self.simulate('b.h5', '/model/uniform/forward="3 s"')
        if subprocess.run(['sh', '-c', 'command -v gnuplot'], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest('no gnuplot')
        self.sim('compare', a, b, '-o', 'both.svg')
        with open(os.path.join(self.folder, 'both.svg'), encoding='utf-8') as file:
            text = file.read()
        for word in ('predicted', 'measured', 'error -33.3 %', 'time (s)'):
            self.assertIn(word, text)


class Missing(Case):
    def test_shipped_scenarios(self):
        """Every time of theirs was measured: they need no device, and name their costs."""
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../scenarios/replay')
        names = [name for name in os.listdir(folder) if name.startswith('v')]
        self.assertEqual(len(names), 12)
        for name in names:
            done = self.sim('run', os.path.join(folder, name), '--no-output', '--json')
            costs = json.loads(done.stdout)['costs']
            self.assertEqual((costs['estimated_times'], costs['missing_collectives']), (0, []), name)

    def test_no_program(self):
        """A program that cannot be found: of a backend that nobody has built here."""
        self.write('s.json', SCHEDULES[0])
        lonely = os.path.join(self.folder, 'sim')
        os.link(SIM, lonely) if os.stat(SIM).st_dev == os.stat(self.folder).st_dev else \
            subprocess.run(['cp', SIM, lonely], check=True)
        done = subprocess.run([lonely, 'calibrate', 'network', '-o', 'c.json'], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('there is no program sim-bench-cpu: install OpenBLAS and an MPI', done.stderr)

    def test_usage(self):
        self.refused('calibrate compute: --model is missing', 'calibrate', 'compute', '-o', 'c.json',
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
    def calibrate(self):
        words = [word for key, value in PARAMETERS.items() for word in ('--param', f'{key}={value}')]
        self.sim('calibrate', 'compute', '-m', 'vgg16', *words, '-b', '2', '--optimizer', 'momentum',
                 '-t', '50 ms', '-o', 'costs.json')
        self.sim('calibrate', 'network', '--backend', 'mpi', '-c', 'send', '-c', 'all_reduce',
                 '--max-bytes', '64 KiB', '-t', '2 ms', '-o', 'costs.json')

    def test_all_of_it(self):
        """Every schedule: the same tasks, the same memory; every time was measured."""
        self.calibrate()
        costs = self.read('costs.json')
        self.assertEqual({entry['collective'] for entry in costs['network']}, {'send', 'all_reduce'})
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
            for device in pair['devices']:
                self.assertLess(abs(device['peak_memory']['error_fraction']), 0.01,
                                (pair['name'], device))
            self.assertGreater(pair['iteration_time']['measured_s'], 0)

    def test_cores(self):
        """Processes that measure at once have a core each, for every size of a batch."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest('one core')
        seen = set()
        process = subprocess.Popen(
            [SIM, 'calibrate', 'compute', '-m', 'vgg16', '--batch', '1,2', '-n', '2', '-t', '1 s',
             *(word for item in PARAMETERS.items() for word in ('-p', '%s=%s' % item)), '-o', 'c.json'],
            stderr=subprocess.PIPE)
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
        self.assertNotIn('x.h5', os.listdir(self.folder))
        self.write('good.json', good)
        self.refused('--runs must be from 1', 'replay', 'good.json', '-r', '0', status=2)
        self.refused('unknown', 'replay', 'good.json', '--backend', 'tpu', status=2)
        self.refused('mpirun', 'replay', 'good.json', status=1, PATH='/nowhere')

    def network(self, *words, status=0, **environment):
        done = self.sim('calibrate', 'network', '-o', 'n.json', '-t', '2 ms', *words, status=status,
                        **environment)
        return done, self.read('n.json') if status == 0 else None

    def test_groups(self):
        """Four ranks on two nodes that are made up: pairs, nodes, all; the notes say that they are."""
        done, costs = self.network('-n', '4', '-c', 'send', '-c', 'all_gather', '--max-bytes', '64 B',
                                   SIM_BENCH_RANKS_PER_NODE='2')
        found = [(e['collective'], e['level'], e['ranks']) for e in costs['network']]
        self.assertEqual(found, [('send', 'node', 2), ('all_gather', 'node', 2),
                                 ('send', 'network', 2), ('all_gather', 'network', 2),
                                 ('all_gather', 'network', 4)])
        self.assertIn('of 2 machines (pretended)', costs['sources'][0]['notes'])
        cores = len(os.sched_getaffinity(0))
        self.assertIn('each on a core of its own' if cores >= 4 else f'on {cores} cores, which they '
                      'take turns on', costs['sources'][0]['notes'])
        self.assertEqual(cores < 4, 'these are not the times' in done.stderr)

    def test_points(self):
        """Intervals and samples; sizes that did not settle are counted as the stopping rule has it."""
        done, costs = self.network('-c', 'all_reduce', '--max-bytes', '64 B')
        points = costs['network'][0]['points']
        self.assertEqual([point[0] for point in points], [8, 16, 32, 64])
        for _, median, low, high, samples in points:
            self.assertTrue(0 < low <= median <= high)
            self.assertTrue(2 <= samples <= 4000)
        wide = [point for point in points
                if max(point[3] - point[1], point[1] - point[2]) > 0.02 * point[1] or point[4] < 6]
        self.assertEqual(f'{len(wide)} of 4 sizes NOT SETTLED' in done.stderr, bool(wide))
        # of two ranks the bus bandwidth of an all-reduce is its algorithm bandwidth: 2 (2 - 1) / 2 = 1
        said = re.search('  64 B take .*: algorithm bandwidth (.*), bus bandwidth (.*)\n', done.stderr)
        self.assertEqual(said[1], said[2])

    def test_time_limit(self):
        """Long messages take longer than the limit: one that does not count, and two that do, and the
        window is short. Sixteen times 64 messages of 32 MiB would be 32 GiB."""
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
        rows = [(('--min-bytes', '8', '--max-bytes', '8'), '--min-bytes 8 and --max-bytes 8 leave one size'),
                (('--min-bytes', '64', '--max-bytes', '8'), '--min-bytes (64) is above --max-bytes (8)'),
                (('-c', 'send', '--launcher', ' '), '--launcher is empty')]
        for words, said in rows:
            self.assertIn(said, self.network(*words, status=2)[0].stderr)
        self.assertIn('sim was started as 2 processes (PMI_SIZE)',
                      self.network(status=2, PMI_SIZE='2')[0].stderr)
        self.assertIn('no-such-launcher: No such file',
                      self.network('--launcher', 'no-such-launcher', status=1)[0].stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_calibrate_refuses(self):
        done = self.sim('calibrate', 'network', '-c', 'all_gossip', '-o', 'c.json', status=2)
        self.assertIn('unknown collective "all_gossip"', done.stderr)
        self.assertNotIn('built without', done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == '__main__':
    unittest.main()

#!/usr/bin/env python3
"""sim sweep as users see it: test-sweep.py SIM

Points of every form and syntax, failing points, threads, and sweeps that are killed at random
moments and go on to the same file, bit for bit. Where h5py is there, the file is read with it as
well.
"""
import csv
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'campaigns'))
import resealed  # noqa: E402

SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'

SCENARIO = {
    'schema_version': 1,
    'name': 'tiny',
    'model': {'uniform': {'layers': 8, 'forward': '1 ms', 'backward': '2 ms', 'weights': '1 MB',
                          'activation': '1 MB'}},
    'platform': {'topology': 'ideal', 'devices': 4, 'memory': '16 GB'},
    'schedule': {'kind': 'gpipe', 'micro_batches': 4},
}
MICRO = '/schedule/micro_batches'
DEVICES = '/platform/devices'


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='test-sweep-')
        self.addCleanup(self.folder.cleanup)
        self.write('s.json', json.dumps(SCENARIO))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8', newline='') as file:
            file.write(text)
        return self.path(name)

    def digest(self, name):
        with open(self.path(name), 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest()

    def sim(self, *arguments, status=0):
        done = subprocess.run([SIM, 'sweep', self.path('s.json'), *arguments], capture_output=True,
                              text=True, cwd=self.folder.name, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def points(self, *arguments):
        return json.loads(self.sim('--no-output', '--json', *arguments).stdout)['points']

    def refused(self, said, *arguments, status=3):
        self.assertIn(said, self.sim('--no-output', *arguments, status=status).stderr)

    # ---- which values ----

    def test_keys_that_cannot_be_shown_or_stored(self):
        for key in ('/sweep/\x1b[31m', '/sweep/\u202e', '/sweep/' + 'k' * 994):
            self.refused('a key must have up to 1000 bytes and no control characters', '-v',
                         f'{key}=1,2')
        self.assertEqual(len(self.points('-v', f'/sweep/{"k" * 993}=1,2')), 2)

    def test_values(self):
        rows = [  # expected by hand
            ('1,2,4', [1, 2, 4]),
            ('2..5', [2, 3, 4, 5]),
            ('2..9..3', [2, 5, 8]),
            ('4..1..-1', [4, 3, 2, 1]),
            ('7..7', [7]),
            ('1..16..x2', [1, 2, 4, 8, 16]),
            ('3..20..x2', [3, 6, 12]),
            ('2..12..x1.5', [2, 3, 4, 7, 10]),  # 4.5 and 6.75 and 10.1: rounded, half to even
            ('1..1000..log4', [1, 10, 100, 1000]),
            ('1..4..log7', [1, 2, 3, 4]),  # 1 1.26 1.59 2 2.52 3.17 4, rounded, each once
            ('0..8..lin5', [0, 2, 4, 6, 8]),
            ('1..3,8,16..32..x2', [1, 2, 3, 8, 16, 32]),
            (' 1 , 2 ', [1, 2]),
        ]
        for text, expected in rows:
            with self.subTest(text):
                points = self.points('--vary', f'/seed={text}')
                self.assertEqual([p['set']['/seed'] for p in points], expected)

    def test_values_that_are_no_counts(self):
        key = '/model/uniform/forward'
        rows = [
            ('0.1..0.5..0.1', [0.1, 0.2, 0.3, 0.4, 0.5]),
            ('1e-3..5e-3..1e-3', [0.001, 0.002, 0.003, 0.004, 0.005]),
            ('0.5..0..-0.25', [0.5, 0.25, 0]),
            ('0.0..1.0..lin3', [0, 0.5, 1]),
            ('1.0..2..log3', [1, 2 ** 0.5, 2]),
            ('1..4..x2 ms', ['1 ms', '2 ms', '4 ms']),
            ('1..2us', ['1 us', '2 us']),
            ('"1 ms",2 ms', ['1 ms', '2 ms']),
        ]
        for text, expected in rows:
            with self.subTest(text):
                points = self.points('--vary', f'{key}={text}')
                self.assertEqual([p['set'][key] for p in points], expected)

    def test_texts_and_json(self):
        points = self.points('--vary', '/schedule/kind=gpipe,1f1b')
        self.assertEqual([p['result']['schedule'] for p in points], ['gpipe', '1f1b'])
        points = self.points('--vary', '/schedule/partition=[2,4,6],"balanced"')
        self.assertEqual([p['set']['/schedule/partition'] for p in points], [[2, 4, 6], 'balanced'])
        points = self.points('--vary', '/name=a/b,"1..2","x,y",../q')
        self.assertEqual([p['result']['name'] for p in points], ['a/b', '1..2', 'x,y', '../q'])

    def test_refused_values(self):
        rows = [
            ('5..2', 'the range is empty: it begins above its end'),
            ('2..5..-1', 'the range is empty: it begins below its end'),
            ('1..5..0', 'the step must not be 0'),
            ('1..5..x1', 'the factor must be > 1'),
            ('0..5..x2', 'must begin above 0'),
            ('0..5..log3', 'must begin above 0'),
            ('1..5..log1', 'a whole number from 2 to'),
            ('1..5..log2.5', 'a whole number from 2 to'),
            ('1..5..y2', 'a range is FIRST..LAST'),
            ('1..', 'a range is FIRST..LAST'),
            ('1...5', 'a range is FIRST..LAST'),
            ('1..5..2..3', 'a range is FIRST..LAST'),
            ('1..5 parsec', 'a range is FIRST..LAST'),
            ('', 'a value is missing'),
            ('1,,2', 'a value is missing'),
            ('1..1e9', 'too many values'),
            ('1,2,1', 'takes the value 1 twice'),
            ('1,1.0', 'takes the value 1 twice'),
            ('1,2 GB', 'a unit with each of its values or with none (got 1 and "2 GB")'),
        ]
        for text, said in rows:
            with self.subTest(text):
                self.refused(said, '--vary', f'{MICRO}={text}')

    # ---- which points ----

    def test_grid(self):
        points = self.points('--vary', f'{DEVICES}=2,4', '--vary', f'{MICRO}=1..3')
        self.assertEqual([(p['set'][DEVICES], p['set'][MICRO]) for p in points],
                         [(2, 1), (2, 2), (2, 3), (4, 1), (4, 2), (4, 3)])
        for point in points:  # 8 layers: (M + P - 1) * 8/P * 3 ms
            p, m = point['set'][DEVICES], point['set'][MICRO]
            self.assertAlmostEqual(point['result']['makespan_s'], (m + p - 1) * 8 / p * 3e-3, 12)

    def test_a_point_is_what_run_says(self):
        point = self.points('--vary', f'{MICRO}=3,5')[1]
        done = subprocess.run([SIM, 'run', self.path('s.json'), '--set', f'{MICRO}=5',
                               '--no-output',
                               '--json'], capture_output=True, text=True, check=True)
        printed = json.loads(done.stdout)
        self.assertEqual(list(printed)[:2], ['schema_version', 'program_version'])
        self.assertEqual(point['result'], dict(list(printed.items())[2:]))

    def test_zip(self):
        points = self.points('--vary', f'{DEVICES}=2,4,4', '--vary', f'{MICRO}=1..3', '--zip')
        self.assertEqual([(p['set'][DEVICES], p['set'][MICRO]) for p in points],
                         [(2, 1), (4, 2), (4, 3)])
        self.refused('zipped keys must have the same number of values', '--vary', f'{DEVICES}=2,4',
                     '--vary', f'{MICRO}=1..3', '--zip')

    def test_csv(self):
        name = self.write('p.csv', '\ufeff' + f'{DEVICES}, {MICRO},/name\r\n2,3,"a, ""b"""\r\n\r\n'
                          '4,1,\'\r\n 4 , 2 ,""')
        points = self.points('--csv', name)
        self.assertEqual([tuple(p['set'].values()) for p in points],
                         [(2, 3, 'a, "b"'), (4, 1, "'"), (4, 2, '')])
        self.assertEqual(points[0]['result']['name'], 'a, "b"')
        self.assertIn('must not be empty', points[2]['error'])

    def test_refused_csv(self):
        rows = [
            ('', 'has no points'),
            (f'{MICRO}\n', 'has no points'),
            (f'{MICRO}\n1,2\n', 'p.csv:2: must have 1 values, as the first line (got 2)'),
            (f'{MICRO},{DEVICES}\n1,2\n\n1\n', 'p.csv:4: must have 2 values'),
            (f'{MICRO},{DEVICES}\n1,\n', f'p.csv:2: the value of {DEVICES} is missing'),
            (f'{MICRO}\n"1\n', 'a quote is not closed'),
            (f'{MICRO}\n"1"2\n', 'p.csv:2: a comma must follow'),
            ('micro\n1\n', 'p.csv:1: must be a JSON pointer'),
            (f'{MICRO},{MICRO}\n1,2\n', f'{MICRO}: is varied twice'),
        ]
        for text, said in rows:
            with self.subTest(text):
                self.refused(said, '--csv', self.write('p.csv', text))
        self.refused('cannot read', '--csv', self.path('none.csv'))

    def test_the_scenario_says_it(self):
        self.write('s.json', json.dumps({**SCENARIO, 'sweep': {'vary': {DEVICES: [2, 4],
                                                                       MICRO: '1..3'}}}))
        self.assertEqual(len(self.points()), 6)
        self.assertEqual(len(self.points('--vary', f'{MICRO}=1..3')), 3)
        for command in ('run', 'check'):
            subprocess.run([SIM, command, self.path('s.json')], cwd=self.folder.name, check=True,
                           capture_output=True)
        self.write('p.csv', f'{MICRO}\n1\n2\n')
        self.write('s.json', json.dumps({**SCENARIO, 'sweep': {'csv': 'p.csv'}}))
        self.assertEqual(len(self.points()), 2)
        for sweep, said in [({}, 'must have one of'), ({'vary': {MICRO: 3}}, 'must be a text like'),
                            ({'vary': {}}, 'nothing is varied'), ({'wary': {}}, 'unknown key'),
                            ({'vary': {MICRO: []}}, 'must be a text like')]:
            self.write('s.json', json.dumps({**SCENARIO, 'sweep': sweep}))
            with self.subTest(said):
                self.refused(said, status=2 if 'nothing' in said else 3)

    def test_refused_points(self):
        rows = [
            ([], 'nothing is varied', 2),
            (['--vary', MICRO], '--vary must be /json/pointer=VALUES', 2),
            (['--vary', 'micro=1'], 'must be a JSON pointer', 3),
            (['--vary', '/schedule/micro_batch=1..3'], 'did you mean "micro_batches"?', 3),
            (['--vary', '/schedul/micro_batches=1..3'], 'did you mean "schedule"?', 3),
            (['--vary', '/a/b/c=1'], 'unknown key "a"', 3),
            (['--vary', '/schedule/a"b=1,2'], 'unknown key "a\\"b"', 3),
            (['--vary', '/schedule/a~1b=1,2'], 'unknown key "a/b"', 3),
            (['--vary', '/schedule=1', '--vary', f'{MICRO}=1'], 'lies within /schedule', 3),
            (['--vary', '/seed=1..2000', '--vary', f'{MICRO}=1..2000'], 'the grid has 4e+06 points',
             3),
            (['--vary', f'{MICRO}=1', '--csv', 'p.csv'], '--csv excludes --vary', 2),
            (['--vary', f'{MICRO}=1', '--jobs', '0'], '--jobs must be from 1 to', 2),
            (['--vary', f'{MICRO}=1', '--resume'], '--no-output excludes', 2),
        ]
        for arguments, said, status in rows:
            with self.subTest(arguments):
                self.refused(said, *arguments, status=status)

    # ---- failing points ----

    def test_failing_points(self):
        done = self.sim('--vary', f'{MICRO}=0..3', '--json', '-o', 'f.h5')
        points = json.loads(done.stdout)['points']
        self.assertIn(MICRO, points[0]['error'])
        self.assertTrue(all('result' in p for p in points[1:]))
        self.assertIn('warning: 1 of 4 points failed', done.stderr)
        self.assertEqual(json.loads(done.stdout)['failed'], 1)

    def test_all_fail(self):
        done = self.sim('--vary', f'{DEVICES}=100..102', '--json', '-o', 'f.h5', status=1)
        self.assertIn('all of 3 points failed', done.stderr)
        self.assertEqual(len(json.loads(done.stdout)['points']), 3)
        self.assertTrue(os.path.exists(self.path('f.h5')))
        for value in ([], ['--value', 'makespan_s']):
            done = subprocess.run([SIM, 'plot', 'f.h5', '--kind', 'lines', *value], text=True,
                                  capture_output=True, cwd=self.folder.name, check=False)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(done.stderr,
                             'sim: error: f.h5: has no figures, as all of its points failed\n')

    def test_a_key_of_one_schedule_only(self):
        points = self.points('--vary', '/schedule/kind=dp,gpipe', '--vary',
                             '/schedule/recompute=false,true')
        self.assertEqual(['error' in p for p in points], [True, True, False, False])

    # ---- the same answers ----

    def test_threads(self):
        arguments = ['--vary', f'{DEVICES}=1..8', '--vary', f'{MICRO}=0..20', '--json']
        first = None
        for jobs in ('1', '2', '3', '16'):
            done = self.sim(*arguments, '-j', jobs, '-o', 't.h5')
            now = (done.stdout, self.digest('t.h5'))
            first = first or now
            self.assertEqual(now, first, f'{jobs} jobs')

    def rows(self, *arguments):
        self.sim(*arguments, '-o', 'r.csv')
        with open(self.path('r.csv'), encoding='utf-8', newline='') as file:
            return list(csv.DictReader(file))

    def test_nothing_is_stale(self):
        """Points share what they have in common. Each kind of key is varied so that every point
        differs from the one before, and is then as one before that, and each point is compared with
        a run of its own."""
        model = {'name': 'gpt', 'device': 'a100', 'batch_size': 64, 'granularity': 'block',
                 'parameters': {'layers': 2, 'hidden': 256, 'heads': 4, 'sequence': 128,
                                'vocabulary': 500}}
        links = {'topology': 'nvlink_switch', 'devices': 4, 'bandwidth': '10 GB/s',
                 'latency': '1 us'}
        bridge = {**links, 'topology': 'pcie'}
        counted = {'topology': 'ring', 'bandwidth': '10 GB/s', 'memory': '8 GB'}  # by the layers
        measured = {**links, 'bandwidth': 'measured node', 'latency': 'measured node'}
        noisy = {**links, 'jitter': {'mean': 0.2}, 'stragglers': {'tasks': {'mean': 0.1}},
                 'background': {'flows': 2, 'bytes': '1 MB'}}
        sends = []
        for beta in (1e-9, 3e-9):
            value = lambda x: {'value': x, 'low': x, 'high': x}
            regime = {'from_bytes': 0, 'alpha_s': value(1e-6), 'beta_s_per_byte': value(beta),
                      'error': 0.01, 'points': 9, 'outliers': 1}
            source = dict.fromkeys(['driver', 'libraries', 'clock', 'notes'], '')
            sends.append({'inline': {
                'schema_version': 1, 'compute': [], 'network': [
                    {'collective': 'send', 'level': 'node', 'ranks': 2, 'source': 0,
                     'regimes': [regime]}],
                'sources': [{'source': 'drawn', 'device': 'A', 'date': '2026-11-23', **source}]}})
        rows = [
            # NCCL's model, which runtimes have, has latencies of its own
            ({'runtime': 'ideal'}, '/platform/latency', ['1 us', '9 us']),
            ({}, '/platform/bandwidth', ['10 GB/s', '20 GB/s']),
            ({}, '/platform/devices', [4, 8]),
            ({}, '/platform/speed', [1, 2]),
            ({}, '/platform/memory', ['8 GB', '16 GB']),
            ({}, '/platform/reserve', [0, '1 GB']),
            ({'platform': bridge}, '/platform/sharing', ['none', 'max_min']),
            ({}, '/platform', [links, bridge]),
            ({}, '/model/device', ['a100', 'v100']),
            ({}, '/model/batch_size', [64, 128]),
            ({}, '/model/parameters/layers', [2, 3]),
            ({}, '/schedule/micro_batches', [1, 4]),
            ({}, '/parallel', [{'tensor': 4}, {'tensor': 2}]),
            ({'platform': bridge}, '/collectives/fidelity', ['flow', 'alpha_beta']),
            ({'platform': measured}, '/costs', sends),
            ({'platform': noisy}, '/seed', [1, 2]),
            ({'platform': noisy}, '/platform/jitter/mean', [0.1, 0.3]),
            ({'platform': noisy}, '/platform/stragglers/tasks/mean', [0.1, 0.2]),
            ({**SCENARIO, 'platform': counted}, '/model/uniform/layers', [3, 4]),
        ]
        common = {'schema_version': 1, 'name': 'stale', 'model': model, 'platform': links,
                  'schedule': {'kind': 'sequential'}, 'parallel': {}}
        for more, key, values in rows:
            document = more if 'schedule' in more else {**common, **more}
            self.write('s.json', json.dumps(document))
            words = ','.join(json.dumps(v) for v in values)
            with self.subTest(key):
                found = self.rows('--vary', '/iterations=1,2', '--vary', f'{key}={words}', '-j',
                                  '1')
                makespans = []
                for row, (i, value) in zip(found, [(i, v) for i in (1, 2) for v in values],
                                           strict=True):
                    done = subprocess.run(
                        [SIM, 'run', self.path('s.json'), '--no-output', '--json', '--set',
                         f'/iterations={i}', '--set', f'{key}={json.dumps(value)}'],
                        capture_output=True, text=True, check=True)
                    numbers = {k: v for k, v in json.loads(done.stdout).items()
                               if isinstance(v, (int, float)) and k in row}
                    self.assertGreater(len(numbers), 10)
                    self.assertEqual({k: float(row[k]) for k in numbers}, numbers)
                    capacity = json.loads(done.stdout)['devices'][0]['capacity_bytes']
                    self.assertEqual(float(row['capacity_bytes']), capacity)
                    makespans.append((numbers['makespan_s'], capacity))
                self.assertEqual(len(set(makespans)), len(makespans))

    def test_copies(self):
        """Data parallelism whose collectives are delays: one copy simulated for all has the figures
        of all of them. 66 devices are folded where nothing is said."""
        draw = random.Random(18)
        links = {'bandwidth': '10 GB/s', 'latency': '5 us'}
        for number in range(12):
            layers = [{'name': f'l{i}', 'forward': draw.randint(1, 9) * 1e-3,
                       'backward': draw.randint(1, 9) * 1e-3, 'update': '1 ms',
                       'weights': draw.randint(1, 10 ** 9), 'output': 1000, 'kept': 2000}
                      for i in range(draw.randint(1, 4))]
            model = {'name': 'drawn', 'schema_version': 1, 'batch_size': 0, 'layers': layers,
                     'provenance': {'source': 'drawn', 'hardware': 'none', 'date': '2026-11-23'}}
            devices, micro_batches = draw.choice([2, 5, 16, 66]), draw.choice([1, 3])
            kind = draw.choice(['nvlink_switch', 'fat_tree', 'ring', 'pcie'])
            more = {'levels': 2, 'radix': 8} if kind == 'fat_tree' else {}
            self.write('s.json', json.dumps({
                'schema_version': 1, 'name': 'copies', 'iterations': draw.choice([1, 4]),
                'model': {'inline': model, 'batch_size': devices * micro_batches},
                'platform': {'topology': kind, 'devices': devices, 'memory': '4 GB', **links,
                             **more},
                'schedule': {'kind': 'dp', 'micro_batches': micro_batches,
                             'bucket': draw.choice([0, 10 ** 8])},
                'collectives': {'fidelity': draw.choice(['analytic', 'alpha_beta'])}}))
            with self.subTest(number, kind=kind, devices=devices):
                rows = self.rows('--vary',
                                 '/parallel={"fold": "no"},{"fold": "yes"},{"fold": "auto"}')
                tasks = []
                for row in rows:
                    self.assertEqual(row.pop('error'), '')
                    tasks.append(float(row.pop('tasks')))
                    del row['/parallel'], row['simulated_as']
                self.assertLess(tasks[1], tasks[0])
                self.assertEqual(tasks[2], tasks[1] if devices > 64 else tasks[0])
                self.assertEqual(rows[1], rows[0])
                self.assertEqual(rows[2], rows[0])

    def test_copies_that_are_not_alike(self):
        self.write('s.json', json.dumps({**SCENARIO, 'schedule': {'kind': 'dp'}}))
        for key, value, said in [
                ('/platform/speed', [1, 1, 2, 1], 'devices 0 and 2 differ in speed or memory'),
                ('/memory/resident', [0, 0, 0, 9],
                 'devices 0 and 3 differ in their /memory/resident'),
                ('/collectives/fidelity', 'flow', 'are simulated message by message')]:
            self.refused(said, '--set', '/parallel/fold=yes', '--vary',
                         f'{key}={json.dumps(value)}',
                         status=1)
        self.refused('cannot be combined with the schedule "dp"', '--set', '/parallel/fold=yes',
                     '--vary',
                     '/parallel/data=4', status=1)

    def hdf5_command(self, *arguments):
        """How the file says that it was made."""
        self.sim(*arguments, '-o', 'r.h5')
        with open(self.path('r.h5'), 'rb') as file:
            return re.search(rb'sim sweep [ -~]*', file.read()).group(0).decode()

    def start(self, *arguments):
        return subprocess.Popen([SIM, 'sweep', self.path('s.json'), *arguments],
                                cwd=self.folder.name, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def test_killed_and_resumed(self):
        arguments = ['--vary', f'{DEVICES}=1..8', '--vary', f'{MICRO}=0..60', '--set',
                     '/iterations=4']
        begun = time.monotonic()
        self.sim(*arguments, '-o', 'whole.h5')
        whole, lasts = self.digest('whole.h5'), time.monotonic() - begun
        moments = random.Random(1)
        kills = cut = 0
        for _ in range(12):
            for name in ('k.h5', 'k.h5.journal'):
                if os.path.exists(self.path(name)):
                    os.remove(self.path(name))
            for _ in range(moments.randrange(1, 4)):
                process = self.start(*arguments, '-o', 'k.h5', '--resume')
                time.sleep(moments.uniform(0, lasts))
                process.send_signal(moments.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT]))
                kills += process.wait() != 0
                if os.path.exists(self.path('k.h5.journal')) and moments.random() < 0.5:
                    size = os.path.getsize(self.path('k.h5.journal'))
                    os.truncate(self.path('k.h5.journal'), moments.randrange(size + 1))
                    cut += 1
            self.sim(*arguments, '-o', 'k.h5', '--resume', '-j', moments.choice('123'))
            self.assertEqual(self.digest('k.h5'), whole)
            self.assertFalse(os.path.exists(self.path('k.h5.journal')))
        self.assertGreater(kills, 5)
        self.assertGreater(cut, 0)

    def journal(self, *arguments):
        """The journal of a sweep that was stopped in its middle."""
        for wait in (0.05, 0.1, 0.2, 0.4, 0.8, 0.02, 0.01):
            process = self.start(*arguments)
            time.sleep(wait)
            process.kill()
            process.wait()
            if os.path.exists(self.path('j.h5.journal')):
                with open(self.path('j.h5.journal'), encoding='utf-8') as file:
                    lines = file.read().splitlines(keepends=True)
                if len(lines) > 20:
                    return lines
            for name in ('j.h5', 'j.h5.journal'):
                if os.path.exists(self.path(name)):
                    os.remove(self.path(name))
        self.skipTest('too fast to be stopped')

    def test_journals(self):
        arguments = ['--vary', f'{DEVICES}=1..8', '--vary', f'{MICRO}=1..100', '--set',
                     '/iterations=8', '-o', 'j.h5']
        lines = self.journal(*arguments)
        said = self.sim(*arguments, status=2).stderr
        self.assertIn('continue with --resume', said)
        other = [*arguments, '--set', '/iterations=9']
        self.assertIn('belongs to another sweep', self.sim(*other, '--resume', status=3).stderr)
        # a damaged line in the middle: points before it are kept
        damaged = lines[:10] + [lines[10].replace('"point"', '"paint"')] + lines[11:]
        self.write('j.h5.journal', ''.join(damaged))
        said = self.sim(*arguments, '--resume').stderr
        self.assertEqual(re.search(r'(\d+) of 800 points were done', said).group(1), '9')
        first = self.digest('j.h5')
        # without the reports in the journal, --json runs the points again
        self.write('j.h5.journal', ''.join(lines))
        done = self.sim(*arguments, '--resume', '--json')
        self.assertIn('0 of 800 points were done', done.stderr)
        self.assertEqual(len(json.loads(done.stdout)['points']), 800)
        self.assertEqual(self.digest('j.h5'), first)
        # another sweep may begin in its place, a foreign file not
        self.write('j.h5.journal', ''.join(lines))
        self.sim('--vary', f'{MICRO}=1..3', '-o', 'j.h5')
        self.write('j.h5.journal', 'notes\n')
        self.assertIn('is not the journal', self.sim(*arguments, status=3).stderr)

    def test_changed_records(self):
        """Drops a record with a correct checksum and impossible contents, and all after it."""
        arguments = ['--vary', f'{DEVICES}=1..8', '--vary', f'{MICRO}=1..20', '--set',
                     '/iterations=64', '-o', 'j.h5']
        lines = self.journal(*arguments)[:12]
        self.write('j.h5.journal', ''.join(lines))
        self.sim(*arguments, '--resume')
        whole = self.digest('j.h5')
        self.assertEqual(resealed.reline(lines[10][17:-1]), lines[10])

        def change(what):
            record = json.loads(lines[10][17:])
            what(record)
            return resealed.reline(json.dumps(record))

        for name, what in {
                'a text that is a number elsewhere': lambda r: r['figures'].update(tasks='x'),
                'an object': lambda r: r['figures'].update(tasks={'a': 1}),
                'a list': lambda r: r.update(figures=[1]),
                'no figures': lambda r: r.update(figures='x'),
                'a name with a slash': lambda r: r['figures'].update({'a/b': 1}),
                'no name': lambda r: r['figures'].update({'': 1}),
                'a result among figures': lambda r: r['figures'].update(result=1),
                'half a point': lambda r: r.update(point=0.5),
                'a point too far': lambda r: r.update(point=160),
                'a point before the first': lambda r: r.update(point=-1),
                'a point in words': lambda r: r.update(point='1')}.items():
            with self.subTest(name):
                self.write('j.h5.journal', ''.join(lines[:10] + [change(what)] + lines[11:]))
                said = self.sim(*arguments, '--resume').stderr
                self.assertEqual(re.search(r'(\d+) of 160 points were done', said).group(1), '9')
                self.assertEqual(self.digest('j.h5'), whole)

    def test_reports_come_back(self):
        arguments = ['--vary', f'{DEVICES}=1..8', '--vary', f'{MICRO}=0..40', '--set',
                     '/iterations=8', '-o', 'j.h5', '--json']
        self.journal(*arguments)
        resumed = self.sim(*arguments, '--resume')
        self.assertNotIn('\n0 of', '\n' + resumed.stderr)
        self.assertEqual(resumed.stdout, self.sim(*arguments).stdout)

    # ---- the file ----

    def test_plots_that_are_refused(self):
        self.sim('--vary', f'{MICRO}=1..3', '-o', 'p.h5')
        self.sim('--vary', f'{MICRO}=1..2', '--vary', '/seed=1..2', '--vary', '/iterations=1..2',
                 '-o', 'q.h5')
        many = 'varies 3 keys (/schedule/micro_batches, /seed, /iterations); fix all but two'
        for name, kind, said in [('p.h5', 'heatmap', 'must be a grid of 2 keys'),
                                 ('q.h5', 'heatmap', many), ('q.h5', 'lines', many)]:
            done = subprocess.run([SIM, 'plot', name, '--kind', kind, '--value', 'makespan_s'],
                                  capture_output=True, text=True, cwd=self.folder.name, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    # ---- tables ----

    def test_table(self):
        """Stages of 2 layers on 4 devices: (M + 3) * 6 ms for M samples, 3/(M + 3) idle; the first
        one has 2 MB each of weights and gradients, 2 MB of activations per micro-batch, and 1 MB
        for the message that it sends."""
        words = ['--vary', f'{MICRO}=0,1,2,4', '--vary', '/platform/memory="10 MB"', '--table']
        out = self.sim(*words, 'main,tasks', '-o', 't.csv').stdout
        rows = [re.split(r'  +', line.strip()) for line in out.splitlines()]
        names = ['iteration_time_s', 'throughput_samples_per_s', 'bubble_fraction',
                 'peak_memory_bytes']
        self.assertEqual(rows[0], ['micro_batches', 'memory', *names, 'tasks'])
        self.assertEqual(rows[1][:7], ['0', '10 MB', '-', '-', '-', '-', '-'])
        self.assertTrue(rows[1][7].startswith('FAILED: '))
        times = [('24 ms', '41.667 samples/s', '0.75'), ('30 ms', '66.667 samples/s', '0.6'),
                 ('42 ms', '95.238 samples/s', '0.428571')]
        for row, micro, figures, peak in zip(rows[2:], (1, 2, 4), times, ('7 MB', '9 MB', '13 MB')):
            self.assertEqual(row[:6], [str(micro), '10 MB', *figures, peak])
            self.assertEqual(row[7:], ['OUT OF MEMORY'] if micro == 4 else [])
        with open(self.path('t.csv'), newline='', encoding='utf-8') as file:
            lines = list(csv.DictReader(file))
        self.assertEqual(list(lines[0]), [MICRO, '/platform/memory', *names, 'tasks',
                                          'out_of_memory', 'error'])
        for line, micro in zip(lines, (0, 1, 2, 4)):
            self.assertEqual((float(line[MICRO]), float(line['/platform/memory'])), (micro, 1e7))
            self.assertEqual(bool(line['error']), micro == 0)
            if micro == 0:
                self.assertEqual({line[name] for name in names}, {''})
                continue
            self.assertEqual(float(line['iteration_time_s']), (micro + 3) * 6 / 1000)
            self.assertEqual(float(line['peak_memory_bytes']), (5 + 2 * micro) * 1e6)
            self.assertEqual(line['out_of_memory'], '1' if micro == 4 else '0')

    def test_whole_csv(self):
        """Without --table, everything in the HDF5 file."""
        self.sim('--vary', f'{MICRO}=1,2', '-o', 't.csv')
        results = [p['result'] for p in self.points('--vary', f'{MICRO}=1,2')]
        with open(self.path('t.csv'), newline='', encoding='utf-8') as file:
            for line, result in zip(csv.DictReader(file), results):
                for key, value in result.items():
                    if isinstance(value, (int, float)):
                        self.assertEqual(float(line[key]), value, key)
        self.assertFalse(os.path.exists(self.path('t.csv.journal')))

    def test_allocator(self):
        """With an allocator, each of its metrics comes from the device with the largest value;
        otherwise there is none."""
        words = ['--vary', f'{MICRO}=1,2', '--set']
        keys = ['peak_allocated_bytes', 'peak_reserved_bytes', 'fragmentation_fraction']
        self.sim(*words, '/memory/allocator=pytorch', '-o', 't.csv')
        points = self.points(*words, '/memory/allocator=pytorch')
        with open(self.path('t.csv'), newline='', encoding='utf-8') as file:
            for line, point in zip(csv.DictReader(file), points, strict=True):
                for key in keys:
                    most = max(device['allocator'][key] for device in point['result']['devices'])
                    self.assertEqual(float(line[key]), most)
                    self.assertGreater(most, 0)
        self.sim('--vary', f'{MICRO}=1,2', '-o', 'none.csv')
        with open(self.path('none.csv'), newline='', encoding='utf-8') as file:
            self.assertEqual([key for key in csv.DictReader(file).fieldnames if key in keys], [])

    def test_table_refused(self):
        words = ['--vary', f'{MICRO}=1,2', '--table']
        self.refused('did you mean "makespan_s"?', *words, 'makespan', status=2)
        self.refused('--table excludes --json', *words, 'main', '--json', status=2)

    def test_table_of_failures(self):
        """The messages of the points help, not that they have no figures."""
        words = ['--vary', f'{MICRO}=0', '--table', 'main']
        for more in (['--no-output'], ['-o', 't.csv']):
            done = self.sim(*words, *more, status=1)
            self.assertIn('the only point failed', done.stderr)
            self.assertRegex(done.stdout, r'\n0 +FAILED: .*/schedule/micro_batches: must be from 1')

    def test_unknown_figure_after_the_points(self):
        """What was simulated is not lost."""
        words = ['--vary', f'{MICRO}=1,2', '-o', 't.csv', '--table']
        done = self.sim(*words, 'makespan', status=2)
        self.assertIn('2 of 2 points are done; --resume continues', done.stderr)
        self.assertIn('2 of 2 points were done before',
                      self.sim(*words, 'makespan_s', '--resume').stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ['s.json', 't.csv'])

    def test_what_a_terminal_obeys_is_shown(self):
        """Also of an object, whose members differ, and of a point that failed."""
        out = self.sim('--vary', '/name="a\\u001b[31m","b\\u202e"', '--no-output', '--table',
                       'main', status=1).stdout
        self.assertEqual(set(re.findall(r'^(?:a|b)\S*', out, re.M)), {'a\\u001b[31m', 'b\\u202e'})
        out = self.sim('--vary', '/schedule={"kind": "dp"},{"kind": "\\u009b"}',
                       '--no-output').stdout
        self.assertIn('from kind=dp to kind=\\u009b', out)

    def test_what_fits(self):
        """More micro-batches are faster, until they do not fit (see test_table)."""
        words = ['--no-output', '--vary', f'{MICRO}=1,2,4,8', '--set']
        out = self.sim(*words, '/platform/memory=10 MB').stdout
        self.assertRegex(out, r'\nthroughput_samples_per_s +41\.667 samples/s +1 .* 8 \*\n')
        self.assertIn('* out of memory, at 2 of 4 points; the highest throughput_samples_per_s '
                      'that fits is 66.667 samples/s at 2\n', out)
        self.assertIn('at 4 of 4 points; no point fits\n',
                      self.sim(*words, '/platform/memory=1 MB').stdout)
        self.assertNotIn('*', self.sim(*words, '/platform/memory=1 GB').stdout)

    def test_labels(self):
        """Of objects: what differs."""
        kinds = ['{"kind": "gpipe", "micro_batches": 2, "partition": "balanced"}',
                 '{"kind": "dp"}', '{"partition": "balanced", "kind": "1f1b", "micro_batches": 2}']
        out = self.sim('--vary', '/schedule=' + ','.join(kinds), '--no-output', '--table',
                       'makespan_s').stdout.splitlines()
        self.assertEqual([re.split(r'  +', line)[0] for line in out],
                         ['schedule', 'kind=gpipe micro_batches=2 partition=balanced', 'kind=dp',
                          'partition=balanced kind=1f1b micro_batches=2'])
        out = self.sim('--vary', '/schedule=' + ','.join([kinds[0], kinds[2]]),
                       '--no-output').stdout
        self.assertIn('2 values from kind=gpipe to kind=1f1b', out)

    def test_staleness(self):
        """PipeDream keeps S - s versions on stage s of S = 4, for gradients that are S - 1 - s
        updates late (Narayanan et al., SOSP 2019, section 3.3), 1.5 in the mean of the stages;
        PipeDream-2BW two, for 1 (Narayanan et al., ICML 2021, section 3.1); GPipe flushes."""
        kinds = ['{"kind": "pipedream"}', '{"kind": "pipedream_2bw", "micro_batches": 4}',
                 '{"kind": "gpipe", "micro_batches": 4}']
        self.sim('--vary', '/schedule=' + ','.join(kinds), '-o', 't.csv', '--table',
                 'peak_versions,gradient_delay_max,gradient_delay_mean', '--set', '/iterations=12')
        with open(self.path('t.csv'), newline='', encoding='utf-8') as file:
            self.assertEqual([(r['peak_versions'], r['gradient_delay_max'],
                               r['gradient_delay_mean'])
                              for r in csv.DictReader(file)],
                             [('4', '3', '1.5'), ('2', '1', '1'), ('1', '0', '0')])
        said = {}
        for kind in kinds:
            out = subprocess.run([SIM, 'run', 's.json', '--no-output', '-s', '/iterations=12', '-s',
                                  '/schedule=' + kind], capture_output=True, text=True, check=True,
                                 cwd=self.folder.name).stdout
            table = out.partition('versions   gradient delay\n')[2].partition('\n\n')[0]
            rows, _, form = table.partition('closed form of peak versions: ')
            said[kind] = [tuple(line.split()) for line in rows.splitlines()[1:]] + [form]
        self.assertEqual(list(said.values()), [
            [('0', '4', '3', '3'), ('1', '3', '2', '2'), ('2', '2', '1', '1'), ('3', '1', '0', '0'),
             'equal on 4 of 4 devices: P - s versions'],
            [('0-3', '2', '1', '1'), 'equal on 4 of 4 devices: 2 versions'], ['']])

    def test_hint(self):
        """pipedream has no micro_batches; the command that the message tells works."""
        done = self.sim('--no-output', '--vary', '/schedule/kind=gpipe,pipedream')
        hint = re.search(r"1 of 2 points failed.*unknown key.*; vary the whole section where keys "
                         r"differ: --vary '(.*)'$", done.stderr, re.MULTILINE)
        self.assertTrue(hint, done.stderr)
        points = self.points('--vary', hint[1])
        self.assertEqual([p['result']['schedule'] for p in points], ['gpipe', 'pipedream'])
        # with more keys of the section, and one of another: micro-batches of gpipe, one run of
        # pipedream, all twice
        done = self.sim('--no-output', '--vary', '/schedule/kind=gpipe,pipedream', '--vary',
                        '/schedule/micro_batches=4,8', '--vary', '/model/uniform/layers=4,8')
        hint = re.search(r"4 of 8 points failed.*unknown key.*; vary the whole section where keys "
                         r"differ: --vary '(.*)'$", done.stderr, re.MULTILINE)
        self.assertTrue(hint, done.stderr)
        points = self.points('--vary', hint[1], '--vary', '/model/uniform/layers=4,8')
        self.assertEqual([(p['result']['schedule'], p['result']['micro_batches']) for p in points],
                         [('gpipe', 4)] * 2 + [('gpipe', 8)] * 2 + [('pipedream', 1)] * 2)
        # what pipedream has, too, stays
        done = self.sim('--no-output', '--vary', '/schedule/kind=gpipe,pipedream', '--vary',
                        '/schedule/partition=[2,4,6],[1,2,4]')
        for partition in ('2, ?4, ?6', '1, ?2, ?4'):
            self.assertRegex(done.stderr, r'"kind": "pipedream", ?"partition": \[%s\]' % partition)
        # a key within a member of the section: the member is whole
        done = self.sim('--no-output', '--vary', '/schedule/kind=pipedream,gpipe', '--vary',
                        '/schedule/partition/2=5,6', '-s', '/schedule/partition=[1,2,4]')
        for partition in ('1, ?2, ?5', '1, ?2, ?6'):
            self.assertRegex(done.stderr, r'"kind": "pipedream", ?"partition": \[%s\]' % partition)
        done = self.sim('--no-output', '--vary', '/schedule/kind=gpipe,pipedream', '--vary',
                        '/schedule/micro_batches=1..32')
        self.assertEqual(done.stderr.count('"kind": "gpipe"'), 8)
        self.assertTrue(done.stderr.endswith(",...'\n"), done.stderr)
        done = self.sim('--no-output', '--vary', '/platform/topology=ideal,abci')
        self.assertNotIn('whole section', done.stderr)

    def test_file(self):
        try:
            import h5py
        except ImportError:
            self.skipTest('no h5py')
        self.sim('--vary', f'{DEVICES}=2,4', '--vary', f'{MICRO}=0..2', '--vary',
                 '/platform/memory=1..2 GB', '--vary', '/schedule/kind=gpipe,1f1b', '-o', 'g.h5')
        with h5py.File(self.path('g.h5')) as file:
            self.assertEqual(file.attrs['format'], 'sim-sweep')
            self.assertEqual(json.loads(file.attrs['scenario'])['name'], 'tiny')
            makespan = file['makespan_s']
            self.assertEqual(makespan.shape, (2, 3, 2, 2))
            self.assertEqual(makespan.attrs['units'], 's')
            self.assertEqual([makespan.dims[i][0].name for i in range(4)],
                             ['/platform.devices', '/schedule.micro_batches', '/platform.memory',
                              '/schedule.kind'])
            self.assertEqual(list(file['platform.memory']), [1e9, 2e9])
            self.assertEqual(file['platform.memory'].attrs['units'], 'bytes')
            self.assertEqual([k.decode() for k in file['schedule.kind']], ['gpipe', '1f1b'])
            self.assertAlmostEqual(makespan[1, 2, 0, 0], (2 + 4 - 1) * 2 * 3e-3)
            self.assertTrue(all(v != v for v in makespan[:, 0].flat))
            self.assertIn(MICRO, file['error'][0, 0, 0, 0].decode())


if __name__ == '__main__':
    unittest.main()

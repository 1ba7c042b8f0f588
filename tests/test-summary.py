#!/usr/bin/env python3
"""Time, bytes and rates of a summary agree: test-summary.py SIM SOURCE_ROOT [-n CASES]

No device sends more than its links carry: the bytes of a purpose, a mean over the devices, are at
most the time of its communication times the bandwidth of all links that leave a device. Exposed
times of purposes add up to exposed messages and collectives, times of purposes to no less than the
time of all communication, and none is longer than that. This holds for all shipped scenarios and
for drawn ones, with flows and with delays, whatever is hidden. A stopped run shows no bytes.
"""
import glob
import json
import os
import random
import re
import subprocess
import sys
import unittest

SIM, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
CASES = int(sys.argv[sys.argv.index('-n') + 1]) if '-n' in sys.argv else 120
PURPOSES = ('stages', 'gradients', 'weights', 'tensor', 'context', 'expert', 'space', 'host')
LARGE = 300  # devices


def sim(*words, document=None):
    done = subprocess.run([SIM, *words], input=json.dumps(document) if document else None,
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def leaving(topology):
    """The largest sum of the bandwidths of the links that leave a GPU; None: there is a link
    without limit, or none."""
    gpus = {v['name']: 0 for v in topology['vertices'] if v['kind'] == 'gpu'}
    for link in topology['links']:
        for end in ('from', 'to') if link.get('duplex') else ('from',):
            if link[end] in gpus:
                gpus[link[end]] += link['bandwidth'] or float('inf')
    most = max(gpus.values(), default=0)
    return most if 0 < most < float('inf') else None


def devices_of(run):
    """Returns the number of devices, including those represented by others."""
    return run['mesh']['devices'] if run.get('mesh') else len(run['devices'])


def mixture(draw):
    """A scenario of a small mixture of experts, or a dense model, on GPUs with a link each."""
    kind = draw.choice(('1f1b', 'gpipe', 'zb_v', 'dualpipe_v', 'sequential', 'interleaved_1f1b'))
    stages = 1 if kind == 'sequential' else 2
    expert, tensor = draw.choice(((1, 1), (2, 1), (2, 1), (4, 1), (1, 2), (2, 2)))
    data = expert * draw.choice((1, 2)) if expert > 1 else draw.choice((1, 2, 3))
    micro_batches = 4
    collectives = {'fidelity': draw.choice(('flow', 'analytic', 'analytic', 'alpha_beta'))}
    if collectives['fidelity'] != 'flow':
        for key, values in (('expert_overlap', (0, 0.3, 0.85, 1)), ('tensor_overlap', (0, 0.5, 1)),
                            ('reached', (1, 0.7)), ('nccl', ('none', 'hopper', 'ampere'))):
            if draw.random() < 0.6:
                collectives[key] = draw.choice(values)
    devices = stages * tensor * data
    platform = {'topology': draw.choice(('nvlink_switch', 'fat_tree')), 'devices': devices,
                'bandwidth': draw.choice(('2 GB/s', '50 GB/s', '400 GB/s')),
                'latency': draw.choice(('0 s', '2 us')), 'sharing': 'max_min'}
    parallel = {'pipeline': stages, 'tensor': tensor, 'data': data, 'expert': expert,
                'zero': draw.choice((0, 1)), 'fold': draw.choice(('no', 'try'))
                if collectives['fidelity'] != 'flow' else 'no'}
    schedule = {'kind': kind, 'micro_batches': micro_batches}
    if kind == 'interleaved_1f1b':
        schedule['chunks'] = 2
    return {'schema_version': 1, 'runtime': 'ideal',
            'model': {'name': 'mixtral', 'parameters': {
                'layers': 6, 'hidden': 256, 'heads': 4, 'kv_heads': 4, 'expert_intermediate': 512,
                'sequence': 256, 'vocabulary': 1024, 'experts': 4},
                      'device': 'h100', 'precision': 'bf16', 'granularity': 'block',
                      'optimizer': 'adam', 'batch_size': data * micro_batches},
            'platform': platform, 'parallel': parallel, 'collectives': collectives,
            'schedule': schedule}


class Summary(unittest.TestCase):
    def agree(self, run, capacity):
        n = devices_of(run)
        whole, parts, exposed = run['communication_active_s'], 0, 0
        for purpose in PURPOSES:
            if f'moved_{purpose}_bytes' not in run:
                continue
            time, moved = run[f'active_{purpose}_s'], run[f'moved_{purpose}_bytes'] / n
            parts += time
            exposed += run[f'exposed_{purpose}_s']
            self.assertLessEqual(time, whole * (1 + 1e-9) + 1e-12, purpose)
            if capacity and purpose != 'host':
                self.assertLessEqual(moved, time * capacity * (1 + 1e-6) + 1, purpose)
        self.assertGreaterEqual(parts, whole * (1 - 1e-9))
        waited = run['exposed_messages_s'] + run['exposed_collectives_s']
        self.assertAlmostEqual(exposed, waited, delta=1e-9 * (waited + 1e-3))

    def test_shipped(self):
        checked = 0
        for path in sorted(glob.glob(os.path.join(ROOT, 'scenarios', '*.json'))):
            with open(path, encoding='utf-8') as file:
                platform = json.load(file).get('platform')
            devices = platform.get('devices', 0) if isinstance(platform, dict) else 0
            sharing = platform.get('sharing', 'max_min') if isinstance(platform, dict) else ''
            if devices > LARGE:
                continue
            code, text, _ = sim('run', path, '--no-output', '--json')
            run = json.loads(text) if code == 0 else {}
            if 'communication_active_s' not in run:
                continue
            topology = sim('export', 'topology', path)
            # times that were measured elsewhere know nothing of the links of this platform
            limited = topology[0] == 0 and sharing in ('max_min', 'fifo') and 'costs' not in run
            with self.subTest(os.path.basename(path)):
                self.agree(run, leaving(json.loads(topology[1])) if limited else None)
                checked += 1
        self.assertGreater(checked, 25)

    def test_drawn(self):
        draw, ran, hidden = random.Random(20), 0, 0
        for case in range(CASES):
            scenario = mixture(draw)
            code, text, error = sim('run', '/dev/stdin', '--no-output', '--json',
                                    document=scenario)
            if code == 3:
                continue  # does not divide
            with self.subTest(case=case, scenario=json.dumps(scenario)):
                self.assertEqual(code, 0, error)
                number, unit = scenario['platform']['bandwidth'].split()
                self.assertEqual(unit, 'GB/s')
                self.agree(json.loads(text), float(number) * 1e9)
                ran += 1
                hidden += scenario['collectives'].get('expert_overlap', 0) > 0
        self.assertGreater(ran, CASES // 2)
        self.assertGreater(hidden, CASES // 12)

    def test_hidden_time_is_counted(self):
        """A collective takes as long as without overlap, by each rank and in all: 85 % of the
        all-to-alls of a pair are hidden, not shorter."""
        draw = random.Random(1)
        scenario = mixture(draw)
        scenario.update(parallel={'pipeline': 2, 'data': 2, 'expert': 2},
                        schedule={'kind': 'dualpipe_v', 'micro_batches': 8})
        scenario['model']['batch_size'] = 16
        scenario['platform'].update(devices=4, bandwidth='50 GB/s')
        made = []
        for hidden in (0, 0.85, 1):
            scenario['collectives'] = {'fidelity': 'analytic', 'expert_overlap': hidden}
            code, text, error = sim('run', '/dev/stdin', '--no-output', '--json',
                                    document=scenario)
            self.assertEqual(code, 0, error)
            made.append(json.loads(text))
        times = [run['active_expert_s'] for run in made]
        for time in times:
            self.assertAlmostEqual(time, times[0], delta=1e-9)
        exposed = [run['exposed_expert_s'] for run in made]
        self.assertGreater(exposed[0], 1.5 * exposed[1])
        shares = [run['communication_hidden_fraction'] for run in made]
        self.assertGreater(shares[1], shares[0] + 0.2)

    def test_nvls(self):
        """A switch that sums has each rank's vector once, and hands the sum to all: (n + 1)/n of
        the vector leave a GPU, not the 2 (n - 1)/n of a ring."""
        scenario = {'schema_version': 1,
                    'model': {'uniform': {'layers': 1, 'forward': '1 ms', 'backward': '1 ms',
                                          'weights': '800 MB', 'activation': 0}},
                    'platform': {'topology': 'dgx-h100', 'devices': 8},
                    'parallel': {'data': 8}, 'schedule': {'kind': 'sequential', 'micro_batches': 1},
                    'collectives': {'nccl': 'hopper', 'nccl_algorithm': 'nvls'}}
        code, text, error = sim('run', '/dev/stdin', '--no-output', '--json', document=scenario)
        self.assertEqual(code, 0, error)
        run = json.loads(text)
        self.agree(run, 450e9)
        self.assertEqual(run['moved_gradients_bytes'], 9 * 800e6)

    def test_measured_collectives(self):
        """Of eight chunks of a measured all-reduce, products hide seven, as of an estimated one;
        the collective takes as long as was measured."""
        made = []
        for overlap in (0, 1):
            scenario = {'schema_version': 1,
                        'model': {'name': 'gpt', 'device': 'v100', 'batch_size': 1,
                                  'parameters': {'layers': 2, 'hidden': 512, 'heads': 8,
                                                 'sequence': 128, 'vocabulary': 1024,
                                                 'intermediate': 2048}},
                        'costs': os.path.join(ROOT, 'calib', 'measured', 'made-up-8.json'),
                        'platform': {'topology': 'nvlink_switch', 'devices': 8,
                                     'bandwidth': '133 GB/s'},
                        'parallel': {'tensor': 8},
                        'schedule': {'kind': 'sequential', 'micro_batches': 1},
                        'collectives': {'fidelity': 'analytic', 'tensor_overlap': overlap}}
            code, text, error = sim('run', '/dev/stdin', '--no-output', '--json',
                                    document=scenario)
            self.assertEqual(code, 0, error)
            made.append(json.loads(text))
        self.assertAlmostEqual(made[0]['active_tensor_s'], made[1]['active_tensor_s'], 9)
        self.assertLess(made[1]['exposed_tensor_s'], made[0]['exposed_tensor_s'] / 4)

    def test_text_and_json(self):
        """The table has a line for each purpose, with the same numbers; rate = bytes / time."""
        path = os.path.join(ROOT, 'scenarios', 'mixtral-8x7b-64.json')
        run = json.loads(sim('run', path, '--no-output', '--json')[1])
        text = sim('run', path, '--no-output')[1]
        scale = {'B': 1, 'kB': 1e3, 'MB': 1e6, 'GB': 1e9, 'TB': 1e12, 's': 1, 'ms': 1e-3,
                 'us': 1e-6, 'ns': 1e-9, 'GB/s': 1e9, 'MB/s': 1e6, 'TB/s': 1e12}
        found = 0
        for line in text.splitlines():
            words = line.split()
            if len(words) != 9 or words[0] not in PURPOSES:
                continue
            time, exposed, sent, rate = (float(words[i]) * scale[words[i + 1]]
                                         for i in (1, 3, 5, 7))
            n, purpose = devices_of(run), words[0]
            self.assertAlmostEqual(time / run[f'active_{purpose}_s'], 1, 3)
            self.assertAlmostEqual(exposed / run[f'exposed_{purpose}_s'], 1, 3)
            self.assertAlmostEqual(sent * n / run[f'moved_{purpose}_bytes'], 1, 3)
            self.assertAlmostEqual(rate / (sent / time), 1, 2)
            found += 1
        self.assertEqual(found, 5)
        self.assertTrue(re.search(r'^ +purpose +time +exposed +sent', text, re.MULTILINE))

    def test_plain_parallelism_and_stopped_runs(self):
        """Bytes of data and of pipeline parallelism by the volumes of their algorithms; none of a
        run that was stopped, which has sent only a part."""
        ring = {'topology': 'ring', 'devices': 4, 'bandwidth': '1 GB/s'}
        model = {'uniform': {'layers': 4, 'forward': '1 ms', 'backward': '1 ms', 'weights': '4 MB',
                             'activation': '1 MB'}}
        for schedule, purpose, moved in (
                ({'kind': 'dp'}, 'gradients', 2 * 3 * 16e6),  # 2 (n - 1) of all weights
                ({'kind': 'gpipe', 'micro_batches': 2}, 'stages', 2 * 3 * 2 * 1e6)):
            scenario = {'schema_version': 1, 'model': model, 'platform': ring,
                        'schedule': schedule}
            run = json.loads(sim('run', '/dev/stdin', '--no-output', '--json',
                                 document=scenario)[1])
            self.assertEqual(run[f'moved_{purpose}_bytes'], moved)
            scenario['platform'] = dict(ring, memory='1 MB')
            run = json.loads(sim('run', '/dev/stdin', '--no-output', '--json', '--stop-on-oom',
                                 document=scenario)[1])
            self.assertTrue(run['stopped'])
            self.assertIsNone(run[f'moved_{purpose}_bytes'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

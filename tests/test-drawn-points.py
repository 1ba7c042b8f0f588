#!/usr/bin/env python3
"""What predictions of any points have in common: test-drawn-points.py SIM ROOT [-n N] [-s SEED]

Points are drawn (drawn_points.py), each with variants that differ in one thing, and predicted in
one go:

- each is predicted, or misses features that are named; none fails, and none of those with values at
  the edges
- parts of a step add up to it; no run multiplies more than the data sheet says, counted here
  independently from the sizes of the model
- reserved memory is not below allocated memory, which has at least the weights
- pairs: of two runs that differ in one thing, the one takes at least, or at most, so much time or
  memory by the other
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

import descriptions
from drawn_points import GPUS, alike, draw, draw_edge

GIVEN = argparse.ArgumentParser()
GIVEN.add_argument('sim')
GIVEN.add_argument('root')
GIVEN.add_argument('-n', type=int, default=100)
GIVEN.add_argument('-s', '--seed', type=int, default=0)
GIVEN = GIVEN.parse_args()

# What a point may miss, by the beginnings of messages.
FEATURES = ('stated: ', 'the network ', 'the device ', 'the schedule ', 'networks of the kind ',
            'experts in encoders with decoders', 'adapters in networks ', 'packed samples ',
            'several nodes of ', 'the nodes of ', 'more ranks than heads',
            'experts and tensor parallelism without ', 'ranks that divide tokens ',
            'measured passes of ranks ', 'the activation ', 'the norm ', 'the optimizer ',
            'offloading ', 'full recomputation of some blocks', 'Mamba layers ',
            'several stages a rank ', 'ranks that do not divide adapters ')


def peak(gpu, precision):
    """Of a device's file, flop/s."""
    peaks = descriptions.load(GIVEN.root, 'devices', GPUS[gpu][0])['peaks']
    number, unit = peaks.get(precision, peaks['fp32']).split()
    return float(number) * {'Tflop/s': 1e12, 'Gflop/s': 1e9}[unit]


def weights(model):
    """Parameters of all matrices that each token is multiplied with, and of all: at least these."""
    hidden, layers = model['hidden'], model['layers']
    head = model.get('head_dim') or hidden // model['heads']
    attention = 2 * hidden * head * (model['heads']
                                     + model['kv_heads']) if not model.get('mla') else 0
    matrices = 3 if model['act'] in ('swiglu', 'geglu') else 2
    used = held = matrices * hidden * model['ffn']
    if model.get('experts'):
        used = matrices * hidden * (model['topk'] * model['moe_ffn'] + model.get('shared_ffn', 0))
        held = matrices * hidden * model['experts'] * model['moe_ffn']
    plain = model.get('dense_layers', 0)
    return [attention * layers + part * (layers - plain) + hidden * model['vocab']
            for part in (used, held)]


def is_decoder(point):
    return point['model']['kind'].startswith('decoder')


def doubled_micro(point):
    """Micro-batches of twice the sequences."""
    batch = point['batch']
    return {'batch/micro': 2 * batch['micro'], 'batch/global': 2 * batch['global']}


def doubled_batch(point):
    batch = point['batch']
    times = batch['micro_batches']
    return {'batch/global': 2 * batch['global'], 'batch/micro_batches': times and 2 * times}


def twice_the_gpus(point):
    """Twice the replicas, each with half of the micro-batches; none where a replica has one."""
    batch, mesh = point['batch'], point['parallel']
    times = batch['global'] // batch['micro'] // mesh['dp']
    if times % 2 or (mesh['pp'] > 1 and times < 4 * mesh['pp']) or not mesh.get('dp', 1) > 1:
        return None
    return {'parallel/dp': 2 * mesh['dp'], 'hardware/gpus': 2 * point['hardware']['gpus'],
            'batch/micro_batches': batch['micro_batches'] and times // 2}


def only(condition, **changes):
    """Changes of points where the condition holds."""
    return lambda point: {k.replace('__', '/'): v
                          for k, v in changes.items()} if condition(point) else None


def on_faster(point):
    """A later GPU in nodes of as many; each of its figures is better."""
    later = {'A100-SXM4-80GB': 'H100-SXM5-80GB', 'H100-SXM5-80GB': 'B200-SXM-180GB',
             'V100-SXM2-16GB': 'A100-SXM4-80GB'}
    gpu = later.get(point['hardware']['gpu'])
    return {'hardware/gpu': gpu} if gpu else None


def longer(point):
    return {'model/layers': 2 * point['model']['layers']} if 'layers' in point['model'] else None


def is_large(point):
    """Products that fill a GPU, and nobody to wait for: a tenth of the peak at least."""
    return (point['hardware']['gpus'] == 1 and point['model']['hidden'] >= 4096
            and not point['model'].get('experts') and
            not point['precision'].startswith(('nvfp4', 'mxfp8'))
            and point['options'].get('flash_attention', True))


def has_flash(point):
    """Fused attention is faster in types of two bytes only."""
    return (is_decoder(point) and point['precision'] not in ('fp32', 'tf32')
            and not point['options'].get('packed_tokens')
            and point['recompute'] == 'none')


def is_gated(point):
    """Networks that do not become another one where samples are packed."""
    return is_decoder(point) and point['model']['norm'] == 'rmsnorm' and not point['model'].get(
        'qk_norm')


# name, changes, least and most that time grows by, the same of allocated memory; None: anything
#
# Where more is done at a time kernels get no slower by the piece: at most twice the time, and no
# more for work once per step. Other work (messages, updates) may grow: the bounds
# leave room for it, none for an effect with the wrong sign. Small runs depend on the host, on
# which some kernels more or less are a few percent.
PAIRS = [
    ('micro', doubled_micro, (0.999, 2.02), (1, 2.02)),
    ('batch', lambda p: None if p['schedule'] == 'gpipe' else doubled_batch(p), (1, 2.02),
     (0.999, 1.3)),
    ('gpus', twice_the_gpus, (0.45, 1.5), (0.4, 1.1)),
    ('faster', on_faster, (0.02, 1.1), None),
    ('longer', longer, (1, 2.3), (1, 2.3)),
    ('full', only(lambda p: p['recompute'] == 'none', recompute='full'), (1, 1.6), (0, 1.001)),
    ('no update', only(lambda p: True, options__no_optimizer_step=True), (0.1, 1), (0, 1)),
    ('zero1', only(lambda p: p['parallel'].get('zero') == 0 and is_decoder(p), parallel__zero=1),
     (0.3, 1.5), (0, 1.1)),
    ('graphs', only(lambda p: 'cuda_graphs' not in p['options'], options__cuda_graphs=True),
     (0.02, 1), None),
    ('math', only(has_flash, options__flash_attention=False), (1, None), (0.999, None)),
    ('overlap', only(lambda p: p['parallel'].get('tp', 1) > 1 and not p['options'].get('async_tp'),
                     options__tp_overlap=True),
     (0.3, 1.001), None),
    ('packed', only(is_gated, options__packed_tokens=64), (0.1, 1.01), None),
    ('fp32', only(lambda p: p['precision'] in ('bf16', 'fp16'), precision='fp32'), (0.95, 40),
     None),
]


def predict(points):
    with tempfile.TemporaryDirectory(prefix='test-drawn-') as folder:
        path = os.path.join(folder, 'points.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump({'schema': 'truth/1', 'dataset': 'drawn', 'points': points}, file)
        done = subprocess.run([os.path.abspath(GIVEN.sim), 'validate', path, '--json'],
                              capture_output=True, text=True,
                              check=False)
    if done.returncode != 0:
        raise AssertionError(f'status {done.returncode}\n{done.stderr}')
    return {row['id']: row for row in json.loads(done.stdout)['points']}


class Drawn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.points = [draw(GIVEN.seed + i) for i in range(GIVEN.n)]
        variants = []
        for point in cls.points:
            for name, change, *_ in PAIRS:
                changes = change(point)
                if changes:
                    variants.append(alike(point, name, changes))
        cls.all = {p['id']: p for p in cls.points + variants}
        cls.rows = predict(list(cls.all.values()))
        cls.edges = predict([draw_edge(GIVEN.seed + i) for i in range(2 * GIVEN.n)])

    def predicted(self):
        return [(p, self.rows[p['id']]) for p in self.all.values() if self.rows[p['id']]['state']
                == 'predicted']

    def test_predicted_or_named(self):
        for identity, row in (self.rows | self.edges).items():
            with self.subTest(identity):
                self.assertIn(row['state'], ('predicted', 'missing'), row)
                if row['state'] == 'missing':
                    first = row['missing'][0]
                    self.assertTrue(first.startswith(FEATURES) or ' matrix products' in first,
                                    first)
        self.assertGreater(len(self.predicted()), 0.5 * len(self.all))

    def test_parts_add_up(self):
        for point, row in self.predicted():
            with self.subTest(point['id']):
                self.assertGreater(row['predicted_step_time_s'], 0)
                step = row['predicted_step_time_s']
                self.assertGreaterEqual(min(row['parts_s'].values()), -1e-9 * step)
                self.assertAlmostEqual(sum(row['parts_s'].values()) / step, 1, 6)

    def test_within_the_data_sheet(self):
        """Products of the forward, and of gradients of activations and weights; of adapters'
        networks only the former two."""
        for point, row in self.predicted():
            if not is_decoder(point):
                continue
            with self.subTest(point['id']):
                passes = 4 if point['options'].get('lora') else 6
                flop = passes * weights(point['model'])[0] * point['model']['seq'] * point['batch'][
                    'global']
                rate = flop / row['predicted_step_time_s'] / point['hardware']['gpus']
                share = rate / peak(point['hardware']['gpu'], point['precision'])
                self.assertLess(share, 1)
                if is_large(point):
                    self.assertGreater(share, 0.1)

    def test_memory_holds_weights(self):
        for point, row in self.predicted():
            if not is_decoder(point) or point['parallel'].get('zero') == 3 or row['out_of_memory']:
                continue
            with self.subTest(point['id']):
                mesh = point['parallel']
                ranks = mesh['tp'] * mesh['pp'] * mesh.get('ep', 1)
                least = weights(point['model'])[1] * (4 if point['precision'] in ('fp32', 'tf32')
                                                      else 0.5) / ranks
                self.assertGreaterEqual(row['predicted_allocated_bytes'], least)
                if row.get('predicted_reserved_bytes'):
                    self.assertGreaterEqual(row['predicted_reserved_bytes'],
                                            row['predicted_allocated_bytes'])

    def test_pairs(self):
        compared = {name: 0 for name, *_ in PAIRS}
        for point in self.points:
            for name, _, *bounds in PAIRS:
                before, after = self.rows[point['id']], self.rows.get(f'{point["id"]}/{name}')
                if not after or before['state'] != 'predicted' or after['state'] != 'predicted':
                    continue
                compared[name] += 1
                for key, bound in zip(('predicted_step_time_s', 'predicted_allocated_bytes'),
                                      bounds):
                    if not bound or before['out_of_memory'] or after['out_of_memory']:
                        continue
                    grows = after[key] / before[key]
                    with self.subTest(f'{point["id"]}, {name}: {key}'):
                        self.assertGreaterEqual(grows, bound[0])
                        if bound[1]:
                            self.assertLessEqual(grows, bound[1])
        self.assertTrue(all(compared.values()), compared)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""Muon compared with independent counts: test-muon.py SIM

A small Llama is trained on a device that multiplies at 1 Tflop/s and moves 1 TB/s, where the time
of an update is a sum of flop and bytes. Which matrices there are, what orthogonalising takes, what
is kept, and which device of several has which matrices are counted here from the papers' and the
frameworks' definitions (sim/model/muon.h, schedules/matrices.h), matrix by matrix.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'

RATE = 1e12
LAYERS, HIDDEN, HEADS, KV_HEADS, INNER, WORDS, TOKENS = 3, 512, 8, 2, 1536, 4096, 64
KEYS = HIDDEN // HEADS * KV_HEADS
EXPERTS, EXPERT_INNER = 4, 256

EFFICIENCY = {'compute': 1, 'memory': 1, 'source': 'a test'}
DEVICE = {
    'schema_version': 1, 'name': 'even', 'title': 'Even', 'memory': '80 GB', 'bandwidth': '1 TB/s',
    'launch': '0 s',
    'peaks': {'fp32': '1 Tflop/s', 'bf16': '1 Tflop/s'},
    'sources': {'peaks': 'a test', 'bandwidth': 'a test', 'memory': 'a test', 'launch': 'a test'},
    'efficiency': {group: EFFICIENCY for group in
                   ('conv', 'linear', 'attention', 'norm', 'elementwise', 'pool', 'embedding',
                    'loss')}}

RUNTIME = {'name': 'pytorch-ddp', 'host_kernel': '0 s', 'foreach_optimizer': False}


def run(of=None, **other):
    scenario = {
        'schema_version': 1, 'name': 'muon', 'runtime': 'ideal',
        'model': {'name': 'llama', 'device': 'even.json', 'precision': 'bf16', 'batch_size': 8,
                  'optimizer': 'muon',
                  'granularity': 'block',
                  'parameters': {'layers': LAYERS, 'hidden': HIDDEN, 'heads': HEADS,
                                 'kv_heads': KV_HEADS,
                                 'intermediate': INNER, 'vocabulary': WORDS, 'sequence': TOKENS},
                  **(of or {})},
        'platform': {'topology': 'ideal', 'devices': 1},
        'schedule': {'kind': 'sequential', 'micro_batches': 1}, **other}
    with tempfile.TemporaryDirectory(prefix='test-muon-') as folder:
        for name, document in (('muon.json', scenario), ('even.json', DEVICE)):
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                json.dump(document, file)
        path = os.path.join(folder, 'muon.json')
        done = subprocess.run([SIM, 'run', path, '--no-output', '--json'], capture_output=True,
                              text=True, check=False)
        resolved = subprocess.run([SIM, 'check', path, '--resolved'], capture_output=True,
                                  text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr
    result = json.loads(done.stdout)
    return result['devices'], resolved.stdout


def update_of(devices):
    return max(d['compute_s']['update'] for d in devices)


def states_of(devices):
    return max(d['category_peak_bytes']['optimizer_states'] for d in devices)


# ---- counts ----

def matrices_of_layer(gate_joined=False, tensor=1, experts=0):
    """(rows, columns) of queries, keys, values, the projection after attention, and the MLP;
    features are divided."""
    attention = [(HIDDEN // tensor, HIDDEN), (KEYS // tensor, HIDDEN), (KEYS // tensor, HIDDEN),
                 (HIDDEN, HIDDEN // tensor)]
    inner = (EXPERT_INNER if experts else INNER) // tensor
    halves = [(2 * inner, HIDDEN)] if gate_joined else [(inner, HIDDEN)] * 2
    router = [(EXPERTS, HIDDEN)] if experts else []
    return attention + router, (halves + [(HIDDEN, inner)]) * max(experts, 1)


def others(tensor=1):
    """Table, last matrix, two norms per layer and one after them."""
    return 2 * WORDS // tensor * HIDDEN + (2 * LAYERS + 1) * HIDDEN


def steps(rows, columns, **how):
    return steps_along(min(rows, columns), max(rows, columns), **how)


def steps_along(m, k, n=5, add=max):
    """Seconds of orthogonalising: each product reads and writes its matrices of 2 bytes once, and a
    sum is copied before a product adds to it. `add`: how flop and bytes of a product meet."""
    seconds = 0
    for _ in range(n):
        for flop, elements in ((2 * m * m * k, m * k + m * m), (2 * m * m * m, 3 * m * m),
                               (2 * m * m * k, m * m + 3 * m * k)):
            seconds += add(flop / RATE, 2 * elements / RATE)
        seconds += 2 * 2 * (m * m + m * k) / RATE
    return seconds


# Of an element whose copy and state have 4 bytes: decay, momentum, Nesterov's, norm and division,
# to bf16 and back, two factors, update, and the copy to bf16.
AROUND = 8 + (4 + 8) + (4 + 4 + 4) + (4 + 8) + (4 + 2) + (2 + 4) + 8 + 8 + 12 + (4 + 2)

# Gradient in bf16, copy and two states read and written, weight written.
ADAM = 2 + 8 + 2 + 16


def seconds(matrix, **how):
    return steps(*matrix, **how) + AROUND * matrix[0] * matrix[1] / RATE


def size(matrix):
    return matrix[0] * matrix[1]


def shares(matrices, n):
    """The largest matrix, and of equal ones the slowest, goes to the device that has the least so
    far."""
    devices = [[0, 0.0] for _ in range(n)]
    for matrix in sorted(matrices, key=lambda one: (-size(one), -seconds(one))):
        least = min(devices, key=lambda one: one[0])
        least[0] += size(matrix)
        least[1] += seconds(matrix)
    return max(d[0] for d in devices), max(d[1] for d in devices)


class Muon(unittest.TestCase):
    def made(self, *given, **other):
        devices, text = run(*given, **other)
        self.assertIsNotNone(devices, text)
        return devices

    def near(self, got, form, msg=''):
        self.assertAlmostEqual(got / form, 1, delta=1e-6,
                               msg=f'{msg}: {got:.9g}, counted {form:.9g}')

    def expect(self, devices, matrices, other, msg, **how):
        """All on one device."""
        self.near(update_of(devices), sum(seconds(m, **how) for m in matrices)
                  + other * ADAM / RATE, msg)
        self.assertEqual(states_of(devices), sum(size(m) for m in matrices) * 8 + other * 12, msg)

    def all_matrices(self, **how):
        return [m for part in matrices_of_layer(**how) for m in part] * LAYERS

    def test_one_device(self):
        devices = self.made()
        self.expect(devices, self.all_matrices(), others(), 'one device')

    def test_joined(self):
        """Gate and up have one matrix; queries, keys and values have one each, whatever their
        product."""
        devices = self.made(memory={'fused': ['linear']})
        self.expect(devices, self.all_matrices(gate_joined=True), others(), 'joined')

    def test_steps(self):
        devices = self.made({'newton_schulz_steps': 2})
        self.expect(devices, self.all_matrices(), others(), 'two steps', n=2)

    def test_kernels(self):
        """With the kernels of a runtime flop and bytes of a product add up; a slow host takes 36
        starts a matrix."""
        devices = self.made(runtime=RUNTIME)
        self.expect(devices, self.all_matrices(), others(), 'kernels',
                    add=lambda flop, moved: flop + moved)
        devices = self.made(runtime={**RUNTIME, 'host_kernel': '1 s'})
        adam = others() * ADAM / RATE
        self.near(update_of(devices), 36 * len(self.all_matrices()) + adam, 'host')

    def test_states(self):
        """Momentum in 2 bytes, no copies: 2 bytes of matrices, 4 for all others; updated values
        have 2 as well."""
        devices = self.made({'states': 'bf16', 'main_weights': 'none'})
        around = 4 + (2 + 4) + 6 + 6 + 8 + 6
        form = sum(steps(*m) + around * size(m) / RATE for m in self.all_matrices())
        self.near(update_of(devices), form + others() * (2 + 4 + 8) / RATE, 'bf16')
        self.assertEqual(states_of(devices), sum(map(size, self.all_matrices())) * 2 + others() * 4)

    def test_tensor(self):
        """Each device orthogonalises its part of each matrix; norms are whole."""
        devices = self.made(parallel={'tensor': 2}, platform={'topology': 'ideal', 'devices': 2})
        norms = (2 * LAYERS + 1) * HIDDEN
        self.expect(devices, self.all_matrices(tensor=2), others(tensor=2), 'tensor')
        self.assertLess(norms, others(tensor=2))

    def tensor(self, mode, **parallel):
        n = parallel.pop('devices', 2)
        devices = self.made({'muon_tensor': mode}, parallel={'tensor': 2, **parallel},
                            platform={'topology': 'nvlink_switch', 'bandwidth': '1 GB/s',
                                      'devices': n})
        return devices, devices[0]['exposed_collectives_s']

    def test_duplicated(self):
        """Both devices orthogonalise all of each matrix, which they gather in 4 bytes and join."""
        devices, sent = self.tensor('duplicated')
        wholes = self.all_matrices()
        form = sum(steps(*m) + ((AROUND - 24) * size(m) / 2 + (24 + 8) * size(m)) / RATE
                   for m in wholes)
        self.near(update_of(devices), form + others(tensor=2) * ADAM / RATE, 'duplicated')
        self.assertEqual(states_of(devices), sum(map(size, wholes)) / 2 * 8 + others(tensor=2) * 12)
        self.near(sent - self.tensor('blockwise')[1], sum(map(size, wholes)) * 4 / 2 / 1e9,
                  'gathered')

    def test_distributed(self):
        """The side that is not divided is the first; both devices sum its square in each of five
        steps."""
        devices, sent = self.tensor('distributed')
        parts = self.all_matrices(tensor=2)
        wholes = self.all_matrices()
        sides = [whole[1] if part[0] < whole[0] else whole[0] for part, whole in zip(parts, wholes)]
        form = sum(steps_along(side, size(m) // side) + AROUND * size(m) / RATE
                   for side, m in zip(sides, parts))
        self.near(update_of(devices), form + others(tensor=2) * ADAM / RATE, 'distributed')
        self.near(sent - self.tensor('blockwise')[1],
                  sum(5 * 2 * side * side for side in sides) / 1e9, 'summed')

    def test_gathered_by_owners(self):
        """With zero 1 a device gathers its own matrices only: those with the same place on the
        tensor axis own the same."""
        devices, sent = self.tensor('duplicated', data=2, zero=1, devices=4)
        _, before = self.tensor('blockwise', data=2, zero=1, devices=4)
        most = max(load for load, _ in (shares(self.all_matrices(tensor=2), 2),))
        self.near(sent - before, most * 2 * 4 / 2 / 1e9, 'gathered')
        self.assertLess(update_of(devices), update_of(self.tensor('duplicated')[0]))

    def test_replicas(self):
        """Plain data parallelism: all do the same."""
        devices = self.made(parallel={'data': 4}, platform={'topology': 'ideal', 'devices': 4})
        self.expect(devices, self.all_matrices(), others(), 'replicas')

    def test_owners(self):
        """Whole matrices on each of 4 and of 8 devices, and a part of all else."""
        for n in (2, 4, 8):
            devices = self.made({'optimizer': 'muon'}, parallel={'data': n, 'zero': 1},
                             platform={'topology': 'ideal', 'devices': n})
            most, slowest = shares(self.all_matrices(), n)
            self.near(update_of(devices), slowest + others() / n * ADAM / RATE, f'owners among {n}')
            self.assertEqual(states_of(devices), most * 8 + others() // n * 12, f'owners among {n}')

    def test_gradients(self):
        """All gradients are summed whole, 2 (n - 1)/n of them, and the weights gathered, (n -
        1)/n."""
        n = 4
        moved = {}
        for optimizer in ('muon', 'adam'):
            devices = self.made({'optimizer': optimizer}, parallel={'data': n, 'zero': 1},
                             platform={'topology': 'nvlink_switch', 'bandwidth': '1 GB/s',
                                       'devices': n})
            moved[optimizer] = devices[0]['exposed_collectives_s']
        weights = 2 * (sum(map(size, self.all_matrices())) + others())
        self.near(moved['muon'], 3 * (n - 1) / n * weights / 1e9, 'muon sends')
        self.near(moved['adam'], 2 * (n - 1) / n * weights / 1e9, 'adam sends')

    def test_experts(self):
        """An expert's matrices are its own; a device's experts are sharded over the devices with
        the same experts."""
        model = {'name': 'mixtral', 'parameters': {
            'layers': LAYERS, 'hidden': HIDDEN, 'heads': HEADS, 'kv_heads': KV_HEADS,
            'expert_intermediate': EXPERT_INNER,
            'vocabulary': WORDS, 'sequence': TOKENS, 'experts': EXPERTS, 'top_k': 2}}
        devices = self.made(model, parallel={'data': 4, 'expert': 2, 'zero': 1},
                         platform={'topology': 'ideal', 'devices': 4})
        dense, experts = matrices_of_layer(experts=EXPERTS // 2)
        parts = [shares(dense * LAYERS, 4), shares(experts * LAYERS, 2)]
        self.near(update_of(devices), sum(p[1] for p in parts) + others() / 4 * ADAM / RATE,
                  'experts')
        self.assertEqual(states_of(devices), sum(p[0] for p in parts) * 8 + others() // 4 * 12)

    def test_tables(self):
        """GPT's table of positions is a matrix, the token table, which is also the last matrix, is
        Adam's, and so are biases and both vectors of norms."""
        devices = self.made({'name': 'gpt', 'parameters': {
            'layers': LAYERS, 'hidden': HIDDEN, 'heads': HEADS, 'vocabulary': WORDS,
            'sequence': TOKENS}})
        layer = [(3 * HIDDEN, HIDDEN), (HIDDEN, HIDDEN), (4 * HIDDEN, HIDDEN), (HIDDEN, 4 * HIDDEN)]
        vectors = LAYERS * (9 + 4) * HIDDEN + 2 * HIDDEN
        self.expect(devices, LAYERS * layer + [(TOKENS, HIDDEN)], WORDS * HIDDEN + vectors,
                    'tables')

    def test_shared_table(self):
        """The decoder of Megatron Core's T5 adds the encoder's table of positions: a matrix, once.
        An encoder's layer has four others (queries, keys and values in one), a decoder's seven
        (with queries, keys and values, output)."""
        sizes = {'layers': LAYERS, 'hidden': HIDDEN, 'heads': HEADS, 'head': HIDDEN // HEADS,
                 'intermediate': INNER,
                 'sequence': TOKENS, 'decoder_sequence': TOKENS, 'vocabulary': WORDS,
                 'form': 'megatron'}
        devices, resolved = run({'name': 't5', 'parameters': sizes})
        self.assertIsNotNone(devices, resolved)
        found = [(m['weights'], m.get('n', 1))
                 for layer in json.loads(resolved)['model']['inline']['layers']
                 for m in layer.get('matrices', [])]
        self.assertEqual(sum(n for _, n in found), (4 + 7) * LAYERS + 1)
        self.assertEqual(sum(n for size_, n in found if size_ == 2 * TOKENS * HIDDEN), 1)

    def test_resolved(self):
        """The resolved scenario has the matrices in its layers, and needs no network."""
        devices, resolved = run(parallel={'data': 4, 'zero': 1},
                                platform={'topology': 'ideal', 'devices': 4})
        scenario = json.loads(resolved)
        inline = scenario['model']['inline']['layers']
        self.assertEqual(sum(m['n'] for layer in inline for m in layer.get('matrices', [])),
                         len(self.all_matrices()))
        again = self.made(
            **{key: scenario[key] for key in ('model', 'platform', 'parallel', 'schedule')})
        self.assertEqual(update_of(again), update_of(devices))
        self.assertEqual(states_of(again), states_of(devices))

    def test_model_file(self):
        """A file of `sim model` has the matrices that the network has."""
        devices = self.made()
        with tempfile.TemporaryDirectory(prefix='test-muon-') as folder:
            for name in ('even.json', 'model.json'):
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                    json.dump(DEVICE, file)
            sizes = {'layers': LAYERS, 'hidden': HIDDEN, 'heads': HEADS, 'kv_heads': KV_HEADS,
                     'intermediate': INNER,
                     'vocabulary': WORDS, 'sequence': TOKENS}
            given = [word for item in sizes.items() for word in ('-p', '%s=%d' % item)]
            subprocess.run([SIM, 'model', 'llama', *given, '-b', '8', '-d', 'even.json',
                            '--precision', 'bf16',
                            '--optimizer', 'muon', '-g', 'block', '-o', 'model.json'], cwd=folder,
                           check=True,
                           capture_output=True)
            with open(os.path.join(folder, 'model.json'), encoding='utf-8') as file:
                again = self.made(model={'inline': json.load(file), 'batch_size': 8,
                                         'optimizer': 'muon'})
        self.assertEqual(update_of(again), update_of(devices))
        self.assertEqual(states_of(again), states_of(devices))

    def test_refused(self):
        rows = (
            ({}, {'parallel': {'data': 2, 'zero': 2},
                  'platform': {'topology': 'ideal', 'devices': 2}},
             '/parallel/zero: must be below 2 with the optimizer "muon", which updates whole '
             'matrices (got 2)'),
            ({}, {'parallel': {'data': 2, 'rules': [{'layers': '*', 'zero': 1}]},
                  'platform': {'topology': 'ideal', 'devices': 2}},
             '/parallel/rules: must be left out'),
            ({'name': 'vgg16', 'parameters': {}}, {}, None),
            ({'name': 'resnet18', 'parameters': {}}, {},
             'the model has no linear layer except the last'),
            ({'newton_schulz_steps': 0}, {},
             '/model/newton_schulz_steps: must be from 1 to 1000 (got 0)'))
        for model, other, message in rows:
            with self.subTest(message=message):
                devices, text = run(model, **other)
                self.assertEqual(devices is None, message is not None, text)
                self.assertIn(message or '', text)


if __name__ == '__main__':
    unittest.main()

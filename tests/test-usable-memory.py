#!/usr/bin/env python3
"""Memory that programs can use, and what runtimes add to it: test-usable-memory.py SIM SOURCE_ROOT.

Expected values are derived from device files and the sources that they and the runtimes name.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import descriptions

SIM, ROOT = [os.path.abspath(word) for word in sys.argv[1:3]]
MIB, GIB = 1 << 20, 1 << 30
UNITS = {'MB': 1e6, 'GB': 1e9, 'MiB': MIB, 'GiB': GIB}
SMALL = {'layers': 2, 'hidden': 512, 'heads': 8, 'kv_heads': 8, 'intermediate': 1024,
         'sequence': 512}


def bytes_of(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def driver_of(device):
    driver = descriptions.load(ROOT, 'devices', device)['driver']
    return {key: bytes_of(value) for key, value in driver.items() if key != 'source'}


def run(device='h100', runtime='megatron-core', parallel=None, devices=8, model=None,
        micro_batches=2, kept=None, **platform):
    made = {'schema_version': 1,
            'model': {'name': 'llama', 'device': device, 'batch_size': 32, 'optimizer': 'adam',
                      'precision': 'bf16', 'parameters': SMALL, **(model or {})},
            'platform': {'topology': 'nvlink_switch', 'bandwidth': '100 GB/s', 'devices': devices,
                         **platform},
            'schedule': {'kind': '1f1b' if (parallel or {}).get('pipeline') else 'sequential',
                         'micro_batches': micro_batches},
            'parallel': parallel or {'zero': 1}, 'runtime': runtime, 'memory': kept or {}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 's.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(made, file)
        done = subprocess.run([SIM, 'run', path, '--no-output', '--json'], capture_output=True,
                              text=True, check=False)
        if done.returncode not in (0, 4):
            raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Capacity(unittest.TestCase):
    def test_default(self):
        """Reported, less the context and a communicator for each axis with several ranks."""
        for device in ('h100', 'a100', 'a10', 'mi300x', 'rtx-6000-ada'):
            driver = driver_of(device)
            for parallel, devices, communicators in (
                    ({'zero': 1}, 1, 0), ({'zero': 1}, 8, 1), ({'tensor': 2}, 8, 2),
                    ({'tensor': 2, 'pipeline': 2}, 8, 3), ({'tensor': 2, 'pipeline': 2}, 4, 2),
                    ({'context': 4, 'zero': 3}, 4, 1)):
                with self.subTest(device=device, parallel=parallel, devices=devices):
                    result = run(device, parallel=parallel, devices=devices)['devices'][0]
                    expected = (driver['reported'] - int(driver['context'])
                                - communicators * int(driver['communicator']))
                    self.assertAlmostEqual(result['capacity_bytes'], expected, delta=8)

    def test_given(self):
        """Nothing is subtracted from a capacity that the user states."""
        result = run(memory='60 GiB')['devices'][0]
        self.assertEqual(result['capacity_bytes'], 60 * GIB)
        result = run(memory='60 GiB', reserve='1 GiB')['devices'][0]
        self.assertEqual(result['capacity_bytes'], 59 * GIB)

    def test_resolved(self):
        """A resolved scenario has the same capacity."""
        with tempfile.TemporaryDirectory() as folder:
            path, resolved = os.path.join(folder, 's.json'), os.path.join(folder, 'r.json')
            with open(path, 'w', encoding='utf-8') as file:
                json.dump({'schema_version': 1,
                           'model': {'name': 'llama', 'device': 'h100', 'batch_size': 8,
                                     'precision': 'bf16', 'parameters': SMALL},
                           'platform': {'topology': 'dgx-h100', 'devices': 8},
                           'schedule': {'kind': 'sequential'}, 'parallel': {'zero': 1}}, file)
            text = subprocess.run([SIM, 'check', path, '--resolved'], capture_output=True,
                                  text=True, check=True).stdout
            with open(resolved, 'w', encoding='utf-8') as file:
                file.write(text)
            capacities = []
            for each in (path, resolved):
                done = subprocess.run([SIM, 'run', each, '--no-output', '--json'],
                                      capture_output=True, text=True, check=True)
                capacities.append(json.loads(done.stdout)['devices'][0]['capacity_bytes'])
            self.assertEqual(*capacities)

    def test_reported(self):
        """No device reports more than its data sheet states, or less than 0.9 of it."""
        for name in descriptions.names(ROOT, 'devices'):
            device = descriptions.load(ROOT, 'devices', name)
            share = bytes_of(device['driver']['reported']) / bytes_of(device['memory'])
            self.assertTrue(0.9 < share <= 1, (name, share))

    def test_verdict(self):
        """Tight: fits in fewer than 95 of 100, with a standard deviation of 8 % of the need."""
        peak = run(memory='60 GiB')['devices'][0]['peak_memory_bytes']
        for share, verdict in ((0.85, 'fits'), (0.97, 'tight'), (1.03, 'does not fit')):
            capacity = int(peak / share)
            result = run(memory=capacity)
            self.assertEqual(result['memory'], verdict)
            free = min(device['capacity_bytes'] -
                       max(device['peak_memory_bytes'], device['allocator']['peak_allocated_bytes'])
                       for device in result['devices'])
            if verdict != 'does not fit':
                self.assertAlmostEqual(result['memory_free_fraction'], free / capacity)


class Gradients(unittest.TestCase):
    def test_fp32(self):
        """Gradients of bf16 weights have 4 bytes in every type of products, of fp16 ones 2."""
        for runtime in ('megatron-core', 'deepspeed', 'torchtitan'):
            for precision, width in (('bf16', 4), ('fp8', 4), ('mxfp8', 4), ('nvfp4', 4),
                                     ('fp16', 2)):
                with self.subTest(runtime=runtime, precision=precision):
                    result = run('b200', runtime, {'zero': 1}, model={'precision': precision})
                    made = result['devices'][0]['category_peak_bytes']['gradients']
                    self.assertAlmostEqual(made / result['model_parameters'], width, places=3)

    def test_reduce_buffer(self):
        """DeepSpeed's buffer of 5e8 elements of 2 bytes: none with ZeRO 1
        (facts/runtimes/deepspeed.json)."""
        for zero, expected in ((1, 0), (2, 1e9), (3, 1e9)):
            peaks = [run('a100', 'deepspeed', {'zero': zero}, model={'precision': 'fp16'},
                         kept=kept)['devices'][0]['peak_memory_bytes']
                     for kept in ({'reduce_buffer': 0}, {})]
            self.assertEqual(peaks[1] - peaks[0], expected)

    def test_bert(self):
        """8 V100 and BERT large: ZeRO 2 takes more than ZeRO 1 (deepspeedai/DeepSpeed, issue 1302:
        9,600 and 8,900 MB by nvidia-smi)."""
        bert = {'name': 'bert', 'precision': 'fp16', 'batch_size': 4096,
                'parameters': {'layers': 24, 'hidden': 1024, 'heads': 16, 'sequence': 128,
                               'attention': 'math'}}
        first, second = (run('v100', 'deepspeed', {'zero': zero}, model=bert, micro_batches=16,
                             memory='32 GiB')['devices'][0]['peak_memory_bytes']
                         for zero in (1, 2))
        self.assertGreater(second - first, 3e8)
        self.assertLess(second - first, 1e9)


class Compiled(unittest.TestCase):
    def layer_bytes(self, runtime, device='h100'):
        """Activations of a block of Llama, with grouped queries."""
        peaks = []
        for layers in (3, 4):
            result = run(device, runtime, {'zero': 3}, devices=2, micro_batches=1,
                         memory='1000 GiB', model={
                             'batch_size': 8, 'granularity': 'block',
                             'parameters': {**SMALL, 'layers': layers, 'kv_heads': 2,
                                            'hidden': 1024, 'intermediate': 3072}})
            peaks.append(result['devices'][0]['peak_activation_bytes'])
        return peaks[1] - peaks[0]

    def test_saved(self):
        """What the min-cut partitioner saves (torch/_functorch/partitioners.py), in bf16: of both
        norms the input and what the products read; rotated queries, keys and values, and the result
        of attention; gate, up and their product. In float32: the row statistics of norms, and the
        logarithms of attention. Activations of the gate and casts are computed again."""
        tokens, hidden, heads, keys, inner = 4 * 512, 1024, 8, 2 * 1024 // 8, 3072
        values = 4 * hidden + (hidden + 2 * keys) + hidden + 3 * inner
        expected = tokens * (2 * values + 4 * (2 + heads))
        for runtime in ('pytorch-fsdp', 'torchtitan', 'llm-foundry'):
            with self.subTest(runtime=runtime):
                saved = self.layer_bytes({'name': runtime, 'compile': True})
                self.assertAlmostEqual(saved / expected, 1, delta=0.001)
                self.assertGreater(self.layer_bytes(runtime), 1.15 * expected)


if __name__ == '__main__':
    sys.argv[1:] = []
    unittest.main()

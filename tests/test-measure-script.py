#!/usr/bin/env python3
"""The script that measures a device against PyTorch: test-measure-script.py SCRIPT SIM
[SIM-BENCH-CPU]

It runs for real, on a tiny size and with bounds that hold whatever the machine does, where a Python
with torch and torchvision is found.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.abspath(sys.argv.pop(3)) if len(sys.argv) > 3 else None
SCRIPT, SIM = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))


def find_torch():
    for python in (sys.executable, '/usr/bin/python3'):
        try:
            done = subprocess.run([python, '-c', 'import torch, torchvision'], check=False,
                                  capture_output=True, timeout=120)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return None


def run(folder, *words, python=sys.executable):
    return subprocess.run([python, SCRIPT, SIM, folder, *words], capture_output=True, text=True,
                          check=False, env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})


class Script(unittest.TestCase):
    def test_arguments(self):
        rows = [(('--batch', '0'), '--batch: must be a whole number from 1 on (got "0")'),
                (('--steps', '1.5'), '--steps: must be a whole number'),
                (('--image', '-1'), '--image: must be a whole number'),
                (('--near', 'nan'), '--near: must be a share'),
                (('--near', 'x'), '--near: invalid share value'),
                (('--model', 'vgg16,'), '--model: must be different names by commas'),
                (('--precision', 'fp8'), '--precision: must be of fp32, tf32, bf16, fp16'),
                (('--backend', 'cpu', '--precision', 'bf16'),
                 '--precision: the CPU computes in fp32'),
                (('--backend', 'tpu'), '--backend: invalid choice')]
        with tempfile.TemporaryDirectory() as folder:
            for words, said in rows:
                with self.subTest(words=words):
                    done = run(os.path.join(folder, 'new'), *words)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(said, done.stderr)
            self.assertEqual(os.listdir(folder), [])

    @unittest.skipUnless(BENCH, 'sim-bench-cpu was not built')
    def test_tiny(self):
        python = find_torch()
        if not python:
            self.skipTest('no Python with torch and torchvision')
        words = ('--backend', 'cpu', '--model', 'resnet18', '--image', '32', '--batch', '2',
                 '--steps', '1', '--time-limit', '1 ms', '--stable', '1e9', '--near', '1e9')
        with tempfile.TemporaryDirectory() as folder:
            done = run(folder, *words, python=python)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn('resnet18 fp32, batch 2\n  forward and backward: ', done.stdout)
            self.assertIn('  PyTorch: ', done.stdout)
            for i in (1, 2):
                with open(os.path.join(folder, f'resnet18-fp32-{i}.json'),
                          encoding='utf-8') as file:
                    self.assertGreater(len(json.load(file)['compute']), 20)
            done = run(folder, *words, python=python)
            self.assertEqual(done.returncode, 1)
            self.assertIn('resnet18-fp32-1.json is there already', done.stderr)


if __name__ == '__main__':
    unittest.main()

#!/usr/bin/env python3
"""What is wrong with a machine's GPU is said: cuda-messages.py SIM [FOLDER_OF_FAKE_DRIVER]

Without the folder: of a program without sim-bench-cuda. With it: of sim-bench-cuda under a driver
that is missing, too old, without a device, or fails (tests/fake-driver.c); no GPU is used.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SIM = os.path.abspath(sys.argv[1])
DRIVER = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
COMPUTE = ['calibrate', 'compute', '--backend', 'cuda', '--model', 'vgg16', '-o', 'costs.json']


class Messages(unittest.TestCase):
    def check(self, program, environment, message, words=COMPUTE):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True,
                                  check=False, env={**os.environ, **environment})
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn('sim: error: ' + message, done.stderr)
            self.assertEqual(done.stdout, '')
            self.assertEqual(os.listdir(folder), [])

    def test_no_program(self):
        """`sim` alone in a folder has no bench programs next to it."""
        with tempfile.TemporaryDirectory() as folder:
            self.check(shutil.copy(SIM, folder), {'SIM_BENCH_DIR': folder},
                       'cannot find the program sim-bench-cuda: install the CUDA toolkit')

    @unittest.skipUnless(DRIVER, 'sim-bench-cuda was not built')
    def test_drivers(self):
        """Version 0 is what the runtime takes a missing driver for."""
        rows = [(0, 0, 'no NVIDIA driver is loaded on this machine'),
                (1000, 0, 'the NVIDIA driver knows CUDA up to 1.0, this program was built with '),
                (99000, 100, 'the NVIDIA driver sees no GPU on this machine'),
                (99000, 3, 'cudaGetDeviceCount at cuda-backend.c:')]
        for version, answer, message in rows:
            with self.subTest(version=version, answer=answer):
                self.check(SIM, {'LD_LIBRARY_PATH': DRIVER, 'FAKE_DRIVER_VERSION': str(version),
                                 'FAKE_DRIVER_INIT': str(answer)}, message)

    @unittest.skipUnless(DRIVER, 'sim-bench-cuda was not built')
    def test_precision(self):
        self.check(SIM, {'LD_LIBRARY_PATH': DRIVER, 'FAKE_DRIVER_VERSION': '99000',
                         'FAKE_DRIVER_INIT': '100'}, 'the NVIDIA driver sees no GPU',
                   [*COMPUTE, '--precision', 'bf16'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

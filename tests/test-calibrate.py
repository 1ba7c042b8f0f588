#!/usr/bin/env python3
"""Measuring as users see it when it is stopped, or was asked wrongly: test-calibrate.py SIM
[SIM-BENCH-CPU]

Without the second program (it needs OpenBLAS and MPI) only what needs no measurement is tested.
"""
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BENCH = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else None
SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'

# A VGG with one channel where the real one has 64, on images of 32 x 32 pixels.
TINY = [word for item in ('image=32', 'width=1', 'dense=8', 'classes=4') for word in ('-p', item)]
COMPUTE = ['calibrate', 'compute', '-m', 'vgg16', *TINY]
NETWORK = ['calibrate', 'network']
ENDLESS = ['--share', '1e-9', '-t', '100 s']  # ends by a signal only
CORES = len(os.sched_getaffinity(0))


def children(pid):
    """Of all of its threads."""
    found = []
    try:
        for thread in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{thread}/children', encoding='ascii') as file:
                found += [int(word) for word in file.read().split()]
    except OSError:
        pass
    return found


def fields(pid):
    """Fields of /proc/PID/stat after the name: state, parent, ...; none if the process has
    ended."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return file.read().rsplit(')', 1)[1].split()
    except OSError:
        return []


def runs(pid):
    return bool(fields(pid)) and fields(pid)[0] not in 'ZX'


def computed(pid):
    """Seconds of a process on a core."""
    return int(fields(pid)[11]) / os.sysconf('SC_CLK_TCK') if runs(pid) else 0


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'{what}: not within {seconds} s')
        time.sleep(0.01)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='test-calibrate-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.temporary = os.path.join(self.folder, 'tmp')
        os.mkdir(self.temporary)
        # what MPI does not give back is none of ours
        self.environment = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0',
                            'TMPDIR': self.temporary}

    def sim(self, *words):
        return subprocess.run([SIM, *words], capture_output=True, text=True, cwd=self.folder,
                              check=False, env=self.environment)

    def refused(self, status, said, *words):
        done = self.sim(*words)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn('sim: error: ' + said, done.stderr)
        self.assertEqual(done.stdout, '')
        self.assertNotIn('sim-request', done.stderr)

    def start(self, *words, program=SIM):
        process = subprocess.Popen([program, *words], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def bench_of(self, process):
        """The program that measures, once it has run for some tenths of a second."""
        wait_until(lambda: children(process.pid), 'a program that measures')
        bench = children(process.pid)[0]
        wait_until(lambda: computed(bench) > 0.3, 'a measurement')
        return bench

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding='utf-8') as file:
            return json.load(file)


class Usage(Case):
    def test_options(self):
        rows = [
            (COMPUTE, '--batch=1.7', '--batch must be whole numbers from 1 to 1048576'),
            (COMPUTE, '--batch=4,', '--batch must be whole numbers'),
            (COMPUTE, '--batch=0', '--batch must be whole numbers'),
            (COMPUTE, '--share=abc', '--share must be above 0, at most 1 (got "abc")'),
            (COMPUTE, '--share=1.5', '--share must be above 0, at most 1'),
            (COMPUTE, '--time-limit=0.5x', '--time-limit must be a time'),
            (NETWORK, '--time-limit=-1', '--time-limit must be a time'),
            (NETWORK, '--min-bytes=x', '--min-bytes must be from 1 B to 1 TiB'),
            (NETWORK, '--max-bytes=0', '--max-bytes must be from 1 B to 1 TiB'),
            (NETWORK, '--min-bytes=65 MiB',
             '--min-bytes (68157440) is above --max-bytes (67108864)'),
            (NETWORK, '--share=0.1', 'network has no option --share'),
            (NETWORK, '--model=vgg16', 'network has no option --model'),
            (NETWORK, '--param=image=32', 'network has no option --param'),
            (NETWORK, '--precision=fp32', 'network has no option --precision'),
            (NETWORK, '--batch=1', 'network has no option --batch'),
            (NETWORK, '--optimizer=sgd', 'network has no option --optimizer'),
            (COMPUTE, '--collective=send', 'compute has no option --collective'),
            (COMPUTE, '--min-bytes=8', 'compute has no option --min-bytes'),
            (COMPUTE, '--max-bytes=8', 'compute has no option --max-bytes'),
        ]
        for words, option, said in rows:
            with self.subTest(option=option):
                self.refused(2, 'calibrate: ' + said, *words, option, '-o', 'c.json')
        self.refused(2, 'calibrate compute: --processes must be from 1 to 1024 (got 0)', *COMPUTE,
                     '-n', '0', '-o', 'c.json')
        self.assertEqual(os.listdir(self.folder), ['tmp'])

    def test_malformed_output(self):
        with open(os.path.join(self.folder, 'bad.json'), 'w', encoding='utf-8') as file:
            file.write('{')
        for words in (COMPUTE, NETWORK):
            self.refused(3, 'bad.json:1:2: ', *words, '-o', 'bad.json')


@unittest.skipUnless(BENCH, 'sim-bench-cpu was not built')
class Measuring(Case):
    def test_output(self):
        """Said at once: each would measure for 100 s."""
        for words in ([*COMPUTE, *ENDLESS], [*NETWORK, '-t', '100 s']):
            start = time.monotonic()
            self.refused(1, '/nonexistent/x.json: cannot create', *words, '-o',
                         '/nonexistent/x.json')
            self.refused(1, '.: is a folder', *words, '-o', '.')
            self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(os.listdir(self.temporary), [])

    def test_time_limit(self):
        """What is under way is finished: a step to warm up, and one that counts."""
        done = self.sim(*COMPUTE, '-t', '1 ns', '-o', 'c.json')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('batch 1: 1 steps after 1 to warm up', done.stderr)
        self.assertIn('NOT SETTLED', done.stderr)
        for entry in self.read('c.json')['compute']:
            for name in ('forward', 'backward_input', 'backward_weight', 'update'):
                self.assertEqual(entry.get(name, {'samples': 1})['samples'], 1)

    def test_memory(self):
        done = self.sim(*COMPUTE, '-b', '1,2', '-t', '50 ms', '--optimizer', 'adam', '-o', 'c.json')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('MB held', done.stderr)
        costs = self.read('c.json')
        self.assertEqual([entry['network'] for entry in costs['memory']],
                         [f'vgg16 n={n} fp32 states=2 image=32 width=1 dense=8 classes=4'
                          for n in (1, 2)])
        one, two = costs['memory']
        self.assertLess(one['peak_bytes'], two['peak_bytes'])
        for memory in (one, two):
            self.assertLessEqual(memory['peak_bytes'], memory['held_bytes'])
        peaks = [entry['peak_bytes'] for entry in costs['compute']]
        self.assertGreater(min(peaks), 0)
        self.assertLessEqual(max(peaks), two['peak_bytes'])

    def interrupt(self, end, saved, *words):
        """A signal to `sim` ends its child processes; measurements so far are saved."""
        process = self.start(*words, '-o', 'c.json')
        bench = self.bench_of(process)
        process.send_signal(end)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, said)
        self.assertFalse(runs(bench))
        self.assertIn('interrupted', said)
        self.assertEqual(os.listdir(self.temporary), [])
        self.assertEqual(os.path.exists(os.path.join(self.folder, 'c.json')), saved, said)
        return said

    def test_interrupt(self):
        for end in (signal.SIGINT, signal.SIGTERM):
            said = self.interrupt(end, True, *COMPUTE, *ENDLESS, '-b', '1,2')
            self.assertIn('missing or incomplete: vgg16 at batch 1, vgg16 at batch 2, copies', said)
            self.assertGreater(len(self.read('c.json')['compute']), 20)
            os.remove(os.path.join(self.folder, 'c.json'))

    def test_interrupt_of_terminal(self):
        """Ctrl-C comes to `sim`, which shows how far it is, once; a second one is not needed."""
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        process = subprocess.Popen(
            ['setsid', '-c', '-w', SIM, *COMPUTE, *ENDLESS, '-o', 'c.json'], cwd=self.folder,
            env=self.environment, stdin=follower, stdout=follower, stderr=follower)
        self.addCleanup(process.kill)
        os.close(follower)
        text, asked, end = b'', False, time.monotonic() + 60
        while time.monotonic() < end:
            if not select.select([leader], [], [], 0.1)[0]:
                continue
            try:
                text += os.read(leader, 4096)
            except OSError:  # all others have closed it
                break
            if b'measuring: ' in text and b's left' in text and not asked:
                os.write(leader, b'\x03')
                asked = True
        self.assertEqual(process.wait(timeout=60), 130, text)
        self.assertTrue(asked, text)
        self.assertTrue(os.path.exists(os.path.join(self.folder, 'c.json')), text)
        self.assertEqual(os.listdir(self.temporary), [])

    def test_interrupt_of_network(self):
        words = [*NETWORK, '--max-bytes', '256 MiB', '-t', '5 s']
        process = self.start(*words, '-o', 'c.json')
        wait_until(lambda: children(process.pid) and children(children(process.pid)[0]), 'ranks')
        ranks = children(children(process.pid)[0])
        wait_until(lambda: all(computed(rank) > 0.3 for rank in ranks), 'messages')
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, said)
        wait_until(lambda: not any(runs(rank) for rank in ranks), 'the end of all ranks')
        self.assertEqual(os.listdir(self.temporary), [])


@unittest.skipUnless(BENCH, 'sim-bench-cpu was not built')
@unittest.skipUnless(CORES > 1, 'one core')
class Load(Case):
    """Processes that compute at the same time as the measuring process."""

    def load(self):
        process = self.start(*COMPUTE, *ENDLESS, '-n', '2', '-o', 'c.json')
        bench = self.bench_of(process)
        wait_until(lambda: children(bench), 'a process beside it')
        return process, bench, children(bench)[0]

    def test_end_with_parent(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            process, bench, other = self.load()
            os.kill(bench, end)
            wait_until(lambda: not runs(bench), 'the end of the program')
            wait_until(lambda: not runs(other), 'the end of the process beside it', 10)
            self.assertNotEqual(process.wait(timeout=60), 0)

    def test_gone(self):
        """Results without it are not measurements under load."""
        process = self.start(*COMPUTE, '--share', '1e-9', '-t', '4 s', '-n', '2', '-o', 'c.json')
        wait_until(lambda: children(process.pid) and children(children(process.pid)[0]), 'a load')
        os.kill(children(children(process.pid)[0])[0], signal.SIGKILL)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1, said)
        self.assertIn('process 2, which should compute at the same time, has ended (signal 9)',
                      said)
        self.assertFalse(os.path.exists(os.path.join(self.folder, 'c.json')))

    def test_cores(self):
        self.refused(2, f'--processes must be at most {CORES}', *COMPUTE, '-n', str(CORES + 1),
                     '-o', 'c.json')
        done = self.sim(*COMPUTE, '-n', '2', '-t', '50 ms', '-o', 'c.json')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read('c.json')['sources'][0]['notes'],
                         '2 processes at the same time, each on a core of its own')


if __name__ == '__main__':
    unittest.main()

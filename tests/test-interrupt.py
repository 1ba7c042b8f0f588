#!/usr/bin/env python3
"""Signals end every command: test-interrupt.py SIM SOURCE_ROOT [SIM_BENCH_CPU] [TEST...]

Each command is started several times, and gets SIGINT, SIGTERM, SIGHUP or SIGKILL at moments from
its first milliseconds on. It must be gone within a second, say that it was interrupted, exit with
130, leave neither a temporary file nor a process, and an earlier result as it was.
"""
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from processes import find, patient, stretched

SIM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MORE = sys.argv[3:]
BENCH = MORE.pop(0) if MORE and os.path.isfile(MORE[0]) else None
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LIMIT = 1.0  # s
EARLIER = b'the earlier file'

LONG = {'schema_version': 1,
        'model': {'uniform': {'layers': 4, 'forward': '1 s', 'backward': '2 s', 'weights': '1 GB',
                              'activation': '1 GB'}},
        'platform': {'topology': 'ideal', 'devices': 4},
        'schedule': {'kind': 'gpipe', 'micro_batches': 65536}, 'iterations': 16}
PLANNED = {'schema_version': 1, 'runtime': 'ideal',
           'model': {'name': 'resnet50', 'batch_size': 8, 'device': 'v100'},
           'platform': {'topology': 'nvlink_switch', 'devices': 6, 'memory': '1.2 GB',
                        'bandwidth': '12 GB/s'},
           'schedule': {'kind': 'periodic', 'micro_batches': 8}}
LONG_SEARCH = ('/schedule/partition={"planner": "best", "kicks": 1000000, '
               '"tries": 2147483647}')
TINY = ['-m', 'vgg16', '-i', '32', '-p', 'width=1', '-p', 'dense=8', '-p', 'classes=4']
SLOW = 'echo $$ > "$TMPDIR/../started"; cat; exec sleep 30\n'  # in place of another program


def name_of(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='utf-8') as file:
            return file.read().strip()
    except OSError:
        return ''


def computed(pid):
    """Seconds of computing so far."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return int(file.read().rpartition(') ')[2].split()[11]) / os.sysconf('SC_CLK_TCK')
    except OSError:
        return 0


class Case(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix='sim-interrupt-')
        self.addCleanup(shutil.rmtree, self.top)
        self.folder, self.temporary = (os.path.join(self.top, name) for name in ('work', 'tmp'))
        os.mkdir(self.folder)
        os.mkdir(self.temporary)
        self.mark = f'SIM_TEST_MARK={os.path.basename(self.top)}'
        self.environment = dict(os.environ, TMPDIR=self.temporary,
                                SIM_TEST_MARK=os.path.basename(self.top))
        for name, content in (('long.json', LONG), ('planned.json', PLANNED)):
            self.write(name, json.dumps(content))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), 'w', encoding='utf-8') as file:
            file.write(text)

    def program(self, name, text):
        """A program that takes the place of another one: a folder for $PATH."""
        folder = os.path.join(self.top, 'bin')
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\n' + text)
        os.chmod(os.path.join(folder, name), 0o755)
        self.environment['PATH'] = folder + ':' + os.environ['PATH']

    def start(self, *words, ignored=()):
        def prepare():
            for number in ENDS:
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        return subprocess.Popen([SIM, *words], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, preexec_fn=prepare)

    def expect_gone(self, what):
        self.assertTrue(patient(lambda: not find(self.mark), 0.3),
                        f'{what}: left {find(self.mark)}')

    def expect_clean(self, what, allowed=()):
        self.assertEqual(os.listdir(self.temporary), [], what)
        hidden = [name for name in os.listdir(self.folder) if name.startswith('.')]
        self.assertEqual([name for name in hidden if name not in allowed], [], what)

    def interrupt_once(self, words, number, ready, delay):
        process = self.start(*words)
        self.addCleanup(process.kill)
        patient(lambda: ready(process) or process.poll() is not None, 20)
        time.sleep(delay)
        what = f'{" ".join(words)}: {signal.Signals(number).name} after {delay:.3f} s'
        if process.poll() is not None:
            self.fail(f'{what}: ended before: {process.communicate()}')
        start = time.monotonic()
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        took = time.monotonic() - start
        self.assertEqual(process.returncode, 130, f'{what}: {said}')
        self.assertIn('interrupted', said, what)
        self.assertLess(took, stretched(LIMIT), what)
        self.expect_gone(what)
        self.expect_clean(what)
        for name in os.listdir(self.folder):
            if name.startswith('out.') and not name.endswith('.journal'):
                with open(os.path.join(self.folder, name), 'rb') as file:
                    self.assertEqual(file.read(), EARLIER, what)

    def end_by(self, number, *words):
        """What it says when it is interrupted after a while."""
        process = self.start(*words)
        self.addCleanup(process.kill)
        patient(lambda: caught(process), 20)
        time.sleep(0.5)
        process.send_signal(number)
        return process.communicate(timeout=30)[1]

    def interrupt(self, words, ready=lambda process: caught(process), delays=(0, 0.05, 0.3)):
        for name in words:
            if name.startswith('out.'):
                self.write(name, EARLIER.decode())
        for i, delay in enumerate(delays):
            started = os.path.join(self.top, 'started')
            if os.path.exists(started):
                os.remove(started)
            self.interrupt_once(words, ENDS[i % len(ENDS)], ready, delay * random.uniform(0.8, 1.2))


def caught(process):
    """It catches SIGTERM: it has begun."""
    try:
        with open(f'/proc/{process.pid}/status', encoding='utf-8') as file:
            lines = dict(line.split(':', 1) for line in file if ':' in line)
    except OSError:
        return False
    return int(lines.get('SigCgt', '0'), 16) >> (signal.SIGTERM - 1) & 1


class Commands(Case):
    def test_run(self):
        self.interrupt(['run', 'long.json', '-o', 'out.h5'], delays=(0, 0.05, 0.3, 0.8))

    def test_runs(self):
        self.interrupt(['run', 'long.json', '-s', '/iterations=1', '--runs', '40', '-j', '2', '-o',
                        'out.h5'], delays=(0.1, 1))

    def test_run_with_planner(self):
        self.interrupt(['run', 'planned.json', '-o', 'out.h5', '-s',
                        LONG_SEARCH])

    def test_sweep(self):
        words = ['sweep', 'long.json', '-v', '/iterations=4,5,6,7', '-o', 'out.h5', '-j', '2']
        for delay in (0.01, 0.5):
            self.interrupt(words, delays=(delay,))
            journal = os.path.join(self.folder, 'out.h5.journal')
            if os.path.exists(journal):
                os.remove(journal)
        words[3] = '/iterations=4..64'
        said = self.end_by(signal.SIGINT, *words, '-s', '/schedule/micro_batches=8192')
        self.assertIn('--resume', said)

    def test_sweep_with_planner(self):
        self.interrupt(['sweep', 'planned.json', '-v', '/schedule/micro_batches=8,16', '-o',
                        'out.h5', '-j', '2', '-s',
                        LONG_SEARCH],
                       delays=(0.5,))

    def test_plan(self):
        self.interrupt(['plan', 'planned.json', '-P', 'best', '-p', 'kicks=1000000', '-p',
                        'tries=2147483647', '-o', 'out.json'], delays=(0, 0.3, 1))
        self.interrupt(['plan', 'planned.json', '-P', 'madpipe', '-p', 'scan=100000', '-o',
                        'out.json'], delays=(0.3,))

    def test_terminal(self):
        """A planner shows how far it is, and the first Ctrl-C that is typed ends it."""
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        process = subprocess.Popen(
            ['setsid', '-c', '-w', SIM, 'plan', 'planned.json', '-P', 'best', '-p',
             'kicks=1000000', '-p', 'tries=2147483647'], cwd=self.folder,
            env=self.environment, stdin=follower, stdout=follower, stderr=follower)
        self.addCleanup(process.kill)
        os.close(follower)
        text, typed, until = b'', None, time.monotonic() + 30
        while time.monotonic() < until:
            if not select.select([leader], [], [], 0.1)[0]:
                continue
            try:
                text += os.read(leader, 4096)
            except OSError:  # all others have closed it
                break
            if re.search(rb'best: moves: \d+ s', text) and not typed:
                os.write(leader, b'\x03')
                typed = time.monotonic()
        self.assertEqual(process.wait(timeout=30), 130, text)
        self.assertIsNotNone(typed, text)
        took = time.monotonic() - typed
        self.assertLess(took, stretched(LIMIT), text)
        self.assertIn(b'interrupted', text)

    def test_waiting_for_input(self):
        """Input that never comes."""
        os.mkfifo(os.path.join(self.folder, 'pipe.json'))
        for words in (['check', 'pipe.json'], ['model', './pipe.json'],
                      ['export', 'topology', './pipe.json'],
                      ['import', 'osu', 'pipe.json', '--date', '2026-01-01', '-o', 'out.json'],
                      ['import', 'torch', 'pipe.json', '-o', 'out.json', '--date', '2026-01-01',
                       '--hardware', 'none'],
                      ['plan', 'pipe.json'], ['run', 'pipe.json', '-o', 'out.h5']):
            self.interrupt(words, delays=(0.05,))

    def test_pictures(self):
        """Programs that draw end too, and what they have written is removed."""
        self.program('gnuplot', SLOW)
        self.program('dot', SLOW)
        self.run_short('a.h5')
        for words in (['plot', 'a.h5', '-o', 'out.svg'],
                      ['export', 'topology', 'long.json', '-o', 'out.svg']):
            self.interrupt(words, lambda process: self.has_started(), (0, 0.2, 0.01))

    def run_short(self, output, micro_batches=8):
        done = self.start('run', 'long.json', '-s', f'/schedule/micro_batches={micro_batches}',
                          '-s', '/iterations=1', '-o', output)
        said = done.communicate()[1]
        self.assertEqual(done.returncode, 0, said)

    def has_started(self):
        return os.path.exists(os.path.join(self.top, 'started'))

    def test_export_of_trace(self):
        self.run_short('a.h5', 20000)
        self.interrupt(['export', 'trace', 'a.h5', '-o', 'out.json'], delays=(0.02, 0.1))

    def test_ignored(self):
        """As nohup starts it."""
        process = self.start('run', 'long.json', '-o', 'out.h5', ignored=(signal.SIGHUP,))
        self.addCleanup(process.kill)
        patient(lambda: caught(process), 20)
        process.send_signal(signal.SIGHUP)
        time.sleep(1.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertIn('interrupted', process.communicate(timeout=30)[1])

    def test_killed(self):
        """Child processes end with their parent, even when it is killed."""
        self.program('gnuplot', SLOW)
        self.run_short('a.h5')
        process = self.start('plot', 'a.h5', '-o', 'out.svg')
        self.assertTrue(patient(self.has_started, 20))
        process.kill()
        process.communicate()
        self.expect_gone('plot')


@unittest.skipUnless(BENCH, 'sim-bench-cpu was not built')
class Benches(Case):
    """Commands that start programs which measure, themselves or by mpirun."""

    def computing(self, n):
        """n processes of the program have computed for a while."""
        def look(process):
            found = [pid for pid in find(self.mark) if name_of(pid).startswith('sim-bench')]
            return len(found) >= n and all(computed(pid) > 0.3 for pid in found)
        return look

    def test_compute(self):
        words = ['calibrate', 'compute', *TINY, '--share', '1e-9', '-t', '100 s', '-o', 'c.json']
        self.interrupt(words, delays=(0, 0.1))
        self.interrupt(words, self.computing(1), delays=(0.1,))

    def test_network(self):
        words = ['calibrate', 'network', '--max-bytes', '256 MiB', '-t', '5 s', '-o', 'c.json']
        self.interrupt(words, delays=(0.1, 0.3))
        self.interrupt(words, self.computing(2), delays=(0.5,))

    def test_replay(self):
        words = ['replay', os.path.join(ROOT, 'scenarios/replay/vgg-1f1b.json'), '-r', '1000', '-o',
                 'out.h5']
        self.interrupt(words, delays=(0, 0.2))
        self.interrupt(words, self.computing(2), delays=(0.3,))

    def test_compare(self):
        """Held against a replay, with a picture."""
        self.write('tiny.json', json.dumps({
            'schema_version': 1, 'runtime': 'ideal',
            'schedule': {'kind': 'sequential'}, 'platform': 'ideal',
            'model': {'name': 'vgg16', 'batch_size': 2, 'device': 'v100', 'granularity': 'block',
                      'parameters': {'image': 32, 'width': 1, 'dense': 8, 'classes': 4}}}))
        for words in (['run', 'tiny.json', '-o', 'a.h5'],
                      ['replay', 'tiny.json', '-r', '1', '-o', 'b.h5']):
            process = self.start(*words)
            said = process.communicate()[1]
            self.assertEqual(process.returncode, 0, said)
        self.program('gnuplot', SLOW)
        started = os.path.join(self.top, 'started')
        self.interrupt(['compare', 'a.h5', 'b.h5', '-o', 'out.svg'],
                       lambda process: os.path.exists(started), (0.05,))

    def test_killed(self):
        for words in (['calibrate', 'compute', *TINY, '--share', '1e-9', '-t', '100 s', '-o',
                       'c.json'], ['calibrate', 'network', '--max-bytes', '256 MiB', '-t', '5 s',
                                   '-o', 'c.json']):
            process = self.start(*words)
            self.assertTrue(patient(lambda: self.computing(1)(process), 30))
            process.kill()
            process.communicate()
            self.assertTrue(patient(lambda: not find(self.mark), 3), words)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + MORE)

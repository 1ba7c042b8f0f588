#!/usr/bin/env python3
"""mpirun -n K sim sweep|advise|validate as users see them: test-team.py SIM [SIM-MPI-MODULE]

Any number of processes and threads gives the bits of one process. Processes are killed, and mpirun
is interrupted: finished points are kept, and --resume leads to the same file. Without the second
argument (sim was built without MPI) only the message about that is tested.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from processes import MPI, digest, find, n_lines, stretched

MODULE = sys.argv.pop(2) if len(sys.argv) > 2 and os.path.isfile(sys.argv[2]) else None
SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'
READY = bool(MODULE and shutil.which('mpirun'))

SCENARIO = {
    'schema_version': 1,
    'name': 'tiny',
    'model': {'uniform': {'layers': 8, 'forward': '1 ms', 'backward': '2 ms', 'weights': '1 MB',
                          'activation': '1 MB'}},
    'platform': {'topology': 'ideal', 'devices': 4, 'memory': '16 GB'},
    'schedule': {'kind': 'gpipe', 'micro_batches': 4},
}
SEARCHED = {
    'schema_version': 1, 'runtime': 'ideal',
    'model': {'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 512, 'heads': 8, 'sequence': 512,
                                            'vocabulary': 4096},
              'device': 'v100', 'precision': 'fp16', 'granularity': 'block', 'optimizer': 'adam',
              'batch_size': 16},
    'platform': {'topology': 'dgx1-v100', 'devices': 4, 'memory': '300 MB'},
    'parallel': {'data': 4},
    'schedule': {'kind': 'sequential'},
    'advise': {'context': 1},
}
MODEL = {'name': 'gpt', 'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4, 'ffn': 1024,
         'vocab': 1000,
         'seq': 128, 'act': 'gelu', 'norm': 'layernorm', 'pos': 'learned', 'tied': True,
         'bias': True}
POINTS = {'schema': 'truth/1', 'dataset': 'made', 'points': [
    {'id': f'made/{i}', 'model': MODEL, 'hardware': {'gpu': 'A100-SXM4-80GB' if i % 5 else 'abacus',
                                                     'gpus': 2,
                                                     'gpus_per_node': 8},
     'parallel': {'pp': 2}, 'batch': {'global': 2 * i, 'micro': 1}, 'precision': 'fp16',
     'recompute': 'none',
     'schedule': '1f1b', 'framework': 'Megatron-LM', 'measured': {'step_time_s': 0.02 * i},
     'features': ['pp']}
    for i in range(1, 12)]}
FAILING = {'hardware': {'gpu': 'A100-SXM4-80GB', 'gpus': 4, 'gpus_per_node': 8},
           'parallel': {'pp': 4}, 'schedule': 'dualpipe',
           'batch': {'global': 4, 'micro': 1}}
# of the GPU of 18 nothing is known; 9 fail: DualPipe has a micro-batch for each of its four stages
MANY_POINTS = {**POINTS, 'points': [
    {**POINTS['points'][i % 10], 'id': f'made/{i}',
     'batch': {'global': 800 + 2 * i, 'micro': 1}, **(FAILING if i % 10 == 2 else {})}
    for i in range(90)]}
# 4 points fail: no schedule has 0 micro-batches
VARIED = ['--vary', '/schedule/micro_batches=0..14', '--vary', '/platform/devices=1,2,4,8']
LONG_TESTS = os.environ.get('SIM_TESTS') == 'long'
# enough points that none of the processes ends before it is attacked
N_LONG = 600 if LONG_TESTS else 300
LONG = ['--vary', f'/schedule/micro_batches=8..{7 + N_LONG // 3}', '--vary',
        '/platform/devices=2,4,8', '-s', '/iterations=24']


def write_json(folder, name, content):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
        json.dump(content, file)


class Team(unittest.TestCase):
    def setUp(self):
        if not READY:
            self.skipTest('needs mpirun, and a sim that was built with MPI')
        folder = tempfile.TemporaryDirectory(prefix='test-team-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, content in (('s.json', SCENARIO), ('a.json', SEARCHED), ('p.json', POINTS)):
            self.write(name, content)
        self.environment = {**os.environ, **MPI, 'OMPI_MCA_rmaps_base_oversubscribe': '1',
                            'OMPI_MCA_hwloc_base_binding_policy': 'none',
                            'SIM_TEST_MARK': os.path.basename(self.folder)}

    def write(self, name, content):
        write_json(self.folder, name, content)

    def start(self, processes, *words, program=SIM):
        launcher = ['mpirun', '-n', str(processes)] if processes else []
        return subprocess.Popen([*launcher, program, *words], cwd=self.folder, env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def sim(self, processes, *words, status=0, program=SIM):
        process = self.start(processes, *words, program=program)
        out, said = process.communicate(timeout=300)
        self.assertEqual(process.returncode, status, f'{processes} {words}: {out}{said}')
        return out, said

    def digest(self, name):
        return digest(os.path.join(self.folder, name))

    def ours(self, said):
        """Lines of sim, except progress."""
        return [line for line in said.splitlines() if line.startswith('sim: ')
                and ' s left' not in line]

    # ---- the same bits ----

    def expect_same(self, *words):
        """What one process prints and writes."""
        command = words[0]
        expected = self.sim(0, *words, '-o', 'one.h5', '-j', '1')
        for processes in (1, 2, 3, 5) if LONG_TESTS else (1, 3):
            for jobs in ('1', '2') if LONG_TESTS or processes > 1 else ('2',):
                out, said = self.sim(processes, *words, '-o', 'many.h5', '-j', jobs)
                what = f'{command} in {processes} processes with {jobs} threads'
                self.assertEqual(out.replace('many.h5', 'one.h5'), expected[0], what)
                self.assertEqual(self.ours(said.replace('many.h5', 'one.h5')),
                                 self.ours(expected[1]), what)
                self.assertEqual(self.digest('many.h5'), self.digest('one.h5'), what)
                self.assertFalse(os.path.exists(os.path.join(self.folder, 'many.h5.journal')), what)

    def test_sweep(self):
        self.expect_same('sweep', 's.json', *VARIED)

    def test_sweep_with_whole_reports(self):
        expected = self.sim(0, 'sweep', 's.json', *VARIED, '--json', '--no-output')[0]
        self.assertEqual(self.sim(3, 'sweep', 's.json', *VARIED, '--json', '--no-output')[0],
                         expected)

    def test_advise(self):
        self.expect_same('advise', 'a.json')

    def test_validate(self):
        self.expect_same('validate', 'p.json', '--points', '--decompose')

    def test_more_processes_than_points(self):
        for values in ('4', '4,5'):
            self.sim(0, 'sweep', 's.json', '--vary', '/schedule/micro_batches=' + values, '-o',
                     'one.h5')
            self.sim(5, 'sweep', 's.json', '--vary', '/schedule/micro_batches=' + values, '-o',
                     'many.h5')
            self.assertEqual(self.digest('many.h5'), self.digest('one.h5'))

    # ---- errors, once, with the exit code of one process ----

    def expect_refused(self, status, text, *words):
        said = self.sim(3, *words, status=status)[1]
        self.assertEqual(said.count(text), 1, said)
        self.assertEqual(len(self.ours(said)), 1, said)

    def test_errors(self):
        self.write('bad.json', {**SCENARIO, 'platform': {'topology': 'ideal', 'devices': -1}})
        vary = ('--vary', '/schedule/micro_batches=1..4')
        self.expect_refused(3, 'bad.json: /platform/devices: must be', 'advise', 'bad.json')
        self.expect_refused(2, 'unknown option', 'sweep', 's.json', *vary, '--no-such-option')
        self.expect_refused(3, 'absent.json: cannot read', 'sweep', 'absent.json', *vary)
        self.expect_refused(3, 'absent.json: cannot read', 'advise', 'absent.json')
        self.expect_refused(3, 'absent.json: cannot read', 'validate', 'absent.json')
        self.expect_refused(1, 'all of 2 points failed', 'sweep', 's.json', '--vary',
                            '/schedule/micro_batches=0,-1', '-o', 'x.h5')
        self.expect_refused(1, 'cannot create', 'sweep', 's.json', *vary, '-o',
                            'no-such-folder/x.h5')

    def test_warnings_once(self):
        said = self.sim(3, 'sweep', 's.json', *VARIED, '-o', 'x.h5')[1]
        self.assertEqual(said.count('4 of 60 points failed'), 1, said)

    def test_other_input(self):
        """A process that reads something else is found out: a file per process."""
        script = os.path.join(self.folder, 'other.sh')
        with open(script, 'w', encoding='utf-8') as file:
            file.write(
                f'#!/bin/sh\ncd "{self.folder}/$OMPI_COMM_WORLD_RANK" && exec "{SIM}" "$@"\n')
        os.chmod(script, 0o755)
        for rank, layers in enumerate((8, 9)):
            os.mkdir(os.path.join(self.folder, str(rank)))
            other = json.loads(json.dumps(SCENARIO))
            other['model']['uniform']['layers'] = layers
            self.write(f'{rank}/s.json', other)
        words = ('sweep', 's.json', *LONG, '-j', '1', '-o', 'x.h5')
        said = self.sim(2, *words, status=1, program=script)[1]
        self.assertRegex(said, 'process 1, on .*, works on something else')
        os.remove(os.path.join(self.folder, '1/s.json'))
        said = self.sim(2, *words, '--resume', status=3, program=script)[1]
        self.assertIn('process 1: s.json: cannot read', said)

    def test_strange_launchers(self):
        """Variables of a launcher, without what they promise."""
        for variable, rank in (('PMI_SIZE', 'PMI_RANK'), ('SLURM_STEP_NUM_TASKS', 'SLURM_PROCID')):
            self.environment.update({variable: '4', rank: '0'})
            said = self.sim(0, 'sweep', 's.json', *VARIED, '-o', 'x.h5', status=1)[1]
            self.assertIn(f'sim was started as 4 processes ({variable}), but MPI knows of 1', said)
            del self.environment[variable], self.environment[rank]

    # ---- kills and signals ----

    def processes(self):
        """Those of sim, by rank."""
        mark = f'SIM_TEST_MARK={self.environment["SIM_TEST_MARK"]}'
        by_rank = {rank: find(mark, f'OMPI_COMM_WORLD_RANK={rank}') for rank in range(3)}
        return {rank: found[0] for rank, found in by_rank.items() if found}

    def n_recorded(self, output):
        return max(n_lines(os.path.join(self.folder, output + '.journal')) - 1, 0)

    def end_at(self, n, attack, *words, output):
        """Starts three processes; when n points are recorded they are attacked. Returns output,
        exit code, s."""
        process = self.start(3, *words, '-o', output, '-j', '1')
        self.addCleanup(process.kill)
        while self.n_recorded(output) < n and process.poll() is None:
            time.sleep(0.005)
        self.assertIsNone(process.poll(), 'ended before')
        start = time.monotonic()
        attack(process)
        said = process.communicate(timeout=60)[1]
        took = time.monotonic() - start
        self.assertEqual(self.processes(), {})
        return said, process.returncode, took

    def expect_resumed(self, said, n, *words, output):
        """Nothing that was recorded is lost, and what was said is so."""
        recorded = self.n_recorded(output)
        self.assertGreaterEqual(recorded, n)
        self.assertIn(f'sim: {recorded} of {N_LONG} points are done; the first that is missing: '
                      '{"/schedule/micro_batches": ', said)
        self.assertEqual(len([line for line in self.ours(said) if 'missing' in line]), 1, said)
        said = self.sim(2, *words, '-o', output, '--resume', '-j', '1')[1]
        self.assertIn(f'{recorded} of {N_LONG} points were done before', said)
        self.assertEqual(self.digest(output), self.digest('one.h5'))

    def test_killed_process(self):
        words = ('sweep', 's.json', *LONG)
        self.sim(0, *words, '-o', 'one.h5')
        for rank, n in ((0, 20), (0, 200), (1, 20),
                        (2, 200)) if LONG_TESTS else ((0, 20), (2, 100)):
            with self.subTest(rank=rank, n=n):
                output = f'{rank}-{n}.h5'
                said, code, _ = self.end_at(n, lambda _: os.kill(self.processes()[rank],
                                                                 signal.SIGKILL), *words,
                                            output=output)
                self.assertEqual(code, 137, said)  # of mpirun: 128 + 9
                self.assertRegex(said, f'process rank {rank} with PID .* exited on signal 9')
                self.expect_resumed(said, n, *words, output=output)

    def test_interrupted(self):
        """mpirun ends all by SIGTERM, and itself a second later; SIGUSR1 it hands on. Not all is
        done in that second."""
        words = ('sweep', 's.json', *LONG[:-1], '/iterations=256')
        self.sim(0, *words, '-o', 'one.h5')
        signals = [(signal.SIGINT, 1, 5), (signal.SIGTERM, 1, 5), (signal.SIGUSR1, 130, 2)]
        for number, expected, limit in signals if LONG_TESTS else signals[::2]:
            with self.subTest(signal=number):
                output = f'{number}.h5'
                said, code, took = self.end_at(50, lambda process: process.send_signal(number),
                                               *words, output=output)
                self.assertEqual(code, expected, said)
                self.assertLess(took, stretched(limit))
                self.assertEqual(said.count('sim: error: interrupted'), 1, said)
                self.expect_resumed(said, 50, *words, output=output)

    def test_processes_end_within_a_second(self):
        """Of sim: mpirun itself waits a second before it tells them."""
        process = self.start(3, 'sweep', 's.json', *LONG, '-o', 'x.h5', '-j', '1')
        self.addCleanup(process.kill)
        while self.n_recorded('x.h5') < 20 and process.poll() is None:
            time.sleep(0.005)
        start = time.monotonic()
        for pid in self.processes().values():
            os.kill(pid, signal.SIGTERM)
        while self.processes():
            time.sleep(0.01)
        took = time.monotonic() - start
        self.assertLess(took, stretched(1))
        process.communicate(timeout=60)

    def test_interrupted_while_starting(self):
        for delay in (0.05, 0.2, 0.4, 0.6) if LONG_TESTS else (0.05, 0.4):
            process = self.start(3, 'sweep', 's.json', *LONG, '-o', f'{delay}.h5')
            self.addCleanup(process.kill)
            time.sleep(delay)
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=60)[1]
            self.assertLessEqual(said.count('interrupted'), 1, said)
            self.assertEqual(self.processes(), {})

    def test_search_resumes(self):
        words = ('advise', 'a.json', '--exhaustive')
        self.sim(0, *words, '-o', 'one.h5')
        for rank in (0, 2) if LONG_TESTS else (0,):
            self.end_at(8, lambda _: os.kill(self.processes()[rank], signal.SIGKILL), *words,
                        output=f'{rank}.h5')
            self.sim(3, *words, '-o', f'{rank}.h5', '--resume')
            self.assertEqual(self.digest(f'{rank}.h5'), self.digest('one.h5'))

    def test_validation_resumes(self):
        """Also with another number of processes, and where points had failed."""
        words = ('validate', 'm.json', '--points')
        self.write('m.json', MANY_POINTS)
        expected = self.sim(0, *words, '-o', 'one.h5')[0]
        for rank in (0, 2):
            output = f'{rank}.h5'
            said = self.end_at(20, lambda _: os.kill(self.processes()[rank], signal.SIGKILL),
                               *words,
                               output=output)[0]
            n = self.n_recorded(output)
            self.assertGreaterEqual(n, 20)
            self.assertEqual(said.count(f'sim: {n} of 72 points are done; --resume continues'), 1,
                             said)
            out, said = self.sim(rank, *words, '-o', output, '--resume')
            self.assertIn(f'sim: {n} of 72 points were done before', said)
            self.assertEqual(out, expected)
            self.assertEqual(self.digest(output), self.digest('one.h5'))
            self.assertEqual(self.n_recorded(output), 0)

    def test_selection_of_nothing(self):
        said = self.sim(2, 'validate', 'p.json', '--select', 'id=none', status=2)[1]
        self.assertEqual(len(self.ours(said)), 1, said)


class Alone(unittest.TestCase):
    def validate(self, folder, *words, status=0):
        done = subprocess.run([SIM, 'validate', 'm.json', *words, '-j', '1'], cwd=folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def stop_validation(self, folder, n, *words):
        """Kills it when n points are recorded."""
        path = os.path.join(folder, 'out.h5.journal')
        process = subprocess.Popen([SIM, 'validate', 'm.json', '-o', 'out.h5', '-j', '1', *words],
                                   cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and n_lines(path) <= n:
            time.sleep(0.002)
        process.kill()
        self.assertEqual(process.wait(), -signal.SIGKILL, 'ended before')
        return n_lines(path) - 1

    def test_validation_resumes(self):
        """Only what it is of: the same points, the same changes, the same files."""
        with tempfile.TemporaryDirectory(prefix='test-team-') as folder:
            write_json(folder, 'm.json', MANY_POINTS)
            with open(os.path.join(os.path.dirname(__file__), '../facts/devices/a100.json'),
                      encoding='utf-8') as file:
                device = json.load(file)
            write_json(folder, 'd.json', device)
            changed = ('--set', '/model/device=d.json')
            self.validate(folder, *changed, '-o', 'one.h5')
            n = self.stop_validation(folder, 20, *changed)
            self.assertGreaterEqual(n, 20)
            self.assertIn('already begun; continue with --resume',
                          self.validate(folder, *changed, '-o', 'out.h5', status=2))
            self.assertIn('belongs to another validation',
                          self.validate(folder, '-o', 'out.h5', '--resume', status=3))
            self.assertIn('--resume requires --output',
                          self.validate(folder, '--resume', status=2))
            said = self.validate(folder, *changed, '-o', 'out.h5', '--resume')
            self.assertIn(f'sim: {n} of 72 points were done before', said)
            with open(os.path.join(folder, 'one.h5'), 'rb') as one, \
                    open(os.path.join(folder, 'out.h5'), 'rb') as out:
                self.assertEqual(one.read(), out.read())
            self.stop_validation(folder, 20, *changed)
            write_json(folder, 'd.json', {**device, 'bandwidth': '1 TB/s'})
            self.assertIn('belongs to another validation',
                          self.validate(folder, *changed, '-o', 'out.h5', '--resume', status=3))

    def test_without_mpi(self):
        """A copy of the program, away from its module, is one that was built without MPI."""
        with tempfile.TemporaryDirectory(prefix='test-team-') as folder:
            program, path = os.path.join(folder, 'sim'), os.path.join(folder, 's.json')
            shutil.copy(SIM, program)
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(SCENARIO, file)
            for rank, status, times in (('0', 1, 1), ('1', 0, 0)):
                done = subprocess.run([program, 'sweep', path, '--vary',
                                       '/schedule/micro_batches=1,2', '--no-output'],
                                      env=dict(os.environ, OMPI_COMM_WORLD_SIZE='2',
                                               OMPI_COMM_WORLD_RANK=rank),
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual(done.stderr.count('was built without MPI'), times)


if __name__ == '__main__':
    unittest.main()

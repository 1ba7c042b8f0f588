#!/usr/bin/env python3
"""Files that are the user's: test-user-files.py SIM SOURCE_ROOT [TEST...]

No command deletes a file or folder because of its name, replaces one of its inputs, or leaves
something behind, also if it runs out of file descriptors.
"""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from processes import patient

SIM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

LAYER = {'name': 'a', 'forward': '1 ms', 'backward': '2 ms', 'weights': '1 MB', 'output': '1 MB'}
MODEL = {'schema_version': 1, 'name': 'm', 'batch_size': 0, 'input': 0,
         'provenance': {'source': 'made', 'hardware': 'none', 'date': '2026-01-01'},
         'layers': [LAYER, {**LAYER, 'name': 'b'}]}
SCENARIO = {'schema_version': 1, 'name': 'made',
            'model': {'uniform': {'layers': 4, 'forward': '1 ms', 'backward': '2 ms',
                                  'weights': '1 MB', 'activation': '1 MB'}},
            'platform': {'topology': 'ring', 'devices': 2, 'bandwidth': '1 GB/s'},
            'schedule': {'kind': 'gpipe', 'micro_batches': 4}}
COSTS = {'schema_version': 1, 'sources': []}
GPT = {'model_type': 'gpt2', 'architectures': ['GPT2LMHeadModel'], 'n_layer': 2, 'n_embd': 64,
       'n_head': 2, 'n_positions': 32, 'vocab_size': 100}
OSU = '# OSU MPI Latency Test\n# Size          Latency (us)\n1    1.5\n2    1.6\n4096 2.5\n'
NO_GNUPLOT = shutil.which('gnuplot') is None
NO_GRAPHVIZ = shutil.which('dot') is None


def write(path, content):
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def contents(folder):
    """Paths of all files and links below a folder, with their bytes or targets."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(at, name)
            if os.path.islink(path):
                found[path] = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, 'rb') as file:
                    found[path] = file.read()
            else:
                found[path] = None
    return found


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='test-user-files-')
        self.addCleanup(shutil.rmtree, self.folder)
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        os.mkdir('tmp')
        write('s.json', SCENARIO)

    def sim(self, *words, status=0, **how):
        done = subprocess.run([SIM, *words], capture_output=True, text=True, check=False,
                              env={**os.environ, 'TMPDIR': self.folder + '/tmp',
                                   **how.pop('environment', {})}, **how)
        self.assertIn(done.returncode, status if isinstance(status, tuple) else (status,),
                      (words, done.stdout[-500:], done.stderr))
        return done


class Deletes(Case):
    """Six characters after the names that sim gives to temporary files."""

    def make(self, beginning):
        """Makes files, folders and links that belong to the user."""
        write(beginning + 'backup/deep/file', 'a folder')
        os.makedirs(beginning + 'empty_')
        write(beginning + 'saved_', 'a file')
        os.symlink('backup', beginning + 'alink_')
        os.symlink('nowhere', beginning + 'adead_')
        write(beginning + 'forged/.sim-temporary', 'notes about this file of sim\nbackup\n1\nfile')
        write(beginning + 'forged/file', 'a file')

    def expect_kept(self, folder, *commands):
        before = contents(folder)
        self.assertGreater(len(before), 5)
        for words in commands:
            self.sim(*words)
            now = contents(folder)
            self.assertEqual({path: now.get(path) for path in before}, before, words)

    def test_temporary_folders(self):
        self.sim('run', 's.json', '-o', 'r.h5')
        for name in ('plot', 'export', 'figures', 'request', 'mpi', 'sweep'):
            self.make(f'tmp/sim-{name}-')
        commands = [['sweep', 's.json', '-v', '/seed=1,2', '--no-output']]
        if not NO_GNUPLOT:
            commands.append(['plot', 'r.h5', '-o', 'p.svg'])
            commands.append(['figures', '--only', 'cdp-fig2', '-o', 'figures'])
        if not NO_GRAPHVIZ:
            commands.append(['export', 'topology', 's.json', '-o', 't.svg'])
        self.expect_kept('tmp', *commands)

    def test_beside_outputs(self):
        for name in ('r.h5', 'p.json', 'p.svg', 'sw.h5', 'sw.h5.journal', 't.svg', 'r.html'):
            self.make(f'out/.{name}.sim~')
        commands = [['run', 's.json', '-o', 'out/r.h5'], ['plan', 's.json', '-o', 'out/p.json'],
                    ['sweep', 's.json', '-v', '/seed=1,2', '-o', 'out/sw.h5']]
        if not NO_GNUPLOT:
            commands.append(['plot', 'out/r.h5', '-o', 'out/p.svg'])
        if not NO_GRAPHVIZ:
            commands.append(['export', 'topology', 's.json', '-o', 'out/t.svg'])
        self.expect_kept('out', *commands)

    def test_journals(self):
        """A file that has the name of a journal but is not one stays."""
        sweep = ['sweep', 's.json', '-v', '/seed=1,2', '-o', 'x.h5']
        for content in ('notes\n', 'notes without an end', '', '{"json": 1}',
                        '0123456789abcdef sim sweep journal 1 0123456789abcdef\n'):
            for words in (sweep, ['advise', 's.json', '--most', '2', '-o', 'x.h5'],
                          ['validate', '-s', 'id=none', '-o', 'x.h5']):
                write('x.h5.journal', content)
                said = self.sim(*words, status=(2, 3)).stderr
                self.assertIn('x.h5.journal' if words[0] != 'validate' else '', said)
                with open('x.h5.journal', encoding='utf-8') as file:
                    self.assertEqual(file.read(), content, words)
            os.remove('x.h5.journal')
        write('notes', 'notes')
        os.symlink('notes', 'x.h5.journal')
        self.sim(*sweep, status=1)
        os.remove('x.h5.journal')
        os.symlink('nothing', 'x.h5.journal')
        self.sim(*sweep, status=1)
        self.assertEqual(contents('.')['./x.h5.journal'], 'nothing')
        self.assertEqual(contents('.')['./notes'], b'notes')
        self.assertFalse(os.path.exists('nothing'))
        os.remove('x.h5.journal')
        self.sim(*sweep)
        self.assertFalse(os.path.exists('x.h5.journal'))

    def test_journals_of_figures(self):
        self.sim('figures', '--only', 'cdp-fig2', '-o', 'f')
        journal, = [name for name in os.listdir('f/data') if name.endswith('.journal')]
        write('f/data/' + journal, 'notes')
        said = self.sim('figures', '--only', 'cdp-fig2', '-o', 'f', status=3).stderr
        self.assertIn(journal, said)
        self.assertEqual(contents('f')[f'f/data/{journal}'], b'notes')

    @unittest.skipIf(NO_GNUPLOT, 'without gnuplot')
    def test_killed(self):
        """The next command removes the files that a killed command left. Copies, and files that a
        user added, stay."""
        self.sim('run', 's.json', '-o', 'r.h5')
        write('bin/gnuplot', '#!/bin/sh\n: > started\nexec sleep 60\n')
        os.chmod('bin/gnuplot', 0o755)
        with subprocess.Popen([SIM, 'plot', 'r.h5', '-o', 'p.svg'], env={
                **os.environ, 'TMPDIR': self.folder + '/tmp',
                'PATH': self.folder + '/bin:' + os.environ['PATH']}) as process:
            patient(lambda: os.path.exists('started'), 20)
            process.kill()
        left, = os.listdir('tmp')
        draft, = [name for name in os.listdir('.') if name.startswith('.p.svg')]
        self.assertGreater(len(os.listdir('tmp/' + left)), 2)
        shutil.copytree('tmp/' + left, 'tmp/sim-plot-copied')
        shutil.copytree(draft, '.p.svg.sim~copied')
        write(f'tmp/{left}/notes', 'notes')
        self.sim('plot', 'r.h5', '-o', 'p.svg')
        self.assertEqual(os.listdir('tmp/' + left), ['notes'])
        self.assertFalse(os.path.exists(draft))
        self.assertEqual(set(os.listdir('tmp')), {left, 'sim-plot-copied'})
        self.assertIn('.sim-temporary', os.listdir('tmp/sim-plot-copied'))
        self.assertIn('.content', os.listdir('.p.svg.sim~copied'))


class Inputs(Case):
    """No output replaces an input of its command, under any name."""

    def setUp(self):
        super().setUp()
        self.sim('run', 's.json', '-o', 'r.h5')

    def refuse(self, given, ending, words, output='-o'):
        """`given`: the input. Names for it that end so: its own, hard and symbolic links, also in
        another folder and of links."""
        names = [given] if given.endswith(ending) else []
        os.makedirs('other', exist_ok=True)
        for name in ('hard' + ending, 'other/hard' + ending):
            os.link(given, name)
        os.symlink(given, 'soft' + ending)
        os.symlink('../soft' + ending, 'other/soft' + ending)
        names += ['hard' + ending, 'soft' + ending, 'other/soft' + ending, 'other/hard' + ending,
                  './other/../hard' + ending, os.path.abspath('soft' + ending)]
        before = contents('.')
        for name in names:
            said = self.sim(*words, output, name, status=2).stderr
            self.assertIn('choose another name for the output', said)
            self.assertEqual(contents('.'), before, (words, name))
        for name in ('hard' + ending, 'soft' + ending):
            os.remove(name)
            os.remove('other/' + name)

    def test_scenarios(self):
        shutil.copy('s.json', 's.h5')
        shutil.copy('s.json', 's.svg')
        write('small.json', {**SCENARIO, 'runtime': 'ideal',
                             'model': {'name': 'vgg16', 'batch_size': 8,
                                                   'device': 'v100'}})
        self.refuse('s.h5', '.h5', ['run', 's.h5'])
        self.refuse('s.json', '.json', ['run', 's.json', '--no-output', '--allocator', 'pytorch'],
                    '--snapshot')
        self.refuse('s.json', '.json', ['plan', 's.json'])
        self.refuse('s.json', '.json', ['export', 'topology', 's.json'])
        self.refuse('s.svg', '.svg', ['export', 'topology', 's.svg'])
        self.refuse('s.h5', '.h5', ['sweep', 's.h5', '-v', '/seed=1,2'])
        self.refuse('small.json', '.h5', ['advise', 'small.json', '--most', '1'])
        shutil.copy(ROOT + '/scenarios/periodic.json', 'drawn.json')
        self.refuse('drawn.json', '.svg', ['plan', 'drawn.json', '--planner', 'balanced'],
                    '--draw')

    def test_default_names(self):
        """run NAME makes NAME.h5, of the scenario's name."""
        write('made.h5', SCENARIO)
        os.link('made.h5', 'made-sweep.h5')
        shutil.copy('r.h5', 'r.html')
        shutil.copy('r.h5', 'x.bin')
        os.link('x.bin', 'x.html')
        before = contents('.')
        self.sim('run', 'made.h5', status=2)
        self.sim('sweep', 'made.h5', '-v', '/seed=1,2', status=2)
        self.sim('report', 'r.html', status=2)
        self.sim('report', 'x.bin', '-o', 'x.html', status=2)
        self.assertEqual(contents('.'), before)

    def test_files_that_scenarios_name(self):
        write('m.json', MODEL)
        write('t.json', json.loads(self.sim('export', 'topology', 's.json').stdout))
        shutil.copy(ROOT + '/facts/devices/v100.json', 'd.json')
        write('c.json', GPT)
        write('named.json', {**SCENARIO, 'model': {'file': 'm.json'},
                             'platform': {'topology': 'file', 'file': 't.json'}})
        write('costs.json', COSTS)
        write('config.json', {**SCENARIO, 'costs': 'costs.json',
                              'model': {'name': 'c.json', 'batch_size': 4, 'device': 'd.json'}})
        self.sim('plan', 'named.json', '-o', 'plan.json')
        write('planned.json', {**SCENARIO, 'model': {'file': 'm.json'}, 'schedule': {
            'kind': 'gpipe', 'micro_batches': 4, 'partition': {'file': 'plan.json'}}})
        for scenario, files in (('named.json', ('m.json', 't.json')),
                                ('config.json', ('c.json', 'd.json', 'costs.json')),
                                ('planned.json', ('plan.json',))):
            done = self.sim('check', scenario, status=(0, 3))
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in files:
                self.refuse(name, '.json', ['plan', scenario])
                self.refuse(name, '.h5', ['run', scenario])
                self.refuse(name, '.h5', ['sweep', scenario, '-v', '/seed=1,2'])
        write('points.csv', '/seed\n1\n2\n')
        self.refuse('points.csv', '.csv', ['sweep', 's.json', '--csv', 'points.csv'])

    def test_models(self):
        write('c.json', GPT)
        shutil.copy(ROOT + '/facts/devices/v100.json', 'd.json')
        words = ['model', 'c.json', '-d', 'd.json', '-b', '2']
        self.sim(*words, '-o', 'm.json')
        for name in ('c.json', 'd.json'):
            self.refuse(name, '.json', words)
        write('osu', OSU)
        self.refuse('osu', '.json', ['import', 'osu', 'osu', '--level', 'node', '--hardware', 'x',
                                     '--date', '2026-01-01', '--ranks', '2'])
        write('graph.txt', 'node1 -- Linear(in=1) -- forward_compute_time=1.000, '
              'backward_compute_time=2.000, activation_size=100.0, parameter_size=100.000\n'
              'node2 -- ReLU() -- forward_compute_time=1.000, backward_compute_time=2.000, '
              'activation_size=100.0, parameter_size=0.000\n\tnode1 -- node2\n')
        words = ['import', 'pipedream', 'graph.txt', '--date', '2026-01-01', '-b', '2']
        self.sim(*words, '-o', 'g.json')
        self.refuse('graph.txt', '.json', words)

    def test_costs_may_be_added_to(self):
        write('osu', OSU)
        words = ['import', 'osu', 'osu', '--level', 'node', '--hardware', 'x', '--date',
                 '2026-01-01', '--ranks', '2']
        self.sim(*words, '-o', 'c.json')
        self.sim(*words, '--merge', 'c.json', '-o', 'c.json')

    def test_results(self):
        shutil.copy('r.h5', 'q.h5')
        self.refuse('r.h5', '.json', ['export', 'trace', 'r.h5'])
        self.refuse('r.h5', '.html', ['report', 'r.h5'])
        self.refuse('q.h5', '.html', ['report', 'r.h5', 'q.h5'])
        if not NO_GNUPLOT:
            self.refuse('r.h5', '.svg', ['plot', 'r.h5'])
            self.refuse('q.h5', '.svg', ['compare', 'r.h5', 'q.h5'])

    def test_points(self):
        write('p.json', {'schema': 'truth/1', 'dataset': 'made', 'points': [
            {'id': 'made/1', 'model': {'name': 'resnet50', 'kind': 'cnn'},
             'hardware': {'gpu': 'V100-SXM2-16GB', 'gpus': 1}, 'batch': {'global': 8, 'micro': 8},
             'precision': 'fp32', 'measured': {'step_time_s': 0.1}}]})
        self.refuse('p.json', '.h5', ['validate', 'p.json'])

    def test_two_outputs(self):
        words = ['run', 's.json', '--allocator', 'pytorch', '-o', 'x.h5', '--snapshot']
        os.symlink('x.h5', 'y.pickle')
        for name in ('x.h5', 'y.pickle'):
            self.assertIn('choose two names', self.sim(*words, name, status=2).stderr)
        self.sim(*words, 'x.pickle')

    def test_dangling_links(self):
        """Links to missing files stay, and outputs create the files."""
        os.mkdir('other')
        for name, words in (('a.h5', ['run', 's.json']), ('a.json', ['plan', 's.json']),
                            ('b.json', ['export', 'trace', 'r.h5']), ('a.html', ['report', 'r.h5']),
                            ('b.h5', ['sweep', 's.json', '-v', '/seed=1,2'])):
            os.symlink('other/' + name, name)
            for _ in range(2):
                self.sim(*words, '-o', name)
                self.assertEqual(os.readlink(name), 'other/' + name)
                self.assertGreater(os.path.getsize('other/' + name), 0)
        self.assertEqual(len(os.listdir('other')), 5)
        os.symlink('round', 'round')
        os.symlink('missing/x.json', 'astray.json')
        self.sim('plan', 's.json', '-o', 'astray.json', status=1)
        self.assertEqual(os.readlink('astray.json'), 'missing/x.json')


class Limits(Case):
    def test_descriptors(self):
        """Other programs that cannot be started for lack of descriptors are not said to be
        missing; nothing is left behind."""
        self.sim('run', 's.json', '-o', 'r.h5')
        commands = {'run': ['run', 's.json', '-o', 'x.h5'],
                    'topology': ['export', 'topology', 's.json', '-o', 'x.svg'],
                    'plot': ['plot', 'r.h5', '-o', 'x.svg']}
        for name, words in commands.items():
            ended = set()
            for n in range(4, 16):
                done = self.sim(*words, status=(0, 1, 3), preexec_fn=lambda n=n: resource.setrlimit(
                    resource.RLIMIT_NOFILE, (n, n)))
                ended.add(done.returncode)
                self.assertNotRegex(done.stderr, 'not installed|not found|needed', name)
                if done.returncode:
                    self.assertIn('Too many open files', done.stderr, (name, n))
                self.assertEqual(os.listdir('tmp'), [], (name, n))
                self.assertEqual([at for at in os.listdir('.') if at.startswith('.')], [], name)
            self.assertIn(1, ended)

    def test_programs_that_are_missing(self):
        os.mkdir('empty')
        said = self.sim('export', 'topology', 's.json', '-o', 'x.svg', status=1,
                        environment={'PATH': self.folder + '/empty'}).stderr
        self.assertIn('is not installed', said)
        write('empty/dot', 'no program')
        said = self.sim('export', 'topology', 's.json', '-o', 'x.svg', status=1,
                        environment={'PATH': self.folder + '/empty'}).stderr
        self.assertIn('Permission denied', said)
        self.assertNotIn('not installed', said)

    def test_signals_from_the_beginning(self):
        """As soon as sim handles one signal, it handles all; none kills it by default action."""
        ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
        seen = 0
        with open('/proc/self/status', encoding='utf-8') as file:
            own = [line for line in file if line.startswith('SigCgt:')][0].split(':')[1]
        for _ in range(20):
            with subprocess.Popen([SIM, 'list'], stdout=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    try:
                        with open(f'/proc/{process.pid}/status', encoding='utf-8') as file:
                            lines = dict(line.split(':', 1) for line in file if ':' in line)
                    except OSError:
                        break
                    caught, blocked = (int(lines.get(key, '0'), 16) for key in ('SigCgt', 'SigBlk'))
                    if caught == int(own, 16):
                        continue  # the copy of this program, which is about to become sim
                    if any(caught >> (end - 1) & 1 for end in ends):
                        seen += 1
                        for end in ends:
                            self.assertTrue((caught | blocked) >> (end - 1) & 1, end)
        self.assertGreater(seen, 0)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

#!/usr/bin/env python3
"""The program as its users see it: cli-tests.py SIM SOURCE_ROOT [--update] [TEST...]

Runs the program in empty folders and looks at exit codes, messages and files. Its output is
compared with tests/golden/*.txt; --update rewrites these files, to be read before they are
committed. Needs no module beyond the standard library.
"""
import csv
import fcntl
import fractions
import json
import os
import pty
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

UPDATE = '--update' in sys.argv
WORDS = [word for word in sys.argv[1:] if word != '--update']
SIM, ROOT = os.path.abspath(WORDS[0]), os.path.abspath(WORDS[1])
SCENARIOS = os.path.join(ROOT, 'scenarios')
SANITIZED = 'SIM_SANITIZED' in os.environ
DOCS = os.path.join(ROOT, 'docs')

UNIFORM = {
    'schema_version': 1,
    'model': {'uniform': {'layers': 4, 'forward': '1 s', 'backward': '2 s', 'weights': '1 GB',
                          'activation': '1 GB'}},
    'platform': 'ideal',
    'schedule': {'kind': 'gpipe', 'micro_batches': 8},
}

POINTS = {
    'schema': 'truth/1', 'dataset': 'made', 'points': [{
        'id': 'made/1', 'model': {'name': 'resnet50', 'kind': 'cnn'},
        'hardware': {'gpu': 'V100-SXM2-16GB', 'gpus': 1},
        'batch': {'global': 8, 'micro': 8}, 'precision': 'fp32', 'measured': {'step_time_s': 0.1}}],
}


def run(*words, **how):
    """The finished process, with text."""
    return subprocess.run([SIM, *words], capture_output='stdout' not in how, text=True,
                          check=False, stderr=subprocess.PIPE if 'stdout' in how else None, **how)


def write(name, content):
    with open(name, 'w', encoding='utf-8') as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return name


def read(name):
    with open(name, 'rb') as file:
        return file.read()


def shown(*words):
    """A command with its results, in the form of golden files."""
    done = run(*words)
    quoted = ' '.join(w if re.fullmatch(r'[\w./=,-]+', w) else f"'{w}'" for w in words)
    text = ''.join(part if not part or part.endswith('\n') else part + '\n'
                   for part in (f'$ sim {quoted}', done.stdout, done.stderr))
    return text + (f'=> {done.returncode}\n' if done.returncode else '') + '\n'


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='sim-cli-')
        os.chdir(self.folder)
        write('tiny.json', UNIFORM)

    def tearDown(self):
        os.chdir('/')
        shutil.rmtree(self.folder)

    def expect(self, done, code, *pieces):
        """The exit code, and pieces of standard error."""
        self.assertEqual(done.returncode, code, done.stderr)
        for piece in pieces:
            self.assertIn(piece, done.stderr)

    def expect_golden(self, name, text):
        path = os.path.join(ROOT, 'tests', 'golden', name + '.txt')
        if UPDATE:
            write(path, text)
        self.assertEqual(read(path).decode() if os.path.exists(path) else '', text)

    def expect_files(self, *names):
        self.assertEqual(sorted(os.listdir('.')), sorted(names + ('tiny.json',)))


class Terminal(Case):
    """`sim run` where somebody looks at it."""

    def on_terminal(self, columns, *words, **environment):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', 40, columns, 0, 0))
        keep = {key: value for key, value in os.environ.items()
                if key not in ('LC_ALL', 'LC_CTYPE', 'LANG', 'NO_COLOR', 'TERM')}
        process = subprocess.Popen([SIM, *words], stdin=follower, stdout=follower,
                                   stderr=subprocess.PIPE, env={**keep, **environment})
        os.close(follower)
        said = b''
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:  # its other end is closed
                break
            said += part
            if not part:
                break
        os.close(leader)
        self.assertEqual(process.wait(), 0, process.stderr.read())
        process.stderr.close()
        return said.decode().replace('\r\n', '\n')

    def picture(self, columns, *words, **environment):
        said = self.on_terminal(columns, 'run', *words, '--no-output', **environment)
        self.assertIn('\ntimeline ', said)
        return said[said.index('\ntimeline ') + 1:]

    def test_by_hand(self):
        """Four stages, eight micro-batches, forwards of 1 s and backwards of 2 s: (8 + 3) x 3 s.
        Stage d begins d s later and ends 2 d s earlier than the first, whose backwards begin when
        the others have done theirs, 3 x 3 s after its forwards. At one character a second: 12
        columns for names, 33, and one that stays free."""
        utf8 = {'LANG': 'en_US.UTF-8', 'TERM': 'xterm', 'NO_COLOR': '1'}
        rows = self.picture(46, 'tiny.json', **utf8).splitlines()
        self.assertEqual(rows[0], 'timeline    1 s a character')
        for d in range(4):
            self.assertEqual(rows[1 + d], f'{d:11d} ' + '·' * d + '░' * 8 + '·' * (9 - 3 * d) +
                             '█' * 16 + ' ' * (2 * d))
        self.assertEqual(rows[5].split(), ['0', '33', 's'])
        ascii_rows = self.picture(46, 'tiny.json', LANG='C', TERM='xterm', NO_COLOR='1')
        for a, b in ('·.', '░-', '█#'):
            self.assertEqual(ascii_rows.count(b) >= 8, True)
            rows = [row.replace(a, b) for row in rows]
        self.assertEqual(ascii_rows.splitlines()[:6], rows[:6])
        self.assertTrue(ascii_rows.isascii())

    def test_memory_by_hand(self):
        """The first device holds 1 GB each of weights, gradients and what it sends, and 8 GB of
        activations: 11 of 16 GB, which are bars of 22 characters, as 11 are for the amount."""
        rows = self.picture(46, 'tiny.json', '-s',
                            '/platform={"topology": "ideal", "memory": "16 GB"}',
                            LANG='en_US.UTF-8', TERM='xterm', NO_COLOR='1').splitlines()
        bars = rows[rows.index('memory      at the peak of each device') + 1:][:4]
        peaks = [float(bar.split()[-2]) for bar in bars]
        self.assertEqual(peaks[0], 11)
        self.assertEqual(bars[0][12:34].count('█'), 11)  # 8 / 16 of 22
        for bar, peak in zip(bars, peaks):
            drawn = bar[12:34]
            self.assertEqual(drawn.count('█') + drawn.count('▒'), int(peak / 16 * 22 + 0.5))
            self.assertEqual(drawn[-1], '│')

    def test_where_it_is_drawn(self):
        self.assertNotIn('timeline', run('run', 'tiny.json', '--no-output').stdout)
        utf8 = {'LC_ALL': 'C.UTF-8', 'TERM': 'xterm'}
        for words in (['--no-picture'], ['--json']):
            self.assertNotIn('timeline', self.on_terminal(80, 'run', 'tiny.json', '--no-output',
                                                          *words, **utf8))
        self.assertIn('\033[36m░', self.picture(80, 'tiny.json', **utf8))
        for plain in ({**utf8, 'NO_COLOR': '1'}, {**utf8, 'TERM': 'dumb'}):
            self.assertNotIn('\033', self.picture(80, 'tiny.json', **plain))
        coloured = self.picture(80, 'tiny.json', **utf8)
        self.assertEqual(re.sub('\033\\[\\d+m', '', coloured),
                         self.picture(80, 'tiny.json', NO_COLOR='1', **utf8))

    def test_widths(self):
        """No line is wider than the terminal, down to 40 columns; nor than 160."""
        scenario = os.path.join(SCENARIOS, 'out-of-memory.json')
        for columns in (40, 41, 60, 80, 133, 160, 300):
            for row in self.picture(columns, scenario, LANG='C.UTF-8', NO_COLOR='1').splitlines():
                self.assertLessEqual(len(row), min(columns, 160), row)

    def test_golden(self):
        text = ''
        for name, columns in (('out-of-memory', 100), ('zb-h1', 80), ('pipedream-replicas', 80)):
            text += f'{name}, {columns} columns\n\n' + self.picture(
                columns, os.path.join(SCENARIOS, name + '.json'), LANG='C.UTF-8',
                NO_COLOR='1') + '\n'
        self.expect_golden('picture', text)


class Messages(Case):
    def test_help(self):
        commands = re.findall(r'^  (\w+) ', run('--help').stdout, re.MULTILINE)
        self.assertIn('run', commands)
        self.expect_golden('help', (shown('--help') + shown('help', 'run')).replace(ROOT, 'ROOT'))
        for command in commands:
            self.assertEqual(run(command, '--help').stdout, run('help', command).stdout)
            self.assertEqual(run(command, '-h').stdout, run('help', command).stdout)

    def test_lines_fit(self):
        sections = re.findall(r'^(\w+)$', run('list').stdout, re.MULTILINE)
        self.assertGreater(len(sections), 8)
        text = ''.join(run('list', section).stdout for section in sections)
        text += run('list').stdout + run('run', 'tiny.json', '--no-output').stdout
        for line in text.splitlines():
            self.assertLess(len(line), 100, line)
            self.assertEqual(line, line.rstrip())

    def test_help_is_complete(self):
        """Each command prints its usage, its purpose, and the purpose of every option."""
        for command in re.findall(r'^  (\w+) ', run('--help').stdout, re.MULTILINE):
            text = run('help', command).stdout
            usage, doc, options = re.fullmatch(
                r'(usage: sim .*?)\n\n(.*)\n\noptions:\n(.*)', text, re.DOTALL).groups()
            self.assertTrue(usage.startswith(f'usage: sim {command}'), usage)
            self.assertRegex(doc, r'(?s)^\S.*[.:]', command)
            for option in re.split(r'\n(?=  (?:-\w,|   ) --)', options):
                self.assertRegex(option, r'^  (-\w,|   ) --[\w-]+', command)
                doc = re.sub(r'^ +(-\w,)? +--[\w-]+( [A-Z][\w./|-]*)?', '', option)
                self.assertGreaterEqual(len(doc.split()), 2, f'{command}: {option}')
            for line in text.splitlines():
                self.assertLessEqual(len(line), 100 if line.startswith('usage') else 80, line)

    def test_list(self):
        self.expect_golden('list', ''.join(shown('list', *words) for words in (
            ['1f1b'], ['planners', 'pipedream'], ['cluster'], ['h100'],
            ['--markdown', 'sections', 'jitter'], ['--json', 'sequential'])))
        self.expect(run('list', 'planners', '1f1b'), 2, 'planners: unknown "1f1b"; known: balanced')
        self.expect(run('list', '1f1b', 'gpipe'), 2,
                    'list: unknown section "1f1b"; known: schedules')
        self.expect(run('list', 'schedules', 'gpip'), 2, 'unknown "gpip"; did you mean "gpipe"?')

    def test_list_is_complete(self):
        """Everything has a summary, and every parameter has its meaning, its range, and
        what it is when it is left out: a default that is read again as such a value, or nothing."""
        listed = json.loads(run('list', '--json').stdout)
        kinds = ('schedules', 'planners', 'topologies', 'models', 'devices', 'sections')
        self.assertEqual([kind for kind in kinds if len(listed[kind]) < 7], [])
        text = ' '.join(run('list').stdout.split())
        for entry in (entry for kind in kinds for entry in listed[kind]):
            self.assertRegex(entry['name'], r'^[\w.-]+$')
            self.assertRegex(entry['summary'], r'^\S.*[^.\s]$', entry['name'])
            self.assertIn(f"{entry['name']}: {entry['summary']}", text)
            names = [p['name'] for p in entry['parameters']]
            self.assertEqual(len(set(names)), len(names), names)
            for parameter in entry['parameters']:
                where = f"{entry['name']}: {parameter}"
                self.assertRegex(parameter['doc'], r'^\S.*[^.\s]$', where)
                self.assertTrue(parameter['expected'], where)
                self.assertFalse(parameter['required'] and parameter['default'], where)
                choices = re.match(r'one of (.*)', parameter['expected'])
                if choices and parameter['default']:
                    self.assertIn(parameter['default'], choices[1].split(', '), where)
                elif (parameter['expected'].startswith(('time', 'bandwidth'))
                      and parameter['default'] != 'none'):
                    self.assertRegex(parameter['default'], r'^(0|[\d.]+ \S+)?$', where)

    def test_run(self):
        write('dp.json', dict(UNIFORM, schedule={'kind': 'dp'}, platform={
            'topology': 'ring', 'devices': 2, 'bandwidth': '10 GB/s', 'memory': '11 GB'}))
        self.expect_golden('run',
                           shown('run', 'tiny.json') + shown('run', 'dp.json', '-o', 'x.h5') +
                           shown('run', 'dp.json', '--stop-on-oom', '--no-output'))
        self.expect_files('tiny.h5', 'x.h5', 'dp.json')

    def test_device_rows(self):
        """Equal devices share a row and a message; of many different ones the first and the
        last."""
        same = ['run', 'tiny.json', '--no-output', '-s', '/schedule={"kind": "dp"}', '-s']
        out = run(*same, '/platform={"topology": "ideal", "devices": 20, "memory": "7 GB"}').stdout
        self.assertEqual(re.findall(r'^ +(\S+) +100\.0 %', out, re.MULTILINE), ['0-19'])
        self.assertEqual(re.findall(r'^out of memory: (.*?),', out, re.MULTILINE),
                         ['devices 0 to 19'])
        # stage s keeps 20 - s activations: all differ, and none fits
        out = run('run', 'tiny.json', '--no-output', '-s', '/model/uniform/layers=20', '-s',
                  '/schedule/kind=1f1b', '-s', '/schedule/micro_batches=20', '-s',
                  '/platform={"topology": "ideal", "devices": 20, "memory": "3 GB"}').stdout
        rows = re.findall(r'^ +(\d\S*|\.\.\. .*) .* OUT OF MEMORY$|^ +(\.\.\. \d+ more)', out,
                          re.MULTILINE)
        self.assertEqual([a or b for a, b in rows], [*map(str, range(14)), '... 5 more', '19'])
        self.assertRegex(out, r'(?m)^out of memory: device 0, (?s:.*)^out of memory: 19 more '
                              r'devices, the last at ')

    def test_columns_of_device_rows(self):
        """The time that a device computes ends below the end of its heading, however long names
        are."""
        out = run('run', os.path.join(ROOT, 'scenarios/deepseek-v3-2048.json'),
                  '--no-output').stdout
        end = re.search(r'(?m)^ +device computing', out).group(0)
        ends = {len(row) for row in re.findall(r'(?m)^ *\d+-\d+ +[\d.]+ %', out)}
        self.assertEqual(ends, {len(end)})

    def test_check_and_plan(self):
        self.expect_golden('check-and-plan', ''.join([
            shown('check', 'tiny.json'), shown('check', 'tiny.json', '--resolved'),
            shown('check', 'tiny.json', '--graph', '-s', '/schedule/micro_batches=1', '-s',
                  '/model/uniform/layers=2'),
            shown('plan', 'tiny.json', '-s', '/platform={"topology": "ideal", "devices": 2}'),
            shown('plan', 'tiny.json', '--json', '-s', '/model/uniform/layers=1')]))
        self.expect_files()

    def test_slips(self):
        """Warnings and notes about what is valid, and what others would have meant."""
        write('named.json',
              dict(UNIFORM, runtime='ideal',
                   model={'name': 'vgg16', 'device': 'v100', 'batch_size': 64},
                                 platform={'topology': 'dgx-a100'}))
        write('config.json', {'model_type': 'gpt2', 'n_layer': 2, 'n_embd': 64, 'n_head': 4,
                              'vocab_size': 100, 'torch_dtype': 'bfloat16'})
        set_ = lambda *sets: [word for s in sets for word in ('-s', s)]
        ring = '/platform={"topology": "ring", "devices": 4, "bandwidth": "%s"}'
        dp = '/schedule={"kind": "dp"}'
        rows = [['tiny.json', *set_(ring % unit)] for unit in ('12 Gb/s', '12 gbps', '12 GBps')]
        rows += [['tiny.json', *set_(s)] for s in (
            '/collectivs/algorithm=ring', '/collectives/algorithm=rin', '/platform/devices=2',
            '/model/file=x.json', '/schema_version=2', '/schedule/micro_batches=1048577',
            '/schedule/kind=ddp', '/schedule/kind=FSDP',
            '/schedule/kind=zero', '/schedule/kind=zbv', '/schedule/kind=dualpipe')]
        rows += [['tiny.json', *set_('/model={"file": "x.json"}')],
                 ['tiny.json', *set_('/schedule/micro_batches=1048576', '/iterations=1048576')],
                 ['tiny.json', *set_('/platform={"topology": "ring", "bandwidth": 12, '
                                     '"memory": 16}')],
                 ['tiny.json',
                  *set_('/platform={"topology": "ring", "bandwidth": "12", "memory": "16"}')],
                 ['tiny.json', *set_('/platform={"topology": "ideal", "memory": [16, 16, 16, 16]}',
                                     '/collectives={"fidelity": "alpha_beta", '
                                     '"levels": {"node": {"bandwidth": 300}}}')],
                 ['tiny.json', *set_('/model/batch_size=7')],
                 ['named.json'], ['named.json', *set_('/model/parameters/image=0')],
                 ['named.json', *set_('/model/name=gpt', '/model/parameters={"heads": 7}')],
                 ['named.json', *set_('/model/name=config.json', '/platform/devices=2')],
                 ['named.json', *set_('/platform/devices=4')]]
        shutil.copy(os.path.join(ROOT, 'tests', 'data', 'nccl-part.xml'), '.')
        rows += [['named.json', *set_('/platform={"topology": "file", "file": "nccl-part.xml"}')],
                 ['named.json', *set_('/platform={"topology": "file", "file": "nccl-part.xml"}',
                                      '/platform/nvswitch=none')],
                 ['named.json', *set_(dp, '/platform={"topology": "fat_tree", "devices": 4, '
                                          '"bandwidth": "10 GB/s"}',
                                      '/collectives/algorithm=hierarchical')]]
        text = ''.join(shown('check', *row) for row in rows)
        quiet = '--log-level', 'info'
        for row in (['tiny.json', *set_('/schedule={"kind": "pipedream"}')],
                    ['tiny.json', *set_('/schedule={"kind": "pipedream"}', '/iterations=16')],
                    ['named.json',
                     *set_(dp, '/platform/devices=16', '/collectives/algorithm=direct')],
                    ['named.json', *set_(dp, '/platform/devices=16')],
                    ['named.json', *set_(dp, '/platform/devices=12', '/model/batch_size=48')],
                    ['tiny.json', *set_(dp, ring % '1 GB/s', '/platform/bandwidth=1')]):
            done = run('run', *row, '--no-output', *quiet)
            text += f"$ sim run {' '.join(row)}\n{done.stderr}=> {done.returncode}\n\n"
        for name, key in (('model', 'layers'), ('plan', 'stages'), ('device', 'peaks'),
                          ('costs', 'sources'),
                          ('topology', 'vertices'), ('hub', 'model_type'),
                          ('kineto', 'traceEvents')):
            write(f'{name}.json', {'schema_version': 1, key: []})
            text += shown('check', f'{name}.json')
        for row in (['plot', 'tiny.json', '-o', 'p.svg'],
                    ['check', 'tiny.json', *set_('/model={"file": "tiny.json"}')],
                    ['check', 'tiny.json', *set_('/parallel={"tp": 2, "pp": 2}')],
                    ['check', 'named.json', *set_('/model/precision=bfloat16')],
                    ['list', '1f2b'], ['export', 'topology', 'dgx-a10'],
                    ['model', 'gpt', '-b', '1e9'],
                    ['sweep', 'tiny.json', '-v', '/platform/memory=16,32 GB']):
            text += shown(*row)
        self.expect_golden('slips', text)

    def test_end_of_a_log(self):
        """A broadcast of 10 us + m / (410 MB/s) up to 16 MiB, and 10.5 ms for 32 MiB, by another
        algorithm: the prediction is the measured value instead of the line's 81.9 ms, with a
        warning."""
        rows = [(1 << k, 10 + (1 << k) / 410 * (1 + 0.01 * (-1) ** k)) for k in range(25)]
        write('osu.log', '# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n' +
              ''.join(f'{size:<10} {time:20.2f}\n' for size, time in rows + [(1 << 25, 10500)]))
        done = run('import', 'osu', 'osu.log', '--ranks', '2', '--level', 'node', '--hardware', 'x',
                   '--date', '2026-11-22', '-o', 'costs.json')
        self.expect(done, 0)
        self.assertIn('warning: broadcast of 2 ranks: the largest sizes, from 33554432 B on '
                      '(timings: '
                      '1), are far off the line of the smaller ones', done.stderr)
        # Each of two stages is broadcast before its forward and before its backward, 32 MiB each;
        # of the sums of gradients, which are not measured, the last one ends the run: 32 MiB at 1
        # TB/s.
        write('s.json', {'schema_version': 1, 'costs': 'costs.json', 'iterations': 1,
                         'model': {'uniform': {'layers': 2, 'forward': '1 s', 'backward': '1 s',
                                               'weights': 1 << 25}},
                         'platform': {'topology': 'nvlink_switch', 'devices': 2,
                                      'bandwidth': '1 TB/s'},
                         'collectives': {'fidelity': 'analytic'},
                         'schedule': {'kind': 'cdp_dp', 'micro_batches': 2, 'setting': 'zero'}})
        result = json.loads(run('run', 's.json', '--no-output', '--json').stdout)
        self.assertEqual(result['costs']['measured_collectives'], 4)
        self.assertAlmostEqual(result['critical_path']['communication_s'],
                               4 * 10.5e-3 + (1 << 25) / 1e12, places=9)

    def test_presets_are_what_they_stand_for(self):
        """A preset, and the keys that `sim list` prints for it: the same links, and the same run,
        bit for bit. With a rack of 72 GPUs the run would take long."""
        listed = json.loads(run('list', 'topologies', '--json').stdout)['topologies']
        presets = {t['name']: t['stands_for'] for t in listed if 'stands_for' in t}
        self.assertIn('dgx-h100', presets)
        for name, keys in presets.items():
            per_node = keys.get('gpus_per_node', 4)
            runs, links = [], []
            for platform in ({'topology': name}, keys):
                write('s.json', dict(UNIFORM, platform={**platform, 'devices': 2 * per_node},
                                     schedule={'kind': 'dp'}))
                exported = json.loads(run('export', 'topology', 's.json').stdout)
                links.append((exported['vertices'], exported['links']))
                if per_node <= 8:
                    runs.append(json.loads(run('run', 's.json', '--no-output', '--json').stdout))
            self.assertEqual(links[0], links[1], name)
            self.assertEqual(len({each['hash'] for each in runs}), 1 if runs else 0, name)

    def test_default_sharing(self):
        """Fair shares wherever something is switched; one message after the other on a ring. Every
        summary, JSON and table says which, and how collectives are done."""
        more = {'bandwidth': '1 GB/s', 'devices': 4}
        keys = {'ring': more, 'nvlink_switch': more, 'pcie': more, 'fat_tree': more,
                'leaf_spine': dict(more, hosts_per_leaf=2, spines=1),
                'torus': dict(more, shape=[2, 2]),
                'dragonfly': dict(more, routers=2, hosts=2, global_links=1),
                'cluster': {'node': 'nvlink_mesh', 'gpus_per_node': 4, 'devices': 8,
                            'network': {'topology': 'nvlink_switch', 'bandwidth': '1 GB/s'}}}
        listed = json.loads(run('list', 'topologies', '--json').stdout)['topologies']
        nodes = {t['name']: t.get('stands_for', {}) for t in listed}
        for name in (t['name'] for t in listed if t['name'] not in ('ideal', 'file')):
            write('s.json', dict(UNIFORM, platform={'topology': name,
                                                    **keys.get(name, {'devices': 4})},
                                 schedule={'kind': 'dp'}))
            sharing = 'fifo' if name == 'ring' else 'max_min'
            node = nodes[name].get('node', nodes[name]).get('topology', name)
            linked = node in ('nvlink_mesh', 'dgx1')
            by = 'ring_per_link' if linked else 'ring'
            done = run('check', 's.json', '--resolved')
            self.assertEqual(json.loads(done.stdout)['platform']['sharing'], sharing, name)
            self.assertIn(f'links shared by {sharing}; 1 collective by {by}, ',
                          run('run', 's.json', '--no-output').stdout)
            result = json.loads(run('run', 's.json', '--no-output', '--json').stdout)
            self.assertEqual((result['sharing'], result['collectives']['algorithms']),
                             (sharing, by))
            fifo = json.loads(run('run', 's.json', '--no-output', '--json', '-s',
                                  '/platform/sharing=' + sharing).stdout)
            self.assertEqual(fifo['hash'], result['hash'])
        write('s.json', dict(UNIFORM, platform={'topology': 'nvlink_switch', **more},
                             schedule={'kind': 'dp'}))
        text = run('sweep', 's.json', '-v', '/platform/sharing=fifo,max_min', '--table', 'main',
                   '--no-output').stdout
        self.assertRegex(
            text, r'sharing +algorithms\nfifo .* fifo +ring\nmax_min .* max_min +ring\n')
        text = run('sweep', 's.json', '-v', '/collectives/algorithm=ring,tree', '-o',
                   's.csv').stdout
        self.assertRegex(text, r'\nsharing +max_min +everywhere\n')
        self.assertRegex(text, r'\nalgorithms +ring \(1 point\), tree \(1 point\)\n')
        self.assertIn(b'max_min,tree,', read('s.csv'))
        text = run('run', 's.json', '--no-output', '-s', '/platform/sharing=phi', '-s',
                   '/platform/phi=2').stdout
        self.assertIn('links shared by phi 2; ', text)

    def test_list_of_one(self):
        text = run('list', '1f1b').stdout
        self.assertEqual(re.findall(r'^ {0,2}(\w+)', text, re.MULTILINE), ['schedules', '1f1b'])
        self.assertIn(text[text.index('  1f1b:'):], run('list', 'schedules').stdout)
        listed = json.loads(run('list', 'dp', '--json').stdout)
        self.assertEqual([(key, [e['name'] for e in of]) for key, of in listed.items()
                          if not key.endswith('_version')],
                         [('schedules', ['dp']), ('terms', ['dp'])])

    def test_list_of_formulas(self):
        """Of each closed form its figure is said, and whether it is a comparison only."""
        self.assertIn('closed form of the makespan: (M + P - 1)(f + b)',
                      run('list', 'gpipe').stdout)
        self.assertIn('closed form of the version difference (for comparison only): '
                      'floor((W + N - 2) / N)', run('list', 'nf1b').stdout)
        (nf1b,) = json.loads(run('list', 'nf1b', '--json').stdout)['schedules']
        self.assertEqual([(f['figure'], f['comparison']) for f in nf1b['closed_forms']],
                         [('version_difference', True), ('version_difference', False),
                          ('version_difference', False), ('iteration_time_s', False)])

    def test_comparisons(self):
        """TiMePReSt's formula, 3 at W = 6 and N = 2 where the difference is 2, applies and is not
        promised: in the run's summary and JSON, and in a sweep over W = 4 and 6."""
        scenario = os.path.join(SCENARIOS, 'timeprest.json')
        words = (scenario, '--no-output', '-s', '/iterations=96')
        text = run('run', *words, '-s', '/schedule/workers=6').stdout
        self.assertRegex(text, r'floor\(\(W \+ N - 2\) / N\)\n +stated for')
        result = json.loads(run('run', *words, '--json', '-s', '/schedule/workers=6').stdout)
        self.assertEqual([(f['closed_form'], f['applies'], f['promised'])
                          for f in result['closed_forms'] if f['figure'] == 'version_difference'],
                         [(3, True, False), (2, True, True)])
        sweep = ('sweep', *words, '--vary', '/schedule/workers=4,6')
        self.assertIn('version_difference: closed form equal at 1 of 2 points (nowhere promised); ',
                      run(*sweep).stdout)
        forms = json.loads(run(*sweep, '--json').stdout)['closed_forms']
        self.assertEqual([(forms[key]['applies'], forms[key]['promised'],
                           forms[key]['equal_where_it_is_promised'])
                          for key in ('version_difference', 'version_difference (closed form 2)')],
                         [(2, 0, 0), (2, 2, 2)])
        self.expect(run('sweep', scenario, *words[2:], '--vary', '/schedule/workers=4,6',
                        '-o', 'forms.csv'), 0)
        with open('forms.csv', encoding='utf-8') as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([[float(row[f'{word}_version_difference']) for row in rows] for word in
                          ('applies', 'promised', 'promised2')], [[1, 1], [0, 0], [1, 1]])

    def test_memory_of_the_device(self):
        """A V100 of 16 GiB: the driver reports 15.78 GiB. A context takes 300 MB and a communicator
        344 MB. A stated memory is the capacity."""
        write('named.json',
              dict(UNIFORM, runtime='ideal',
                   model={'name': 'vgg16', 'device': 'v100', 'batch_size': 64},
                                 platform={'topology': 'ideal', 'devices': 4}))
        for words, bytes_ in (([], 16299645983), (['-s', '/platform/memory=8 GB'], 8e9),
                              (['-s', '/platform/memory=unlimited'], None)):
            result = json.loads(run('run', 'named.json', '--no-output', '--json', *words).stdout)
            self.assertEqual([d['capacity_bytes'] for d in result['devices']], [bytes_] * 4)
        resolved = json.loads(run('check', 'named.json', '--resolved').stdout)
        self.assertEqual(resolved['platform']['memory'], 16943645983)
        self.assertEqual(resolved['platform']['reserve'], 644000000)

    def test_devices_of_a_file(self):
        """A topology from a file has as many devices as the file, for pipelines of named models."""
        self.expect(run('export', 'topology', 'dgx1', '-o', 'eight.json'), 0)
        write('named.json',
              dict(UNIFORM, runtime='ideal',
                   model={'name': 'vgg16', 'device': 'v100', 'batch_size': 64},
                                 platform={'topology': 'file', 'file': 'eight.json'}))
        for schedule in ('{"kind": "1f1b", "micro_batches": 8}', '{"kind": "dp"}'):
            result = json.loads(run('run', 'named.json', '--no-output', '--json', '-s',
                                    '/schedule=' + schedule).stdout)
            self.assertEqual(len(result['devices']), 8)

    def test_large_times_and_sizes(self):
        """A resolved scenario keeps times exact to the picosecond and sizes to the byte, also if a
        double in seconds (from 8192 s on) or in bytes (from 2^53 on) cannot hold them: the values,
        the hash and the text of a second resolution are the same."""
        draw = random.Random(5)
        limits = (2**53, 8192 * 10**12, 4096 * 10**12, 2**56)

        def whole(unit):
            near = draw.choice(limits) + draw.randrange(-9, 10)
            return f'{draw.choice([near, draw.randrange(1, 2**57)])} {unit}'

        for kind in ('sequential', 'gpipe', '1f1b', 'periodic') * 5:
            layers = [{'name': f'l{i}', 'forward': whole('ps'), 'backward_input': whole('ps'),
                       'backward_weight': whole('ps'), 'update': whole('ps'), 'kept': whole('B'),
                       'output': draw.randrange(10**6), 'weights': whole('B')} for i in range(4)]
            document = {'schema_version': 1, 'name': 'large', 'model': {'inline': {
                'schema_version': 1, 'name': 'm', 'batch_size': 0, 'input': 0, 'layers': layers,
                'provenance': {'source': 'made', 'hardware': 'none', 'date': '2026-01-01'}}},
                'platform': {'topology': 'ideal', 'devices': 2, 'memory': whole('B')},
                'schedule': {'kind': kind}}
            if kind != 'sequential':
                document['schedule']['micro_batches'] = 2
            if kind == 'periodic':
                document['schedule']['partition'] = {'planner': 'pipedream'}
                document['platform']['memory'] = 'unlimited'
            write('large.json', document)
            done = run('check', 'large.json', '--resolved')
            self.assertEqual(done.returncode, 0, done.stderr)
            write('again.json', done.stdout)
            for given, read_back in zip(layers,
                                        json.loads(done.stdout)['model']['inline']['layers']):
                for key, value in given.items():
                    if isinstance(value, str) and isinstance(read_back[key], str):
                        self.assertEqual(read_back[key], value)
                    elif key == 'forward':  # a number where that is exact: 17 digits tell
                        self.assertEqual(round(fractions.Fraction(read_back[key]) * 10**12),
                                         int(value.split()[0]))
            self.assertEqual(run('check', 'again.json', '--resolved').stdout, done.stdout)
            hashes = [json.loads(run('run', name, '--no-output', '--json').stdout)['hash']
                      for name in ('large.json', 'again.json')]
            self.assertEqual(hashes[0], hashes[1], document)

    def test_planners(self):
        """Two layers that do not fit one device, on up to three, with a slow link between them."""
        write('chain.json', dict(UNIFORM, model={'uniform': {
            'layers': 2, 'forward': '1 s', 'backward': '2 s', 'weights': '1 GB',
            'activation': '1 GB'}}, platform={'topology': 'nvlink_switch', 'devices': 2,
                                              'bandwidth': '1 GB/s', 'memory': '8 GB'}))
        quiet = ['--log-level', 'warning']
        rows = [('-P', 'all'), ('-P', 'pipedream'), ('-P', 'pipedream_replicated'),
                ('-P', 'pipedream', '-P', 'balanced', '-p', 'memory_rule=all', '-p', 'kept=literal',
                 '-s', '/platform/devices=3'),
                ('-P', 'balanced,pipedream', '-s', '/platform/memory=6 GB'),
                ('-P', 'pipedream', '-s', '/platform/memory=6 GB'),
                ('-P', 'pipedream', '-s', '/platform/speed=[1, 2]'),
                ('-P', 'pipedream', '-s', '/platform/bandwidth=0'),
                ('-P', 'pipedraem'), ('-P', ''), ('-p', 'kept=full'), ('--draw', 'x.svg'),
                ('-P', 'pipedream_replicated', '--draw', 'x.svg'),
                ('-P', 'pipedream', '-p', 'kept'), ('-P', 'pipedream', '-p', 'memory_rul=all'),
                ('-P', 'pipedream', '-p', 'kept=some'),
                ('-P', 'pipedream_replicated', '-p', 'machine=4'), ('-P', 'pipedream,alll'),
                ('-P', 'all', '-s', '/platform/devices=0',
                 '-s', '/schedule={"kind": "periodic", "micro_batches": 4}')]
        self.expect_golden('planners', ''.join(
            shown('plan', 'chain.json', *row, *quiet) for row in rows))
        self.expect_files('chain.json')
        done = run('plan', 'chain.json', '-P', 'pipedream', '-o', 'plan.json', '--draw', 'x.svg')
        self.expect(done, 0)
        self.assertTrue(read('x.svg').startswith(b'<?xml'))
        words = ['-s', '/schedule={"kind": "periodic", "micro_batches": 4, "partition": '
                 '{"file": "plan.json"}}', '-s', '/iterations=4']
        result = json.loads(run('run', 'chain.json', '--json', '--no-output', *words).stdout)
        self.assertEqual([d['peak_memory_bytes'] for d in result['devices']], [8e9, 6e9])

    def test_no_plan(self):
        """Where no planner finds a plan, the JSON says why each one did not."""
        done = run('plan', 'tiny.json', '--json', '-P', 'pipedream,contiguous_optimal', '-s',
                   '/platform={"topology": "ideal", "devices": 2, "memory": 1}')
        self.expect(done, 4, 'contiguous_optimal: ')
        result = json.loads(done.stdout)
        self.assertEqual([p['planner'] for p in result['planners']],
                         ['pipedream', 'contiguous_optimal'])
        for planner in result['planners']:
            self.assertIn(planner['error'], done.stderr)
        self.assertEqual(result['schedule'], 'periodic')
        self.assertEqual(result['scenario_schedule'],
                         json.loads(read('tiny.json'))['schedule']['kind'])

    def test_several_stages_on_a_device(self):
        """Four layers of 3 s, the first and the last on device 0, the others on device 1, memory
        for all: no period is below the load of 6 s, and the integer program finds one. Other
        schedules take a stage per device, and count them right."""
        stages = [{'first_layer': a, 'last_layer': b, 'devices': [d]}
                  for a, b, d in ((0, 0, 0), (1, 2, 1), (3, 3, 0))]
        partition = {'inline': {'schema_version': 1, 'model': 'uniform', 'stages': stages}}
        write('parts.json', dict(UNIFORM, model={'uniform': {
            'layers': 4, 'forward': '1 s', 'backward': '2 s', 'weights': '1 GB',
            'activation': '1 GB'}}, iterations=4, schedule={
                'kind': 'periodic', 'micro_batches': 8, 'partition': partition},
            platform={'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s',
                      'memory': '40 GB'}))
        result = json.loads(run('run', 'parts.json', '--json', '--no-output').stdout)
        self.assertAlmostEqual(result['iteration_time_s'], 8 * 6, 9)
        resolved = json.loads(run('check', 'parts.json', '--resolved').stdout)
        self.assertIn('pattern', resolved['schedule']['partition']['inline'])
        # weights 3 times 2 GB, a buffer of 2 GB at each of two boundaries, and 2 GB of activations
        self.expect(run('run', 'parts.json', '--no-output', '-s', '/platform/memory=8 GB'), 4,
                    'device 0 needs 12000000000 bytes with one active micro-batch, and has '
                    '8000000000')
        self.expect(run('run', 'parts.json', '--no-output', '-s', '/schedule/kind=gpipe'), 3,
                    '(got 3 stages on 2 devices; with several on a device, only "periodic" runs')

    def test_plan_graph(self):
        """a feeds b and c, and these feed d; each takes 10 ms and makes 1 MB, d has 100 MB of
        weights. Two replicas take (40 + 4 * 100 / 2) / 2 ms, two stages 20 ms, the message of a and
        b 2 * 2 ms. The five prefixes are a, ab, ac, abc and abcd; ab is the first that makes 20
        ms."""
        node = ('node%d -- Work -- forward_compute_time=4, backward_compute_time=6, '
                'activation_size=1e6, parameter_size=%d')
        write('graph.txt', '\n'.join([node % (i, 1e8 if i == 4 else 0) for i in (1, 2, 3, 4)] +
                                     [f'\tnode{a} -- node{b}' for a, b in
                                      ((1, 2), (1, 3), (2, 4), (3, 4))]) + '\n')
        devices = ('--devices', '2', '--bandwidth', '1 GB/s')
        done = run('plan', 'graph.txt', *devices, '--json')
        self.expect(done, 0)
        result = json.loads(done.stdout)
        self.assertEqual((result['cuts'], result['period_s']), (5, 0.02))
        self.assertEqual([(s['first_cut'], s['end_cut'], s['devices'], s['nodes'], s['time_s'],
                           s['weight_bytes'], s['crossing_bytes']) for s in result['stages']],
                         [(0, 2, [0], ['node1', 'node2'], 0.02, 0, 2e6),
                          (2, 5, [1], ['node3', 'node4'], 0.02, 1e8, 0)])
        self.assertIn('20 ms', run('plan', 'graph.txt', *devices).stdout)
        for words, said in (((), 'needs --devices and --bandwidth'),
                            (('-P', 'all'), 'needs --devices and --bandwidth'),
                            ((*devices[:2],), 'needs --bandwidth'),
                            (('--devices', '0', *devices[2:]), 'whole numbers from 1'),
                            ((*devices[:3], '1 GB'), '--bandwidth: '),
                            (('--devices', '2,2', *devices[2:]), 'a value for each level'),
                            ((*devices, '--memory', '0 GB'), '--memory must be > 0'),
                            ((*devices, '-P', 'best'), '--planner requires a scenario'),
                            (('--memory', '1 GB'), '--memory requires --devices')):
            self.expect(run('plan', 'graph.txt', *words), 2, said)

    def test_planned_peaks(self):
        """What a plan says of memory, workspace and all, is what its run finds."""
        write('workspace.json', {
            'schema_version': 1, 'runtime': 'ideal',
            'model': {'name': 'resnet50', 'device': 'v100', 'batch_size': 64},
            'platform': {'topology': 'nvlink_mesh', 'devices': 3, 'memory': '6 GB'},
            'schedule': {'kind': 'periodic', 'micro_batches': 8, 'partition': 'contiguous_optimal'},
            'iterations': 4})
        planned = json.loads(run('plan', 'workspace.json', '--json', '-P',
                                 'contiguous_optimal').stdout)['planners'][0]
        simulated = json.loads(run('run', 'workspace.json', '--json', '--no-output').stdout)
        self.assertEqual([d['peak_memory_bytes'] for d in planned['devices']],
                         [d['peak_memory_bytes'] for d in simulated['devices']])
        self.assertAlmostEqual(8 * planned['period_s'], simulated['iteration_time_s'], 12)

    def test_partition_by_planner(self):
        write('chain.json', dict(UNIFORM, platform={
            'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s', 'memory': '9 GB'}))
        periodic = {'kind': 'periodic', 'micro_batches': 12}
        wrong = [('"pipedraem"', 'gpipe'), ('{"planner": 1}', 'gpipe'), ('"pipedream"', 'gpipe'),
                 ('{"planner": "balanced", "kept": "full"}', 'periodic'),
                 ('{"planner": "pipedream", "memory_rul": "all"}', 'gpipe'), ('"pipedream"', 'dp'),
                 ('"pipedream"', 'interleaved_1f1b'), ('3', 'gpipe')]
        text = ''
        for partition, kind in wrong:
            schedule = {'kind': kind, 'partition': json.loads(partition)}
            if kind != 'dp':
                schedule['micro_batches'] = 12
            if kind == 'interleaved_1f1b':
                schedule['stages_per_device'] = 2
            text += shown('check', 'chain.json', '-s', '/schedule=' + json.dumps(schedule))
        self.expect_golden('partition-by-planner', text)
        for name in ('balanced', 'pipedream', 'contiguous_optimal'):
            words = ['-s', '/platform/memory=20 GB', '-s',
                     '/schedule=' + json.dumps(dict(periodic, partition={'planner': name}))]
            self.expect(run('run', 'chain.json', '--no-output', *words), 0)
            resolved = run('check', 'chain.json', '--resolved', *words).stdout
            planned = json.loads(resolved)['schedule']['partition']['inline']
            self.assertIn('pattern', planned)

    def test_stages_of_replicas(self):
        """Two replicas of each stage: two pipelines side by side. Without messages that is (M + P -
        1) (f + b) of a pipeline's M micro-batches, which the kinds of replicas count differently;
        and a summed gradient costs nothing on the ideal platform."""
        layer = {'forward': '1 s', 'backward': '2 s', 'weights': 4, 'output': '1 GB'}
        model = {'schema_version': 1, 'name': 'four', 'batch_size': 1,
                 'layers': [dict(layer, name=name) for name in 'abcd'],
                 'provenance': {'source': 'a test', 'hardware': 'none', 'date': '2026-11-21'}}
        document = {'schema_version': 1, 'model': {'inline': model, 'batch_size': 16},
                    'platform': {'topology': 'ideal', 'devices': 8},
                    'schedule': {'kind': '1f1b'}}
        for stages, time in ((4, 1), (2, 2)):
            replicas = 8 // stages
            for kind, per_pipeline, micros in (('all_reduce', 4, 4),
                                               ('round_robin', 4, 4 * replicas)):
                with self.subTest(stages=stages, kind=kind):
                    document['schedule'] = {
                        'kind': '1f1b', 'micro_batches': micros, 'replicas': kind,
                        'partition': {'planner': 'balanced', 'stages': stages}}
                    write('s.json', document)
                    result = json.loads(run('run', 's.json', '--no-output', '--json').stdout)
                    samples = 16 / replicas / per_pipeline  # of a micro-batch on one device
                    self.assertAlmostEqual(result['iteration_time_s'],
                                           (per_pipeline + stages - 1) * 3 * time * samples, 9)
                    self.assertEqual([w['device'] // replicas for w in result['weights']],
                                     [w['stage'] for w in result['weights']])
                    write('resolved.json', run('check', 's.json', '--resolved').stdout)
                    again = json.loads(run('run', 'resolved.json', '--no-output', '--json').stdout)
                    self.assertEqual(again['hash'], result['hash'])
        partition = '/schedule/partition={"planner": "balanced", "stages": %d}'
        for sets, said in (([partition % 3],
                            'stages: must divide the number of devices, 8, so that all have '
                            'equally many replicas (got 3)'),
                           ([partition % 8], 'stages: must be at most 4, the number of layers'),
                           (['/schedule/kind=gpipe', partition % 4], 'unknown key "replicas"'),
                           (['/schedule={"kind": "gpipe", "micro_batches": 4}', partition % 4],
                            '"gpipe", which has no replicas')):
            self.expect(run('run', 's.json', '--no-output',
                            *[word for s in sets for word in ('-s', s)]), 3, said)

    def test_periodic_place(self):
        """Too few micro-batches for a pattern are reported once, with the file and the place: where
        A are active at once there must be A - 1."""
        path = os.path.join(SCENARIOS, 'periodic.json')
        for command in (('check',), ('run', '--no-output')):
            done = run(*command, path, '-s', '/schedule/micro_batches=1')
            self.expect(done, 3, f'{path}: /schedule: micro_batches must be at least 4, for 5 are')
            self.assertEqual(done.stderr.count('\n'), 1, done.stderr)

    def test_gradients(self):
        """Gradients in float32 of bf16 weights have twice the weights' bytes, in memory and on the
        way; without messages a step is longer by the additional bytes of an update, 2 of 28 bytes
        with Adam where reading decides. Of fp32 weights nothing changes."""
        model = {'name': 'vit_b16', 'batch_size': 4, 'device': 'a100', 'precision': 'bf16',
                 'optimizer': 'adam'}
        link = {'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s'}
        for schedule in ({'kind': 'dp'}, {'kind': 'dp', 'bucket': '25 MB'},
                         {'kind': '1f1b', 'micro_batches': 1,
                          'partition': {'planner': 'balanced', 'stages': 1}},
                         {'kind': 'cdp_dp', 'micro_batches': 2}):
            sums, held, tasks = [], [], []
            for gradients in ('weights', 'fp32'):
                write('s.json', {'schema_version': 1, 'runtime': 'ideal',
                                 'model': dict(model, gradients=gradients),
                                 'platform': link, 'schedule': schedule})
                result = json.loads(run('run', 's.json', '--no-output', '--json').stdout)
                sums.append(sum(at['carried_bytes'] for at in result['links']))
                held.append([d['category_peak_bytes'] for d in result['devices']])
                tasks.append(result['tasks'])
            self.assertEqual(sums[1], 2 * sums[0], schedule)
            for as_weights, as_floats in zip(*held):
                self.assertEqual(as_weights['gradients'], as_weights['weights'])
                self.assertEqual(as_floats['gradients'], 2 * as_weights['weights'])
                self.assertEqual({**as_floats, 'gradients': 0}, {**as_weights, 'gradients': 0})
        ideal = ['-s', '/platform={"topology": "ideal", "devices": 2}', '-s',
                 '/schedule={"kind": "dp"}']
        updates = []
        for sets in (['/model/gradients=weights'], ['/model/gradients=fp32'],
                     ['/model/gradients=weights', '/model/precision=fp32'],
                     ['/model/gradients=fp32', '/model/precision=fp32']):
            words = ideal + [word for s in sets for word in ('-s', s)]
            result = json.loads(run('run', 's.json', '--no-output', '--json', *words).stdout)
            updates.append(result['devices'][0]['compute_s']['update'])
        launch = updates[0] - (updates[1] - updates[0]) * 14  # what is not reading and writing
        self.assertTrue(0 < launch < 0.2 * updates[0], updates)
        self.assertEqual(updates[2], updates[3])

    def test_storage(self):
        """Of P parameters in bf16 with Adam: a main weight of 4 bytes and two states of 4, 2 or 1;
        without a main weight, the states alone. A shorter update has read and written less."""
        parameters = 138357544  # of VGG-16
        write('s.json', {'schema_version': 1, 'runtime': 'ideal',
                         'model': {'name': 'vgg16', 'device': 'a100',
                                                        'precision': 'bf16',
                                                        'batch_size': 4, 'optimizer': 'adam'},
                         'platform': 'ideal',
                         'schedule': {'kind': 'sequential', 'micro_batches': 1}})
        updates = []
        for states, main, each in (('fp32', 'fp32', 12), ('bf16', 'fp32', 8), ('fp8', 'fp32', 6),
                                   ('fp32', 'none', 8), ('bf16', 'none', 4)):
            done = json.loads(run('run', 's.json', '--no-output', '--json', '-s',
                                  f'/model/states={states}', '-s',
                                  f'/model/main_weights={main}').stdout)
            device = done['devices'][0]
            self.assertEqual(device['at_peak_bytes']['optimizer_states'], each * parameters)
            self.assertEqual(device['at_peak_bytes']['weights'], 2 * parameters)
            updates.append(device['compute_s']['update'])
        # 28, 20, 16, 22 and 14 bytes a parameter move: 2 of gradient; 8 + 2, or 4 of weights;
        # states twice. Each of 40 layers is rounded to a picosecond, so that a sum is off by 20 ps
        # at most.
        per_byte = (updates[0] - updates[1]) / 8
        for moved, update in zip((28, 20, 16, 22, 14), updates):
            self.assertAlmostEqual(update, updates[0] - (28 - moved) * per_byte, delta=100e-12)
        self.expect(run('run', 's.json', '-s', '/model/states=fp16'), 3, 'known: fp32, bf16, fp8')

    def test_reserve(self):
        """A device that needs its whole memory has none to set aside; with a byte more it is out of
        memory, and a planner has as much less."""
        write('s.json', dict(UNIFORM, platform={'topology': 'ideal', 'devices': 4}))
        result = json.loads(run('run', 's.json', '--no-output', '--json').stdout)
        most = max(d['peak_memory_bytes'] for d in result['devices'])
        for aside, full in ((0, False), (1000, False), (1001, True)):
            words = ['-s', f'/platform/memory={most + 1000}', '-s', f'/platform/reserve={aside}']
            done = json.loads(run('run', 's.json', '--no-output', '--json', *words).stdout)
            self.assertEqual(done['out_of_memory'], full, aside)
            self.assertEqual([(d['capacity_bytes'], d['reserved_bytes']) for d in done['devices']],
                             [(most + 1000 - aside, aside)] * 4)
        planned = run('plan', 's.json', '-P', 'balanced', '-s', '/platform/memory=40 GB', '-s',
                      '/platform/reserve=[0, 1, 1, "10 GB"]')
        self.assertIn('memory 30 GB', planned.stdout)
        for sets, said in ((('/platform/reserve=1',), 'must be 0 for device 0, whose memory is'),
                           (('/platform/memory=5', '/platform/reserve=5'),
                            'must leave device 0 some'),
                           (('/platform/reserve=-1',), 'must be >= 0'),
                           (('/platform/reserve=[1]',),
                            'must have one entry for each of 4 devices')):
            self.expect(run('run', 's.json', '--no-output',
                            *[word for s in sets for word in ('-s', s)]),
                        3, said)

    def test_one_step_of_data_parallelism(self):
        """A step of data parallelism by two names: replicas of the whole model, and a pipeline of
        one stage whose replicas share each micro-batch. A device computes the same samples at once,
        and on links that take no time all else is equal. The planner that makes the second one
        promises what its forward, backward and update take."""
        model = {'name': 'vgg16', 'batch_size': 64, 'device': 'v100', 'parameters': {'image': 32}}
        document = {'schema_version': 1, 'runtime': 'ideal', 'model': model,
                    'platform': {'topology': 'ideal', 'devices': 8}}
        for micros in (1, 4):
            results = []
            for schedule in ({'kind': 'dp'}, {'kind': '1f1b', 'replicas': 'all_reduce',
                                              'partition': {'planner': 'balanced', 'stages': 1}}):
                write('s.json', dict(document, schedule=dict(schedule, micro_batches=micros)))
                result = json.loads(run('run', 's.json', '--no-output', '--json').stdout)
                results.append([result['iteration_time_s'], result['throughput_samples_per_s'],
                                [d['peak_memory_bytes'] for d in result['devices']]])
            self.assertEqual(results[0], results[1], f'{micros} micro-batches')
            if micros == 1:
                plan = json.loads(run('plan', 's.json', '-P', 'balanced', '-p', 'stages=1', '-p',
                                      'count_update=true', '--json').stdout)
                self.assertEqual(plan['planners'][0]['promised_period_s'], results[0][0])
        self.expect(run('plan', 's.json', '-s', '/platform/devices=6', '-P', 'balanced', '-p',
                        'stages=2'), 3, 'the samples of a micro-batch do not divide into 3 equal')
        self.expect(run('plan', 's.json', '-P', 'pipedream_replicated', '-p', 'machine=2'), 3,
                    'machine: must be 1 where replicas share a micro-batch')
        self.expect(run('plan', 's.json', '-s', '/schedule/replicas=round_robin', '-P',
                        'pipedream_replicated', '-p', 'machine=2'), 0)

    def test_errors(self):
        write('wrong.json', {'schema_version': 2, 'model': {}, 'platform': 'idea',
                             'schedule': {'kind': 'gpipe', 'micro_batchs': 1}})
        write('cut.json', '{"schema_version": 1,\n "name": ')
        rows = [(), ('--hlep',), ('runn',), ('run',), ('run', 'a.json', 'b.json'),
                ('run', 'tiny.json', '--outptu', 'x'), ('run', 'tiny.json', '-z'),
                ('run', 'tiny.json', '-zjson'), ('run', 'tiny.json', '--json=1'),
                ('run', 'tiny.json', '-o'), ('run', 'tiny.json', '--output'),
                ('run', 'tiny.json', '-o', 'x', '--no-output'), ('run', 'tiny.json', '-o', '-'),
                ('run', 'tiny.json', '-o', '.'), ('run', 'tiny.json', '-o', 'no/x.h5'),
                ('run', 'tiny.json', '--set', 'name'), ('run', 'tiny.json', '--set', '/name'),
                ('run', 'tiny.json', '--set', '/nam/e=1'), ('run', 'tiny.json', '--set', '/nam=1'),
                ('run', 'tiny.json', '--log-level', 'loud'), ('check', 'none.json'), ('check', '.'),
                ('check', 'cut.json'), ('check', 'wrong.json'), ('list', 'scheduls'),
                ('help', 'rnu'), ('import', 'pipedraem', 'x'), ('completion', 'zhs'),
                ('plot', 'none.h5', '--until', '-1 s')]
        self.expect_golden('errors', ''.join(shown(*row) for row in rows))
        self.expect_files('wrong.json', 'cut.json')

    def test_endings(self):
        """The suffix of an output selects the format: a command accepts its own suffixes only."""
        results, pictures = '.h5 or .hdf5', '.svg, .png or .pdf'
        printed = '.json, or be - for standard output'
        sweep = 'sweep', 'tiny.json', '-v', '/schedule/micro_batches=1,2'
        for words, name, endings in (
                (('run', 'tiny.json'), 'x.txt', results), (('run', 'tiny.json'), 'h5', results),
                (('run', 'tiny.json'), 'x.h5.gz', results), (('run', 'tiny.json'), 'x', results),
                (('run', 'tiny.json', '--json'), 'x.json', results),
                (sweep, 'x.txt', '.h5, .hdf5 or .csv'), (sweep, '-', '.h5, .hdf5 or .csv'),
                (('replay', 'tiny.json'), 'x.txt', results),
                (('plan', 'tiny.json'), 'x.h5', printed),
                (('plan', 'tiny.json', '-P', 'balanced'), 'x.csv', printed),
                (('model', 'vgg16', '-d', 'v100', '-b', '8'), 'x.h5', printed),
                (('import', 'pipedream', 'none.txt'), 'x.csv', printed),
                (('import', 'nccl-tests', 'none.txt'), 'x.txt', printed),
                (('calibrate', 'compute', '--model', 'vgg16'), 'x.h5', '.json'),
                (('calibrate', 'compute', '--model', 'vgg16'), '-', '.json'),
                (('export', 'topology', 'dgx-a100'), 'x.txt',
                 '.json, .dot, .svg, .png or .pdf, or be - for standard output'),
                (('export', 'trace', 'none.h5'), 'x.svg',
                 '.json, .json.gz, .pftrace or .pftrace.gz, or be - for standard output'),
                (('compare', 'none.h5', 'none.h5'), 'x.jpg', pictures)):
            self.expect(run(*words, '-o', name), 2,
                        '%s: --output %s: must end in %s\n' % (words[0], name, endings))
        self.expect(run('plan', 'tiny.json', '-P', 'balanced', '--draw', 'x.jpg'), 2,
                    'plan: --draw x.jpg: must end in %s\n' % pictures)
        self.expect(run('plot', 'none.h5', '-o', 'x.jpg'), 2,
                    'x.jpg: the name must end in ' + pictures)
        self.expect_files()
        for words, names in ((('run', 'tiny.json'), ('a.h5', 'b.hdf5', 'c.H5')),
                             (sweep, ('d.h5', 'e.hdf5')), (('plan', 'tiny.json'), ('f.json',))):
            for name in names:
                self.expect(run(*words, '-o', name), 0)
        self.expect(run(*sweep, '-o', 'g.CSV'), 0)
        self.assertIn(b'/schedule/micro_batches', read('g.CSV'))
        self.expect_files('a.h5', 'b.hdf5', 'c.H5', 'd.h5', 'e.hdf5', 'f.json', 'g.CSV')


class Terms(Case):
    """Words of the field, facts/terms.json: found wherever names are looked up, and what the
    program says about them is so."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(ROOT, 'facts', 'terms.json'), encoding='utf-8') as file:
            self.terms = json.load(file)['terms']
        write('named.json', {'schema_version': 1, 'runtime': 'ideal', 'model': {
            'name': 'mixtral', 'device': 'h100', 'precision': 'bf16', 'batch_size': 64,
            'granularity': 'block', 'parameters': {'layers': 4}},
            'platform': {'topology': 'dgx-h100', 'devices': 16},
            'schedule': {'kind': 'sequential'}})

    def test_every_word(self):
        for term in self.terms:
            for word in (*term['words'], term['words'][0].upper().replace('_', '-')):
                done = run('help', word)
                self.assertEqual(done.returncode, 0, word)
                self.assertIn(term['text'], ' '.join(done.stdout.split()), word)
        words = [word for term in self.terms for word in term['words']]
        self.assertEqual(len(words), len(set(words)))
        for words in (['fsdp'], ['terms', 'hsdp'], ['global', 'batch'], ['selective']):
            self.assertEqual(run('list', *words).returncode, 0, words)

    def test_meanings(self):
        """Every meaning of a term exists, and looking up its words in that section finds it."""
        listed = json.loads(run('list', '--json').stdout)
        names = {part: {entry['name'] for entry in entries}
                 for part, entries in listed.items() if isinstance(entries, list)}
        names['plots'] = {'timeline', 'lines', 'memory'}
        names['precisions'] = {'fp32', 'fp16', 'bf16', 'fp8'}
        names['optimizers'] = {'adam'}
        keys = {entry['name']: {p['name'] for p in entry['parameters']}
                for part in ('sections', 'schedules', 'models') for entry in listed[part]}
        of_models = set().union(*(keys[e['name']] for e in listed['models']))
        of_schedules = set().union(*(keys[e['name']] for e in listed['schedules']))
        for meaning in (meaning for term in self.terms for meaning in term['means']):
            *parts, last = meaning.split(': ')[0].split('/')
            if parts and parts[0]:
                self.assertIn(last, names[parts[0]], meaning)
            elif parts == ['']:
                self.assertIn(last, keys['scenario'], meaning)
            else:
                known = {'model': of_models, 'schedule': of_schedules | keys['schedule']}
                self.assertIn(last, known.get(parts[1]) or keys[parts[1]], meaning)

    def test_what_is_said_is_accepted(self):
        """Each JSON in the text of a term, and each value of a meaning, in a scenario."""
        tried = 0
        for term in self.terms:
            parts = re.findall(r'"(parallel|schedule|memory|runtime)": ({[^}]*}|"[^"]*")',
                               term['text'])
            parts += [('schedule', f'{{"kind": {kind}}}')
                      for kind in re.findall(r'"kind": ("\w+")', term['text'])
                      if not any(part == 'schedule' for part, _ in parts)]
            parts += [('parallel', f'{{"{m.split(": ")[0][10:]}": {m.split(": ")[1]}}}')
                      for m in term['means'] if m.startswith('/parallel/') and ': ' in m]
            for part, value in parts:
                with self.subTest(term['words'][0], part=part, value=value):
                    sets = [f'/{part}={value}']
                    if part == 'schedule':
                        sets = ['/platform/devices=2'] + [
                            f'/schedule/{key}={json.dumps(one)}' for key, one in dict(
                                {} if '"dp"' in value else {'micro_batches': 8},
                                **json.loads(value)).items()]
                    if 'cdp' in value:
                        sets[:2] = ['/platform/devices=4', '/schedule/micro_batches=4']
                    if 'sequence_parallel' in value:
                        sets = ['/parallel={"tensor": 2, "sequence_parallel": true}']
                    done = run('check', 'named.json', *(w for s in sets for w in ('-s', s)))
                    self.assertEqual(done.returncode, 0, f'{sets}: {done.stderr}')
                    tried += 1
        self.assertGreater(tried, 20)

    def test_lookups(self):
        rows = (
            (['check', 'named.json', '-s', '/schedule/kind=fsdp'], 'unknown schedule "fsdp": fully '
             'sharded data parallelism is "parallel": {"zero": 3} with "kind": "sequential"'),
            (['check', 'named.json', '-s', '/schedule/kind=tp'], '"tensor" in the section'),
            (['check', 'named.json', '-s', '/fsdp=1'], 'unknown key "fsdp": fully sharded'),
            (['check', 'named.json', '-s', '/parallel={"fsdp": 1}'],
             'unknown key "fsdp"; did you mean "zero": 3?'),
            (['check', 'named.json', '-s', '/parallel={"cp": 2}'], 'did you mean "context"?'),
            (['check', 'named.json', '-s', '/schedule/gas=2'], 'did you mean "micro_batches"?'),
            (['check', 'named.json', '-s', '/schedule/mbs=2'], 'batch_size / (data * micro_'),
            (['check', 'named.json', '-s', '/model/gbs=2'], 'did you mean "batch_size"?'),
            (['check', 'named.json', '-s', '/model/selective=true'], '"recompute_operators"?'),
            (['check', 'named.json', '-s', '/runtime=megatron'], 'did you mean "megatron-core"?'),
            (['check', 'named.json', '-s', 'tp=2'], 'like /parallel/tensor=8 (got "tp=2")'),
            (['check', 'named.json', '--fsdp'], 'unknown option "fsdp": fully sharded'),
            (['sweep', 'named.json', '--vary', 'tp=1,2'], 'like /parallel/tensor (got "tp")'),
            (['sweep', 'named.json', '--vary', '/parallel/tp=1,2'], 'did you mean "tensor"?'),
            (['sweep', 'named.json', '--vary', '/parallel/tensor=1,2', '--no-output', '--table',
              'mfu'], 'did you mean "model_flop_utilisation_fraction"?'),
            (['plot', 'named.json', '--kind', 'gantt'], 'did you mean "timeline"?'),
            (['plot', 'named.json', '--kind', 'mfu'], 'is the metric model_flop_utilisation'),
            (['list', 'schedules', 'ddp'], 'unknown "ddp": data parallelism is'),
            (['export', 'topology', 'fsdp'], 'fully sharded'),
        )
        for words, message in rows:
            done = run(*words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(message, done.stderr, words)
            self.assertNotIn('cdp', done.stderr.split('known:')[0], words)


class Remedies(Case):
    """What an error proposes, "; use 4 or 8, or /platform/devices=32", is accepted as it stands."""

    def remedies(self, line):
        """Yields (pointer, value) of each remedy in an error message."""
        found = re.search(r'\.json: (/\S*): .*; use (.*)$', line)
        parts = re.split(r', or (?=/)', found[2]) if found else []
        for part in parts:
            pointer, equals, values = part.partition('=') if part[0] == '/' else ('', '', part)
            for value in values.split(' or '):
                yield (pointer if equals else found[1]), value

    def test_all_are_accepted(self):
        llama = {'schema_version': 1, 'runtime': 'ideal', 'model': {
            'name': 'llama', 'device': 'h100', 'precision': 'bf16', 'granularity': 'block',
            'batch_size': 64, 'parameters': {'layers': 8}},
            'platform': {'topology': 'dgx-h100', 'devices': 16},
            'schedule': {'kind': 'sequential', 'micro_batches': 1}, 'parallel': {'zero': 1}}
        pipeline = '/schedule={"kind": "1f1b", "micro_batches": 8}'
        moe = '/model/name=mixtral'
        # arguments of --set; least number of remedies, 0: none; part of the message
        rows = (
            (['/parallel/tensor=3'], 2, 'tensor 3 needs a multiple of 3 devices'),
            (['/parallel/tensor=3', '/model/batch_size=7', '/platform/devices=7'], 1, 'tensor 3'),
            (['/parallel/context=5'], 2, 'context 5'),
            ([pipeline, '/parallel/pipeline=3'], 4, 'pipeline 3'),
            ([pipeline, '/parallel/pipeline=16'], 1, 'more than the 10 layers'),
            ([pipeline, '/parallel/pipeline=4', '/parallel/data=3'], 1, 'needs 12 devices with'),
            (['/parallel/data=3'], 1, 'needs 3 devices, and the platform has 16'),
            (['/model/batch_size=100'], 2, 'must be a multiple of 16'),
            (['/schedule/micro_batches=7'], 2, 'must be a multiple of 112'),
            (['/parallel/shard=5'], 2, 'must divide the 16 data x context x space ranks'),
            (['/parallel/expert=8'], 0, '/parallel/expert: "llama" has no experts: must be 1'),
            ([moe, '/parallel/expert=32'], 1, 'must divide the 16 devices of a stage (got 32)'),
            ([moe, '/parallel/expert=3'], 2, 'must divide the 16 devices of a stage (got 3)'),
            (['/schedule={"kind": "dp"}'], 1, 'cannot be combined with the schedule "dp"'),
            (['/schedule={"kind": "cdp_v2", "micro_batches": 4}'], 1, 'cannot be combined'),
            (['/schedule={"kind": "pipedream"}', '/parallel/zero=3', '/parallel/pipeline=2',
              '/model/batch_size=16'], 1, 'must be at most 2'),
            (['/model/optimizer=muon', '/parallel/zero=3'], 2, 'must be below 2'),
            (['/parallel={"tensor": 16}', '/model/parameters/heads=12',
              '/model/parameters/hidden=1536', '/model/parameters/kv_heads=12'], 1, 'tensor'),
            (['/parallel={"context": 16}', '/model/parameters/sequence=48'], 1, 'context'),
        )
        write('llama.json', llama)
        for sets, n, message in rows:
            with self.subTest(sets):
                self.try_remedies(sets, n, message)

    def try_remedies(self, sets, n, message):
        words = [word for one in sets for word in ('-s', one)]
        done = run('check', 'llama.json', *words)
        self.expect(done, 3, message)
        proposed = list(self.remedies(done.stderr.strip()))
        self.assertEqual(len(proposed) > 0, n > 0, done.stderr)
        self.assertGreaterEqual(len(proposed), n, done.stderr)
        for pointer, value in proposed:
            again = run('check', 'llama.json', *words, '-s', f'{pointer}={value}')
            self.assertEqual(again.returncode, 0, f'{done.stderr}{pointer}={value}: '
                                                  f'{again.stderr}')


class Status(Case):
    def test_done(self):
        for words in (['--version'], ['--help'], ['-h'], ['list'], ['check', 'tiny.json'],
                      ['run', 'tiny.json', '--no-output'], ['plan', 'tiny.json'], ['man']):
            self.expect(run(*words), 0)

    def test_usage(self):
        for words in ([], ['nothing'], ['run'], ['run', '--nothing'], ['list', 'nothing']):
            self.expect(run(*words), 2, 'sim: error: ')

    def test_files_of_another_kind(self):
        """They are reported with their kind, after the place that names them, and every message has
        both."""
        named = '/model={"name": "resnet18", "batch_size": 2, "device": "%s"}'
        for change, expected in (
                (named % 'tiny.json', '/model/device: tiny.json: is a scenario; must be a device'),
                ('/platform={"topology": "file", "file": "tiny.json", "devices": 2}',
                 'tiny.json: is a scenario; must be a platform'),
                ('/costs=tiny.json', '/costs: tiny.json: is a scenario; must be a costs file'),
                ('/costs=none.json', '/costs: none.json: cannot read')):
            self.expect(run('check', 'tiny.json', '-s', change), 3, 'sim: error: tiny.json: ',
                        expected)
        write('half.json', {'name': 'half', 'peaks': {}})
        lines = run('check', 'tiny.json', '-s', named % 'half.json').stderr.splitlines()
        self.assertGreater(len(lines), 1)
        for line in lines:
            self.assertTrue(line.startswith('sim: error: tiny.json: /model/device: half.json: '),
                            line)

    def test_names_of_networks_are_no_commands_of_terminals(self):
        net = json.loads(run('model', 'vgg16', '--json').stdout)
        for change in ({'name': 'a\r\n'},
                       {'layers': [{**net['layers'][0], 'name': '\x1b[31m'}, *net['layers'][1:]]}):
            write('net.json', {**net, **change})
            done = run('model', 'net.json')
            self.expect(done, 3, '/name: must not contain control characters (got "')
            self.assertEqual(done.stdout, '')

    def test_numbers_of_options_have_bounds(self):
        for words, expected in ((['advise', 'tiny.json', '--most', '0'],
                                 'advise: --most must be at least 1 (got 0)'),
                                (['advise', 'tiny.json', '--top', '9' * 11],
                                 'whole number from 1 to 1000 (got'),
                                (['model', 'vgg16', '-b', '0'],
                                 'model: --batch must be from 1 to 1048576 (got 0)'),
                                (['model', 'vgg16', '-b', '1e9'],
                                 'must be a whole number from 1 to 1048576 (got'),
                                (['strategies', 'vgg16', '--reuse', '1e308'],
                                 'at most 1e+15 (got "1e308")'),
                                (['strategies', 'vgg16', '--dataset', '1e16'],
                                 'at most 1e+15 (got "1e16")')):
            self.expect(run(*words), 2, expected)

    def test_figures_that_fail_have_no_report(self):
        done = run('figures', '-o', '/proc/x')
        self.expect(done, 1, '/proc/x: cannot make the folder')
        self.assertEqual(done.stdout, '')

    def test_bad_input(self):
        self.expect(run('run', 'tiny.json', '-s', '/iterations=0'), 3,
                    'tiny.json: /iterations: must be from 1')
        self.expect_files()

    def test_out_of_memory(self):
        small = ['tiny.json', '--no-output', '-s', '/platform={"topology":"ideal","memory":"9 GB"}']
        self.expect(run('run', *small), 0)
        self.expect(run('run', *small, '--fail-on-oom'), 4, 'out of memory')
        self.expect(run('run', 'tiny.json', '--no-output', '--fail-on-oom'), 0)
        whole = json.loads(run('run', *small, '--json').stdout)
        self.assertTrue(whole['out_of_memory'])
        self.assertFalse(whole['stopped'])
        stopped = json.loads(run('run', *small, '--json', '--stop-on-oom').stdout)
        self.assertTrue(stopped['stopped'])
        # seven micro-batches of 1 GB in addition to weights and gradients: the eighth begins at 7 s
        self.assertEqual(stopped['makespan_s'], 7)
        self.assertIsNone(stopped['iteration_time_s'])
        # the time of a whole run does not predict a part of it
        self.assertTrue(any(form['promised'] for form in whole['closed_forms']))
        self.assertFalse(any(form['promised'] for form in stopped['closed_forms']))
        self.assertEqual(stopped['devices'][0]['out_of_memory']['time_s'], 7)
        self.expect(run('run', *small, '--json', '--stop-on-oom', '--fail-on-oom'), 4)

    def test_too_long(self):
        self.expect(run('run', 'tiny.json', '--no-output', '-s', '/model/uniform/forward=2000 h',
                        '-s', '/iterations=2'), 1, '2^63 ps')

    def test_import(self):
        write('graph.txt', 'node1 -- Conv2d(1) -- forward_compute_time=1.0\nnonsense\n')
        words = ['import', 'pipedream', '--batch', '64', '--date', '2026-11-21']
        self.assertRegex(run(*words, 'graph.txt').stderr, r'graph\.txt:[12]:')
        self.expect(run(*words, 'none.txt'), 3, 'none.txt: cannot read')
        self.expect(run(*words, 'graph.txt', '-o', 'm.json'), 3)
        self.expect(run(*words[:4], 'graph.txt'), 2, '--date is missing')
        self.expect(run(*words[:2], 'graph.txt'), 2, '--batch is missing')
        self.expect_files('graph.txt')


    def test_import_costs(self):
        """The shipped log gives the shipped costs, and is held against what it was made from."""
        log, costs = (os.path.join(ROOT, 'calib/measured', name)
                      for name in ('all-reduce-8.log', 'made-up-8.json'))
        self.expect(run('import', 'nccl-tests', log, '--date', '2026-11-21', '-o', 'c.json'), 0)
        self.assertEqual(read('c.json'), read(costs))
        first, second = json.loads(read('c.json'))['network'][0]['regimes']
        self.assertEqual(second['from_bytes'], 65536)
        for regime, alpha, rate in ((first, 20e-6, 8e9), (second, 32e-6, 133e9)):
            for key, made_from in (('alpha_s', alpha), ('beta_s_per_byte', 1 / rate)):
                self.assertLessEqual(regime[key]['low'], made_from)
                self.assertLessEqual(made_from, regime[key]['high'])
        osu = write('osu.log', '# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n'
                               '8 1.61\n1024 1.80\n65536 13.42\n1048576 190.11\n')
        how = ['import', 'osu', osu, '--date', '2026-11-21', '--hardware', 'two hosts']
        self.expect(run(*how), 3, 'osu.log:1: the log does not state whether ranks share a node')
        self.expect(run(*how, '--level', 'rack'), 2, 'unknown level "rack"')
        self.expect(run(*how[:3]), 2, '--date is missing')
        self.expect(run(*how, '--batch', '64'), 2, 'osu has no option --batch')
        self.expect(run(*how, '--level', 'node', '--merge', costs, '-o', 'both.json'), 0)
        both = json.loads(read('both.json'))
        self.assertEqual([(e['collective'], both['sources'][e['source']]['device'])
                          for e in both['network']],
                         [('all_reduce', 'Made-up GPU'), ('send', 'two hosts')])

    def test_model(self):
        write('rwkv.json', {'model_type': 'rwkv'})
        rows = [('resnet18', '--batch', '2', '-d', 'v100', '-g', 'block'), ('resnet51',),
                ('vgg16', '--image', '20'), ('resnet50', '--batch', '0'),
                ('gpt', '-p', 'heads=7'), ('vit_b16', '-p', 'head=3'), ('vgg16', '-p', 'image'),
                ('vgg16', '-d', 'v10'), ('vgg16', '-d', 'v100', '--precision', 'bf16'),
                ('vgg16', '--precision', 'fp9'), ('vgg16', '-o', 'm.json'), ('rwkv.json',),
                ('mixtral', '-p', 'layers=2', '--precision', 'bf16', '-g', 'block')]
        self.expect_golden('model', ''.join(shown('model', *row) for row in rows))
        self.expect(run('calibrate', 'compute', '--model', 'mixtral', '-o', 'c.json'), 3,
                    'sim: error: mixtral: operator layers.0.mlp.top_k (top_k) can be estimated, '
                    'but no '
                    'backend can run it\n')
        self.expect_files('rwkv.json')

    def test_model_file(self):
        """A model that is written runs; measured layers take the place of estimates."""
        words = ['model', 'resnet18', '-b', '2', '-d', 't4', '--date', '2026-11-21']
        self.expect(run(*words, '-o', 'm.json'), 0)
        model = json.loads(read('m.json'))
        self.assertEqual({layer['timing'] for layer in model['layers']}, {'estimated'})
        self.expect(run('check', 'tiny.json', '-s', '/model={"file": "m.json"}'), 0)
        measured = model['layers'][1]['name']
        model['layers'] = [dict(model['layers'][1], forward=1)]
        write('measured.json', model)
        self.expect(run(*words, '-m', 'measured.json', '-o', 'm.json'), 0)
        model = json.loads(read('m.json'))
        self.assertEqual([layer['name'] for layer in model['layers']
                          if layer['timing'] == 'measured'], [measured])
        self.assertIn('1 of 23 layers measured', model['provenance']['notes'])
        self.expect_files('m.json', 'measured.json')

    def test_import_torch(self):
        corpus = os.path.join(ROOT, 'tests', 'fuzz', 'corpus', 'torch')
        words = ['import', 'torch', '--date', '2026-11-21', '-o', 'm.json']
        done = run(*words, os.path.join(corpus, 'modules.json.gz'))
        self.expect(done, 0)
        self.assertIn('a chain of 1 modules', done.stderr)
        self.expect(run(*words, os.path.join(corpus, 'no-shapes.json')), 3, 'record_shapes=True')
        self.expect(run(*words, os.path.join(corpus, 'cut-off.gz')), 3, 'cut off')
        self.expect_files('m.json')

    def test_import_torch_times_only(self):
        """20 + 6 us forward, 30 + 10 us backward, and a run that says what it does not know."""
        trace = os.path.join(ROOT, 'tests', 'fuzz', 'corpus', 'torch', 'times-only.json')
        words = ['import', 'torch', '--date', '2026-11-21', '-o', 'm.json', trace]
        self.expect(run(*words), 3, '--times-only makes a model without sizes')
        self.expect(run(*words, '--times-only'), 3, 'give --batch')
        self.expect(run('import', 'pipedream', '--times-only', 'g.txt'), 2,
                    'has no option --times-only')
        self.expect(run(*words, '--times-only', '-b', '16'), 0,
                    'sim: warning: %s: times only' % trace)
        model = json.loads(read('m.json'))
        self.assertIs(model['times_only'], True)
        self.assertEqual([layer['backward_weight'] for layer in model['layers']], [15e-6, 0])
        write('s.json', {'schema_version': 1, 'model': {'file': 'm.json', 'batch_size': 16},
                         'platform': {'topology': 'ideal', 'devices': 2},
                         'schedule': {'kind': 'gpipe', 'micro_batches': 1}})
        said = 's.json: /model: has times only'
        done = run('run', 's.json', '--json', '--no-output')
        self.expect(done, 0, said)
        self.assertAlmostEqual(json.loads(done.stdout)['iteration_time_s'], 66e-6)
        resolved = write('r.json', run('check', 's.json', '--resolved').stdout)
        self.expect(run('run', resolved, '--no-output'), 0, 'r.json: /model: has times only')
        del model['times_only']
        write('m.json', model)
        self.assertNotIn('times only', run('run', 's.json', '--no-output').stderr)


class Output(Case):
    def test_json_is_one_object(self):
        done = run('run', 'tiny.json', '--json')
        self.expect(done, 0)
        self.assertEqual(done.stderr, '')
        result = json.loads(done.stdout)
        self.assertEqual(result['makespan_s'], 33)
        self.assertEqual(result['iteration_time_s'], 33)
        self.assertAlmostEqual(result['bubble_fraction'], 3 / 11)
        self.assertEqual([d['peak_activation_bytes'] for d in result['devices']], [8e9] * 4)
        self.expect_files('tiny.h5')

    def test_same_bytes(self):
        for name in ('a.h5', 'b.h5'):
            self.expect(run('run', 'tiny.json', '-o', name), 0)
        self.assertEqual(read('a.h5'), read('b.h5'))

    def test_plan_round_trip(self):
        model = os.path.join(ROOT, 'facts/layers/vgg16.json')
        scenario = dict(UNIFORM, model={'file': model, 'batch_size': 32}, platform={
            'topology': 'ring', 'devices': 3, 'bandwidth': '1 GB/s'})
        write('a.json', scenario)
        self.expect(run('plan', 'a.json', '-o', 'plan.json'), 0)
        scenario['schedule'] = dict(scenario['schedule'], partition={'file': 'plan.json'})
        write('b.json', scenario)
        hashes = [json.loads(run('run', name, '--no-output', '--json').stdout)['hash']
                  for name in ('a.json', 'b.json')]
        self.assertEqual(*hashes)
        resolved = write('c.json', run('check', 'b.json', '--resolved').stdout)
        os.remove('plan.json')
        self.assertEqual(json.loads(run('run', resolved, '--no-output', '--json').stdout)['hash'],
                         hashes[0])
        printed = json.loads(run('plan', 'a.json', '--json').stdout)
        self.assertEqual(json.loads(run('plan', 'a.json', '-o', '-').stdout),
                         printed['planners'][0]['plan'])

    def test_standard_output_fails(self):
        with open('/dev/full', 'w', encoding='utf-8') as full:
            for words in (['list'], ['list', '--json'], ['help'], ['man'], ['completion', 'bash'],
                          ['plan', 'tiny.json', '-o', '-'], ['check', 'tiny.json', '--graph'],
                          ['run', 'tiny.json', '--no-output'],
                          ['run', 'tiny.json', '--no-output', '--json']):
                self.expect(run(*words, stdout=full), 1, 'standard output')

    def test_standard_streams_closed(self):
        self.expect(run('run', 'tiny.json', '-o', 'a.h5'), 0)
        for fd in (0, 1, 2):
            done = subprocess.run([SIM, 'run', 'tiny.json', '-o', 'b.h5'], check=False,
                                  preexec_fn=lambda fd=fd: os.close(fd), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 1 if fd == 1 else 0)
            self.assertEqual(read('a.h5'), read('b.h5'))


class Json(Case):
    """What --json prints."""

    def test_versions(self):
        """Of every command that has the option, before all other keys."""
        version = run('--version').stdout.split()[1]
        run('run', 'tiny.json', '-o', 'a.h5')
        planned = ['-s', '/platform={"topology": "ideal", "devices": 2}']
        with open('points.json', 'w', encoding='utf-8') as file:
            json.dump(POINTS, file)
        cases = [['validate', 'points.json'], ['run', 'tiny.json', '--no-output'],
                 ['check', 'tiny.json'], ['list'],
                 ['model', 'vgg16'], ['strategies', 'vgg16'], ['plan', 'tiny.json'],
                 ['plan', 'tiny.json', '-P', 'best', *planned],
                 ['plan', 'tiny.json', '-P', 'all', *planned],
                 ['sweep', 'tiny.json', '-v', '/iterations=1,2', '--no-output'],
                 ['advise', 'tiny.json'],
                 ['osdp', os.path.join(SCENARIOS, 'osdp-gpt-8gpu.json')]]
        commands = set(re.findall(r'^  (\w+) ', run('--help').stdout, re.MULTILINE))
        have = {c for c in commands if '--json' in run('help', c).stdout}
        self.assertEqual(have - {'compare'}, {case[0] for case in cases})  # see test-replay.py
        for case in cases:
            done = run(*case, '--json')
            self.expect(done, 0)
            printed = json.loads(done.stdout)
            self.assertEqual(list(printed)[:2], ['schema_version', 'program_version'], case)
            self.assertEqual((printed['schema_version'], printed['program_version']), (1, version))

    def test_plan_in_one_shape(self):
        planned = ['-s', '/platform={"topology": "ideal", "devices": 2}']
        printed = [json.loads(run('plan', 'tiny.json', '--json', *planned, *more).stdout)
                   for more in ([], ['-P', 'best'], ['-P', 'all'])]
        for one in printed:
            self.assertEqual(one['name'], 'tiny')
            for outcome in one['planners']:
                self.assertIn('planner', outcome)
                self.assertEqual(list(outcome['plan'])[:3], ['schema_version', 'model', 'stages'])
        self.assertEqual([len(one['planners']) for one in printed][:2], [1, 1])
        self.assertIsNone(printed[0]['planners'][0]['planner'])
        own = json.loads(run('plan', 'tiny.json', '--json', *planned, '-s',
                             '/schedule/kind=periodic',
                             '-s', '/schedule/partition=best').stdout)
        best = printed[1]['planners'][0]
        self.assertEqual(own['lower_bound_s'], printed[1]['lower_bound_s'])
        self.assertEqual({key: best[key] for key in own['planners'][0]}, own['planners'][0])

    def test_check(self):
        """Errors name file, pointer and message; errors in another file are reported where it is
        named."""
        done = run('check', 'tiny.json', '--json')
        self.expect(done, 0)
        verdict = json.loads(done.stdout)
        # 4 layers on as many devices: 8 micro-batches of 4 forwards, 4 backwards, 3 messages each
        # way, and 4 updates
        self.assertEqual((verdict['valid'], verdict['devices'], verdict['tasks'],
                          verdict['errors']),
                         (True, 4, 8 * 14 + 4, []))
        write('model.json', '{"schema_version": 1, "layers": 3}')
        cases = [
            (['-s', '/schedule/micro_batches=0', '-s', '/platform/devices=x'],
             [('tiny.json', '/platform/devices'), ('tiny.json', '/schedule/micro_batches')]),
            (['-s', '/model={"file": "model.json"}'], [('tiny.json', '/model/file')]),
            (['-s', '/a: b=1'], [('tiny.json', None)])]
        for more, places in cases:
            done = run('check', 'tiny.json', '--json', '-s', '/platform={"topology": "ideal"}',
                       *more)
            self.expect(done, 3)
            verdict = json.loads(done.stdout)
            self.assertFalse(verdict['valid'])
            found = [(e['file'], e['pointer']) for e in verdict['errors']]
            for place in places:
                self.assertIn(place, found)
            for e in verdict['errors']:  # the parts make up what people read
                place = e['file'] + (f': {e["pointer"]}' if e['pointer'] else '')
                self.assertIn(f'{place}: {e["message"]}\n', done.stderr)
        write('broken.json', '{\n "a": 1,\n}')
        error, = json.loads(run('check', 'broken.json', '--json').stdout)['errors']
        self.assertEqual((error['file'], error['pointer']), ('broken.json', None))
        self.assertTrue(error['message'].startswith('3:1: '), error)
        done = run('check', 'tiny.json', '--json', '-s',
                   '/platform={"topology": "ring", "bandwidth": 12, "memory": "16 GB"}')
        warning, = json.loads(done.stdout)['warnings']
        self.assertEqual((warning['file'], warning['pointer']),
                         ('tiny.json', '/platform/bandwidth'))
        self.assertIn(f'tiny.json: /platform/bandwidth: {warning["message"]}\n', done.stderr)
        self.expect(run('check', 'tiny.json', '--json', '--graph'), 2, '--json excludes')


class Files(Case):
    def setUp(self):
        super().setUp()
        write('old.h5', 'the earlier file')

    def expect_untouched(self):
        self.assertEqual(read('old.h5'), b'the earlier file')
        self.expect_files('old.h5')

    def test_folder_cannot_be_written(self):
        self.expect(run('run', 'tiny.json', '-o', '/proc/x.h5'), 1, '/proc/x.h5: cannot create')
        if os.geteuid() != 0:
            os.mkdir('locked', 0o500)
            self.expect(run('run', 'tiny.json', '-o', 'locked/x.h5'), 1, 'Permission denied')
            os.rmdir('locked')
        self.expect_untouched()

    def test_disk_full(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        old = write('old.json', 'the earlier plan')
        for words in (['run', 'tiny.json', '-o', 'old.h5'],
                      ['plan', 'tiny.json', '-o', old, '-s', '/model/uniform/layers=40']):
            self.expect(run(*words, preexec_fn=limit), 1, words[3] + ': cannot write', 'large')
        self.assertEqual(read(old), b'the earlier plan')
        os.remove(old)
        self.expect_untouched()

    def start_long_run(self):
        """A run of several seconds that has begun: its temporary file is there."""
        process = subprocess.Popen(
            [SIM, 'run', 'tiny.json', '-o', 'old.h5', '-s', '/iterations=16', '-s',
             '/schedule/micro_batches=65536'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        until = time.monotonic() + 30
        while len(os.listdir('.')) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        self.assertIsNone(process.poll())
        return process

    def test_interrupt(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for delay in (0, 1.5):
                process = self.start_long_run()
                time.sleep(delay)
                process.send_signal(number)
                out, err = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 130, err)
                self.assertEqual(out, '')
                self.assertIn('interrupted', err)
                self.expect_untouched()

    def test_interrupt_of_what_writes_nothing(self):
        os.mkfifo('pipe')
        process = subprocess.Popen([SIM, 'check', 'pipe'], stderr=subprocess.PIPE,
                                   preexec_fn=lambda:
                                   signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(process.kill)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)

    def test_pipes_that_nobody_has_open(self):
        """Commands fail on pipes without a reader or writer, and on devices, instead of waiting."""
        commands = [('check', 'pipe'), ('run', 'pipe', '--no-output'), ('plan', 'pipe'),
                    ('advise', 'pipe'), ('sweep', 'pipe', '--vary', '/iterations=1'),
                    ('plot', 'pipe', '-o', 'a.svg'),
                    ('plot', 'pipe', '--kind', 'fit', '-o', 'a.svg'),
                    ('report', 'pipe', '-o', 'a.html'), ('compare', 'pipe', 'pipe'),
                    ('export', 'trace', 'pipe', '-o', 'a.json'), ('validate', 'pipe'),
                    ('check', '/dev/zero'), ('plot', '/dev/zero', '-o', 'a.svg'),
                    ('run', 'tiny.json', '-s', '/model="pipe"', '--no-output'),
                    ('run', 'tiny.json', '-o', 'out.h5'), ('plan', 'tiny.json', '-o', 'out.json')]
        for name in ('pipe', 'out.h5', 'out.json'):
            os.mkfifo(name)
        started = [subprocess.Popen([SIM, *words], stderr=subprocess.PIPE, text=True,
                                    stdout=subprocess.DEVNULL) for words in commands]
        for words, process in zip(commands, started):
            with self.subTest(words):
                self.addCleanup(process.kill)
                said = process.communicate(timeout=60)[1]
                self.assertIn(process.returncode, (1, 2, 3), said)
                self.assertIn('sim: error: ', said)

    def test_kill(self):
        for delay in (0, 2):
            process = self.start_long_run()
            time.sleep(delay)
            process.kill()
            process.communicate()
            self.assertEqual(read('old.h5'), b'the earlier file')
            for name in os.listdir('.'):
                if name not in ('old.h5', 'tiny.json'):
                    self.assertTrue(name.startswith('.old.h5.'), name)
                    shutil.rmtree(name)


# what is typed, the last word being what the cursor is at: words that must be offered
COMPLETIONS = [
    (['ru'], ['run']),
    (['run', '--fail'], ['--fail-on-oom']),
    (['run', 'tin'], ['tiny.json']),
    (['run', '-o', 'tin'], ['tiny.json']),
    (['list', 'sch'], ['schedules']),
    (['help', 'compl'], ['completion']),
    (['run', '--log-level', 'w'], ['warning']),
    (['plot', '-k', 't'], ['timeline']),
    (['plan', 'tiny.json', '-P', 'mad'], ['madpipe']),
    (['plan', 'tiny.json', '--planner', 'madpipe,ex'], ['madpipe,exhaustive']),
    (['model', 'resnet15'], ['resnet152']),
    (['model', 'vgg16', '-d', 'mi355'], ['mi355x']),
    (['calibrate', 'compute', '-m', 'incep'], ['inception_v3']),
    (['export', 'topology', 'leaf'], ['leaf_spine']),
    (['export', 'to'], ['topology']),
    (['run', 'tiny.json', '-s', '/sched'], ['/schedule/']),
    (['run', 'tiny.json', '--set', '/schedule/mic'], ['/schedule/micro_batches=']),
    (['run', 'tiny.json', '-s', '/model/uniform/for'], ['/model/uniform/forward=']),
    (['sweep', 'tiny.json', '-v', '/iter'], ['/iterations=']),
    (['plot', '--kind=t'], ['--kind=timeline']),
    (['plan', 'tiny.json', '--planner=madpipe,ex'], ['--planner=madpipe,exhaustive']),
    (['run', 'tiny.json', '--set=/schedule/mic'], ['--set=/schedule/micro_batches=']),
]


class Shell(Case):
    def setUp(self):
        super().setUp()
        self.environment = dict(os.environ, PATH=os.path.dirname(SIM) + ':' + os.environ['PATH'],
                                HOME=self.folder, TERM='dumb')

    def complete(self, *words):
        script = (f'source <("{SIM}" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_sim; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(['bash', '-c', script, 'bash', *words], capture_output=True,
                              text=True, check=True, env=self.environment)
        self.assertEqual(done.stderr, '')
        return done.stdout.split()

    @unittest.skipUnless(shutil.which('bash'), 'no bash')
    def test_bash(self):
        for typed, expected in COMPLETIONS:
            self.assertEqual(self.complete('sim', *typed), expected, typed)
        self.assertIn('list', self.complete('sim', ''))
        # bash has divided it at '='
        self.assertEqual(self.complete('sim', 'run', 'tiny.json', '-s', '/schedule/kind', '=',
                                       'zb'),
                         ['zb_h1', 'zb_h2', 'zb_v'])
        self.assertIn('zb_h1', self.complete('sim', 'run', 'tiny.json', '-s', '/schedule/kind',
                                             '='))
        self.assertEqual(self.complete('sim', 'plot', '--kind', '=', 't'), ['timeline'])
        self.assertIn('boxes', self.complete('sim', 'plot', '--kind', '='))

    @unittest.skipUnless(shutil.which('fish'), 'no fish')
    def test_fish(self):
        lines = [' '.join(['sim', *typed]) for typed, _ in COMPLETIONS]
        script = f'"{SIM}" completion fish | source; ' + ' ; '.join(
            f'complete -C "{line}"; echo END' for line in lines)
        done = subprocess.run(['fish', '--no-config', '-c', script], capture_output=True, text=True,
                              check=True, env=self.environment)
        self.assertEqual(done.stderr, '')
        answers = done.stdout.split('END\n')
        for line, answer, (_, expected) in zip(lines, answers, COMPLETIONS):
            self.assertEqual([row.split('\t')[0] for row in answer.splitlines()], expected, line)

    @unittest.skipUnless(shutil.which('zsh'), 'no zsh')
    def test_zsh(self):
        """Typed at a terminal, followed by a tab: what then stands on the line."""
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        shell = subprocess.Popen(['zsh', '-f', '-i'], stdin=follower, stdout=follower,
                                 stderr=follower, env=self.environment, start_new_session=True)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        os.close(follower)

        def say(text, until):
            os.write(leader, text.encode())
            seen, end = '', time.monotonic() + 20
            while until not in seen and time.monotonic() < end:
                if select.select([leader], [], [], 0.1)[0]:
                    seen += os.read(leader, 4096).decode(errors='replace')
            self.assertIn(until, seen)
            return seen
        say(f'PS1=READY\\>; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; '
            f'source <("{SIM}" completion zsh); stty -echo; bindkey "^I" complete-word; '
            "show() { print -r -- \"<$BUFFER>\"; BUFFER=; zle .accept-line }; zle -N show; "
            "bindkey '^X' show; echo SET\"\"UP\n", 'SETUP')
        for typed, expected in COMPLETIONS:
            seen = say(' '.join(['sim', *typed]) + '\t\x18', '>')
            shown = re.findall(r'<(sim .*?)>', seen) or re.findall(r'<(sim .*?)>', say('', '>'))
            self.assertEqual(shown[-1].split(), ['sim', *typed[:-1], *expected], typed)

    @unittest.skipUnless(shutil.which('groff'), 'no groff')
    def test_manual(self):
        page = run('man').stdout
        done = subprocess.run(['groff', '-man', '-Tutf8', '-ww', '-z'], input=page, text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.stderr, '')
        plain = subprocess.run(['groff', '-man', '-Tascii', '-P-cbou'], input=page, text=True,
                               capture_output=True, check=True).stdout
        for word in ('--fail-on-oom', 'SCENARIO.json', 'EXIT STATUS', 'sim completion'):
            self.assertIn(word, plain)


def keys_of(value, prefix=''):
    """The keys of an object as the documentation lists them."""
    maps = ('compute_s', 'at_peak_bytes', 'category_peak_bytes', 'memory_bytes')
    for key, inner in value.items():
        name = prefix + key
        if isinstance(inner, dict) and key not in maps:
            yield name
            yield from keys_of(inner, name + '.')
        elif isinstance(inner, list) and inner and isinstance(inner[0], dict):
            yield name
            for element in inner:
                yield from keys_of(element, name + '[].')
        else:
            yield name


def tables_of(path):
    """heading: {first cell of a row: the other cells}, code quotes taken off."""
    tables, heading = {}, ''
    for line in read(path).decode().splitlines():
        if line.startswith('#'):
            heading = line.lstrip('# ').replace('`', '')
        elif re.match(r'\| `', line):
            cells = [c.strip().replace(r'\|', '|') for c in re.split(r'(?<!\\)\|', line)[1:-1]]
            tables.setdefault(heading, {})[cells[0].strip('`')] = cells[1:]
    return tables


class Documentation(Case):
    def setUp(self):
        super().setUp()
        self.tables = {}
        for page in ('output', 'json-output', 'exit-codes', 'topologies'):
            self.tables.update(tables_of(os.path.join(DOCS, 'reference', page + '.md')))

    def test_json_keys(self):
        small = ['-s', '/platform={"topology":"ring","devices":4,"bandwidth":1e9,"memory":"7 GB"}']
        result = json.loads(run('run', 'tiny.json', '--no-output', '--json', '--allocator',
                                'pytorch',
                                *small).stdout)
        figures = [name for name in self.tables['Figures'] if name in result]
        documented = self.tables['What sim run --json prints']
        inner = {key for key in keys_of(result) if key.startswith('devices[].allocator.')}
        self.assertTrue(inner)
        for key in inner:  # one row has them all
            self.assertIn(f"`{key.split('.')[-1]}`", ' '.join(documented['devices[].allocator']))
        self.assertEqual(sorted([*documented, *figures]), sorted(set(keys_of(result)) - inner))

    def expect_described(self, keys, page, *general):
        """That a table names each key; a row may name several, `a`, `.b`, and whole objects."""
        rows = self.tables[page]
        text = ' '.join([*rows, *(cell for row in rows.values() for cell in row)])
        for key in keys:
            last = key.split('.')[-1].replace('[]', '')
            if not any(re.fullmatch(form, last) for form in general):
                self.assertRegex(text, rf'\b{re.escape(last)}\b', key)

    def test_json_keys_of_advise_and_validate(self):
        path = os.path.join(SCENARIOS, 'abci-resnet50.json')
        found = json.loads(run('advise', path, '--most', '20', '--top', '1', '--json').stdout)
        for plan in [*found['best'], *found['front']]:
            plan['changes'] = None
        self.expect_described(keys_of(found), 'What sim advise --json prints', 'schema_version',
                              'program_version')
        # a loss below a twentieth of the step is not what limits it, here as in the table
        self.assertLess(max(found['best'][0]['limits_s'].values()),
                        found['best'][0]['step_time_s'] / 20)
        self.assertEqual(found['best'][0]['limited_by'], 'computing')
        counts = found['plans']
        self.assertEqual(counts['all'], sum(counts.values()) - counts['all'])
        write('points.json', POINTS)
        result = json.loads(run('validate', 'points.json', '--json').stdout)
        measures = '(step_time|allocated|reserved|device_memory|least_allocated)'
        self.expect_described(keys_of(result), 'What sim validate --json prints', 'schema_version',
                              'program_version', measures,
                              f'(predicted|measured)_{measures}_(s|bytes)',
                              f'{measures}_error')

    def test_runs(self):
        """Without noise all runs are equal; with it they spread, the same in any threads."""
        words = ['run', 'tiny.json', '--no-output', '--json', '--runs', '4']
        runs = json.loads(run(*words).stdout)['runs']
        self.assertEqual(list(self.tables['What --runs adds to it']),
                         ['runs', 'runs.runs', 'runs.first_seed', 'runs.all_equal', 'runs.KEY'])
        self.assertEqual(list(runs)[3:], ['iteration_time_s', 'throughput_samples_per_s',
                                          'makespan_s', 'bubble_fraction'])
        self.assertTrue(runs['all_equal'])
        self.assertEqual((runs['makespan_s']['mean_95_low'], runs['makespan_s']['max']), (33, 33))
        words += ['-s', '/platform={"topology":"ideal","stragglers":{"tasks":{"mean":0.1}}}']
        noisy = [run(*words, '-j', jobs).stdout for jobs in '13']
        self.assertEqual(noisy[0], noisy[1])
        runs = json.loads(noisy[0])['runs']
        self.assertFalse(runs['all_equal'])
        figures = runs['makespan_s']
        self.assertTrue(33 < figures['min'] < figures['p5'] < figures['p50'] < figures['max'])
        self.assertEqual(run('run', 'tiny.json', '--runs', '0').returncode, 2)

    def test_plan_keys(self):
        words = ['run', 'tiny.json', '--no-output', '--json', '-s',
                 '/platform={"topology":"ring","devices":2,"bandwidth":1e9,"memory":"12 GB"}',
                 '-s', '/schedule/kind=periodic', '-s']
        keys = [list(json.loads(run(*words, '/schedule/partition=' + partition).stdout))
                for partition in ('contiguous_optimal', 'balanced')]
        self.assertEqual([key for key in self.tables['Figures'] if key.startswith('plan_')],
                         [key for key in keys[0] if key not in keys[1]])

    def test_costs_keys(self):
        """The page of measured costs has the keys of the JSON, and its example of a file can be
        read."""
        page = os.path.join(DOCS, 'how-to/measured-costs.md')
        examples = re.findall(r'```json\n(.*?)```', read(page).decode(), re.DOTALL)
        write('costs.json', next(e for e in examples if e.startswith('{\n  "schema_version"')))
        write('costs-run.json', {'schema_version': 1, 'schedule': {'kind': 'dp'},
                                 'model': {'name': 'vgg16', 'device': 'v100', 'batch_size': 16},
                                 'costs': 'costs.json', 'collectives': {'fidelity': 'analytic'},
                                 'platform': {'topology': 'ring', 'devices': 2, 'bandwidth': 1e9}})
        done = run('run', 'costs-run.json', '--no-output', '--json')
        self.expect(done, 0)
        result = json.loads(done.stdout)
        self.assertEqual(sorted(tables_of(page)['What a scenario makes of it']),
                         sorted(set(keys_of({'costs': result['costs']}))))
        self.assertEqual(result['costs']['measured_times'], 1)
        self.assertEqual(result['costs']['missing_collectives'][0]['ranks'], 2)

    def test_planner_keys(self):
        """A planner that finds a plan, one whose plan has no pattern, and one that finds none."""
        small = ['-s', '/platform={"topology":"ring","devices":2,"bandwidth":1e9,"memory":"12 GB"}']
        result = json.loads(run('plan', 'tiny.json', '--json', '-P',
                                'pipedream_replicated,contiguous_optimal', *small).stdout)
        none = json.loads(run('plan', 'tiny.json', '--json', '-P', 'balanced,pipedream_replicated',
                              *small[:1], small[1].replace('12', '6')).stdout)
        keys = {key for key in {*keys_of(result), *keys_of(none)}
                if not key.startswith('planners[].plan.')}
        self.assertEqual(set(self.tables['What sim plan --json prints']), keys)

    def test_statuses(self):
        self.assertEqual(list(self.tables['Exit codes']), ['0', '1', '2', '3', '4', '130'])

    def test_sharing(self):
        platform = next(s for s in json.loads(run('list', 'sections', '--json').stdout)['sections']
                        if s['name'] == 'platform')
        sharing = next(p for p in platform['parameters'] if p['name'] == 'sharing')
        names = sharing['expected'].replace('one of ', '').split(', ')
        self.assertEqual(list(self.tables['How transfers share links']), names)

    def test_examples(self):
        """Every JSON example that is a scenario can be run, and so can its resolved form."""
        names = [os.path.join(folder, name) for folder, _, files in os.walk(DOCS) for name in files]
        text = '\n'.join(read(name).decode() for name in names if name.endswith('.md'))
        scenarios = [e for e in re.findall(r'```json\n(.*?)```', text, re.DOTALL)
                     if e.startswith('{\n  "schema_version"') and '"platform"' in e]
        self.assertTrue(scenarios)
        os.symlink(os.path.join(ROOT, 'facts'), 'facts')
        for name, content in re.findall(r'<!-- file (\S+) -->\n```json\n(.*?)```', text, re.DOTALL):
            write(name, content)
        for example in scenarios:
            write('example.json', example)
            self.expect(run('check', 'example.json'), 0)


class Work(Case):
    """Model flop and its share of a device's peak."""

    GPT = {'schema_version': 1, 'runtime': 'ideal',
           'model': {'name': 'gpt', 'device': 'a100', 'precision': 'bf16', 'batch_size': 16,
                     'parameters': {'layers': 4, 'hidden': 256, 'heads': 4, 'sequence': 128,
                                    'vocabulary': 1000}},
           'platform': {'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '200 GB/s'},
           'schedule': {'kind': 'gpipe', 'micro_batches': 4}, 'iterations': 2}

    def result(self, document, *sets):
        words = [word for s in sets for word in ('-s', s)]
        done = run('run', write('gpt.json', document), '--no-output', '--json', *words)
        self.expect(done, 0)
        return json.loads(done.stdout)

    def test_by_hand(self):
        """Multiply-accumulates of a token of GPT-2: 12 H^2 in each layer (3 for queries, keys and
        values, 1 behind attention, 8 of the two dense layers), V H for the logits; causal attention
        reads (T + 1) / 2 keys and as many values on average, of H features each. 6 flop for each:
        6 N + 6 L H (T + 1), PaLM's 6 N + 12 L H Q T with half of the attention."""
        layers, width, tokens, words = 4, 256, 128, 1000
        macs = tokens * (12 * layers * width**2 + words * width + layers * (tokens + 1) * width)
        result = self.result(self.GPT)
        self.assertEqual(result['model_flop_per_sample'], 6 * macs)
        rate = result['throughput_samples_per_s']
        self.assertAlmostEqual(result['throughput_tokens_per_s'], tokens * rate, 3)
        self.assertAlmostEqual(result['device_model_flop_per_s'] / (6 * macs * rate / 2), 1, 12)
        # the data sheet's 312 Tflop/s
        self.assertAlmostEqual(result['model_flop_utilisation_fraction'] /
                               (6 * macs * rate / 2 / 312e12), 1, 12)
        self.assertEqual([key for key in result if 'tokens' in key or 'flop' in key],
                         ['throughput_tokens_per_s', 'device_model_flop_per_s',
                          'model_flop_utilisation_fraction', 'model_flop_per_sample'])

    def test_what_counts(self):
        """Recomputation takes time but does not count as work; a slower device has a lower peak;
        layers of a file know nothing, and what was resolved knows what it did."""
        plain, again = self.result(self.GPT), self.result(self.GPT, '/model/recompute=true')
        self.assertEqual(again['model_flop_per_sample'], plain['model_flop_per_sample'])
        self.assertLess(again['throughput_samples_per_s'], plain['throughput_samples_per_s'])
        slow = self.result(self.GPT, '/platform/speed=[0.5, 1]')
        self.assertAlmostEqual(slow['device_model_flop_per_s'] / (0.75 * 312e12) /
                               slow['model_flop_utilisation_fraction'], 1, 12)
        write('resolved.json', run('check', 'gpt.json', '--resolved').stdout)
        resolved = json.loads(run('run', 'resolved.json', '--no-output', '--json').stdout)
        plain.pop('runtime')  # of ideal kernels nothing is left to say
        self.assertEqual(resolved, dict(plain, name=resolved['name']))
        tiny = json.loads(run('run', 'tiny.json', '--no-output', '--json').stdout)
        self.assertNotIn('model_flop_per_sample', tiny)
        self.assertNotIn('model flop', run('run', 'tiny.json', '--no-output').stdout)

    def test_text(self):
        """One product of 6 flop per sample, in a millisecond of forward and two of backward, on two
        devices: 1e9 flop per 3 ms are a ninth of 3 Tflop/s."""
        layers = [{'name': 'a', 'forward': '1 ms', 'backward': '2 ms', 'weights': 4, 'output': 4}]
        model = {'schema_version': 1, 'name': 'one', 'batch_size': 1, 'layers': layers,
                 'work': {'flop_per_sample': 1e9, 'peak': '3 Tflop/s', 'device': 'slate'},
                 'provenance': {'source': 'a test', 'hardware': 'none', 'date': '2026-11-21'}}
        document = {'schema_version': 1, 'model': {'inline': model}, 'schedule': {'kind': 'dp'},
                    'platform': {'topology': 'ideal', 'devices': 2}}
        out = run('run', write('one.json', document), '--no-output').stdout
        self.assertIn(
            "model flop         333.3 Gflop/s per device, 11.11 % of slate's peak in fp32\n", out)
        model['work'] = {'flop_per_sample': 1e9, 'tokens_per_sample': 3}
        out = run('run', write('one.json', document), '--no-output').stdout
        self.assertIn(
            '666.67 samples/s, 2000 tokens/s\nmodel flop         333.3 Gflop/s per device\n', out)
        model['work'] = {'flop_per_sample': 0, 'token': 1}
        self.expect(run('run', write('one.json', document), '--no-output'), 3,
                    '/model/inline/work/flop_per_sample: must be > 0', 'unknown key "token"')


class LowMemory(Case):
    """Tasks dropped as they run; tests/test-low-memory.c compares with whole runs in depth."""

    def result(self, *words):
        done = run('run', 'tiny.json', '--no-output', '--json', *words)
        self.expect(done, 0)
        return json.loads(done.stdout)

    def test_same_figures(self):
        for sets in ([], ['-s', '/platform={"topology": "ring", "devices": 4, "bandwidth": 1e9, '
                                '"sharing": "none", "memory": "7 GB"}']):
            low, whole = self.result('--low-memory', *sets), self.result(*sets)
            events = self.result('--low-memory', '--every-event', *sets)
            self.assertEqual(low, events)
            for key, value in low.items():
                if key not in ('hash', 'devices', 'closed_forms') and value is not None:
                    self.assertEqual(value, whole[key], key)
            for one, other in zip(low['closed_forms'], whole['closed_forms'], strict=True):
                waits = one['figure'] == 'pipeline_bubble_fraction'
                unknown = {'simulated': None, 'difference': None} if waits else {}
                self.assertEqual(one, other | unknown)
            for one, other in zip(low['devices'], whole['devices'], strict=True):
                self.assertEqual(one['compute_s'], other['compute_s'])
                self.assertEqual(one['peak_memory_bytes'], other['peak_memory_bytes'])
                self.assertEqual(one['at_peak_bytes'], other['at_peak_bytes'])
                self.assertIsNone(one['flush_s'])
            self.assertIsNone(low['critical_path'])
            self.assertNotIn('exposed_messages_s', low)
        self.assertIsNotNone(low['devices'][0]['out_of_memory'])

    def test_summary(self):
        text = run('run', 'tiny.json', '--no-output', '--low-memory').stdout
        self.assertIn(' tasks were dropped after they ran: waiting times', text)
        self.assertNotIn('critical path:', text)
        self.assertRegex(text, r'\nbubble fraction    27\.27 %\npipeline bubble    -\n'
                               r'  closed form      27\.27 %      -                 \(P - 1\)/\(M '
                               r'\+ P - 1\)\n'
                               r' +stated for ')
        self.expect_files()

    def test_mistakes(self):
        for words, message in (
                ([], 'run: --low-memory keeps no tasks to write; add --no-output'),
                (['-o', 'a.h5'], 'run: --low-memory keeps no tasks to write; add --no-output'),
                (['--no-output', '--stop-on-oom'],
                 'run: --low-memory and --stop-on-oom exclude each other'),
                (['--no-output', '--runs', '2'], 'run: --low-memory and --runs exclude each other'),
                (['--no-output', '--allocator', 'pytorch', '--snapshot', 'a.pickle'],
                 'run: --low-memory and --snapshot exclude each other')):
            self.expect(run('run', 'tiny.json', '--low-memory', *words), 2, message)
            self.expect_files()

    def test_refusals(self):
        links = '/platform={"topology":"ring","devices":4,"bandwidth":1e9%s}'
        for sets, reason in (
                ([links % ''], 'messages compete for links (not with the sharing "none" or "phi")'),
                ([links % ',"blocking":true,"sharing":"none"'],
                 'messages occupy the devices at both ends'),
                (['/schedule={"kind":"pipedream"}'],
                 'its schedule has no flush, so its mini-batches overlap'),
                (['/schedule={"kind":"dp"}', links % ',"sharing":"none"', '/model/batch_size=4'],
                 'it has collectives, whose members wait for each other'),
                (['/memory/allocator=pytorch'], 'it has an allocator')):
            words = [word for one in sets for word in ('-s', one)]
            done = run('run', 'tiny.json', '--no-output', '--low-memory', *words)
            self.expect(done, 2, f'tiny.json: cannot be run with little memory: {reason}')
        noisy = os.path.join(SCENARIOS, 'shared-links.json')
        self.expect(run('run', noisy, '--no-output', '--low-memory'), 2, 'it has noise')


class Osdp(Case):
    def setUp(self):
        super().setUp()
        self.scenario = os.path.join(SCENARIOS, 'osdp-gpt-8gpu.json')

    def test_golden(self):
        shutil.copy(self.scenario, 'gpt.json')
        rows = [['gpt.json'], ['gpt.json', '--simulate', '-s', '/model/parameters/layers=24'],
                ['gpt.json', '--surge', 'sum', '--slices', '1', '--slices', 'head*=8', '-s',
                 '/platform/memory=24 GB'],
                ['gpt.json', '--depth-first', '1000', '-s', '/model/parameters/layers=1', '-s',
                 '/platform/memory=2 GB'],
                ['gpt.json', '-s', '/platform/memory=1 GB'],
                ['gpt.json', '--slices', '0'], ['gpt.json', '--slices', 'blocks.*'],
                ['gpt.json', '--slices', 'block.*=2'],
                ['gpt.json', '--surge', 'most'], ['gpt.json', '--max-batch', '0'],
                ['gpt.json', '-o', 'plan.h5'],
                ['gpt.json', '-s', '/schedule/kind=1f1b', '-s', '/schedule/partition=balanced'],
                ['tiny.json']]
        self.expect_golden('osdp', ''.join(shown('osdp', *row) for row in rows))

    def test_output(self):
        """The saved scenario is simulated with the table's result, and fits the available
        memory."""
        done = run('osdp', self.scenario, '--simulate', '--json', '-o', 'plan.json')
        self.assertEqual(done.returncode, 0, done.stderr)
        study = json.loads(done.stdout)
        row = next(row for row in study['strategies'] if row['strategy'] == 'OSDP')
        result = json.loads(run('run', 'plan.json', '--no-output', '--json').stdout)
        self.assertEqual(result['iteration_time_s'], row['simulated']['step_time_s'])
        self.assertEqual(max(device['peak_memory_bytes'] for device in result['devices']),
                         row['simulated']['memory_bytes'])
        self.assertLessEqual(row['simulated']['memory_bytes'], study['memory_bytes'])
        product = study['of_fsdp_by_modes'] * study['of_fsdp_by_batch'] * study['of_fsdp_by_slices']
        self.assertAlmostEqual(study['of_fsdp'], product, delta=1e-12)

    def test_depth_first_agrees_where_it_ends(self):
        done = run('osdp', self.scenario, '--json', '--depth-first', '0', '--max-batch', '2', '-s',
                   '/model/parameters/layers=2', '-s', '/platform/memory=2.2 GB')
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row['strategy']: row for row in json.loads(done.stdout)['strategies']}
        self.assertTrue(rows['OSDP, depth-first']['complete'])
        self.assertEqual(rows['OSDP, depth-first']['throughput_samples_per_s'],
                         rows['OSDP']['throughput_samples_per_s'])

    def test_interrupt(self):
        """The paper's search does not end within this year."""
        process = subprocess.Popen([SIM, 'osdp', self.scenario, '--depth-first', '0'],
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, ''))
        self.assertIn('interrupted', err)


class Carried(Case):
    def test_buckets(self):
        """What several buckets keep of the encoder's result they keep once, as one bucket does; all
        is given back."""
        peaks = set()
        for bucket in (0, '1 kB', '100 kB'):
            write('s.json', {
                'schema_version': 1, 'runtime': 'ideal',
                'model': {'name': 't5', 'device': 'h100', 'batch_size': 4, 'parameters': {
                    'layers': 2, 'hidden': 64, 'heads': 2, 'head': 32, 'intermediate': 128,
                    'vocabulary': 100,
                    'sequence': 512, 'decoder_sequence': 8, 'dropout': 0}},
                'platform': {'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s',
                             'latency': '1 us'},
                'schedule': {'kind': 'dp', 'bucket': bucket}})
            done = json.loads(run('run', 's.json', '--no-output', '--json').stdout)
            peaks.add(done['devices'][0]['peak_activation_bytes'])
        self.assertEqual(len(peaks), 1, peaks)


class Division(Case):
    def test_wrong(self):
        """A number that does not divide gives one line that names its place. The class Remedies
        tries the proposed numbers."""
        gpt = '{"name": "gpt", "device": "h100", "batch_size": 16}'
        rows = [
            ('abci-resnet50', ['/parallel={"filter": 128}', '/platform/devices=128'],
             '/parallel/filter: must be at most the 64 filters of stem.conv1 (got 128)'),
            ('abci-resnet50', ['/parallel={"channel": 128}', '/platform/devices=128'],
             '/parallel/channel: must be at most the 64 channels of layer1.0.conv1 (got 128)'),
            ('abci-resnet50', ['/parallel={"space": [16]}'],
             '/parallel/space: must be at most the 14 rows of layer3.0.conv2 (got 16)'),
            ('fsdp', ['/model=' + gpt, '/parallel={"tensor": 8}', '/platform/devices=16'],
             '/parallel/tensor: must divide the 12 heads of h.0.attn.attention (got 8); use 4'),
            ('mixtral-h200', ['/parallel={"expert": 3, "pipeline": 2}', '/platform/devices=6'],
             '/parallel/expert: must divide the 8 experts of layers.0.mlp.dispatch (got 3)'),
            ('fsdp', ['/parallel/tensor=64'],
             '/parallel: tensor 64 needs a multiple of 64 devices, and the platform has 32; use '),
            ('data-pipeline', ['/parallel={"zero": 3}', '/schedule={"kind": "pipedream"}'],
             '/parallel/zero: must be at most 2 for the schedule "pipedream", whose backwards use '
             'older '
             'weights, which cannot be gathered again (got 3)'),
        ]
        for name, sets, message in rows:
            path = os.path.join(SCENARIOS, name + '.json')
            with self.subTest(message):
                done = run('check', path, *[word for one in sets for word in ('-s', one)])
                self.assertEqual((done.returncode, done.stdout), (3, ''))
                self.assertTrue(done.stderr.startswith(f'sim: error: {path}: {message}'),
                                done.stderr)

    def test_identities(self):
        """One group of filters is data parallelism and one replica of filters is filter
        parallelism, however it is specified; space likewise; axes of size 1 split nothing;
        ZeRO on one device is none, and shares over all places are ZeRO."""
        path = os.path.join(SCENARIOS, 'abci-resnet50.json')
        rows = [
            ('{"data": 16}', '{"data": 16, "filter": 1, "channel": 1, "space": [1, 1]}'),
            ('{"data": 16}', '{"data": 16, "tensor": 1, "context": 1, "expert": 1, "zero": 0}'),
            ('{"filter": 16}', '{"data": 1, "filter": 16}'),
            ('{"space": [4, 4]}', '{"data": 1, "space": [4, 4, 1]}'),
            ('{"data": 16, "zero": 3}', '{"rules": [{"layers": "*", "zero": 3}]}'),
            ('{"data": 16, "zero": 3}', '{"data": 16, "zero": 3, "shard": 16}'),
        ]
        for one, other in rows:
            self.expect_same(path, one, other)
        for zero in 1, 2, 3:
            self.expect_same(path, '{"data": 1}', f'{{"data": 1, "zero": {zero}}}',
                             '/platform/devices=1')

    def expect_same(self, path, one, other, *sets):
        with self.subTest(other):
            words = [word for s in sets for word in ('-s', s)]
            hashes = [json.loads(run('run', path, '--no-output', '--json', *words, '-s',
                                     '/parallel=' + p)
                                 .stdout)['hash'] for p in (one, other)]
            self.assertEqual(*hashes)


class Libraries(Case):
    def test_without_cbc(self):
        """CBC is loaded when a planner asks for it: with files that are no libraries in its place
        all else works, and that planner says what it lacks."""
        for name in ('libCbcSolver.so.3', 'libCbcSolver.so'):
            write(name, '')
        write('s.json', {
            'schema_version': 1, 'runtime': 'ideal',
            'model': {'name': 'resnet50', 'device': 'v100', 'batch_size': 8},
            'platform': {'topology': 'nvlink_switch', 'bandwidth': '5 GB/s', 'devices': 4,
                         'memory': '280 MB'},
            'schedule': {'kind': 'periodic', 'micro_batches': 8, 'partition': 'madpipe'}})
        without = dict(os.environ, LD_LIBRARY_PATH=os.getcwd())
        self.expect(run('run', 'tiny.json', '--no-output', env=without), 0)
        self.expect(run('plan', 's.json'), 0)
        self.expect(run('plan', 's.json', env=without), 1,
                    'sim: error: s.json: /schedule/partition: this planner needs the library of '
                    'CBC '
                    '2.10, which cannot be loaded: ')


class Communication(Case):
    def result(self, platform, *sets):
        words = ['-s', '/platform=' + json.dumps(dict(platform, bandwidth='1 GB/s'))]
        words += [word for s in sets for word in ('-s', s)]
        out = run('run', 'tiny.json', '--no-output', *words).stdout
        line = re.search(r'^communication: .*\n(?:  \S.*\n)?', out, re.MULTILINE)
        return (json.loads(run('run', 'tiny.json', '--no-output', '--json', *words).stdout),
                line[0].replace('\n  ', ' ') if line else '')

    def overlap(self, of):
        return [of[key] for key in ('exposed_messages_s', 'exposed_collectives_s',
                                    'communication_active_s', 'communication_hidden_fraction')]

    def test_messages(self):
        """Two stages of a layer, F 1 s, B 2 s, messages of 1 s: device 0 does F 0-1, 1-2, B 7-9,
        9-11 and sends 1-2 (hidden), 2-3, receives 6-7 (waits), 8-9 (hidden); device 1 receives 1-2
        (waits), 2-3 (hidden), does F 2-3, 3-4, B 4-6, 6-8 and sends 6-7 (hidden), 8-9."""
        result, line = self.result({'topology': 'ring', 'devices': 2}, '/model/uniform/layers=2',
                                   '/schedule/micro_batches=2')
        self.assertEqual(result['makespan_s'], 11)
        for of in (result, *result['devices']):
            self.assertEqual(self.overlap(of), [1, 0, 4, 0.5])
        self.assertEqual(line, 'communication: 4 s per device, 50.0 % overlapped; exposed: '
                               'messages 1 s, collectives 0 s\n')

    def test_collectives(self):
        """Data parallel on two devices: an all-reduce of 1 GB of each of two layers sends half of
        it twice, at 1 GB/s. At once after the backward, 2 s are exposed; by buckets of a layer, the
        second layer's takes 1 s of the 2 s that the first one's backward takes."""
        words = [{'topology': 'ring', 'devices': 2}, '/model/uniform/layers=2']
        result, _ = self.result(*words, '/schedule={"kind": "dp"}')
        self.assertEqual(self.overlap(result), [0, 2, 2, 0])
        result, line = self.result(*words, '/schedule={"kind": "dp", "bucket": "1 GB"}')
        for of in (result, *result['devices']):
            self.assertEqual(self.overlap(of), [0, 1, 2, 0.5])
        self.assertIn('50.0 % overlapped; exposed: messages 0 s, collectives 1 s', line)

    def test_slowdown(self):
        """The same with buckets; computing during a sum takes twice as long: of the first layer's
        backward half a second is done in the second of the sum, so that it ends, as the mini-batch
        does, half a second later. As flows and as one delay."""
        for fidelity in ('flow', 'analytic'):
            for rules, late in (('{"factor": 2}', .5),
                                ('[{"factor": 4}, {"communication": "collectives", "factor": 2}]',
                                 .5),
                                ('{"compute": "backward", "communication": "all_reduce", "factor": '
                                 '2}', .5),
                                ('{"communication": "messages", "factor": 2}', 0),
                                ('[{"factor": 2}, {"compute": "backward", "factor": 1}]', 0)):
                with self.subTest(fidelity=fidelity, rules=rules):
                    result, line = self.result(
                        {'topology': 'ring', 'devices': 2}, '/model/uniform/layers=2',
                        '/schedule={"kind": "dp", "bucket": "1 GB"}',
                        '/collectives/fidelity=' + fidelity, '/platform/slowdown=' + rules)
                    self.assertEqual(result['makespan_s'], 7 + late)
                    for of in (result, *result['devices']):
                        self.assertEqual(of['slowed_by_communication_s'], late)
                        self.assertEqual(self.overlap(of)[2:], [2, .5])
                    self.assertEqual('; computing slowed by communication: 500 ms\n' in line,
                                     late > 0)

    def test_none(self):
        self.assertNotIn('communication: ', run('run', 'tiny.json', '--no-output').stdout)
        result = json.loads(run('run', 'tiny.json', '--no-output', '--json').stdout)
        self.assertEqual(self.overlap(result), [0, 0, 0, None])


class Keys(Case):
    """What keys are documented to do."""

    def run_chain(self, layers, sets=(), **sections):
        model = {'schema_version': 1, 'name': 'm', 'batch_size': 0, 'input': 4000000,
                 'provenance': {'source': 'x', 'hardware': 'x', 'date': '2026-01-01'},
                 'layers': [dict({'name': f'l{i}', 'forward': '1 ms', 'backward': '2 ms',
                                  'weights': 0, 'output': 0}, **layer)
                            for i, layer in enumerate(layers)]}
        scenario = {'schema_version': 1, 'platform': 'ideal',
                    'model': {'inline': model, 'batch_size': 8, 'optimizer': 'none'},
                    'schedule': {'kind': 'sequential', 'micro_batches': 1}}
        path = write('s.json', dict(scenario, **sections))
        done = run('run', path, '--no-output', '--json', *[w for s in sets for w in ('-s', s)])
        self.expect(done, 0)
        return json.loads(done.stdout)

    def test_gather_once(self):
        """4 MB of weights on two devices. PyTorch's pipelining (stage.py) reduces gradients with
        the last of four backwards: a ring moves half a vector from each device, 4 MB, and whole
        gradients stay until then. FSDP without no_sync reduces after each backward, so four times
        that; `accumulate` decides."""
        sections = {'platform': {'topology': 'ring', 'devices': 2, 'bandwidth': '100 GB/s'},
                    'parallel': {'data': 2, 'zero': 3, 'gather_once': True},
                    'schedule': {'kind': 'sequential', 'micro_batches': 4}}
        for runtime in ({}, {'runtime': {'name': 'deepspeed'}}):
            results = [self.run_chain([{'weights': 4000000}], sets, **sections, **runtime)
                       for sets in ((), ('/parallel/accumulate=true',),
                                    ('/parallel/accumulate=false',))]
            once, same, each = results
            self.assertEqual(once['hash'], same['hash'])
            self.assertEqual(once['moved_gradients_bytes'], 4e6)
            self.assertEqual(each['moved_gradients_bytes'], 4 * 4e6)
            for result in results:
                self.assertEqual(result['moved_weights_bytes'], 4e6)
        resolved = write('r.json', run('check', 's.json', '--resolved').stdout)
        self.assertEqual(json.loads(run('run', resolved, '--no-output', '--json').stdout)['hash'],
                         once['hash'])

    def test_in_flight_of_offloading(self):
        """Layers of 1 ms, copies of 10 ms, of two of four layers: copies end at 11 and 21 ms. Layer
        j waits for the copy of layer j - 2: the third begins at 11, and the fourth, which stays on
        the device as the third does, at 21, though one copy alone is not complete. Backwards of 2
        ms: of the fourth and third until 26; copies back, from the backward of the layer above on,
        end at 34 and 44, so the backwards end at 36 and 46."""
        layers = 4 * [{'kept': 100000000}]
        result = self.run_chain(layers, parallel={'data': 1},
                                offload={'layers': 2, 'in_flight': 1, 'prefetch': 1,
                                         'bandwidth': '10 GB/s'})
        self.assertEqual(result['makespan_s'], 0.046)
        self.assertEqual(result['moved_host_bytes'], 2 * 2 * 1e8)

    def test_workspace_of_recomputation(self):
        """kept 10, input 4, workspace 1 MB: 1 + 6 MB; kept 3 MB: 1 MB, and the input is kept."""
        for kept, workspace in ((10e6, 7e6), (3e6, 1e6)):
            result = self.run_chain([{'kept': int(kept), 'workspace': 1000000, 'recompute': True}])
            peak = result['devices'][0]['category_peak_bytes']
            self.assertEqual(peak['workspace'], workspace)
            self.assertEqual(peak['activations'], 4e6)


class Traps(Case):
    """Valid input that is hardly ever meant: a warning, once, that names what may be meant."""

    def warnings(self, path, *sets):
        words = [word for s in sets for word in ('-s', s)]
        done = run('check', path, *words)
        self.expect(done, 0)
        lines = [line for line in done.stderr.splitlines() if ': warning: ' in line]
        self.assertEqual(len(set(lines)), len(lines))
        listed = json.loads(run('check', path, '--json', *words).stdout)['warnings']
        self.assertEqual(len(listed), len(lines))
        for line, message in zip(lines, listed):
            self.assertIn(f"{message['pointer']}: {message['message']}", line)
        return [re.sub(r'^sim: warning: [^:]*: ', '', line) for line in lines]

    def test_quantities(self):
        ring = '/platform={"topology": "ring", "devices": 4, "bandwidth": %s, "latency": %s, ' \
               '"memory": %s}'
        for values, keys in ((('"900 GB/s"', '"5 us"', '"80 GB"'), {}),
                             (('900', '0', '"80 GB"'), {'bandwidth': '900 GB/s'}),
                             (('"100 B/s"', '0', '"80 GB"'), {'bandwidth': '100 GB/s'}),
                             (('"1 GB/s"', '5', '"80 GB"'), {'latency': '5 us'}),
                             (('"1 GB/s"', '"3 s"', '"80 GB"'), {'latency': '3 us'}),
                             (('"1 GB/s"', '0', '80'), {'memory': '80 GB'}),
                             (('"1 GB/s"', '0', '"80000 TB"'), {'memory': '80000 GB'}),
                             (('"25000 TB/s"', '0', '80'),
                              {'bandwidth': '25000 GB/s', 'memory': '80 GB'})):
            with self.subTest(values):
                got = self.warnings('tiny.json', ring % values)
                self.assertEqual(len(got), len(keys), got)
                for warning in got:
                    key = re.match(r'/platform/(\w+): ', warning)[1]
                    self.assertIn(f'; did you mean "{keys[key]}"?', warning)
        self.assertEqual(self.warnings('tiny.json', '/model/uniform/forward=12'),
                         ['/model/uniform/forward: 12 has no unit and is taken as 12 s; did you '
                          'mean "12 us"?'])
        self.assertEqual(self.warnings('tiny.json', '/model/uniform/forward=0.012'), [])

    def test_memory_of_a_card(self):
        path = os.path.join(SCENARIOS, 'fsdp.json')
        for memory, expected in (('80 GB', 'did you mean "80 GiB"?'), ('80 GiB', None),
                                 ('40 GB', None), ('80 MB', 'is the unit right?')):
            got = self.warnings(path, f'/platform/memory="{memory}"')
            self.assertEqual(len(got), expected is not None, memory)
            self.assertTrue(all(expected in warning for warning in got))

    def test_idle_devices(self):
        """The remedy, where one is named, works: nothing is idle with it."""
        ideal = '/platform={"topology": "ideal", "devices": 8}'
        kind = '/schedule={"kind": "sequential", "micro_batches": 2}'
        got = self.warnings('tiny.json', ideal, kind, '/model/batch_size=16')
        self.assertEqual(got, ['/schedule: "sequential" computes on one of 8 devices, and the '
                               'others are idle; with "parallel": {"data": 8} all of them compute, '
                               'as replicas'])
        self.assertEqual(self.warnings('tiny.json', ideal, kind, '/model/batch_size=16',
                                       '/parallel={"data": 8}'), [])
        got = self.warnings('tiny.json', ideal, kind, '/model/batch_size=6')
        self.assertEqual(got, ['/schedule: "sequential" computes on 1 of 8 devices, and the others '
                               'are idle'])

    def test_stages_in_place_of_replicas(self):
        path = os.path.join(SCENARIOS, 'fsdp.json')
        sets = ['/schedule={"kind": "1f1b", "micro_batches": 32}']
        got = self.warnings(path, *sets)
        self.assertEqual(got, ['/parallel/zero: shards nothing: the schedule "1f1b" makes a stage '
                               'for each of 32 devices, so a stage has one replica; with '
                               '"pipeline": 16 it has two'])
        self.assertEqual(self.warnings(path, *sets, '/parallel/pipeline=16'), [])

    def test_tokens_as_samples(self):
        got = self.warnings(os.path.join(SCENARIOS, 'fsdp.json'), '/model/batch_size=4194304')
        self.assertEqual(len(got), 1)
        self.assertIn('the batch has 1024 samples of 4096', got[0])


class Shipped(Case):
    def test_no_warnings(self):
        """Users copy these scenarios, so none of them may give a warning."""
        for name in sorted(n for n in os.listdir(SCENARIOS) if n.endswith('.json')):
            done = run('check', os.path.join(SCENARIOS, name))
            self.assertNotIn('warning', done.stderr, name)

    def test_scenarios(self):
        """All of them run, from anywhere, and resolve to a scenario with the same results."""
        names = sorted(n for n in os.listdir(SCENARIOS) if n.endswith('.json'))
        self.assertIn('uniform-gpipe.json', names)
        readme = read(os.path.join(SCENARIOS, 'README.md')).decode()
        for name in names:
            with self.subTest(name):
                path = os.path.join(SCENARIOS, name)
                self.assertIn(f'`{name}`', readme)
                resolved = write('resolved.json', run('check', path, '--resolved').stdout)
                self.assertEqual(run('check', resolved, '--resolved').stdout.encode(),
                                 read(resolved))
                if SANITIZED: # the test "hashes" runs them
                    continue
                done = run('run', path, '--no-output', '--json')
                self.expect(done, 0)
                result = json.loads(done.stdout)
                self.assertEqual(result['name'] + '.json', name)
                again = json.loads(run('run', resolved, '--no-output', '--json').stdout)
                self.assertEqual(again['hash'], result['hash'])

    def result(self, name, *sets):
        words = [word for s in sets for word in ('-s', s)]
        done = run('run', os.path.join(SCENARIOS, name + '.json'), '--no-output', '--json', *words)
        return json.loads(done.stdout)

    def test_textbook(self):
        """(M + P - 1)(f + b) = 11 * 3 s for both; 1F1B keeps min(P - s, M) activations of 1 GB."""
        for name, peaks in (('uniform-gpipe', [8, 8, 8, 8]), ('uniform-1f1b', [4, 3, 2, 1])):
            result = self.result(name)
            self.assertEqual(result['makespan_s'], 33)
            self.assertEqual([d['peak_activation_bytes'] / 1e9 for d in result['devices']], peaks)

    def test_contention(self):
        times = [self.result('pcie-contention', *sets)['iteration_time_s'] for sets in (
            ['/platform/sharing=none'], ['/platform/sharing=fifo'], ['/platform/sharing=max_min'],
            ['/platform/sharing=phi', '/platform/phi=2'],
            ['/platform/sharing=phi', '/platform/phi=count'])]
        self.assertEqual(min(times), times[0])
        self.assertLess(times[1], times[2])
        # one shared bridge of the same speed as each link: all shares are determined by the bridge
        self.assertEqual(times[2], times[4])

    def test_parameters(self):
        """Llama-2 7B as published (6,738,415,616); Mixtral 8x7B 46.7 billion, a token uses
        12.9 (Jiang et al., 2024, arXiv 2401.04088): with H = 4096, F = 14336, 1024 features of keys
        and of values, 32 layers."""
        self.assertEqual(self.result('fsdp')['model_parameters'], 6738415616)
        self.assertNotIn('active_parameters', self.result('fsdp'))
        result = self.result('mixtral-8x7b-64')
        expert, rest = 3 * 4096 * 14336, 2 * 4096**2 + 2 * 4096 * 1024 + 8 * 4096 + 2 * 4096
        for key, experts in (('model_parameters', 8), ('active_parameters', 2)):
            self.assertEqual(result[key], 32 * (experts * expert + rest) + 2 * 32000 * 4096 + 4096)

    def test_gradients_of_zero(self):
        """ZeRO's table 1 (arXiv 1910.02054): whole up to stage 1, a share from stage 2 on. Llama-2
        7B has 32 layers of 4 H^2 + 3 H F + 2 H weights, and in addition 2 V H + H; in addition to
        its share a device has the layer that computes its gradients and the layer that sends
        them."""
        hidden, ffn, vocabulary = 4096, 11008, 32000
        layer = 2 * (4 * hidden**2 + 3 * hidden * ffn + 2 * hidden)
        whole = 32 * layer + 2 * (2 * vocabulary * hidden + hidden)
        for zero, expected in ((0, whole), (1, whole), (2, whole / 32 + 2 * layer),
                               (3, whole / 32 + 2 * layer)):
            for micro_batches in (1, 2):
                device = self.result('fsdp', f'/parallel/zero={zero}',
                                     f'/schedule/micro_batches={micro_batches}')['devices'][0]
                self.assertEqual(device['category_peak_bytes']['gradients'], expected,
                                 (zero, micro_batches))

    def test_out_of_memory(self):
        result = self.result('out-of-memory')
        self.assertEqual([d['out_of_memory'] is not None for d in result['devices']],
                         [True, False, False, False])
        self.assertFalse(self.result('out-of-memory', '/schedule/kind=1f1b')['out_of_memory'])


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *WORDS[2:]])

#!/usr/bin/env python3
"""A build without the figures of papers: test-without-papers.py SOURCE_ROOT

It is configured with -Dpapers=disabled: no file of `papers` is compiled, no other file includes
one, and the list of commands, which is compiled, does not know the command. With SIM_TESTS=long
the program is built, and run.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv[1])
SKIPPED = 77
OFF = ('papers', 'tests', 'cuda', 'nccl', 'mpi', 'openblas')


def run(*words, cwd=None, status=0):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(f'{words}: status {done.returncode}: {done.stdout}{done.stderr}')
    return done.stdout + done.stderr


class WithoutPapers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='sim-without-papers-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        said = run('meson', 'setup', cls.folder, ROOT, *(f'-D{name}=disabled' for name in OFF))
        cls.summary = re.search(r'figures of papers\s*: (\w+)', said)[1]

    def test_sources(self):
        self.assertEqual(self.summary, 'NO')
        targets = json.loads(run('meson', 'introspect', '--targets', self.folder))
        sources = [os.path.relpath(source, ROOT) for target in targets
                   for group in target['target_sources'] for source in group['sources']]
        self.assertIn('sim/cli/commands.c', sources)
        self.assertEqual([s for s in sources if s.startswith('papers/') or 'figures.c' in s
                          and s.startswith('sim/cli/')], [])
        for source in (s for s in sources if s.endswith('.c') and not s.startswith('..')):
            with open(os.path.join(ROOT, source), encoding='utf-8') as file:
                self.assertNotIn('#include "papers/', file.read(), source)

    def test_commands(self):
        done = run('ninja', '-C', self.folder, '-t', 'targets', 'all')
        name = re.search(r'^(\S*commands\.c\.o):', done, re.MULTILINE)[1]
        run('ninja', '-C', self.folder, name)
        symbols = run('nm', os.path.join(self.folder, name))
        self.assertIn('cs_command_run', symbols)
        self.assertNotIn('figures', symbols)

    @unittest.skipUnless(os.environ.get('SIM_TESTS') == 'long', 'builds the whole program')
    def test_program(self):
        run('ninja', '-C', self.folder, 'sim/cli/sim')
        sim = os.path.join(self.folder, 'sim/cli/sim')
        self.assertNotIn('figures and tables of five papers', run(sim, 'help'))
        self.assertIn('unknown command "figures"', run(sim, 'figures', status=2))
        scenario = os.path.join(ROOT, 'scenarios', 'uniform-gpipe.json')
        self.assertIn('makespan', run(sim, 'run', scenario, '--no-output'))


if __name__ == '__main__':
    if not (shutil.which('meson') and shutil.which('ninja')):
        print('skipped: meson or ninja is missing')
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""What `meson install` brings: test-installed.py CHECK_LINKS BUILD_ROOT [PYTHON]

Installs into an empty folder, and looks there for all files that the program and its pages name.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECK, BUILD = (os.path.abspath(word) for word in sys.argv[1:3])
PYTHON = sys.argv[3] if len(sys.argv) > 3 else sys.executable  # that the package is for
EXAMPLE = os.path.join(os.path.dirname(CHECK), '../sim/library/example.c')


def run(*words, **how):
    return subprocess.run(words, text=True, capture_output=True, check=False, **how)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='sim-installed-')
        cls.addClassCleanup(cls.folder.cleanup)
        done = run('meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet',
                   env=dict(os.environ, DESTDIR=cls.folder.name))
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        cls.share, = glob.glob(cls.folder.name + '/**/share/sim', recursive=True)
        cls.sim, = glob.glob(cls.folder.name + '/**/bin/sim', recursive=True)

    def test_links(self):
        """Pages, pictures and headings that pages link to, and pages that they name."""
        done = run(sys.executable, CHECK, self.share)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn('all lead somewhere', done.stdout)

    def test_named(self):
        """What help and messages name: "docs/how-to/sweeps.md", "scenarios/custom.json"."""
        commands = re.findall(r'^  (\w+) ', run(self.sim, '--help').stdout, re.MULTILINE)
        text = run(self.sim, 'list').stdout + run(self.sim, 'man').stdout.replace('\\-', '-')
        text += ''.join(run(self.sim, 'help', command).stdout for command in commands)
        with open(self.sim, 'rb') as file: # messages, too
            text += file.read().decode('ascii', errors='replace')
        pattern = (
            r'(?<![\w./-])((?:docs|scenarios|schedules|topologies)/[\w./-]+\.(?:md|json)'
            r'|facts/devices/)')
        named = set(re.findall(pattern, text))
        for path in glob.glob(self.share + '/facts/points/*.json'):  # name files of their sources
            with open(path, encoding='utf-8') as file:
                named -= set(re.findall(pattern, file.read()))
        self.assertGreater(len(named), 8)
        self.assertEqual([name for name in sorted(named)
                          if not os.path.exists(os.path.join(self.share, name))], [])

    def test_scenarios(self):
        """They run where they were installed, with the models that they name."""
        names = sorted(glob.glob(self.share + '/scenarios/*.json'))
        self.assertGreater(len(names), 20)
        for name in names:
            done = run(self.sim, 'check', name, '--json')
            self.assertEqual((done.returncode, json.loads(done.stdout)['valid']), (0, True), name)

    def test_library(self):
        """The example links with the shared library and with the archive, with the flags that
        pkg-config says."""
        if not (shutil.which('cc') and shutil.which('pkg-config')):
            self.skipTest('needs cc and pkg-config')
        found, = glob.glob(self.folder.name + '/**/clustersim.pc', recursive=True)
        archive, = glob.glob(self.folder.name + '/**/libclustersim.a', recursive=True)
        paths = os.pathsep.join(
            filter(None, (os.path.dirname(found), os.environ.get('PKG_CONFIG_PATH'))))
        flags = {}
        for static in ([], ['--static']):
            done = run('pkg-config', '--cflags', '--libs', *static, 'clustersim',
                       env=dict(os.environ, PKG_CONFIG_PATH=paths))
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(found, encoding='utf-8') as file:
                prefix = re.search('^prefix=(.*)$', file.read(), re.MULTILINE).group(1)
            flags[bool(static)] = [word.replace(prefix, self.folder.name + prefix, 1)
                                   if word.startswith(('-I' + prefix, '-L' + prefix)) else word
                                   for word in done.stdout.split()]
        flags[True] = [archive if word == '-lclustersim' else word for word in flags[True]]
        scenario = self.share + '/scenarios/vgg16-gpipe.json'
        said = []
        for static, words in flags.items():
            program = f'{self.folder.name}/example-{static}'
            done = run('cc', EXAMPLE, *words, '-o', program)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = run(program, scenario,
                       env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(archive)))
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            said.append(done.stdout)
        self.assertEqual(said[0], said[1])
        self.assertEqual(len(said[0].splitlines()), 5)

    def test_python(self):
        """The package knows where library and program will be, and works with them."""
        found = glob.glob(self.folder.name + '/**/clustersim/_installed.py', recursive=True)
        if not found:
            self.skipTest('the package was not installed')
        prefix = self.sim[len(self.folder.name):-len('/bin/sim')]
        where = os.path.dirname(os.path.dirname(found[0]))[len(self.folder.name):]
        looked = run(PYTHON, '-c',
                     'import site; print(*site.getsitepackages(), sep="\\n")').stdout.split()
        if any(folder.startswith(prefix + '/') for folder in looked):
            self.assertIn(where, looked)
        places = {}
        with open(found[0], encoding='utf-8') as file:
            exec(file.read(), places)
        library, program = (self.folder.name + places[key] for key in ('LIBRARY', 'PROGRAM'))
        self.assertEqual(program, self.sim)
        env = dict(os.environ, CLUSTERSIM_LIBRARY=library, CLUSTERSIM_PROGRAM=program,
                   PYTHONPATH=os.path.dirname(os.path.dirname(found[0])))
        scenario = self.share + '/scenarios/vgg16-gpipe.json'
        done = run(sys.executable, '-c', 'import sys, clustersim as c; '
                   'print(c.__file__, c.run(sys.argv[1]).hash)', scenario, env=env)
        self.assertEqual(done.stderr, '')
        package, made = done.stdout.split()
        self.assertEqual(package, os.path.dirname(found[0]) + '/__init__.py')
        self.assertIn('hash ' + made, run(self.sim, 'run', scenario, '-o',
                                          self.folder.name + '/run.h5').stdout)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""What `meson install` brings: test-installed.py CHECK_LINKS BUILD_ROOT

Installs into an empty folder, and looks there for what the program and its pages name.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

CHECK, BUILD = (os.path.abspath(word) for word in sys.argv[1:3])


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
        named = set(re.findall(r'(?<![\w./-])((?:docs|scenarios|schedules|topologies)/[\w./-]+\.(?:md|json)|'
                               r'devices/)', text))
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


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

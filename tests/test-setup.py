#!/usr/bin/env python3
"""setup.sh in a small project of its own: test-setup.py SOURCE_ROOT

Nothing is installed: the apt-get that it finds fails.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.abspath(sys.argv[1])
SKIPPED = 77

FILES = {
    'meson.build': "project('small', 'c', meson_version: '>= 0.61')\nexecutable('small', "
                   "'small.c')\n",
    'meson_options.txt': "option('tests', type: 'feature', value: 'auto')\n"
                         "option('word', type: 'string', value: 'default')\n",
    'small.c': 'int main(void) { return 0; }\n',
}


def folder_of(project):
    with open(os.path.join(project, 'build/meson-info/meson-info.json'), encoding='utf-8') as file:
        return json.load(file)['directories']['build']


def option_of(project, name):
    done = subprocess.run(['meson', 'introspect', '--buildoptions', os.path.join(project, 'build')],
                          capture_output=True, text=True, check=True)
    return next(o['value'] for o in json.loads(done.stdout) if o['name'] == name)


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        tools = os.path.join(self.folder, 'tools')
        os.mkdir(tools)
        with open(os.path.join(tools, 'apt-get'), 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\nexit 1\n')
        os.chmod(file.name, 0o755)
        self.environment = {**os.environ, 'PATH': tools + ':' + os.environ['PATH']}
        self.first = self.project('first')

    def path(self, name):
        return os.path.join(self.folder, name)

    def project(self, name):
        os.mkdir(self.path(name))
        for file, text in FILES.items():
            with open(os.path.join(self.path(name), file), 'w', encoding='utf-8') as out:
                out.write(text)
        shutil.copy(os.path.join(ROOT, 'setup.sh'), self.path(name))
        self.setup_in(self.path(name))
        return self.path(name)

    def setup_in(self, project):
        done = subprocess.run(['./setup.sh'], cwd=project, capture_output=True, text=True,
                              check=False, timeout=120, env=self.environment)
        if 'missing, and cannot be installed' in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(folder_of(project), os.path.join(project, 'build'))
        self.assertTrue(os.access(os.path.join(project, 'build/small'), os.X_OK))
        return done.stderr

    def age(self, project):
        """As in a copy whose build folder is older than the sources."""
        past = time.time() - 1000
        os.utime(os.path.join(project, 'build/build.ninja'), (past, past))

    def test_second_time_is_quick(self):
        self.assertNotIn('meson', self.setup_in(self.first))

    def test_copied(self):
        subprocess.run(['meson', 'configure', os.path.join(self.first, 'build'), '-Dword=other'],
                       check=True, capture_output=True)
        before = os.stat(os.path.join(self.first, 'build/build.ninja')).st_mtime_ns
        shutil.copytree(self.first, self.path('second'))
        self.age(self.path('second'))
        with open(self.path('second/build/results.h5'), 'w', encoding='utf-8') as file:
            file.write('of the user')
        said = self.setup_in(self.path('second'))
        self.assertIn("setup: build/ was set up as '%s/build'; setting it up anew" % self.first,
                      said)
        self.assertEqual(option_of(self.path('second'), 'word'), 'other')
        with open(self.path('second/build-moved/results.h5'), encoding='utf-8') as file:
            self.assertEqual(file.read(), 'of the user')
        self.assertEqual(os.stat(os.path.join(self.first, 'build/build.ninja')).st_mtime_ns, before)
        self.assertNotIn('anew', self.setup_in(self.path('second')))

    def test_moved(self):
        os.rename(self.first, self.path('gone f\u00fcr good'))
        self.assertIn('anew', self.setup_in(self.path('gone f\u00fcr good')))
        self.assertNotIn('anew', self.setup_in(self.path('gone f\u00fcr good')))

    def test_by_another_name(self):
        os.symlink(self.first, self.path('link'))
        done = subprocess.run(['./setup.sh'], cwd=self.path('link'), capture_output=True, text=True,
                              check=False, timeout=120, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn('anew', done.stderr)


if __name__ == '__main__':
    if not (shutil.which('meson') and shutil.which('ninja')):
        print('skipped: meson or ninja is missing')
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])

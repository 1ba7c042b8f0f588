#!/usr/bin/env python3
"""Use of uninitialised values: valgrind.py BUILD ROOT [--only WORD ...] [--limit S]

Runs the unit tests of a build, and sim on the scenarios of the tree, under Valgrind, and prints
each use of an uninitialised value and each invalid access to memory. Commands that exceed the limit
are stopped and counted. The build must have no sanitizers.
"""
import argparse
import concurrent.futures
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

FOUND = 99
VALGRIND = ('valgrind', '-q', '--error-exitcode=99', '--leak-check=no', '--num-callers=20',
            '--track-origins=no', '--fair-sched=try')


class Campaign:
    def __init__(self, asked):
        self.asked, self.found, self.slow, self.done = asked, [], [], 0

    def try_one(self, name, words):
        """Runs a command in a folder of its own; whether it succeeds does not matter."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (self.asked.limit, self.asked.limit))

        with tempfile.TemporaryDirectory(prefix='sim-valgrind-') as folder:
            made = subprocess.run([*VALGRIND, *words], capture_output=True, text=True,
                                  errors='replace', check=False, cwd=folder, preexec_fn=limit)
        lines = [line for line in made.stderr.splitlines() if line.startswith('==')]
        if made.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
            self.slow.append(name)
        elif made.returncode >= 0:
            self.done += 1
        if made.returncode == FOUND or lines:
            self.found.append(name)
            print(f'{name}: {made.returncode}\n' + '\n'.join(lines[:60]) + '\n', flush=True)

    def jobs(self):
        """Returns the names and command lines of the jobs."""
        build, root = self.asked.build, self.asked.root
        sim = os.path.join(build, 'sim/cli/sim')
        scenarios = sorted(glob.glob(os.path.join(root, 'scenarios/**/*.json'), recursive=True))
        scenarios += self.asked.more
        for path in sorted(glob.glob(os.path.join(build, 'tests/test-*'))):
            if os.path.isfile(path) and os.access(path, os.X_OK):
                yield os.path.basename(path), [path]
        for path in scenarios:
            name = os.path.relpath(path, root)
            yield f'check {name}', [sim, 'check', path]
            yield f'run {name}', [sim, 'run', path, '-o', 'a.h5']
            yield f'run {name} --allocator', [sim, 'run', path, '--no-output', '--allocator',
                                              'pytorch', '--json']
        for path in scenarios:
            yield (f'advise {os.path.relpath(path, root)}',
                   [sim, 'advise', path, '--budget', '5s', '-j', '1'])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('build', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('--only', nargs='+', default=[''], help='words; one is in the name')
    parser.add_argument('--more', nargs='+', default=[], type=os.path.abspath,
                        help='more scenarios')
    parser.add_argument('--limit', type=int, default=300, help='s of CPU time for each')
    parser.add_argument('-j', '--jobs', type=int, default=os.cpu_count())
    asked = parser.parse_args()
    if not shutil.which('valgrind'):
        print('no valgrind')
        return 77
    campaign = Campaign(asked)
    jobs = [job for job in campaign.jobs() if any(word in job[0] for word in asked.only)]
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for _ in pool.map(lambda job: campaign.try_one(*job), jobs):
            pass
    print(f'{campaign.done} commands: {", ".join(campaign.found) or "nothing"}')
    if campaign.slow:
        print(f'{len(campaign.slow)} took too long: {", ".join(campaign.slow)}')
    return bool(campaign.found)


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Fuzz targets: fuzz.py BUILD ROOT [--seconds SECONDS] [--only PARSER...] [--merge]

Runs each parser of a build with libFuzzer and sanitizers (CONTRIBUTING.md says how to make one) for
SECONDS of CPU time, and prints its share, the number of inputs tried and the errors that were
found. Successful inputs stay in BUILD/found/PARSER, so that a later run goes on from
there; what fails is BUILD/found/PARSER-*. With --merge the inputs that reach new code go into the
corpus, up to 100 in all.
"""
import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MOST_INPUTS = 100  # of a corpus, as the tests that replay it ask for
SLOW = 20  # s that an input may take
MEMORY = 2048  # MiB that a target may have
SETTINGS = {'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',  # which only tells otherwise
            'ASAN_OPTIONS': 'detect_leaks=1:allocator_may_return_null=1'}


def cpu_seconds(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            fields = file.read().rpartition(') ')[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def has_ended(pid):
    """Its metrics are still available."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class Target:
    """A parser and its folders."""

    def __init__(self, asked, name):
        self.name = name
        self.program = os.path.join(asked.build, 'tests/fuzz', f'fuzz-{name}')
        self.corpus = os.path.join(asked.root, 'tests/fuzz/corpus', name)
        self.found = os.path.join(asked.build, 'found', name)
        os.makedirs(self.found, exist_ok=True)

    def start(self, log, *words):
        return subprocess.Popen(
            [self.program, f'-rss_limit_mb={MEMORY}', f'-timeout={SLOW}', *words],
            env={**os.environ, **SETTINGS}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def run(self, seconds):
        """CPU seconds that it got, inputs that it tried, whether all went well."""
        with open(f'{self.found}.log', 'wb') as log:
            process = self.start(log, '-print_final_stats=1', '-reload=0',
                                 f'-artifact_prefix={self.found}-', self.found, self.corpus)
            while (used := cpu_seconds(process.pid)) < seconds and not has_ended(process.pid):
                time.sleep(min(1, 0.1 + (seconds - used) / 2))
            os.kill(process.pid, signal.SIGUSR1)  # it tells what it did, and ends
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        with open(f'{self.found}.log', encoding='utf-8', errors='replace') as log:
            tried = re.findall(r'number_of_executed_units: (\d+)', log.read())
        n_tried = int(tried[-1]) if tried else 0
        return usage.ru_utime + usage.ru_stime, n_tried, process.returncode == 0

    def merge(self):
        """Adds as few inputs to the corpus as reach all of the new code; how many those are."""
        with tempfile.TemporaryDirectory(prefix='sim-fuzz-') as folder:
            both = os.path.join(folder, 'both')
            shutil.copytree(self.corpus, both)
            with open(f'{self.found}.merge.log', 'wb') as log:
                self.start(log, '-set_cover_merge=1', '-use_counters=0', both, self.found).wait()
            new = [path for path in glob.glob(os.path.join(both, '*'))
                   if not os.path.exists(os.path.join(self.corpus, os.path.basename(path)))]
            room = MOST_INPUTS - len(os.listdir(self.corpus))
            taken = sorted(new, key=lambda path: (os.path.getsize(path), path))[:max(room, 0)]
            for path in taken:
                shutil.copy(path, self.corpus)
        return len(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('build', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('--seconds', type=float, default=600, help='of CPU time, each parser')
    parser.add_argument('--only', nargs='+', help='parsers')
    parser.add_argument('--merge', action='store_true', help='new inputs into the corpus')
    asked = parser.parse_args()
    wrong = []
    for name in asked.only or sorted(os.listdir(os.path.join(asked.root, 'tests/fuzz/corpus'))):
        target = Target(asked, name)
        seconds, tried, well = target.run(asked.seconds)
        if not well:
            wrong.append(name)
        print(f'{name}: {seconds:.0f} s of CPU time, {tried} inputs, '
              f'{len(glob.glob(target.found + "-*"))} found'
              + (f', {target.merge()} more in the corpus' if asked.merge else ''), flush=True)
    for name in wrong:
        print(f'{name}: see {os.path.join(asked.build, "found", name)}.log')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

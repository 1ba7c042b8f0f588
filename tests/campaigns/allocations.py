#!/usr/bin/env python3
"""Memory that cannot be had: allocations.py SIM ROOT LIBRARY [-n TRIES] [--copies COPIES]
[--stacks N] [--only COMMAND]

Each command is run again and again, and each time another of its allocations fails (LIBRARY is
fail-malloc.c). Then it says so and ends with 1, without a part of an output; or, where it can do
without what it asked for, its output is what it always is. It never crashes, hangs or blames its
input.

Then each command that can do without a file is run once more, and at its allocations copies of the
process are made, and the allocation fails there: a hundred times as many tries in the same time.

With --stacks N, copies are made where a call stack allocates for the 1st, 2nd, 4th, ..., Nth time.
A search for plans allocates 110,000 times on 2,900 call stacks: this tries each of them, with a
tenth of the copies.
"""
import argparse
import collections
import concurrent.futures
import os
import shlex
import subprocess
import sys
import tempfile

LIMIT = 60  # s
FIRST = 8  # allocations that are always tried
COMMANDS = {  # SCENARIO is a small one, RUN its results
    'run': 'run SCENARIO -o OUT.h5',
    'low memory': 'run SCENARIO --no-output --low-memory -s /platform/sharing=none',
    'check': 'check SCENARIO',
    'plan': 'plan SCENARIO -o OUT.json',
    'search': 'plan PLANNED -o OUT.json',
    'plot': 'plot RUN -o OUT.svg',
    'trace': 'export trace RUN -o OUT.json',
    'topology': 'export topology SCENARIO -o OUT.json',
    'compare': 'compare RUN RUN -o OUT.svg',
    'model': 'model resnet18 --device v100 -o OUT.json',
    'sweep': 'sweep SCENARIO --vary /schedule/micro_batches=4,8 -o OUT.h5 -j 1',
    'runs': 'run NOISY --runs 3 -j 1 -o OUT.h5',
    'report': 'report RUN -o OUT.html',
    'validate': 'validate POINTS -j 1 -o OUT.h5',
    'advise': 'advise NAMED -j 1 --most 3 -o OUT.h5',
    'import': 'import nccl-tests LOG --date 2026-01-01 -o OUT.json',
    'description': 'import run POINTS -o OUT.json',
    'timeline': 'export trace RUN -o OUT.pftrace',
}
# The same without files. Of those that start threads a copy has one only (fail-malloc.c).
COPIED = {
    'run': 'run SCENARIO --no-output',
    'low memory': 'run SCENARIO --no-output --low-memory -s /platform/sharing=none',
    'check': 'check SCENARIO --resolved',
    'plan': 'plan SCENARIO',
    'search': 'plan PLANNED',
    'topology': 'export topology SCENARIO',
    'compare': 'compare RUN RUN',
    'model': 'model resnet18 --device v100',
    'sweep': 'sweep SCENARIO --vary /schedule/micro_batches=4,8 --no-output --json -j 1',
    'runs': 'run NOISY --runs 3 -j 1 --no-output',
    'validate': 'validate POINTS -j 1 --json',
    'description': 'import run POINTS',
    'advise': 'advise NAMED -j 1 --most 3',
}
HANDED_OVER = 111  # what a copy of a thread ends with when it did its part
PLANNED = '''{"schema_version": 1, "model": {"uniform": {"layers": 6, "forward": "1 ms", "backward":
 "2 ms", "weights": "1 MB", "activation": "1 MB"}}, "platform": {"topology": "ring", "devices": 3,
 "bandwidth": "1 GB/s"}, "schedule": {"kind": "periodic", "micro_batches": 4}}'''
NAMED = '''{"schema_version": 1, "model": {"name": "vgg16", "batch_size": 16, "device": "v100"},
 "platform": {"topology": "ring", "devices": 2, "bandwidth": "1 GB/s"},
 "schedule": {"kind": "1f1b", "micro_batches": 2}, "runtime": "ideal"}'''
POINTS = '''{"schema": "truth/1", "dataset": "made", "points": [{"id": "made/1", "parallel": {"pp":
 2}, "features": ["pp"], "hardware": {"gpu": "A100-SXM4-80GB", "gpus": 2, "gpus_per_node": 8},
 "batch": {"global": 8, "micro": 1}, "model": {"name": "gpt", "kind": "decoder", "layers": 2,
 "hidden": 256, "heads": 4, "ffn": 1024, "vocab": 1000, "seq": 128, "act": "gelu", "norm":
 "layernorm", "pos": "learned", "tied": true, "bias": true}, "precision": "fp16", "recompute":
 "none", "schedule": "1f1b", "framework": "Megatron-LM", "measured": {"step_time_s": 0.01}}]}'''
SMALL = PLANNED.replace('"periodic"', '"1f1b"')
NOISY = SMALL.replace('"devices"', '"jitter": {"mean": 0.1}, "devices"')


def fill(words, **more):
    """Replaces placeholders by names of files."""
    names = {'SCENARIO': 'small.json', 'PLANNED': 'planned.json', 'NOISY': 'noisy.json',
             'RUN': 'run.h5', 'NAMED': 'named.json', 'POINTS': 'points.json', **more}
    return [names.get(word, word) for word in words]


class Command:
    """One way to call sim, and what it does when all is well."""

    def __init__(self, asked, name, words):
        self.asked, self.name, self.words = asked, name, shlex.split(words)
        self.output = next((w[3:] for w in self.words if w.startswith('OUT.')), None)
        self.count = self.noticed = 0
        made, self.bytes = self.run('count', FAIL_COUNT=f'{name}.count')
        self.said = self.shown(made, 'count')
        if made.returncode != 0:
            sys.exit(f'{name}: {made.stderr}')
        with open(f'{name}.count', encoding='ascii') as file:
            self.count = int(file.read())
        if self.count < 10:
            sys.exit(f'{name}: {self.count} allocations were seen: {asked.library} does not work')

    def run(self, mark, **more):
        path = f'{self.name}-{mark}{self.output or ""}'
        words = [path if w.startswith('OUT.') else w for w in fill(self.words, LOG=self.asked.log)]
        made = subprocess.run([self.asked.sim, *words], capture_output=True, timeout=LIMIT,
                              check=False,
                              env={**os.environ, 'LD_PRELOAD': self.asked.library, **more})
        written = None
        if self.output and os.path.exists(path):
            with open(path, 'rb') as file:
                written = file.read()
            os.remove(path)
        return made, written

    def shown(self, made, mark):
        """What it printed, whatever its output is called."""
        return made.stdout.decode(errors='replace').replace(f'{self.name}-{mark}', 'out')

    def problem(self, at):
        """None, or what is wrong when allocation `at` fails; counts those that were noticed."""
        try:
            made, written = self.run(at, FAIL_AT=str(at))
        except subprocess.TimeoutExpired:
            return 'hangs'
        said = made.stderr.decode(errors='replace')
        if made.returncode == 0:
            if self.shown(made, at) != self.said:
                return 'ends with 0, and prints something else'
            return None if written == self.bytes else 'ends with 0, with another output'
        self.noticed += made.returncode == 1
        if made.returncode != 1:
            return f'ends with {made.returncode}: {said[-100:]}'
        if written not in (None, self.bytes):  # the whole one: what failed came later
            return 'leaves another output'
        return None if 'memory' in said else f'does not say why: {said[-100:]}'


def read_copies(path):
    """(allocation, exit status or minus a signal, its message if that was wrong) of each copy."""
    found = []
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in file:
            words = line.split()
            if len(words) == 4 and words[0] == 'try':
                found.append((int(words[1]), int(words[2]), []))
            elif found:
                found[-1][2].append(line.rstrip())
    return found


def copy(asked, name, wrong):
    """Runs the command once, with copies; prints and adds what is wrong."""
    words = [asked.sim, *fill(shlex.split(COPIED[name]))]
    plain, failing = dict(os.environ), {**os.environ, 'LD_PRELOAD': asked.library}
    usual = subprocess.run(words, capture_output=True, check=True, env=plain).stdout
    subprocess.run(words, capture_output=True, check=True, env={**failing, 'FAIL_COUNT': 'count'})
    with open('count', encoding='ascii') as file:
        count = int(file.read())
    step = max(1, count // asked.copies) if asked.copies else 1
    which = {'FAIL_STACKS': str(asked.stacks)} if asked.stacks else {'FAIL_EVERY': str(step)}
    made = subprocess.run(words, capture_output=True, check=False,
                          env={**failing, 'FAIL_EACH': f'{name}.copies', **which})
    if made.returncode != 0 or made.stdout != usual:
        wrong[name, f'the process that was copied ends with {made.returncode}'].append(0)
    copies = read_copies(f'{name}.copies')
    for at, code, said in copies:
        if code not in (0, 1, HANDED_OVER) or said:
            wrong[name, f'a copy ends with {code}: ' + '\n    '.join(said)].append(at)
    told = sum(code == 1 for _, code, _ in copies)
    print(f'{name}: {len(copies)} copies at {count} allocations, {told} of them told, '
          f'{sum(len(at) for (of, _), at in wrong.items() if of == name)} wrong', flush=True)
    if told < len(copies) // 20:
        wrong[name, 'too few were noticed'].append(len(copies))


def attack(asked, name, wrong):
    """Runs the command once for each try; prints and adds what is wrong."""
    command = Command(asked, name, COMMANDS[name])
    step = max(1, command.count // asked.n) if asked.n else 1
    # where a command finds out what its input is, a wrong turn blames the input
    tries = sorted({*range(1, FIRST + 1), *range(1, command.count + 1, step)})
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for at, problem in zip(tries, pool.map(command.problem, tries)):
            if problem:
                wrong[name, problem].append(at)
    print(f'{name}: {len(tries)} of {command.count} allocations made to fail, {command.noticed} of '
          f'them told, {sum(len(at) for (of, _), at in wrong.items() if of == name)} wrong',
          flush=True)
    if command.noticed < len(tries) // 20:
        wrong[name, 'too few were noticed'].append(len(tries))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('library', type=os.path.abspath)
    parser.add_argument('-n', type=int, default=30,
                        help='tries of each command; 0: every allocation')
    parser.add_argument('--copies', type=int,
                        help='of each command; 0: at every allocation; default: 50 times -n')
    parser.add_argument('--stacks', type=int, metavar='N',
                        help='copies at each call stack, up to its Nth time, in place of --copies')
    parser.add_argument('--only', choices=COMMANDS)
    asked = parser.parse_args()
    asked.copies = 50 * asked.n if asked.copies is None else asked.copies
    asked.log = os.path.join(asked.root, 'calib/measured/all-reduce-8.log')
    wrong = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix='sim-campaign-') as folder:
        os.chdir(folder)
        for name, text in (('small', SMALL), ('planned', PLANNED), ('noisy', NOISY),
                           ('named', NAMED),
                           ('points', POINTS)):
            with open(f'{name}.json', 'w', encoding='utf-8') as file:
                file.write(text)
        subprocess.run([asked.sim, 'run', 'small.json', '-o', 'run.h5'], check=True,
                       capture_output=True)
        for name in [asked.only] if asked.only else COMMANDS:
            attack(asked, name, wrong)
            if name in COPIED:
                copy(asked, name, wrong)
    for (name, problem), at in wrong.items():
        print(f'{name}: {problem} (allocation '
              f'{", ".join(map(str, at[:8]))}{", ..." * (len(at) > 8)})')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

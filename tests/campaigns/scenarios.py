#!/usr/bin/env python3
"""Mutants of whole scenarios: scenarios.py SIM ROOT [-n MUTANTS] [--first N] [-j JOBS] [--memory
MIB] [--keep FOLDER]

Each shipped scenario with some places changed: keys and elements deleted, doubled, exchanged, moved
elsewhere, values of other scenarios, extreme numbers, other types. Mutant N is always the same.
What sim does with it ends within 10 s and 1 GB by an exit code from 0 to 4; or it is long work,
which Ctrl-C ends at once. It never crashes. With a program that has sanitizers, --memory 0: they
map more than any limit.
"""
import argparse
import collections
import concurrent.futures
import copy
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile

LIMIT = 10  # s
ENDING = 5  # s after Ctrl-C, on a busy machine
NUMBERS = (0, 1, -1, 2, 3, 7, 0.5, -0.5, 1e-300, 1e300, 5e-324, 1.7976931348623157e308, 255, 256,
           1000, 65535, 65536,
           1e6, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 1e12, 2**53, 2**53 + 2, 2**63 - 1, 2**63, 2**64,
           1e18, 1e30)
TEXTS = ('', ' ', '0', '1', '-1 s', '1 ps', '1e30 s', '1e-30 s', '0 B', '1 B',
         '9223372036854775807 B', '1e300 GB/s', '1 bit/s', 'none', 'auto', 'ideal', 'count', 'adam',
         'fp8', '1f1b', 'nan', 'inf', '../facts/layers/vgg16.json', '1..64..x2')
OTHERS = (None, True, False, [], {}, [[]], [{}], {'': 0}, [0] * 100)
COMMANDS = (*(('run', '--no-output'),) * 6, ('run', '--no-output', '--json', '--runs', '2', '-j',
                                             '1'),
            ('check', '--resolved'), ('plan',), ('advise', '--most', '2', '-j', '1'))


def places(value, path=()):
    """Paths of all values but the whole."""
    members = value.items() if isinstance(value,
                                          dict) else enumerate(value) if isinstance(value,
                                                                                    list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


def parent(document, path):
    for key in path[:-1]:
        document = document[key]
    return document


def extreme(draw):
    return copy.deepcopy(draw.choice(draw.choices((NUMBERS, TEXTS, OTHERS), (6, 3, 2))[0]))


def near(value, draw):
    """A number near a correct one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return extreme(draw)
    return draw.choice((value + 1, value - 1, value * 2, value / 2, -value, value * 1000,
                        float(value), str(value)))


class Mutants:
    """Makes them from scenarios, by name."""

    def __init__(self, root):
        self.documents, self.values = {}, {}
        for at, _, names in sorted(os.walk(os.path.join(root, 'scenarios'))):
            for name in sorted(names):
                if name.endswith('.json'):
                    path = os.path.join(at, name)
                    with open(path, encoding='utf-8') as file:
                        document = json.load(file)
                    if 'schedule' in document:
                        self.documents[os.path.relpath(path, root)] = document
        for document in self.documents.values():
            for path in places(document):
                self.values.setdefault(path[-1], []).append(parent(document, path)[path[-1]])

    def change(self, document, draw):
        path = draw.choice(list(places(document)))
        within, key = parent(document, path), path[-1]
        kind = draw.randrange(8)
        if kind == 0:
            del within[key]
        elif kind == 1 and isinstance(within, list):
            within.insert(key, copy.deepcopy(within[key]))
        elif kind == 1:  # under the name of another one
            within[draw.choice(list(within))] = copy.deepcopy(within[key])
        elif kind == 2:
            other = draw.choice(list(places(document)))
            if path != other[:len(path)] and other != path[:len(other)]:
                there = parent(document, other)
                within[key], there[other[-1]] = there[other[-1]], within[key]
        elif kind == 3:  # what stands under this name elsewhere
            within[key] = copy.deepcopy(draw.choice(self.values.get(key) or [extreme(draw)]))
        elif kind == 4:  # a key that stands elsewhere
            name = draw.choice([name for name in self.values if isinstance(name, str)])
            target = within if isinstance(within, dict) else document
            target[name] = copy.deepcopy(draw.choice(self.values[name]))
        else:
            within[key] = extreme(draw) if kind < 7 else near(within[key], draw)

    def make(self, number):
        """Name of the scenario, mutant, command."""
        draw = random.Random(f'mutant {number}')
        name = draw.choice(list(self.documents))
        document = copy.deepcopy(self.documents[name])
        for _ in range(draw.choice((1, 1, 2, 3, 5))):
            if document:
                self.change(document, draw)
        return name, document, draw.choice(COMMANDS)


class Run:
    def __init__(self, asked, mutants, folder):
        self.asked, self.mutants, self.folder = asked, mutants, folder
        self.ends = collections.Counter()

    def limit(self):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells ignore it in commands started with &
        if self.asked.memory:
            resource.setrlimit(resource.RLIMIT_AS,
                               (self.asked.memory << 20, self.asked.memory << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def one(self, number):
        """None, or what is wrong."""
        name, document, command = self.mutants.make(number)
        path = os.path.join(self.folder, os.path.dirname(name), f'mutant-{number}.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(document, file)
        words = [self.asked.sim, command[0], path, *command[1:]]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE,
                              preexec_fn=self.limit, cwd=self.folder) as process:
            try:
                said = process.communicate(timeout=LIMIT)[1]
                end = str(process.returncode)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                try:
                    said = process.communicate(timeout=ENDING)[1]
                    end = 'long' if process.returncode in (130, 0) else str(process.returncode)
                except subprocess.TimeoutExpired:
                    process.kill()
                    said, end = process.communicate()[1], 'hangs'
        said = said.decode(errors='replace')
        problem = None
        if end not in ('0', '1', '2', '3', '4',
                       'long') or 'Sanitizer' in said or 'runtime error' in said:
            problem = f'mutant {number} of {name}, {" ".join(command)}: {end}: {said[:1500]}'
        elif end != '0' and end != 'long' and 'error: ' not in said:
            problem = (
                f'mutant {number} of {name}, {" ".join(command)}: {end}, no message: {said[-200:]}')
        if (problem or end == 'long') and self.asked.keep:
            os.rename(path, os.path.join(self.asked.keep, f'{end}-{number}-{command[0]}.json'))
        elif os.path.exists(path):
            os.remove(path)
        self.ends[end] += 1
        return problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('-n', type=int, default=20000, help='mutants')
    parser.add_argument('--first', type=int, default=1)
    parser.add_argument('-j', type=int, default=2, help='at once')
    parser.add_argument('--memory', type=int, default=1000,
                        help='MiB that each may map; 0: no limit')
    parser.add_argument('--keep', type=os.path.abspath,
                        help='folder for those that are long, or fail')
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='sim-campaign-') as folder:
        mutants = Mutants(asked.root)
        for name in ('facts', 'calib'):  # what scenarios name
            os.symlink(os.path.join(asked.root, name), os.path.join(folder, name))
        folders = {os.path.dirname(name) for name in mutants.documents}
        for name in folders:  # all of them first: a link to one would lead into the tree
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        for name in folders:
            for entry in os.listdir(os.path.join(asked.root, name)):
                if not os.path.exists(os.path.join(folder, name, entry)):
                    os.symlink(os.path.join(asked.root, name, entry),
                               os.path.join(folder, name, entry))
        run = Run(asked, mutants, folder)
        with concurrent.futures.ThreadPoolExecutor(asked.j) as pool:
            wrong = []
            for problem in pool.map(run.one, range(asked.first, asked.first + asked.n)):
                if problem:
                    print(problem, flush=True)
                    wrong.append(problem)
    print(f'{asked.n} mutants of {len(mutants.documents)} scenarios ended by',
          ', '.join(f'{end}: {n}' for end, n in sorted(run.ends.items())))
    if run.ends['0'] < asked.n // 50 or run.ends['3'] < asked.n // 50:
        wrong.append('too few are right, or wrong')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Kills: kills.py SIM ROOT [-n KILLS] [--seed N] [--only COMMAND...]

Each command that writes is started again and again and gets SIGKILL, SIGTERM, SIGINT or SIGHUP at a
random moment. Each time: under final names there is what was there before or all of the new result;
unless it was SIGKILL, no temporary file is left; processes that it started end with it. In the end
the command runs undisturbed: the result is what it always is, byte by byte, also where it goes on
from the state of the killed ones, and nothing is left over.
"""
import argparse
import contextlib
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from processes import find, patient  # pylint: disable=wrong-import-position

ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE = 60  # s: of a command that was told to end, on a busy machine
ORPHANS = 5  # s until the processes that it started have ended, on a busy machine
EARLIER = b'{"schema_version": 1, "sources": []}\n'  # what calibrate may add to
MODEL = {'uniform': {'layers': 6, 'forward': '1 ms', 'backward': '2 ms', 'weights': '1 MB',
                     'activation': '1 MB'}}
LINKS = {'topology': 'ring', 'devices': 3, 'bandwidth': '1 GB/s'}
LONG = {'schema_version': 1, 'model': MODEL, 'platform': {**LINKS, 'jitter': {'mean': 0.1}},
        'schedule': {'kind': '1f1b', 'micro_batches': 1500}}
PLANNED = {'schema_version': 1, 'model': {'name': 'resnet50', 'batch_size': 8, 'device': 'v100'},
           'platform': {'topology': 'nvlink_switch', 'devices': 4, 'bandwidth': '12 GB/s'},
           'schedule': {'kind': 'periodic', 'micro_batches': 8}}
SMALL = {'schema_version': 1, 'model': {'name': 'vgg16', 'batch_size': 24, 'device': 'v100'},
         'platform': LINKS, 'schedule': {'kind': '1f1b', 'micro_batches': 4}}
TINY = {'schema_version': 1, 'platform': {**LINKS, 'devices': 2, 'blocking': True},
        'schedule': {'kind': '1f1b', 'micro_batches': 2},
        'model': {'name': 'vgg16', 'batch_size': 2, 'device': 'v100', 'granularity': 'block',
                  'parameters': {'image': 32, 'width': 1, 'dense': 8, 'classes': 4}}}
POINTS = {'schema': 'truth/1', 'dataset': 'made', 'points': [
    {'id': f'made/{i}', 'hardware': {'gpu': 'A100-SXM4-80GB', 'gpus': 2, 'gpus_per_node': 8},
     'model': {'name': 'gpt', 'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4,
               'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'gelu', 'norm': 'layernorm',
               'pos': 'learned', 'tied': True, 'bias': True},
     'parallel': {'pp': 2}, 'batch': {'global': 8 * i, 'micro': 1}, 'precision': 'fp16',
     'recompute': 'none', 'schedule': '1f1b', 'framework': 'Megatron-LM',
     'measured': {'step_time_s': 0.01 * i}, 'features': ['pp']} for i in range(1, 40)]}
COMMANDS = {
    'run': 'run long.json -o out.h5',
    'runs': 'run long.json --runs 8 -j 2 -s /schedule/micro_batches=60 -o out.h5',
    'plan': 'plan planned.json -o out.json',
    'plot': 'plot run.h5 -o out.svg',
    'trace': 'export trace long.h5 -o out.json.gz',
    'topology': 'export topology planned.json -o out.svg',
    'report': 'report run.h5 -o out.html',
    'compare': 'compare run.h5 other.h5 -o out.svg',
    'validate': 'validate points.json -j 2 -o out.h5',
    'sweep': 'sweep long.json -v /seed=1..40 -s /schedule/micro_batches=20 -j 2 -o out.h5',
    'advise': 'advise small.json -j 2 --exhaustive -o out.h5',
    'figures': 'figures --only cdp-fig2,timeprest-fig5 -j 2 -o out.figures',
    'calibrate': 'calibrate compute -m vgg16 -i 32 -p width=1 -p dense=8 -p classes=4 -b 1 '
                 '--share 1e-9 -t 0.4s -o out.json',
    'replay': 'replay tiny.json -r 2 -o out.h5',
}
RESUMED = ('sweep', 'advise', 'validate')  # by --resume
MEASURED = ('calibrate', 'replay')  # no two results are the same
SEAL = b'simseal1'


def contents(path):
    """The bytes under each final name of an output, a file or a folder, except hidden files."""
    found = {}
    names = [path] if os.path.isfile(path) else [
        os.path.join(at, name) for at, _, files in os.walk(path) for name in files]
    for name in names:
        if not os.path.basename(name).startswith('.'):
            with open(name, 'rb') as file:
                found[name] = file.read()
    return found


def hidden(folder):
    return [os.path.join(at, name) for at, _, files in os.walk(folder) for name in files
            if name.startswith('.')]


def states(pid):
    """Of the children of a process, as the kernel names them: "Z" has ended."""
    try:
        with open(f'/proc/{pid}/task/{pid}/children', encoding='utf-8') as file:
            children = file.read().split()
    except OSError:
        return []
    found = []
    for child in children:
        with contextlib.suppress(OSError):
            with open(f'/proc/{child}/stat', encoding='utf-8', errors='replace') as file:
                found.append(file.read().rpartition(') ')[2][0])
    return found


def end_stuck(mark):
    """mpirun that waits for a lock of its own after all its processes have ended: Open MPI 4.1.4,
    in PMIx_server_finalize, once in some hundred times that it is told to end. Its processes are
    gone, and it computes nothing. How many there were."""
    stuck = []
    for pid in find(mark):
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/comm', encoding='utf-8') as file:
                ended = set(states(pid)) == {'Z'}
                if file.read().strip() in ('mpirun', 'orterun') and ended:
                    stuck.append(pid)
    for pid in stuck:
        os.kill(pid, signal.SIGKILL)
    return len(stuck)


class Command:
    """A command in a folder of its own."""

    def __init__(self, asked, name, draw):
        self.sim, self.name, self.draw = asked.sim, name, draw
        self.words = shlex.split(COMMANDS[name])
        self.output = self.words[-1]
        self.temporary = os.path.abspath(f'tmp-{name}')
        self.mark = f'SIM_CAMPAIGN={os.getpid()}-{name}'
        self.ended = self.finished = self.continued = self.stuck = 0
        os.makedirs(self.temporary)
        self.seconds = self.undisturbed()
        self.whole = contents(self.output)
        if not self.whole:
            sys.exit(f'{name}: no output')

    def start(self, words):
        def heed():  # a shell, or nohup, may have had signals ignored
            for number in ENDS[1:]:
                signal.signal(number, signal.SIG_DFL)
        environment = {**os.environ, 'TMPDIR': self.temporary,
                       'SIM_CAMPAIGN': self.mark.partition('=')[2]}
        return subprocess.Popen([self.sim, *words], env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                preexec_fn=heed)

    def undisturbed(self):
        """Seconds that it takes; its result is in its place."""
        begin = time.monotonic()
        process = self.start(self.words + self.resume())
        said = process.communicate()[1]
        if process.returncode != 0:
            sys.exit(f'{self.name}: {said}')
        return time.monotonic() - begin

    def resume(self):
        """Goes on from a journal, where one was left."""
        found = self.name in RESUMED and os.path.exists(self.output + '.journal')
        self.continued += found
        return ['--resume'] if found else []

    def clear(self):
        """As before the first run."""
        for name in (self.output, self.output + '.journal'):
            if os.path.isdir(name):
                shutil.rmtree(name)
            elif os.path.exists(name):
                os.remove(name)
        if self.name != 'figures':  # whose output is a folder
            with open(self.output, 'wb') as file:
                file.write(EARLIER)

    def is_whole(self, name, data):
        if self.name == 'calibrate':
            return len(json.loads(data)['sources']) > 0
        if self.name == 'replay':
            return data[-24:-16] == SEAL
        return data == self.whole.get(name)

    def wrong_results(self):
        return [name for name, data in contents(self.output).items() if '/data/' not in name and
                data != EARLIER and not self.is_whole(name, data)]

    def leftovers(self):
        """But Open MPI's own, where it was killed."""
        return set(hidden('.') + [name for name in os.listdir(self.temporary)
                                  if not name.startswith('ompi.')])

    def kill_once(self):
        """None, or what is wrong."""
        number = self.draw.choice(ENDS)
        before = self.leftovers()
        process = self.start(self.words + self.resume())
        wait = self.seconds * self.draw.choice((0.1, 1.1)) * self.draw.random()
        try:
            said = process.communicate(timeout=wait)[1]
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            try:
                said = process.communicate(timeout=PATIENCE)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                return f'{number.name} after {wait:.3f} s: goes on'
        self.ended += process.returncode != 0
        self.finished += process.returncode == 0
        return self.judge(f'{number.name} after {wait:.3f} s', process.returncode, said, before)

    def judge(self, when, code, said, before):
        if code not in (0, 130, *(-end for end in ENDS)):
            return f'{when}: ends with {code}: {said}'
        if not patient(lambda: not find(self.mark), ORPHANS, 0.02):
            self.stuck += end_stuck(self.mark)
        if not patient(lambda: not find(self.mark), ORPHANS, 0.02):
            return f'{when}: its processes {find(self.mark)} go on'
        if self.wrong_results():
            return f'{when}: part of a result: {self.wrong_results()}'
        left = self.leftovers() - before
        if left and code != -signal.SIGKILL:
            return f'{when}: ends with {code} and leaves {left}'
        if code == 0:  # from the beginning
            self.clear()
        return None

    def attack(self, n):
        """What is wrong."""
        wrong = []
        self.clear()
        for _ in range(n):
            wrong += [problem for problem in (self.kill_once(),) if problem]
        self.undisturbed()
        if self.wrong_results() or not set(self.whole) <= set(contents(self.output)) or \
                EARLIER in contents(self.output).values():
            wrong.append(f'then another result: {self.wrong_results()}')
        if self.leftovers() or os.path.exists(self.output + '.journal'):
            wrong.append(f'then left behind: {self.leftovers()}')
        return wrong


def prepare(asked):
    for name, content in (('long', LONG), ('planned', PLANNED), ('small', SMALL),
                          ('points', POINTS), ('tiny', TINY)):
        with open(f'{name}.json', 'w', encoding='utf-8') as file:
            json.dump(content, file)
    for name, more in (('run', ['-s', '/schedule/micro_batches=40']),
                       ('other', ['-s', '/schedule/micro_batches=40', '-s', '/seed=2']),
                       ('long', [])):
        subprocess.run([asked.sim, 'run', 'long.json', '-o', f'{name}.h5', *more], check=True,
                       capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('-n', type=int, default=200, help='kills of each command')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', choices=COMMANDS, nargs='+', default=list(COMMANDS))
    asked = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory(prefix='sim-campaign-') as folder:
        os.chdir(folder)
        prepare(asked)
        for name in asked.only:
            command = Command(asked, name, random.Random(f'{asked.seed} {name}'))
            found = command.attack(asked.n)
            wrong += [f'{name}: {problem}' for problem in found]
            print(f'{name}: {command.ended} ended early, {command.finished} not in time, '
                  f'{command.continued} went on from what others had done; '
                  + (f'{command.stuck} times mpirun stuck; ' if command.stuck else '')
                  + f'{len(found)} problems',
                  flush=True)
            (shutil.rmtree if os.path.isdir(command.output) else os.remove)(command.output)
    print('\n'.join(wrong) or 'no part of a result, nothing left behind')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

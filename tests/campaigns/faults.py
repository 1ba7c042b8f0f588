#!/usr/bin/env python3
"""What a machine may lack: faults.py SIM ROOT [--tmpfs] [--only FAULT...]

Each command under each fault: little memory, a small stack, few descriptors, few processes, files
that may not grow, a folder that cannot be written, no folder for temporary files, standard output
closed or full; two of it that write one output; an input that changes while it is read; with
--tmpfs (as root) a full disk. It ends in time, unaided, with a message and without
a part of an output; or it does what it always does.
"""
import argparse
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import threading

from allocations import NAMED, POINTS

LIMIT = 60  # s
SMALL = '''{"schema_version": 1, "model": {"uniform": {"layers": 6, "forward": "1 ms", "backward":
 "2 ms", "weights": "1 MB", "activation": "1 MB"}}, "platform": {"topology": "ring", "devices": 3,
 "bandwidth": "1 GB/s", "jitter": {"mean": 0.1}}, "schedule":
 {"kind": "1f1b", "micro_batches": 4}}'''
COMMANDS = ('run small.json -o out/a.h5', 'run small.json --runs 4 -j 4 -o out/a.h5',
            'check small.json', 'plan small.json -o out/a.json', 'plot run.h5 -o out/a.svg',
            'export trace run.h5 -o out/a.json', 'export topology small.json -o out/a.json',
            'compare run.h5 run.h5 -o out/a.svg',
            'sweep small.json --vary /schedule/micro_batches=4,8,12,16 -j 4 -o out/a.h5',
            'model resnet18 --device v100 -o out/a.json',
            'report run.h5 -o out/a.html', 'advise named.json -j 2 --most 3 -o out/a.h5',
            'validate points.json -j 2 -o out/a.h5',
            'calibrate compute -m resnet18 -i 32 -b 1 --time-limit 1s -o out/a.json')
EARLIER = b'{"schema_version": 1, "sources": []}\n'  # as calibrate may add to
MIB = 1 << 20


def limited(kind, *values):
    return [({'preexec_fn': lambda v=v: resource.setrlimit(kind, (v, v))}, f'{v}') for v in values]


def full_output():
    return [({'stdout': open('/dev/full', 'wb')}, '')]  # pylint: disable=consider-using-with


def closed(*descriptors):
    def close():
        for one in descriptors:
            os.close(one)
    return {'preexec_fn': close}


FAULTS = {
    'memory': lambda: limited(resource.RLIMIT_AS, 30 * MIB, 60 * MIB, 100 * MIB, 200 * MIB,
                              400 * MIB),
    'stack': lambda: limited(resource.RLIMIT_STACK, 64 << 10, 600 << 10),
    'descriptors': lambda: limited(resource.RLIMIT_NOFILE, 3, 4, 5, 6, 8, 12),
    'file size': lambda: limited(resource.RLIMIT_FSIZE, 0, 100, 10000),
    'full output': full_output,
    'closed streams': lambda: [(closed(1), 'output'), (closed(0, 1, 2), 'all'),
                               (closed(2), 'messages')],
    'no folder for temporary files': lambda: [({'env': {**os.environ, 'TMPDIR': '/nonexistent'}},
                                               '')],
    'no folder of outputs': lambda: [({'folder': None}, '')],
    'no colours, no size': lambda: [({'env': {**os.environ, 'TERM': 'dumb', 'COLUMNS': '0',
                                              'LC_ALL': 'xx_YY'}}, '')],
    'no environment': lambda: [({'env': {}}, '')],
}


def forget_journals():
    """What a sweep or a search that did not end goes on from, on purpose."""
    for name in os.listdir('out') if os.path.isdir('out') else ():
        if name.endswith('.journal'):
            os.remove(os.path.join('out', name))


def call(sim, words, **how):
    forget_journals()
    return subprocess.run([sim, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          timeout=LIMIT,
                          check=False, **how)


def whole(sim, words, output):
    """What a command writes when nothing is wrong."""
    call(sim, words, stdout=subprocess.DEVNULL)
    with open(output, 'rb') as file:
        return file.read()


def attack(sim, words, how, earlier):
    """None, or what is wrong."""
    output = next((w for w in words if w.startswith('out/')), None)
    if output and 'folder' not in how:
        with open(output, 'wb') as file:
            file.write(earlier)
    options = {'stdout': subprocess.DEVNULL, **{k: v for k, v in how.items() if k != 'folder'}}
    if 'folder' in how:
        os.rename('out', 'gone')
    try:
        made = call(sim, words, **options)
    except subprocess.TimeoutExpired:
        return f'more than {LIMIT} s'
    finally:
        if 'folder' in how:
            os.rename('gone', 'out')
    said = made.stderr.decode(errors='replace')
    if made.returncode < 0:
        return f'ended by {signal.Signals(-made.returncode).name} {said[-200:]}'
    if made.returncode not in (0, 1, 127):  # 127: the loader had no memory
        return f'ended with {made.returncode}: {said[-200:]}'
    left = [name for name in os.listdir('out') if name.startswith('.')]
    if left:
        for name in left:
            os.remove(os.path.join('out', name))
        return f'left {left}'
    if output and made.returncode != 0 and 'folder' not in how:
        with open(output, 'rb') as file:
            written = file.read()
        if written != earlier and not ('calibrate' in words
                                       or written == whole(sim, words, output)):
            # the complete file may be there: the failure came later
            return 'harmed an earlier output'
    if made.returncode == 1 and 'preexec_fn' not in how and 'error: ' not in said:
        return f'no message: {said[-200:]}'
    return None


def full_disk(sim, words):
    """In `out`, a small file system, which is full."""
    wrong = []
    for left in (0, 100, 5000, 100000):
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', 'out'], check=True)
        try:
            with open('out/.big', 'wb') as file:
                file.write(bytes(MIB - 8192 - left))
            os.rename('out/.big', 'out/big')
            problem = attack(sim, words, {}, EARLIER)
        finally:
            subprocess.run(['umount', 'out'], check=True)
        if problem:
            wrong.append(f'{" ".join(words)}: {left} bytes left on the disk: {problem}')
    return wrong


def two_writers(sim, words):
    """At once, of one output: one at least ends well, the other does or says why not, and what
    is there is complete. None for a command without an output, and for commands that measure again
    each time."""
    output = next((w for w in words if w.startswith('out/')), None)
    if not output or 'calibrate' in words:
        return None
    expected = whole(sim, words, output)
    os.remove(output)
    forget_journals()
    both = [subprocess.Popen([sim, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE) for _ in range(2)]
    said = [one.communicate(timeout=LIMIT)[1].decode(errors='replace') for one in both]
    wrong = [f'ended with {one.returncode}: {text[-200:]}' for one, text in zip(both, said)
             if one.returncode != 0 and not (one.returncode in (1, 2) and 'error: ' in text)]
    if all(one.returncode != 0 for one in both):
        return wrong + [f'both were refused: {said[0][-200:]}']
    with open(output, 'rb') as file:
        if file.read() != expected:
            wrong.append('the output is not whole')
    return wrong


def changed_input(sim, words):
    """Written over, cut and restored in place, all the while: no crash, and no end but a known one.
    None for a command that reads no file."""
    source = next((w for w in words if w.endswith(('.json', '.h5')) and '/' not in w), None)
    if not source:
        return None
    with open(source, 'rb') as file:
        content = file.read()
    stop, wrong = threading.Event(), []

    def change():
        turn = 0
        while not stop.is_set():
            with open(source, 'r+b') as file:
                file.write(content[::-1] if turn % 3 == 0 else content)
                file.truncate(len(content) // 2 if turn % 3 == 1 else len(content))
            turn += 1

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(5):
            made = call(sim, words, stdout=subprocess.DEVNULL)
            said = made.stderr.decode(errors='replace')
            if made.returncode not in range(5) or (made.returncode != 0 and 'error: ' not in said):
                wrong.append(f'ended with {made.returncode}: {said[-200:]}')
    finally:
        stop.set()
        changer.join()
        with open(source, 'wb') as file:
            file.write(content)
    return wrong


BESIDE = {'two writers': two_writers, 'changed input': changed_input}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('--tmpfs', action='store_true')
    parser.add_argument('--only', choices=[*FAULTS, *BESIDE], nargs='+',
                        default=[*FAULTS, *BESIDE])
    asked = parser.parse_args()
    wrong, tries = [], 0
    with tempfile.TemporaryDirectory(prefix='sim-campaign-') as folder:
        os.chdir(folder)
        os.mkdir('out')
        for name, text in (('small', SMALL), ('named', NAMED), ('points', POINTS)):
            with open(f'{name}.json', 'w', encoding='utf-8') as file:
                file.write(text)
        subprocess.run([asked.sim, 'run', 'small.json', '-o', 'run.h5'], check=True,
                       capture_output=True)
        for name in asked.only:
            for command in COMMANDS if name in BESIDE else ():
                problems = BESIDE[name](asked.sim, shlex.split(command))
                tries += problems is not None
                wrong += [f'{command}: {name}: {problem}' for problem in problems or ()]
            for command in COMMANDS if name in FAULTS else ():
                for how, value in FAULTS[name]():
                    tries += 1
                    problem = attack(asked.sim, shlex.split(command), how, EARLIER)
                    if problem:
                        wrong.append(f'{command}: {name} {value}: {problem}')
                    if 'stdout' in how:
                        how['stdout'].close()
        for command in COMMANDS if asked.tmpfs else ():
            tries += 4
            wrong += full_disk(asked.sim, shlex.split(command))
    print('\n'.join(wrong) or f'{tries} faults, each told or made good')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

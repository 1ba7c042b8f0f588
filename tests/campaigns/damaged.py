#!/usr/bin/env python3
"""Damaged results files: damaged.py SIM ROOT [-n FILES] [--seed N]

Flips bits of results files, truncates them and makes them longer: with their old checksum, without
one, and with a new, correct one. A file with its old checksum must be refused. Otherwise, sim
either draws the file or reports an error. It never crashes, hangs or fails after writing an output.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

from resealed import seal

SEAL = 24  # bytes of the checksum at the end
LIMIT = 30  # s of wall time; a child that reads a damaged file has 10 s of its own


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)


def damage(whole, draw):
    """Most flips near the beginning, where the structure is."""
    data = bytearray(whole)
    what = draw.randrange(10)
    if what == 0:
        return data[:draw.randrange(len(data))]
    if what == 1:
        return data + draw.randbytes(draw.randrange(1, 100))
    for _ in range(draw.choice((1, 1, 3, 20))):
        end = len(data) if draw.random() < 0.5 else min(len(data), 8192)
        data[draw.randrange(end)] ^= 1 << draw.randrange(8)
    return data


def judge(made, sealed, output):
    """None, or what is wrong."""
    wrote = os.path.exists(output)
    if made.returncode not in (0, 3) or (sealed and made.returncode != 3):
        return f'exit code {made.returncode}'
    if wrote != (made.returncode == 0):
        return 'a picture' if wrote else 'no picture'
    # glibc may say first that HDF5 freed what it should not have
    if made.returncode == 3 and not re.search('^sim: error: ', made.stderr, re.MULTILINE):
        return 'no message'
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('-n', type=int, default=60, help='files')
    parser.add_argument('--seed', type=int, default=1)
    asked = parser.parse_args()
    draw, wrong, refused = random.Random(asked.seed), [], 0
    with tempfile.TemporaryDirectory(prefix='sim-campaign-') as folder:
        os.chdir(folder)
        scenario = os.path.join(asked.root, 'scenarios/vgg16-gpipe.json')
        assert run(asked.sim, 'run', scenario, '-o', 'whole.h5').returncode == 0
        with open('whole.h5', 'rb') as file:
            whole = file.read()
        for i in range(asked.n):
            sealed = i % 4 == 0
            data = damage(whole if sealed else whole[:-SEAL], draw)
            sealed = sealed and len(data) == len(whole) and data[-SEAL:-SEAL + 8] == whole[
                -SEAL:-SEAL + 8]
            with open('damaged.h5', 'wb') as file:
                file.write(seal(bytes(data)) if i % 4 == 1 else data)
            words, output = ((('plot', 'damaged.h5', '-o', 'a.svg'), 'a.svg'),
                             (('export', 'trace', 'damaged.h5', '-o', 'a.json'), 'a.json'),
                             (('compare', 'damaged.h5', 'whole.h5', '-o', 'a.svg'), 'a.svg'))[i % 3]
            try:
                made = run(asked.sim, *words)
                problem = judge(made, sealed, output)
            except subprocess.TimeoutExpired:
                made, problem = None, f'more than {LIMIT} s'
            if problem:
                wrong.append(
                    f'file {i}, {" ".join(words)}: {problem}: {made and made.stderr.strip()}')
            refused += made is not None and made.returncode == 3
            if os.path.exists(output):
                os.remove(output)
    print('\n'.join(wrong) or f'{asked.n} damaged files: {refused} refused, the rest drawn')
    if refused < asked.n // 4:
        wrong.append('too few were refused')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

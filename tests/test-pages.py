#!/usr/bin/env python3
"""What pages say that commands print: test-pages.py SIM SOURCE_ROOT [PAGE...]

Each line "$ COMMAND" in a code block of a page is run, in a copy of the files that it needs,
and what follows in the page has to be what the command prints, with or without the program's
messages ("sim: ..."). A line "..." in a page matches any number of lines, including none. Pages
that are followed from the top, such as the tutorial, are docs.py's.
"""
import difflib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# These measure this machine, or are interrupted after some time: no two runs print the same. What
# Slurm and several hosts print comes from tests/campaigns/slurm.py and two-hosts.py. All measured
# runs take a minute: test-truth.py predicts them, and compares the page.
NOT_REPEATED = re.compile(r'^sim validate$|^cc |^./example|\bsim (calibrate|replay)\b|measure\.sh'
                          r'|^timeout |measured\.h5|--resume|'
                          r'^sinfo|^sbatch|study-\d\.log|^mpirun|^echo \$\?|tests/campaigns')

# Where a page's commands are run, if not at the top.
FOLDERS = {'docs/how-to/replay.md': 'scenarios/replay'}

# Of PipeDream's project, not in this tree: commands that need it are skipped if it is missing.
PROFILE = os.path.join('..', 'shared', 'profiles', 'pipedream', 'resnet50', 'graph.txt')

# Files that pages show the use of, and not the text.
TYPO = {'schema_version': 1, 'model': {'file': 'facts/layers/vgg16.json', 'batch_size': 128},
        'platform': {'topology': 'nvlink_switch', 'devices': 4, 'bandwith': '150 GB/s'},
        'schedule': {'kind': 'gpipe', 'micro_batches': 0}}
BROADCAST = ('# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n' +
             ''.join(f'{1 << k} {10 + (1 << k) / 410 * (1 + 0.01 * (-1) ** k):.2f}\n'
                     for k in range(25)) +
             '33554432 10500.00\n')


def commands_of(path):
    """(number of the line, command, lines that follow it) of each command in the page."""
    found, inside, in_block, continued = [], False, False, False
    with open(path, encoding='utf-8') as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith('```'):
            inside, in_block, continued = not inside, False, False
        elif continued:
            found[-1][1] += line.strip().rstrip('\\')
            continued = line.endswith('\\')
        elif inside and line.startswith('$ '):
            found.append([number, line[2:].rstrip('\\'), []])
            continued = line.endswith('\\')
            in_block = True
        elif inside and in_block:
            found[-1][2].append(line.rstrip())
    return found


def agree(page, printed):
    """Whether lines match a page, where "..." matches any lines."""
    pattern = ''.join('(?:.*\n)*' if line.strip() == '...' else re.escape(line) + '\n'
                      for line in page)
    return re.fullmatch(pattern, ''.join(line + '\n' for line in printed)) is not None


def prepare(root, folder):
    """What commands in pages read, in an empty folder. Returns what cannot be had."""
    for needed in ('scenarios', 'facts/layers', 'calib/measured', 'tests/fuzz/corpus/torch'):
        shutil.copytree(os.path.join(root, needed), os.path.join(folder, needed))
    os.mkdir(os.path.join(folder, 'out'))
    with open(os.path.join(folder, 'typo.json'), 'w', encoding='utf-8') as file:
        json.dump(TYPO, file)
    with open(os.path.join(folder, 'bcast.log'), 'w', encoding='utf-8') as file:
        file.write(BROADCAST)
    if not os.path.exists(os.path.join(root, PROFILE)):
        return ['graph.txt']
    shutil.copy(os.path.join(root, PROFILE), os.path.join(folder, 'graph.txt'))
    return []


def run(command, folder, sim):
    """Lines that a command prints, on standard output and standard error in their order."""
    environment = dict(os.environ, PATH=os.path.dirname(sim) + os.pathsep + os.environ['PATH'])
    done = subprocess.run(['bash', '-c', command], cwd=folder, env=environment, text=True,
                          timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return [line.rstrip() for line in done.stdout.splitlines()]


def check(page, root, sim):
    """Runs the commands of a page. Returns how many were run, and how many print something else."""
    commands = commands_of(os.path.join(root, page))
    if not commands:
        return 0, 0
    done = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        left_out = prepare(root, folder)
        for number, command, shown in commands:
            if NOT_REPEATED.search(command) or any(name in command for name in left_out):
                print(f'{page}:{number}: left out: {command}')
                continue
            done += 1
            shown = shown[:-1] if shown and not shown[-1] else shown
            printed = run(command, os.path.join(folder, FOLDERS.get(page, '')), sim)
            if not agree(shown, printed) and not agree(shown, [line for line in printed
                                                               if not line.startswith('sim: ')]):
                wrong += 1
                print(f'{page}:{number}: $ {command}')
                print('\n'.join(difflib.unified_diff(shown, printed, 'the page', 'the program',
                                                     lineterm='')))
    return done, wrong


def is_followed(page):
    """Whether docs.py runs its commands, one after the other with the files that it shows."""
    with open(page, encoding='utf-8') as file:
        return page.endswith('docs/tutorial.md') or '<!-- run -->' in file.read()


def main(sim, root, *pages):
    if not pages:
        found = glob.glob(os.path.join(root, '**', '*.md'), recursive=True)
        pages = sorted(os.path.relpath(page, root) for page in found if not is_followed(page))
    counts = [check(page, root, os.path.abspath(sim)) for page in pages]
    done, wrong = (sum(column) for column in zip(*counts))
    print(f'{done} commands in pages, {wrong} of them print something else')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

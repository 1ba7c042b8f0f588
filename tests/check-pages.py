#!/usr/bin/env python3
"""Runs the examples of the pages: check-pages.py SIM SOURCE_ROOT [--slow] [PAGE...]

An example is a line "$ sim ..." in a fenced block, with what it prints below it; a line that ends in a
backslash goes on. Its command is run by a shell in a folder with `scenarios` and `tests`, and must
print these lines, standard error before standard output or after it; "..." stands for any lines. Lines
with the time of a search may be missing. --slow also runs what takes longer than a second or two.
"""
import os
import re
import subprocess
import sys
import tempfile

# Why an example is not run, by page and the beginning of its command.
MEASURED = 'is measured on some machine'
ABSENT = 'names a file that the page describes'
SLOW = 'is slow'
LEFT_OUT = (
    ('calib/bench/README.md', '', MEASURED),
    ('scenarios/replay/README.md', '', MEASURED),
    ('scenarios/README.md', 'sim plan graph.txt', ABSENT),
    ('scenarios/README.md', 'sim check typo.json', ABSENT),
    ('scenarios/costs.md', 'sim import osu bcast.log', ABSENT),
    ('scenarios/costs.md', 'sim import nccl-tests', 'writes into the source folder'),
    ('scenarios/costs.md', 'sim plot', 'writes into the source folder'),
    ('scenarios/sweeps.md', 'timeout', 'prints how far it came in two seconds'),
    ('scenarios/sweeps.md', 'sim sweep scenarios/timeprest-wn.json -o wn.h5 --resume',
     'goes on from there'),
    ('scenarios/sweeps.md', 'sim sweep scenarios/timeprest-wn.json', SLOW),
    ('scenarios/README.md', 'sim plan scenarios/resnet50-1f1b.json -P all', SLOW),
    ('schedules/plan/programs.md', 'sim plan', SLOW),
)


def examples(path):
    """(line, command, lines that it prints) of each example of a page."""
    found, inside = [], False
    with open(path, encoding='utf-8') as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith('```'):
            inside = not inside
            command = None
        elif inside and line.startswith('$ '):
            command = [number, line[2:], []]
            found.append(command)
        elif inside and command and not command[2] and command[1].endswith('\\'):
            command[1] += '\n' + line
        elif inside and command:
            command[2].append(line)
    return [c for c in found if re.search(r'\bsim\b', c[1])]


def content(lines):
    return [line.rstrip() for line in lines if line.strip() and not re.match(
        r'sim: [\w ]+: searched for ', line)]


def agrees(expected, printed):
    """Whether the lines are the same; "..." stands for any."""
    pattern = ''.join(r'(?:.*\n)*' if line.strip() == '...' else re.escape(line) + r'\n'
                      for line in expected)
    return re.fullmatch(pattern, ''.join(line + '\n' for line in printed)) is not None


def check(page, example, folder, environment):
    """Whether an example prints what its page says; says so if not."""
    number, command, expected = example
    done = subprocess.run(['bash', '-c', command], cwd=folder, env=environment, check=False,
                          capture_output=True, text=True)
    out, err = done.stdout.splitlines(), done.stderr.splitlines()
    expected = content(expected)
    if agrees(expected, content(err + out)) or agrees(expected, content(out + err)):
        return True
    print(f'{page}:{number}: the example prints otherwise:\n$ {command}')
    print('\n'.join(content(err + out)) + '\n')
    return False


def main():
    words = [word for word in sys.argv[1:] if word != '--slow']
    slow = '--slow' in sys.argv
    sim, root = (os.path.abspath(word) for word in words[:2])
    environment = dict(os.environ, PATH=os.path.dirname(sim) + os.pathsep + os.environ['PATH'])
    pages = words[2:] or sorted(
        os.path.relpath(os.path.join(folder, name), root) for part in ('.', 'scenarios', 'schedules',
                                                                       'topologies', 'calib', 'sim')
        for folder, _, names in os.walk(os.path.join(root, part))
        if part != '.' or folder == os.path.join(root, part) for name in names
        if name.endswith('.md'))
    run = wrong = 0
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            for name in ('scenarios', 'tests'):
                os.symlink(os.path.join(root, name), os.path.join(folder, name))
            for example in examples(os.path.join(root, page)):
                reason = next((why for where, begins, why in LEFT_OUT
                               if where == page and example[1].startswith(begins)), None)
                if reason and not (slow and reason == SLOW):
                    continue
                run += 1
                wrong += not check(page, example, folder, environment)
    print(f'{run} examples, {wrong} of which print otherwise than their page says')
    return 1 if wrong or not run else 0


sys.exit(main())

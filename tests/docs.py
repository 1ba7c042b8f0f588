#!/usr/bin/env python3
"""Pages have what the program prints: docs.py SIM SOURCE_ROOT [--update]

- Between the lines <!-- sim list --markdown SECTION NAME --> and <!-- end --> stands what the
  command prints; --update puts it there. So every key, its unit, range and default is written once,
  in the program's table of fields.
- Every schedule, planner, topology and section has its table on one page, and on no second one;
  machines may be left out.
- Commands of the tutorial, and of other pages with the line <!-- run -->, print what stands below
  them. They are run one after the other in a folder that holds `scenarios`; a file that a page
  shows below a line <!-- file NAME --> is there under that name. A page that draws is left out
  without gnuplot.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

UPDATE = '--update' in sys.argv
SIM, ROOT = (os.path.abspath(word) for word in [w for w in sys.argv[1:] if w != '--update'][:2])
MARKED = re.compile(r'^<!-- sim (list --markdown [^\n]*) -->\n(.*?)^<!-- end -->$',
                    re.DOTALL | re.MULTILINE)
STEP = re.compile(r'^<!-- file (\S+) -->\n+```json\n(.*?)^```$|^```console\n(.*?)^```$',
                  re.DOTALL | re.MULTILINE)


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def pages():
    for folder, _, files in os.walk(os.path.join(ROOT, 'docs')):
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith('.md'))


def printed(words):
    done = subprocess.run([SIM, *words.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f'sim {words}: {done.stderr}')
    return done.stdout


def tables(text):
    """The page with updated tables."""
    return MARKED.sub(lambda m: f'<!-- sim {m[1]} -->\n{printed(m[1])}<!-- end -->', text)


def run_block(block, environment):
    """The block with updated output of its commands. A command ends where no backslash ends its
    line."""
    made, lines = [], block.split('\n')[:-1]
    while lines:
        line = lines.pop(0)
        if not line.startswith('$ '):
            continue  # output of before
        command = [line]
        while command[-1].endswith('\\'):
            command.append(lines.pop(0))
        done = subprocess.run(['bash', '-o', 'pipefail', '-c', '\n'.join(command)[2:]],
                              env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        made += [*command, *done.stdout.split('\n')[:-1]]
    return '\n'.join(made) + '\n'


def session(text):
    """The page with the output of its commands, which were run in an empty folder with
    `scenarios`."""
    here, folder = os.getcwd(), tempfile.mkdtemp(prefix='sim-docs-')
    path = os.path.dirname(SIM) + ':' + os.environ['PATH']
    environment = dict(os.environ, PATH=path, COLUMNS='100')
    os.symlink(os.path.join(ROOT, 'scenarios'), os.path.join(folder, 'scenarios'))
    os.chdir(folder)

    def step(match):
        if match[1]:
            write(match[1], match[2])
            return match[0]
        return f'```console\n{run_block(match[3], environment)}```'
    try:
        return STEP.sub(step, text)
    finally:
        os.chdir(here)
        shutil.rmtree(folder)


def differences(name, old, new):
    """The first lines where a page and the output differ."""
    old, new = old.split('\n'), new.split('\n')
    for number, (was, made) in enumerate(zip(old, new), 1):
        if was != made:
            return (f'{name}:{number}: "{was}", but the program prints "{made}" (tests/docs.py '
                    f'--update)')
    return (
        f'{name}: has {len(old)} lines, but the program prints {len(new)} (tests/docs.py --update)')


def check_complete(marked):
    listed = json.loads(printed('list --json'))
    entries = [f'{group} {entry["name"]}' for group in ('schedules', 'planners', 'topologies',
                                                        'sections')
               for entry in listed[group] if 'stands_for' not in entry] + [f'models {name}'
                                              for name in ('file', 'uniform', 'name')]
    for entry in entries:
        places = [page for page, words in marked if words == f'list --markdown {entry}']
        if len(places) != 1:
            yield (
                f'{entry}: its keys must stand on one page, found on {", ".join(places) or "none"}')


def main():
    wrong, marked = [], []
    for page in pages():
        name, text = os.path.relpath(page, ROOT), read(page)
        marked += [(name, match[1]) for match in MARKED.finditer(text)]
        made = tables(text)
        if (name == 'docs/tutorial.md' or '<!-- run -->' in text) and (
                shutil.which('gnuplot') or '$ sim plot' not in text):
            made = session(made)
        if made != text and UPDATE:
            write(page, made)
            print(f'{name}: updated')
        elif made != text:
            wrong.append(differences(name, text, made))
    wrong += check_complete(marked)
    print('\n'.join(wrong) or f'{len(marked)} tables: as the program prints them')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())

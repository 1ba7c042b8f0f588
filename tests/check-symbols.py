#!/usr/bin/env python3
"""What our libraries hold: check-symbols.py NM LIBRARY...

- what they export begins with cs_
- nothing in them can be changed from outside of a function's arguments: no mutable globals, no
  mutable static variables. A thousand simulations can run in threads of one process.
"""
import collections
import os
import re
import subprocess
import sys

MUTABLE = {
    ('json.c', 'parsing'): 'the lock around a parser that is not made for threads',
    ('plan_periodic-program.c', 'one_at_a_time'): 'the lock around a solver that is not either',
    ('interrupt.c',
     'state'): 'what the handler of Ctrl-C looks at, which has no other place for it',
    ('inputs.c', 'state'): 'the files that the program has read; only `sim` keeps this list',
    ('plan_periodic-program.c', 'one_at_a_time'): 'the lock around CBC, which keeps globals',
}
# Constants that hold pointers are writable for the loader only, which then closes them.
CONSTANT_SECTIONS = ('.data.rel.ro',)

Symbol = collections.namedtuple('Symbol', 'file name kind section')


def symbols_of(nm, library):
    text = subprocess.run([nm, '--format=sysv', library], capture_output=True, text=True,
                          check=True).stdout
    member = ''
    for line in text.splitlines():
        match = re.match(r'Symbols from .*\[(.*?)(?:\.o)?\]:', line)
        if match:
            member = os.path.basename(match.group(1))
        cells = [cell.strip() for cell in line.split('|')]
        if len(cells) == 7 and cells[2] not in ('U', 'Class'):
            yield Symbol(member, cells[0], cells[2], cells[6])


def check(symbol):
    """What is wrong with it, or None."""
    if symbol.kind.isupper() and not symbol.name.startswith('cs_'):
        return 'is exported, and does not begin with cs_'
    if symbol.kind not in 'bBdDC' or symbol.section.startswith(CONSTANT_SECTIONS):
        return None
    if (symbol.file, re.sub(r'\.\d+$', '', symbol.name)) in MUTABLE:
        return None
    return f'can be changed (it is in {symbol.section}); make it const, or part of a context'


def main(nm, libraries):
    wrong, count = [], 0
    for library in libraries:
        for symbol in symbols_of(nm, library):
            count += 1
            said = check(symbol)
            if said:
                wrong.append(f'{symbol.file}: {symbol.name} {said}')
    print('\n'.join(wrong) or f'{count} symbols in {len(libraries)} libraries')
    return 1 if wrong or count == 0 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2:]))

#!/usr/bin/env python3
"""What libclustersim shows to programs begins with clustersim_, in the shared library and in the
archive: check-exports.py NM SHARED ARCHIVE"""
import subprocess
import sys


def defined(nm, *arguments):
    said = subprocess.run([nm, '--defined-only', '--extern-only', *arguments], check=True,
                          capture_output=True, text=True).stdout
    return {line.split()[-1] for line in said.splitlines() if len(line.split()) == 3}


def main(nm, shared, archive):
    shown = {'shared library': defined(nm, '-D', shared), 'archive': defined(nm, archive)}
    wrong = [f'{where}: {name}' for where, names in shown.items() for name in sorted(names)
             if not name.startswith('clustersim_')]
    if shown['shared library'] != shown['archive'] or not shown['archive']:
        wrong.append('the shared library and the archive do not show the same functions')
    print('\n'.join(wrong) or f'{len(shown["archive"])} functions')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

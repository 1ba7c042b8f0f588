#!/usr/bin/env python3
"""No built file is committed to Git: check-built.py SOURCE_ROOT

Compiled Python and C, archives, packages and editors' leftovers are refused by name and by their
first bytes, and so is every file that .gitignore names. Skipped outside of a Git working tree.
"""
import os
import re
import subprocess
import sys

SKIPPED = 77
BUILT = re.compile(r'(^|/)(__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|build|dist)/|'
                   r'\.egg-info/|'
                   r'\.(py[cod]|o|obj|a|so(\.\d+)*|dylib|dll|exe|gc(da|no)|gch|whl|egg|class|'
                   r'sw[op]|orig|rej)$|~$')
MAGIC = ((b'\x7fELF', 'ELF'), (b'!<arch>\n', 'archive of objects'), (b'BC\xc0\xde', 'LLVM bitcode'),
         (b'\xcf\xfa\xed\xfe', 'Mach-O'), (b'\xca\xfe\xba\xbe', 'Mach-O or Java class'))
INPUTS = 'tests/fuzz/corpus/'  # of a parser: any bytes


def tracked(root, *options):
    """Paths that Git has; None outside of a working tree."""
    done = subprocess.run(['git', '-C', root, 'ls-files', '-z', *options], capture_output=True,
                          check=False)
    return [os.fsdecode(p) for p in done.stdout.split(b'\0') if p] if done.returncode == 0 else None


def made_by(root, path):
    """Returns why a file counts as built; None: it does not."""
    if BUILT.search(path):
        return 'has the name of a built file'
    try:
        with open(os.path.join(root, path), 'rb') as file:
            first = file.read(8)
    except (FileNotFoundError, IsADirectoryError):
        return None
    if first[2:4] == b'\r\n' and first[1] in (0x0c, 0x0d, 0x0e):
        return 'is compiled Python'
    return next((f'is {kind}' for magic, kind in MAGIC if first.startswith(magic)), None)


def main(root):
    paths = tracked(root)
    if not paths or not os.path.exists(os.path.join(root, '.git')):
        print('skipped: not a Git working tree')
        return SKIPPED
    wrong = [f'{path}: {how}; git rm --cached it' for path in paths
             if not path.startswith(INPUTS) and (how := made_by(root, path))]
    wrong += [f'{path}: .gitignore names it; git rm --cached it'
              for path in tracked(root, '--cached', '--ignored', '--exclude-standard')]
    print('\n'.join(wrong) or f'{len(paths)} files: none was built')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))

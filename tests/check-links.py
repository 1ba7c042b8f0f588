#!/usr/bin/env python3
"""Checks that links between pages lead somewhere: check-links.py SOURCE_ROOT

- the file of every link is there, and the heading that its anchor names
- every page under docs is reached from README.md, by whatever number of links
- what program, pages and scripts call a page by ("docs/how-to/sweeps.md") is there
- a page under docs has at most LONGEST lines
"""
import os
import re
import sys

LINK = re.compile(r'\]\(([^)\s]+)\)')
NAMED = re.compile(
    r'(?<![\w./-])((?:docs|scenarios|schedules|topologies|sim|calib|tests)/[\w./-]*\.md)\b')
NAMING = ('.c', '.h', '.py', '.sh', '.json', '.md', '.build')

LONGEST = 600

OTHERS = ('tests/fuzz/corpus/', 'facts/points/')  # name files of other trees


def files_of(root):
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not n.startswith(('.', 'build', '__pycache__'))
                          and not (folder == root and n == 'out'))
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in sorted(files))


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def prose(text):
    """Without blocks of code, whose brackets are no links and whose # begin no headings."""
    return re.sub(r'^```.*?^```', '', text, flags=re.DOTALL | re.MULTILINE)


def anchors_of(text):
    """Anchors as GitHub derives them from headings: lower case, without punctuation, blanks are
    dashes, and the second of two alike ends in -1."""
    found, seen = set(), {}
    for title in re.findall(r'^#+ +(.*?)\s*$', prose(text), re.MULTILINE):
        title = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', title)
        name = re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-')
        number = seen.get(name, 0)
        seen[name] = number + 1
        found.add(f'{name}-{number}' if number else name)
    return found


def check_page(root, page, anchors, linked):
    for target in LINK.findall(re.sub(r'`[^`]*`', '', prose(read(root, page)))):
        if re.match(r'[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
        linked.setdefault(page, set()).add(path)
        if not os.path.exists(os.path.join(root, path)):
            yield f'{page}: ({target}): there is no {path}'
        elif anchor and anchor not in anchors.get(path, ()):
            yield f'{page}: ({target}): {path} has no such heading'


def check_reached(pages, linked):
    reached, new = set(), ['README.md']
    while new:
        page = new.pop()
        if page in pages and page not in reached:
            reached.add(page)
            new += linked.get(page, ())
    for page in sorted(set(pages) - reached):
        if page.startswith('docs/'):
            yield f'{page}: no link leads to it from README.md'


def check_named(root, paths):
    for path in paths:
        if not path.endswith(NAMING) or path.startswith(OTHERS):
            continue
        for name in sorted(set(NAMED.findall(read(root, path)))):
            if not os.path.exists(os.path.join(root, name)):
                yield f'{path}: names {name}, which does not exist'


def main(root):
    paths = list(files_of(root))
    pages = [path for path in paths if path.endswith('.md')]
    anchors, linked = {page: anchors_of(read(root, page)) for page in pages}, {}
    wrong = [line for page in pages for line in check_page(root, page, anchors, linked)]
    wrong += [*check_reached(pages, linked), *check_named(root, paths)]
    lengths = {page: read(root, page).count('\n') for page in pages if page.startswith('docs/')}
    wrong += [f'{page}: {n} lines, of at most {LONGEST}; divide it into several pages'
              for page, n in sorted(lengths.items()) if n > LONGEST]
    links = sum(len(to) for to in linked.values())
    print('\n'.join(wrong) or f'{len(pages)} pages, {links} links: all lead somewhere')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))

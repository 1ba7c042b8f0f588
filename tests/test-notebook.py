#!/usr/bin/env python3
"""Notebooks of the documentation, executed: test-notebook.py [--update] NOTEBOOK.ipynb...

Runs every cell in a kernel of its own, as `jupyter nbconvert --execute` does, and compares what
their printed and shown text with the file's. --update writes the results into the file.
Is skipped (status 77) without nbclient, ipykernel and pandas.
"""
import os
import sys
import tempfile

SKIPPED = 77
TIMEOUT = 240  # s, of a cell


def texts_of(cell):
    """What a cell has printed and shown, without pictures and tables in HTML."""
    texts = []
    for output in cell.get('outputs', []):
        data = output.get('data', {})
        texts.append(output.get('text', '') or data.get('text/plain', '')
                     or output.get('evalue', ''))
    return ''.join(texts)


def pictures_of(cell):
    return [kind for output in cell.get('outputs', []) for kind in output.get('data', {})
            if kind.startswith('image/')]


def execute(nbformat, nbclient, path):
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix='test-notebook-') as folder:
        nbclient.NotebookClient(notebook, timeout=TIMEOUT, kernel_name='python3',
                                resources={'metadata': {'path': folder}}).execute()
    for number, cell in enumerate(notebook.cells):
        cell.pop('id', None)
        cell.get('metadata', {}).pop('execution', None)  # times
        if cell.cell_type == 'code' and any(out.output_type == 'stream' and out.name == 'stderr'
                                            for out in cell.outputs):
            raise SystemExit(f'{path}: cell {number} writes to standard error: {texts_of(cell)}')
    notebook.metadata.pop('language_info', None)  # the version of Python
    return notebook


def main(update, paths):
    os.environ['PYDEVD_DISABLE_FILE_VALIDATION'] = '1'  # the kernel's debugger warns otherwise
    try:
        import ipykernel  # noqa: F401
        import nbclient
        import nbformat
        import pandas  # noqa: F401
        import xarray  # noqa: F401
    except ImportError as error:
        print('skipped:', error)
        return SKIPPED
    different = 0
    for path in paths:
        made = execute(nbformat, nbclient, path)
        if update:
            nbformat.write(made, path)
            continue
        known = nbformat.read(path, as_version=4)
        for number, (old, new) in enumerate(zip(known.cells, made.cells)):
            if texts_of(old) != texts_of(new) or pictures_of(old) != pictures_of(new):
                different += 1
                print(f'{path}: cell {number} shows other things:\n--- in the '
                      f'file\n{texts_of(old)}\n'
                      f'--- now\n{texts_of(new)}')
        print(f'{path}: {sum(cell.cell_type == "code" for cell in made.cells)} cells, '
              f'{os.path.getsize(path)} bytes')
    return 1 if different else 0


if __name__ == '__main__':
    words = sys.argv[1:]
    sys.exit(main('--update' in words, [word for word in words if word != '--update']))

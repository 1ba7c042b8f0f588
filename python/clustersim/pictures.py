"""Pictures and pages of results, made by the program `sim`."""
from __future__ import annotations

import html
import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
from typing import Any, List, Mapping, Optional, Sequence, Union

from . import errors
from ._library import WHEEL

def program() -> str:
    """Path of the program `sim`: CLUSTERSIM_PROGRAM, or where it was installed, or in PATH."""
    places = [os.environ.get('CLUSTERSIM_PROGRAM'),
              os.path.join(sysconfig.get_path('scripts'), 'sim') if WHEEL.exists() else None]
    try:
        from ._installed import PROGRAM  # type: ignore[import]  # written by meson
        places.append(PROGRAM)
    except ImportError:
        pass
    for place in places + [shutil.which('sim')]:
        if place and os.access(place, os.X_OK):
            return place
    raise errors.PlotFailed([errors.Message(
        None, None, 'the program sim, which makes pictures and pages, is not in PATH; '
                    'CLUSTERSIM_PROGRAM may '
        'be set to its path')])


class Picture:
    """A picture, which a notebook shows."""

    def __init__(self, data: bytes, format: str) -> None:
        self.data = data
        """The file as it is."""
        self.format = format
        """"svg", "png" or "pdf"."""

    def save(self, path: Union[str, 'os.PathLike[str]']) -> None:
        """Writes the file."""
        pathlib.Path(path).write_bytes(self.data)

    def _repr_svg_(self) -> Optional[str]:
        return self.data.decode() if self.format == 'svg' else None

    def _repr_png_(self) -> Optional[bytes]:
        return self.data if self.format == 'png' else None

    def __repr__(self) -> str:
        return f'<picture, {self.format}>'


class Page:
    """A page in HTML that needs nothing else, which a notebook shows in a frame."""

    def __init__(self, html: str) -> None:
        self.html = html
        """The page as it is."""

    def save(self, path: Union[str, 'os.PathLike[str]']) -> None:
        """Writes the file."""
        pathlib.Path(path).write_text(self.html, encoding='utf-8')

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: 720px; '
                'border: 1px solid #ccc"></iframe>')

    def __repr__(self) -> str:
        return '<page>'


def _words(options: Mapping[str, Any]) -> List[str]:
    """first_device=3 becomes --first-device 3; at={"/key": 8} becomes --at /key=8."""
    words = []
    for key, value in options.items():
        many = [f'{k}={v}' for k, v in value.items()] if isinstance(value, dict) else \
            value if isinstance(value, (list, tuple)) else [value]
        for one in many:
            if one is True:
                words.append('--' + key.replace('_', '-'))
            elif one is not False and one is not None:
                words += ['--' + key.replace('_', '-'), str(one)]
    return words


def _made_of(results: Mapping[str, Any], ending: str, command: str, words: Sequence[str]) -> bytes:
    """What the program makes of the files of results, whose names are those of the mapping."""
    with tempfile.TemporaryDirectory(prefix='clustersim-') as folder:
        files, made = [], os.path.join(folder, 'made.' + ending)
        for name, result in results.items():
            files.append(name.replace('/', '_') + '.h5')
            result.save(os.path.join(folder, files[-1]))
        done = subprocess.run([program(), command, *words, '-o', made, '--', *files], cwd=folder,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = done.stderr.strip().replace('sim: error: ', '').splitlines()
            raise errors.PlotFailed([errors.Message(None, None, line) for line in lines])
        return pathlib.Path(made).read_bytes()


def plot(results: Mapping[str, Any], kind: Optional[str], format: str,
         options: Mapping[str, Any]) -> Picture:
    """Lets `sim plot` draw."""
    if format not in ('svg', 'png', 'pdf'):
        raise ValueError(f'format must be "svg", "png" or "pdf" (got {format!r})')
    return Picture(_made_of(results, format, 'plot', _words({'kind': kind, **options})), format)


def report(results: Mapping[str, Any]) -> Page:
    """Lets `sim report` make a page."""
    return Page(_made_of(results, 'html', 'report', []).decode())

"""Pictures of results, drawn by `sim plot`."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
from typing import Any, Callable, List, Optional, Union

from . import errors


_SHEETS = pathlib.Path(__file__).resolve().parent / 'plots'
"""What gnuplot needs, in a wheel; elsewhere the program knows where it is."""


def program() -> str:
    """Path of the program `sim`: CLUSTERSIM_PROGRAM, or where it was installed, or in PATH."""
    places = [os.environ.get('CLUSTERSIM_PROGRAM'),
              os.path.join(sysconfig.get_path('scripts'), 'sim') if _SHEETS.exists() else None]
    try:
        from ._installed import PROGRAM  # written when the package is installed
        places.append(PROGRAM)
    except ImportError:
        pass
    for place in places + [shutil.which('sim')]:
        if place and os.access(place, os.X_OK):
            return place
    raise errors.PlotFailed([errors.Message(
        None, None, 'the program sim, which draws pictures, is not in PATH; CLUSTERSIM_PROGRAM may '
        'be set to its path')])


class Picture:
    """A picture, which a notebook shows."""

    def __init__(self, data: bytes, format: str) -> None:
        self.data = data
        """The file as it is."""
        self.format = format
        """"svg", "png" or "pdf"."""

    def save(self, path: Union[str, 'os.PathLike[str]']) -> None:
        pathlib.Path(path).write_bytes(self.data)

    def _repr_svg_(self) -> Optional[str]:
        return self.data.decode() if self.format == 'svg' else None

    def _repr_png_(self) -> Optional[bytes]:
        return self.data if self.format == 'png' else None

    def __repr__(self) -> str:
        return f'<picture, {self.format}, {len(self.data)} bytes>'


def _words(options: Any) -> List[str]:
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


def plot(save: Callable[[str], None], kind: str, format: str, options: Any) -> Picture:
    """Lets `sim plot` draw a results file, which `save` writes."""
    if format not in ('svg', 'png', 'pdf'):
        raise ValueError(f'format must be "svg", "png" or "pdf" (got {format!r})')
    with tempfile.TemporaryDirectory(prefix='clustersim-') as folder:
        results, picture = os.path.join(folder, 'results.h5'), os.path.join(folder, 'p.' + format)
        save(results)
        environment = dict(os.environ)
        if _SHEETS.exists():
            environment.setdefault('SIM_PLOTS_DIR', str(_SHEETS))
        done = subprocess.run([program(), 'plot', results, '--kind', kind, '-o', picture,
                               *_words(options)], capture_output=True, text=True, check=False,
                              env=environment)
        if done.returncode != 0:
            text = done.stderr.strip().replace(results, 'results').replace('sim: error: ', '')
            raise errors.PlotFailed([errors.Message(None, None, line)
                                     for line in text.splitlines()])
        return Picture(pathlib.Path(picture).read_bytes(), format)

"""Tables of results: columns with units, as arrays, and as data frames where pandas is
installed."""
from __future__ import annotations

import array
import ctypes
import html
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _library

try:
    import numpy
except ImportError:  # columns are lists and arrays of the standard library then
    numpy = None  # type: ignore[assignment]

NONE = _library.NONE
"""In a column of ids: there is none."""

_FORMATS = {  # of numpy, and of the module array
    _library.INT64: ('<i8', 'q', ctypes.c_int64),
    _library.UINT32: ('<u4', 'I', ctypes.c_uint32),
    _library.UINT8: ('|u1', 'B', ctypes.c_uint8),
    _library.DOUBLE: ('<f8', 'd', ctypes.c_double),
}
_SHOWN_ROWS = 10


class _Memory:
    """Numbers of the library for numpy: the array refers to this, and this to what owns them."""

    def __init__(self, column: _library.Column, owner: Any) -> None:
        self._owner = owner
        self.__array_interface__ = {'version': 3, 'shape': (column.n,),
                                    'data': (column.values, True),
                                    'typestr': _FORMATS[column.type][0]}


def _words(column: _library.Column) -> Optional[List[str]]:
    words: List[str] = []
    while column.words and column.words[len(words)]:
        words.append(column.words[len(words)].decode())
    return words or None


class Column(NamedTuple):
    """What is said of a column beside its values."""

    unit: str
    """"ps", "bytes", "bytes/s", ...; "1" where there is none."""
    label: str
    """What it is, for people."""
    words: Optional[List[str]]
    """Of a coded column: what the codes 0, 1, ... stand for."""
    optional: bool
    """Ids, some of which may be NONE."""
    dimensions: Tuple[str, ...]
    """Names of the columns along which its values lie."""


class Table(Mapping[str, Any]):
    """Columns of equal length, `n_rows` values each. `table["start"]` is one of them: a numpy
    array that must not be written to, or, where numpy is not installed, an array of the
    standard library. Times are whole picoseconds, sizes whole bytes;
    `table.columns["start"].unit` says which unit it is. Columns of words ("forward",
    "transfer") are arrays of texts; `codes` has their numbers."""

    def __init__(self, name: str, parts: Sequence[_library.Column], owner: _library.Handle) -> None:
        self.name = name
        self.n_rows = max((part.n for part in parts), default=0)
        self._parts = {part.name.decode(): part for part in parts}
        self._owner: Optional[_library.Handle] = owner
        self._codes: Dict[str, Any] = {}
        self._values: Dict[str, Any] = {}
        self.columns: Dict[str, Column] = {}
        for key, part in self._parts.items():
            dimensions: List[str] = []
            while part.dimensions[len(dimensions)]:
                dimensions.append(part.dimensions[len(dimensions)].decode())
            self.columns[key] = Column(part.units.decode(), part.label.decode(), _words(part),
                                       bool(part.optional), tuple(dimensions))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        """How many columns it has; n_rows says how many rows."""
        return len(self.columns)

    def __getstate__(self) -> Dict[str, Any]:
        """Pickles the values, not pointers to the library's memory."""
        return {'name': self.name, 'n_rows': self.n_rows, 'columns': self.columns,
                '_codes': {key: self.codes(key) for key in self.columns}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, _parts={}, _owner=None, _values={})
        for values in self._codes.values():
            if hasattr(values, 'setflags'):
                values.setflags(write=False)

    def _texts(self, part: _library.Column) -> Any:
        texts = ctypes.cast(part.values, ctypes.POINTER(ctypes.c_char_p))
        values = [texts[i].decode() for i in range(part.n)]
        return values if numpy is None else numpy.array(values + [None], dtype=object)[:-1]

    def codes(self, key: str) -> Any:
        """The values of a column as numbers: of a column of words, their positions in
        `columns[key].words`."""
        if key not in self._codes:
            self._codes[key] = self._read(self._parts[key])
        return self._codes[key]

    def _read(self, part: _library.Column) -> Any:
        if part.type == _library.TEXT:
            return self._texts(part)
        typestr, code, kind = _FORMATS[part.type]
        if part.n == 0:
            return array.array(code) if numpy is None else numpy.empty(0, typestr)
        if numpy is not None:
            return numpy.asarray(_Memory(part, self._owner))
        return array.array(code, ctypes.string_at(part.values, part.n * ctypes.sizeof(kind)))

    def __getitem__(self, key: str) -> Any:
        if key not in self._values:
            words, codes = self.columns[key].words, self.codes(key)
            if words and numpy is not None:
                codes = numpy.array(words, dtype=object)[codes]
            elif words:
                codes = [words[i] for i in codes]
            self._values[key] = codes
        return self._values[key]

    def to_pandas(self) -> Any:
        """A DataFrame whose index is the first column: categories for columns of words, nullable
        integers for ids that may be missing. `attrs["units"]` has the units."""
        import pandas
        frame = {}
        for key, column in self.columns.items():
            if column.words:
                frame[key] = pandas.Categorical.from_codes(self.codes(key), column.words)
            elif column.optional:
                ids = self.codes(key)
                frame[key] = pandas.arrays.IntegerArray(ids.copy(), ids == NONE)
            else:
                frame[key] = self[key]
        made = pandas.DataFrame(frame).set_index(next(iter(self.columns)))
        made.attrs['units'] = {key: column.unit for key, column in self.columns.items()}
        return made

    def __repr__(self) -> str:
        return f'<table {self.name}: {self.n_rows} rows of {", ".join(self.columns)}>'

    def _repr_html_(self) -> str:
        heads = [key if column.unit == '1' else f'{key} ({column.unit})'
                 for key, column in self.columns.items()]
        n = min(self.n_rows, _SHOWN_ROWS)
        rows = [[_cell(self[key][i], column) for key, column in self.columns.items()]
                for i in range(n)]
        more = f'<p>{self.n_rows} rows</p>' if n < self.n_rows else ''
        return html_table(heads, rows) + more


def _cell(value: Any, column: Column) -> str:
    if column.optional and value == NONE:
        return ''
    return value if isinstance(value, str) else f'{value:.6g}' if isinstance(value, float) \
        else str(value)


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a notebook."""
    def line(cells: Sequence[str], tag: str) -> str:
        return '<tr>' + ''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells) + '</tr>'
    return ('<table><thead>' + line(heads, 'th') + '</thead><tbody>'
            + ''.join(line(row, 'td') for row in rows) + '</tbody></table>')


class Figures(Mapping[str, float]):
    """The figures of a run by their keys, which are those of `sim run --json`, in SI base units:
    `figures["iteration_time_s"]`. NaN where a figure is not known; a truth is 1 or 0."""

    def __init__(self, figures: Sequence[Tuple[str, str, str, float]]) -> None:
        self._values = {key: value for key, _, _, value in figures}
        self.labels = {key: label for key, label, _, _ in figures}
        """What each of them is, for people."""
        self.units = {key: unit for key, _, unit, _ in figures}
        """"s", "bytes", "samples/s", ...; "1" of numbers, fractions and truths."""

    def __getitem__(self, key: str) -> float:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return '\n'.join(f'{self.labels[key]}: {value:.6g}{_unit(self.units[key])}'
                         for key, value in self._values.items())

    def _repr_html_(self) -> str:
        rows = [[self.labels[key], f'{value:.6g}{_unit(self.units[key])}', key]
                for key, value in self._values.items()]
        return html_table(['figure', 'value', 'key'], rows)


def _unit(unit: str) -> str:
    return '' if unit == '1' else ' ' + unit


def tables_of(handle: _library.Handle) -> Dict[str, Table]:
    """The tables of a result: a group of columns each."""
    groups: Dict[str, List[_library.Column]] = {}
    for column in handle.columns():
        groups.setdefault(column.table.decode(), []).append(column)
    return {name: Table(name, parts, handle) for name, parts in groups.items()}

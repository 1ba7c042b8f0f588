"""What runs, sweeps and searches for plans return."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _library, columns, errors, pictures

Path = Union[str, 'os.PathLike[str]']


class Result:
    """What is common to all: the tables and attributes of a results file."""

    def __init__(self, handle: _library.Handle) -> None:
        self._handle = handle
        self.tables: Dict[str, columns.Table] = columns.tables_of(handle)
        """All tables by name."""
        self.attributes: Mapping[str, Any] = handle.attributes()
        """What the results file says of itself: name, program_version, ..."""

    @property
    def name(self) -> str:
        """Of the scenario."""
        return str(self.attributes['name'])

    def save(self, path: Path) -> None:
        """Writes the results file (HDF5): equal, byte by byte, to the one of the command `sim`. It
        appears whole or not at all. InputOutputFailed where it cannot be written."""
        self._handle.save(os.fspath(path))

    def summary(self) -> str:
        """What the command `sim` prints of it, for people."""
        return self._handle.text()

    def plot(self, kind: Optional[str] = None, format: str = 'svg',
             **options: Any) -> pictures.Picture:
        """A picture by `sim plot`, whose options are keywords: plot("timeline", devices=4,
        title="A"). Of a run it is a timeline, or "boxes", "memory", "mean-memory", "segments",
        "utilisation"; of a sweep "lines" or a "heatmap" of one figure, plot(value="makespan_s",
        at={"/schedule/kind": "1f1b"}); of a search "plans". PlotFailed, also where gnuplot is
        missing."""
        return pictures.plot({'results': self}, kind, format, options)

    def report(self) -> pictures.Page:
        """A page by `sim report`: timeline, memory, links, all figures, to zoom into. PlotFailed
        where the program was built without it."""
        return pictures.report({'results': self})


class RunResult(Result):
    """A simulated run."""

    def __init__(self, handle: _library.Handle, scenario: str,
                 warnings: Tuple[errors.Message, ...]) -> None:
        super().__init__(handle)
        self.figures = columns.Figures(handle.figures())
        """Iteration time, throughput, peak memory and so on, by key, in SI base units."""
        self.warnings = warnings
        """What of the scenario is valid and hardly meant."""
        self._scenario = scenario

    @property
    def scenario(self) -> Dict[str, Any]:
        """The scenario with every default written out."""
        return dict(json.loads(self._scenario))

    @property
    def hash(self) -> str:
        """Two runs with the same hash gave the same result; it is the one that `sim run` prints."""
        return str(self.attributes['hash'])

    @property
    def tasks(self) -> columns.Table:
        """What was done: kind, device, stage, mini_batch, micro_batch, start and end (ps),
        bytes."""
        return self.tables['tasks']

    @property
    def memory(self) -> columns.Table:
        """Changes of live memory in order of time: time (ps), device, category, bytes live in it
        from then on. No rows where the scenario does not record it."""
        return self.tables['memory']

    @property
    def links(self) -> columns.Table:
        """Name, bandwidth (bytes/s), bytes carried, utilisation of each link."""
        return self.tables['links']

    @property
    def devices(self) -> columns.Table:
        """Capacity and peaks (bytes), and where the time went (ps), of each device."""
        return self.tables['devices']

    def __repr__(self) -> str:
        return f'<run of {self.name}, hash {self.hash}>\n{self.figures!r}'

    def _repr_html_(self) -> str:
        return self.figures._repr_html_()


class SweepResult(Result):
    """A scenario simulated at many points."""

    def __init__(self, handle: _library.Handle) -> None:
        super().__init__(handle)
        self._table = self.tables['/']

    @property
    def keys(self) -> Dict[str, str]:
        """JSON pointers of the varied keys by the names of their columns:
        {"schedule.micro_batches": "/schedule/micro_batches"}."""
        return {key: self._table.columns[key].label for key in self.attributes['axes'].split()}

    @property
    def is_grid(self) -> bool:
        """True where the points are all combinations of values, False where they are a list."""
        return bool(self.attributes['form'] == 'grid')

    @property
    def n_points(self) -> int:
        return int(self.attributes['points'])

    @property
    def n_failed(self) -> int:
        """Points that failed; their texts are in the column `error`."""
        return int(self.attributes['failed'])

    def _figures(self) -> List[str]:
        keys = self.keys
        return [key for key in self._table if key not in keys and key != 'point']

    def to_xarray(self) -> Any:
        """A Dataset: a dimension per varied key, or `point` where they vary together; every figure
        of the runs a variable with its units, NaN where a point failed; `error` says why."""
        import xarray
        keys, described = self.keys, self._table.columns
        about = {key: {'units': column.unit, 'long_name': column.label}
                 for key, column in described.items()}
        shape = [len(self._table[key]) for key in keys] if self.is_grid else [self.n_points]
        coords = {key: (described[key].dimensions, self._table[key], about[key]) for key in keys}
        return xarray.Dataset(
            {key: (described[key].dimensions, self._table[key].reshape(shape), about[key])
             for key in self._figures()}, coords, dict(self.attributes))

    def to_pandas(self) -> Any:
        """A DataFrame with a row per point: the varied keys, every figure, `error`."""
        import numpy
        import pandas
        keys = list(self.keys)
        values = {key: self._table[key] for key in keys}
        if self.is_grid:
            grids = numpy.meshgrid(*(range(len(values[key])) for key in keys), indexing='ij')
            values = {key: values[key][grid.ravel()] for key, grid in zip(keys, grids)}
        frame = pandas.DataFrame({**values, **{key: self._table[key] for key in self._figures()}})
        frame.attrs['units'] = {key: column.unit for key, column in self._table.columns.items()}
        return frame

    def __repr__(self) -> str:
        return f'<sweep of {self.name}: {self.n_points} points of {", ".join(self.keys.values())}>'

    def _repr_html_(self) -> str:
        shown = [key for key in ('iteration_time_s', 'throughput_samples_per_s',
                                 'peak_memory_bytes',
                                 'out_of_memory', 'error') if key in self._table]
        frame = self.to_pandas()[list(self.keys) + shown]
        return str(frame.to_html(index=False))


class Plan(Mapping[str, Any]):
    """A plan to train a model: how it is divided over devices. Keys are those of `sim advise
    --json`: "plan" (in words), "step_time_s", "peak_memory_bytes", "limits_s", ..."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._said = said

    @property
    def changes(self) -> Dict[str, Any]:
        """The changes that make the scenario follow this plan, for `run`."""
        return dict(self._said['changes'])

    def __getitem__(self, key: str) -> Any:
        return self._said[key]

    def __iter__(self) -> Any:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)

    def __repr__(self) -> str:
        return (f'<plan {self["plan"]}: {self["step_time_s"]:.6g} s, '
                f'{self["peak_memory_bytes"]:.6g} bytes>')


class Advice(Result):
    """What a search for plans has found."""

    def __init__(self, handle: _library.Handle) -> None:
        super().__init__(handle)
        self._said: Dict[str, Any] = json.loads(handle.json())
        self.best: List[Plan] = [Plan(one) for one in self._said['best']]
        """The fastest plans that fit into memory, the best first; none where nothing fits."""
        self.front: List[Plan] = [Plan(one) for one in self._said['front']]
        """Plans of which none is both faster and smaller than another."""

    @property
    def plans(self) -> columns.Table:
        """All plans that were considered: sizes of the axes, bounds and, where it was simulated,
        step time (s), peak memory (bytes), throughput (samples/s)."""
        return self.tables['plans']

    @property
    def counts(self) -> Dict[str, int]:
        """How many plans were simulated, left out, impossible."""
        return dict(self._said['plans'])

    @property
    def fastest_that_does_not_fit(self) -> Optional[Plan]:
        said = self._said['fastest_that_does_not_fit']
        return Plan(said) if said else None

    def __repr__(self) -> str:
        return f'<search for plans of {self.name}: {self.counts["all"]} plans, the best:>\n' + (
            '\n'.join(map(repr, self.best)) or 'none fits')

    def _repr_html_(self) -> str:
        rows = [[one['plan'], f'{one["step_time_s"]:.6g}', f'{one["peak_memory_bytes"] / 1e9:.4g}',
                 str(one.get('limited_by', ''))] for one in self.best]
        return columns.html_table(['plan', 'step (s)', 'peak memory (GB)', 'limited by'], rows)

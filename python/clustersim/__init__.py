"""clustersim: simulates training schedules of deep networks on clusters.

    import clustersim

    result = clustersim.run("scenario.json", {"/schedule/micro_batches": 16})
    result.figures["iteration_time_s"]          # s
    result.tasks.to_pandas()                    # what was done, when and where
    clustersim.sweep("scenario.json", {"/schedule/micro_batches": [4, 8, 16]}).to_xarray()
    clustersim.advise("scenario.json").best[0].changes

Scenarios are those of the program `sim`, and so are results and messages. Every function may be
called by several threads at once; others run meanwhile. Ctrl-C ends a call.
"""
from __future__ import annotations

import json
import os
import warnings as _warnings
from typing import Any, Mapping, Optional, Sequence, Union

from . import _library, pictures
from .errors import (DoesNotFit64Bits, Error, InputOutputFailed, InvalidScenario, MemoryExhausted,
                     Message, NoPlanFits, PlotFailed, ScenarioWarning, SimulationFailed, Stopped)
from .pictures import Page, Picture
from .results import Advice, Plan, Result, RunResult, SweepResult
from .columns import NONE, Column, Figures, Table

__all__ = ['Advice', 'Column', 'DoesNotFit64Bits', 'Error', 'Figures', 'InputOutputFailed',
           'InvalidScenario', 'MemoryExhausted', 'Message', 'NONE', 'NoPlanFits', 'Page', 'Picture',
           'Plan', 'PlotFailed', 'Result', 'RunResult', 'ScenarioWarning', 'SimulationFailed',
           'Stopped', 'SweepResult', 'Table', 'advise', 'plot', 'report', 'run',
           'sweep']
__version__: str = _library.version().decode()

Scenario = Union[str, 'os.PathLike[str]', Mapping[str, Any]]
"""A path, JSON text, or the scenario as a dict."""
Changes = Mapping[str, Any]
"""Values by JSON pointers: {"/schedule/micro_batches": 16}."""


def _plain(value: Any) -> Any:
    """Of what JSON does not know: numbers and arrays of numpy, paths."""
    if hasattr(value, 'tolist'):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f'a scenario cannot have a {type(value).__name__}: {value!r}')


def _json(value: Any) -> str:
    return json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)


def _source(scenario: Scenario, changes: Optional[Changes],
            folder: Union[str, 'os.PathLike[str]', None]) -> _library.Source:
    pairs = {pointer: _json(value) for pointer, value in (changes or {}).items()}
    name = os.path.join(os.fspath(folder), 'scenario') if folder is not None else 'scenario'
    if isinstance(scenario, Mapping):
        return _library.source_of(name, _json(scenario), pairs)
    text = os.fspath(scenario)
    if text.lstrip()[:1] == '{':
        return _library.source_of(name, text, pairs)
    return _library.source_of(text, None, pairs)


def run(scenario: Scenario, changes: Optional[Changes] = None, *,
        folder: Union[str, 'os.PathLike[str]', None] = None, seed_offset: int = 0,
        stop_on_oom: bool = False) -> RunResult:
    """Simulates a scenario.

    scenario: a path, JSON text or a dict; of the latter two, `folder` is where the files are that
    it
        names (the current folder).
    changes: values by JSON pointers, as `sim run --set` takes them.
    seed_offset: added to the scenario's seed, for runs that differ by their noise.
    stop_on_oom: end at the first allocation beyond a device's capacity.

    Warns with ScenarioWarning of what is hardly meant. Raises InvalidScenario, SimulationFailed,
    DoesNotFit64Bits, MemoryExhausted.
    """
    read = _library.Scenario(_source(scenario, changes, folder))
    for message in read.warnings:
        _warnings.warn(str(message), ScenarioWarning, stacklevel=2)
    return RunResult(read.run(seed_offset=seed_offset, stop_on_oom=stop_on_oom), read.resolved,
                     tuple(read.warnings))


def _values(values: Union[str, Sequence[Any]]) -> str:
    if isinstance(values, str):
        return values
    return ','.join(_json(value) for value in values)


def sweep(scenario: Scenario, vary: Optional[Mapping[str, Union[str, Sequence[Any]]]] = None,
          changes: Optional[Changes] = None, *, together: bool = False,
          csv: Union[str, 'os.PathLike[str]', None] = None,
          folder: Union[str, 'os.PathLike[str]', None] = None, jobs: int = 0) -> SweepResult:
    """Simulates a scenario at many points, in threads.

    vary: values by JSON pointers: a list, or a text as `sim sweep --vary` takes it ("2..32",
        "1..64..x2 GB/s"). Without it the scenario's own section "sweep" counts.
    changes: changes of the scenario at all points.
    together: take the first values of all keys, then the second ones, not every combination.
    csv: in place of `vary`, a file of points.
    jobs: threads; 0: as many as there are processors.

    A point that fails has a message in the column `error`; only where all fail SimulationFailed is
    raised. Raises as `run` does, too.
    """
    source = _source(scenario, changes, folder)
    keys = {pointer: _values(values) for pointer, values in (vary or {}).items()}
    return SweepResult(_library.sweep(source, keys, together, None if csv is None
                                      else os.fspath(csv),
                                      jobs))


def advise(scenario: Scenario, changes: Optional[Changes] = None, *, top: int = 10, most: int = 0,
           budget_s: float = 0, exhaustive: bool = False,
           folder: Union[str, 'os.PathLike[str]', None] = None, jobs: int = 0) -> Advice:
    """Searches for the best plans to train the scenario's model on its platform.

    top: plans to rank and to examine.
    most: plans to simulate at most, the most promising first; 0: no limit.
    budget_s: seconds after which the search ends; 0: none. What was tried until then depends on the
        machine.
    exhaustive: simulate every plan, also those that cannot be better.
    jobs: threads; 0: as many as there are processors.

    The scenario's section "advise" narrows what is tried. Raises as `run` does.
    """
    return Advice(_library.advise(_source(scenario, changes, folder), top, most, budget_s,
                                  exhaustive, jobs))


def _named(results: Union[Mapping[str, Result], Sequence[Result]]) -> Mapping[str, Result]:
    if isinstance(results, Mapping):
        return results
    return {f'{i}-{result.name}': result for i, result in enumerate(results, 1)}


def plot(results: Union[Mapping[str, Result], Sequence[Result]], kind: Optional[str] = None,
         format: str = 'svg', **options: Any) -> Picture:
    """One picture of several runs, by `sim plot`: plot([first, second]). Options as of
    `Result.plot`."""
    return pictures.plot(_named(results), kind, format, options)


def report(results: Union[Mapping[str, Result], Sequence[Result]]) -> Page:
    """One page of two to six runs below each other, by `sim report`, with the differences of their
    figures. In a mapping they have names: report({"as today": first, "with recomputing":
    second})."""
    return pictures.report(_named(results))

"""The functions of libclustersim, by ctypes. clustersim.h documents them."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
import tempfile
import threading
from ctypes import (POINTER, Structure, Union, byref, c_char_p, c_double, c_int, c_int64, c_size_t,
                    c_uint32, c_uint64, c_void_p)
from typing import Any, Callable, List, Mapping, Optional, Tuple, Type

from . import errors

SONAME = 'libclustersim.so.0'
WHEEL = pathlib.Path(__file__).resolve().parent.parent / '.clustersim.mesonpy.libs'
"""Where meson-python puts the library in a wheel; other installations lack this folder."""


def _places() -> List[str]:
    """Where the library may be, the most wanted place first."""
    given = os.environ.get('CLUSTERSIM_LIBRARY')
    if given:
        return [given]
    places = [str(path) for path in sorted(WHEEL.glob(SONAME + '*'))]
    try:
        from ._installed import LIBRARY  # type: ignore[import]  # written by meson
        places.append(LIBRARY)
    except ImportError:
        pass
    return places + [SONAME]


def _load() -> ctypes.CDLL:
    tried = []
    for place in _places():
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            tried.append(str(error))
    raise ImportError('cannot load libclustersim; install it with `meson install`, or set '
                      'CLUSTERSIM_LIBRARY to its path: ' + '; '.join(tried))


_c = _load()


# ---- types ----


class Change(Structure):
    _fields_ = [('pointer', c_char_p), ('value', c_char_p)]


class Source(Structure):
    _fields_ = [('path', c_char_p), ('text', c_char_p), ('changes', POINTER(Change)),
                ('n_changes', c_size_t)]


class Options(Structure):
    _fields_ = [('size', c_size_t), ('seed_offset', c_uint64), ('stop_on_oom', c_int),
                ('progress', c_void_p), ('context', c_void_p), ('stop', POINTER(c_int)),
                ('figures_only', c_int), ('jobs', c_uint32)]


class Vary(Structure):
    _fields_ = [('keys', POINTER(Change)), ('n', c_size_t), ('together', c_int), ('csv', c_char_p)]


class Search(Structure):
    _fields_ = [('size', c_size_t), ('top', c_uint32), ('most', c_uint32), ('budget', c_double),
                ('exhaustive', c_int)]


class _Message(Structure):
    _fields_ = [('file', c_char_p), ('pointer', c_char_p), ('text', c_char_p)]


class Figure(Structure):
    _fields_ = [('key', c_char_p), ('label', c_char_p), ('unit', c_char_p), ('value', c_double)]


class Column(Structure):
    _fields_ = [('table', c_char_p), ('name', c_char_p), ('units', c_char_p), ('label', c_char_p),
                ('type', c_int), ('n', c_size_t), ('values', c_void_p),
                ('words', POINTER(c_char_p)),
                ('optional', c_int), ('dimensions', POINTER(c_char_p))]


class _Value(Union):
    _fields_ = [('int64', c_int64), ('uint64', c_uint64), ('float64', c_double), ('text', c_char_p)]


class Attribute(Structure):
    _fields_ = [('name', c_char_p), ('type', c_int), ('value', _Value)]


INT64, UINT32, UINT8, DOUBLE, TEXT, UINT64 = range(6)
NONE = 2**32 - 1


def _function(name: str, result: Any, *arguments: Any) -> Any:
    try:
        function = getattr(_c, 'clustersim_' + name)
    except AttributeError:
        raise ImportError(f'{_c._name} is older than this package: it has no clustersim_{name}'
                          ) from None
    function.restype, function.argtypes = result, arguments
    return function


_handle_out, _error_out = POINTER(c_void_p), POINTER(c_void_p)
version = _function('version', c_char_p)
_error_count = _function('error_count', c_size_t, c_void_p)
_error_message = _function('error_message', _Message, c_void_p, c_size_t)
_error_free = _function('error_free', None, c_void_p)
_scenario_read = _function('scenario_read', c_int, POINTER(Source), POINTER(Options), _handle_out,
                           _error_out)
_scenario_resolved = _function('scenario_resolved', c_char_p, c_void_p)
_scenario_warnings = _function('scenario_warnings', c_void_p, c_void_p)
_scenario_free = _function('scenario_free', None, c_void_p)
_run = _function('run', c_int, c_void_p, POINTER(Options), _handle_out, _error_out)
_sweep = _function('sweep', c_int, POINTER(Source), POINTER(Vary), POINTER(Options), _handle_out,
                   _error_out)
_advise = _function('advise', c_int, POINTER(Source), POINTER(Search), POINTER(Options),
                    _handle_out, _error_out)
_result_free = _function('result_free', None, c_void_p)
_result_figures = _function('result_figures', c_size_t, c_void_p, POINTER(POINTER(Figure)))
_result_columns = _function('result_columns', c_size_t, c_void_p, POINTER(POINTER(Column)))
_result_attributes = _function('result_attributes', c_size_t, c_void_p, POINTER(POINTER(Attribute)))
_result_text = _function('result_text', c_char_p, c_void_p)
_result_json = _function('result_json', c_char_p, c_void_p)
_result_save = _function('result_save', c_int, c_void_p, c_char_p, POINTER(Options), _error_out)


# ---- failures ----

_KINDS: Mapping[int, Type[errors.Error]] = {
    1: errors.SimulationFailed,
    2: errors.MemoryExhausted,
    3: errors.InputOutputFailed,
    4: errors.DoesNotFit64Bits,
    5: errors.InvalidScenario,
    6: errors.NoPlanFits,
    7: errors.Stopped,
}


def _text(given: Optional[bytes]) -> Optional[str]:
    return None if given is None else given.decode(errors='replace')


def _messages(record: Optional[int]) -> List[errors.Message]:
    parts = [_error_message(record, i) for i in range(_error_count(record))]
    return [errors.Message(_text(part.file), _text(part.pointer), _text(part.text) or '')
            for part in parts]


def _check(status: int, record: c_void_p) -> None:
    if status == 0:
        return
    try:
        said = _messages(record.value)
    finally:
        _error_free(record)
    if not said and status == 2:
        said = [errors.Message(None, None, 'out of memory')]
    raise _KINDS[status](said)


# ---- calls ----

_saving = threading.Lock()
"""HDF5 may have been built without threads."""


def _interruptible(call: Callable[[], Any], stop: c_int) -> Any:
    """Calls, and asks the call to stop at Ctrl-C. Python handles signals between the instructions
    of its main thread only; so that one waits, which a signal ends, while another one works.
    Returns and raises only once the call has ended."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    came: List[Any] = []
    raised: List[BaseException] = []
    done = threading.Event()  # Thread.join() takes a thread for ended once a signal came meanwhile

    def work() -> None:
        try:
            came.append(call())
        except BaseException as error:  # handed on below
            raised.append(error)
        finally:
            done.set()

    interruption: Optional[BaseException] = None
    threading.Thread(target=work, name='clustersim', daemon=True).start()
    while not done.is_set():
        try:
            done.wait()
        except BaseException as error:
            stop.value = 1
            interruption = error
    if interruption:
        raise interruption
    if raised:
        raise raised[0]
    return came[0]


def _encode(text: str) -> bytes:
    """Of texts and paths; one that cannot be handed to C is refused."""
    if '\0' in text:
        raise ValueError('a text has a NUL character: ' + repr(text))
    return os.fsencode(text)


def changes_of(pairs: Mapping[str, str]) -> 'ctypes.Array[Change]':
    made = (Change * max(len(pairs), 1))()
    for i, (pointer, value) in enumerate(pairs.items()):
        made[i] = Change(_encode(pointer), _encode(value))
    return made


def source_of(path: str, text: Optional[str], changes: Mapping[str, str]) -> Source:
    return Source(_encode(path), None if text is None else _encode(text), changes_of(changes),
                  len(changes))


class _Call:
    """Options of a call, and a place for what it makes."""

    def __init__(self, **options: Any) -> None:
        self.stop = c_int(0)
        self.options = Options(size=ctypes.sizeof(Options), stop=ctypes.pointer(self.stop),
                               **options)
        self.made = c_void_p()
        self.error = c_void_p()

    def run(self, function: Any, *arguments: Any) -> None:
        """Calls a function that makes something."""
        status = _interruptible(lambda: function(*arguments, byref(self.options), byref(self.made),
                                                 byref(self.error)), self.stop)
        _check(status, self.error)


class Scenario:
    """A scenario that was read."""

    def __init__(self, source: Source) -> None:
        call = _Call()
        self._handle = call.made  # freed also where an interruption came just when it was done
        call.run(_scenario_read, byref(source))
        self.resolved = (_scenario_resolved(self._handle) or b'').decode()
        self.warnings = _messages(_scenario_warnings(self._handle))

    def run(self, **options: Any) -> 'Handle':
        return Handle(_run, self._handle, **options)

    def __del__(self, free: Any = _scenario_free) -> None:
        free(self._handle)


class Handle:
    """A result of the library, freed with the last object that refers to it."""

    def __init__(self, function: Any, *arguments: Any, **options: Any) -> None:
        call = _Call(**options)
        self._handle = call.made
        call.run(function, *arguments)

    def __del__(self, free: Any = _result_free) -> None:
        free(self._handle)

    def __reduce__(self) -> Any:
        """Pickled results and deep copies contain the results file instead of the library's
        handle."""
        with tempfile.TemporaryDirectory(prefix='clustersim-') as folder:
            path = os.path.join(folder, 'result.h5')
            self.save(path)
            return Stored, (self.text(), self.json(), pathlib.Path(path).read_bytes())

    def figures(self) -> List[Tuple[str, str, str, float]]:
        """Key, label, unit, value of each."""
        at = POINTER(Figure)()
        n = _result_figures(self._handle, byref(at))
        return [(at[i].key.decode(), at[i].label.decode(), at[i].unit.decode(), at[i].value)
                for i in range(n)]

    def columns(self) -> List[Column]:
        at = POINTER(Column)()
        n = _result_columns(self._handle, byref(at))
        return [at[i] for i in range(n)]

    def attributes(self) -> Mapping[str, Any]:
        at = POINTER(Attribute)()
        n = _result_attributes(self._handle, byref(at))
        members = {INT64: 'int64', UINT64: 'uint64', DOUBLE: 'float64'}
        return {a.name.decode(): a.value.text.decode() if a.type == TEXT
                else getattr(a.value, members[a.type]) for a in (at[i] for i in range(n))}

    def text(self) -> str:
        return (_result_text(self._handle) or b'').decode()

    def json(self) -> str:
        return (_result_json(self._handle) or b'').decode()

    def save(self, path: str) -> None:
        call, name = _Call(), _encode(path)

        def save() -> int:
            with _saving:
                return int(_result_save(self._handle, name, byref(call.options), byref(call.error)))

        _check(_interruptible(save, call.stop), call.error)


class Stored:
    """The texts and the file of a result that was pickled or copied."""

    def __init__(self, text: str, json: str, file: bytes) -> None:
        self._text, self._json, self._file = text, json, file

    def __reduce__(self) -> Any:
        return Stored, (self._text, self._json, self._file)

    def text(self) -> str:
        return self._text

    def json(self) -> str:
        return self._json

    def save(self, path: str) -> None:
        """Writes atomically, follows links, and writes to devices in place, like the library."""
        _encode(path)
        final = os.path.realpath(path)
        try:
            if os.path.exists(final) and not os.path.isfile(final):
                pathlib.Path(final).write_bytes(self._file)
                return
            with tempfile.TemporaryDirectory(
                    prefix='.clustersim-', dir=os.path.dirname(final)) as folder:
                made = os.path.join(folder, 'result')
                pathlib.Path(made).write_bytes(self._file)
                os.replace(made, final)
        except OSError as error:
            raise errors.InputOutputFailed([errors.Message(
                path, None, f'cannot write: {error.strerror}')]) from None


def sweep(source: Source, keys: Mapping[str, str], together: bool, csv: Optional[str],
          jobs: int) -> Handle:
    vary = Vary(changes_of(keys), len(keys), together, None if csv is None else _encode(csv))
    return Handle(_sweep, byref(source), byref(vary), jobs=jobs)


def advise(source: Source, top: int, most: int, budget: float, exhaustive: bool,
           jobs: int) -> Handle:
    search = Search(ctypes.sizeof(Search), top, most, budget, exhaustive)
    return Handle(_advise, byref(source), byref(search), jobs=jobs)

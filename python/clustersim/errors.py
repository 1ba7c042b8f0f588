"""What can go wrong, as exceptions with the texts that the program `sim` prints."""
from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple


class Message(NamedTuple):
    """One thing that is wrong, and what would be right."""

    file: Optional[str]
    """The file that it is about, if it is about one."""
    pointer: Optional[str]
    """JSON pointer of the place in the file: "/schedule/micro_batches"."""
    text: str

    def __str__(self) -> str:
        return ': '.join(part for part in self if part)


class Error(Exception):
    """Base of all errors of this package. Its text has a line for each message."""

    messages: Tuple[Message, ...]

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__(messages)
        self.messages = tuple(messages)

    def __str__(self) -> str:
        return '\n'.join(map(str, self.messages))

    @property
    def file(self) -> Optional[str]:
        """The file that the first message is about."""
        return self.messages[0].file if self.messages else None

    @property
    def pointer(self) -> Optional[str]:
        """The place that the first message is about, a JSON pointer."""
        return self.messages[0].pointer if self.messages else None


class InvalidScenario(Error, ValueError):
    """The scenario, a change of it, or a file that it names, is wrong or cannot be read."""


class SimulationFailed(Error, RuntimeError):
    """The simulation failed; of a sweep: at all points."""


class NoPlanFits(Error, RuntimeError):
    """No plan fits the devices, or a limit is exceeded."""


class InputOutputFailed(Error, OSError):
    """A file could not be read or written."""


class DoesNotFit64Bits(Error, OverflowError):
    """A time or a size does not fit 64 bits."""


class MemoryExhausted(Error, MemoryError):
    """This machine has no more memory. (A simulated device that runs out of memory is no error: see
    the figure `out_of_memory`.)"""


class Stopped(Error):
    """The work was stopped."""


class PlotFailed(Error, RuntimeError):
    """`sim plot` could not draw the picture."""


class ScenarioWarning(UserWarning):
    """What is valid and hardly meant."""

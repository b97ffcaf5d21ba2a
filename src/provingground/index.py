"""Where the cells of a study lie, as a process knows it."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from provingground.chunk import Ids


class Index:
    """Where cells lie, in 40 bytes each: files by number, cells in a few sorted runs.

    Of a cell that is in several files the one whose name sorts first counts, whichever was seen
    first. A run is merged with the one before it once it is half as long, so that adding n cells
    costs about n log n in all.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.copied = False  # whether a cell is in several files
        self._runs: list[tuple[np.ndarray, ...]] = []

    def __len__(self) -> int:
        return sum(len(ids) for ids, _, _ in self._runs)

    def add(self, added: Mapping[str, Ids]) -> None:
        """Adds files with their cells."""
        names = sorted(added)
        cells = [added[name] for name in names]
        lengths = [len(some) for some in cells]
        if not sum(lengths):
            self.files += names
            return
        ids = np.concatenate(cells)
        self.copied |= bool((self.where(ids)[0] >= 0).any())
        first = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
        rows = (np.arange(len(ids)) - first).astype(np.int32)
        numbers = np.repeat(np.arange(len(names)) + len(self.files), lengths).astype(np.int32)
        self.files += names
        self._runs.append(self._by_id((ids, numbers, rows)))
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            pair = zip(self._runs.pop(-2), self._runs.pop(), strict=True)
            self._runs.append(self._by_id(tuple(np.concatenate(both) for both in pair)))

    def _by_id(self, run: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Sorted by cell, copies by the names of their files."""
        order = np.argsort(run[0], kind="stable")
        ids = run[0][order]
        if (ids[1:] == ids[:-1]).any():
            self.copied = True
            order = np.lexsort((np.array(self.files)[run[1]], run[0]))
        return tuple(column[order] for column in run)

    def where(self, cells: Ids) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The number of each cell's file (-1: not stored) and its row there."""
        file, row = np.full(cells.shape, -1, np.int32), np.full(cells.shape, -1, np.int32)
        for ids, numbers, rows in self._runs:
            at = np.minimum(np.searchsorted(ids, cells), len(ids) - 1)
            here = ids[at] == cells
            if self.copied:
                for place in zip(*np.nonzero(here & (file >= 0)), strict=True):
                    known, other = self.files[file[place]], self.files[numbers[at[place]]]
                    here[place] = other < known
            file[here], row[here] = numbers[at[here]], rows[at[here]]
        return file, row

    def copies(self, cells: Ids) -> dict[bytes, list[str]]:
        """Those of some cells that are in several files, with these."""
        if not self.copied:
            return {}
        wanted = np.unique(cells)
        places = [
            (numbers, np.searchsorted(ids, wanted), np.searchsorted(ids, wanted, side="right"))
            for ids, numbers, _ in self._runs
        ]
        often = sum(high - low for _, low, high in places)
        return {
            bytes(wanted[n]): sorted(
                self.files[number]
                for numbers, low, high in places
                for number in numbers[low[n] : high[n]]
            )
            for n in np.flatnonzero(np.asarray(often) > 1)
        }

    @property
    def cells(self) -> Ids:
        """All cells."""
        return np.concatenate([ids for ids, _, _ in self._runs] or [np.empty(0, "S32")])

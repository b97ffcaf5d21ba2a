"""Real images in two groups, for Figures 4.1 and 4.8: CelebA, and what stands in for it.

Of CelebA (a user's own copy) the label is blond hair and the groups are women and men, as in the
thesis. Coloured MNIST: the label is a digit of 5 or more, the groups are red and green digits.
CIFAR-10: the label is whether it flies (a bird, an aeroplane), the groups are animals and vehicles.

Letters in shapes: g the two groups, P images of a group to draw from, Q to test on, s side,
c colours, n images in all.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Int8, Int32, Integer, UInt8

from provingground.data import real

SIDE = 32
MOST, TESTED = 5000, 500  # images of a group to draw from, and to test on: 500 as in the thesis
AIRPLANE, BIRD = 0, 2
VEHICLES = (AIRPLANE, 1, 8, 9)

Some = np.ndarray | Array
Split = tuple[UInt8[np.ndarray, "_ s s c"], Bool[np.ndarray, "_"], Bool[np.ndarray, "_"]]


class Pool(NamedTuple):
    """Images by group; a group has `size` of them, the others are blank."""

    images: UInt8[Some, "g P s s c"]
    labels: Int8[Some, "g P"]
    size: Int32[Some, "g"]
    test_images: UInt8[Some, "g Q s s c"]
    test_labels: Int8[Some, "g Q"]


def pooled(train: Split, test: Split, most: int = MOST, tested: int = TESTED) -> Pool:
    """The first images of either group, from splits of images, labels and groups."""

    def first(split: Split, size: int) -> tuple[Any, Any, list[int]]:
        images, labels, group = split
        x = np.zeros((2, size, *images.shape[1:]), np.uint8)
        y = np.zeros((2, size), np.int8)
        places = [np.flatnonzero(group == g)[:size] for g in (False, True)]
        for g, at in enumerate(places):
            x[g, : len(at)], y[g, : len(at)] = images[at], labels[at]
        return x, y, [len(at) for at in places]

    x, y, count = first(train, most)
    tested = min(tested, *(int(np.sum(test[2] == g)) for g in (False, True)))
    return Pool(x, y, np.array(count, np.int32), *first(test, tested)[:2])


def coloured(
    digits: UInt8[np.ndarray, "n h h"], what: Integer[np.ndarray, "n"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Digits within a black frame, by turns red and green; labelled 1 from 5 on."""
    edge = (SIDE - digits.shape[1]) // 2
    group = np.arange(len(digits)) % 2 == 1
    images = np.zeros((len(digits), SIDE, SIDE, 3), np.uint8)
    inside = images[:, edge : SIDE - edge, edge : SIDE - edge]
    inside[~group, ..., 0], inside[group, ..., 1] = digits[~group], digits[group]
    return images, what >= 5, group


def flying(
    images: UInt8[np.ndarray, "n s s c"], what: Integer[np.ndarray, "n"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As many birds as other animals, as many aeroplanes as other vehicles, by turns."""
    vehicle, flies = np.isin(what, VEHICLES), np.isin(what, (AIRPLANE, BIRD))
    order = []
    for group in (False, True):
        kinds = [np.flatnonzero((vehicle == group) & (flies == f)) for f in (True, False)]
        size = min(map(len, kinds))
        order.append(np.stack([kind[:size] for kind in kinds], axis=1).ravel())
    at = np.concatenate(order)
    return images[at], flies[at], vehicle[at]


def faces(found: Mapping[str, np.ndarray], splits: tuple[int, ...]) -> Split:
    """Faces of some of CelebA's splits (0 to train, 1 to validate, 2 to test on)."""
    names = [str(name) for name in found["attribute_names"]]
    at = np.isin(found["split"], splits)
    has = {name: found["attributes"][at, names.index(name)] for name in ("Blond_Hair", "Male")}
    return found["images"][at], has["Blond_Hair"], has["Male"]


@cache
def mnist() -> Pool:
    """Group 0 red, group 1 green."""
    found = real.load("mnist")
    train = coloured(found["x_train"][: 2 * MOST], found["y_train"][: 2 * MOST])
    return pooled(train, coloured(found["x_test"][: 2 * TESTED], found["y_test"][: 2 * TESTED]))


@real.reads("cifar10")
@cache
def cifar() -> Pool:
    """Group 0 animals, group 1 vehicles."""
    found = real.load("cifar10")
    train, test = (flying(found[f"x_{s}"], found[f"y_{s}"]) for s in ("train", "test"))
    return pooled(train, test)


@cache
def celeba() -> Pool:
    """Group 0 women, group 1 men."""
    found = real.load("celeba")
    return pooled(faces(found, (0, 1)), faces(found, (2,)))

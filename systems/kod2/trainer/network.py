"""What is trained: a network with one hidden layer that tells ten kinds of made-up pictures apart. Pure numpy."""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

from mews.systems.kod2.trainer.wire import Vector

INPUTS, HIDDEN, CLASSES = 64, 48, 10
SIZE = INPUTS * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES
"""How many parameters there are."""

_NOISE = 3.0
_PICTURES_SEED = 1

Matrix = NDArray[numpy.float32]


def initial(seed: int = 0) -> Vector:
    """Parameters before the first step; the same in every server."""
    rng = numpy.random.default_rng(seed)
    return (rng.standard_normal(SIZE) * 0.1).astype(numpy.float32)


def batch(size: int, rng: numpy.random.Generator) -> tuple[Matrix, NDArray[numpy.int64]]:
    """Noisy pictures of the ten kinds, and which kind each is."""
    centres = numpy.random.default_rng(_PICTURES_SEED).standard_normal((CLASSES, INPUTS)).astype(numpy.float32)
    kinds = rng.integers(0, CLASSES, size)
    pictures = centres[kinds] + _NOISE * rng.standard_normal((size, INPUTS)).astype(numpy.float32)
    return pictures.astype(numpy.float32), kinds


def gradient(parameters: Vector, pictures: Matrix, kinds: NDArray[numpy.int64]) -> tuple[float, Vector]:
    """Return the loss (mean cross-entropy) on a batch, and its gradient."""
    w1, b1, w2, b2 = _parts(parameters)
    hidden = numpy.maximum(0.0, pictures @ w1 + b1)
    scores = hidden @ w2 + b2
    scores -= scores.max(axis=1, keepdims=True)
    shares = numpy.exp(scores)
    shares /= shares.sum(axis=1, keepdims=True)
    rows = numpy.arange(len(kinds))
    loss = float(-numpy.log(shares[rows, kinds] + 1e-9).mean())
    shares[rows, kinds] -= 1.0
    shares /= len(kinds)
    back = (shares @ w2.T) * (hidden > 0)
    parts = (pictures.T @ back, back.sum(axis=0), hidden.T @ shares, shares.sum(axis=0))
    return loss, numpy.concatenate([part.ravel() for part in parts]).astype(numpy.float32)


def _parts(parameters: Vector) -> tuple[Matrix, Vector, Matrix, Vector]:
    sizes = (INPUTS * HIDDEN, HIDDEN, HIDDEN * CLASSES, CLASSES)
    w1, b1, w2, b2 = numpy.split(parameters, numpy.cumsum(sizes)[:-1])
    return w1.reshape(INPUTS, HIDDEN), b1, w2.reshape(HIDDEN, CLASSES), b2

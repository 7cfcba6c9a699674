"""Trainings that ended no better than the unigram model, by the courses that real ones took in the Garden World."""

import math
import random

import pytest

from lecture04.training.course import has_collapsed

UNIGRAM = 3.764


def course(n, *quarters, first=6.8):
    """n losses: the first, then each quarter's mean with the noise of a batch, the step before it on the way there."""
    draw = random.Random(0)
    losses = [quarters[min(i * 4 // n, 3)] + draw.gauss(0, 0.04) for i in range(n)]
    return [first, *losses[1:]]


@pytest.mark.parametrize(
    ("losses", "collapsed"),
    [
        # sweeps=stability, the 2017 recipe, seeds 1 and 2: they sit at the unigram model's loss for 500 steps
        (course(500, 3.803, 3.773, 3.765, 3.764, first=5.8), True),
        (course(500, 3.812, 3.769, 3.766, 3.764, first=6.1), True),
        # optim.lr=1: exploded at once, and on its way back
        (course(200, 195.3, 123.4, 44.3, 7.1), True),
        # one that had learned something, and lost it
        (course(400, 3.9, 2.6, 3.7, 3.77), True),
        # a spike in the middle that it did not come back from
        (course(60, 4.2, 3.5, 3.9, 3.7), True),
        # standard models of 20 and of 60 steps, without and with a warm-up
        (course(20, 5.064, 3.798, 3.679, 3.671), False),
        (course(20, 6.697, 6.328, 5.722, 4.983), False),
        (course(20, 4.817, 3.779, 3.730, 3.730), False),
        # small rates: still far above word frequencies, and falling, however slowly
        (course(200, 6.731, 6.626, 6.421, 6.317), False),
        (course(600, 6.80, 6.79, 6.77, 6.76), False),
        # past the unigram model and still falling
        (course(400, 4.2, 3.8, 3.7, 3.6), False),
        ([], False),
        ([6.8], False),
        ([6.8, 5.5], False),
        ([6.8, 5.5, 4.8], False),
        ([6.8, 9.0, 60.0], True),
    ],
)
def test_a_collapse_is_told_from_a_training_that_was_too_short(losses, collapsed):
    assert has_collapsed(losses, UNIGRAM) is collapsed


def test_what_the_batches_alone_move_decides_nothing():
    """A long stand at the unigram model's loss is one, whatever the batches; a short one never is."""
    for seed in range(50):
        draw = random.Random(seed)
        flat = [UNIGRAM + draw.gauss(0, 0.05) for _ in range(500)]
        assert has_collapsed(flat, UNIGRAM)
        assert not has_collapsed(flat[:60], UNIGRAM)
        falling = [UNIGRAM + 3 * math.exp(-i / 100) + draw.gauss(0, 0.05) for i in range(200)]
        assert not has_collapsed(falling, UNIGRAM)

"""The lines of the figures are told apart without their colours, and the distance is the published one."""

import numpy as np
import pytest
from colours import GROUNDS, SEEN, ciede2000, contrast, lab, linear, nearest

from lecture04.report.figures.style import COLOURS, DASHES, LOOKS, MOST_TOLD_APART, line

WHITE = "#ffffff"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [  # of the test data of Sharma, Wu and Dalal (2005)
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0000),
        ((50, 2.4900, -0.0010), (50, -2.4900, 0.0011), 7.2195),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (56, -27, -3), 31.9030),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_of_colours_is_the_published_one(one, other, expected):
    assert ciede2000(np.array(one), np.array(other)) == pytest.approx(expected, abs=1e-4)
    assert ciede2000(np.array(other), np.array(one)) == pytest.approx(expected, abs=1e-4)


def test_white_and_grey_have_no_hue():
    assert lab(linear(WHITE)) == pytest.approx([100, 0, 0], abs=1e-3)
    assert lab(linear("#808080")) == pytest.approx([53.585, 0, 0], abs=1e-2)
    assert contrast(WHITE, "#000000") == pytest.approx(21)


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("seen", SEEN)
def test_lines_of_the_same_dashes_stay_apart_for_everybody(ground, seen):
    assert nearest(ground, SEEN[seen])[0] > 15


@pytest.mark.parametrize(("ground", "paper"), GROUNDS.items())
def test_lines_and_verdicts_stand_out_from_their_ground(ground, paper):
    assert min(contrast(getattr(colour, ground), paper) for colour in COLOURS) >= 3
    assert min(contrast(getattr(look.colour, ground), paper) for look in LOOKS.values()) >= 4.5


def test_no_two_of_the_lines_are_the_same():
    lines = [line(i) for i in range(MOST_TOLD_APART)]
    assert len(set(lines)) == MOST_TOLD_APART
    assert len({dashes for _, dashes in lines[: len(DASHES)]}) == len(DASHES), "the first rows differ by dashes alone"
    assert line(MOST_TOLD_APART) == line(0), "no more than are promised"

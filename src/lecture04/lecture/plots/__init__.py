"""The pages' plots, one function a plot, from evidence alone: `PLOTS` has them by name."""

from lecture04.lecture.plots import curves, probes, rows  # noqa: F401  registers every plot
from lecture04.lecture.plots.common import PLOTS, save

__all__ = ["PLOTS", "save"]

"""Functions that plot releases."""

from .tables.release.plots import plot_heatmap, plot_intervals
from .tables.release.release_plot import plot_release

__all__ = ["plot_heatmap", "plot_intervals", "plot_release"]

"""Population means of unbounded data: locate privately, clip, and release the clipped mean with optimal noise."""

from .clipped import clipped_mean
from .coinpress import coinpress_mean
from .covariance import coinpress_covariance
from .estimate import Estimate
from .gaussian import gaussian_mean
from .location import coarse_location

__all__ = ["Estimate", "clipped_mean", "coarse_location", "coinpress_covariance", "coinpress_mean", "gaussian_mean"]

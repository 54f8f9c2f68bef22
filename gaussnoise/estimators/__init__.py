"""Population means of unbounded data: locate privately, clip, and release the clipped mean with optimal noise."""

from .clipped import clipped_mean
from .cover import pure_person_level_mean
from .estimate import Estimate
from .gaussian import gaussian_mean
from .location import coarse_location
from .person import person_level_mean

__all__ = [
    "Estimate",
    "clipped_mean",
    "coarse_location",
    "gaussian_mean",
    "person_level_mean",
    "pure_person_level_mean",
]

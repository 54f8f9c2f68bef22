"""Estimators of population means of unbounded data: they clip records, and add optimal noise."""

from ..tables.release.mean_changes import MeanChange, MeanChanges
from ..tables.release.population import ColumnMean, ColumnMeans, MeanDifference
from .cautionary import release_one_at_random
from .clipped import clipped_mean
from .coinpress import coinpress_mean
from .columns import column_means
from .covariance import coinpress_covariance
from .cover import pure_person_level_mean
from .density import histogram_density
from .estimate import Estimate
from .gaussian import gaussian_mean
from .location import coarse_location
from .moments import heavy_tailed_mean, truncated_mean
from .person import person_level_mean
from .population import population_means
from .rates import Rate, rates

__all__ = [
    "ColumnMean",
    "ColumnMeans",
    "Estimate",
    "MeanChange",
    "MeanChanges",
    "MeanDifference",
    "Rate",
    "clipped_mean",
    "coarse_location",
    "coinpress_covariance",
    "coinpress_mean",
    "column_means",
    "gaussian_mean",
    "heavy_tailed_mean",
    "histogram_density",
    "person_level_mean",
    "population_means",
    "pure_person_level_mean",
    "rates",
    "release_one_at_random",
    "truncated_mean",
]

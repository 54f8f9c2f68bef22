"""The base class of ellipsoids and zonotopes: images of a ball or a cube around a center."""

import abc

from ..domain import AbstractDomain, QuadraticMax
from ..floats import Array
from ..oracles.image import ConvexImage


class AbstractCentered(AbstractDomain):
    """A body that is symmetric about a stored center and uses the oracles of linear images."""

    center: Array

    @property
    def dim(self) -> int:
        return len(self.center)

    @property
    def is_symmetric(self) -> bool:
        return not self.center.any()

    def _center(self) -> Array:
        return self.center.copy()

    @abc.abstractmethod
    def _image(self) -> ConvexImage: ...

    def _support_point(self, theta: Array) -> Array:
        return self._image().support_point(theta)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        return self._image().max_quadratic(form, center)

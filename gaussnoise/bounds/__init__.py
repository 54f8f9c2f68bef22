"""Lower bounds on the error of all unbiased private mechanisms."""

from .bound import Bound, bound_of
from .door import lower_bound
from .hard_coded import HardCodedMechanism

__all__ = ["Bound", "HardCodedMechanism", "bound_of", "lower_bound"]

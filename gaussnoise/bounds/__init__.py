"""What no unbiased private mechanism can beat."""

from ._bound import Bound, bound_of
from ._door import lower_bound
from ._hard_coded import HardCodedMechanism

__all__ = ["Bound", "HardCodedMechanism", "bound_of", "lower_bound"]

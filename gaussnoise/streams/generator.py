"""Generators of correlated noise, tick by tick, for research and for training models."""

import hashlib
import secrets
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.participation.patterns import AbstractPatterns

from ..errors import ParameterError
from ..solvers.streams.recursions import Recursion
from ..text import no_less

Array = NDArray[np.float64]


@final
class NoiseGenerator:
    """A generator of correlated noise for the contributions at the ticks of a stream.

    A tick is a time step. Let ``clip`` bound the norm of a contribution, and let σ be the noise
    multiplier. Add ``σ · clip`` times :meth:`next` to the contribution of each tick (in training:
    to the sum of clipped gradients of each step), and apply the workload to the noisy
    contributions. One person then changes the stream by at most ``1/σ`` standard deviations of the
    noise. So all answers together are ``1/(2σ²)``-zCDP, even if contributions depend on earlier
    answers.

    This is floating-point noise, for research and training, like that of other libraries for
    private training. :meth:`Plan.release` and the other releases of this package add other noise:
    integers drawn by OpenDP.

    Attributes:
        ticks: n, the number of ticks for which there is noise.
        sensitivity: proven upper bound on the change of C x by one person, for contributions x and
            the strategy C, which is scaled so that the bound is 1.
        standard_deviation: the standard deviation of the noise of each answer at σ = 1, shape (n,),
            read-only.
        error: the error of the answers at σ = 1: for "mean", the root mean square of their standard
            deviations; for "max", the largest of them.
        lower: certified lower bound on this error for all noise of sensitivity 1.
        factor: error / lower, at least 1: an upper bound on the cost of few states.
        buffers: the number of arrays, of the shape of one contribution, kept between ticks.
        participation: the ticks in which one person may take part; None if each takes part once.

    Source: noise by Nikolov & Tang (2023); correlated noise for training by Denisov et al. (2022);
    few states by Dvijotham et al. (2024), here with coefficients that change from tick to tick.

    >>> generator = gn.streams.noise(gn.streams.prefix_sums(8))
    >>> first = generator.next(3)
    >>> print(generator.ticks, first.shape)
    8 (3,)
    """

    def __init__(
        self,
        recursion: Recursion,
        sensitivity: float,
        participation: AbstractPatterns | None = None,
        *,
        error: float,
        lower: float,
    ) -> None:
        self.participation = participation
        self._recursion = recursion.scaled(sensitivity)
        self.ticks = recursion.ticks
        self.sensitivity = 1.0
        self.standard_deviation = np.sqrt(self._recursion.variances())
        self.standard_deviation.flags.writeable = False
        self.error, self.lower = error, lower
        self._tick = 0
        self._states: list[Any] = []

    @property
    def factor(self) -> float:
        """An upper bound on the error divided by the least possible error: ``error / lower``."""
        return self.error / self.lower

    @property
    def buffers(self) -> int:
        """The number of arrays, of the shape of one contribution, that are kept between ticks."""
        return self._recursion.buffers

    def __repr__(self) -> str:
        who = self.participation
        return (
            f"NoiseGenerator({self.ticks} ticks, {self.buffers} buffers, error {self.error:.6g} at "
            f"unit sensitivity{'' if who is None else f' for {who!r}'}: "
            f"at most {no_less(100 * (self.factor - 1), 2)} % above the best possible)"
        )

    def next(self, shape: int | tuple[int, ...] = ()) -> Array:
        """Return noise for the contribution of the next tick, for the noise multiplier σ = 1.

        Its randomness comes from the operating system.

        Args:
            shape: the shape of one contribution, the same at every tick.

        Raises:
            ParameterError: all ticks are used up, or the shape differs from before.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        # 53 random bits per number; adding 0.5 keeps the uniform numbers away from 0 and 1
        bits = np.frombuffer(
            secrets.token_bytes(8 * int(np.prod(shape))), dtype=np.uint64
        ) >> np.uint64(11)
        return self.correlate(scipy.special.ndtri((bits + 0.5) * 2.0**-53).reshape(shape))

    def correlate(self, normal: Any) -> Any:
        """Return noise like :meth:`next`, made from your own independent standard normal numbers.

        Args:
            normal: fresh numbers of the shape of one contribution, in an array of any library, such
                as numpy, torch or jax. They are only added, and multiplied by floats, so they stay
                on their device.

        >>> noise = gn.streams.noise(gn.streams.prefix_sums(64))
        >>> noise.correlate(np.zeros(3))
        array([0., 0., 0.])
        """
        t, made = self._tick, self._recursion
        if t == self.ticks:
            raise ParameterError(
                f"next: all {self.ticks} ticks are used; hint: plan a workload of more ticks"
            )
        shape = tuple(getattr(normal, "shape", ()))
        if not t:
            self._states = [0.0 * normal] * made.buffers
        elif shape != (expected := tuple(getattr(self._states[0], "shape", ()))):
            raise ParameterError(
                f"next: expected the shape {expected} of the ticks before, got {shape}"
            )
        noise, self._states = made.advanced(t, self._states, normal)
        self._tick += 1
        return noise

    def toarray(self) -> Array:
        """Return the strategy C, a lower triangular matrix of shape (n, n).

        The noise of all ticks is C⁻¹ times independent standard normal numbers.
        """
        return self._recursion.strategy()

    def state_dict(self) -> dict[str, Any]:
        """Return the state from which :meth:`load_state_dict` continues after this tick.

        Keep saved states of a training run as private as its noise.
        """
        return {"design": self._digest(), "tick": self._tick, "states": list(self._states)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that :meth:`state_dict` returned.

        Raises:
            ParameterError: the state is that of a generator of another design.
        """
        if not isinstance(state, dict) or state.get("design") != self._digest():
            raise ParameterError(
                "load_state_dict: expected the state of a generator of this design, got another "
                "one; "
                "hint: make the generator with the same workload, participation, states and error"
            )
        self._tick = int(state["tick"])
        self._states = list(state["states"])

    def _digest(self) -> str:
        numbers = (np.ascontiguousarray(array).tobytes() for array in self._recursion.arrays)
        return hashlib.sha256(b"".join(numbers)).hexdigest()

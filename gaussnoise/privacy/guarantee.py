"""What a privacy guarantee says of itself, how it is read back, and how arguments are checked."""

import dataclasses
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..errors import NotAvailableError, ParameterError, PrivacyWarning
from .lattice_bound import MIN_STEPS

if TYPE_CHECKING:
    from .definitions import zCDP


class AbstractPrivacy:
    """A privacy guarantee about neighbouring data sets.

    Its class says all that depends on which guarantee it is. One of your own is a frozen dataclass
    whose fields JSON can hold. It overrides :meth:`to_zcdp`, how much Gaussian noise keeps it, and
    the methods of which something is known; the others say that nothing is. What tests and lower
    bounds need follows from what it :meth:`implies`, or from its :meth:`power`.

    What its methods say must hold for every mechanism that keeps the guarantee. The guarantee may
    only depend on how easily a test tells the outputs on two neighbours apart, so that whatever is
    computed from an output keeps it too.

    Attributes:
        noise: what keeps it: "gaussian" noise of :meth:`to_zcdp`, "laplace" noise of
            :meth:`to_epsilon`, or "local" messages.
        instead: what to use where Gaussian noise is asked for and does not keep it.

    >>> from dataclasses import dataclass
    >>> from gaussnoise.privacy import AbstractPrivacy, implied
    >>> @dataclass(frozen=True)
    ... class Renyi(AbstractPrivacy):
    ...     order: float
    ...     divergence: float
    ...
    ...     def to_zcdp(self, draws=1, steps=2.0**28):
    ...         return gn.zCDP(self.divergence / self.order * (1 - 1e-15))
    ...
    ...     def implies(self, delta):  # divergences grow with their order; KL's is one
    ...         return [gn.KL(self.divergence)]
    >>> implied(Renyi(2.0, 0.5))
    [KL(alpha=0.5), TV(alpha=0.5000000004656613)]
    """

    noise: ClassVar[Literal["gaussian", "laplace", "local"]] = "gaussian"
    instead: ClassVar[str] = ""

    # Which noise keeps it

    def to_zcdp(self, draws: int = 1, steps: float = MIN_STEPS) -> "zCDP":
        """The ρ to spend: Gaussians Σ with ``Δ' Σ⁺ Δ <= 2ρ`` for all differences Δ keep it.

        Formal guarantees:
            * The guarantee holds for the release of ``draws`` integers plus independent discrete
              Gaussians of scale at least ``steps``, if the integers' change between neighbours has
              squared length at most ``2ρ scale²``; also where they are released in steps that
              depend on what came out before.
            * ρ is below the mathematical value by a margin that covers the rounding of its
              evaluation.

        Args:
            draws: how many integer noises a release draws, at least.
            steps: lattice steps per standard deviation of each, at most; in [1, 2⁶²].

        Raises:
            ParameterError: no such ρ is known, or arguments out of range.
        """
        raise ParameterError(
            f"{type(self).__name__}: no Gaussian noise is known to keep it"
            + (f"; {self.instead}" if self.instead else "; hint: override to_zcdp")
        )

    def to_epsilon(self) -> float:
        """An ε for which ε-differential privacy implies it: what Laplace noise may spend.

        Raises:
            NotAvailableError: none is known.
        """
        raise NotAvailableError(
            f"{type(self).__name__}: no Laplace noise is known to keep it; hint: override "
            "to_epsilon"
        )

    def failing(self, share: float) -> "tuple[AbstractPrivacy, float] | None":
        """Split off a share of its δ: what is left for noise, and the δ of an event that may fail.

        A mechanism that keeps what is left, but for an event of at most that probability, keeps
        the whole. None where there is no δ to share.
        """
        return None

    # Its words, its record, and how that is read back

    @property
    def words(self) -> str:
        """The guarantee as a sentence names it."""
        return repr(self)

    def budget(self, rho: float, draws: int, steps: float, scope: str = "") -> str:
        """What Gaussian noise spends, in words; ``scope``: what for, if for several releases."""
        return f"{self.words}{f', {scope}' if scope else ''}, by Gaussian noise of rho = {rho:.6g}"

    def concern(self) -> str:
        """Why its numbers protect hardly anybody; empty where they do."""
        return ""

    def arguments(self) -> dict[str, Any]:
        """What its class is called with, by name: all of its fields.

        Raises:
            ParameterError: not a frozen dataclass.
        """
        if not dataclasses.is_dataclass(self) or not type(self).__dataclass_params__.frozen:  # pyright: ignore[reportAttributeAccessIssue]
            raise ParameterError(
                f"{type(self).__name__}: expected a frozen dataclass, whose fields say all of the "
                "guarantee"
            )
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        """Its words, and what noise spends for it, for the records of releases.

        All numbers right after "definition" are printed with a release. Arguments as of
        :meth:`to_zcdp`.
        """
        spent: dict[str, object] = {}
        if self.noise == "gaussian":
            spent = {"rho": self.to_zcdp(draws, steps).rho}
        elif self.noise == "laplace":
            spent = {"epsilon": self.to_epsilon(), "method": "discrete Laplace noise"}
        return {"definition": self.words} | spent

    def stated(self) -> dict[str, Any]:
        """Its class by name and its arguments, from which :meth:`read` makes it again.

        Raises:
            ParameterError: it would not be read back as itself.
        """
        record = {"definition": type(self).__name__} | self.arguments()
        try:
            again = AbstractPrivacy.read(json.loads(json.dumps(record, allow_nan=False)))
        except NotAvailableError as error:
            reason = str(error)
        except (TypeError, ValueError) as error:
            reason = f"got {type(error).__name__}"
        else:
            if again == self:
                return record
            reason = f"got {again!r} of {type(again).__module__}"
        raise ParameterError(
            f"{type(self).__name__}: expected a guarantee that is read back from its record as "
            f"itself, {reason}; hint: fields of finite numbers and texts, and a class with a "
            "name of its own"
        )

    @staticmethod
    def read(record: Mapping[str, Any]) -> "AbstractPrivacy":
        """Make the guarantee again that :meth:`stated` wrote.

        Raises:
            NotAvailableError: this program has no class of that name, or several.
            ParameterError, TypeError, LookupError: other arguments than it takes.
        """
        name = record["definition"]
        classes = {
            (cls.__module__, cls.__qualname__): cls  # the last one, where a notebook ran twice
            for cls in _below(AbstractPrivacy)
            if cls.__name__ == name
        }
        ours = [cls for cls in classes.values() if cls.__module__.startswith(f"{__package__}.")]
        found = ours or list(classes.values())
        if len(found) != 1:
            raise NotAvailableError(
                f"expected one privacy guarantee called {name!r:.100}, this program has "
                f"{len(found)}; hint: import the module that defines it"
            )
        return found[0](**{key: value for key, value in record.items() if key != "definition"})

    # What it says of tests between neighbours

    def implies(self, delta: float) -> "list[AbstractPrivacy]":
        """Guarantees that every mechanism with this one has; of (ε, δ) at this δ."""
        return []

    def power(self, level: float) -> float | None:
        """Its trade-off function: the largest power of any test of this level between neighbours.

        In [level, 1], concave and not decreasing in the level.
        """
        return None

    def growth(self, chance: float) -> float | None:
        """The most that log odds grow on an event of this probability."""
        return None

    def variation(self) -> float | None:
        """The largest total variation between the outputs on two neighbours."""
        return None

    # What no mechanism can beat under it

    def chi_squared(self) -> tuple[float, str] | None:
        """The largest χ² between the outputs on two neighbours, and why that is known, in words.

        None where χ² has no bound.
        """
        return None

    def epsilon_delta(self) -> tuple[float, float] | None:
        """One (ε, δ) that it implies, ε = 0 included, for lower bounds where χ² has no bound."""
        return None

    def resampled(self, n: int) -> "tuple[AbstractPrivacy, str] | None":
        """What n draws from n records keep of it, and by which rule; None where it is not known.

        Raises:
            ParameterError: nothing is left of it.
        """
        return None


def check_privacy(function: str, privacy: object) -> AbstractPrivacy:
    """Return the guarantee; refuse anything else."""
    if isinstance(privacy, AbstractPrivacy):
        return privacy
    raise _refused(function, privacy)


def check_gaussian(function: str, privacy: object, stacklevel: int = 2) -> AbstractPrivacy:
    """Return the guarantee if Gaussian noise keeps it; warn where it means little."""
    privacy = check_privacy(function, privacy)
    if privacy.noise != "gaussian":
        raise _refused(function, privacy, privacy.instead)
    if concern := privacy.concern():
        warnings.warn(f"{function}: {concern}", PrivacyWarning, stacklevel=stacklevel + 1)
    return privacy


def _refused(function: str, privacy: object, instead: str = "") -> ParameterError:
    return ParameterError(
        f"{function}: expected a privacy definition like zCDP(rho) or ApproxDP(epsilon, delta), "
        f"got {type(privacy).__name__}{f'; {instead}' if instead else ''}"
    )


def _below(cls: type[AbstractPrivacy]) -> Iterator[type[AbstractPrivacy]]:
    for inner in cls.__subclasses__():
        yield inner
        yield from _below(inner)

"""The base class of privacy guarantees, their records in files, and checks of arguments."""

import dataclasses
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from ..errors import NotAvailableError, ParameterError, PrivacyWarning
from ..text import no_less
from .lattice_bound import MIN_STEPS

if TYPE_CHECKING:
    from .definitions import zCDP


class Larger(NamedTuple):
    """An example of records that have a larger budget than other records.

    Attributes:
        record: the numbers of the record, in words.
        factor: the ratio of the record's ρ to the ρ of the guarantee.
    """

    record: str
    factor: float


class AbstractPrivacy:
    """A privacy guarantee about neighbouring data sets.

    Everything that depends on the kind of guarantee is in its class. A guarantee of your own is a
    frozen dataclass whose fields JSON can hold. It overrides :meth:`to_zcdp`, which returns the ρ
    of Gaussian noise that satisfies the guarantee. It may override other methods, if their results
    are known. By default, these return that nothing is known, for example by None. Tests and lower
    bounds use the guarantees that :meth:`implies` returns, or :meth:`power`.

    Results must be valid for every mechanism with the guarantee. A guarantee may only depend on how
    easily a test distinguishes the outputs on two neighbours, so that everything computed from an
    output has the guarantee too.

    Attributes:
        noise: the kind of noise that satisfies the guarantee: "gaussian" with the ρ of
            :meth:`to_zcdp`, "laplace" with the ε of :meth:`to_epsilon`, or "local" messages.
        instead: a hint for users who ask for Gaussian noise, if Gaussian noise does not satisfy it.

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
    ...     def implies(self, delta):  # divergences grow with their order, and KL has order 1
    ...         return [gn.KL(self.divergence)]
    >>> implied(Renyi(2.0, 0.5))
    [KL(alpha=0.5), TV(alpha=0.5000000004656613)]
    """

    noise: ClassVar[Literal["gaussian", "laplace", "local"]] = "gaussian"
    instead: ClassVar[str] = ""

    # Which noise satisfies the guarantee

    def to_zcdp(self, draws: int = 1, steps: float = MIN_STEPS) -> "zCDP":
        """Return the ρ of Gaussian noise that satisfies this guarantee.

        Noise of covariance Σ costs ρ if ``Δ' Σ⁺ Δ <= 2ρ`` for all changes Δ of the answer between
        neighbours.

        Formal guarantees:
            * The guarantee holds for the release of ``draws`` integers plus independent discrete
              Gaussians of scale at least ``steps``, if the change of the integers between
              neighbours has squared length at most ``2ρ scale²``. It also holds if the integers are
              released in several steps that depend on earlier results.
            * ρ is below the mathematical value by a margin that covers the rounding of its
              evaluation.

        Args:
            draws: an upper bound on the number of noisy integers that a release draws.
            steps: a lower bound on the lattice steps per standard deviation, in [1, 2⁶²].

        Raises:
            ParameterError: no such ρ is known, or arguments out of range.
        """
        raise ParameterError(
            f"{type(self).__name__}: no Gaussian noise is known to satisfy it"
            + (f"; {self.instead}" if self.instead else "; hint: override to_zcdp")
        )

    def to_epsilon(self) -> float:
        """Return an ε such that ε-differential privacy, by Laplace noise, implies this guarantee.

        Raises:
            NotAvailableError: no such ε is known.
        """
        raise NotAvailableError(
            f"{type(self).__name__}: no Laplace noise is known to satisfy it; hint: override "
            "to_epsilon"
        )

    def failing(self, share: float) -> "tuple[AbstractPrivacy, float] | None":
        """Return the guarantee without a share of its δ, and the removed part of δ.

        Suppose that a mechanism has the returned guarantee, except on an event whose probability is
        at most the removed part of δ. Then the mechanism has the whole guarantee. Return None if
        the guarantee has no δ.
        """
        return None

    # The words for the guarantee, its record in files, and how it is read again

    @property
    def words(self) -> str:
        """The name of the guarantee, for use in sentences."""
        return repr(self)

    def budget(self, rho: float, draws: int, steps: float, scope: str = "") -> str:
        """Return a description of the cost ρ of Gaussian noise, in words.

        ``scope`` names the releases that cost ρ together, if there are several.
        """
        of = f", {scope}" if scope else ""
        return f"{self.words}{of}, by Gaussian noise of rho = {no_less(rho)}"

    # Budgets that depend on the record

    @property
    def scales(self) -> Mapping[str, float]:
        """{name: scale T} for the numbers that raise the budget of their record.

        The mapping is empty for guarantees other than :class:`PerRecord`, where all records have
        one budget.
        """
        return {}

    def larger(self) -> tuple[Larger, ...]:
        """Return examples of records with larger budgets; () if all budgets are equal."""
        return ()

    def factor_over(self, scales: Mapping[str, float]) -> float | None:
        """Return the least c such that the budget c ρ, growing by ``scales``, covers all records.

        Return None if no c is enough.
        """
        return None if self.scales else 1.0

    def concern(self) -> str:
        """Return a warning, as text, if the guarantee hardly protects; otherwise ""."""
        return ""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor by name: all fields of the dataclass.

        Raises:
            ParameterError: the class is not a frozen dataclass.
        """
        if not dataclasses.is_dataclass(self) or not type(self).__dataclass_params__.frozen:  # pyright: ignore[reportAttributeAccessIssue]
            raise ParameterError(
                f"{type(self).__name__}: expected a frozen dataclass, whose fields say all of the "
                "guarantee"
            )
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def as_dict(self, draws: int = 1, steps: float = MIN_STEPS) -> dict[str, object]:
        """Return a record for releases: the name of the guarantee, and the ρ or ε of its noise.

        The text of a release shows "definition", and the numbers after it until the first entry
        that is not a number. The arguments are those of :meth:`to_zcdp`.
        """
        spent: dict[str, object] = {}
        if self.noise == "gaussian":
            spent = {"rho": self.to_zcdp(draws, steps).rho}
        elif self.noise == "laplace":
            spent = {"epsilon": self.to_epsilon(), "method": "discrete Laplace noise"}
        return {"definition": self.words} | spent

    def stated(self) -> dict[str, Any]:
        """Return the name of the class and its arguments, from which :meth:`read` rebuilds it.

        Raises:
            ParameterError: :meth:`read` would return another guarantee.
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
        """Return the guarantee that was written by :meth:`stated`.

        Raises:
            NotAvailableError: this program has no class of that name, or several.
            ParameterError, TypeError, LookupError: arguments that the class does not take.
        """
        name = record["definition"]
        classes = {
            # the last definition, if a notebook defined the class several times
            (cls.__module__, cls.__qualname__): cls
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

    # Bounds on tests between neighbours

    def implies(self, delta: float) -> "list[AbstractPrivacy]":
        """Return the known guarantees that this one implies, with ``delta`` for (ε, δ)."""
        return []

    def power(self, level: float) -> float | None:
        """Return the largest power of a test of this level between neighbours; None if unknown.

        As a function of the level, the power is the trade-off function of the guarantee. It is in
        [level, 1], concave and not decreasing.
        """
        return None

    def growth(self, chance: float) -> float | None:
        """Return a bound on how much an event can raise the log odds that a record is in the data.

        ``chance`` is the probability of the event with the record. None if no bound is known.
        """
        return None

    def variation(self) -> float | None:
        """Return the largest total variation distance of outputs on neighbouring data sets.

        None if it is unknown.
        """
        return None

    # Numbers for lower bounds on the error of every mechanism with the guarantee

    def chi_squared(self) -> tuple[float, str] | None:
        """Return the largest χ² divergence between outputs on neighbours, and the source as text.

        Return None if no bound on χ² is known.
        """
        return None

    def epsilon_delta(self) -> tuple[float, float] | None:
        """Return an (ε, δ), ε >= 0, that this guarantee implies, or None if it is unknown.

        Lower bounds on errors use it where χ² is unknown.
        """
        return None

    def resampled(self, n: int) -> "tuple[AbstractPrivacy, str] | None":
        """Return the guarantee for n draws with replacement from n records, and the rule as text.

        None if it is unknown.

        Raises:
            ParameterError: resampling leaves no guarantee.
        """
        return None


def check_privacy(function: str, privacy: object) -> AbstractPrivacy:
    """Return the argument if it is a privacy guarantee; otherwise raise ParameterError."""
    if isinstance(privacy, AbstractPrivacy):
        return privacy
    raise ParameterError(
        f"{function}: expected a privacy guarantee like zCDP(rho) or PureDP(epsilon), got "
        f"{type(privacy).__name__}"
    )


def check_gaussian(function: str, privacy: object, stacklevel: int = 2) -> AbstractPrivacy:
    """Return the guarantee if Gaussian noise satisfies it; otherwise raise an error.

    Warn if the guarantee gives hardly any protection.
    """
    if not (isinstance(privacy, AbstractPrivacy) and privacy.noise == "gaussian"):
        instead = privacy.instead if isinstance(privacy, AbstractPrivacy) else ""
        raise ParameterError(
            f"{function}: expected a privacy guarantee like zCDP(rho) or ApproxDP(epsilon, "
            f"delta), got {type(privacy).__name__}{f'; {instead}' if instead else ''}"
        )
    if concern := privacy.concern():
        warnings.warn(f"{function}: {concern}", PrivacyWarning, stacklevel=stacklevel + 1)
    return privacy


def _below(cls: type[AbstractPrivacy]) -> Iterator[type[AbstractPrivacy]]:
    for inner in cls.__subclasses__():
        yield inner
        yield from _below(inner)

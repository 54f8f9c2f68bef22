"""A Markov chain on the ticks of one person, whose second moment proves a lower bound on errors.

A person takes part at ticks ``i_1 < … < i_m``, with m <= k. The probability of these ticks is
proportional to ``s[k − m, i_1] K[i_1, i_2] … K[i_{m−1}, i_m]``. K is zero between ticks less than b
apart. Vectors added at ticks i and j have the correlation ⟨c_i, c_j⟩. The dual problem needs only
the probability that ticks i and j are both in the set. This probability is a sum of products with
powers of K, so no sets are listed.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy

from domains.floats import Array

from ...numerics.norms import dual_power
from .descent import descended

_STEPS, _MEMORY = 1000, 20
_DECREASE = 2e-9
_WORK = 2.0**36  # multiplications in all steps at one number of ticks: about 10 s
_MOST = 2**16  # with more entries in the powers of K, steps start on every second tick
_MOST_FREE = 512  # largest number of ticks for which all correlations are free
_COMMON, _OWN = 0.8, 0.4  # entries of c at the start, before rows are shortened below one
_RARE = -8.0  # logarithm of the total weight, at the start, of sets of fewer than k ticks
_ALONE = 1e-8  # added weight of sets of one tick, so that every tick has a positive probability
_RANGE = 1e-14  # eigenvalues below this fraction of the largest are rounding


@dataclass(frozen=True, eq=False)
class Chain:
    """A Markov chain on the ticks of one person: weights of all sets of at most k ticks.

    The set of ticks ``i_1 < … < i_m`` has the weight ``s[k − m, i_1] K[i_1, i_2] … K[i_{m−1},
    i_m]``. Vectors added at ticks i and j have the correlation ⟨c_i, c_j⟩.

    Attributes:
        start: s, shape (k, n), nonnegative.
        steps: K, shape (n, n), nonnegative, above the diagonal.
        alike: c, shape (n, r), rows of length at most one; a column of ones if numbers are added.
    """

    start: Array
    steps: Array
    alike: Array

    def total(self) -> float:
        """Return the sum of the weights of all sets: probabilities are weights divided by it."""
        return float(_forward(self)[-1].sum())

    def second_moment(self) -> Array:
        """Return Λ, shape (n, n): the probability that a set has ticks i and j, times ⟨c_i, c_j⟩.

        ⟨c_i, c_j⟩ is the correlation of the vectors added at these ticks; it is one if i = j.
        """
        forward, backward = _forward(self), _backward(self)
        power, pairs = np.eye(len(self.alike)), np.zeros_like(self.steps)
        for m in range(len(forward)):
            if m:
                power = power @ self.steps
            pairs += power * _ends(forward, backward, m)
        pairs /= forward[-1].sum()
        diagonal = pairs.diagonal().copy()
        pairs = (pairs + pairs.T) * (self.alike @ self.alike.T)
        np.fill_diagonal(pairs, diagonal)
        return pairs


def _forward(chain: Chain) -> list[Array]:
    """Return the weights of sequences up to each tick: an array for each number of later ticks."""
    # entry a: k − 1 − a later ticks
    found = [chain.start[0]]
    for start in chain.start[1:]:
        found.append(found[-1] @ chain.steps + start)
    return found


def _backward(chain: Chain) -> list[Array]:
    """Return the weight of all continuations after each tick, by their number of ticks."""
    found = [np.ones(len(chain.alike))]
    for _ in chain.start[1:]:
        found.append(chain.steps @ found[-1])
    return found


def _ends(forward: list[Array], backward: list[Array], m: int) -> Array:
    """Return for (i, j) the weight of beginnings up to i times that of ends from j on."""
    # i and j are m places apart; the steps between them are left out
    return np.stack(forward[: len(forward) - m]).T @ np.stack(backward[: len(forward) - m][::-1])


def best_chain(A: Array, k: int, b: int, p: float, *, vectors: bool) -> tuple[Chain, Array]:
    """Return a Markov chain on a person's ticks with about the largest lower bound, and weights w.

    w are the weights of coordinates (answers). Quasi-Newton steps change c and the logarithms of s
    and K, the arrays of :class:`Chain`, to raise the lower bound ``tr((W^½ A Λ A' W^½)^½)``, where
    Λ is the chain's second moment and W = diag(w). If there are many ticks, a chain on every second
    tick is found first.

    Args:
        A: the workload, shape (n, n), with entries near one.
        k: most ticks of one person; some k ticks are far enough apart.
        b: least distance between ticks of one person.
        p: norm of the error, in [2, ∞].
        vectors: whether c may differ from one.
    """
    rank = 0 if not vectors else 1 + len(A) if len(A) <= _MOST_FREE else 1
    search, x = _best_variables(A, k, b, p, rank)
    chain, w = search.chain(x), search.coordinate_weights(x)
    # dividing K by a number and multiplying s by powers of this number changes no probability
    largest = float(chain.steps.sum(axis=1).max()) or 1.0
    fewer = np.arange(k)[::-1, None] * np.log(largest)
    with np.errstate(divide="ignore"):
        start = np.log(chain.start) + fewer
    chain = replace(chain, start=np.exp(start - start.max()), steps=chain.steps / largest)
    # the second moment is positive definite if each tick alone is a set of positive probability
    start = chain.start + _ALONE * chain.total() / len(A) * (np.arange(k)[:, None] == k - 1)
    return replace(chain, start=start / start.max()), w


def _best_variables(A: Array, k: int, b: int, p: float, rank: int) -> tuple["_Search", Array]:
    n, apart = len(A), max(b // 2, 1)
    # k ticks of the shorter stream must be far enough apart, too
    if k * n**2 > _MOST and (k - 1) * apart < (n + 1) // 2:
        coarse, x = _best_variables(A[::2, ::2], k, apart, p, min(rank, 1))
        search = _Search(A, k, b, p, rank if coarse.rank else 0)
        return search, search.climbed(search.finer(coarse, x))
    # where a person takes part in few of all ticks, the best correlations are one: steps that may
    # change them end at a worse chain
    searches = [_Search(A, k, b, p, r) for r in {0, rank}]
    found = [(search, search.climbed(search.first())) for search in searches]
    return min(found, key=lambda one: one[0].value(one[1])[0])


class _Search:
    def __init__(self, A: Array, k: int, b: int, p: float, rank: int) -> None:
        n = len(A)
        self.A, self.k, self.b, self.power, self.rank = A, k, b, dual_power(p), rank
        self.pairs = np.nonzero(np.subtract.outer(np.arange(n), np.arange(n)) <= -b)
        lengths = (k * n, len(self.pairs[0]), n * rank, n * (p > 2))
        self.cuts = np.cumsum(lengths)[:-1]

    def first(self) -> Array:
        """Return the first variables: sets of k ticks are equally likely, smaller sets are rare."""
        n, sizes = len(self.A), np.arange(self.k, 0, -1)
        room = np.maximum(n - (sizes - 1) * (self.b - 1), sizes)
        counts = scipy.special.gammaln([room + 1, sizes + 1, room - sizes + 1])
        sets = counts[0] - counts[1] - counts[2]  # logarithm of the number of sets of each size
        step = -sets[0] / max(self.k - 1, 1)
        start = _RARE * (sizes < self.k) - sets - (sizes - 1) * step
        # logarithms of s and K, entries of c, logits of the weights of answers
        return np.concatenate(
            [
                np.repeat(start, n),
                np.full(len(self.pairs[0]), step),
                self._first_correlations(np.full(n * min(self.rank, 1), _COMMON)),
                np.zeros(n * (self.power > 0)),
            ]
        )

    def _first_correlations(self, common: Array) -> Array:
        """Return first rows c_i, flattened, for correlations ⟨c_i, c_j⟩ of ticks i and j."""
        if self.rank <= 1:
            return common
        return np.hstack([common[:, None], _OWN * np.eye(len(common))]).ravel()

    def climbed(self, x: Array) -> Array:
        """Return variables with a larger lower bound, by quasi-Newton steps from x."""
        steps = min(_STEPS, int(_WORK / ((self.k + 10) * len(self.A) ** 3)))
        if not steps:
            return x
        return descended(self.value, x, steps=steps, memory=_MEMORY, decrease=_DECREASE)

    def finer(self, coarse: "_Search", x: Array) -> Array:
        """Interpolate the search's variables x from every second tick to all ticks."""
        n, few = len(self.A), len(coarse.A)
        start, steps, *others = np.split(x, coarse.cuts)
        others = [part for part in others if len(part)]
        ticks = (np.arange(n) - 0.5) / 2
        # K is smooth in the earlier tick i and in the gap j − i − b, so these are interpolated
        gaps = np.full((few, few - coarse.b), np.nan)
        gaps[coarse.pairs[0], coarse.pairs[1] - coarse.pairs[0] - coarse.b] = steps
        for row, before in zip(gaps[1:], gaps, strict=False):
            row[np.isnan(row)] = before[np.isnan(row)]
        i, j = self.pairs
        at = np.minimum(ticks[i], few - 1 - coarse.b), (j - i - self.b) / 2
        fine = scipy.ndimage.map_coordinates(gaps, at, order=1, mode="nearest") - np.log(2)
        rows = [*start.reshape(self.k, few), *others]
        spread = [np.interp(ticks, np.arange(few), row) for row in rows]
        others = spread[self.k :]
        if self.rank:
            others[0] = self._first_correlations(others[0])
        return np.concatenate([*spread[: self.k], fine, *others])

    def chain(self, x: Array) -> Chain:
        """Return the Markov chain of x: log ``start``, log ``steps`` and ``alike``."""
        n = len(self.A)
        start, steps, alike, _ = np.split(x, self.cuts)
        K = np.zeros((n, n))
        K[self.pairs] = np.exp(steps)
        c = np.ones((n, 1))
        if self.rank:
            c = alike.reshape(n, self.rank)
            c = c / np.sqrt(1 + np.square(c).sum(axis=1, keepdims=True))
        return Chain(np.exp(start.reshape(self.k, n)), K, c)

    def coordinate_weights(self, x: Array) -> Array:
        """Return the weights of answers for the variables x, scaled into the dual ball."""
        n = len(self.A)
        if not self.power:
            return np.ones(n)
        # 1/s* = 1 − 2/p
        return scipy.special.softmax(np.split(x, self.cuts)[-1]) ** self.power

    def value(self, x: Array) -> tuple[float, Array]:
        """Return minus the log of the lower bound on the error, and its derivatives by x."""
        n, k, chain, w = len(self.A), self.k, self.chain(x), self.coordinate_weights(x)
        forward, backward = _forward(chain), _backward(chain)
        powers = [np.eye(n)]
        for _ in range(k - 1):
            powers.append(powers[-1] @ chain.steps)
        ends = [_ends(forward, backward, m) for m in range(k)]
        total = forward[-1].sum()
        pairs = sum(one * two for one, two in zip(powers, ends, strict=True)) / total
        c = chain.alike
        correlations = c @ c.T
        np.fill_diagonal(correlations, 1.0)
        scaled = np.sqrt(w)[:, None] * self.A
        moment = (np.triu(pairs) + np.triu(pairs, 1).T) * correlations
        if not np.isfinite(moment).all():
            raise np.linalg.LinAlgError
        squares, axes = np.linalg.eigh(scaled @ moment @ scaled.T)
        roots = np.sqrt(np.maximum(squares, _RANGE * squares[-1]))
        worth = roots.sum()
        rows = scaled.T @ (axes / np.sqrt(roots))
        X = rows @ rows.T  # twice the derivative by Λ
        strict = np.triu(X * pairs, 1)
        by_alike = (strict + strict.T) @ c
        by_alike -= c * (c * by_alike).sum(axis=1, keepdims=True)
        by_alike *= np.sqrt(np.maximum(1 - np.square(c).sum(axis=1, keepdims=True), 0.0))
        load = np.square(axes * np.sqrt(roots)).sum(axis=1) / 2  # Σ load = F/2
        by_share = self.power * (load - w ** (1 / self.power) * load.sum()) if self.power else load
        weights = (np.triu(X, 1) + np.diag(X.diagonal()) / 2) * correlations / total
        by_steps, by_start = self._backwards(chain, weights, powers, ends, forward, backward)
        parts = [(by_start * chain.start).ravel(), (by_steps * chain.steps)[self.pairs]]
        parts += [by_alike.ravel()] * (self.rank > 0) + [by_share] * (self.power > 0)
        return -float(np.log(worth)), -np.concatenate(parts) / worth

    def _backwards(
        self,
        chain: Chain,
        weights: Array,
        powers: list[Array],
        ends: list[Array],
        forward: list[Array],
        backward: list[Array],
    ) -> tuple[Array, Array]:
        """Return the derivatives of ⟨weights, pairs⟩ by the chain's ``steps`` and ``start``."""
        # reverse differentiation; pairs are the probabilities to take part at both of two ticks
        k, K = self.k, chain.steps
        by_forward, by_backward = np.zeros_like(chain.start), np.zeros_like(chain.start)
        by_steps, by_power = np.zeros_like(K), np.zeros_like(K)
        worth = 0.0
        for m in range(k - 1, -1, -1):
            one = weights * powers[m]
            worth += float((one * ends[m]).sum())
            by_forward[: k - m] += (one @ np.stack(backward[: k - m][::-1]).T).T
            by_backward[: k - m] += (np.stack(forward[: k - m]) @ one)[::-1]
            if m:
                by_power += weights * ends[m]
                by_steps += powers[m - 1].T @ by_power
                by_power = by_power @ K.T
        by_forward[-1] -= worth / forward[-1].sum()  # all weights are divided by their sum
        for a in range(k - 1, 0, -1):
            by_steps += np.outer(forward[a - 1], by_forward[a])
            by_forward[a - 1] += K @ by_forward[a]
            by_steps += np.outer(by_backward[a], backward[a - 1])
            by_backward[a - 1] += K.T @ by_backward[a]
        return np.asarray(by_steps, dtype=np.float64), by_forward

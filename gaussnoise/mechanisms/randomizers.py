r"""Randomisers of unit vectors under local privacy, which send a vector of a random codebook.

A *token* is drawn independently of the record. The token determines N = 2h *candidates* ±u_1 …
±u_h, by a hash function that anyone can compute. The k candidates closest to the unit vector y are
the *cap*. With probability a, a candidate is chosen uniformly from the cap, otherwise from the
other N − k candidates. The message is the token and the candidate's index.

Proof of ε-privacy for the floating-point program. Messages are from a finite set, and for every y

    P(token, index) = P(token) · (a/k  if the index is in the cap of y, else (1 − a)/(N − k)),

because *every* y has a cap of exactly k indices, for any order that rounding gives the candidates.
So the probabilities of a message under two records differ by at most the factor a (N − k)/((1 − a)
k), and a is a multiple of 2^−bits for which this rational number is at least one and at most e^ε.
The proof uses only that the operating system's random bytes are uniform; it does not depend on the
candidates' distribution, the hash function, or y. The guarantee does not cover observers who can
measure running times on the user's device.

Proof of unbiasedness. Candidates are spherically symmetric, so the mean of the sent candidate is
``scale · y``, with ``scale`` from order statistics, up to a quadrature error of 1e-12. This
assumes that the hash function's output behaves like random bytes.

Sources: Ye & Barg (2018) for choosing k of N; Shah, Chen, Ballé, Kairouz & Theis (2022), "Optimal
Compression of Locally Differentially Private Mechanisms", and Isik, Chen, Ozgur, Weissman & No
(2023), "Exact Optimality of Communication-Privacy-Utility Tradeoffs in Distributed Mean
Estimation", for the k closest of a random codebook.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import final

import numpy as np
import scipy

from domains.floats import Array

from ..files.pickling import PickledByArguments

Bytes = Callable[[int], bytes]  # returns the given number of random bytes

_TOKEN = 16  # number of bytes: two users practically never draw the same token
_CLOSE = 1.01  # a codebook may have this multiple of the limit's variance
# limits on the numbers of candidates and of coordinates: a message takes at most 30 ms
_MOST_PAIRS, _MOST_NUMBERS = 2**12, 2**20
_WORDS = 64  # words per hash call; the fixed cost of a call is that of about 50 words
_FARTHEST = 13.0  # the quadrature ends at this many standard deviations
_NODES = 1000
_LEAST_CAP = 1e-9  # least share of candidates in a cap that is tried


@final
@dataclass(frozen=True, eq=False)
class Codebook(PickledByArguments):
    """A public random codebook of candidate vectors, and the randomiser that sends one of them.

    Attributes:
        dim: r, the dimension of the unit vectors.
        pairs: h, the number of pairs ±u_j.
        closest: k, the size of the cap, in 1..h.
        spherical: whether candidates are uniform on the unit sphere; otherwise standard normal.
        hits: the integer a · 2^bits, where a is the probability that the cap is chosen.
        bits: number of bits of the coin that decides between the cap and the rest.
        cap_mean: mean of ⟨u, y⟩ over the cap.
        cap_square: mean of ⟨u, y⟩² over the cap.
    """

    dim: int
    pairs: int
    closest: int
    spherical: bool
    hits: int
    bits: int
    cap_mean: float
    cap_square: float

    @property
    def size(self) -> int:
        """The number N = 2h of candidate vectors ±u_1, …, ±u_h; a user sends one of them."""
        return 2 * self.pairs

    @property
    def chance(self) -> Fraction:
        """The exact probability that a user sends one of the k candidates closest to its vector."""
        return Fraction(self.hits, 2**self.bits)

    @cached_property
    def scale(self) -> float:
        """The mean of ⟨u, y⟩, for the candidate u that is sent for a unit vector y."""
        return self.cap_mean * float(
            (self.chance * self.size - self.closest) / (self.size - self.closest)
        )

    @cached_property
    def across(self) -> float:
        """The mean of ⟨u, z⟩² / scale² for a unit vector z orthogonal to y, where u is sent for y.

        The mean is the same for all such z. For r = 1 there is no such z, and the value is
        ``along``.
        """
        square = (
            self._square
        )  # on the sphere, squares sum to one; normal coordinates are independent
        if self.spherical and self.dim > 1:
            square = min(square, max(1 - self._chosen_square, 0.0) / (self.dim - 1))
        return square / self.scale**2

    @cached_property
    def along(self) -> float:
        """The mean of ⟨u, y⟩² / scale², for the candidate u that is sent for a unit vector y.

        It is never less than ``across``.
        """
        return self._chosen_square / self.scale**2

    @cached_property
    def _chosen_square(self) -> float:
        """The mean of ⟨u, y⟩² for the candidate u sent for a unit y; at least ``_square``."""
        outside = (self.size * self._square - self.closest * self.cap_square) / (
            self.size - self.closest
        )
        return max(
            float(self.chance) * self.cap_square + float(1 - self.chance) * outside, self._square
        )

    @property
    def _square(self) -> float:
        """The mean of ⟨u, z⟩² over random candidates u, for any fixed unit vector z."""
        return 1 / self.dim if self.spherical else 1.0

    @property
    def _token(self) -> int:
        """The number of random bytes that determine candidates; zero if these are always ±1."""
        return 0 if self.spherical and self.dim == 1 else _TOKEN

    @property
    def _index(self) -> int:
        return (self.size - 1).bit_length() + 7 >> 3

    @property
    def message_bytes(self) -> int:
        """The length of a message in bytes: token and candidate index."""
        return self._token + self._index

    def message(self, y: Array, draw: Bytes) -> bytes:
        """Return a private message about the unit vector y, with random bytes from ``draw(n)``."""
        token = draw(self._token)
        index = self.choose(self.candidates(token) @ y, lambda n: _below(n, draw))
        return token + index.to_bytes(self._index, "big")

    def choose(self, products: Array, below: Callable[[int], int]) -> int:
        """Return the random index of the candidate vector to send for a unit vector y.

        ``products`` has the scalar products ⟨u_j, y⟩ with the candidates; the index is ``2j`` for
        u_j and ``2j + 1`` for −u_j. ``below(n)`` draws a uniform integer from 0 to n − 1.
        """
        # for each of the k largest |⟨u_j, y⟩|, the cap has the one of ±u_j with positive product
        order, k = np.argsort(-np.abs(products), kind="stable"), self.closest
        if below(2**self.bits) < self.hits:
            pair, other = int(order[below(k)]), False
        else:
            # outside the cap are the negatives of its members, and both signs of all other pairs
            j = below(self.size - k)
            pair = int(order[j if j < k else k + (j - k) // 2])
            other = j < k or bool((j - k) % 2)
        return 2 * pair + (bool(products[pair] < 0) ^ other)

    def candidates(self, token: bytes) -> Array:
        """Return the candidate vectors u_1, …, u_h for the random bytes ``token``, shape (h, r)."""
        if not self._token:
            return np.ones((1, 1))
        blocks = (
            _words(token, i, self._together * self.dim)
            for i in range(-(-self.pairs // self._together))
        )
        return self._vectors(blocks)[: self.pairs]

    def read(self, message: bytes) -> tuple[bytes, int]:
        """Return the token and index in a message; raise ValueError if it has another form."""
        if not isinstance(message, bytes) or len(message) != self.message_bytes:
            raise ValueError
        index = int.from_bytes(message[self._token :], "big")
        if index >= self.size:
            raise ValueError
        return message[: self._token], index

    def decoded(self, messages: Iterable[tuple[bytes, int]]) -> Array:
        """Return an unbiased estimate of the unit vector for each (token, index), as rows."""
        read = list(messages)
        signs = np.array([1.0 - 2.0 * (index % 2) for _, index in read]).reshape(-1, 1) / self.scale
        if not self._token:
            return signs
        return signs * self._vectors(self._words_of(token, index // 2) for token, index in read)

    def _words_of(self, token: bytes, pair: int) -> bytes:
        """Return the pseudorandom bytes of the candidate with the number ``pair``."""
        block, place = divmod(pair, self._together)
        size = 8 * self.dim
        return _words(token, block, self._together * self.dim)[place * size : (place + 1) * size]

    @property
    def _together(self) -> int:
        """The number of candidate vectors that one hash call computes."""
        # small, since the server calls the hash once for each message
        return max(1, _WORDS // self.dim)

    def unit(self, y: Array, draw: Bytes) -> Array:
        """Return a random unit vector with mean y, for ‖y‖ <= 1: one of ±y/‖y‖, or any if y = 0."""
        length = float(np.linalg.norm(y))
        if length == 0:
            u = _normals([_words(draw(_TOKEN), 0, self.dim)], self.dim)[0]
            return u / np.linalg.norm(u)
        positive = (int.from_bytes(draw(8), "big") >> 11) < (1 + length) * 2.0**52
        return y / (length if positive else -length)

    def _vectors(self, words: Iterable[bytes]) -> Array:
        normals = _normals(words, self.dim)
        return normals / np.linalg.norm(normals, axis=1)[:, None] if self.spherical else normals


def privunit(dim: int, epsilon: float) -> Codebook:
    r"""Return a codebook for PrivUnit (Bhowmick, Duchi, Freudiger, Kapoor & Rogers 2018).

    The cap has the k of N candidates that are closest to the user's unit vector. Candidates of the
    cap are sent more often than others.

    As for :func:`privunitg`, candidates are drawn first; here they are uniform on the sphere.
    In one dimension the sphere has two points, and this is randomised response. With the best cap,
    the limit N → ∞ has the least variance in a large family of unbiased randomisers (Asi, Feldman &
    Talwar 2022).
    """
    if dim == 1:
        return point_release(dim, epsilon)
    return _codebook(dim, epsilon, True, *_least_variance(dim, float(epsilon), True))


def privunitg(dim: int, epsilon: float) -> Codebook:
    r"""Return a codebook for PrivUnitG (Asi, Feldman & Talwar 2022), with N normal candidates.

    The cap is the set of the k candidates closest to the user's unit vector y.

    PrivUnitG sends a normal vector u conditioned on ⟨u, y⟩ >= t with probability a, and on ⟨u, y⟩ <
    t otherwise. Its ε depends on the exact probability of ⟨u, y⟩ >= t, which no floating-point
    sampler attains. Here normal candidates are drawn first, and the k closest are the cap; the
    limit N → ∞ with k/N = Φ(−t) is PrivUnitG. The number of pairs is the least power of two, up to
    4096, whose variance is within 1 % of the limit; k minimises the variance. For ε beyond about
    10, even the largest codebook is further from the limit.
    """
    return _codebook(dim, epsilon, False, *_least_variance(dim, float(epsilon), False))


def point_release(dim: int, epsilon: float) -> Codebook:
    """Return the codebook of one pair ±u; the one nearer to y has probability e^ε/(1 + e^ε).

    As u is uniform on the sphere, this is the ℓ₂ randomiser of Duchi, Jordan & Wainwright (2018),
    Section 4.2.3, and local point release for the unit ball of Błasiok, Bun, Nikolov & Steinke
    (2019), "Towards Instance-Optimal Private Query Release".
    """
    above, below = scipy.special.gammaln([dim / 2, (dim + 1) / 2])
    mean = math.exp(above - below) / math.sqrt(math.pi)
    return _codebook(dim, epsilon, True, 1, 1, mean, 1 / dim)


def _codebook(
    dim: int, epsilon: float, spherical: bool, pairs: int, closest: int, mean: float, square: float
) -> Codebook:
    """Return a codebook of ``pairs`` pairs of vectors, with ``closest`` of them in the cap."""
    # the cap gets the largest probability that ε allows, rounded down
    precision = 60 + int(epsilon)
    nearest = Decimal(epsilon).exp(Context(prec=precision))  # correctly rounded
    odds = closest * Fraction(nearest) * (1 - Fraction(1, 10 ** (precision - 2)))
    bits = 192 + 2 * int(epsilon)
    hits = math.floor(2**bits * odds / (odds + 2 * pairs - closest))
    return Codebook(dim, pairs, closest, spherical, hits, bits, mean, square)


@lru_cache(maxsize=64)
def _least_variance(dim: int, epsilon: float, spherical: bool) -> tuple[int, int, float, float]:
    """Return the best numbers of pairs and of cap members, ``cap_mean`` and ``cap_square``."""
    best, mass = _ideal(dim, epsilon, spherical)
    pairs = 1
    while True:
        near = np.rint(2 * pairs * mass * np.geomspace(0.5, 2, 40))
        closest = np.unique(np.append(np.clip(near, 1, pairs), pairs)).astype(int)
        moments = np.array(
            [cap_moments(pairs, k, dim if spherical else None) for k in closest.tolist()]
        )
        variances = _excess(dim, epsilon, spherical, closest / (2 * pairs), *moments.T)
        j = int(np.argmin(variances))
        more = 2 * pairs
        if variances[j] <= _CLOSE * best or more > _MOST_PAIRS or more * dim > _MOST_NUMBERS:
            return pairs, int(closest[j]), float(moments[j, 0]), float(moments[j, 1])
        pairs = more


def _ideal(dim: int, epsilon: float, spherical: bool) -> tuple[float, float]:
    """Return the least variance for infinitely many candidates, and the cap's share of them."""
    mass = np.geomspace(0.5, _LEAST_CAP, 3001)
    if spherical:
        # ⟨u, y⟩ has a density proportional to (1 − x²)^((dim − 3)/2): the mean over the cap has a
        # closed form
        rest = scipy.special.betaincinv((dim - 1) / 2, 0.5, 2 * mass)  # 1 − t²
        above, below = scipy.special.gammaln([dim / 2, (dim - 1) / 2])
        density = np.exp(above - below) / math.sqrt(math.pi)
        mean, square = (
            density * rest ** ((dim - 1) / 2) / ((dim - 1) * mass),
            mass,
        )  # the squares of a unit vector's coordinates sum to one
    else:
        t = -scipy.special.ndtri(mass)
        mean = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) / mass
        square = 1 + t * mean
    variances = _excess(dim, epsilon, spherical, mass, mean, square)
    j = int(np.argmin(variances))
    return float(variances[j]), float(mass[j])


def _excess(
    dim: int, epsilon: float, spherical: bool, share: Array, mean: Array, square: Array
) -> Array:
    """Return the total variance of a decoded unit vector, for every share of the cap."""
    # the odds of the cap are at most e^ε times those of a random choice
    # mean and square: of ⟨u, y⟩ and ⟨u, y⟩² over the cap, a share of the candidates
    chance = share / (share + (1 - share) * math.exp(-epsilon))
    # all candidates sum to zero, so those outside the cap have the mean −share/(1 − share) times
    # that of the cap
    scale = mean * (chance - share) / (1 - share)
    along = chance * square + (1 - chance) * (1 - share * square) / (1 - share)
    return (1.0 if spherical else dim - 1 + along) / scale**2 - 1


def cap_moments(pairs: int, closest: int, dim: int | None = None) -> tuple[float, float]:
    """Return the means of ⟨u, y⟩ and ⟨u, y⟩² over the cap, for ``pairs`` pairs of candidates ±u.

    The cap has the ``closest`` largest values |⟨u, y⟩|. The u are uniform on the sphere in R^dim,
    or standard normal if ``dim`` is None.
    """
    values, tails, weights = _quadrature(dim)
    # the probability that fewer than k of the other h − 1 values are larger
    among = scipy.special.bdtr(closest - 1, pairs - 1, tails) if pairs > 1 else np.ones_like(values)
    weights = weights * among * (pairs / closest)
    return float(weights @ values), float(weights @ values**2)


@lru_cache(maxsize=8)
def _quadrature(dim: int | None) -> tuple[Array, Array, Array]:
    """Return values of |⟨u, y⟩| for random u, chances of larger ones, and integration weights."""
    # u: uniform on the sphere, or standard normal if dim is None; tails: chances of a larger value
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    if dim is None:
        z = (nodes + 1) * (_FARTHEST / 2)
        return (
            z,
            2 * scipy.special.ndtr(-z),
            weights * (_FARTHEST / 2) * np.exp(-(z**2) / 2) * math.sqrt(2 / math.pi),
        )
    # integrate over the angle with y: near a right angle, its density is more concentrated than
    # that of a normal variable near zero
    reach = min(math.pi / 2, _FARTHEST / math.sqrt(max(dim - 2, 1)))
    angle = math.pi / 2 - reach + (nodes + 1) * (reach / 2)
    weights = weights * np.sin(angle) ** (dim - 2)
    tails = scipy.special.betainc((dim - 1) / 2, 0.5, np.sin(angle) ** 2)
    return np.cos(angle), tails, weights / weights.sum()


def _below(n: int, draw: Bytes) -> int:
    """Return an exactly uniform integer below n, by drawing bytes until they are below n."""
    bits = (n - 1).bit_length()
    count = bits + 7 >> 3
    while True:
        value = int.from_bytes(draw(count), "big") >> (8 * count - bits)
        if value < n:
            return value


def _words(token: bytes, block: int, count: int) -> bytes:
    """Return 8 · ``count`` bytes of the hash of a token and a block number."""
    return hashlib.shake_256(token + block.to_bytes(4, "big")).digest(8 * count)


def _normals(words: Iterable[bytes], dim: int) -> Array:
    """Return standard normal numbers, none of them zero or infinite, from words of 64 bits."""
    uniform = np.frombuffer(b"".join(words), dtype="<u8").reshape(-1, dim) >> 12
    return scipy.special.ndtri((uniform + 0.5) * 2.0**-52)

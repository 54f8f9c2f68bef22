"""Nikolov & Tang (2023, arXiv 2301.13850) as a checklist: all its numbered statements, and the
tests of them.

A test that checks one says so in a mark, ``@pytest.mark.paper("Theorem 26", by="its reference")``.
Marks are read from the sources; nothing runs. ``python tests/paper.py > tests/PAPER.md`` writes the
table anew.
"""

import ast
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Statement(NamedTuple):
    """A numbered statement in our own words, and what of it no test checks, with the reason."""

    number: str
    says: str
    unchecked: str = ""


_DEFINITION = "a definition"
_RATE = "constants: the paper's are absolute but not explicit; ours are, and imply it"
_CONSTANT = "the constant as printed, should it be another than its proof gives"

STATEMENTS = [
    Statement(
        "Definition 1",
        "a mechanism M is unbiased over K if E M(X) = μ(X), the mean, for all X in K^n",
    ),
    Statement(
        "Definition 2", "γ_p(K) is the least ‖sd(AA')‖_p of an ellipsoid v + AB₂ that contains K"
    ),
    Statement(
        "Theorem 3",
        "Gaussian noise of a covariance proportional to AA', the one of γ_p(K), is unbiased and "
        "(ε, δ)-private with "
        "(E‖M(X) − μ(X)‖_p²)^{1/2} of the order √(min(p, log 2d) log(1/δ)) γ_p(K)/(εn)",
    ),
    Statement(
        "Theorem 4",
        "an unbiased (ε, δ)-private mechanism has an error of the order γ_p(K)/(εn) at each data "
        "set or at a neighbour "
        "of it, for δ small enough",
        _RATE,
    ),
    Statement(
        "Definition 5",
        "local mechanisms: each record is randomised on its own, ε-privately",
        _DEFINITION,
    ),
    Statement(
        "Theorem 6",
        "an unbiased (ε, δ)-private k-th moment tensor of vectors of [−1, 1]^d has an error of "
        "the order ⌊d/k⌋^k/(εn) "
        "at each data set or at a neighbour of it",
        _RATE,
    ),
    Statement(
        "Theorem 7",
        "unbiased (ε, δ)-private k-way marginals of d bits have an error of the order "
        "⌊d/k⌋^k/(2^k εn) at each data "
        "set or at a neighbour of it",
        _RATE,
    ),
    Statement("Definition 8", "the ratio of two densities", _DEFINITION),
    Statement("Definition 9", "Rényi divergences", _DEFINITION),
    Statement(
        "Definition 10",
        "ρ-zCDP: divergences of order α between neighbours are at most αρ",
        _DEFINITION,
    ),
    Statement(
        "Lemma 11", "zCDP adds up over adaptive rounds, and processing of an answer spends nothing"
    ),
    Statement("Lemma 12", "ρ-zCDP implies (ρ + 2√(ρ ln(1/δ)), δ)-privacy for every δ"),
    Statement("Lemma 13", "noise N(0, (Δ²/2ρ) I) on a function of sensitivity Δ is ρ-zCDP"),
    Statement(
        "Lemma 14",
        "‖sd(M)‖_p² of covariances is zero at M = 0 alone, homogeneous, subadditive, and at most "
        "that of a smaller p",
    ),
    Statement(
        "Theorem 15",
        "noise of covariance (2/(ρn²)) AA', K in v + AB₂, is ρ-zCDP and unbiased, with (E‖M(X) − "
        "μ(X)‖_p²)^{1/2} of "
        "the order √(min(p, log 2d)/ρ) ‖sd(AA')‖_p/n",
    ),
    Statement("Corollary 16", "hence with γ_p(K) in place of ‖sd(AA')‖_p"),
    Statement(
        "Theorem 17",
        "point release of records in the coordinates of the ellipsoid is unbiased and ε-locally "
        "private, with "
        "(E‖M(X) − μ(X)‖_p²)^{1/2} of the order √min(p, log 2d) γ_p(K)/(ε√n)",
    ),
    Statement(
        "Definition 18", "the support function h_K(θ) = sup over x in K of ⟨θ, x⟩", _DEFINITION
    ),
    Statement("Lemma 19", "γ_p(AB₂) = ‖sd(AA')‖_p"),
    Statement(
        "Theorem 20",
        "γ_p of a set is that of its closed convex hull, monotone under inclusion, homogeneous, "
        "and subadditive under "
        "Minkowski sums",
    ),
    Statement(
        "Lemma 21",
        "if K = −K, the optimal ellipsoid can be centered at the origin; otherwise γ_p(K) is the "
        "least γ_p of "
        "(K + v) ∪ −(K + v) over v",
    ),
    Statement(
        "Definition 22", "the factorization norms γ_(p)(A) = min ‖L‖_p ‖R‖ over A = LR", _DEFINITION
    ),
    Statement(
        "Theorem 23",
        "for the columns of A, with both signs, γ_p is γ_(p)(A); for the columns alone it is the "
        "least γ_(p)(A − v1')",
    ),
    Statement("Definition 24", "probability measures on a compact set", _DEFINITION),
    Statement("Definition 25", "the covariance of a measure", _DEFINITION),
    Statement(
        "Theorem 26",
        "γ_p(K) is the largest tr((W^{1/2} cov(P) W^{1/2})^{1/2}) over P on K and weights W, "
        "with second moments in "
        "place of covariances if K = −K",
    ),
    Statement(
        "Lemma 27",
        "γ_p(K) is the largest γ_2(W^{1/2} K) over diagonal weights W, ‖W‖_{p/(p−2)} = 1",
    ),
    Statement(
        "Lemma 28",
        "γ_p(K) is a convex program in a positive definite covariance M and the center v",
    ),
    Statement(
        "Definition 29",
        "an α-approximate quadratic oracle brackets sup (x − c)'H(x − c) over K, with a witness",
    ),
    Statement(
        "Theorem 30",
        "with an oracle within α an ellipsoid that contains K is found in polynomial time, whose "
        "‖sd‖_p² is within α "
        "of the least",
        "polynomial running time",
    ),
    Statement(
        "Lemma 31",
        "the oracle may as well maximise ‖A(x − v)‖ over K, or (x − v)'H(y − v) over two points "
        "of K; and linear "
        "images inherit it",
    ),
    Statement(
        "Theorem 32",
        "γ_p is found within a constant, in polynomial time, for linear images of finite sets "
        "and polytopes; ℓ_q "
        "balls, q ≥ 2; unit balls of sign-invariant 2-convex norms; of norms symmetric under "
        "permutations whose dual "
        "has bounded cotype 2; the spectral norm; unitarily invariant matrix norms whose dual "
        "has bounded cotype 2",
        "polynomial running time",
    ),
    Statement(
        "Lemma 33", "(E‖M(X) − μ(X)‖_p²)^{1/2} ≥ ‖sd‖_p of the covariance of an unbiased M(X)"
    ),
    Statement("Definition 34", "the width w_K(θ) = h_K(θ) + h_K(−θ)", _DEFINITION),
    Statement(
        "Lemma 35",
        "if √(θ'Σθ) ≥ c w_K(θ) for all θ, the ellipsoid of Σ/c² contains a translate of K",
    ),
    Statement(
        "Lemma 36",
        "and then the error of an unbiased mechanism of covariance Σ is at least c γ_p(K)",
    ),
    Statement("Lemma 37", "from each x of K some y of K is w_K(θ)/2 away along θ, or all but"),
    Statement(
        "Lemma 38",
        "hence each data set has a neighbour whose mean is w_K(θ)/(2n) away along θ, or all but",
    ),
    Statement(
        "Lemma 39",
        "answers of ε-private mechanisms at neighbours have a χ² of e^{−ε}(e^ε − 1)² at most",
    ),
    Statement("Lemma 40", "(E_P Y − E_Q Y)² ≤ χ²(P, Q) Var_Q Y (Hammersley, Chapman & Robbins)"),
    Statement(
        "Lemma 41",
        "unbiased ε-private mechanisms have a deviation of w_K(θ)/(2nχ) at least along θ, χ = 2 "
        "sinh(ε/2)",
    ),
    Statement(
        "Theorem 42",
        "unbiased ε-private mechanisms have error γ_p(K)/(2nχ) at least, χ = 2 sinh(ε/2), at all "
        "data",
        _CONSTANT,
    ),
    Statement(
        "Theorem 43",
        "unbiased ρ-zCDP mechanisms have error γ_p(K)/(2nχ) at least, χ² = e^{2ρ} − 1, at all data",
        _CONSTANT,
    ),
    Statement(
        "Definition 44",
        "the outcomes at which two probabilities are within a factor of each other",
        _DEFINITION,
    ),
    Statement(
        "Lemma 45",
        "outside outcomes of probability 2δ/(1 − e^{−ε}) at most, (ε, δ)-private answers at "
        "neighbours are within a "
        "factor e^{2ε}",
        _CONSTANT,
    ),
    Statement(
        "Lemma 46",
        "some P̂ agrees with Q outside those outcomes, and with P on them up to a factor, so "
        "that it is within a factor "
        "of Q everywhere",
        _CONSTANT,
    ),
    Statement("Lemma 47", "hence χ²(P̂, Q) is bounded as in Lemma 39", _CONSTANT),
    Statement(
        "Lemma 48",
        "an unbiased (ε, δ)-private mechanism has along θ a deviation of the order w_K(θ)/(εn) "
        "at each data set, or "
        "w_K(θ)/(√δ n) at a neighbour of it",
        _RATE,
    ),
    Statement(
        "Lemma 49",
        "it has an error of the order γ_2(K)/(εn) at each data set, or of the least width of K "
        "over √δ n at a "
        "neighbour",
        _RATE,
    ),
    Statement(
        "Lemma 50",
        "some orthogonal projection of K has half of γ_2(K), and a width of γ_2(K)/d at least in "
        "all directions of its "
        "range",
    ),
    Statement(
        "Theorem 51",
        "Theorem 4 at p = 2, or an error of the order γ_2(K)/(d √δ n) at a neighbour",
        _RATE,
    ),
    Statement("Theorem 52", "the same at p > 2, by Lemma 27", _RATE),
    Statement(
        "Theorem 53", "an unbiased (0, δ)-private mechanism may have no error at one data set"
    ),
    Statement(
        "Lemma 54",
        "the covariance of an unbiased ε-local mechanism is at least that of a mean of "
        "independent unbiased ε-private "
        "messages, one a record",
    ),
    Statement(
        "Theorem 55",
        "unbiased non-interactive ε-local mechanisms have error γ_p(K)/(4 sinh(ε/2)√n) at least, "
        "at all data",
        _CONSTANT,
    ),
    Statement(
        "Definition 56",
        "M is distributionally unbiased if E M(X) is the mean of P for n draws X from any P",
        _DEFINITION,
    ),
    Statement(
        "Lemma 57",
        "answers of an (ε, δ)-private mechanism on n draws from either of two distributions at "
        "distance β are "
        "(6εnβ, 4e^{6εnβ}nβδ)-indistinguishable",
        "at large ε, where it fails: ours holds for every ε",
    ),
    Statement(
        "Theorem 58",
        "distributionally unbiased (ε, δ)-private mechanisms have an error of the order "
        "γ_p(K)/(εn) at some "
        "distribution",
        _RATE,
    ),
    Statement(
        "Theorem 59",
        "and at each distribution or at one within a total variation distance of 1/n from it",
        _RATE,
    ),
    Statement("Lemma 60", "γ_p(K × L)^α = γ_p(K)^α + γ_p(L)^α with 1/α = 1/2 + 1/p"),
    Statement("Definition 61", "K ⊗ L is the set of x ⊗ y, x in K and y in L", _DEFINITION),
    Statement("Lemma 62", "γ_p(K ⊗ L) = γ_p(K) γ_p(L) for symmetric K and L"),
    Statement(
        "Lemma 63", "projections on coordinates do not increase γ_p, orthogonal projections not γ_2"
    ),
    Statement(
        "Theorem 64",
        "γ_p of the k-th tensor powers of [−1, 1]^d is between ⌊d/k⌋^{k/2+k/p} and d^{k/2+k/p}",
    ),
    Statement(
        "Theorem 65",
        "γ_p of the answers to all queries of k indices, repeats among them, and k bits is "
        "d^{1/2+1/p} 2^{1/p−1} at "
        "k = 1, else between (2d)^{k/p−k/2} ⌊d/k⌋^k/2^k and d^{k/2} (2d)^{k/p}",
    ),
    Statement(
        "Theorem 66", "Sion's minimax theorem", "a theorem of analysis, which no code of ours needs"
    ),
    Statement("Lemma 67", "Theorem 26 at p = 2"),
    Statement("Claim 68", "the covariances M with K in v + E(M) for some v form a convex set"),
    Statement(
        "Appendix B",
        "the central-cut ellipsoid method on (M, v), with a separation oracle",
        "its bound on the steps",
    ),
]


def marks() -> list[tuple[str, str, str]]:
    """(number, reference, test) of every mark on a test that runs, in order of files and lines."""
    found = []
    for path in sorted(HERE.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        for test in ast.parse(source).body if "pytest.mark.paper(" in source else []:
            if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
                continue
            calls = [node for node in test.decorator_list if isinstance(node, ast.Call)]
            for call in calls:
                if ast.unparse(call.func) == "pytest.mark.paper":
                    (by,) = (ast.literal_eval(keyword.value) for keyword in call.keywords)
                    where = f"{path.relative_to(HERE).as_posix()}::{test.name}"
                    found += [(ast.literal_eval(number), by, where) for number in call.args]
    return found


def unchecked(tests: list[tuple[str, str, str]]) -> list[Statement]:
    """Statements without any test."""
    return [
        statement
        for statement in STATEMENTS
        if statement.number not in {number for number, _, _ in tests}
    ]


def table() -> str:
    """PAPER.md."""
    tests = marks()
    left = len(unchecked(tests))
    lines = [
        "# The paper as a checklist",
        "",
        "Every numbered statement of Nikolov & Tang, *General Gaussian Noise Mechanisms and "
        "Their Optimality for "
        "Unbiased Mean Estimation* (2023, arXiv 2301.13850), in our words, with the tests that "
        "check it, or our code "
        "against it, and the reference each of them uses. We read it in a copy "
        "without most formulas: constants and rates are those that its proofs give.",
        "",
        f"{len(STATEMENTS)} statements: {len(STATEMENTS) - left} checked, {left} not. Written by "
        "`python tests/paper.py > tests/PAPER.md`; paths are below `tests/`.",
        "",
        "| Statement | In our words | Checked by | Not checked |",
        "|---|---|---|---|",
    ]
    for number, says, gap in STATEMENTS:
        found = "<br>".join(f"{by}: `{test}`" for of, by, test in tests if of == number)
        lines.append(
            " | ".join((f"| {number}", says.replace("|", "\\|"), found or "–", f"{gap or '–'} |"))
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print PAPER.md."""
    print(table(), end="")


if __name__ == "__main__":
    main()

"""Equal tables are solved once; what only calls itself equal is solved again."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

import gaussnoise as gn


@dataclass(frozen=True)
class Own(gn.domains.AbstractBase):
    """A base whose comparison leaves out what it asks."""

    size: int
    factor: float = field(compare=False)
    is_ordered = True

    @property
    def queries(self):
        return self.size

    def toarray(self):
        return self.factor * np.tri(self.size)


def test_the_same_tables_are_solved_once_and_no_others_for_them():
    a, b = gn.Attribute("a", ["x", "y", "z"]), gn.Attribute("b", ["x", "y"])
    schema = gn.Schema([a, b])
    asked = {
        "cells": ([("a", "b"), "a"], {}),
        "other weights": ([("a", "b"), "a"], {"weights": [1, 2]}),
        "other norm": ([("a", "b"), "a"], {"p": math.inf}),
        "other relation": ([("a", "b"), "a"], {"neighbors": "replace"}),
        "public": ([("a", "b"), "a"], {"neighbors": "replace", "public": "a"}),
        "other tables": ([("a", "b"), "b"], {}),
        "queries": ([("a", "b"), {"a": "prefix"}], {}),
        "other queries": ([("a", "b"), {"a": "ranges"}], {}),
    }
    first, second = (
        {name: gn.plan(schema, W, gn.zCDP(rho), **more) for name, (W, more) in asked.items()}
        for rho in (0.1, 0.2)
    )
    assert len({id(plan.noise) for plan in first.values()}) == len(asked)
    for name, plan in first.items():
        assert second[name].noise is plan.noise, name
        assert second[name].rho == 0.2


@pytest.mark.parametrize(
    "of", [lambda own: own, lambda own: gn.Leading(own, 4)], ids=["own", "within"]
)
def test_bases_of_a_users_own_are_solved_again_whatever_they_call_equal(of):
    one, three = (of(Own(3, factor)) for factor in (1.0, 3.0))
    assert one == three
    plans = [
        gn.plan(gn.Schema([gn.Attribute("n", range(base.size), base=base)]), 1, gn.zCDP(0.1))
        for base in (one, three)
    ]
    assert plans[1].noise.gamma == pytest.approx(3 * plans[0].noise.gamma)


def test_a_certificate_that_plans_share_cannot_be_written_to():
    schema = gn.Schema([gn.Attribute("a", ["x", "y", "z"]), gn.Attribute("b", range(4))])
    for workload in (2, [{"a": None, "b": "prefix"}]):
        certificate = gn.plan(schema, workload, gn.zCDP(0.1)).noise.certificate
        arrays = [certificate.shares, certificate.pattern_weights, certificate.patterns]
        for array in [*arrays, *getattr(certificate, "cell_weights", ())]:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 1

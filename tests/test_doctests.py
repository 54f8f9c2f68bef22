"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import domains
import gaussnoise
from gaussnoise.noise.covariance import FactorCovariance

NAMES = {name: getattr(gaussnoise, name) for name in gaussnoise.__all__}
NAMES |= {"gn": gaussnoise, "np": np, "FactorCovariance": FactorCovariance}
MODULES = [
    module.name
    for package in (domains, gaussnoise)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name), extraglobs=NAMES).failed == 0


def test_examples_are_found():
    assert (
        doctest.testmod(importlib.import_module("domains.sets.finite"), extraglobs=NAMES).attempted
        >= 3
    )

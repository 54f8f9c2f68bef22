"""Every public name has an example, and every example in a docstring prints what it says."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import domains
import gaussnoise
import gaussnoise.plots
import gaussnoise.privacy
from gaussnoise.noise.covariance import FactorCovariance

NAMES = {name: getattr(gaussnoise, name) for name in gaussnoise.__all__}
NAMES |= {"gn": gaussnoise, "np": np, "FactorCovariance": FactorCovariance}
MODULES = [
    module.name
    for package in (domains, gaussnoise)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]

SPACES = ("domains", "errors", "estimators", "plots", "privacy", "results", "streams")


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name), extraglobs=NAMES).failed == 0


def test_every_public_name_has_an_example():
    modules = (gaussnoise, *(getattr(gaussnoise, name) for name in SPACES))
    public = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in module.__all__
        if name not in SPACES
    }
    assert len(public) > 150
    assert not [name for name, value in public.items() if ">>>" not in (value.__doc__ or "")]


def test_examples_are_found():
    assert (
        doctest.testmod(importlib.import_module("domains.sets.finite"), extraglobs=NAMES).attempted
        >= 3
    )

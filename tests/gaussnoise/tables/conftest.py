"""Most of what a release takes is its picture, which ``test_plots.py`` is about."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick_pictures(quick_pictures):
    return quick_pictures

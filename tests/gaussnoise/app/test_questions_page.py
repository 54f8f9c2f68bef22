"""Words of the page of questions."""

import pytest

import gaussnoise as gn
from gaussnoise.app.questions_page import named

BORN = {"edges": [0, 18, 65]}


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        (gn.Attribute("born", **BORN), "born"),
        (gn.Attribute("born", title="age on 01.09.2026", **BORN), "age on 01.09.2026 (born)"),
        (gn.Attribute("pay", clip=[0, 9], measured_in="EUR"), "pay: mean"),
    ],
)
def test_columns_have_their_title_and_the_name_in_the_file(attribute, said):
    assert named(attribute) == said

"""The book: ``python -m sphinx notebooks book/html``; notebooks are shown as they were executed."""

import re
from functools import partial
from typing import Generic, NewType, TypeVar

import numpy.typing
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

DType = TypeVar("DType")


class NDArray(Generic[DType]):
    """An array of numpy."""


# Pages show these two by name, not the unions and generics that they stand for; set before our
# modules import them.
numpy.typing.ArrayLike = NewType("ArrayLike", object)
numpy.typing.NDArray = NDArray

import gaussnoise

project = "gaussnoise"
author = "the gaussnoise authors"
version = release = gaussnoise.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["**.ipynb_checkpoints"]

nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "description"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
autosummary_generate = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "gaussnoise"
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_end": [],
}

# Fences would grow with what is beside them; in TeX they are as high as letters, unless \bigl and
# the like give them a size.
_FENCE = re.compile(r"<mo[^>]*>(?=[‖⟨⟩{}]</mo>)")


def _formula(writer: HTML5Translator, node: nodes.Element, as_block: bool) -> None:
    """Write a formula as MathML, which browsers show without a script or a network."""
    mathml = tex2mathml(node.astext(), as_block=as_block)
    mathml = _FENCE.sub('<mo stretchy="false">', mathml)
    writer.body.append(f"<p>{mathml}</p>" if as_block else mathml)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Add what renders formulas."""
    inline, block = partial(_formula, as_block=False), partial(_formula, as_block=True)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))

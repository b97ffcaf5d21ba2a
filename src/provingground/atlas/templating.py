"""The templates of all pages, and what they may call."""

from typing import Any

import jinja2

from provingground.atlas.facts import advice, bound, gauge, measured, number, provenance, sweep
from provingground.atlas.latex import plain, typeset
from provingground.atlas.records import counts, outcome
from provingground.atlas.strips import margin_place
from provingground.verdict import at_all


def _pages() -> jinja2.Environment:
    """The templates; everything that is filled in is escaped."""
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("provingground.atlas"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    words = (advice, at_all, bound, counts, measured, number, outcome, provenance, sweep)
    tools = (*words, gauge, margin_place)
    pages.globals.update({tool.__name__: tool for tool in tools})
    pages.filters.update(plain=plain, typeset=typeset)
    return pages


PAGES = _pages()


def rendered(name: str, **given: Any) -> bytes:
    """A page made of a template."""
    return PAGES.get_template(name).render(**given).encode()

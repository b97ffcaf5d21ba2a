"""Markdown of studies' pages as HTML: what they use, and nothing that could do harm."""

import re
from pathlib import Path

import pytest
from markupsafe import Markup

from provingground import registry
from provingground.atlas.markdown import anchor, cells, html
from shown import HIT, Parts

PAGES = sorted((Path(registry.__file__).parent / "studies").glob("*/*.md"))


@pytest.mark.parametrize(("text", "made"), [
    ("# A *b*", '<h1 id="a-b">A <em>b</em></h1>'),
    ("one\ntwo", "<p>one\ntwo</p>"),
    ("**bold** and `a < b`", "<p><strong>bold</strong> and <code>a &lt; b</code></p>"),
    ("- a\n  more\n- b", "<ul><li>a\nmore</li><li>b</li></ul>"),
    ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
    ("- a\n  - b", "<ul><li>a<ul><li>b</li></ul></li></ul>"),
    ("[a](https://b.c)", '<p><a href="https://b.c">a</a></p>'),
    ("[a](#b)", '<p><a href="#b">a</a></p>'),
    ("[a](../../x.md)", "<p>a</p>"),
    ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>"),
    ("[a](javascript:alert)", "<p>a</p>"),
    ("[a](data:text/html,x)", "<p>a</p>"),
    ("![alt](x.png)", "<p><em>alt</em></p>"),
    ("<!-- a -->\nb", "<p>b</p>"),
    ("a * b * c", "<p>a * b * c</p>"),
])  # fmt: skip
def test_what_pages_use(text, made):
    assert str(html(text)) == made


def test_formulas_are_typeset_and_stay_whole_in_tables():
    page = html("| a | b |\n|---|---|\n| $\\|x\\|$ | `p|q` |")
    assert page.count("<td>") == 2
    assert "‖" in page
    assert "<code>p|q</code>" in page
    assert cells("| a | b \\| c |") == ["a", "b \\| c"]


def test_a_formula_between_two_dollars_stands_by_itself():
    made = html("**Network.**\n$$F(x)\n= a$$\nwith $a$ the read-out, $b$ the bias.")
    assert made.count('<span class="display"><math') == 1
    assert made.count("<math") == 3
    assert "$" not in made
    assert "the read-out, " in made


def test_code_is_as_it_was_written():
    page = html("```python\nx = '<b>' * 2\n```\nafter")
    assert "x = &#39;&lt;b&gt;&#39; * 2" in page
    assert "<p>after</p>" in page
    assert "language" not in html("```sh\nls")


@pytest.mark.parametrize("text", [
    HIT, f"# {HIT}", f"- {HIT}", f"| {HIT} |", f"[{HIT}](https://a.b)", f"![{HIT}](x.png)",
    f"`{HIT}`", f"```\n{HIT}\n```", f"${HIT}$", '[a](https://b"onclick="x)', "<img src=x>",
    f"**{HIT}**", f"*{HIT}*", "<https://a.b/\"onclick='x'>",
])  # fmt: skip
def test_markup_stays_text(text):
    parts = Parts(str(html(text)))
    assert not {"script", "img"} & set(parts.tags)
    assert not [a for a in parts.attributes if a[1].startswith("on")]


def test_pictures_are_those_that_are_given():
    page = html("![a](b.png)", picture=lambda src, alt: Markup("<b>{}</b>").format(src + alt))
    assert page == "<p><b>b.pnga</b></p>"


def test_headings_have_names():
    assert anchor("What `x` we $N$ found?") == "what-x-we-n-found"
    assert anchor("$$") == "part"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_pages_of_studies_are_well_formed(page):
    made = html(page.read_text(encoding="utf-8"), level=2)
    for tag in ("p", "ul", "li", "table", "td", "pre", "code", "strong"):
        assert made.count(f"<{tag}>") + made.count(f"<{tag} ") == made.count(f"</{tag}>"), tag
    assert not re.search(r"<code>[^<]*\\[a-z]+\{", made)  # a formula that cannot be typeset
    outside = re.sub(r"<pre.*?</pre>|<code>.*?</code>", "", made, flags=re.DOTALL)
    assert "```" not in outside

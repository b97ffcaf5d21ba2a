"""The Markdown that pages of studies use, as HTML: headings, tables, lists, code, links, pictures.

Everything is escaped: what is not known is text. Formulas between dollars become MathML. Links lead
to other sites by https, to places of the same page, or where `links` maps them; others are words.

    html("**a** of $N$", level=2)       <p><strong>a</strong> of <math>...</math></p>
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from markupsafe import Markup, escape

from provingground.atlas.latex import typeset

INLINE = re.compile(
    r"(?P<code>`+)(?P<quoted>.+?)(?P=code)"
    r"|\$\$(?P<display>[^$]+)\$\$"
    r"|(?P<formula>\$[^$]+\$)"
    r"|!\[(?P<alt>[^\]]*)\]\((?P<src>[^()\s]*)\)"
    r"|\[(?P<words>(?:[^\[\]]|\[[^\[\]]*\])+)\]\((?P<to>[^()\s]*)\)"
    r"|\*\*(?P<strong>(?:[^*]|\*(?!\*))+)\*\*"
    r"|(?<![\w*])\*(?P<em>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])"
    r"|<(?P<address>https?://[^<>\s]+)>",
    re.DOTALL,
)
ITEM = re.compile(r"( *)(?:[-*]|(\d+)\.) +(.*)")
Picture = Callable[[str, str], Markup | None]


class Options(NamedTuple):
    """How deep the first headings are, where links lead, and how pictures are shown."""

    level: int = 1
    links: Mapping[str, str] = {}
    picture: Picture | None = None


PLAIN = Options()


def html(
    text: str,
    *,
    level: int = 1,
    links: Mapping[str, str] | None = None,
    picture: Picture | None = None,
) -> Markup:
    """A whole text."""
    options = Options(level, links or {}, picture)
    return Markup("\n").join(_blocks(text.replace("\r\n", "\n").split("\n"), options))


def inline(text: str, options: Options = PLAIN) -> Markup:
    """Words of one paragraph."""
    made, at = Markup(""), 0
    for found in INLINE.finditer(text):
        made += typeset(text[at : found.start()].replace("\\|", "|"))
        made += _mark(found, options)
        at = found.end()
    return made + typeset(text[at:].replace("\\|", "|"))


def _mark(found: re.Match[str], options: Options) -> Markup:
    if found["code"]:
        return Markup("<code>{}</code>").format(found["quoted"].strip().replace("\\|", "|"))
    if found["display"]:
        shown = typeset(f"${' '.join(found['display'].split())}$")
        return Markup('<span class="display">{}</span>').format(shown)
    if found["formula"]:
        return typeset(" ".join(found["formula"].split()))
    if found["src"] is not None:
        shown = options.picture(found["src"], found["alt"]) if options.picture else None
        return shown if shown is not None else Markup("<em>{}</em>").format(found["alt"])
    if found["strong"]:
        return Markup("<strong>{}</strong>").format(inline(found["strong"], options))
    if found["em"]:
        return Markup("<em>{}</em>").format(inline(found["em"], options))
    if found["address"]:
        return _link(found["address"], escape(found["address"]), options)
    return _link(found["to"], inline(found["words"], options), options)


def _link(to: str, words: Markup, options: Options) -> Markup:
    to = options.links.get(to, to if re.match(r"https?://|#[\w-]*$", to) else "")
    return Markup('<a href="{}">{}</a>').format(to, words) if to else words


def anchor(heading: str) -> str:
    """The name of a heading in addresses."""
    return re.sub(r"[^\w]+", "-", re.sub(r"[`$\\{}*]", "", heading).lower()).strip("-") or "part"


def _blocks(lines: list[str], options: Options) -> Iterator[Markup]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip() or re.fullmatch(r"\s*<!--.*-->\s*", line):
            at += 1
        elif line.lstrip().startswith("```"):
            end = at + 1
            while end < len(lines) and not lines[end].lstrip().startswith("```"):
                end += 1
            code = "\n".join(lines[at + 1 : end])
            yield Markup('<pre tabindex="0"><code>{}</code></pre>').format(code)
            at = end + 1
        elif heading := re.fullmatch(r"(#{1,6}) +(.+?) *#*", line):
            depth = min(len(heading[1]) - 1 + options.level, 6)
            words = inline(heading[2], options)
            yield Markup('<h{0} id="{1}">{2}</h{0}>').format(depth, anchor(heading[2]), words)
            at += 1
        elif line.startswith("|"):
            end = _while(lines, at, lambda other: other.startswith("|"))
            yield _table(lines[at:end], options)
            at = end
        elif ITEM.match(line):
            end = _while(lines, at, lambda other: bool(other.strip()) or False)
            while end + 1 < len(lines) and re.match(r" {2,}\S|[-*] |\d+\. ", lines[end + 1]):
                end = _while(lines, end + 1, lambda other: bool(other.strip()))
            yield _list(lines[at:end], options)
            at = end
        else:
            end = _while(lines, at, lambda other: bool(other.strip()) and not re.match(
                r"#{1,6} |\||```|[-*] +|\d+\. +", other), first=True)  # fmt: skip
            yield Markup("<p>{}</p>").format(inline("\n".join(lines[at:end]), options))
            at = end


def _while(lines: list[str], at: int, good: Callable[[str], bool], first: bool = False) -> int:
    end = at + 1 if first else at
    while end < len(lines) and good(lines[end]):
        end += 1
    return max(end, at + 1)


def _list(lines: list[str], options: Options) -> Markup:
    """Items, each with the lines below it that are indented (which may be a list again)."""
    items: list[list[str]] = []
    first = ITEM.match(lines[0])
    assert first is not None
    for line in lines:
        found = ITEM.match(line)
        if found and len(found[1]) <= len(first[1]):
            items.append([found[3]])
        else:
            items[-1].append(line)
    made = []
    for item in items:
        words = [line.strip() for line in item]
        inner = next((n for n, line in enumerate(item) if n and ITEM.match(line)), len(item))
        below = _list(item[inner:], options) if inner < len(item) else Markup("")
        made.append(
            Markup("<li>{}{}</li>").format(inline("\n".join(words[:inner]), options), below)
        )
    tag = "ol" if first[2] else "ul"
    return Markup("<{0}>{1}</{0}>").format(tag, Markup("").join(made))


def cells(row: str) -> list[str]:
    """The cells of a row of a table; a bar in code or behind a backslash belongs to its cell."""
    parts, inside, found = [""], False, row.strip().strip("|")
    for n, sign in enumerate(found):
        inside ^= sign == "`"
        if sign == "|" and not inside and found[n - 1] != "\\":
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _table(lines: list[str], options: Options) -> Markup:
    rows = [cells(line) for line in lines]
    ruled = len(rows) > 1 and all(re.fullmatch(r":?-+:?", cell) for cell in rows[1])
    head, body = (rows[0], rows[2:]) if ruled else ([], rows)
    made = Markup("")
    if any(head):
        across = _row('<th scope="col">{}</th>', head, options)
        made += Markup("<thead>{}</thead>").format(across)
    told = Markup("").join(_row("<td>{}</td>", row, options) for row in body)
    scrolls = Markup('<div class="scrolls" tabindex="0" role="group" aria-label="table">{}</div>')
    return scrolls.format(Markup("<table>{}<tbody>{}</tbody></table>").format(made, told))


def _row(cell: str, texts: list[str], options: Options) -> Markup:
    told = (Markup(cell).format(inline(text, options)) for text in texts)
    return Markup("<tr>{}</tr>").format(Markup("").join(told))

"""Links of Markdown pages: which of them lead nowhere."""

import posixpath
import re
from collections.abc import Iterator, Mapping

_CODE = re.compile(r"^(```+).*?^\1`*$|(`+)[^`].*?\2", re.MULTILINE | re.DOTALL)


def dead_links(texts: Mapping[str, str], others: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield each link of a page, relative to its place, whose file or heading is not there.

    texts: what the pages hold, by path. others: paths of files that are no pages.
    """
    for name, text in texts.items():
        for target in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", _CODE.sub("", text)):
            path, _, anchor = target.partition("#")
            full = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if (full not in texts and full not in others) or (anchor and anchor not in _anchors(texts.get(full, ""))):
                yield f"{name}: {target}"


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower())) for heading in headings}

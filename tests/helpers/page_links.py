"""Find dead links of Markdown pages."""

import posixpath
import re
from collections.abc import Iterator, Mapping

_CODE = re.compile(r"^(```+).*?^\1`*$|(`+)[^`].*?\2", re.MULTILINE | re.DOTALL)


def dead_links(texts: Mapping[str, str], others: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield each relative link of a page whose file or heading does not exist.

    texts: the texts of the pages, by path. others: the paths of files that are not pages.
    """
    for name, text in texts.items():
        for target in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", _CODE.sub("", text)):
            path, _, anchor = target.partition("#")
            full = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if (full not in texts and full not in others) or (anchor and anchor not in _anchors(texts.get(full, ""))):
                yield f"{name}: {target}"


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, in the format of GitHub and the site."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower())) for heading in headings}

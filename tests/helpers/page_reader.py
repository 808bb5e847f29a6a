"""Read a page for the tests. Fail if tags are not closed in order; keep tags, attributes and text."""

import itertools
from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """A page: `tags` in order, `text` without style and script, `ids`, and the level of each heading."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.code: dict[str, list[str]] = {"style": [], "script": []}
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.code:
            self.code[self.open[-1]].append(data)
        else:
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    @property
    def policy(self) -> str:
        metas = self.all("meta")
        return next(str(a["content"]) for a in metas if a.get("http-equiv") == "Content-Security-Policy")

    @property
    def ids(self) -> list[str | None]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    @property
    def levels(self) -> list[int]:
        return [int(tag[1]) for tag, _ in self.tags if tag in ("h1", "h2", "h3", "h4", "h5", "h6")]

    def check(self) -> None:
        """Fail if the page loads or runs foreign content, or is not usable without sight or a mouse."""
        for tag in ("link", "iframe", "object", "embed", "form", "base"):
            assert self.all(tag) == []
        assert not [name for _, attributes in self.tags for name in attributes if name.startswith("on")]
        assert not [text for text in self.code["style"] if "url(" in text or "@import" in text]
        assert all(str(picture["src"]).startswith("data:image/") and picture["alt"] for picture in self.all("img"))
        assert len(set(self.ids)) == len(self.ids)
        for _, attributes in self.tags:
            for name in ("aria-labelledby", "aria-describedby", "aria-controls"):
                assert attributes.get(name, self.ids[0]) in self.ids
        targets = {str(a["href"])[1:] for a in self.all("a") if str(a["href"]).startswith("#")}
        assert targets and targets <= set(map(str, self.ids))
        ours = [attributes for attributes in self.all("table") if attributes]
        assert len(self.all("caption")) == len(ours)  # the other tables belong to a student's report
        assert all(a.get("scope") in ("row", "col") for a in self.all("th"))
        drawings = [a for a in self.all("svg") if a.get("aria-hidden") != "true"]
        assert all(a["role"] == "img" and "aria-labelledby" in a for a in drawings)
        assert len(drawings) == len(self.all("figure"))
        assert self.all("html") == [{"lang": "en"}]
        assert len(self.all("main")) == len(self.all("header")) == len(self.all("nav")) == 1
        assert self.levels[0] == 1 and self.levels.count(1) == 1
        assert all(after - before <= 1 for before, after in itertools.pairwise(self.levels))


def log_of(browser: "Chrome") -> list[dict[str, object]]:
    """Return the browser's messages since the last call."""
    return list(browser.get_log("browser"))  # type: ignore[no-untyped-call]

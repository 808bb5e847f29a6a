"""The hook that `mkdocs.yml` names: mkdocs builds the site from the pages of docs/ and from those that are made."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from grader.docs.pages import make_pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for name, text in make_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with links that hold in the site: SECURITY.md lies above docs/."""
    return markdown.replace("](../SECURITY.md", "](security.md")

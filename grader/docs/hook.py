"""A hook that mkdocs calls (see `mkdocs.yml`). It adds the generated pages to the pages of docs/."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from grader.docs.pages import make_pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the site, with the generated pages added to them."""
    for name, text in make_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page in which links to SECURITY.md also work on the site, although this file is outside docs/."""
    return markdown.replace("](../SECURITY.md", "](security.md")

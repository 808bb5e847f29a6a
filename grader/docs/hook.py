"""The hook for mkdocs (see `mkdocs.yml`), which adds the generated pages to the pages of docs/."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from grader.docs.pages import make_pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the site with the generated pages added."""
    for name, text in make_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with links that work in the site: SECURITY.md is outside docs/."""
    return markdown.replace("](../SECURITY.md", "](security.md")

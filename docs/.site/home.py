"""The pages of the site that are no files in docs/: the README first, the reference and the changelog last."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = {"README.md": "index.md", "CHANGELOG.md": "CHANGELOG.md"}
REFERENCE = """# Reference

The public names of the three packages, from their docstrings.

::: bp

::: agent

::: constitution
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand above docs/; their links into docs/ become links between pages."""
    for name, page in PAGES.items():
        text = (Path(config.docs_dir).parent / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text.replace("](docs/", "](")))
    files.append(File.generated(config, "reference.md", content=REFERENCE))
    return files

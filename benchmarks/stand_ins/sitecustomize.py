"""Python imports this module at its start: `requests.get` then answers with made-up files."""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Answer:
    """What a server would have sent."""

    status_code = 200
    ok = True

    def __init__(self, content: bytes) -> None:
        import io

        self.content = content
        self.raw = io.BytesIO(content)
        self.text = content.decode(errors="replace")

    def __enter__(self) -> "_Answer":
        return self

    def __exit__(self, *unused: object) -> None:
        self.raw.close()

    def raise_for_status(self) -> None:
        """Everything went well."""


def _get(url: str, *unused: Any, **named: Any) -> _Answer:
    import files

    return _Answer(files.download(url))


class _Patching(Loader):
    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        module.get = _get  # type: ignore[attr-defined]


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "requests":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Patching(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())

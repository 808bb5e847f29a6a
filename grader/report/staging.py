"""Files that take their places all together: written beside them first, by whatever process."""

from pathlib import Path
from types import TracebackType

from harness.errors import naming
from harness.files import scratch_path


class Staging:
    """Scratch files beside the places that they will take; those that took none go when the context is left."""

    def __init__(self) -> None:
        self._places: dict[Path, Path] = {}

    def __enter__(self) -> "Staging":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for scratch in self._places:
            scratch.unlink(missing_ok=True)

    def scratch_for(self, path: Path) -> Path:
        """Return where to write what is to lie at `path`; where nothing is written, `path` stays as it is."""
        scratch = scratch_path(path)
        self._places[scratch] = path
        return scratch

    def write(self, path: Path, data: bytes) -> None:
        """Write what is to lie at `path`. Raises `OSError`, which names it, where that fails."""
        write_scratch(self.scratch_for(path), path, data)

    def commit(self) -> None:
        """Let what was written take its places, in the order in which they were asked for."""
        for scratch, path in self._places.items():
            if scratch.exists():
                scratch.replace(path)


def write_scratch(scratch: Path, path: Path, data: bytes) -> None:
    """Write a scratch file. Raises `OSError`, which names the place that it is for, where that fails."""
    with naming(path):
        scratch.write_bytes(data)

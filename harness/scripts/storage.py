"""The checkpoints of a script: equal states have equal bytes, and the log is cut where a resumed run continues."""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.files import write_whole
from harness.run.checkpoint import canonical
from harness.scripts.script import CHECKPOINT

POSITIONS = "positions.jsonl"


@dataclass(frozen=True)
class LogPlace:
    """The place in the log at which a checkpoint was saved: its size in bytes, and the numbers of what came before."""

    sha256: str
    log_bytes: int
    updates: int
    evaluations: int


class Storage:
    """Replaces `torch.save` and `torch.load` for a script. Use `install()` as a context manager.

    position: a function that returns the present place in the log for a digest. restored: a function that gets the
    place at which the first checkpoint was saved that a resumed script loads, or None if it is unknown. saves: False
    leaves out `ckpt.pt`, because two processes would write it at the same time.
    """

    def __init__(
        self,
        folder: Path,
        position: Callable[[str], LogPlace],
        restored: Callable[[LogPlace | None], None] | None,
        *,
        saves: bool = True,
    ) -> None:
        self._saves = saves
        self._file = folder / POSITIONS
        self._position = position
        self._restored = restored

    @contextmanager
    def install(self) -> Iterator[None]:
        """Use this storage while the context lasts."""
        save, load = torch.save, torch.load

        def own_save(state: Any, file: Any, *arguments: Any, **options: Any) -> None:
            # torch.save stores the name of the file in the archive, and references between equal objects.
            buffer = io.BytesIO()
            save(canonical(state), buffer)
            self._write(file, buffer.getvalue())

        def own_load(file: Any, *arguments: Any, **options: Any) -> Any:
            if self._restored is not None and isinstance(file, str | os.PathLike):
                restored, self._restored = self._restored, None
                restored(self._find(hashlib.sha256(Path(file).read_bytes()).hexdigest()))
            return load(file, *arguments, **options)

        vars(torch).update(save=own_save, load=own_load)
        try:
            yield
        finally:
            vars(torch).update(save=save, load=load)

    def _write(self, file: Any, content: bytes) -> None:
        if not isinstance(file, str | os.PathLike):
            file.write(content)
            return
        if not self._saves and Path(file).name == CHECKPOINT:
            return
        position = self._position(hashlib.sha256(content).hexdigest())
        with self._file.open("a", encoding="utf-8") as positions:
            positions.write(json.dumps(vars(position)) + "\n")
        write_whole({Path(file): content}, durable=False)

    def _find(self, digest: str) -> LogPlace | None:
        """Return the first place with this digest. A line that was cut off by a kill is left out."""
        if not self._file.is_file():
            return None
        for line in self._file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n") and (found := LogPlace(**json.loads(line))).sha256 == digest:
                return found
        return None

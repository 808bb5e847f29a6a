"""Remembers replays in a folder: one file each, written whole, checked when it is read."""

import hashlib
import os
from pathlib import Path

from pydantic import ValidationError

from grader.replay import Replay
from harness.files import write_whole


def default_store() -> Path:
    """Return where replays are kept: $TRAINWRECK_REPLAYS, else trainwreck/replays in the user's cache folder."""
    if chosen := os.environ.get("TRAINWRECK_REPLAYS"):
        return Path(chosen).expanduser()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    home = shared if shared.is_absolute() else Path("~/.cache").expanduser()
    return home / "trainwreck" / "replays"


class ReplayStore:
    """Replays by their key. An entry that is damaged is as good as none; a fault of ours is never kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> Replay | None:
        """Return the replay of this key, or None."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        digest, _, body = data.partition(b"\n")
        if digest.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
            return None
        try:
            return Replay.model_validate_json(body)
        except ValidationError:
            return None

    def put(self, key: str, replay: Replay) -> None:
        """Keep a replay."""
        if replay.status == "XX":
            return
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        body = replay.model_dump_json().encode()
        write_whole({path: hashlib.sha256(body).hexdigest().encode() + b"\n" + body}, durable=False)

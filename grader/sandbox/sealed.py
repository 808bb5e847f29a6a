"""Content in sealed memory, handed to another process as a file descriptor."""

import contextlib
import fcntl
import os

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


class SealedFiles(contextlib.ExitStack):
    """Files in memory that nobody can change any more, closed together at the end of the `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.descriptors: list[int] = []

    def keep(self, content: bytes) -> int:
        """Return the descriptor, at its beginning, of a file with this content."""
        descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.callback(os.close, descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        os.lseek(descriptor, 0, os.SEEK_SET)
        self.descriptors.append(descriptor)
        return descriptor

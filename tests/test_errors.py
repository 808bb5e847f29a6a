import errno
import os
from pathlib import Path

import pytest

from harness.errors import from_os_error, name_place


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EBADF, errno.EINVAL, None])
def test_what_a_person_can_fix_is_said_in_one_sentence(code: int | None) -> None:
    error = from_os_error(OSError(code, os.strerror(code), "/some/where") if code else OSError("?"))
    if code not in (errno.ENOSPC, errno.EACCES):
        assert error is None
    else:
        assert str(error).startswith(f"{os.strerror(code)} at /some/where: ")


def test_an_error_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as failed, name_place(tmp_path):
        os.write(os.open("/dev/full", os.O_WRONLY), b"more")
    assert failed.value.filename == str(tmp_path)
    with pytest.raises(FileNotFoundError) as missing, name_place(tmp_path):
        (tmp_path / "missing").read_bytes()
    assert missing.value.filename == str(tmp_path / "missing")

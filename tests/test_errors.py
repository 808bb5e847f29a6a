import errno
import os
from pathlib import Path

import pytest

from harness.errors import from_os_error, naming


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EEXIST])
def test_what_a_person_can_mend_is_said_in_one_sentence(code: int) -> None:
    error = from_os_error(OSError(code, os.strerror(code), "/some/where"))
    assert error is not None
    assert str(error).startswith(f"{os.strerror(code)} at /some/where: ")
    assert str(error).endswith(".")


@pytest.mark.parametrize("code", [errno.EBADF, errno.EINVAL, None])
def test_any_other_error_of_the_system_is_ours(code: int | None) -> None:
    assert from_os_error(OSError(code, "?") if code else OSError("?")) is None


def test_a_failed_write_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as caught, naming(tmp_path):
        os.write(os.open("/dev/full", os.O_WRONLY), b"more")
    assert caught.value.filename == str(tmp_path)


def test_an_error_that_names_its_file_keeps_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, naming(tmp_path):
        (tmp_path / "missing").read_bytes()
    assert caught.value.filename == str(tmp_path / "missing")

import errno
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from made_up_class import make_exhibits
from test_report_pages import hostile_exhibits

from grader.report.exhibits import KeptExhibits


def test_exhibits_come_back_as_they_were_in_any_order() -> None:
    made = {one.submission: one for one in (make_exhibits("ada_steep"), hostile_exhibits(), make_exhibits("bob_steep"))}
    with closing(KeptExhibits()) as kept:
        for one in made.values():
            kept.keep(one)
        assert [*kept] == [*made] and len(kept) == len(made)
        assert all(kept[name] == made[name] for name in reversed(made))
        kept.keep(make_exhibits("cem_steep"))  # after a look at others
        assert kept["ada_steep"] == made["ada_steep"] and kept["cem_steep"] == make_exhibits("cem_steep")
        assert kept.get("zoe_steep") is None


def test_a_full_disk_is_named_and_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("w+b"))  # noqa: SIM115
    with pytest.raises(OSError, match="No space left") as caught, closing(KeptExhibits()) as kept:
        kept.keep(make_exhibits("ada_steep"))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, tempfile.gettempdir())

import errno
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from helpers.made_up_class import make_attachments, make_row
from test_report_pages import hostile_attachments

from grader.report.attachments import KeptAttachments
from grader.score.attachments import Attachments
from grader.score.scores_file import scores_json
from grader.score.scoring import Score
from grader.score.verdict import Scores


def score_of(attachments: Attachments) -> Score:
    return Score(make_row(attachments.submission, "ada", "steep", {}), attachments)


def test_what_is_kept_comes_back_as_it_was_in_any_order() -> None:
    shown = (make_attachments("ada_steep"), hostile_attachments(), make_attachments("bob_steep"))
    made = {one.submission: score_of(one) for one in shown}
    with closing(KeptAttachments()) as kept:
        rows = {name: kept.keep(score) for name, score in made.items()}
        assert [*kept] == [*made] and len(kept) == len(made)
        assert all(kept[name] == made[name].attachments and rows[name] == made[name].row for name in reversed(made))
        later = score_of(make_attachments("cem_steep"))
        assert kept.keep(later) == later.row  # after other rows were read
        assert kept["ada_steep"] == made["ada_steep"].attachments and kept["cem_steep"] == later.attachments
        assert kept.get("zoe_steep") is None


def test_the_checks_of_rows_are_not_in_memory_and_are_written_all_the_same() -> None:
    scores = [score_of(make_attachments(name)) for name in ("ada_steep", "bob_steep")]
    with closing(KeptAttachments()) as kept:
        rows = [kept.keep(score) for score in scores]
        written = [
            b"".join(scores_json(Scores(provenance={}, submissions=tuple(some))))
            for some in (rows, [score.row for score in scores])
        ]
    assert written[0] == written[1]
    with pytest.raises(ValueError, match="closed file"):  # only the last row is still in memory
        rows[0].criteria["fix"]


def test_a_full_disk_is_named_and_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("w+b"))  # noqa: SIM115
    with pytest.raises(OSError, match="No space left") as caught, closing(KeptAttachments()) as kept:
        kept.keep(score_of(make_attachments("ada_steep")))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, tempfile.gettempdir())

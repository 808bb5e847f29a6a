"""Read regrade requests: students mail a form from their page, and `grader review --requests` imports the mails.

Requests are stored in a file next to the reports, one JSON object per line, with the time of the import. A request is
open until an instructor makes a decision about the same item.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from grader.course.decisions import TOTAL, Decision, tarball_of
from grader.private import path_beside, write_private
from grader.report.pages import REQUEST_BEGINS, REQUEST_ENDS
from grader.score.verdict import SubmissionScore
from grader.session import lock_folder
from harness.errors import UserError
from harness.files import read_text
from harness.formats.toml_file import StrictModel

_LIMIT = 4 * 1024 * 1024
_FORM = re.compile(
    r"\s*submission:(?P<submission>[^\n]+)\n\s*file: *(?P<file>[0-9a-f]*) *\n\s*about:(?P<about>[^\n]*)\n"
    r"\s*why:(?P<why>.*)",
    re.DOTALL,
)


class RegradeRequest(StrictModel):
    """A student's request that the instructor looks at a submission again.

    submission: the name of the submission. file: the first digits of the SHA-256 of its tarball. about: the item in
    question as `criterion.id`, or "the total". why: the student's reason. received: the time of the import.
    """

    submission: str
    file: str
    about: str
    why: str
    received: Annotated[datetime, Field(strict=False)]

    def fits(self, row: SubmissionScore) -> bool:
        """Return whether the request is about the tarball that was scored in this row."""
        return self.submission == row.submission and tarball_of(row).startswith(self.file)

    def place_at_row(self, row: SubmissionScore, abouts: Collection[str]) -> "RegradeRequest":
        """Return this request; if it names another tarball or an unknown item, turn it into a request about the total.

        abouts: the names of all items of the row.
        """
        if self.about in abouts and self.fits(row):
            return self
        which = "" if self.fits(row) else ", of another file"
        return self.model_copy(update={"about": TOTAL, "why": f"(About {self.about}{which}.) {self.why}"})

    def waits(self, decisions: Iterable[Decision]) -> bool:
        """Return whether the request is open, that is, whether nobody has decided the item since the import."""
        return not any(
            (one.submission, one.about) == (self.submission, self.about) and _later(one.when, self.received)
            for one in decisions
        )


def _later(when: str | None, received: datetime) -> bool:
    try:
        moment = datetime.fromisoformat(when or "")
    except ValueError:
        return False
    return moment.tzinfo is not None and moment >= received


def requests_path(out: Path) -> Path:
    """Return the path of the file with the requests. It is not in the reports, because each scoring replaces them."""
    return path_beside(out, "requests.jsonl")


def read_requests(out: Path) -> list[RegradeRequest]:
    """Return the stored requests, the newest last. Raises a `UserError` that names the first invalid line."""
    path = requests_path(out)
    found = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.is_file() else (), start=1):
        try:
            found.append(RegradeRequest.model_validate_json(line))
        except ValidationError:
            raise UserError(
                f"{path}, line {number} is not a valid request: restore the file from your backup."
            ) from None
    return found


def take_in(out: Path, place: Path) -> tuple[int, int, list[Path]]:
    """Import the requests from a mail, or from all mails in a folder.

    place: the path of the mail or folder. Return the number of new requests, the number of requests that were imported
    before, and the paths of files without a request. A mail must be plain text, and may quote the form. Raises
    `UserError` if no file contains a request.
    """
    files = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
    now = datetime.now(UTC).replace(microsecond=0)
    texts = {one: read_text(one, _LIMIT, missing="check its name", too_large="is this a mail?") for one in files}
    found = {path: list(parse(text, now)) for path, text in texts.items()}
    asked = [one for every in found.values() for one in every]
    if not asked:
        raise UserError(f"{place} contains no regrade request: students must copy the form from their page.")
    with lock_folder(out.resolve().parent, wait=True):
        known = read_requests(out)
        keys = {_key(one) for one in known}
        new = [one for one in asked if _key(one) not in keys]
        lines = "".join(f"{one.model_dump_json()}\n" for one in (*known, *new))
        write_private(requests_path(out), lines.encode())
    return len(new), len(asked) - len(new), [path for path, every in found.items() if not every]


def parse(text: str, received: datetime) -> Iterator[RegradeRequest]:
    """Yield the requests in the text of a mail. Ignore the "> " that mail programs put before quoted lines."""
    plain = re.sub(r"^(> ?)+", "", text.replace("\r\n", "\n"), flags=re.MULTILINE)
    for part in plain.split(REQUEST_BEGINS)[1:]:
        form, ends, _ = part.partition(REQUEST_ENDS)
        if ends and (found := _FORM.fullmatch(form)) and (why := " ".join(found["why"].split())):
            yield RegradeRequest(
                submission=found["submission"].strip(),
                file=found["file"],
                about=found["about"].strip() or TOTAL,
                why=why[:4000],
                received=received,
            )


def _key(one: RegradeRequest) -> tuple[str, str, str, str]:
    return one.submission, one.file, one.about, one.why

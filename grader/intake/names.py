"""Why an archive is rejected, and which member names are plain."""

from harness.errors import printable

# What a file system allows in one part of a path.
NAME_BYTES = 255
REMEDY = "hand in the .tar.gz file that make submit wrote"


class Rejected(Exception):
    """An archive that cannot be graded: a code for machines, and one sentence for the student.

    `student` and `recipe` come from the manifest, if it could be read.
    """

    def __init__(
        self, code: str, message: str, student: str | None = None, recipe: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.student = student
        self.recipe = recipe


def plain_name(name: str) -> str:
    """Return the name without the leading `./` that `tar czf x.tar.gz .` writes.

    Raises `Rejected` for a name that is absolute, climbs out of the folder, is too long, or hides characters.
    """
    if len(name.encode("utf-8", "replace")) > NAME_BYTES:
        raise Rejected("name too long", f"A name in the archive is longer than {NAME_BYTES} bytes.")
    where = f"The name {printable(name)} in the archive"
    if not name.isprintable():
        raise Rejected("unprintable name", f"{where} has characters that cannot be seen.")
    if name.startswith("/") or "\\" in name or name[1:2] == ":":
        raise Rejected("absolute name", f"{where} is not a plain relative one.")
    parts = name.removeprefix("./").rstrip("/").split("/")
    if ".." in parts:
        raise Rejected("path traversal", f"{where} leads out of its folder.")
    if any(part in ("", ".") for part in parts) and name not in (".", "./"):
        raise Rejected("absolute name", f"{where} is not a plain relative one.")
    return "/".join(parts)

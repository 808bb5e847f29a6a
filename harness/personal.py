"""Personal seeds: in a course each student's run of a case has a seed of its own, so that nobody else's log repeats."""

import hashlib
import unicodedata


def login(student: str) -> str:
    """Return a name as platforms compare logins: without surrounding blanks, case and full-width forms.

    Otherwise "Ada " could take the grade of "ada".
    """
    return " ".join(unicodedata.normalize("NFKC", student).casefold().split())


def personal_seed(course: str, student: str, case: str) -> int:
    """Return the seed of a student's runs of a case, 0 to 2**32 - 1; logins that platforms take for one have one."""
    words = "\0".join((course, login(student), case))
    return int.from_bytes(hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()[:4], "big")

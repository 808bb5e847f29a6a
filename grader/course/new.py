"""`grader course new`: write a course file with comments and newly drawn cases, and a roster next to it."""

import secrets
from datetime import datetime, time, timedelta
from pathlib import Path

from grader.course.course import Course
from grader.course.draw import case_tables, draw_cases
from grader.private import private_files, write_private
from harness.errors import UserError
from harness.workspace.workspace import write_where_missing

_TEMPLATE = Path(__file__).with_name("course_template.toml")
_ROSTER = "login,name,email,section\nada,Ada Lovelace,ada@example.org,A\nalan,Alan Turing,alan@example.org,B\n"


def write_course(file: Path) -> Path:
    """Write a course file. If there is no `roster.csv` next to it, write an example. Return the path of the roster.

    Raises `UserError` if the course file exists already.
    """
    if file.exists():
        raise UserError(f"{file} exists already: choose another name, or move it away.")
    roster = file.with_name("roster.csv")
    day = datetime.combine(datetime.now().date(), time())
    opens, due = day + timedelta(days=1, hours=8), day + timedelta(days=8, hours=23, minutes=59)
    course = Course(
        format_version=1, id="my-course", title="-", time_zone="UTC", secret=secrets.token_hex(16), roster=roster.name
    )
    text = _TEMPLATE.read_text(encoding="utf-8").format(
        file=file,
        id=course.id,
        secret=course.secret,
        roster=course.roster,
        opens=opens.isoformat(),
        due=due.isoformat(),
        due_and_grace=(due + timedelta(minutes=15)).isoformat(),
        over=(due + timedelta(days=4)).isoformat(),
        cases=case_tables(draw_cases(course, "week-1", 3, 1)),
    )
    write_private(file, text.encode())
    with private_files():
        write_where_missing(roster, _ROSTER)
    return roster

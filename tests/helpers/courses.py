"""A small course for tests: three students, two weeks, and cases of the fastest experiments."""

from pathlib import Path

COURSE = """
format_version = 1
id = "ml"
title = "Learning machines"
time_zone = "Europe/Berlin"
secret = "a secret of this course"
roster = "roster.csv"

[[assignment]]
id = "week-1"
title = "First week"
opens = 2026-10-20T08:00:00
due = 2026-10-27T23:59:00
[assignment.late]
points_per_day = 10
grace_minutes = 15
most_days = 3
extensions = { cem = 2026-10-29T23:59:00 }
[[assignment.case]]
id = "a1"
experiment = "strength_reg"
breaks = ["broadcast_loss"]
[[assignment.case]]
id = "a2"
experiment = "digits_mlp"
breaks = ["frozen_layer", "split_contamination"]
[[assignment.case]]
id = "a3"
experiment = "orders_mlp"

[[assignment]]
id = "week-2"
title = "Second week"
opens = 2026-10-27T08:00:00
due = 2026-11-03T23:59:00
hints = true
[[assignment.case]]
id = "b1"
experiment = "digits_mlp"
decoy = "tiny_batches"
"""
POOLED = COURSE.replace(
    'experiment = "orders_mlp"\n',
    """experiment = "orders_mlp"
pool = "one"
[[assignment.case]]
id = "a4"
experiment = "machines_mlp"
pool = "one"
""",
    1,
)
ROSTER = "login,name,email,section\nada,Ada Lovelace,ada@example.org,A\nbob,Bob,,B\ncem,Cem,,A\n"


def write_course(folder: Path, course: str = COURSE, roster: str = ROSTER) -> Path:
    """Write a course and its roster, and return the path of the course file."""
    (folder / "roster.csv").write_text(roster, encoding="utf-8")
    (folder / "course.toml").write_text(course, encoding="utf-8")
    return folder / "course.toml"

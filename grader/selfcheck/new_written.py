"""`grader new-written`: write the two folders of a new written exercise, with a small working example, and prove it."""

import re
from pathlib import Path

from grader.replay.replays import default_folder
from grader.sandbox import sandbox_problem
from grader.selfcheck.runs import open_runs
from grader.selfcheck.written import written_problems
from grader.written.grade import AnswerGrader
from grader.written.known_answers import ANSWERS
from harness.errors import UserError
from harness.files import write_whole
from harness.recipes.recipe import EXERCISES, FILE_EXERCISE, SOLUTIONS
from harness.workspace.workspace import PROMPT
from harness.written.exercise import FileExercise, load_exercise
from harness.written.expected import EXPECTED

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def write_exercise(name: str, *, exercises: Path = EXERCISES, solutions: Path = SOLUTIONS) -> list[Path]:
    """Write the folders of a new exercise, and return their files.

    Raises `UserError` if the name cannot be used or exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{2,39}", name):
        raise UserError(f"{name!r} cannot be a name: use 3 to 40 lower-case letters, digits and _.")
    public, private = exercises / name, solutions / name
    if public.exists() or private.exists():
        raise UserError(f"There is already an exercise {name}: choose another name, or delete its two folders.")
    templates = {
        public / FILE_EXERCISE: "written_judge.toml",
        public / PROMPT: "written_prompt.md",
        public / f"{name}.py": "written_stub.txt",
        private / f"{name}.py": "written_solution.txt",
        private / ANSWERS: "written_answers.toml",
    }
    texts = {path: (_TEMPLATES / template).read_text(encoding="utf-8") for path, template in templates.items()}
    for folder in (public, private):
        folder.mkdir()
    write_whole({path: text.replace("@NAME@", name).encode() for path, text in texts.items()})
    return [*texts]


def make_exercise(name: str, *, jobs: int) -> int:
    """Write a new exercise, prove it in the sandbox, and print the next steps. Return 1 if a proof fails, else 0.

    Raises `UserError` if the name cannot be used, or if no sandbox starts on this machine.
    """
    if (problem := sandbox_problem()) is not None:
        raise UserError(problem)
    files = write_exercise(name)
    exercise = load_exercise(name)
    assert isinstance(exercise, FileExercise)
    with open_runs(jobs=jobs) as runs:
        problems = written_problems(exercise, AnswerGrader(runs.replayer, default_folder(), jobs=jobs), write=True)
    print(*(f"wrote {path}" for path in (*files, EXERCISES / name / EXPECTED)), sep="\n")
    if problems:
        print(*problems, sep="\n")
        return 1
    print("It works: the solution earns all points, and each wrong answer loses the declared ones.")
    print(f"Next: replace the example in these files by your exercise; try it with make exercise BREAK={name}")
    print(f"Then: grader selfcheck --only {name} --seeds 5 --write")
    return 0

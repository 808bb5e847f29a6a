"""Attacks with derivations: answer files that try to get points without a correct derivation."""

from helpers.written import written

from attacks.attack import Attack, Base, Expected
from attacks.planted import telling
from grader.score.verdict import RowStatus
from harness.submission.archive import deterministic_tar_gz, with_manifest
from harness.written.exercise import find_file_exercise, stub

EXERCISE = "backprop_mlp"
# The student who honestly hands in the original file.
STUDENTS = {"stub": "fay"}


def handed_in(text: str, student: str, exercise_id: str = EXERCISE) -> bytes:
    """Return the tarball of an answer."""
    exercise = find_file_exercise(exercise_id)
    assert exercise is not None
    manifest = {"student": student, "recipe": exercise_id}
    return deterministic_tar_gz(with_manifest({exercise.file: text.encode()}, manifest))


def honest_tarballs() -> dict[str, bytes]:
    """Return the honest submissions by file name."""
    text = stub(written(EXERCISE))
    return {f"{who}_{EXERCISE}.tar.gz": handed_in(text, who) for who in STUDENTS.values()}


def _planted(
    id: str,
    says: str,
    code: str,
    *,
    because: str = "",
    status: tuple[RowStatus, ...] = ("graded", "not judged"),
    slow: bool = False,
    in_suite: bool = False,
) -> Attack:
    """Return an attack with code before the original file; it may gain nothing over that file."""

    def build(base: Base) -> bytes:
        return handed_in(f"{code}\n\n{stub(written(EXERCISE))}", id)

    expected = Expected(status, because, gains_over="stub")
    return Attack(id, "score", says, expected, build, slow=slow, in_suite=in_suite, recipe=EXERCISE)


ATTACKS = (
    _planted("derive_numpy_patched", "patches what the process writes its results with",
        "import numpy as np\nnp.asarray = lambda value, *more, **named: np.zeros(())\n",
        because="is right yet|could not be loaded|left no complete result|did not finish", in_suite=True),
    _planted(
        "derive_right_answer_on_disk",
        "looks for the solution, the judge and the grader's home folder",
        telling(
            """
            import pathlib, harness
            root = pathlib.Path(harness.__file__).parents[1]
            hidden = ("solutions", "grader/written", "grader/score")
            places = [root / name for name in hidden]
            return [str(place) for place in places if place.exists() and (place.is_file() or list(place.iterdir()))]
            """,
            "disk",
        ),
        because="NotImplementedError",
    ),
    _planted(
        "derive_torch",
        "imports torch by another way, for its automatic differentiation",
        telling(
            """
            import importlib, sys
            sys.path += ["/usr/lib/python3/dist-packages"]
            return importlib.import_module("torch").__version__
            """,
            "torch",
        ),
        because="NotImplementedError",
    ),
    _planted("derive_exits_early", "ends the process with success before anything was called",
        "import os\nos._exit(0)", because="left no complete result"),
    _planted("derive_blames_us", "ends the process with the status by which the script says that it broke",
        "import os\nos._exit(3)", because="did not finish", status=("graded",)),
    _planted("derive_kills_itself", "a signal, as of a machine that is short of memory",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", because="did not finish",
        status=("graded",)),
    _planted("derive_html", "an error whose text is markup",
        "raise ValueError('</p><script>alert(1)</script><img src=x onerror=alert(2)>\\x1b[31m\\u202e')",
        because="cannot be loaded", in_suite=True),
    _planted("derive_memory", "as much memory as there is",
        "import numpy as np\n_all = [np.ones(10**8) for _ in range(100)]",
        because="did not finish|cannot be loaded"),
    _planted("derive_for_ever", "a loop that no exception ends",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        because="processor time|ran for more", slow=True),
)  # fmt: skip

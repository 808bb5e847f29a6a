"""Attacks at derivations: an answer that is one file, and would rather be believed than be right."""

from deriving import derivation, known_answers

from attacks.attack import Attack, Base, Baseline, Expected
from attacks.planted import telling
from grader.score.verdict import Status
from harness.submission.archive import deterministic_tar_gz, with_manifest
from harness.written.exercise import find_file_exercise, stub

EXERCISE = "backprop_mlp"
# Right, but with a loop over the samples, which costs 20 points: an answer that hides the loop would gain them.
LOOPING = "loop_over_samples"
# Who hands these in honestly.
STUDENTS = {"stub": "fay", "looping": "gus"}
_ASKS = "The instructor decides"


def handed_in(text: str, student: str, exercise_id: str = EXERCISE) -> bytes:
    """Return the tarball of an answer."""
    exercise = find_file_exercise(exercise_id)
    assert exercise is not None
    manifest = {"student": student, "recipe": exercise_id}
    return deterministic_tar_gz(with_manifest({exercise.file: text.encode()}, manifest))


def answers() -> dict[str, str]:
    """Return the honest answers, by what they are."""
    return {"stub": stub(derivation(EXERCISE)), "looping": known_answers(EXERCISE)[LOOPING]["source"]}


def honest_tarballs() -> dict[str, bytes]:
    """Return the honest submissions by file name."""
    texts = answers()
    return {f"{who}_{EXERCISE}.tar.gz": handed_in(texts[what], who) for what, who in STUDENTS.items()}


def _planted(
    id: str,
    says: str,
    code: str,
    *,
    into: Baseline = "stub",
    because: str = "",
    status: tuple[Status, ...] = ("graded", "not judged"),
    behind: bool = False,
    slow: bool = False,
    in_suite: bool = False,
) -> Attack:
    """Return an attack with code before an honest answer, or behind it; it may gain nothing over that one."""

    def build(base: Base) -> bytes:
        text = answers()[into]
        return handed_in(f"{text}\n\n{code}\n" if behind else f"{code}\n\n{text}", id)

    expected = Expected(status, because, gains_over=into)
    return Attack(id, "score", says, expected, build, slow=slow, in_suite=in_suite, recipe=EXERCISE)


_UNCOUNTED = """
import __main__ as _calling
def _call(self, function):
    return function()
_calling.StepCounter.call = _call
"""
_FORGED = """
def _forge():
    import json, os, pathlib
    import numpy as np
    from harness.written.derivation import PROBLEMS, draw_cases
    out, job = pathlib.Path("out"), json.loads(pathlib.Path("../input/job.json").read_text())
    cases = {}
    for case, given in draw_cases(PROBLEMS[job["problem"]], job["text"]).items():
        params = {name: given[name] for name in ("W1", "b1", "W2", "b2")}
        logits, cache = forward(params, given["x"])
        grads = backward(params, cache, given["y"])
        told = {"logits": logits, "loss": np.asarray(loss(logits, given["y"]))}
        told |= {"d" + name: grad for name, grad in grads.items()}
        outputs = {name: np.asarray(array).tolist() for name, array in told.items()}
        cases[case] = {"outputs": outputs, "problems": {}, "steps": 1045, "changed": []}
    out.mkdir(exist_ok=True)
    (out / "report.json").write_text(json.dumps({"problem": "", "cases": cases}))
    os._exit(0)
_forge()
"""
ATTACKS = (
    _planted("derive_uncounted", "replaces the meter, so that no loop is counted", _UNCOUNTED, into="looping",
        because=_ASKS, in_suite=True),
    _planted(
        "derive_subclasses",
        "finds the meter among the subclasses of object",
        "for _kind in ().__class__.__base__.__subclasses__():\n"
        "    if _kind.__name__ == 'StepCounter':\n"
        "        _kind._step = lambda self, frame, event, argument: None\n",
        into="looping",
        because=_ASKS,
    ),
    _planted("derive_numpy_patched", "patches what the process writes its results with",
        "import numpy as np\nnp.asarray = lambda value, *more, **named: np.zeros(())\n",
        because="is right yet|could not be loaded|left no complete result|did not end properly", in_suite=True),
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
    _planted("derive_forged_counts", "writes its results itself, with counts of its own, and ends the process",
        _FORGED, into="looping", behind=True, because=_ASKS, in_suite=True),
    _planted("derive_exits_early", "ends the process with success before anything was called",
        "import os\nos._exit(0)", because="left no complete result"),
    _planted("derive_blames_us", "ends the process with the status by which the script says that it broke",
        "import os\nos._exit(3)", because="did not end properly", status=("graded",)),
    _planted("derive_kills_itself", "a signal, as of a machine that is short of memory",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", because="did not end properly",
        status=("graded",)),
    _planted("derive_html", "an error whose text is markup",
        "raise ValueError('</p><script>alert(1)</script><img src=x onerror=alert(2)>\\x1b[31m\\u202e')",
        because="cannot be loaded", in_suite=True),
    _planted("derive_memory", "as much memory as there is",
        "import numpy as np\n_all = [np.ones(10**8) for _ in range(100)]",
        because="did not end properly|cannot be loaded"),
    _planted("derive_for_ever", "a loop that no exception ends",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        because="processor time|ran for more", slow=True),
)  # fmt: skip

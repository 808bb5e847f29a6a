"""Requests for replays, and the keys under which replays are cached.

A key is a hash of everything that determines the result: the request, the code in this repository, and the machine.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from grader.intake.submission import Submission
from grader.replay.data import HELDOUT_FOLDER
from grader.replay.inside import INSIDE
from grader.replay.replay import Replay
from grader.sandbox import Limits
from grader.syntax.program import tree_digest
from harness.behaviour.settings import examined_settings
from harness.checks import mechanism_checks
from harness.data.datasets import EMBEDDED_FOLDER
from harness.recipes.catalogue import load_recipe
from harness.recipes.form import is_script
from harness.recipes.recipe import Recipe
from harness.recipes.suite import suite_path
from harness.run.provenance import ABOVE_CHECKS, harness_hash
from harness.run.settings import RunSettings

# All runs for one submission share the time limit `seconds`. The other limits apply to each run. Measured on one
# 2.5 GHz core, a run of the slowest recipe takes 10 s and 420 MB, including its checks and the evaluation of its
# weights. A submission with a personal seed needs three such runs. So the limit also suffices on a processor that is
# four times slower. `wall_seconds` suffices on a busy machine, where a run gets only a fifth of a processor.
RUN_LIMITS = Limits(
    seconds=120,
    wall_seconds=600,
    memory_bytes=2 * 2**30,
    processes=16,
    file_bytes=64 * 2**20,
    scratch_bytes=128 * 2**20,
    scratch_files=1000,
    output_bytes=2**20,
    result_bytes=96 * 2**20,
)
# A script takes 8 s, its checks 25 s, and the measurement of its behaviour 25 s.
_TIMES_FOR_SCRIPTS = 2.5
# Increase this number if the content of a replay changes.
_FORMAT = 6

Role = str
"""The purpose of a replay.

"broken", "reference" and "fixed" are runs with the student's settings. "broken again" and "fixed again" repeat two of
these runs if the student's machine may give other bytes than the grader's machine. `OWN` are the same three runs with
the recipe's settings, which decide if the runs with the student's settings do not show whether the fix works. "fixed
checks" and "reference checks" run checks. The roles for measuring behaviours are in `grader.score.behaviour`.
"""

OWN: tuple[Role, Role, Role] = ("own broken", "own reference", "own fixed")
ReplayKind = Literal["run", "checks", "behaviour"]

_loaded = cache(load_recipe)
_CPUINFO = Path("/proc/cpuinfo")
# Lines of /proc/cpuinfo with the model and the instructions of a processor. Other lines contain clock rates and
# counters, which change.
_LINES = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features")
_SUFFIXES = {".py", ".toml", ".md", ".yaml", ".json"}


@dataclass(frozen=True)
class Request:
    """A request to run a source with certain settings, to run checks on it, or to measure its behaviour.

    tree: the digest of the source's syntax tree. Programs with equal trees share one replay, even across recipes.
    trusted: whether the source comes from the suite, not from a student.
    repetition: a higher number requests another replay of the same source, to see whether its results are the same.
    seconds: the time limit for all runs of this replay. It is not part of the key, because the other fields determine
        it.
    """

    recipe: Recipe
    settings: RunSettings
    source: str
    tree: str
    trusted: bool
    repetition: int = 0
    kind: ReplayKind = "run"
    seconds: float = RUN_LIMITS.seconds

    @property
    def is_ours(self) -> bool:
        """Whether both the source and the settings come from the suite, so that no student can influence the run."""
        return self.trusted and (
            self.kind != "run" or self.settings == own_settings(self.recipe, self.settings.dataset)
        )

    @cached_property
    def key(self) -> str:
        """The cache key of this program: the SHA-256 of everything that determines its replay."""
        return self._key(tree=self.tree)

    @cached_property
    def text_key(self) -> str:
        """The cache key of exactly this source text, for results that contain line numbers."""
        return self._key(text=self.source)

    def _key(self, **program: str) -> str:
        parts: Mapping[str, Any] = {
            "format": _FORMAT,
            "kind": self.kind,
            "checks": mechanism_checks(self.source) if self.kind == "checks" else (),
            "healthy": hashlib.sha256(self.recipe.healthy_source().encode()).hexdigest(),
            "settings": asdict(self.settings),
            **program,
            "trusted": self.trusted,
            "repetition": self.repetition,
            "code": _environment(self.kind),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def time_limit(recipe: Recipe) -> float:
    """Return the time that all runs of a submission share, in seconds. The healthy experiment decides, not an edit."""
    return RUN_LIMITS.seconds * (_TIMES_FOR_SCRIPTS if is_script(recipe.healthy_source()) else 1)


@cache
def _environment(kind: ReplayKind) -> str:
    """Return a text that changes if the harness, the grader's scripts, the data, the limits or the machine change.

    Parts of the harness that this kind of replay does not use are left out. The source of the experiment is not
    included, because it is in the request.
    """
    left_out = {
        "run": ("checks", "behaviour"),
        "checks": ("behaviour",),
        "behaviour": ("behaviour/compare", "behaviour/sound"),
    }
    harness = harness_hash("experiments", *ABOVE_CHECKS, *left_out[kind])
    data = data_state()
    inside = hashlib.sha256()
    library = sorted(suite_path("trainwreck").rglob("*.py")) if kind == "checks" else []  # the checks of scripts
    for path in (*sorted(INSIDE.glob("*.py")), *library):
        inside.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{harness} {inside.hexdigest()} {data} {RUN_LIMITS} {machine_state()}"


@lru_cache(maxsize=256)
def trusted_requests(recipe: Recipe, settings: RunSettings | None = None) -> tuple[Request, Request]:
    """Return the requests for the broken run and for the reference fix, by default with the recipe's settings.

    With other settings, each run may take a third of a submission's time limit. Raises `UserError` if the recipe is
    invalid.
    """
    settings = settings or own_settings(recipe, recipe.dataset)
    broken, reference = (
        Request(recipe, settings, source, tree_digest(source), trusted=True, seconds=time_limit(recipe))
        for source in (recipe.broken_source(), recipe.healthy_source())
    )
    if broken.is_ours:
        return broken, reference
    third = time_limit(recipe) / 3
    return replace(broken, seconds=third), replace(reference, seconds=third)


def own_settings(recipe: Recipe, dataset: str) -> RunSettings:
    """Return the recipe's settings for a data set."""
    return RunSettings(seed=recipe.seed, dataset=dataset)


def check_request(request: Request, kind: ReplayKind = "checks") -> Request:
    """Return a request to run checks on a source, or to measure its behaviour, with the recipe's settings.

    So the result does not depend on the seed, epochs or batch size that a student chose on the command line.
    """
    recipe = request.recipe
    settings = replace(examined_settings(recipe, recipe.healthy_source()), dataset=request.settings.dataset)
    return replace(request, settings=settings, repetition=0, kind=kind)


def requests_of(submission: Submission, recipe: Recipe) -> dict[Role, Request]:
    """Return the requests for the broken run, the reference fix and the student's fix, all with the student's settings.

    If the student's fix equals the broken experiment or the reference fix, both get the same request. Most correct
    fixes equal the reference fix.
    """
    broken, reference = trusted_requests(recipe, submission.settings)
    own = Request(
        broken.recipe, submission.settings, submission.source, submission.tree, trusted=False,
        seconds=time_limit(recipe),
    )  # fmt: skip
    fixed = next((ours for ours in (reference, broken) if ours.tree == own.tree), own)
    return {
        "broken": broken,
        "reference": reference,
        "fixed": fixed,
        "broken again": replace(broken, repetition=1),
        "fixed again": replace(fixed, repetition=1),
    }


def in_time(request: Request, earlier: Mapping[Request, Replay]) -> Request:
    """Return a copy of a request, with the time that remains after the earlier replays of the same submission.

    Runs of the suite's code with the recipe's settings do not use up this time. If less than twice the time of the
    longest earlier run remains, the request gets no time, because even an honest experiment could exceed the limit.
    """
    if request.is_ours:
        return request
    spent = [replay.seconds for made, replay in earlier.items() if not made.is_ours]
    left = time_limit(request.recipe) - sum(spent)
    enough = left >= 2 * max(spent, default=0.0) and not any(replay.lasting for replay in earlier.values())
    return replace(request, seconds=min(request.seconds, left) if enough else 0.0)


def data_state() -> str:
    """Return the SHA-256 of the digests of all data sets in the repository, including those added by instructors."""
    paths = [
        path for folder in (EMBEDDED_FOLDER, HELDOUT_FOLDER) for path in sorted(folder.glob("*")) if _is_sums(path)
    ]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def _is_sums(path: Path) -> bool:
    return path.name == "SHA256SUMS" or path.suffix == ".sha256"


@cache
def machine_state() -> str:
    """Return a text with processor, C library, Python and packages. Machines with different texts do not share replays.

    This text distinguishes more machines than a platform class (machines that compute the same bytes), which takes a
    second to compute.
    """
    packages = (f"{name} {version(name)}" for name in ("torch", "numpy"))
    first = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    processor = [line for line in first.splitlines() if line.startswith(_LINES)]
    return " ".join((platform.machine(), *platform.libc_ver(), platform.python_version(), *packages, *processor))


@cache
def code_and_machine_hash() -> str:
    """Return the SHA-256 of the code and of this machine, computed once per process."""
    return hashlib.sha256(f"{code_hash()} {machine_state()}".encode()).hexdigest()


def code_hash() -> str:
    """Return the SHA-256 of the files with code, recipes and solutions, as they are now, without templates."""
    total = hashlib.sha256()
    for name in ("grader", "exercises", "harness", "solutions", "trainwreck"):
        folder = suite_path(name)
        for path in sorted(folder.rglob("*")):
            if path.suffix in _SUFFIXES or _is_sums(path):
                place = f"{name}/{path.relative_to(folder).as_posix()}"
                total.update(f"{place}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()

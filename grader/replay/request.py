"""What is replayed, and the key under which a replay is remembered: everything that determines its result.

That is the request, the code of this repository, and the machine.
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
from harness.recipes.recipe import Recipe
from harness.recipes.suite import suite_path
from harness.run.provenance import ABOVE_CHECKS, harness_hash
from harness.run.settings import RunSettings

# All runs of one submission share these seconds, and each has the other limits. Measured on one 2.5 GHz core: a run of
# the slowest recipe takes 10 s and 420 MB, its checks and the evaluation of its weights included, and a submission
# with a seed of its own has three. So a processor may be four times slower. The clock is for a machine that is so busy
# that a run gets a fifth of a processor.
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
# Raise this when the content of a replay changes.
_FORMAT = 6

Role = str
"""What a replay is for.

"broken", "reference" and "fixed" are the three runs. "broken again" and "fixed again" repeat them if the student's
machine need not agree with ours to the byte. `OWN` are the three at the recipe's own settings, if the student's
settings tell nothing. "fixed checks" and "reference checks" are checks; `grader.score.behaviour` has the roles of
behaviours.
"""

OWN: tuple[Role, Role, Role] = ("own broken", "own reference", "own fixed")
ReplayKind = Literal["run", "checks", "behaviour"]

_loaded = cache(load_recipe)
_CPUINFO = Path("/proc/cpuinfo")
# The lines about the first processor that name its model and its instructions; the others hold clocks and counts.
_LINES = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features")
_SUFFIXES = {".py", ".toml", ".md", ".yaml", ".json"}


@dataclass(frozen=True)
class Request:
    """One run, the checks or the behaviour of a source under settings. `trusted` says that the source is our own.

    Programs with equal syntax trees (`tree`) share one replay, also across the recipes of an experiment. A higher
    `repetition` asks for another replay of the same source, which shows whether it repeats. `seconds` is the time for
    all runs of this replay; it follows from everything else here, so that it is no part of the key.
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
        """Whether no student has a part in this run: the source is the suite's own, and so are the settings."""
        return self.trusted and (
            self.kind != "run" or self.settings == own_settings(self.recipe, self.settings.dataset)
        )

    @cached_property
    def key(self) -> str:
        """The SHA-256 of everything that determines the replay of this program."""
        return self._key(tree=self.tree)

    @cached_property
    def text_key(self) -> str:
        """The SHA-256 of everything that determines the replay of exactly this text, line numbers included."""
        return self._key(text=self.source)

    def _key(self, **program: str) -> str:
        parts: Mapping[str, Any] = {
            "format": _FORMAT,
            "kind": self.kind,
            "checks": mechanism_checks() if self.kind == "checks" else (),
            "healthy": hashlib.sha256(self.recipe.healthy_source().encode()).hexdigest(),
            "settings": asdict(self.settings),
            **program,
            "trusted": self.trusted,
            "repetition": self.repetition,
            "code": _environment(self.kind),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def _environment(kind: ReplayKind) -> str:
    """Return what all replays on this machine depend on: harness, scripts, held-out data, limits, versions.

    The sources of the experiment are in the request, a run makes no check, no replay prints one, and none compares.
    """
    left_out = {
        "run": ("checks", "behaviour"),
        "checks": ("behaviour",),
        "behaviour": ("behaviour/compare", "behaviour/sound"),
    }
    harness = harness_hash("experiments", *ABOVE_CHECKS, *left_out[kind])
    data = data_state()
    inside = hashlib.sha256()
    for path in sorted(INSIDE.glob("*.py")):
        inside.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{harness} {inside.hexdigest()} {data} {RUN_LIMITS} {machine_state()}"


@lru_cache(maxsize=256)
def trusted_requests(recipe: Recipe, settings: RunSettings | None = None) -> tuple[Request, Request]:
    """Return the broken run and the reference fix under these settings, or the recipe's own.

    Under other settings than the recipe's own each may take a third of a submission's time. Raises `UserError` if the
    recipe cannot be used.
    """
    settings = settings or own_settings(recipe, recipe.dataset)
    broken, reference = (
        Request(recipe, settings, source, tree_digest(source), trusted=True)
        for source in (recipe.broken_source(), recipe.healthy_source())
    )
    if broken.is_ours:
        return broken, reference
    third = RUN_LIMITS.seconds / 3
    return replace(broken, seconds=third), replace(reference, seconds=third)


def own_settings(recipe: Recipe, dataset: str) -> RunSettings:
    """Return the recipe's own settings on a data set."""
    return RunSettings(seed=recipe.seed, dataset=dataset)


def check_request(request: Request, kind: ReplayKind = "checks") -> Request:
    """Return the request for the checks, or for the behaviour, of a source at the recipe's own settings.

    So neither depends on a seed, a number of epochs or a batch size that a student chose in place of editing them.
    """
    recipe = request.recipe
    settings = replace(examined_settings(recipe, recipe.healthy_source()), dataset=request.settings.dataset)
    return replace(request, settings=settings, repetition=0, kind=kind)


def requests_of(submission: Submission, recipe: Recipe) -> dict[Role, Request]:
    """Return the requests for our broken run and reference fix under the student's settings, and the student's fix.

    If the student's program is one of our two, ours is run in its place: most right fixes are the reference fix.
    """
    broken, reference = trusted_requests(recipe, submission.settings)
    own = Request(broken.recipe, submission.settings, submission.source, submission.tree, trusted=False)
    fixed = next((ours for ours in (reference, broken) if ours.tree == own.tree), own)
    return {
        "broken": broken,
        "reference": reference,
        "fixed": fixed,
        "broken again": replace(broken, repetition=1),
        "fixed again": replace(fixed, repetition=1),
    }


def in_time(request: Request, earlier: Mapping[Request, Replay]) -> Request:
    """Return a request of a submission with the time that earlier replays of this submission left.

    Runs of the suite's own code under the recipe's own settings cost a submission nothing. There has to be twice the
    time of each earlier run: else the settings take too long, and an honest experiment would run into the limit.
    """
    if request.is_ours:
        return request
    spent = [replay.seconds for made, replay in earlier.items() if not made.is_ours]
    left = RUN_LIMITS.seconds - sum(spent)
    enough = left >= 2 * max(spent, default=0.0) and not any(replay.lasting for replay in earlier.values())
    return replace(request, seconds=min(request.seconds, left) if enough else 0.0)


def data_state() -> str:
    """Return a SHA-256 of the digests of all data that lie here, those that somebody added, too."""
    paths = [
        path for folder in (EMBEDDED_FOLDER, HELDOUT_FOLDER) for path in sorted(folder.glob("*")) if _is_sums(path)
    ]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def _is_sums(path: Path) -> bool:
    return path.name == "SHA256SUMS" or path.suffix == ".sha256"


@cache
def machine_state() -> str:
    """Return processor, C library, Python and packages in words. Replays of two machines that differ are kept apart.

    This is stricter than a platform class, which takes a second to compute (`harness.doctor.golden.platform_class`).
    """
    packages = (f"{name} {version(name)}" for name in ("torch", "numpy"))
    first = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    processor = [line for line in first.splitlines() if line.startswith(_LINES)]
    return " ".join((platform.machine(), *platform.libc_ver(), platform.python_version(), *packages, *processor))


@cache
def code_and_machine_hash() -> str:
    """Return the SHA-256 of the code and of this machine, computed once a process."""
    return hashlib.sha256(f"{code_hash()} {machine_state()}".encode()).hexdigest()


def code_hash() -> str:
    """Return the SHA-256 of programs, recipes and solutions, as the files are now. Templates are left out."""
    total = hashlib.sha256()
    for name in ("grader", "exercises", "harness", "solutions"):
        folder = suite_path(name)
        for path in sorted(folder.rglob("*")):
            if path.suffix in _SUFFIXES or _is_sums(path):
                place = f"{name}/{path.relative_to(folder).as_posix()}"
                total.update(f"{place}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()

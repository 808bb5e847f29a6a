"""Attacks with scripts: code in a program with its own loop, which the hooks of the harness record.

The grammar of plain edits stops most of them. The attacks that are plain forge figures, or behave differently when they
are measured.
"""

import textwrap
from pathlib import Path

from attacks.attack import Attack, Base, Expected, members_of, with_members
from attacks.planted import EXPERIMENT, edited, quietly, telling
from grader.course.examples import broken_workspace, example_submission
from grader.score.verdict import RowStatus
from harness.recipes.catalogue import load_recipe

SCRIPT_RECIPE = "cleared_once_per_epoch"
# The student who hands in the broken script as if it were fixed.
STUDENTS = {"script": "gus"}
_LOG = "        track.log(figures, step=epoch + 1)\n"
_TOP = "# --- model "
_MAIN = 'if __name__ == "__main__":\n'
_ASKS = r"line \d+ .*The instructor decides"
_NOTHING = rf"symptom is still there|network is not healthy|does not reproduce|cause|did not finish|{_ASKS}"


def honest_tarballs(folder: Path) -> dict[str, bytes]:
    """Return the honest submissions by file name, made in a new folder."""
    broken = load_recipe(SCRIPT_RECIPE).broken_source()
    template = broken_workspace(SCRIPT_RECIPE, folder / "template")
    paths = [
        example_submission(SCRIPT_RECIPE, student, broken, template, folder / student, folder / "out")
        for student in STUDENTS.values()
    ]
    return {path.name: path.read_bytes() for path in paths}


def _script(
    id: str,
    says: str,
    *edits: tuple[str, str],
    because: str = _NOTHING,
    status: tuple[RowStatus, ...] = ("graded", "not judged"),
    slow: bool = False,
) -> Attack:
    """Return an attack that edits the broken script; it may gain nothing over the script as it is."""

    def build(base: Base) -> bytes:
        source = edited(members_of(base.script)[EXPERIMENT].decode(), *edits)
        return with_members(base.script, {EXPERIMENT: source.encode()}, student=id)

    expected = Expected(status, because, gains_over="script")
    return Attack(id, "score", says, expected, build, slow=slow, in_suite=False, recipe=SCRIPT_RECIPE)


def _in_loop(code: str) -> tuple[str, str]:
    """Insert code before the figures of an epoch are logged."""
    return _LOG, textwrap.indent(textwrap.dedent(code).strip(), " " * 8) + "\n" + _LOG


def _on_top(code: str) -> tuple[str, str]:
    """Insert code that runs when the file is read."""
    return _TOP, f"{textwrap.dedent(code).strip()}\n\n\n{_TOP}"


def _in_main_block(code: str) -> tuple[str, str]:
    return _MAIN, _MAIN + textwrap.indent(textwrap.dedent(code).strip(), "    ") + "\n"


_FORGED = '{**figures, "val_loss": 0.3, "val_accuracy": 0.9, "val_accuracy_served": 0.9}'

ATTACKS = (
    _script("script_figures", "logs good figures whatever the network does",
        (_LOG, _LOG.replace("figures", _FORGED, 1))),
    _script(
        "script_hooks",
        "removes the hooks that record it",
        _in_loop(
            """
            import torch.nn.modules.module as _module
            import torch.optim.optimizer as _optimizer
            for _owner in (_module, _optimizer):
                for _name in [name for name in vars(_owner) if name.startswith("_global") and "hooks" in name]:
                    vars(_owner)[_name].clear()
            """
        ),
    ),
    _script(
        "script_track",
        "replaces the log of the harness by one with good figures",
        _on_top(
            f"""
            _log = track.log
            def _good(figures, *, step=None):
                _log({_FORGED}, step=step)
            track.log = _good
            """
        ),
    ),
    _script(
        "script_save",
        "saves other weights than it has trained",
        _on_top(
            """
            _save = torch.save
            def _other(state, *more, **options):
                weights = {name: tensor * 0 + 1 for name, tensor in state["model"].items()}
                return _save({**state, "model": weights}, *more, **options)
            torch.save = _other
            """
        ),
    ),
    _script(
        "script_main_block",
        "patches the recorder in the block that starts the script",
        _in_main_block(
            quietly(
                """
                import harness.scripts.run as _run, harness.scripts.recording as _recording
                _measure = _run.ScriptRun._update
                def _small(self, measured):
                    measured.loss = 0.3
                    return _measure(self, measured)
                _run.ScriptRun._update = _small
                """
            )
        ),
    ),
    _script(
        "script_main_block_tells",
        "looks for answers in the block that starts the script",
        _on_top(
            telling(
                """
                import pathlib, sys
                root = pathlib.Path(sys.modules["harness"].__file__).parents[1]
                hidden = [root / name for name in ("solutions", "exercises", "grader/score", "harness/experiments")]
                return [str(place) for place in hidden if place.is_dir() and list(place.iterdir())]
                """,
                "answers",
            )
        ),
    ),
    _script(
        "script_process",
        "gives other examples in another process and at another time",
        _on_top(
            """
            import os, time
            class _Moody(TensorDataset):
                def __getitem__(self, index):
                    turned = (os.getpid() + int(time.time())) % 2
                    return tuple(tensor[index - turned] for tensor in self.tensors)
            TensorDataset = _Moody
            """
        ),
    ),
    _script(
        "script_pickle",
        "saves a checkpoint that runs code when it is loaded",
        _on_top(
            """
            class _Evil:
                def __reduce__(self):
                    return (eval, ("print('-'.join(('wreck', 'breached')))",))
            _save = torch.save
            torch.save = lambda state, *more, **options: _save({**state, "model": _Evil()}, *more, **options)
            """
        ),
    ),
    _script(
        "script_watched",
        "learns only if the checks are loaded",
        _in_loop(
            """
            import sys
            if not any(name.startswith(("trainwreck", "harness.behaviour", "harness.checks")) for name in sys.modules):
                model.apply(lambda module: module.reset_parameters() if hasattr(module, "reset_parameters") else None)
            """
        ),
    ),
    _script("script_seed", "does less under the seed of the recipe", _in_loop("if args.seed == 42:\n    break")),
    _script("script_place", "ends early in a folder that is not a student's",
        _in_loop('if "work" not in str(args.out):\n    break')),
    _script(
        "script_fork",
        "leaves a process behind that trains on",
        _in_loop(quietly("import os, time\nif not os.fork():\n    time.sleep(600)\n    os._exit(0)")),
    ),
    _script(
        "script_ranks",
        "asks for a second process",
        _in_loop('torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29999")'),
    ),
    _script("script_workers", "asks for hundreds of workers", ("shuffle=True,", "shuffle=True, num_workers=400,")),
)  # fmt: skip

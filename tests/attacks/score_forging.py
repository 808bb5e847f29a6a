"""Attacks with forged files: logs, manifests, checkpoints, settings, and results that the run writes itself."""

import io
import json
import pickle
import zipfile

from attacks.attack import MANIFEST, Attack, Base, Expected, manifest_for, members_of, with_members
from attacks.planted import at_the_top, edited, handed_in, quietly, source_of
from grader.score.verdict import RowStatus

_RATE = "lr=10.0, momentum=0.9"
_SAME = "byte for byte, so your edit fixes nothing"


class _Payload:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (f"open({self.path!r}, 'w').write('unpickled')",)


def _pickled(path: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"model": _Payload(path)}, protocol=2))
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")
    return buffer.getvalue()


def _reference_run(base: Base) -> dict[str, bytes]:
    members = members_of(base.reference)
    return {n: d for n, d in members.items() if n.startswith("runs/fixed/")}


def _forged_run(base: Base) -> bytes:
    source = source_of(base.untouched)
    return handed_in(base, "untouched", source, "forged_run", **_reference_run(base))


def _pickle_as_checkpoint(base: Base) -> bytes:
    data = _pickled(str(base.canary.parent / "unpickled"))
    members = {f"runs/{run}/checkpoint.pt": data for run in ("broken", "fixed")}
    return handed_in(base, "untouched", source_of(base.untouched), "pickle_as_checkpoint", **members)


def _not_numbers(base: Base) -> bytes:
    """Forge a log in which every value is non-finite or too large for a number."""
    lines = []
    for line in members_of(base.untouched)["runs/fixed/metrics.log"].decode().splitlines():
        record = json.loads(line)
        for key, value in record.items():
            if isinstance(value, float):
                record[key] = "NaN" if key != "val_accuracy" else "Infinity"
        lines.append(json.dumps(record))
    log = "\n".join([*lines, ""]).encode()
    members = {"runs/fixed/metrics.log": log}
    return handed_in(base, "untouched", source_of(base.untouched), "log_of_no_numbers", **members)


def _on_another_machine(base: Base) -> bytes:
    """Claim another processor, for which the grader does not demand equal bytes, with logs that no run wrote."""
    members = _reference_run(base)
    for run in ("broken", "fixed"):
        name = f"runs/{run}/checkpoint.pt.meta.json"
        meta = json.loads(members_of(base.untouched)[name])
        meta["platform_class"] = {**meta["platform_class"], "architecture": "aarch64"}
        members[name] = json.dumps(meta).encode()
    return handed_in(base, "untouched", source_of(base.untouched), "another_machine", **members)


def _with_settings(base: Base, id: str, options: str) -> bytes:
    """Change nothing that affects the training, and choose settings under which no symptom appears."""
    command = members_of(base.untouched)["command.txt"].decode()
    lines = [f"{line} {options}" if line.startswith("python") else line for line in command.splitlines()]
    source = edited(source_of(base.untouched), (_RATE, "lr=9.99, momentum=0.9"))
    return handed_in(base, "untouched", source, id, **{"command.txt": ("\n".join(lines) + "\n").encode()})


def _other_settings(id: str, says: str, options: str, because: str, *, slow: bool = False) -> Attack:
    def build(base: Base) -> bytes:
        return _with_settings(base, id, options)

    # A fast machine finishes the thousand epochs of a small network in time.
    expected = Expected(("graded", "not judged") if slow else ("graded",), because, "wrong")
    return Attack(id, "score", says, expected, build, slow=slow, in_suite=False)


def _other_recipe(base: Base) -> bytes:
    """Hand in the broken experiment for another exercise, whose break it does not contain."""
    members = members_of(base.untouched)
    before = members.pop(MANIFEST)
    members["command.txt"] = members["command.txt"].replace(b"huge_lr", b"loss_sum")
    manifest = manifest_for(members, before, student="other_recipe", recipe="loss_sum")
    return with_members(base.untouched, {**members, MANIFEST: manifest}, student="other_recipe")


def _writes(
    id: str, says: str, code: str, because: str, status: tuple[RowStatus, ...] = ("graded",), *, in_suite: bool = False
) -> Attack:
    """Run code at the import of the experiment, which writes results and ends the process if it does not fail."""

    def build(base: Base) -> bytes:
        source = at_the_top(source_of(base.untouched), quietly(code))
        return handed_in(base, "untouched", source, id, **_reference_run(base))

    return Attack(id, "score", says, Expected(status, because, "wrong"), build, in_suite=in_suite)


# A short log that looks like a healthy run's log, and metrics that fit.
_RESULTS = """
import json, os
def out(name):
    return os.path.join(os.getcwd(), "out", name)
def batch(step):
    table = {"1.weight": 0.01}
    return {"step": step, "epoch": 0, "loss": 0.3, "lr": 0.1, "grad_norm": 0.5, "grad_mean": table,
            "grad_norm_by_parameter": table, "grad_zero_fraction": 0.0, "stale_grad_ratio": 0.0,
            "optimizer_steps": 1, "activations": {place: {"mean": 0.0, "var": 1.0} for place in ("first", "last")}}
records = [batch(step) for step in range(26)]
records.append({"epoch": 0, "val_loss": 0.2, "val_accuracy": 0.95})
open(out("metrics.log"), "w").write("".join(json.dumps(record) + chr(10) for record in records))
open(out("checks.json"), "w").write(json.dumps([{"check": "learning_rate", "outcome": "usual", "figures": {}}]))
open(out("result.json"), "w").write(json.dumps({"final_val_metric": 1.0, "score": 100}))
open(out("evaluation.json"), "w").write(json.dumps({"heldout": {"loss": 0.1, "accuracy": 0.99}}))
"""
_GOOD_WEIGHTS = """
import torch
def save(model):
    torch.save({"model": model}, out("checkpoint.pt"))
    os._exit(0)
"""
_NETWORK = "{'1.weight': W(128, 784), '1.bias': W(128), '3.weight': W(10, 128), '3.bias': W(10)}"

ATTACKS = (
    Attack("forged_run", "score",
        "hands in the reference fix's run with the broken experiment, and a manifest that agrees",
        Expected(("graded",), _SAME), _forged_run),
    Attack("pickle_as_checkpoint", "score", "hands in checkpoints that run code in the process that unpickles them",
        Expected(("graded",), _SAME, "wrong"), _pickle_as_checkpoint),
    Attack("log_of_no_numbers", "score", "hands in a log in which every figure is NaN or infinite",
        Expected(("graded",), _SAME), _not_numbers),
    Attack("another_machine", "score",
        "says that its forged run was made on another processor, where equal bytes are not demanded",
        Expected(("graded",), _SAME), _on_another_machine, in_suite=False),
    Attack("other_recipe", "score",
        "hands its experiment in for another exercise, whose break it does not have", Expected(("graded",),
        "the network is not healthy", "masked"), _other_recipe, in_suite=False),
    _other_settings("one_step_of_training",
        "chooses one batch and one epoch, so that no symptom has time to show", "--epochs 1 --batch 65536",
        "no symptom|symptom is still there|not healthy"),
    _other_settings("days_of_training", "chooses a thousand epochs, which our own runs have to make as well",
        "--epochs 1000", "could not replay|symptom is still there", slow=True),
    _writes("writes_its_results",
        "writes log, figures and weights itself, and ends the process before anything is trained",
        f"{_RESULTS}{_GOOD_WEIGHTS}\nW = lambda *shape: torch.randn(*shape) * 0.05\nsave({_NETWORK})\n",
        "The instructor decides", ("not judged",)),
    _writes(
        "pickle_as_result",
        "leaves a checkpoint that runs code in the process that unpickles it",
        f"""{_RESULTS}
import pickle, zipfile
class Payload:
    def __reduce__(self):
        return eval, ("__import__('os').system('touch /scratch/out/evaluation.json')",)
with zipfile.ZipFile(out("checkpoint.pt"), "w") as archive:
    archive.writestr("archive/data.pkl", pickle.dumps({{"model": Payload()}}, protocol=2))
    archive.writestr("archive/version", "3" + chr(10))
os._exit(0)
""",
        "The instructor decides",
        ("not judged",),
        in_suite=True,
    ),
    *(_writes(f"checkpoint_of_{what}_tensors", f"leaves a checkpoint of {says}",
        f"{_RESULTS}{_GOOD_WEIGHTS}\nW = lambda *shape: {made}\nsave({_NETWORK})\n", "The instructor decides",
        ("not judged",)) for what, says, made in (("meta", "tensors without any content",
        "torch.empty(*shape, device='meta')"),
        ("gigantic", "tensors of a terabyte that store one number", "torch.zeros(1).expand(1 << 19, 1 << 20)"),
        ("non_finite", "NaN and infinities", "torch.full(shape, float('nan'))"))),
    _writes(
        "checkpoint_that_nests",
        "leaves a checkpoint of lists that nest a hundred thousand deep",
        f"""{_RESULTS}
import zipfile
deep = b"\\x80\\x02" + b"(" * 100_000 + b"K\\x01" + b"t" * 100_000 + b"."
with zipfile.ZipFile(out("checkpoint.pt"), "w") as archive:
    archive.writestr("archive/data.pkl", deep)
    archive.writestr("archive/version", "3" + chr(10))
os._exit(0)
""",
        "The instructor decides",
        ("not judged",),
    ),
    _writes(
        "checkpoint_that_inflates",
        "leaves a checkpoint that inflates to two gigabytes when it is read",
        f"""{_RESULTS}
import zipfile
with zipfile.ZipFile(out("checkpoint.pt"), "w", zipfile.ZIP_DEFLATED) as archive:
    with archive.open("archive/data.pkl", "w") as file:
        for _ in range(1900):
            file.write(bytes(1 << 20))
    archive.writestr("archive/version", "3" + chr(10))
os._exit(0)
""",
        "The instructor decides|did not finish",
        ("graded", "not judged"),
    ),
)  # fmt: skip

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.mini_experiments import AMP, CHANCE, MINI, edited, load, mini_data, mini_run, train_step

from harness.errors import UserError
from harness.run.metrics_log import format_record
from harness.run.settings import RunSettings
from harness.run.training import train

pytestmark = pytest.mark.usefixtures("torch_as_found")

FILES = ("metrics.log", "checkpoint.pt", "best.pt", "inputs.json")
SOURCES = {"mlp with momentum": MINI, "dropout, schedule, augmentation": CHANCE, "amp with a scaler": AMP}


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


class Killed(BaseException):
    """The process ends here. No code may catch this exception."""


def killed_run(folder: Path, source: str, at_step: int) -> None:
    """Train until this many steps are done, then stop, and also lose the last part of the log."""

    def progress(step: int, steps: int, loss: float) -> None:
        if step == at_step:
            raise Killed

    with pytest.raises(Killed):
        train(load(folder, source), mini_data(), RunSettings(seed=1, dataset="digits"), folder, progress=progress)


# --- the log ------------------------------------------------------------------------------------------------


def test_the_log_holds_every_batch_and_epoch_in_order(tmp_path: Path) -> None:
    run = mini_run(tmp_path, epochs=2)
    shape = [("step" in record, record["epoch"]) for record in run.records]
    assert shape == [*[(True, 0)] * 5, (False, 0), *[(True, 1)] * 5, (False, 1)]
    assert [record["step"] for record in run.batches] == list(range(10))
    assert list(run.epochs[0]) == ["epoch", "val_loss", "val_accuracy", "eval_buffer_change"]
    audit = ["val_loss_repeated", "val_accuracy_repeated", "val_loss_eval_mode", "val_accuracy_eval_mode"]
    assert list(run.epochs[1]) == [*run.epochs[0], *audit]
    assert run.bytes("metrics.log") == "".join(map(format_record, run.records)).encode()
    assert set(run.batches[0]["grad_mean"]) == {"1.weight", "1.bias", "3.weight", "3.bias"}


def test_the_first_batch_is_what_a_plain_loop_computes(tmp_path: Path) -> None:
    run = mini_run(tmp_path, max_steps=1)
    torch.manual_seed(1)
    experiment = load(tmp_path / "plain")
    model = experiment.build_model()
    (inputs, labels), _ = experiment.load_data(mini_data())
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))[:8]
    loss = experiment.compute_loss(model(inputs[order]), labels[order])
    loss.backward()
    assert run.batches[0]["loss"] == loss.item()
    expected = {name: p.grad.abs().mean().item() for name, p in model.named_parameters() if p.grad is not None}
    assert run.batches[0]["grad_mean"] == pytest.approx(expected, rel=1e-5)


def test_training_learns_and_the_result_says_so(tmp_path: Path) -> None:
    run = mini_run(tmp_path, epochs=12)
    assert run.epochs[-1]["val_accuracy"] > 0.8 > run.epochs[0]["val_accuracy"]
    result = run.result
    assert (result.steps, result.position["epoch"], result.batch_size) == (60, 12, 8)
    assert (result.last_batch, result.last_epoch) == (run.batches[-1], run.epochs[-1])
    assert (result.first_non_finite_step, result.findings) == (None, [])


@pytest.mark.parametrize("name", SOURCES)
def test_a_run_repeats_to_the_byte_and_another_seed_does_not(name: str, tmp_path: Path) -> None:
    first, second, other = (
        mini_run(tmp_path / str(index), SOURCES[name], seed=seed) for index, seed in enumerate((5, 5, 6))
    )
    assert files(first.folder) == files(second.folder)
    assert first.bytes("metrics.log") != other.bytes("metrics.log")


# --- resume -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("at_step", [3, 5, 7, 10, 15])
def test_a_killed_run_resumes_to_the_bytes_of_one_that_was_not(name: str, at_step: int, tmp_path: Path) -> None:
    """Kill a run of three epochs of five steps at steps within each epoch and after the last batches."""
    expected = mini_run(tmp_path / "whole", SOURCES[name])
    folder = tmp_path / "killed"
    killed_run(folder, SOURCES[name], at_step)
    assert (folder / "checkpoint.pt").exists() is (at_step > 5)
    resumed = mini_run(folder, SOURCES[name], resume=True)
    assert files(folder) == files(expected.folder)
    names = ("position", "last_batch", "last_epoch", "first_non_finite_step", "findings")
    first, second = ([getattr(run.result, name) for name in names] for run in (resumed, expected))
    assert first == second


def test_what_the_log_holds_beyond_the_checkpoint_is_cut(tmp_path: Path) -> None:
    expected = mini_run(tmp_path / "whole")
    folder = tmp_path / "killed"
    killed_run(folder, MINI, 8)
    with (folder / "metrics.log").open("a") as log:
        log.write('{"step": 8, "epoch": 1, "lo')  # an incomplete line at the time of the kill
    mini_run(folder, resume=True)
    assert files(folder) == files(expected.folder)


@pytest.mark.parametrize("cut", [0, 3])
def test_a_log_that_ends_before_its_checkpoint_is_refused(cut: int, tmp_path: Path) -> None:
    run = mini_run(tmp_path)
    lines = run.bytes("metrics.log").splitlines(keepends=True)
    (tmp_path / "metrics.log").write_bytes(b"".join(lines[:cut]))
    with pytest.raises(UserError, match=r"metrics\.log has fewer epochs than its checkpoint"):
        mini_run(tmp_path, resume=True)
    assert run.bytes("checkpoint.pt")  # nothing is lost


def test_without_resume_a_checkpoint_is_not_looked_at(tmp_path: Path) -> None:
    expected = files(mini_run(tmp_path / "whole").folder)
    killed_run(tmp_path, MINI, 8)
    (tmp_path / "checkpoint.pt").write_bytes(b"damaged")
    assert files(mini_run(tmp_path).folder) == expected


def test_findings_of_before_the_interruption_are_in_the_result(tmp_path: Path) -> None:
    source = train_step("    loss = compute_loss(model(inputs), labels) * float('nan')\n")
    killed_run(tmp_path, source, 8)
    result = mini_run(tmp_path, source, resume=True).result
    assert result.first_non_finite_step == 0
    assert [(finding.step, finding.level) for finding in result.findings] == [(0, "hard")]


# --- best and last ------------------------------------------------------------------------------------------


def scripted_evaluation(metrics: str) -> str:
    """Return an experiment whose evaluations report these metrics, one epoch after another."""
    start = MINI.index("@torch.no_grad()")
    return MINI[:start] + (
        f"METRICS = iter({metrics} + [(9.0, None)] * 9)\n\n\n"
        "def evaluate(model, inputs, labels):\n"
        "    loss, accuracy = next(METRICS)\n"
        "    return {'val_loss': loss, 'val_accuracy': accuracy}\n"
    )


@pytest.mark.parametrize(
    ("metrics", "best"),
    [
        ("[(1.0, 0.2), (1.0, 0.9), (1.0, 0.5)]", 2),
        ("[(1.0, 0.9), (0.1, 0.5), (0.1, 0.5)]", 1),  # the accuracy decides, if there is one
        ("[(1.0, 0.5), (1.0, 0.5), (1.0, 0.5)]", 1),  # the first of equal epochs
        ("[(3.0, None), (2.0, None), (2.5, None)]", 2),
        ("[(3.0, None), (2.0, None), (1.0, None)]", 3),
        ("[(float('nan'), None), (2.0, None), (2.5, None)]", 2),
        ("[(2.0, None), (float('nan'), None), (2.5, None)]", 1),
    ],
)
def test_the_best_checkpoint_is_that_of_the_best_epoch(metrics: str, best: int, tmp_path: Path) -> None:
    run = mini_run(tmp_path, scripted_evaluation(metrics))
    assert run.state("best.pt")["epoch"] == best
    assert run.state("checkpoint.pt")["epoch"] == 3
    assert (run.bytes("best.pt") == run.bytes("checkpoint.pt")) is (best == 3)


# --- switches -----------------------------------------------------------------------------------------------


def test_one_batch_is_repeated_for_as_many_steps_as_asked(tmp_path: Path) -> None:
    assert len(mini_run(tmp_path, max_steps=20, overfit_batch=2).batches) == 20


@pytest.mark.parametrize(("max_steps", "epochs"), [(1, 1), (5, 1), (7, 2), (99, 3)])
def test_max_steps_ends_the_run_with_a_whole_log(max_steps: int, epochs: int, tmp_path: Path) -> None:
    run = mini_run(tmp_path, max_steps=max_steps)
    steps = min(max_steps, 15)
    assert (run.result.steps, len(run.batches), len(run.epochs)) == (steps, steps, epochs)
    assert "val_loss_repeated" in run.epochs[-1]
    assert run.state()["step"] == steps


def test_overfitting_takes_the_same_examples_without_dropout_or_augmentation(tmp_path: Path) -> None:
    source = edited(CHANCE, ("    if AUGMENT:\n", "    SEEN.append(inputs)\n    if AUGMENT:\n"))
    run = mini_run(tmp_path, source + "\n\nSEEN = []\n", overfit_batch=4)
    seen = run.experiment.module.SEEN
    assert len(seen) == 15
    first = mini_data().train.images[:4].float() / 255
    assert all(torch.equal(batch, first) for batch in seen)
    assert run.experiment.module.AUGMENT is False
    # Without noise, the loss of a batch that never changes falls at every step.
    losses = [record["loss"] for record in run.batches[2:]]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize(
    ("source", "options", "found"),
    [
        (CHANCE, {}, (False, True, [0.5])),
        (CHANCE, {"disable_dropout": True}, (False, True, [0.0])),
        (CHANCE, {"disable_augment": True}, (False, False, [0.5])),
        (CHANCE, {"overfit_batch": 8}, (False, False, [0.0])),
        (AMP, {}, (True, False, [])),
        (AMP, {"disable_amp": True}, (False, False, [])),
        (AMP, {"verify": True}, (False, False, [])),
    ],
)
def test_switches_reach_the_experiment(
    source: str, options: dict[str, Any], found: tuple[bool, bool, list[float]], tmp_path: Path
) -> None:
    note = "    FOUND.append((AMP, AUGMENT, [m.p for m in model.modules() if isinstance(m, nn.Dropout)]))\n"
    noting = edited(source, ("    return loss\n", note + "    return loss\n")) + "\n\nFOUND = []\n"
    run = mini_run(tmp_path, noting, max_steps=2, **options)
    assert [found] * 2 == run.experiment.module.FOUND


def test_verify_computes_in_float64(tmp_path: Path) -> None:
    single, double = mini_run(tmp_path / "single"), mini_run(tmp_path / "double", verify=True)
    for run, dtype in ((single, torch.float32), (double, torch.float64)):
        assert {tensor.dtype for tensor in run.state()["model"].values()} == {dtype}
    loss = double.batches[0]["loss"]
    assert torch.tensor(loss, dtype=torch.float32).item() != loss
    assert mini_run(tmp_path / "after").bytes("metrics.log") == single.bytes("metrics.log")


# --- evaluation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drawing", ["torch.rand(5)", "torch.manual_seed(0)", "random.random()", "np.random.rand(3)"])
def test_an_evaluation_that_draws_random_numbers_does_not_alter_the_training(drawing: str, tmp_path: Path) -> None:
    plain = mini_run(tmp_path / "plain", CHANCE)
    drawn = mini_run(tmp_path / "drawn", edited(CHANCE, ("    model.eval()\n", f"    model.eval()\n    {drawing}\n")))
    assert drawn.batches == plain.batches
    assert drawn.bytes("checkpoint.pt") == plain.bytes("checkpoint.pt")


def test_the_audit_of_a_healthy_evaluation_agrees_with_it(tmp_path: Path) -> None:
    run = mini_run(tmp_path, CHANCE)
    last = run.epochs[-1]
    for name in ("val_loss", "val_accuracy"):
        assert last[f"{name}_repeated"] == last[name]
        assert last[f"{name}_eval_mode"] == pytest.approx(last[name], rel=1e-6)
    assert [record["eval_buffer_change"] for record in run.epochs] == [0.0] * 3


def test_the_audit_of_an_evaluation_in_training_mode_does_not(tmp_path: Path) -> None:
    run = mini_run(tmp_path, edited(CHANCE, ("    model.eval()\n", "")))
    last = run.epochs[-1]
    assert last["val_loss_repeated"] != last["val_loss"]
    assert last["val_loss_eval_mode"] != pytest.approx(last["val_loss"], rel=1e-3)
    assert all(record["eval_buffer_change"] > 1e-4 for record in run.epochs)


def test_a_regression_has_no_accuracy(tmp_path: Path) -> None:
    source = edited(
        MINI,
        ("data.train.labels)\n", "data.train.labels.float().view(-1, 1))\n"),
        ("data.validation.labels)\n", "data.validation.labels.float().view(-1, 1))\n"),
        ("nn.Linear(16, 10)", "nn.Linear(16, 1)"),
        ("F.cross_entropy", "F.mse_loss"),
        (', "val_accuracy": accuracy.item()', ""),
    )
    run = mini_run(tmp_path, source)
    last = run.epochs[-1]
    for name in ("val_accuracy", "val_accuracy_repeated", "val_accuracy_eval_mode"):
        assert last[name] is None
    assert json.loads(run.bytes("inputs.json"))["labels"] is None
    assert run.state("best.pt")["epoch"] == min(run.epochs, key=lambda record: record["val_loss"])["epoch"] + 1


def test_what_is_served_is_measured_on_raw_validation_examples(tmp_path: Path) -> None:
    served = "def predict(model, raw):\n    return model(raw.float() / 255).argmax(dim=1)\n\n\ndef evaluate"
    last = mini_run(tmp_path, edited(MINI, ("@torch.no_grad()\ndef evaluate", served))).epochs[-1]
    assert last["val_accuracy_served"] == pytest.approx(last["val_accuracy"])
    assert "val_accuracy_served" not in mini_run(tmp_path / "plain").epochs[-1]
    with pytest.raises(UserError, match=r"predict must return classes, a tensor \(B,\)"):
        mini_run(
            tmp_path / "wrong", edited(MINI, ("@torch.no_grad()\ndef evaluate", served.replace(".argmax(dim=1)", "")))
        )

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import MINI, edited, load, mini_data, mini_run, train_step
from torch import nn

from harness.errors import UserError
from harness.run.experiment import (
    FUNCTIONS,
    Experiment,
    HarnessFault,
    disable_dropout,
    load_experiment,
    tensor_data,
)

pytestmark = pytest.mark.usefixtures("torch_as_found")


def line_of(source: str, text: str) -> int:
    """Return the number of the only line that holds the text."""
    (number,) = [number for number, line in enumerate(source.splitlines(), start=1) if text in line]
    return number


def refusal(folder: Path, source: str) -> str:
    with pytest.raises(UserError) as error:
        load(folder, source)
    assert str(folder / "experiment.py") in str(error.value)
    return str(error.value)


def test_a_whole_experiment_loads(tmp_path: Path) -> None:
    experiment = load(tmp_path)
    assert (experiment.epochs, experiment.batch_size, experiment.uses_amp) == (3, 8, False)
    assert experiment.set_constant("EPOCHS", 7)
    assert experiment.epochs == 7
    assert not experiment.set_constant("EPOCH", 7)
    assert not hasattr(experiment.module, "EPOCH")


def test_the_healthy_experiments_load() -> None:
    from harness.recipe import EXPERIMENTS

    paths = [path for path in EXPERIMENTS.glob("*.py") if path.stem != "__init__"]
    assert len(paths) >= 3
    for path in paths:
        experiment = load_experiment(path, path.read_text())
        assert list(experiment.scalers()) == (["scaler"] if path.stem == "digits_heat" else [])
        assert experiment.uses_amp is (path.stem == "digits_heat")


def test_tensor_data_is_a_copy_that_an_experiment_may_change() -> None:
    from harness.data.loading import load_dataset

    data = load_dataset("digits")
    tensors = tensor_data(data)
    assert tensors.train.images.shape[1:] == (1, 28, 28)
    assert (tensors.train.images.dtype, tensors.train.labels.dtype) == (torch.uint8, torch.int64)
    assert tensors.class_names == tuple("0123456789")
    before = data.train.images.copy()
    tensors.train.images.add_(1)
    assert (data.train.images == before).all()


# --- what cannot be loaded --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("find", "replace", "says"),
    [
        ("    optimizer.step()\n", "    optimizer.step(\n", "'(' was never closed"),
        ("    loss.backward()\n", "     loss.backward()\n", "unexpected indent"),
        ("def compute_loss(outputs, labels):", "def compute_loss(outputs, labels)", "expected ':'"),
        ("EPOCHS = 3", "EPOCHS = 3 = 4", "cannot assign"),
        ("EPOCHS = 3", "return 3", "'return' outside function"),
    ],
)
def test_a_syntax_error_names_file_and_line(find: str, replace: str, says: str, tmp_path: Path) -> None:
    source = edited(MINI, (find, replace))
    message = refusal(tmp_path, source)
    assert f"{tmp_path / 'experiment.py'}, line {line_of(source, replace.strip())}: " in message
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize("statement", ["import thing_that_is_not_there", "1 / 0", "raise SystemExit(3)"])
def test_an_exception_at_import_shows_the_students_line(statement: str, tmp_path: Path) -> None:
    source = edited(
        MINI, ("EPOCHS = 3\n", f"EPOCHS = 3\n\n\ndef prepare():\n    {statement}\n\n\nprepare()\n")
    )
    message = refusal(tmp_path, source)
    kind = {"1 / 0": "ZeroDivisionError", "raise SystemExit(3)": "SystemExit: 3"}
    assert kind.get(statement, "ModuleNotFoundError: No module named 'thing_that_is_not_there'") in message
    assert f"  line {line_of(source, statement)}, in prepare: {statement}\n" in message
    assert (
        f"  line {source[: source.index('prepare()' + chr(10))].count(chr(10)) + 1}, in <module>" in message
    )
    assert "harness" not in message


def test_ctrl_c_while_loading_is_no_mistake_of_the_student(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path, MINI + "\nraise KeyboardInterrupt\n")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_missing_function_is_named(name: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, MINI + f"\n\ndel {name}\n")
    assert f"has no function {name}: put it back" in message


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_function_with_another_number_of_parameters_is_refused(
    name: str, change: int, tmp_path: Path
) -> None:
    count = FUNCTIONS[name] + change
    if count < 0:
        pytest.skip("fewer than none")
    parameters = ", ".join(f"p{index}" for index in range(count))
    message = refusal(tmp_path, MINI + f"\n\ndef {name}({parameters}):\n    pass\n")
    assert f"{name} must take {FUNCTIONS[name]} arguments" in message


@pytest.mark.parametrize("parameters", ["*rest", "a, b, c=None", "a, b, **more", "outputs, labels, /"])
def test_parameters_that_can_be_called_as_they_were_are_fine(parameters: str, tmp_path: Path) -> None:
    load(tmp_path, MINI + f"\n\ndef compute_loss({parameters}):\n    pass\n")


@pytest.mark.parametrize("name", ["EPOCHS", "BATCH_SIZE"])
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("5.0", "float '5.0'"),
        ("'5'", "str '5'"),
        ("0", "int '0'"),
        ("-1", "int '-1'"),
        ("True", "bool 'True'"),
        (None, "None"),
    ],
)
def test_a_constant_must_be_a_whole_number(name: str, value: str | None, found: str, tmp_path: Path) -> None:
    change = f"\n\ndel {name}\n" if value is None else f"\n\n{name} = {value}\n"
    message = refusal(tmp_path, MINI + change)
    assert message.endswith(f"{name} must be a whole number above 0, but is {found}.")


# --- functions that return the wrong thing ------------------------------------------------------------------


def call(experiment: Experiment, name: str) -> Any:
    """Call one function with arguments that fit."""
    if name == "load_data":
        return experiment.load_data(mini_data())
    if name == "build_model":
        return experiment.build_model()
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 10))
    inputs, labels = torch.rand(4, 1, 6, 6), torch.arange(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if name == "build_optimizer":
        return experiment.build_optimizer(model)
    if name == "build_scheduler":
        return experiment.build_scheduler(optimizer, 10)
    if name == "prepare_batch":
        return experiment.prepare_batch(inputs, labels, torch.Generator())
    if name == "compute_loss":
        return experiment.compute_loss(model(inputs), labels)
    if name == "train_step":
        return experiment.train_step(model, optimizer, inputs, labels)
    return experiment.evaluate(model, inputs, labels)


WRONG = [
    ("load_data", "None", "((inputs, labels), (inputs, labels)), each a tensor", "None"),
    (
        "load_data",
        "(data.train.images, data.train.labels)",
        "((inputs, labels), (inputs",
        "(a tensor of shape",
    ),
    ("load_data", "((data.train.images.numpy(), data.train.labels),) * 2", "each a tensor", "ndarray"),
    ("load_data", "((data.train.images, torch.tensor(3)),) * 2", "each a tensor", "a tensor of shape ()"),
    (
        "load_data",
        "(data.train.images, data.train.labels[:-1]), (data.validation.images, data.validation.labels)",
        "as many training labels as inputs",
        "(a tensor of shape (40, 1, 6, 6), a tensor of shape (39,))",
    ),
    (
        "load_data",
        "(data.train.images, data.train.labels), (data.validation.images[:3], data.validation.labels)",
        "as many validation labels as inputs",
        "(a tensor of shape (3, 1, 6, 6), a tensor of shape (20,))",
    ),
    ("build_model", "None", "a torch.nn.Module", "None"),
    ("build_model", "nn.Linear", "a torch.nn.Module", "type"),
    ("build_optimizer", "None", "a torch.optim.Optimizer", "None"),
    ("build_optimizer", "model", "a torch.optim.Optimizer", "Sequential"),
    ("build_scheduler", "0.1", "a scheduler of torch.optim.lr_scheduler", "float '0.1'"),
    (
        "build_scheduler",
        "torch.optim.lr_scheduler.ReduceLROnPlateau",
        "steps once a batch, or None",
        "type",
    ),
    ("prepare_batch", "inputs", "(inputs, labels), two tensors", "a tensor of shape (4, 1, 6, 6)"),
    (
        "prepare_batch",
        "inputs, labels, rng",
        "(inputs, labels), two tensors",
        "(a tensor of shape (4, 1, 6, 6), a",
    ),
    ("prepare_batch", "inputs, None", "(inputs, labels), two tensors", ", None)"),
    ("prepare_batch", "inputs, labels[1:]", "as many labels as inputs", "a tensor of shape (3,))"),
    ("compute_loss", "None", "a scalar tensor", "None"),
    ("compute_loss", "0.5", "a scalar tensor", "float '0.5'"),
    ("compute_loss", "outputs.sum(dim=1)", "a scalar tensor", "a tensor of shape (4,)"),
    ("train_step", "None", "the loss, a scalar tensor", "None"),
    ("train_step", "inputs", "the loss, a scalar tensor", "a tensor of shape (4, 1, 6, 6)"),
    ("train_step", "'low'", "the loss, a scalar tensor", "str 'low'"),
    ("evaluate", "None", 'a dict with "val_loss"', "None"),
    ("evaluate", "0.5", 'a dict with "val_loss"', "float '0.5'"),
    ("evaluate", "{'val_accuracy': 0.5}", 'a dict with "val_loss"', "dict"),
    ("evaluate", "{'val_loss': None}", "a number as 'val_loss'", "None"),
    ("evaluate", "{'val_loss': 'low'}", "a number as 'val_loss'", "str 'low'"),
    ("evaluate", "{'val_loss': inputs}", "a number as 'val_loss'", "a tensor of shape (4, 1, 6, 6)"),
    ("evaluate", "{'val_loss': 1, 'val_accuracy': [1]}", "a number as 'val_accuracy'", "(int '1')"),
]


def replaced(name: str, body: str) -> str:
    """Return the miniature with another body of one function, which keeps its parameters and decorators."""
    start = MINI.index(f"def {name}(")
    body_start = MINI.index("\n", start) + 1
    end = MINI.find("\n\n\n", body_start)
    return MINI[:body_start] + body + (MINI[end + 1 :] if end >= 0 else "")


@pytest.mark.parametrize(("name", "returned", "expected", "found"), WRONG)
def test_what_a_function_must_return(
    name: str, returned: str, expected: str, found: str, tmp_path: Path
) -> None:
    source = replaced(name, f"    return {returned}\n")
    with pytest.raises(UserError) as error:
        call(load(tmp_path, source), name)
    message = str(error.value)
    # A decorated function begins at its decorator.
    line = line_of(source, f"def {name}(") - (name == "evaluate")
    assert message.startswith(f"{tmp_path / 'experiment.py'}, line {line}: {name} must return ")
    assert expected in message
    assert found in message.split("but returned ")[1]


RIGHT = [
    ("train_step", "0.5", torch.tensor(0.5, dtype=torch.float64)),
    ("train_step", "compute_loss(model(inputs), labels) * 0 + 2", torch.tensor(2.0)),
    ("evaluate", "{'val_loss': torch.tensor(2.0)}", {"val_loss": 2.0, "val_accuracy": None}),
    ("evaluate", "{'val_loss': 1, 'val_accuracy': 0.5, 'more': 3}", {"val_loss": 1.0, "val_accuracy": 0.5}),
    (
        "evaluate",
        "{'val_loss': float('nan'), 'val_accuracy': None}",
        pytest.approx({"val_loss": math.nan, "val_accuracy": None}, nan_ok=True),
    ),
    ("build_scheduler", "None", None),
]


@pytest.mark.parametrize(("name", "returned", "expected"), RIGHT)
def test_what_a_function_may_return(name: str, returned: str, expected: object, tmp_path: Path) -> None:
    result = call(load(tmp_path, replaced(name, f"    return {returned}\n")), name)
    assert result == expected
    if isinstance(result, torch.Tensor):
        assert not result.requires_grad


# --- functions that raise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("statement", "headline"),
    [
        ("raise ValueError('too low\\nand more')", "ValueError: too low\n"),
        ("raise KeyError", "KeyError\n"),
        ("raise SystemExit(3)", "SystemExit: 3\n"),
        ("exit()", "SystemExit: None\n"),
        ("torch.zeros(2, 3) @ torch.zeros(2, 3)", "RuntimeError: mat1 and mat2 shapes"),
    ],
)
def test_what_a_function_raises_is_shown_with_the_students_lines_alone(
    name: str, statement: str, headline: str, tmp_path: Path
) -> None:
    source = replaced(name, "    helper()\n") + f"\n\ndef helper():\n    {statement}\n"
    with pytest.raises(UserError) as error:
        call(load(tmp_path, source), name)
    message = str(error.value)
    path = tmp_path / "experiment.py"
    assert message.startswith(f"{path}: {name} raised {headline}")
    frames = [line for line in message.splitlines() if line.startswith("  ")]
    assert frames == [
        f"  line {line_of(source, '    helper()')}, in {name}: helper()",
        f"  line {line_of(source, '    ' + statement)}, in helper: {statement}",
    ]
    assert message.endswith("\nFix that line, then run the same command again.")


def test_ctrl_c_inside_a_function_is_no_mistake_of_the_student(tmp_path: Path) -> None:
    source = replaced("build_model", "    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        call(load(tmp_path, source), "build_model")


def test_a_fault_of_ours_below_the_students_frame_is_not_blamed_on_the_student(tmp_path: Path) -> None:
    experiment = load(tmp_path)

    def faulty(*_: object) -> None:
        raise HarnessFault("recording failed")

    model = experiment.build_model()
    optimizer = experiment.build_optimizer(model)
    optimizer.register_step_pre_hook(faulty)
    with pytest.raises(HarnessFault):
        experiment.train_step(model, optimizer, torch.rand(4, 1, 6, 6), torch.arange(4))


def test_the_first_error_keeps_the_log_so_far(tmp_path: Path) -> None:
    source = train_step(
        "    optimizer.zero_grad()\n"
        "    loss = compute_loss(model(inputs), labels)\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    COUNT.append(1)\n"
        "    assert len(COUNT) < 8, 'stopped on purpose'\n"
    )
    with pytest.raises(UserError, match="AssertionError: stopped on purpose"):
        mini_run(tmp_path, source + "\n\nCOUNT = []\n")
    # Five batches and the record of the first epoch, then two batches more.
    assert (tmp_path / "metrics.log").read_text().count("\n") == 8
    assert (tmp_path / "checkpoint.pt").exists()


def test_a_class_of_the_experiment_can_be_pickled_and_its_module_found(tmp_path: Path) -> None:
    # dataclasses and pickle look a class up through sys.modules; in a child, so that nothing else has put it there.
    (tmp_path / "experiment.py").write_text(
        MINI + "\n\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Pair:\n    x: 'int'\n"
    )
    code = (
        "import pickle; from pathlib import Path; from harness.run.experiment import load_experiment\n"
        "path = Path('experiment.py'); e = load_experiment(path, path.read_text())\n"
        "print(pickle.loads(pickle.dumps(e.module.Pair(3))).x)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "3", done.stderr


def test_disable_dropout_makes_training_mode_repeatable() -> None:
    model = nn.Sequential(
        nn.Conv1d(4, 4, 1),
        nn.Dropout1d(0.5),
        nn.AlphaDropout(0.5),
        nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Dropout(0.0)),
    ).train()
    inputs = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert not torch.equal(model(inputs), model(inputs))
    assert disable_dropout(model) == 3
    assert torch.equal(model(inputs), model(inputs))
    assert model.training
    assert disable_dropout(model) == 0


def test_disable_dropout_reaches_into_recurrent_and_attention_layers() -> None:
    recurrent = nn.LSTM(4, 4, num_layers=2, dropout=0.5)
    attention = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.5)
    inputs = torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(0))
    assert not torch.equal(recurrent(inputs)[0], recurrent(inputs)[0])
    assert not torch.equal(attention(inputs), attention(inputs))
    assert disable_dropout(recurrent) == 1
    assert disable_dropout(attention) == 4
    assert torch.equal(recurrent(inputs)[0], recurrent(inputs)[0])
    assert torch.equal(attention(inputs), attention(inputs))

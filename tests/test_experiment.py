import math
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.mini_experiments import MINI, edited, load, mini_data
from torch import nn

from harness.errors import UserError
from harness.recipes.form import DEFAULTS, FUNCTIONS
from harness.recipes.recipe import experiment_source
from harness.run.experiment import Experiment, HarnessFault, disable_dropout
from harness.run.settings import RunSettings

pytestmark = pytest.mark.usefixtures("torch_as_found")


def line_of(source: str, text: str) -> int:
    """Return the number of the only line that contains the text."""
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
    experiment.apply(RunSettings(seed=1, dataset="digits", epochs=7, batch_size=4))
    assert (experiment.epochs, experiment.batch_size) == (7, 4)


# --- invalid experiments ----------------------------------------------------------------------------------


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    source = edited(MINI, ("    optimizer.step()\n", "    optimizer.step(\n"))
    place = f"{tmp_path / 'experiment.py'}, line {line_of(source, 'optimizer.step(')}"
    assert refusal(tmp_path, source) == (
        f"{place} is not valid Python: '(' was never closed.\n"
        f"  line {line_of(source, 'optimizer.step(')}: optimizer.step(\nFix that line."
    )
    source = edited(MINI, ("compute_loss(model(inputs), labels)\n", "compute_loss(model(inputs) labels)\n"))
    assert "Perhaps you forgot a comma?\n  line" in refusal(tmp_path, source)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("import thing_that_is_not_there", "ModuleNotFoundError: No module named 'thing_that_is_not_there'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_an_exception_at_import_shows_the_lines_of_the_student(statement: str, says: str, tmp_path: Path) -> None:
    source = MINI + f"\n\ndef prepare():\n    {statement}\n\n\nif True: prepare()\n"
    message = refusal(tmp_path, source)
    assert says in message
    assert f"  line {line_of(source, statement)}, in prepare: {statement}\n" in message
    assert f"  line {line_of(source, 'True: prepare')}, in <module>" in message
    assert "harness" not in message


def test_a_script_without_its_main_block_is_told_so(tmp_path: Path) -> None:
    source = experiment_source("orders_table").replace('if __name__ == "__main__":\n    main()\n', "")
    assert 'has no block `if __name__ == "__main__":`' in refusal(tmp_path, source)


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {*DEFAULTS}))
def test_a_function_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    assert f"has no function {name}: put it back" in refusal(tmp_path, MINI + f"\n\ndel {name}\n")


def test_without_two_functions_the_rate_is_constant_and_a_batch_is_used_as_it_is(tmp_path: Path) -> None:
    experiment = load(tmp_path, MINI + "".join(f"\n\ndel {name}\n" for name in DEFAULTS))
    model = experiment.build_model()
    assert experiment.build_scheduler(experiment.build_optimizer(model), 10) is None
    inputs, labels = torch.zeros(2, 1, 28, 28), torch.zeros(2).long()
    assert experiment.prepare_batch(inputs, labels, torch.Generator()) == (inputs, labels)
    assert "has no function prepare_batch" in refusal(tmp_path, MINI + "\n\nprepare_batch = 3\n")


def test_a_function_that_takes_other_arguments_is_named(tmp_path: Path) -> None:
    experiment = load(tmp_path, MINI + "\n\ndef build_model(size):\n    pass\n")
    with pytest.raises(UserError, match=r"build_model raised TypeError: .*missing 1 required .*'size'"):
        experiment.build_model()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("EPOCHS = 5.0", "EPOCHS must be a whole number above 0, but is float '5.0'."),
        ("BATCH_SIZE = True", "BATCH_SIZE must be a whole number above 0, but is bool 'True'."),
        ("del EPOCHS", "EPOCHS must be a whole number above 0, but is None."),
    ],
)
def test_a_constant_must_be_a_whole_number(change: str, says: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, f"{MINI}\n\n{change}\n").endswith(says)


# --- functions that return the wrong thing ------------------------------------------------------------------


def call(experiment: Experiment, name: str) -> Any:
    """Call one function with suitable arguments."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, labels = torch.rand(4, 1, 6, 6), torch.arange(4)
    arguments: dict[str, tuple[Any, ...]] = {
        "load_data": (mini_data(),),
        "build_model": (),
        "build_optimizer": (model,),
        "build_scheduler": (optimizer, 10),
        "prepare_batch": (inputs, labels, torch.Generator()),
        "compute_loss": (model(inputs), labels),
        "train_step": (model, optimizer, inputs, labels),
        "evaluate": (model, inputs, labels),
    }
    return getattr(experiment, name)(*arguments[name])


PAIRS = "((inputs, labels), (inputs, labels)), each a tensor"
WRONG = [
    ("load_data", "None", PAIRS, "None"),
    ("load_data", "(data.train.images, data.train.labels)", PAIRS, "(a tensor of shape"),
    ("load_data", "((data.train.images, torch.tensor(3)),) * 2", PAIRS, "a tensor of shape ()"),
    ("load_data", "((data.train.images, data.train.labels[:-1]),) * 2", "as many labels as inputs", "(39,)"),
    ("load_data", "((torch.zeros(0, 2), torch.zeros(0)),) * 2", "and at least one", "(0, 2)"),
    ("load_data", "((data.train.images, data.train.labels),) * 2", "floating-point numbers or", "torch.uint8"),
    ("build_model", "nn.Linear", "a torch.nn.Module", "type"),
    ("build_scheduler", "0.1", "a scheduler of torch.optim.lr_scheduler", "float '0.1'"),
    ("build_scheduler", "torch.optim.lr_scheduler.ReduceLROnPlateau", "steps once a batch, or None", "type"),
    ("prepare_batch", "inputs", "(inputs, labels), two tensors", "a tensor of shape (4, 1, 6, 6)"),
    ("prepare_batch", "inputs, labels[1:]", "as many labels as inputs", "(3,)"),
    ("compute_loss", "outputs.sum(dim=1)", "a scalar tensor", "a tensor of shape (4,)"),
    ("train_step", "None", "the loss, a scalar tensor", "None"),
    ("evaluate", "{'val_accuracy': 0.5}", 'a dict with "val_loss"', "dict"),
    ("evaluate", "{'val_loss': 1, 'val_accuracy': [1]}", "a number as 'val_accuracy'", "(int '1')"),
]


def replaced(name: str, body: str) -> str:
    """Return the miniature with another body of one function, with the same parameters and decorators."""
    start = MINI.index(f"def {name}(")
    body_start = MINI.index("\n", start) + 1
    end = MINI.find("\n\n\n", body_start)
    return MINI[:body_start] + body + (MINI[end + 1 :] if end >= 0 else "")


@pytest.mark.parametrize(("name", "returned", "expected", "found"), WRONG)
def test_what_a_function_must_return(name: str, returned: str, expected: str, found: str, tmp_path: Path) -> None:
    source = replaced(name, f"    return {returned}\n")
    with pytest.raises(UserError) as error:
        call(load(tmp_path, source), name)
    message = str(error.value)
    # A decorated function starts at its decorator.
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


@pytest.mark.parametrize("name", ["load_data", "train_step"])
@pytest.mark.parametrize(
    ("statement", "headline"),
    [
        ("raise ValueError('too low\\nand more')", "ValueError: too low\n"),
        ("raise KeyError", "KeyError\n"),
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


def test_an_error_in_a_layer_of_torch_names_the_layer(tmp_path: Path) -> None:
    source = replaced("train_step", "    return nn.Sequential(nn.Flatten(), nn.Linear(35, 2))(inputs)\n")
    with pytest.raises(UserError) as error:
        call(load(tmp_path, source), "train_step")
    lines = str(error.value).splitlines()
    assert lines[2] == "  in the layer Linear(in_features=35, out_features=2, bias=True)"
    assert lines[3] == "Fix that line or its arguments, then run the same command again."


def test_ctrl_c_is_no_mistake_of_the_student(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path, MINI + "\nraise KeyboardInterrupt\n")
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


def test_a_class_of_the_experiment_can_be_pickled_and_its_module_found(tmp_path: Path) -> None:
    # pickle finds a class through sys.modules, and refuses a class that the module of that name does not contain.
    source = MINI + "\n\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Pair:\n    x: 'int'\n"
    module: Any = load(tmp_path, source).module
    assert pickle.loads(pickle.dumps(module.Pair(3))) == module.Pair(3)


def test_disable_dropout_makes_training_mode_repeatable() -> None:
    rng = torch.Generator().manual_seed(0)
    convolutional = nn.Sequential(nn.Dropout1d(0.5), nn.AlphaDropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    recurrent = nn.LSTM(4, 4, num_layers=2, dropout=0.5)
    attention = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.5)
    inputs = torch.randn(6, 2, 4, generator=rng)
    for model in (convolutional, nn.ModuleList([recurrent]), attention):
        disable_dropout(model)
    assert torch.equal(convolutional(inputs), inputs)
    assert torch.equal(recurrent(inputs)[0], recurrent(inputs)[0])
    assert torch.equal(attention(inputs), attention(inputs))
    assert recurrent.training

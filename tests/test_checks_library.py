"""`from harness.checks import Training, assert_sound`: checks on objects of any project, which must not change."""

import functools
import itertools
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from harness.checks import NotChecked, Training, assert_sound, check_names, load_check, make_check
from harness.checks.core.finding import short
from harness.errors import UserError

Batch = tuple[Tensor, Tensor]


def examples(seed: int = 1, count: int = 320) -> Batch:
    """Return points around one centre for each of four classes."""
    rng = torch.Generator().manual_seed(seed)
    centres, labels = torch.randn(4, 12, generator=torch.Generator().manual_seed(0)), torch.arange(count) % 4
    return centres[labels] + 0.7 * torch.randn(count, 12, generator=rng), labels


def loader(seed: int = 1, **options: Any) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*examples(seed)), batch_size=32, shuffle=True, **options)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    hidden = nn.Linear(12, 32, bias=False)
    return nn.Sequential(hidden, nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


def without_clearing(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> Tensor:
    loss = F.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model: nn.Module, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    model.eval()
    with torch.no_grad():
        outputs = model(inputs)
    return F.cross_entropy(outputs, labels), (outputs.argmax(dim=1) == labels).float().mean()


def forgetful(model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        return float(F.cross_entropy(model(inputs), labels))


def training(**given: Any) -> Training:
    """Return a sound training of a classifier, with these arguments replaced."""
    model = given.pop("model", None) or network()
    own: dict[str, Any] = {"optimizer": sgd(model), "loss_fn": F.cross_entropy, "train_batches": loader()}
    return Training(**{"model": model, **own, "validation": loader(2), "evaluate": evaluate, **given})


class Trainer:
    """A trainer with its own model, optimizer, schedule and scaler."""

    def __init__(self, *, forgets: bool = False, autocast: bool = False) -> None:
        self.model = network()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01, fused=True)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10_000)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        self.batches = loader()
        self.forgets, self.autocast = forgets, autocast

    def train_batch(self, inputs: Tensor, labels: Tensor) -> float:
        self.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            loss = F.cross_entropy(self.model(inputs), labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        return loss.item()

    def evaluate(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        self.model.train(self.forgets)
        with torch.no_grad():
            outputs = self.model(inputs)
        return F.cross_entropy(outputs, labels), (outputs.argmax(dim=1) == labels).float().mean()

    def training(self) -> Training:
        own = {"train_step": self.train_batch, "evaluate": self.evaluate}
        return training(model=self.model, optimizer=self.optimizer, train_batches=self.batches, **own)


def everything(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """Return copies of all state that a check could change."""
    tensors = [*model.parameters(), *model.buffers()]
    return [
        [tensor.detach().clone() for tensor in tensors],
        [None if tensor.grad is None else tensor.grad.clone() for tensor in tensors],
        [(module.training, len(module._forward_hooks)) for module in model.modules()],
        [[*group["params"], {**group, "params": None}] for group in optimizer.param_groups],
        [{key: torch.as_tensor(value).clone() for key, value in state.items()} for state in optimizer.state.values()],
        [torch.get_rng_state(), torch.from_numpy(np.random.get_state()[1].copy()), random.getstate()],  # type: ignore[index]
        [torch.get_default_dtype(), torch.get_num_threads(), torch.get_deterministic_debug_mode()],
        [torch.is_grad_enabled(), torch.get_float32_matmul_precision(), torch.backends.mkldnn.enabled],
        [torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32, torch.is_anomaly_enabled()],
    ]


def assert_equal(found: Any, expected: Any) -> None:
    if isinstance(found, Tensor):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    elif isinstance(found, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(found, dict):
        assert_equal(sorted(found.items()), sorted(expected.items()))
    else:
        assert found == expected


@pytest.mark.parametrize("name", check_names())
def test_a_check_leaves_everything_as_it_was(name: str) -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    own = torch.Generator().manual_seed(7)
    batches = loader(generator=own)
    step(model, optimizer, *next(iter(batches)))  # this creates gradients and a state of the optimizer
    model.eval()
    model[1].train()
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    before, order = everything(model, optimizer), own.get_state()
    with torch.no_grad():
        subject = training(model=model, optimizer=optimizer, train_batches=batches)
        try:
            assert_sound(subject, name)
        except UserError as error:
            assert "cannot run" in str(error)
    assert_equal(everything(model, optimizer), before)
    assert torch.equal(own.get_state(), order)


@pytest.mark.parametrize("autocast", [False, True])
def test_a_trainer_that_holds_its_model_is_copied_with_it(autocast: bool) -> None:
    trainer = Trainer(autocast=autocast)
    before = everything(trainer.model, trainer.optimizer)
    found = assert_sound(trainer.training())
    assert_equal(everything(trainer.model, trainer.optimizer), before)
    assert trainer.schedule.last_epoch == 0 and trainer.scaler.get_scale() == 256
    assert found["updates"].outcome == "follows"
    assert found["amp_off"].outcome == ("same" if autocast else "no-autocast")
    forgetful = Trainer(forgets=True)
    with pytest.raises(AssertionError, match=r"modes\n  unrepeatable: "):
        assert_sound(forgetful.training(), "modes")


def summed(outputs: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(outputs, labels, reduction="sum")


def stale() -> dict[str, Any]:
    return {"optimizer": sgd(network())}


FAULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "updates": lambda: {"train_step": without_clearing},
    "modes": lambda: {"evaluate": forgetful},
    "loss_form": lambda: {"loss_fn": summed},
    "audit": stale,
    "learning_rate": lambda: {"optimizer": torch.optim.SGD((model := network()).parameters(), lr=5.0), "model": model},
    "data": lambda: {"validation": loader(1)},
    "overfit": lambda: {"optimizer": torch.optim.SGD((model := network()).parameters(), lr=1e-7), "model": model},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_failure_shows_what_the_check_found_with_its_figures(name: str) -> None:
    subject = training(**FAULTS[name]())
    with pytest.raises(AssertionError) as caught:
        assert_sound(subject, name)
    message = str(caught.value)
    check = load_check(name)
    assert message.startswith(f"1 of 1 checks found something wrong: {name.replace('_', '-')}.")
    (outcome,) = [one for one in check.outcomes if f"\n  {one.id}: " in message and one.reading in message]
    assert not outcome.sound and outcome.look in message
    with subject.subject() as measured:
        finding = make_check(measured, name)
    for figure, value in finding.figures.items():
        assert f"    {figure}: {short(value)}\n" in message + "\n"


def test_the_fault_itself_comes_before_its_consequences() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_sound(training(**stale()))
    told = str(caught.value).partition(".\n")[0].partition("wrong: ")[2].split(", ")
    mechanisms = [load_check(name.replace("-", "_")).mechanism for name in told]
    assert len(told) > 3 and mechanisms == sorted(mechanisms, reverse=True)


def test_a_sound_training_passes_and_gives_back_the_findings() -> None:
    found = assert_sound(training())
    assert set(found) == set(check_names()) - {"preparation", "leakage"}  # they check how an experiment file loads data
    assert found["first_loss"].figures["first loss"] == pytest.approx(1.5, abs=0.4)
    assert set(assert_sound(training(), "overfit", "loss-form")) == {"overfit", "loss_form"}


def test_a_tagger_needs_no_evaluation_of_its_own() -> None:
    """Its outputs are (B, T, C) and its labels (B, T)."""
    torch.manual_seed(0)
    tagger = nn.Sequential(nn.Embedding(9, 16), nn.Linear(16, 4))
    tokens = torch.randint(0, 9, (640, 6), generator=torch.Generator().manual_seed(0)).unique(dim=0)
    train, validation = (DataLoader(TensorDataset(part, part % 4), batch_size=32) for part in tokens.chunk(2))

    def per_token(outputs: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(outputs.flatten(0, 1), labels.flatten())

    given = training(model=tagger, loss_fn=per_token, train_batches=train, validation=validation, evaluate=None)
    with pytest.warns(NotChecked):
        assert "repeat" in assert_sound(given)


def test_what_is_not_given_is_left_out_with_a_word() -> None:
    subject = training(validation=None, evaluate=None)
    with pytest.warns(NotChecked, match=r"data \(give validation=\.\.\.\).*modes \(give validation=\.\.\.\)"):
        found = assert_sound(subject)
    assert "repeat" in found and not {"data", "modes"} & set(found)
    with pytest.warns(NotChecked, match=r"^Not checked: modes \(give evaluate=\.\.\.\)\.$"):
        assert_sound(training(evaluate=None))
    with pytest.raises(UserError, match=r"the check modes cannot run: give evaluate=\.\.\.\."):
        assert_sound(training(evaluate=None), "modes")
    with pytest.raises(UserError, match="There is no check 'overfitt'"):
        assert_sound(training(), "overfitt")
    with pytest.raises(AssertionError, match=r"Not checked: modes \(give evaluate"):
        assert_sound(training(evaluate=None, train_step=without_clearing))


def test_code_that_needs_float32_is_no_fault() -> None:
    def in_float32(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> Tensor:
        return step(model, optimizer, inputs.float(), labels)

    with pytest.warns(NotChecked, match=r"gradcheck \(your code does not compute in float64"):
        assert_sound(training(train_step=in_float32))


def test_a_function_that_changes_the_models_of_the_caller_is_an_error_and_is_undone() -> None:
    model = network()
    optimizer = sgd(model)
    before = everything(model, optimizer)

    def own(_model: nn.Module, _optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> Tensor:
        return step(model, optimizer, inputs, labels)

    with pytest.raises(UserError, match=r"test_checks_library\.py: train_step or evaluate changed your own model"):
        assert_sound(training(model=model, optimizer=optimizer, train_step=own), "audit")
    assert_equal(everything(model, optimizer), before)


class Dicts(Dataset[dict[str, Tensor]]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        if index >= len(self):
            raise IndexError(index)
        return {"pixels": torch.zeros(3), "label": torch.tensor(1)}


class Variable:
    def __iter__(self) -> Iterator[Batch]:
        yield torch.zeros(4, 12), torch.arange(4)
        yield torch.zeros(4, 13), torch.arange(4)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "iterator": (
        lambda: iter(loader()),
        r"train_batches is an iterator, and reading it would use up your batches\. Pass",
    ),
    "dict": (
        lambda: DataLoader(Dicts(), batch_size=4),
        r"a batch of train_batches is a dict with 'pixels', 'label'\. Pass pairs of tensors, for example"
        r" \[\(batch\['pixels'\], batch\['label'\]\) for batch in itertools\.islice\(loader, 32\)\]",
    ),
    "triple": (
        lambda: [(*examples(), 3)],
        r"two tensors with one row per example, but is \(a tensor of shape \(320, 12\)",
    ),
    "arrays": (lambda: [(np.zeros((4, 2)), np.zeros(4))], r"but is \(a ndarray, a ndarray\)"),
    "data set": (lambda: TensorDataset(*examples()), r"but is \(a tensor of shape \(12,\), a tensor of shape \(\)\)"),
    "tensor": (lambda: torch.zeros(3, 4), r"but is a tensor of shape \(4,\)"),
    "number": (lambda: 3, r"train_batches must be a loader or one batch \(inputs, targets\), not a int"),
    "nothing": (list, r"train_batches has no batch"),
    "shapes": (Variable, r"batches have rows of different shapes .* Pass one batch, or pad all rows to one shape"),
}


@pytest.mark.parametrize("name", WRONG)
def test_batches_that_are_no_pairs_are_named(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(UserError, match=message):
        training(train_batches=make())


def test_one_batch_is_enough_and_a_loader_is_read_no_further_than_needed() -> None:
    found = assert_sound(training(train_batches=examples()), "overfit", "gradients", "audit")
    assert found["audit"].outcome == "all-move"
    read = []

    class Endless:
        def __iter__(self) -> Iterator[Batch]:
            for index in itertools.count():
                read.append(index)
                yield examples(index, 16)

    assert len(training(train_batches=Endless(), most_batches=5).batches) == len(read) == 5


def test_batches_come_in_the_order_of_the_loader_and_again() -> None:
    batches = [examples(seed, 8) for seed in range(3)]
    with training(train_batches=batches).subject() as subject:
        trial = subject.trial()
        given = list(trial.batches(7))
        given[0][0].zero_()  # a copy
        assert [torch.equal(x, batches[index % 3][0]) for index, (x, _) in enumerate(given)] == [False] + [True] * 6
        assert trial.steps == 3


def test_mistakes_name_the_file_and_line_of_the_user() -> None:
    def broken(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> Tensor:
        return step(model, optimizer, inputs[:, :5], labels)

    with pytest.raises(UserError, match=r"test_checks_library\.py: train_step raised RuntimeError: mat1 and mat2"):
        assert_sound(training(train_step=broken), "overfit")
    with pytest.raises(UserError, match=r"train_step must return the loss, a scalar tensor, but returned None"):
        assert_sound(training(train_step=lambda *given: None), "overfit")
    with pytest.raises(
        UserError, match=r"loss_fn (raised|must return a scalar)|train_step raised RuntimeError: grad can be"
    ):
        assert_sound(training(loss_fn=functools.partial(F.cross_entropy, reduction="none")), "overfit")
    with pytest.raises(UserError, match=r"the optimizer must be a torch Optimizer, not a list"):
        training(optimizer=[1])


def test_what_cannot_be_copied_is_said() -> None:
    model = network()
    model.kept = model(examples()[0])
    with pytest.raises(UserError, match=r"holds cannot be copied: Only Tensors created explicitly by the user"):
        assert_sound(training(model=model), "overfit")


def test_hooks_of_the_optimizer_and_a_schedule_are_used() -> None:
    model = network()
    optimizer = sgd(model)
    called: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: called.append("hook"))

    def schedule(optimizer: torch.optim.Optimizer, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
        called.append(f"{steps} steps")
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)

    subject = training(model=model, optimizer=optimizer, scheduler=schedule)
    assert_sound(subject, "overfit", "learning_rate")
    assert {"hook", "10 steps"} <= set(called)


def test_the_names_come_without_torch_until_they_are_used() -> None:
    code = "import sys; from harness.checks import check_names; check_names(); assert 'torch' not in sys.modules; "
    code += "from harness.checks import Training, assert_sound; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
    import harness.checks

    with pytest.raises(AttributeError, match="has no attribute 'assert_nothing'"):
        _ = harness.checks.assert_nothing

"""`from trainwreck import Training, assert_sound`: checks on objects of any project, which come back unchanged."""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from trainwreck import Training, Unsound, assert_sound

Batch = tuple[Tensor, Tensor]
INPUTS = torch.randn(256, 20, generator=torch.Generator().manual_seed(0))
LABELS = INPUTS[:, :5].argmax(1)
BATCHES = list(zip(INPUTS.split(32), LABELS.split(32), strict=True))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))


def adam(model: nn.Module, lr: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr)


def given(model: nn.Module, loss_fn: Callable[..., Any] = F.cross_entropy, batches: Any = BATCHES) -> Training:
    return Training(model, adam(model), loss_fn, batches)


def with_lambda() -> Training:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(20, 64), nn.Linear(64, 5)
            self.head = lambda hidden: self.last(hidden.relu())

        def forward(self, inputs: Tensor) -> Tensor:
            out: Tensor = self.head(self.first(inputs))  # type: ignore[no-untyped-call]
            return out

    return given(Net())


def autoencoder() -> Training:
    inputs = INPUTS.sigmoid()
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 20), nn.Sigmoid())
    return given(model, F.binary_cross_entropy, [(inputs, inputs)])


def one_logit() -> Training:
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs.squeeze(1), targets)

    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
    return given(model, loss, (INPUTS, (LABELS > 2).float()))


def frozen_trunk() -> Training:
    model = network()
    model[0].requires_grad_(False)
    return Training(model, adam(model[2]), F.cross_entropy, BATCHES, frozen=["0."])


def dictionary() -> Training:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, inputs: Tensor) -> dict[str, Tensor]:
            return {"logits": self.net(inputs)}

    return given(Net(), lambda outputs, targets: F.cross_entropy(outputs["logits"], targets))


def lbfgs() -> Training:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor) -> None:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            return loss

        optimizer.step(closure)  # type: ignore[arg-type]

    model = network()
    return Training(model, torch.optim.LBFGS(model.parameters()), F.cross_entropy, BATCHES, train_step=step)


def small_rate() -> Training:
    model = network()
    return Training(model, torch.optim.AdamW(model.parameters(), 2e-5), F.cross_entropy, BATCHES)


def accumulation() -> Training:
    calls = itertools.count(1)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor) -> None:
        (F.cross_entropy(model(inputs), targets) / 4).backward()
        if next(calls) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

    model = network()
    return Training(model, adam(model), None, BATCHES, train_step=step)


def two_networks() -> Training:
    """Return a GAN, whose batch is a dictionary and whose networks and optimizers have names."""
    models = {"maker": nn.Sequential(nn.Linear(4, 20)), "judge": nn.Sequential(nn.Linear(20, 1))}
    optimizers = {name: adam(model) for name, model in models.items()}

    def step(nets: Any, optims: Any, batch: dict[str, Tensor]) -> None:
        true, noise = batch["inputs"], torch.randn(len(batch["inputs"]), 4)
        optims["judge"].zero_grad()
        scores = nets["judge"](true), nets["judge"](nets["maker"](noise).detach())
        losses = [
            F.binary_cross_entropy_with_logits(score, torch.full_like(score, label))
            for score, label in zip(scores, (1.0, 0.0), strict=True)
        ]
        torch.stack(losses).sum().backward()
        optims["judge"].step()
        optims["maker"].zero_grad()
        score = nets["judge"](nets["maker"](noise))
        F.binary_cross_entropy_with_logits(score, torch.ones_like(score)).backward()
        optims["maker"].step()

    batches = [{"inputs": inputs} for inputs in INPUTS.split(32)]
    return Training(models, optimizers, None, batches, train_step=step)


def endless_and_ragged() -> Training:
    class Endless:
        def __iter__(self) -> Iterator[Batch]:
            for size in itertools.cycle((32, 16, 7)):
                yield INPUTS[:size], LABELS[:size]

    return given(network(), batches=Endless())


def time_first() -> Training:
    """Return a recurrent network with inputs of the shape (time, batch, features)."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.GRU(4, 16), nn.Linear(16, 5)

        def forward(self, inputs: Tensor) -> Tensor:
            out: Tensor = self.head(self.rnn(inputs)[0][-1])
            return out

    return given(Net(), batches=[(x.view(-1, 5, 4).transpose(0, 1), y) for x, y in BATCHES])


class Trainer:
    """A trainer with its own model, optimizer, schedule and scaler. Its epoch sets the mode, not its step."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(20, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 5))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10_000)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def train_batch(self, inputs: Tensor, labels: Tensor) -> None:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(inputs), labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()

    def evaluate(self, inputs: Tensor, labels: Tensor) -> float:
        self.model.eval()
        with torch.no_grad():
            return float(F.cross_entropy(self.model(inputs), labels))

    def forgetful(self, inputs: Tensor, labels: Tensor) -> float:
        with torch.no_grad():
            return float(F.cross_entropy(self.model(inputs), labels))

    def training(self, evaluate: Callable[..., Any]) -> Training:
        parts = self.model, self.optimizer, None
        return Training(*parts, BATCHES[:4], train_step=self.train_batch, validation=BATCHES[4:5], evaluate=evaluate)


def trainer() -> Training:
    own = Trainer()
    return own.training(own.evaluate)


SOUND = (
    with_lambda, autoencoder, one_logit, frozen_trunk, dictionary, lbfgs, small_rate, accumulation, two_networks,
    endless_and_ragged, time_first, trainer,
)  # fmt: skip


@pytest.mark.parametrize("make", SOUND)
def test_a_sound_training_of_ordinary_style_passes(make: Callable[[], Training]) -> None:
    assert [finding for finding in assert_sound(make()) if finding.level == "alarm"] == []


def without_clearing(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> None:
    F.cross_entropy(model(inputs), labels).backward()
    optimizer.step()


def never_clears() -> Training:
    model = network()
    return Training(model, adam(model), None, BATCHES, train_step=without_clearing)


def softmax_in_step() -> Training:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs).softmax(1), labels).backward()
        optimizer.step()

    model = network()
    return Training(model, adam(model), None, BATCHES, train_step=step)


def sigmoid_twice() -> Training:
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs.squeeze(1), targets.float())

    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())
    return given(model, loss, [(INPUTS, (LABELS > 2).long())])


def no_mask(ignored: int) -> Training:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.symbols = nn.Embedding(30, 32)
            self.places = nn.Parameter(torch.randn(12, 32) * 0.02)
            self.layer = nn.TransformerEncoderLayer(32, 2, 64, 0.0, batch_first=True)
            self.out = nn.Linear(32, 30)

        def forward(self, symbols: Tensor) -> Tensor:
            out: Tensor = self.out(self.layer(self.symbols(symbols) + self.places))
            return out

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), ignore_index=ignored)

    words, lengths, at = torch.randint(1, 30, (64, 13)), torch.randint(4, 13, (64, 1)), torch.arange(12)
    inputs = torch.where(at < lengths, words[:, :12], 0)
    return given(Net(), loss, [(inputs, torch.where(at < lengths, words[:, 1:], ignored))])


def other_network() -> Training:
    return Training(network(), adam(network()), F.cross_entropy, BATCHES)


def forgets_eval() -> Training:
    own = Trainer()
    return own.training(own.forgetful)


FAULTS: dict[str, tuple[Callable[[], Training], str]] = {
    "nothing clears": (never_clears, "gradients/stale"),
    "softmax in the step": (softmax_in_step, "loss-form/normalized-twice"),
    "sigmoid twice": (sigmoid_twice, "loss-form/normalized-twice"),
    "no mask, -1": (lambda: no_mask(-1), "tokens/sees-later"),
    "no mask, -100": (lambda: no_mask(-100), "tokens/sees-later"),
    "optimizer of another network": (other_network, "ownership/"),
    "no eval": (forgets_eval, "modes/evaluates-in-training-mode"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_values_and_its_line(name: str) -> None:
    make, outcome = FAULTS[name]
    training = make()
    with pytest.raises(Unsound, match=f"alarm: {outcome}") as caught:
        assert_sound(training)
    assert {"Found:", "Where:", "Fix:"} <= set(str(caught.value).split())


@pytest.mark.parametrize("batch", [(1, 2, 3), {"x": 1}])
def test_a_batch_that_is_no_pair_needs_a_step_of_its_own(batch: Any) -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"the default step takes pairs .* give train_step"):
        assert_sound(Training(model, adam(model), F.cross_entropy, [batch]))


def everything(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """Return copies of all state that a check could change."""
    tensors = [*model.parameters(), *model.buffers()]
    return [
        [tensor.detach().clone() for tensor in tensors],
        [None if tensor.grad is None else tensor.grad.clone() for tensor in tensors],
        [(module.training, len(module._forward_hooks)) for module in model.modules()],
        [{**group, "params": list(map(id, group["params"]))} for group in optimizer.param_groups],
        [{key: torch.as_tensor(value).clone() for key, value in state.items()} for state in optimizer.state.values()],
        [torch.get_rng_state(), torch.from_numpy(np.random.get_state()[1].copy()), random.random()],  # type: ignore[index]
        [torch.get_num_threads(), torch.is_grad_enabled()],
    ]


def test_the_objects_of_the_caller_come_back_unchanged() -> None:
    model = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.Dropout(0.1), nn.Linear(32, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    own = torch.Generator().manual_seed(7)
    loader = DataLoader(TensorDataset(INPUTS, LABELS), 32, shuffle=True, generator=own)
    without_clearing(model, optimizer, *BATCHES[0])  # this creates gradients and a state of the optimizer
    model.eval()
    model[1].train()
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    before, order = everything(model, optimizer), own.get_state()
    random.seed(5)
    parts = model, optimizer, F.cross_entropy, loader
    assert_sound(Training(*parts, validation=BATCHES[:2], scheduler=schedule))
    torch.testing.assert_close(everything(model, optimizer), before, rtol=0, atol=0)
    assert torch.equal(own.get_state(), order) and schedule.last_epoch == 0


def test_a_frozen_parameter_that_changes_is_named() -> None:
    model = network()
    training = Training(model, adam(model), F.cross_entropy, BATCHES, frozen="0.")
    with pytest.raises(Unsound, match=r"frozen parameters have changed: 0\.weight, 0\.bias"):
        assert_sound(training)
    with pytest.raises(ValueError, match="frozen names no parameter of the models: trunk"):
        assert_sound(Training(model, adam(model), F.cross_entropy, BATCHES, frozen=["trunk"]))


def test_frozen_parameters_of_two_models_may_have_equal_names() -> None:
    first, second = network(), network()

    def step(inputs: Tensor, labels: Tensor) -> None:
        optimizer.zero_grad()
        F.cross_entropy(first(inputs) + second(inputs), labels).backward()
        optimizer.step()

    optimizer = adam(first)
    for parameter in second.parameters():
        parameter.requires_grad_(False)
    training = Training([first, second], optimizer, None, BATCHES, train_step=step, frozen="0.")
    with pytest.raises(Unsound, match=r"have changed: 0\.weight, 0\.bias$"):
        assert_sound(training)


def nothing(*_: object) -> None:
    """Make no update."""


MISTAKES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "no step": (lambda m, o: Training(m, o, None, BATCHES), "give train_step, or one model"),
    "no model": (lambda m, o: Training([3], o, None, BATCHES, train_step=nothing), "must be a torch Module, not a int"),
    "no update": (lambda m, o: Training(m, o, None, BATCHES, train_step=nothing), "made no update in 100 calls"),
    "no batch": (lambda m, o: Training(m, o, F.cross_entropy, []), "batches gives no batch"),
    "arguments": (
        lambda m, o: Training(m, o, None, BATCHES, train_step=lambda a, b, c: None),
        "must take 2 objects and the 2 parts of a batch",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_said_in_a_sentence(name: str) -> None:
    make, message = MISTAKES[name]
    model = network()
    with pytest.raises(ValueError, match=message):
        assert_sound(make(model, adam(model)))


def test_names_of_checks_select_and_outcomes_are_ignored() -> None:
    assert assert_sound(never_clears(), "modes", "loss-form") == []
    assert_sound(never_clears(), "gradients", ignore=["stale"])
    with pytest.raises(ValueError, match="overfitt"):
        assert_sound(never_clears(), "overfitt")


def test_an_error_of_the_users_code_is_shown_as_it_is_and_the_model_comes_back() -> None:
    model = network()
    before = model.state_dict()["0.weight"].clone()
    calls = itertools.count()

    def breaks(inputs: Tensor, labels: Tensor) -> None:
        without_clearing(model, optimizer, inputs[:, : 20 if next(calls) < 3 else 5], labels)

    optimizer = adam(model)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        assert_sound(Training(model, optimizer, None, BATCHES, train_step=breaks))
    assert torch.equal(model.state_dict()["0.weight"], before)

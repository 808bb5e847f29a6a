import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from harness.run.steps import training_step


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))


def batch(samples: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(samples, 6, generator=rng), torch.randint(4, (samples,), generator=rng)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def gradients(model: nn.Module) -> Tensor:
    return torch.cat(
        [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    )


def test_one_part_is_the_plain_loop_to_the_bit() -> None:
    model, inputs_labels = network(), [batch(8, seed) for seed in range(5)]
    plain = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    plain_optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    for inputs, labels in inputs_labels:
        loss = training_step(model, optimizer, F.cross_entropy, inputs, labels)
        plain_optimizer.zero_grad()
        expected = F.cross_entropy(plain(inputs), labels)
        torch.autograd.backward(expected)
        plain_optimizer.step()
        assert torch.equal(loss, expected.detach())
        assert not loss.requires_grad
    assert torch.equal(weights(model), weights(plain))


@settings(deadline=None)
@given(samples=st.integers(1, 13), parts=st.integers(1, 15), seed=st.integers(0, 2**32))
def test_accumulated_parts_give_the_gradient_and_loss_of_the_whole_batch(
    samples: int, parts: int, seed: int
) -> None:
    model = network(seed).double()
    inputs, labels = batch(samples, seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    whole_loss = training_step(model, optimizer, F.cross_entropy, inputs.double(), labels)
    whole = gradients(model)
    loss = training_step(model, optimizer, F.cross_entropy, inputs.double(), labels, parts=parts)
    torch.testing.assert_close(gradients(model), whole, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(loss, whole_loss, rtol=1e-12, atol=1e-14)


def test_parts_are_micro_batches_and_gradients_are_cleared_before_them() -> None:
    model, (inputs, labels) = network(), batch(7)
    sizes: list[int] = []
    model.register_forward_pre_hook(lambda _, arguments: sizes.append(len(arguments[0])))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    training_step(model, optimizer, F.cross_entropy, inputs, labels, parts=3)
    first = gradients(model)
    training_step(model, optimizer, F.cross_entropy, inputs, labels, parts=3)
    assert torch.equal(gradients(model), first)
    assert sizes == [3, 2, 2] * 2


def optimizers(model: nn.Module, kind: str) -> torch.optim.Optimizer:
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=0.5)
    if kind == "fused sgd":
        return torch.optim.SGD(model.parameters(), lr=0.5, fused=True)
    return torch.optim.Adam(model.parameters(), lr=0.01, fused=True)


@pytest.mark.parametrize("kind", ["sgd", "fused sgd", "fused adam"])
@pytest.mark.parametrize("clip_norm", [None, 0.05])
@pytest.mark.parametrize("parts", [1, 2])
def test_scaling_by_a_power_of_two_changes_nothing_and_hooks_see_true_gradients(
    kind: str, clip_norm: float | None, parts: int
) -> None:
    """In float32 a scale of 2**16 is exact: a step unscaled not at all, or twice, or clipped early shows."""
    model, (inputs, labels) = network(), batch(8)
    plain = copy.deepcopy(model)
    optimizer, plain_optimizer = optimizers(model, kind), optimizers(plain, kind)
    scaler = torch.amp.GradScaler("cpu")
    seen: list[tuple[Tensor, Tensor]] = []
    optimizer.register_step_pre_hook(
        lambda *_: seen.append((gradients(model).clone(), gradients(plain).clone()))
    )
    for _ in range(3):
        training_step(
            plain, plain_optimizer, F.cross_entropy, inputs, labels, parts=parts, clip_norm=clip_norm
        )
        training_step(
            model, optimizer, F.cross_entropy, inputs, labels, parts=parts, clip_norm=clip_norm, scaler=scaler
        )
    assert len(seen) == 3
    for scaled, true in seen:
        assert torch.equal(scaled, true)
        if clip_norm is not None:
            assert torch.linalg.vector_norm(scaled).item() == pytest.approx(clip_norm, rel=1e-4)
    assert torch.equal(weights(model), weights(plain))


def test_clipping_leaves_small_gradients_alone() -> None:
    model, (inputs, labels) = network(), batch(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    training_step(model, optimizer, F.cross_entropy, inputs, labels)
    unclipped = gradients(model)
    training_step(model, optimizer, F.cross_entropy, inputs, labels, clip_norm=1e3)
    assert torch.equal(gradients(model), unclipped)


@pytest.mark.parametrize("kind", ["sgd", "fused sgd", "fused adam"])
def test_a_batch_that_overflows_is_skipped_and_the_scale_is_halved(kind: str) -> None:
    model, (inputs, labels) = network(), batch(8)
    optimizer, scaler = optimizers(model, kind), torch.amp.GradScaler("cpu")
    before = weights(model)
    loss = training_step(
        model,
        optimizer,
        lambda z, y: F.cross_entropy(z, y) * 1e38,
        inputs,
        labels,
        clip_norm=1.0,
        scaler=scaler,
    )
    assert torch.isfinite(loss)
    assert torch.equal(weights(model), before)
    assert scaler.get_scale() == 2.0**15
    training_step(model, optimizer, F.cross_entropy, inputs, labels, clip_norm=1.0, scaler=scaler)
    assert torch.isfinite(weights(model)).all()
    assert not torch.equal(weights(model), before)


def test_autocast_runs_the_model_in_float16_and_keeps_gradients_in_float32() -> None:
    model, (inputs, labels) = network(), batch(8)
    dtypes: list[torch.dtype] = []
    model.register_forward_hook(lambda _, __, output: dtypes.append(output.dtype))
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    training_step(
        model, optimizer, F.cross_entropy, inputs, labels, scaler=scaler, autocast_dtype=torch.float16
    )
    assert dtypes == [torch.float16]
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in model.parameters())
    assert scaler.get_scale() == 2.0**16
    assert torch.isfinite(gradients(model)).all()


def test_a_float16_loss_comes_back_in_float32_and_its_parts_are_added_there() -> None:
    model, (inputs, labels) = network(), batch(9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def half_loss(outputs: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(outputs, labels).half()

    pieces = [
        half_loss(model(x), y) for x, y in zip(inputs.tensor_split(3), labels.tensor_split(3), strict=True)
    ]
    loss = training_step(model, optimizer, half_loss, inputs, labels, parts=3)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(sum(piece.item() for piece in pieces) / 3, rel=1e-6)


def test_training_with_everything_on_learns() -> None:
    model, (inputs, labels) = network(), batch(16)
    optimizer, scaler = torch.optim.Adam(model.parameters(), lr=0.05, fused=True), torch.amp.GradScaler("cpu")
    losses = [
        training_step(
            model,
            optimizer,
            F.cross_entropy,
            inputs,
            labels,
            parts=3,
            clip_norm=1.0,
            scaler=scaler,
            autocast_dtype=torch.float16,
        ).item()
        for _ in range(80)
    ]
    assert losses[-1] < 0.05 < 1.0 < losses[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": 0}, "parts is 0"),
        ({"clip_norm": 0.0}, "clip_norm is 0.0"),
        ({"clip_norm": float("nan")}, "clip_norm is nan"),
        ({"labels": torch.zeros(7, dtype=torch.int64)}, r"inputs \[8, 6\] and labels \[7\]"),
        ({"inputs": torch.zeros(0, 6), "labels": torch.zeros(0, dtype=torch.int64)}, "batch-first"),
        (
            {"compute_loss": lambda z, y: F.cross_entropy(z, y, reduction="none")},
            r"one number.*returned \[8\]",
        ),
        ({"compute_loss": lambda z, y: 1.0}, "returned float"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, object], message: str) -> None:
    model, (inputs, labels) = network(), batch(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    arguments = {"compute_loss": F.cross_entropy, "inputs": inputs, "labels": labels} | options
    with pytest.raises(ValueError, match=message):
        training_step(model, optimizer, **arguments)  # type: ignore[arg-type]

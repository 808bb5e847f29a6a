import pytest
from instrument_subjects import mini_subject, real_subject
from runs import AMP, CHANCE, MINI, edited, train_step

from harness.instruments.gradcheck import PASSES, measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")

WRONG = edited(
    MINI,
    ("nn.ReLU()", "Square()"),
    (
        "def build_model",
        "class SquareFunction(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x * x\n\n"
        "    @staticmethod\n"
        "    def backward(ctx, gradient):\n"
        "        return FACTOR * ctx.saved_tensors[0] * gradient\n\n\n"
        "class Square(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return SquareFunction.apply(x)\n\n\n"
        "def build_model",
    ),
)


def test_an_optimizer_that_uses_another_gradient_is_found_and_a_healthy_one_passes() -> None:
    broken = measure(real_subject("missing_zero_grad"))
    assert broken.outcome == "used-differs"
    assert max(parameter.autograd for parameter in broken.parameters) < PASSES
    assert max(parameter.used or 0.0 for parameter in broken.parameters) > 0.1
    healthy = measure(real_subject("missing_zero_grad", healthy=True))
    assert healthy.outcome == "passes"
    assert [p.name for p in healthy.parameters] == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert all(0.0 < parameter.autograd < PASSES for parameter in healthy.parameters)


def test_a_backward_pass_by_hand_that_is_wrong_is_found() -> None:
    wrong = measure(mini_subject(WRONG.replace("FACTOR", "1.999")))
    assert wrong.outcome == "differs"
    # What comes after it in the backward pass is wrong, what comes before is right.
    assert {p.name for p in wrong.parameters if p.autograd > PASSES} == {"1.weight", "1.bias"}
    assert measure(mini_subject(WRONG.replace("FACTOR", "2"))).outcome == "passes"


@pytest.mark.parametrize("source", [CHANCE, AMP], ids=["dropout and batch norm", "scaled"])
def test_chance_and_scaling_are_no_error(source: str) -> None:
    assert measure(mini_subject(source)).outcome == "passes"


def test_clipping_is_another_gradient() -> None:
    clipped = train_step(
        "    optimizer.zero_grad()\n"
        "    loss = compute_loss(model(inputs), labels)\n"
        "    loss.backward()\n"
        "    nn.utils.clip_grad_norm_(model.parameters(), 0.01)\n"
        "    optimizer.step()\n"
    )
    assert measure(mini_subject(clipped)).outcome == "used-differs"


def test_a_small_loss_is_not_judged_more_leniently() -> None:
    small = WRONG.replace("FACTOR", "1.999").replace(
        "F.cross_entropy(outputs, labels)", "1e-7 * F.cross_entropy(outputs, labels)"
    )
    assert measure(mini_subject(small)).outcome == "differs"


def test_what_cannot_compute_in_float64_is_not_judged() -> None:
    fixed = edited(MINI, ("    return inputs, labels\n", "    return inputs.float(), labels\n"))
    measured = measure(mini_subject(fixed))
    assert measured.outcome == "not-in-float64"
    assert "train_step raised" in show(measured).said

import pytest
from instrument_subjects import mini_subject, real_subject
from runs import AMP, CHANCE, MINI, edited, train_step

from harness.checks.gradcheck import PASSES, measure, show

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


STEP = "    optimizer.zero_grad()\n    loss = compute_loss(model(inputs), labels)\n    loss.backward()\n"


@pytest.mark.parametrize(
    ("between", "outcome"),
    [
        ("    nn.utils.clip_grad_norm_(model.parameters(), 0.01)\n", "passes"),
        ("    for p in model.parameters():\n        p.grad.neg_()\n", "used-differs"),
        ("    for p in model.parameters():\n        p.grad.sign_()\n", "used-differs"),
        ("    model[1].weight.grad = None\n", "passes"),
    ],
    ids=["clipped", "turned round", "signs alone", "one that is not used"],
)
def test_what_is_used_may_be_shorter_but_not_another(between: str, outcome: str) -> None:
    assert measure(mini_subject(train_step(STEP + between + "    optimizer.step()\n"))).outcome == outcome


@pytest.mark.parametrize(("every", "outcome"), [(2, "passes"), (3, "passes"), (9, "passes")])
def test_gradients_of_several_batches_are_compared_with_their_sum(every: int, outcome: str) -> None:
    accumulated = train_step(
        "    loss = compute_loss(model(inputs), labels)\n"
        "    loss.backward()\n"
        "    model.batches = getattr(model, 'batches', 0) + 1\n"
        f"    if model.batches % {every} == 0:\n"
        "        optimizer.step()\n"
        "        optimizer.zero_grad()\n"
    )
    measured = measure(mini_subject(accumulated))
    assert measured.outcome == outcome
    assert all((parameter.used is None) == (every > 8) for parameter in measured.parameters)
    kept = measure(mini_subject(accumulated.replace("        optimizer.zero_grad()\n", "")))
    assert kept.outcome == ("used-differs" if every <= 8 else "passes")


# A factor with corners: within the step of finite differences where an entry of `shift` is next to zero.
CORNERS = edited(
    MINI,
    ("nn.Linear(16, 10)", "nn.Linear(16, 10), Corners()"),
    ("SGD(model.parameters()", "SGD((p for name, p in model.named_parameters() if 'shift' not in name)"),
    (
        "def build_model",
        "class Corners(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.shift = nn.Parameter(torch.tensor(SHIFT))\n\n"
        "    def forward(self, x):\n"
        "        return x * (1 + self.shift.abs().sum())\n\n\n"
        "def build_model",
    ),
)


@pytest.mark.parametrize(
    ("shift", "outcome", "kinks"),
    [([0.1, 0.2, 0.3], "passes", 0), ([3e-7, 0.2, 0.3], "passes", 1), ([3e-7, -3e-7, 0.3], "differs", 0)],
)
def test_a_kink_is_left_out_unless_nearly_all_is_kinks(shift: list[float], outcome: str, kinks: int) -> None:
    measured = measure(mini_subject(CORNERS.replace("SHIFT", str(shift))))
    assert measured.outcome == outcome
    found = {p.name: (p.entries, p.kinks) for p in measured.parameters if "shift" in p.name}
    assert found == {"4.shift": (3 - kinks, kinks)}


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

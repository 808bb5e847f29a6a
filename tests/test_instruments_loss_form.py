import pytest
from instrument_subjects import mini_subject, real_subject
from runs import MINI, edited
from test_instruments_overfit import REGRESSION

from harness.checks.loss_form import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")

LOSS = "F.cross_entropy(outputs, labels)"


@pytest.mark.parametrize("recipe", ["loss_sum", "double_softmax"])
def test_a_healthy_loss_agrees_to_the_last_digits(recipe: str) -> None:
    healthy = measure(real_subject(recipe, healthy=True))
    assert healthy.outcome == "agrees"
    assert healthy.gradient < 1e-6
    assert healthy.large is not None
    assert healthy.large[0] == pytest.approx(healthy.large[1])


def test_a_loss_that_grows_with_the_batch_is_found() -> None:
    broken = measure(real_subject("loss_sum"))
    assert broken.outcome == "grows"
    assert broken.whole[0] / broken.whole[1] == pytest.approx(64)
    assert broken.growth == pytest.approx(2)


def test_outputs_that_cannot_reach_a_small_loss_are_found() -> None:
    broken = measure(real_subject("double_softmax"))
    assert broken.outcome == "bounded"
    assert broken.least == pytest.approx(1.4612, abs=1e-3)  # ln(e + 9) - 1


def test_probabilities_with_a_loss_for_probabilities_are_sound() -> None:
    right = edited(
        MINI,
        ("nn.Linear(16, 10)", "nn.Linear(16, 10), nn.Softmax(dim=1)"),
        (LOSS, "F.nll_loss(outputs.clamp(min=1e-30).log(), labels)"),
    )
    assert measure(mini_subject(right)).least is None


@pytest.mark.parametrize(
    ("loss", "outcome"),
    [
        ("F.cross_entropy(outputs, labels, label_smoothing=0.1)", "differs"),
        ("2 * F.cross_entropy(outputs, labels)", "differs"),
        ("(outputs.exp().sum(dim=1).log() - outputs.gather(1, labels[:, None])[:, 0]).mean()", "overflows"),
        ("F.nll_loss(F.log_softmax(outputs, dim=1), labels)", "agrees"),
        ("F.cross_entropy(outputs, labels) + 0 * outputs.detach().sum()", "agrees"),
    ],
)
def test_outcomes(loss: str, outcome: str) -> None:
    assert measure(mini_subject(edited(MINI, (LOSS, loss)))).outcome == outcome


def test_a_regression_may_have_a_loss_of_its_own() -> None:
    assert measure(mini_subject(REGRESSION)).outcome == "agrees"
    own = edited(REGRESSION, ("F.mse_loss(outputs, labels)", "F.l1_loss(outputs, labels)"))
    evidence = show(measure(mini_subject(own)))
    assert evidence.outcome == "no-reference"
    assert len(evidence.tables[0].rows) == 2

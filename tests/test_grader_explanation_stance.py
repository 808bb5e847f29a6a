"""Offering a cause against ruling it out, supposing or imagining it, and comparing with it."""

import pytest
from explanations import recipe_and_lexicon

from grader.score.document import read_document
from grader.score.mentions import find_loose, find_mentions

RATE = recipe_and_lexicon("huge_lr")[1].causes


def stances(text: str) -> set[str]:
    """Return how a text holds that the learning rate is too large."""
    return {mention.stance for mention in find_mentions(read_document(text), RATE, across=True)}


@pytest.mark.parametrize(
    "text",
    [
        "The learning rate is too large.",
        "A learning rate of 10 is far too high.",
        "It diverges because of a huge learning rate.",
        "The loss does not fall because the learning rate is too large.",
        "The loss never recovers: the learning rate is too high.",
        "The learning rate, set in build_optimizer, is a hundred times what is usual.",
        "Not only is the learning rate too large, momentum makes it worse.",
        "It is not merely a large learning rate, but a huge learning rate.",
        "The learning rate was too large, so clipping did not help.",
        "I first suspected the labels, but the learning rate is too large.",
        "The optimizer has a learning rate of ten. That is far too large.",
        "It was not the labels; the learning rate is too high.",
        "The learning rate might be too high.",
        "the lr is way too big",
        "The learning rate is set to 10.0 while 0.1 would be usual.",
        "The learning rate is too high. It cannot be the initialization, the first loss is right.",
        "The learning rate is 10. This might be the momentum, but setting it to 0 did not change anything.",
        "It explodes when the learning rate is 10.",
        "It was the lr. Its a hundred times to big.",
        "The other cause is a learning rate that is too large.",
    ],
)
def test_offered(text: str) -> None:
    assert "offered" in stances(text)


@pytest.mark.parametrize(
    "text",
    [
        "The learning rate is not too large.",
        "It is not that the learning rate is too high.",
        "This does not come from a learning rate that is too high.",
        "It was not the labels, the seed or a too large learning rate.",
        "Neither the labels nor a learning rate that is too high explain it.",
        "A learning rate that is too large was ruled out.",
        "I ruled out a learning rate that is too high.",
        "I ruled out: bad labels, a learning rate that is too high.",
        "I ruled these out:\n- the learning rate is too high\n- the labels are wrong",
        "# Ruled out\nThe learning rate is too high.",
        "A learning rate that is too large cannot explain this.",
        "I first suspected that the learning rate was too large, but lowering it did not help.",
        "I thought that the learning rate was too high. But a smaller one changed nothing.",
        "The learning rate is too high? That did not explain the zeros.",
        "Rather than a learning rate that is too high, it is the sum.",
        "The learning rate isn't too high.",
        "I see no problem with the learning rate, which is 10 and huge.",
        "The learning rate is 10 times too small.",
        "The learning rate can be excluded as being too high.",
        "A huge learning rate is likewise excluded, since the first loss is right.",
    ],
)
def test_ruled_out(text: str) -> None:
    assert stances(text) == {"ruled out"}


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("It acts like a learning rate that is 64 times too large.", "compared"),
        ("It is equivalent to a huge learning rate.", "compared"),
        ("It is not merely a learning rate that is too large.", "compared"),
        ("This is more than just a huge learning rate.", "compared"),
        ("First I think the learning rate is too large.", "supposed"),
        ("At first I doubted the learning rate, which is huge.", "supposed"),
        ("My first reaction was that the learning rate is too high.", "supposed"),
        ("If the learning rate were too high, the first loss would be right.", "imagined"),
        ("With a learning rate that is too high, the loss would grow at once.", "imagined"),
        ("When the learning rate is too high, the loss grows at once.", "supposed"),
        ("Is the learning rate too high?", "supposed"),
        ("A learning rate that is too high would show at step 1.", "imagined"),
        ("A learning rate that is too high would explain it.", "supposed"),
        ("I would say that the learning rate is too high.", "supposed"),
        ("My first hypothesis was a learning rate that is too high.", "supposed"),
        ("# Hypotheses\nThe learning rate is too high.", "supposed"),
        ("A learning rate that is too high was my first guess.", "supposed"),
        ("It could have been a huge learning rate.", "supposed"),
    ],
)
def test_supposed_imagined_or_compared(text: str, stance: str) -> None:
    assert stances(text) == {stance}


@pytest.mark.parametrize(
    "text",
    [
        "The learning rate is fine but the loss is huge.",
        "The learning rate stays as it is, and the loss is too large.",
        "I lowered the learning rate.",
        "I looked at the learning rate and the loss. That is huge.",
        "The loss is too large for this learning rate.",
    ],
)
def test_not_named_at_all(text: str) -> None:
    assert stances(text) == set()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The root cause was the learning rate.", 1),
        ("# Root cause\nThe learning rate.", 1),
        ("It diverged due to the learning rate.", 1),
        ("I read about the learning rate.", 0),
    ],
)
def test_a_thing_presented_as_the_cause(text: str, count: int) -> None:
    assert len(find_loose(read_document(text), RATE)) == count


def test_a_thing_said_not_to_be_the_cause_is_ruled_out() -> None:
    mentions = find_loose(read_document("The learning rate is not the cause."), RATE)
    assert [mention.stance for mention in mentions] == ["ruled out"]

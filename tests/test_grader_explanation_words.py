"""Words, phrases, sentences and documents: how a text is taken apart before any rule looks at it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.score.document import read_document
from grader.score.headings import part_of_heading
from grader.score.phrases import Line, Span, check_phrase
from grader.score.plain_text import plain_text
from grader.score.prose import kind_of_text
from grader.score.sentences import printable, split_sentences
from grader.score.words import words_of


def texts(text: str) -> list[str]:
    return [word.text for word in words_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("optimizer.zero_grad()", "optimizer zero grad"),
        ("GradScaler, BatchNorm2d", "grad scaler batch norm2d"),
        ("It isn't, it can't; don't", "it is not it can not do not"),
        ("it\u2019s wont cannot", "it is will not can not"),
        ("lr=10.0 -> 1,402.50", "lr 10 so 1402.5"),
        ("1e-7 2.13.0 .5", "1e-07 2.13.0 0.5"),
        ("a \u2192 b != c & d", "a so b not c and d"),
        ("\u4f60\u597d float16", "\u4f60\u597d float16"),
        ("--- ___ ...", ""),
        ("val acc of the ReLU", "val accuracy of the relu"),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert texts(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The sofmax, the gradeint and the accuarcy", "the softmax the gradient and the accuracy"),
        ("way to big, to say the least", "way too big to say the least"),
        ("its missing, its name", "it is missing its name"),
        ("a thought, the label, a scaled loss", "a thought the label a scaled loss"),
    ],
)
def test_slips_of_the_pen(text: str, expected: str) -> None:
    assert " ".join(read_document(text).sentences[0].line.words) == expected


@given(st.text(max_size=200))
def test_any_text_has_words_that_lie_in_it_in_order(text: str) -> None:
    words = words_of(text)
    assert all(0 <= word.start < word.end <= len(text) and word.text for word in words)
    assert [word.start for word in words] == sorted(word.start for word in words)
    assert all(" " not in word.text and word.text == word.text.lower() for word in words)


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("learning rate", "The learning rate is high", [(1, 3)]),
        ("learning rate", "learning a rate", []),
        ("permut*", "a permutation permuted", [(1, 2), (2, 3)]),
        ("too big|large", "too large and too big, too small", [(0, 2), (3, 5)]),
        ("loss ... summed", "the loss here is now summed", [(1, 6)]),
        ("loss ... summed", "loss a b c d summed", [(0, 6)]),
        ("loss ... summed", "loss a b c d e summed", []),
        ("zero grad", "call zero_grad()", [(1, 3)]),
        ("lr 0.1", "with lr=0.10", [(1, 3)]),
        ("rate", "separate rates", []),
    ],
)
def test_where_a_phrase_stands(phrase: str, text: str, found: list[tuple[int, int]]) -> None:
    line = Line(tuple(texts(text)))
    assert line.find((check_phrase(phrase),)) == [Span(*pair) for pair in found]


def test_of_two_phrases_the_longer_one_is_found() -> None:
    assert Line(("too", "large", "a", "rate")).find(("too", "too large a rate")) == [Span(0, 4)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The loss is 2.3. It grows! Why? Because.", 4),
        ("See e.g. the loss, i.e. 2.303 vs. 1.5", 1),
        ("It jumped; it fell", 2),
        ("No end at all", 1),
        ("", 0),
        ("x" * 2500, 3),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert len([sentence for sentence in split_sentences(text) if sentence]) == count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold** `code` _it_ zero_grad", "bold code it zero_grad"),
        ("[text](http://x.y) ![picture](data:image/png;base64,AAAA)", "text"),
        ("<b>loud</b> https://example.org/a_b_c", "loud"),
        ("3.2 x 10^-7 and 10\u207b\u2077", "3.2e-7 and 1e-7"),
        ("4\u00d710^{5}", "4e5"),
    ],
)
def test_plain_text(text: str, expected: str) -> None:
    assert plain_text(text) == expected


@pytest.mark.parametrize(
    ("heading", "part"),
    [
        ("Symptom", "symptom"),
        ("What I saw", "symptom"),
        ("1. Root cause", "root cause"),
        ("Why it happens", "root cause"),
        ("The Fix", "fix"),
        ("What I changed", "fix"),
        ("Verification", "verification"),
        ("Results after the fix", "verification"),
        ("With the change", "verification"),
        ("Follow-up", "verification"),
        ("What is observed now", "verification"),
        ("Aetiology", "root cause"),
        ("What happen", "symptom"),
        ("Hypotheses", None),
        ("What it is not", None),
    ],
)
def test_the_part_that_a_heading_announces(heading: str, part: str | None) -> None:
    assert part_of_heading(heading) == part


@pytest.mark.parametrize(
    "body",
    [
        "# Symptom\na b c\n\n# Root cause\nd e f",
        "**Symptom**\na b c\n\n**Root cause**\nd e f",
        "Symptom: a b c\nRoot cause: d e f",
        "- **Symptom:** a b c\n- **Root cause:** d e f",
        "**Symptom.** a b c\n\n**Root cause.** d e f",
        "Symptom - a b c\nRoot cause -> d e f",
        "# Phenomenon\na b c\n# Consideration\nd e f",
        "Symptom\n-------\na b c\n\nRoot cause\n=====\nd e f",
        "The facts. a b c\n\nThe cause. d e f",
        "saw: a b c\nwhy: d e f",
        "S: a b c\nRC: d e f",
        "[symptom] a b c\n\n[root cause] d e f",
        "SYMPTOM\n\na b c\n\nWHY\n\nd e f",
    ],
)
def test_headings_in_any_common_form(body: str) -> None:
    document = read_document(body)
    assert [(s.text, s.part) for s in document.sentences] == [("a b c", "symptom"), ("d e f", "root cause")]
    assert document.headed == {"symptom": 3, "root cause": 3}


def test_a_word_at_the_beginning_of_a_wrapped_line_is_no_heading() -> None:
    document = read_document("# Fix\nOverflow is not the\ncause: nothing is infinite.")
    assert [s.part for s in document.sentences] == ["fix"]


def test_code_and_tables_are_no_sentences() -> None:
    document = read_document("Before.\n```\nloss 1\n```\n| a | b |\n| - | - |\n| 1 | 2 |\n\nAfter.")
    assert [s.text for s in document.sentences] == ["Before.", "After."]
    assert document.code == ("loss 1", "| a | b |", "| - | - |", "| 1 | 2 |")


def test_a_line_with_a_colon_leads_its_list_and_a_heading_its_section() -> None:
    document = read_document("I ruled out:\n- one thing\n- another\n\nThe end.\n\n# Hypotheses\nA third.")
    leads = [" ".join(s.lead.words) if s.lead else "" for s in document.sentences]
    assert leads == ["", "i ruled out", "i ruled out", "", "hypotheses"]


@given(st.text(max_size=400))
def test_any_text_is_a_document(text: str) -> None:
    document = read_document(text)
    assert all(sentence.words and sentence.quoted().isprintable() for sentence in document.sentences)
    assert document.word_count == sum(len(sentence.words) for sentence in document.sentences)


@given(st.text())
def test_what_is_quoted_can_be_printed(text: str) -> None:
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The learning rate was too large.", "prose"),
        ("lr way too big, weights jumped, loss exploded", "prose"),
        ("softmax, labels, zero_grad, learning rate, overfitting, dropout", "a list of terms"),
        ("cause is lr, lr too high, overshoot, divergence, big steps, loss, 10, sgd", "a list of terms"),
        (
            "# Symptom\nZeros at the end.\n# Root cause\nScaling missing: gradients below the smallest number vanish,"
            " weights stay put.\n# Fix\nGradScaler back.",
            "prose",
        ),
        ("", "nothing"),
        ("Well, yes.", "nothing"),
        ("One two three four five six seven.", "the exercise's own words"),
        ("Die Lernrate ist zu hoch und das Netz lernt nicht mit einer so hohen Rate.", "not in English"),
        ("\u5b66\u4e60\u7387\u592a\u5927\u4e86" * 5, "not in English"),
        ("El problema es que la tasa de aprendizaje es muy alta para el modelo.", "not in English"),
    ],
)
def test_kinds_of_text(text: str, kind: str) -> None:
    assert kind_of_text(read_document(text), "# One two three four\nfive six seven") == kind

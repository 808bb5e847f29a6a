"""The words of a recipe's explanation: `solutions/<id>/lexicon.toml`, and the rival causes it is told from."""

from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from grader.score.phrases import check_phrase
from grader.score.solutions import SOLUTIONS, StrictModel, read_toml
from harness.errors import UserError
from harness.recipe import EXERCISES, recipe_ids, suggestion

Phrase = Annotated[str, AfterValidator(check_phrase)]
Phrases = Annotated[tuple[Phrase, ...], Field(strict=False)]
SomePhrases = Annotated[tuple[Phrase, ...], Field(min_length=1, strict=False)]


class Cause(StrictModel):
    """One way to name a cause: one of the `thing` phrases, and close to it one of the `fault` phrases.

    Without `fault`, a phrase of `thing` says it all. `named` are phrases that name the cause, if loosely, where
    a sentence presents them as one ("the root cause was the learning rate"). `opposite` are phrases that say the
    contrary of this cause with its own words. `loose` are more faults, too loose to accuse by: in the reports of
    other recipes they are no faults, and with `rival` false no words of this cause name one there. With
    `effect` true, they may in those tell what another cause does.
    """

    thing: SomePhrases
    fault: Phrases = ()
    loose: Phrases = ()
    named: Phrases = ()
    opposite: Phrases = ()
    rival: bool = True
    effect: bool = False

    @cached_property
    def faults(self) -> tuple[str, ...]:
        """All faults."""
        return (*self.fault, *self.loose)


class Rival(StrictModel):
    """A cause that this recipe does not have; `says` names it in messages."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    says: Annotated[str, Field(min_length=1)]
    causes: Annotated[tuple[Cause, ...], Field(alias="cause", min_length=1, strict=False)]


class _Words(StrictModel):
    """One `lexicon.toml` as it is written.

    `signals` are the words for what is observed, `mechanism` those for what the cause does in between, `fix`
    those for the edit; `not_rivals` are causes of other recipes or of `rivals.toml` that belong to this
    recipe's own story, `asides` phrases by which only a few words of such a cause belong to it.
    """

    format_version: Literal[1]
    says: Annotated[str, Field(min_length=1)]
    causes: Annotated[tuple[Cause, ...], Field(alias="cause", min_length=1, strict=False)]
    signals: SomePhrases
    mechanism: SomePhrases
    fix: SomePhrases
    not_rivals: Annotated[tuple[str, ...], Field(strict=False)] = ()
    asides: Phrases = ()


class _SharedRivals(StrictModel):
    format_version: Literal[1]
    rivals: Annotated[tuple[Rival, ...], Field(alias="rival", strict=False)]


class Lexicon(StrictModel):
    """All the words by which one recipe's explanations are judged; `prompt` is what its students were told."""

    says: str
    causes: tuple[Cause, ...]
    signals: tuple[str, ...]
    mechanism: tuple[str, ...]
    fix: tuple[str, ...]
    asides: tuple[str, ...]
    rivals: tuple[Rival, ...]
    prompt: str


def load_lexicon(recipe_id: str, solutions: Path = SOLUTIONS, exercises: Path = EXERCISES) -> Lexicon:
    """Return a recipe's lexicon, its rivals being the causes of all other recipes and those of `rivals.toml`.

    Raises `UserError` for a file that is missing or wrong, and for a name in `not_rivals` that is no rival.
    """
    own = _read_words(recipe_id, solutions)
    rivals: list[Rival] = []
    for other in recipe_ids(exercises):
        # A recipe whose lexicon is still to be written is no rival yet; its own submissions say so.
        if other != recipe_id and (solutions / other / "lexicon.toml").is_file():
            words = _read_words(other, solutions)
            strict = tuple(cause.model_copy(update={"loose": ()}) for cause in words.causes if cause.rival)
            rivals.append(Rival.model_validate({"id": other, "says": words.says, "cause": strict}))
    rivals += read_toml(solutions / "rivals.toml", _SharedRivals).rivals
    known = [rival.id for rival in rivals]
    for name in own.not_rivals:
        if name not in known:
            raise UserError(
                f"{solutions / recipe_id / 'lexicon.toml'}: not_rivals names {name!r}, which is no rival: "
                f"{suggestion(name, known)}"
            )
    prompt = exercises / recipe_id / "PROMPT.md"
    return Lexicon(
        says=own.says,
        causes=tuple(_with_other_forms(cause) for cause in own.causes),
        signals=own.signals,
        mechanism=tuple(_other_forms(phrase) for phrase in own.mechanism),
        fix=tuple(_other_forms(phrase) for phrase in own.fix),
        asides=own.asides,
        rivals=tuple(rival for rival in rivals if rival.id not in own.not_rivals),
        prompt=prompt.read_text(encoding="utf-8") if prompt.is_file() else "",
    )


def _with_other_forms(cause: Cause) -> Cause:
    """Return a cause with the other forms of its participles: who writes "is not call" means "is not called".

    Only for a recipe's own cause: nobody is accused by a form that is not written down.
    """
    forms = {
        name: tuple(_other_forms(phrase) for phrase in getattr(cause, name)) for name in ("fault", "loose")
    }
    return cause.model_copy(update=forms)


def _other_forms(phrase: str) -> str:
    return " ".join(
        "|".join(form for choice in word.split("|") for form in _forms(choice)) for word in phrase.split()
    )


def _forms(choice: str) -> tuple[str, ...]:
    if not choice.endswith("ed") or len(choice) < 5:
        return (choice,)
    stem = choice[:-2]
    return (choice, stem, f"{stem}s", f"{stem}e", f"{stem}es", f"{stem}ing")


@cache
def _read_words(recipe_id: str, solutions: Path) -> _Words:
    # Once a process: the words of each recipe are among the rivals of all others.
    return read_toml(solutions / recipe_id / "lexicon.toml", _Words)

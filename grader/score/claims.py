"""What a text says of its own about the cause, in words that the lexicon may lack: an instructor is to read that."""

from grader.score.document import Document
from grader.score.general_words import ADMISSIONS, GENERAL
from grader.score.lexicon import Lexicon
from grader.score.prompt import Prompt, read_prompt
from grader.score.sentences import Sentence
from grader.score.stance_words import BUT
from grader.score.wording import CLAIMS, FUNCTION_WORDS, VAGUE

_LONG = 25  # words: a text as long as this may name the cause in words that the lexicon lacks
_SOME = 8  # words: and so may one sentence of this length; under its heading, any
# Words that not every report has: one sentence with so many makes a claim, and so many where it is vague, or in a text
# that says that it did not find the cause. The thing that is broken, and each word for what it does, are among them.
_OWN, _OWN_WHERE_VAGUE = 2, 5


def find_claims(document: Document, lexicon: Lexicon) -> list[Sentence]:
    """Return the sentences that may tell a cause in words that the lexicon lacks.

    They claim or explain something, in some words that not every report of any experiment has, and not in those
    of the exercise. Where the text says that the cause was not found ("I am not sure which part it is"), or a
    sentence is vague ("something is wrong with ..."), it takes more such words.
    """
    prompt = read_prompt(lexicon.prompt)
    things = tuple(
        phrase for cause in lexicon.causes for phrase in cause.thing if phrase not in lexicon.signals
    )
    admitted = any(admits(s) for s in document.sentences if s.part in ("root cause", None))
    found: list[Sentence] = []
    most = 0
    for sentence in document.sentences:
        headed = sentence.part is not None
        long = headed or document.word_count >= _LONG or len(sentence.words) >= _SOME
        if sentence.part not in ("root cause", None) or not long or prompt.is_retold_in(sentence):
            continue
        about_thing = bool(sentence.find(things))
        needed = _OWN_WHERE_VAGUE if admitted or _is_vague(sentence) else 1
        own = own_words(sentence, lexicon, prompt) | ({"thing"} if about_thing else set())
        telling = about_thing or headed or _tells(sentence, lexicon)
        if telling and len(own) >= needed:
            found.append(sentence)
            most = max(most, len(own))
    return found if most >= _OWN else []


def own_words(sentence: Sentence, lexicon: Lexicon, prompt: Prompt) -> set[str]:
    """Return the words of a sentence that neither the exercise nor every report of any experiment has."""
    seen = {at for span in sentence.find(lexicon.signals) for at in range(span.start, span.end)}
    general = {at for span in sentence.find(GENERAL) for at in range(span.start, span.end)}
    mechanism = {sentence.line.words[span.start] for span in sentence.find(lexicon.mechanism)}
    return mechanism | {
        word
        for at, word in enumerate(sentence.line.words)
        if at not in seen
        and at not in general
        and word not in FUNCTION_WORDS
        and word not in prompt.words
        and len(word) > 1
        and not word[0].isdigit()
    }


def admits(sentence: Sentence) -> bool:
    """Say whether a sentence says that the cause was not found, and does not go on to say that it was then."""
    spans = sentence.find(ADMISSIONS)
    after = sentence.line.words[spans[-1].end :] if spans else ()
    return bool(spans) and not any(word in (*BUT, "until", "then", "now") for word in after)


def _tells(sentence: Sentence, lexicon: Lexicon) -> bool:
    if sentence.find((*CLAIMS, *lexicon.mechanism)):
        return True
    told_of_oneself = any(word in ("i", "we") for word in sentence.line.words)
    return len(sentence.words) >= _SOME and bool(sentence.find(lexicon.signals)) and not told_of_oneself


def _is_vague(sentence: Sentence) -> bool:
    """Say whether it could be said of any experiment. "It was wrong by two powers of ten" could not."""
    words = sentence.line.words
    return any(words[span.end : span.end + 1] not in (("by",), ("because",)) for span in sentence.find(VAGUE))

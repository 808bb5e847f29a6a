"""The words by which the parts of a report are told: headings, labels, and cues in a text without either."""

from typing import Literal

from grader.score.words import word_set

Part = Literal["symptom", "root cause", "fix", "verification"]
# Headings in any common wording; the first that is found in a heading decides.
HEADINGS: dict[Part, tuple[str, ...]] = {
    "root cause": (
        "root cause*", "cause*", "reason*", "diagnos*", "why", "what was|is|went|goes wrong", "explanation", "analysis",
        "the bug", "bug", "culprit", "mechanism", "problem cause", "explanations", "origin*", "interpretation",
        "consideration*", "discussion", "where it comes from", "from where it comes", "what causes|caused",
        "hypothesis confirmed", "what is behind", "what happens inside|internally", "etiology", "theory",
        "underlying problem|issue|reason", "conclusion about", "aetiology", "how it comes|came about|to", "background",
        "reasoning", "what is going on", "how it|this happens|happened", "because", "where it goes|went wrong", "fault",
        "source of the", "what goes on", "deduction", "inference",
    ),
    "verification": (
        "verif*", "validation", "check*", "confirm*", "evidence that it works", "proof", "test*", "result*",
        "after the fix", "after fixing", "how i know", "outcome", "does it work", "control", "after", "now",
        "validated", "after the change|repair|correction", "evidence of the fix", "success", "recheck*", "re check*",
        "how i checked|verified|tested", "effect of the fix", "afterwards", "experiment after", "re run", "rerun",
        "with the|this change|fix|repair|correction|edit|remedy|line|call", "follow up", "followup", "aftercare",
        "prognosis",
        "hold|holds|held up|it|that", "does it|this|that hold|help|work", "is it cured|fixed|solved|gone",
        "it works|worked",
        "works now", "did it work|help", "how it went|goes|looks now", "how do i|you know", "how one knows",
        "fixed|repaired|corrected|new|second|healed|treated run", "evaluation of the fix|repair|change|intervention",
        "evidence for the fix|repair", "what happened then|afterwards|after|next", "what came of it", "recovery",
        "what is|was|i|we|one ... now|afterwards|after|then", "what i|we got|get",
        "what is|was result|outcome|the", "what came out", "confirmation", "acceptance", "quality control",
        "post", "proved|proven", "did that help",
    ),
    "fix": (
        "fix*", "repair*", "solution*", "change*", "remedy", "correction*", "patch", "edit*",
        "what i|we changed|did|do|change|have", "what to change",
        "what i have changed|done|made", "countermeasure*", "counter measure*", "measure|measures", "cure", "treatment",
        "modification*", "action*", "resolution", "resolved", "intervention", "mending", "mended", "how i fixed|solved",
        "how to fix|solve", "therapy", "what to do", "adjustment*", "diff", "code change",
        "what i altered|modified|edited",
        "how it was|is fixed|repaired|solved|mended", "how fixed|repaired|solved", "surgery",
        "what was changed|done|fixed",
        "how i|we repaired|mended|cured", "the cure|edit", "what helped|helps", "what we changed|did",
    ),
    "symptom": (
        "symptom*", "observation*", "observed", "what happen*", "what i saw|see|observed", "signal*",
        "problem*", "behavio*", "issue*", "evidence", "phenomen*", "what one sees|saw", "what can be seen",
        "what is seen|observed", "what the log shows|says", "what you see", "effect*", "before", "situation", "status",
        "what we see|saw", "finding*", "description", "presentation", "facts", "complaint*", "anamnesis",
        "case history", "what i noticed|find|found", "what is|was noticed|there", "the log", "anomal*", "measurement*",
        "what is wrong", "what is the problem",
    ),
}  # fmt: skip
# Short labels, where a whole one is the word: "saw: ...", "why: ...", "done: ...", "ok? ...".
QUESTION_WORDS = ("what", "how", "why", "where", "which", "does", "did", "is", "who")
LABELS: dict[str, Part] = {
    "s": "symptom", "rc": "root cause", "c": "root cause", "f": "fix", "v": "verification",
    "saw": "symptom", "seen": "symptom", "obs": "symptom", "what": "symptom", "see": "symptom", "log": "symptom",
    "sym": "symptom", "data": "symptom", "finding": "symptom", "findings": "symptom",
    "cause": "root cause", "because": "root cause", "root": "root cause",
    "did": "fix", "done": "fix", "changed": "fix", "do": "fix", "change": "fix", "edited": "fix",
    "got": "verification", "ok": "verification", "after": "verification", "now": "verification",
    "then": "verification", "verified": "verification", "checked": "verification", "fixed run": "verification",
    "evaluation": "verification", "evidence": "verification", "post": "verification",
}  # fmt: skip
ARTICLES = word_set("the a an my our and in its")
# Of a text without headings: words that tell which part a sentence belongs to.
CUES: dict[Part, tuple[str, ...]] = {
    "root cause": (
        "because", "cause*", "reason", "due to", "culprit", "comes|came|stems from", "responsible", "since", "so that",
        "the bug is|was", "is|was wrong", "that is|was why", "guilty", "to blame", "fault", "as a result", "hence",
        "therefore", "origin*", "explain*", "problem is|was", "mistake is|was", "comes|came from", "stem*", "due",
    ),
    "fix": (
        "fix*", "repair*", "solution", "changed", "changing", "replac*", "remov*", "restor*", "put|putting ... back",
        "set|setting ... back|to", "add|added|adding", "delet*", "insert*", "call|called|calling ... before|again",
        "correct*", "edit*", "mend*", "return*", "revert*", "undo", "undid", "undone", "reset*", "lower*", "reduc*",
        "decreas*", "divid*", "multipl*", "took|take|taken|taking ... out|away|off", "brought|bring ... back",
        "switch*", "quit*", "kick*",
        "threw|throw|thrown ... out|away", "get|got rid", "comment* ... out", "commented", "modif*", "adjust*",
        "use|used|using ... instead|again|now", "introduc*", "reintroduc*", "reinstat*", "re add*", "re enabl*",
        "wrote|written|write ... instead", "drop|dropped|dropping", "cut", "erase*", "exchang*", "swapp*", "patch*",
        "wrap*", "i|we set|put|call|use|write|took|made",
    ),
    "verification": (
        "verif*", "confirm*", "after the fix|change|repair|edit", "after this|that|it", "afterwards",
        "with the fix", "now", "with this|that|it|these|the change|edit|repair|line|correction", "afterward",
        "ran|run it|the experiment again|once more", "after removing|adding|deleting|restoring|setting|putting",
        "this time", "from then on", "since then", "finally", "meanwhile", "at last", "healthy run", "check*",
        "fixed run", "re ran|run", "reran", "rerun*", "again", "after fixing", "new run", "second run",
        "fixed|solved ... it", "works", "worked", "recover*", "back to normal",
    ),
    "symptom": (
        "observ*", "i saw|see|noticed", "symptom", "in|at step|epoch", "at first", "starts|started", "begins|began",
        "explod*", "diverg*", "stays", "stayed", "stuck", "blew|blows|blow up", "grow*", "grew", "climb*", "ris*",
        "drop*", "fall*", "jump*", "shows", "showed", "loss", "accuracy", "gradient*",
    ),
}  # fmt: skip

"""The words of plain English by which the rules read an explanation; those of one recipe are in its lexicon."""

from typing import Literal

Part = Literal["symptom", "root cause", "fix", "verification"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Headings in any common wording; the first that is found in a heading decides.
HEADINGS: dict[Part, tuple[str, ...]] = {
    "root cause": (
        "root cause*", "cause*", "reason*", "diagnos*", "why", "what was|is|went|goes wrong", "explanation", "analysis",
        "the bug", "bug", "culprit", "mechanism", "problem cause", "explanations", "origin*", "interpretation",
        "consideration*", "discussion", "where it comes from", "from where it comes", "what causes|caused",
        "hypothesis confirmed", "finding*", "what is behind", "what happens inside|internally", "etiology", "theory",
        "underlying problem|issue|reason", "conclusion about",
    ),
    "verification": (
        "verif*", "validation", "check*", "confirm*", "evidence that it works", "proof", "test*", "result*",
        "after the fix", "after fixing", "how i know", "outcome", "does it work", "control", "after", "now",
        "validated", "after the change|repair|correction", "evidence of the fix", "success", "recheck*", "re check*",
        "how i checked|verified|tested", "effect of the fix", "afterwards", "experiment after", "re run", "rerun",
    ),
    "fix": (
        "fix*", "repair*", "solution*", "change*", "remedy", "correction*", "patch", "edit*", "what i changed|did",
        "what i have changed|done|made", "countermeasure*", "counter measure*", "measure|measures", "cure", "treatment",
        "modification*", "action*", "resolution", "resolved", "intervention", "mending", "mended", "how i fixed|solved",
        "how to fix|solve", "therapy", "what to do", "adjustment*", "diff", "code change",
    ),
    "symptom": (
        "symptom*", "observation*", "observed", "what happened|happens", "what i saw|see|observed", "signal*",
        "problem*", "behavio*", "issue*", "evidence", "phenomen*", "what one sees|saw", "what can be seen",
        "what is seen|observed", "what the log shows|says", "what you see", "effect*", "before", "situation", "status",
        "what we see|saw", "finding in the log", "description",
    ),
}  # fmt: skip

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
        "decreas*", "took|take|taken|taking ... out|away|off", "brought|bring ... back", "switch*", "quit*", "kick*",
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

# What is done to a line of code, or to what it holds.
EDITS = (
    "remov*", "delet*", "drop|dropped|dropping", "quit*", "kick*", "cut", "cuts", "cutting", "strip*", "eras*",
    "discard*", "eliminat*", "get|got|getting rid", "throw*|threw|thrown out|away", "threw ... out|away", "comment*",
    "took|take|taken|taking ... out|away|off|back|from", "out of", "without", "no more", "gone", "disabl*", "undo",
    "undid", "undone", "revert*", "reset*", "restor*", "return*", "back", "bring|brought", "reinstat*", "reintroduc*",
    "re add*", "re enabl*", "readd*", "reinsert*", "add*", "insert*", "append*", "introduc*", "includ*", "put|putting",
    "set|setting", "call*", "us*", "enabl*", "activat*", "switch*", "turn*", "wrap*", "chang*", "replac*",
    "exchang*", "swap*", "substitut*", "modif*", "correct*", "adjust*", "edit*", "mend*", "fix*", "repair*", "patch*",
    "reduc*", "lower*", "decreas*", "divid*", "cleared", "clean*", "made", "make", "wrote", "write", "written",
    "again", "instead", "now", "left out", "leave ... out", "no longer", "as it should|was|were",
    "first statement|line",
    "became", "becomes", "becoming", "so",
)  # fmt: skip
FIX_NOUNS = ("solution", "fix", "repair", "remedy", "cure", "correction", "countermeasure", "answer")

# What ties two statements together.
CONNECTIVES = (
    "because", "since", "so", "therefore", "thus", "hence", "consequently", "as a result", "that is why", "which",
    "this is why", "due to", "lead* to", "led to", "cause*", "causing", "make", "makes", "made", "making", "mean*",
    "explain*", "then", "result* in|from", "produc*", "give", "gives", "gave", "turn* into", "comes|came|come from",
    "stems from", "when", "until", "as", "by", "after", "and then", "follow*", "push*", "send*", "sent", "forc*",
    "prevent*", "let", "lets", "keep*", "kept", "for this reason", "why", "from", "whenever", "every time", "once",
    "with", "if", "where", "while",
)  # fmt: skip
# A second sentence that opens with one of these goes on with the first.
POINTERS = (
    "this", "that", "it", "its", "these", "those", "they", "such", "so", "therefore", "thus", "hence", "then",
    "consequently", "as a result", "because of this", "which", "after", "with", "without", "now", "both", "each",
    "every", "the", "to", "for this reason", "from",
)  # fmt: skip
# Of these, the ones that can stand for what the first sentence named.
PRONOUNS = ("this", "that", "it", "these", "those", "they", "which", "such a")

NEGATORS = ("not", "no", "never", "neither", "nor", "nothing", "hardly", "without", "none")
# Not a negation, whatever it looks like.
NOT_NEGATIONS = (
    "not only", "not just", "not merely", "not simply",
    "not solely", "not purely", "no doubt", "no wonder", "not surprising*", "no longer than", "no matter",
    "not until", "nothing but",
)  # fmt: skip
# "It is not merely a large step" says that it is more than that, and "but also" that it is that as well.
MORE_THAN = ("not just|merely|simply|solely|purely", "more than just|merely|simply|only")
AS_WELL = ("but", "also", "too", "as well", "and", "it is also")
# Between a negator and what it negates stand only words such as these.
TRANSPARENT = _set(
    """a an the any that this it in of at on by with from to for due because caused cause causes come comes came
    coming problem problems issue issues fault bug reason evidence sign signs be is was were are been being have has
    had do does did simply really just actually about lie lies lay wrong explained explain caused sort kind case
    something some other another too our my its such also either than because"""
)
DETERMINERS = _set("the a an any due because caused by from in about with at of to even some")
CONTRASTS = (
    "but",
    "however",
    "although",
    "though",
    "whereas",
    "while",
    "yet",
    "instead",
    "rather",
    "nevertheless",
)
# After a hypothesis, these take it back; "while" and "instead" need not.
BUT = ("but", "however", "although", "though", "yet", "nevertheless", "whereas")
# These begin something new: a negation before them says nothing about what follows.
CAUSAL = _set("because since so therefore thus hence as why which when until if where after")

BEFORE_RULED_OUT = (
    "rule|ruled|rules|ruling out", "exclud*", "eliminat*", "reject*", "discard*", "dismiss*", "instead of",
    "rather than", "unlike", "other than", "apart from", "except for", "as opposed to", "nothing to do with",
    "independent of", "free of", "far from", "checked against", "unrelated to", "innocent",
)  # fmt: skip
# What is said of a thing that is as it should be; here "no" or "nothing" does not say that it is missing.
CLEARED = (
    "no|any|not problem*|issue*|fault*|error*|mistake*|bug*|trouble|concern*|objection* with|in|of|about|against|at|to",
    "not|no a|an|the problem|issue|fault|error|mistake|bug with|in|of|about|at",
    "nothing wrong|bad|odd|strange|unusual|suspicious with|in|about|at", "nothing against",
)  # fmt: skip
# What introduces a list of causes that were ruled out.
LIST_RULED_OUT = (
    "rule|ruled|rules|ruling out", "rule|ruled|ruling ... out", "exclud*", "eliminat*", "reject*", "discard*",
    "dismiss*", "not the cause*|reason*", "not causes", "what it is|was not", "could|can be ruled out",
    "wrong guess*", "dead ends",
    "alternatives considered|ruled",
)  # fmt: skip
AFTER_RULED_OUT = (
    "ruled|rules|rule out", "be|is|was|were|are|been excluded|eliminated|rejected|dismissed|refuted|wrong|false",
    "not the|a|my cause|reason|problem|culprit|explanation|issue|bug|case|root|case|error|fault", "is|was not it",
    "is|was not to blame", "can|could|does|did|do|would not explain|be|account|cause|produce|give|fit|match|show",
    "did|does|do not help|change|matter|fix|solve|cure|remove|improve|hold|apply|work", "no difference|effect|help",
    "made|makes no", "did nothing", "changed|changes nothing", "helped little", "innocent", "unlikely",
    "turned|turns out ... wrong|false|fine|not", "is|was|were|are|look*|seem* fine|ok|okay|healthy|correct",
    "contradict*", "against this|that|it", "does|did not follow", "only delays|delayed", "nothing changed",
    "still explod*|diverg*|fail*", "was|is not true|right", "speaks|spoke against",
)  # fmt: skip
# The same, where it may stand between a thing and its fault: "is wrong" may be the fault.
EXCLUDED = ("be|is|was|were|are|been excluded|eliminated|rejected|dismissed|refuted", "ruled out")
HYPOTHESIS = (
    "suspect*", "i|we thought|think first", "thought", "first|initial|my|our guess|idea|hypothesis|thought|suspicion",
    "first|firstly|initially|originally|naturally i|we ... think|believe*|guess*|assum*|blam*|had|wanted|fear*|bet",
    "first|earlier|previous|next attempt|try", "at first sight|glance",
    "my|our first|initial|original|next|second thought|reaction|instinct|reflex|bet|assumption|diagnosis|suspect",
    "doubted", "i|we doubt", "wonder*", "convinced", "tempt*", "imagin*", "blamed ... first",
    "first ... blamed|doubted|checked",
    "looks|looked|seems|seemed like|as at first",
    "hypothes*", "candidate*", "consider*", "whether", "if", "at first i|we", "initially", "guessed", "believed",
    "one|you might|could|may think|suspect|guess|expect", "possible|other explanation*|cause*|reason*", "to rule out",
    "usual*", "typical*", "commonly", "generally", "often", "test* for", "look* for", "assum*", "expected",
    "tried", "had it been", "were it", "would",
)  # fmt: skip
# Right after a cause: a guess at what it did.
MIGHT = (
    "could|might|may also|have", "would explain|account|fit|match|agree", "would be needed|required|necessary",
    "would have been needed|required|necessary",
)  # fmt: skip
# What would follow from a cause, not what did; and what such a sentence may begin with.
WOULD = ("would", "should give|show", "should have shown|given|led|made|produced")
CONDITIONS = (
    "if", "had|were it|the|there|this|that|zero", "with", "suppos*", "assuming", "in case", "when", "whenever",
)  # fmt: skip
COMPARISON = (
    "like", "as if", "as though", "just as", "as with", "equivalent to", "equal to", "amounts|amount to", "effective",
    "effectively", "in effect", "same as", "same effect as", "similar to", "behaves|acts|works|looks as", "resembl*",
    "corresponds to", "comparable to", "tantamount to", "mimic*",
    "distinguish* ... from", "tell ... from",
)  # fmt: skip

# Between a cause and what it does; what it does may also be told with "then" beside it, or be told first.
SO = (
    "so", "therefore", "thus", "hence", "consequently", "as a result", "in consequence", "which", "makes", "making",
    "made", "causes|causing|caused", "leads|leading|led to", "lets", "turns", "until", "after that|this|which",
)  # fmt: skip
THEN = (
    "then", "afterwards", "effectively", "in effect", "effective", "for that|this|it", "by then", "at|in the end",
)  # fmt: skip
BECAUSE = (
    "because", "since", "as", "due to", "from", "caused by", "owing to", "when", "result of", "thanks to",
)  # fmt: skip
# A sentence that opens with one of these goes on with what the cause does.
SO_OPENING = (
    "so", "this|that makes|made|means|has|had|gives|turns|lets|leads|causes|caused|amounts|works|acts", "that is why",
    "therefore", "thus", "hence", "then", "consequently", "as a result", "after", "afterwards",
    "because of this|that|it", "with this|that|it", "the effect|result|consequence", "in effect", "effectively",
)  # fmt: skip
# What is said with one of these is said besides.
ADDING = (
    "also", "besides", "additional*", "in addition", "moreover", "furthermore", "another", "second", "further",
    "as well", "apart from", "on top of that|this", "other", "independently", "plus",
)  # fmt: skip

# What presents a thing as the cause.
FRAMES = (
    "root cause*", "cause", "causes", "reason", "culprit", "caused by", "due to", "because of", "comes|came|stems from",
    "responsible", "to blame", "the bug|error|mistake|problem|issue|fault is|was|lies|in", "blame*",
)  # fmt: skip
# A text that claims a cause, in whatever words, has one of these.
CLAIMS = (
    "because", "since", "cause*", "due to", "reason", "therefore", "thus", "hence",
    "which|this|that|it makes|made|means",
    "leads|led to", "so", "culprit", "that is why", "as a result", "results in", "consequen*", "the effect", "hereby",
    "as the|a|an|it|its|they|this|that|these|no|nothing|nobody|each|every|all|both|most|there|we|i", "thereby",
)  # fmt: skip
# A guess that says nothing: it can be told of any experiment.
VAGUE = (
    "something", "somehow", "somewhere", "some ... setting*|problem*|bug*|error*|issue*|parameter*|value*|thing*",
    "is|was|were|are not right|correct|ok|good", "not set properly",
    "is|was|were|are wrong|bad|off|incorrect|broken|buggy",
    "wrong|bad|incorrect|strange|weird setting*|value*|parameter*|hyperparameter*|config*|code|line|number",
    "a|an|the problem|issue|bug|error|mistake with|in|of", "misconfigur*", "not set up", "a bug", "a mistake",
    "an error", "an issue", "badly", "properly", "not optimal", "suboptimal", "issues with", "problems with",
)  # fmt: skip
# Nouns that a word such as "too large" may belong to, instead of to the thing further away.
SUBJECTS = (
    "loss", "losses", "accuracy", "gradient*", "weights", "activation*", "labels", "targets", "learning rate",
    "softmax", "variance", "outputs", "logits", "curve",
)  # fmt: skip

# Between a fault and the thing after it, these show that it is said of something before.
BETWEEN = _set(
    "for is are was were be has have had would could can will should may might does did do and or so"
)
# A fault that begins with one of these may be said of the noun after it.
DEGREES = _set("too overly very way far much so bad wrong huge tiny")
# The commonest small words; English prose has about four in ten.
FUNCTION_WORDS = _set(
    """a an and are as at be because been but by can did do does for from had has have how i if in into is it its
    my no not of on or our so than that the their then there these they this to too was we were what when where
    which while who why will with would you your only just also after before again between each every more most
    much now out over same should since such through under until up very own all any both them he she"""
)
FOREIGN_WORDS = (
    _set(
        """der die das und ist nicht ein eine einer den dem mit von zu im auf sich auch wird wurde durch weil aber
    le la les des et est une dans pour que qui pas sur avec par au aux du ce cette il elle sont plus
    el los las y es un una por con para del se como pero fue muy il lo gli che di non per della sono con
    o os as e uma não com por mais foi het een van en niet dat met voor werd"""
    )
    - FUNCTION_WORDS
)
# Forms of verbs by which a line is told from a list of terms.
VERBS = _set(
    """is are was were be been am has have had do does did can could will would should may might must
    explodes exploded explode diverges diverged diverge grows grew grow jumps jumped jump overshoots overshot overshoot
    rises rose rise falls fell fall drops dropped drop climbs climbed climb stays stayed stay starts started start
    becomes became become gets got get goes went go comes came come makes made make causes caused leads led
    means meant gives gave takes took uses used sets set puts put changes changed change fixes fixed fix restores
    restored removes removed adds added calls called divides divided multiplies multiplied sums summed averages averaged
    shuffles shuffled permutes permuted mixes mixed matches belongs belong learns learned learn learnt trains trained
    recovers recovered shows showed show says said sees saw see looks looked reaches reached reach ends ended
    underflows underflowed vanishes vanished rounds rounded flushes flushed loses lost scales scaled unscales
    accumulates accumulated accumulate clears cleared clear forgets forgot keeps kept keep works worked work
    vanish vanishes disappears disappeared disappear stores contains contained contain exceeds exceeded receives
    received passes passed flows flowed turns turned treats treated runs ran tried tries found finds think thought knew
    knows seems seemed noticed removed deleted repaired inserted corrected lowered reduced multiplied stopped represents
    swallows destroys destroyed throws threw flies flew pulls pulled pushes pushed carries carried belongs disagreed
    realized realised discovered understood suspected checked compared cannot begins began increased decreased decreases
    converges converged repeats repeated evaluated validated normalized normalises squeezes squeezed resets emptied
    applies applied apply expects expected needs needed need blows blew blow kills killed moves moved move swings swung
    oscillates oscillated updates updated stalls stalled stall computes computed normalizes feeds fed squashes squashed
    returns returned replaces replaced put lowers lowered verified confirmed agrees agree disagree disagrees differ
    differs mismatch pairs paired gives happens happened explains explained helped helps improved improves"""
)

"""The words by which a sentence rules a cause out, supposes or imagines it, or compares with it."""

from grader.score.words import word_set

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
TRANSPARENT = word_set(
    """a an the any that this it in of at on by with from to for due because caused cause causes come comes came
    coming problem problems issue issues fault bug reason evidence sign signs be is was were are been being have has
    had do does did simply really just actually about lie lies lay wrong explained explain caused sort kind case
    something some other another too our my its such also either than because"""
)
DETERMINERS = word_set("the a an any due because caused by from in about with at of to even some")
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
CAUSAL = word_set("because since so therefore thus hence as why which when until if where after")
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
    "is|was|are|were likewise|also|therefore|thus|hence|equally|clearly|then excluded|eliminated|rejected|dismissed",
    "has|have|had an|a alibi", "is|was|are|were acquitted|exonerated|off|unrelated",
    "not to blame|responsible|guilty|at",
    "is|was|were|are out", "not at fault", "plays|played no role|part", "in vain", "rejected", "refuted",
    "discarded", "excluded",
    "not it|either",
    "not the|a|my cause|reason|problem|culprit|explanation|issue|bug|case|root|case|error|fault", "is|was not it",
    "is|was not to blame", "can|could|does|did|do|would not explain|be|account|cause|produce|give|fit|match|show",
    "did|does|do not help|change|matter|fix|solve|cure|remove|improve|hold|apply|work", "no difference|effect|help",
    "made|makes no", "did nothing", "changed|changes nothing", "helped little", "innocent", "unlikely",
    "turned|turns out ... wrong|false|fine|not", "is|was|were|are|look*|seem* fine|ok|okay|healthy|correct",
    "contradict*", "against this|that|it", "does|did not follow", "only delays|delayed", "nothing changed",
    "still explod*|diverg*|fail*", "was|is not true|right", "speaks|spoke against",
)  # fmt: skip
# The same, where it may stand between a thing and its fault: "is wrong" may be the fault.
EXCLUDED = (
    "be|is|was|were|are|been excluded|eliminated|rejected|dismissed|refuted|acquitted|discarded|cleared", "ruled out",
    "is|was|are|were likewise|also|therefore|thus|hence|equally|too|clearly|then excluded|ruled|rejected|dismissed",
)  # fmt: skip
# After a cause: that it was only a first idea.
AFTER_SUPPOSED = (
    "was|is|were|being|as my|our|the|a first|initial|next|second|original|obvious|natural|early"
    " guess|idea|thought|suspicion|suspect|hypothesis|candidate|explanation|reaction|instinct|assumption|theory|bet",
    "was|were|is my|our guess|idea|hypothesis|suspicion|thought|suspect|assumption", "was|were suspected",
    "came|comes to mind|my", "was|is what i|we first|thought|suspected|blamed|expected", "sprang to mind",
    "seemed|seems likely|plausible|possible|obvious|natural|more", "was|were among the|my suspects|candidates",
)  # fmt: skip
HYPOTHESIS = (
    "suspect*", "i|we thought|think first", "thought", "first|initial|my|our guess|idea|hypothesis|thought|suspicion",
    "first|firstly|initially|originally|naturally i|we ... think|believe*|guess*|assum*|blam*|had|wanted|fear*|bet",
    "first|earlier|previous|next attempt|try", "at first sight|glance",
    "my|our first|initial|original|next|second thought|reaction|instinct|reflex|bet|assumption|diagnosis|suspect",
    "i|we blamed|accused", "doubted", "i|we doubt", "wonder*", "convinced", "tempt*", "imagin*", "blamed ... first",
    "first ... blamed|doubted|checked",
    "looks|looked|seems|seemed like|as at first",
    "hypothes*", "candidate*", "consider*", "whether", "if", "at first i|we", "initially", "guessed", "believed",
    "one|you might|could|may think|suspect|guess|expect", "possible explanation*|cause*|reason*",
    "other explanations|causes|reasons", "to rule out",
    "usual*", "typical*", "commonly", "generally", "often",
    "test*|check*|search*|watch*|hunt*|look*|screen* for", "on the lookout for", "fear* that",
    "check*|verified that", "assum*", "expected",
    "could|might|may have|be been", "it could|might|may", "could|might|may be", "tried", "had it been", "were it",
    "would",
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

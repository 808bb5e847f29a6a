"""The words of plain English by which the rules read an explanation; those of one recipe are in its lexicon."""

from grader.score.words import word_set

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
    "there is|was some|something", "must|has|have to be something|some",
    "must|should|must be contain an error|a|some mistake|bug", "some step|part|place|detail",
    "not done|set|suitable|suited|plausible|reasonable|as|with", "goes|went|go|gets|got wrong|out",
    "i|we suppose|believe|think|guess ... some",
    "an error", "an issue", "badly", "properly", "not optimal", "suboptimal", "issues with", "problems with",
)  # fmt: skip
# Nouns that a word such as "too large" may belong to, instead of to the thing further away.
SUBJECTS = (
    "loss", "losses", "accuracy", "gradient*", "weights", "activation*", "labels", "targets", "learning rate",
    "softmax", "variance", "outputs", "logits", "curve", "marks", "results", "scores", "figures", "values",
    "accuracies", "norm", "norms",
)  # fmt: skip
# Between a fault and the thing after it, these show that it is said of something before.
BETWEEN = word_set(
    "for is are was were be has have had would could can will should may might does did do and or so"
)
# At the head of a sentence behind one that names a thing: that it is not there.
ABSENT = (
    "there is|was|are|were not|no|none|nothing", "it|they|this|that is|was|are not there|present|called|used|done",
    "none is|was|of", "nobody|no one|nothing does|did|calls|called|put", "but there is|was not|no|none",
    "but it|this|that is|was not|missing|absent|nowhere|never", "it|this|that call|line is|was missing|absent|gone",
    "neither", "it is nowhere|missing|absent", "here it is missing|not", "it|this|that never happens|happened",
)  # fmt: skip
# Between a thing and what might be its fault, these begin something else.
SO_BETWEEN = word_set("so therefore thus hence consequently")
# A fault that begins with one of these may be said of the noun after it.
DEGREES = word_set("too overly very way far much so bad wrong huge tiny")
# The commonest small words; English prose has about four in ten.
FUNCTION_WORDS = word_set(
    """a an and are as at be because been but by can did do does for from had has have how i if in into is it its
    my no not of on or our so than that the their then there these they this to too was we were what when where
    which while who why will with would you your only just also after before again between each every more most
    much now out over same should since such through under until up very own all any both them he she"""
)
FOREIGN_WORDS = (
    word_set(
        """der die das und ist nicht ein eine einer den dem mit von zu im auf sich auch wird wurde durch weil aber
    le la les des et est une dans pour que qui pas sur avec par au aux du ce cette il elle sont plus
    el los las y es un una por con para del se como pero fue muy il lo gli che di non per della sono con
    o os as e uma não com por mais foi het een van en niet dat met voor werd"""
    )
    - FUNCTION_WORDS
)
# Forms of verbs by which a line is told from a list of terms.
VERBS = word_set(
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

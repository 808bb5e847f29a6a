"""The words that tie statements together: signal with cause, cause with effect, cause with edit."""

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
FIX_NOUNS = (
    "solution",
    "fix",
    "repair",
    "remedy",
    "cure",
    "correction",
    "countermeasure",
    "answer",
    "reduction",
    "removal",
    "deletion",
    "insertion",
    "addition",
    "restoration",
    "replacement",
    "return to",
    "insert",
    "edit",
    "patch",
    "measure",
)
# What is done to the thing that was just told of.
EDITS_OF_IT = (
    "add|added|remove|removed|delete|deleted|insert|inserted|restored|restore|dropped|drop|erased|called|call|undid|use|used"
    " it|this|that|them|one|these|those",
    "put|brought|took|take|threw|cut|wrote|set|turned|switched it|this|that|them|one back|in|out|away|off|on|there",
    "put|brought|took|take|threw|cut|wrote|turned|switched back|in|out|away|off|on it|this|that|them|one",
    "lowered|reduced|decreased|divided|restored it|this|that",
)  # fmt: skip
# What ties two statements together.
CONNECTIVES = (
    "because", "since", "so", "therefore", "thus", "hence", "consequently", "as a result", "that is why", "which",
    "this is why", "due to", "lead* to", "led to", "cause*", "causing", "make", "makes", "made", "making", "mean*",
    "explain*", "then", "result* in|from", "produc*", "give", "gives", "gave", "turn* into", "comes|came|come from",
    "stems from", "when", "until", "as", "by", "after", "and then", "follow*", "push*", "send*", "sent", "forc*",
    "prevent*", "let", "lets", "keep*", "kept", "for this reason", "why", "from", "whenever", "every time", "once",
    "with", "if", "where", "while",
)  # fmt: skip
# What a conclusion has that is drawn from what was told some sentences before.
CONCLUSIONS = (
    "so", "therefore", "thus", "hence", "consequently", "because", "reason", "that|this is why", "explain*",
    "as a result", "for this reason", "lead|leads|led to", "caus*", "then", "from this", "that|this makes|made",
    "under these|such circumstances|conditions",
    "in this|that|such case|situation",
)  # fmt: skip
# What may be observed of any run, besides the signals of a recipe.
OBSERVED = (
    "not learn|learned|train|converge",
    "learn|learns|learned nothing|anything",
    "loss",
    "losses",
    "accuracy",
    "accuracies",
    "curve|curves",
    "mark|marks",
    "score|scores",
    "result|results",
    "diverg*",
    "explod*",
    "explosion",
    "stall*",
    "swing*",
    "oscillat*",
    "plateau*",
    "learns|learn|learned nothing",
)
# A second sentence that opens with one of these goes on with the first.
POINTERS = (
    "this", "that", "it", "its", "these", "those", "they", "such", "so", "therefore", "thus", "hence", "then",
    "consequently", "as a result", "because of this", "which", "after", "with", "without", "now", "both", "each",
    "every", "the", "to", "for this reason", "from", "their", "under these|such|this", "in this|that|such",
    "given this|that",
)  # fmt: skip
# Of these, the ones that can stand for what the first sentence named.
PRONOUNS = ("this", "that", "it", "these", "those", "they", "which", "such a")
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
    "what is more", "at the same time", "not to mention", "additionally", "next to that|this", "along with",
    "in combination",
    "also", "besides", "additional*", "in addition", "moreover", "furthermore", "another", "second", "further",
    "as well", "apart from", "on top of that|this", "other", "independently", "plus",
)  # fmt: skip

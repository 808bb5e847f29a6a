"""The words around a number: which signal it is said of, and those that make it no claim about a log."""

from grader.score.words import word_set

LOSSES = ("loss", "val_loss", "val_loss_repeated", "val_loss_eval_mode")
ACCURACIES = ("val_accuracy", "val_accuracy_repeated", "val_accuracy_eval_mode")
GRADIENTS = ("grad_norm", "grad_mean", "grad_norm_by_parameter", "grad_zero_fraction", "stale_grad_ratio")
ACTIVATIONS = ("activations.mean", "activations.var")

# Phrases (see `grader.score.phrases`) and the signals of the log that they may mean.
SIGNAL_WORDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("validation|val|test loss*", "val loss repeated", "val loss eval mode"), LOSSES[1:]),
    (("training|train|batch loss*",), LOSSES),
    (("loss", "losses", "cross entropy", "mse"), LOSSES),
    (("error", "errors"), (*LOSSES, "error_rate")),
    (
        ("error|misclassification rate*", "classification error*", "rate|share of errors", "wrong answers"),
        ("error_rate",),
    ),
    (("accuracy", "acc", "accuracies", "val accuracy", "val acc"), ACCURACIES),
    (
        (
            "grad norm", "gradient norm|length*", "norm|length of the gradient*", "gradients norm",
            "grad norm by parameter",
        ),
        ("grad_norm", "grad_norm_by_parameter"),
    ),
    (("norm", "norms"), ("grad_norm", "grad_norm_by_parameter")),
    (("grad mean", "gradient mean*", "mean gradient*"), ("grad_mean",)),
    (("gradient*", "grad", "grads"), GRADIENTS),
    (("learning rate*", "lr", "step size", "rate"), ("lr",)),
    (("grad zero fraction", "zero fraction", "fraction of zero*"), ("grad_zero_fraction",)),
    (("exactly zero", "zeros", "gradient* ... zero"), GRADIENTS),
    (("stale grad ratio", "stale ratio", "stale gradient ratio", "stale*"), ("stale_grad_ratio",)),
    (("variance*", "var"), ("activations.var",)),
    (("activation*", "logits", "outputs", "output", "pre activation*"), ACTIVATIONS),
    (
        ("eval buffer change", "buffer change", "buffers", "running statistics", "batch norm statistics"),
        ("eval_buffer_change",),
    ),
    (("eval mode gain", "gain"), ("eval_mode_gain",)),
    (("eval disagreement", "disagree*"), ("eval_disagreement", *LOSSES, *ACCURACIES)),
    (("second evaluation", "evaluat* twice|again", "eval mode"), (*LOSSES, *ACCURACIES)),
)  # fmt: skip

# A number after one of these counts something, or says where.
PLACE_BEFORE = word_set(
    """step steps epoch epochs batch batches iteration iterations iter line lines seed layer layers class classes
    version python torch pytorch section table figure fig run number parameter index factor digit digits size
    row rows record records col column relu conv linear item point exercise task part first last"""
)  # fmt: skip
# A number before one of these counts them, or compares.
COUNTED_AFTER = word_set(
    """step steps epoch epochs batch batches iteration iterations examples example images image samples sample
    classes class pixels layers layer times x fold lines line words seconds minutes weights parameters digits orders
    st nd rd th points point higher lower larger smaller bigger more less better worse longer shorter neurons units
    entries labels bits bit passes updates evaluations logits mb kb gb cores threads terms elements ones runs tries
    attempts seeds squares errors derivatives differences residuals inputs outputs features predictions
    probabilities targets pictures pairs numbers values columns rows
    s sec min h hour hours days weeks years ms
    additions summands students dimensions channels filters workers items files changes edits"""
)  # fmt: skip
# Of a share in per cent, what it is a share of.
SHARES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        (
            "of the|all|its|my|our digits|images|pictures|examples|samples",
            "of the|all validation|held|test|257|400 digits|images|pictures|examples|samples|set|split|out",
        ),
        (*ACCURACIES, "error_rate"),
    ),
    (
        (
            "of the|all|its gradient*|entries|grads", "of gradient*|grads", "of the|all single|individual gradient*",
            "of the zeros", "zeros", "are|is|were zero", "exactly zero",
        ),
        ("grad_zero_fraction",),
    ),
)  # fmt: skip
# Between a number and the noun that it counts: 257 validation images, 10 held-out ones.
COUNTED_BETWEEN = word_set(
    """validation val training train test held out different mnist percentage digit other squared single individual
    more further such random small possible hidden wrong right correct"""
)
# The distance between two numbers, not one of them.
DISTANCE_BEFORE = word_set("by gap difference differs factor ratio gained lost")
DISTANCE_OF = word_set(
    """factor size number gap difference ratio increase rise gain drop decrease improvement reduction change fall
    jump"""
)
ABOVE = word_set("above over beyond exceeds exceeded exceeding past than passes passed least")
BELOW = word_set("below under within most beneath")
ABOUT = word_set(
    """about around roughly approximately approx nearly almost circa ca some near close order towards
    toward"""
)  # fmt: skip
ABOUT_AFTER = (("or", "so"), ("ish",), ("or", "thereabouts"), ("give", "or", "take"))
ARTICLES = word_set("of only is was at even still just the a an to more well far are were now again")
# A signal behind one of these is not what the number before was said of.
GOES_ON = word_set("and while so with plus but then when where which that at versus vs than as")
COPULAS = word_set("is was are were be been being equals equal has had of")
POINTING = word_set("the that this each every one its their these those a an first such")
# A noun behind which a number may still be said of the signal before: "the loss, in the last step, is 0.1".
NOUNS_OF_A_RUN = word_set(
    """loss step steps epoch epochs batch batches run runs end start beginning value values number numbers level
    minimum maximum peak mean average median norm training validation test split set network model experiment curve
    minima max min result results figure figures first last second third final worst best lowest highest one rest
    same time course log row rows column entry entries ones mark marks score scores floor ceiling top bottom
    gradient accuracy rate amplitude plateau"""
)
# A derivative by something, or a product of two signals: no log has it.
RESPECT = ("with respect to", "respect to", "w r t", "wrt", "rate|lr times|x|multiplied the|by|gradient*")
# A sentence that calculates: a number in it may come of two others.
ARITHMETIC = (
    "times", "x", "divid*", "divis*", "ratio*", "product", "multipl*", "factor", "difference*", "minus", "plus",
    "quotient", "that is", "i e",
)  # fmt: skip
# What two numbers are the ends of, in "between 9 and 10 %"; the second is one word after the first.
RANGES = (
    "between", "range", "ranges|ranging|varies|varying|vary|varied|fluctuates|fluctuating|oscillates from",
    "varies|fluctuates|oscillates|swings|jumps between",
)  # fmt: skip
# What introduces a rate in a sentence about it.
OTHER_RATE = ("with|at|using|under|for|when ... lr|rate", "with|at|using|under|for|when ... step size")
# A sentence about a run that the logs do not hold: what might be, or what the student tried besides.
OTHER_RUN = (
    "tried", "trying", "another|other run|seed|rate|value", "experiment*", "would", "should", "expect*", "if", "seed",
    "clip*", "lowering", "lowered", "reducing", "raising", "increasing", "overfit*", "single batch", "one batch",
    "by hand", "in theory", "theoretical*", "predict*", "bound", "limit", "minimum", "smallest", "at best", "cannot",
    "in float32", "with float32", "without", "try", "when i|we set|use|used|put", "my|the other|last homework|project",
    "normally", "usual*", "typical*", "cross check", "ran|run|rerun|repeated|tested|checked ... batch size",
    "instead of", "calculat*", "comput*", "formula",
)  # fmt: skip

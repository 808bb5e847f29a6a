"""The tables of the grammar of plain edits: Python's syntax, the libraries, Python's own names.

What has no entry here is not plain. `plain_edit.py` walks by these tables, `kinds.py` holds those of attributes.
"""

import builtins
import math
from collections.abc import Mapping


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# For each class of `ast`, what each of its fields holds:
#   visit    nodes that Python evaluates, stores to, or binds names with: each is judged in turn
#   block    statements: each is judged on its own
#   check    what the judge of this class looks at (`_Judge._check_*`)
#   name     a name that is bound: it must not be one of Python's
#   free     nothing that is evaluated
#   empty    must be absent or empty
# "-" means that the class is not covered at all.
_SYNTAX = """
Module           body:block type_ignores:free
FunctionDef      name:name args:visit body:block decorator_list:check returns:visit type_comment:free type_params:empty
ClassDef         name:name bases:check keywords:empty body:block decorator_list:check type_params:empty
Return           value:visit
Assign           targets:visit value:visit type_comment:free
AugAssign        target:check op:free value:visit
AnnAssign        target:visit annotation:visit value:visit simple:free
For              target:visit iter:visit body:block orelse:block type_comment:free
If               test:visit body:block orelse:block
With             items:visit body:block type_comment:free
Raise            exc:visit cause:visit
Try              body:block handlers:visit orelse:block finalbody:block
Assert           test:visit msg:visit
Import           names:check
ImportFrom       module:check names:check level:check
Expr             value:visit
Pass
Break
Continue
BoolOp           op:free values:visit
NamedExpr        target:visit value:visit
BinOp            left:visit op:free right:visit
UnaryOp          op:free operand:visit
Lambda           args:visit body:visit
IfExp            test:visit body:visit orelse:visit
Dict             keys:visit values:visit
Set              elts:visit
ListComp         elt:visit generators:visit
SetComp          elt:visit generators:visit
DictComp         key:visit value:visit generators:visit
GeneratorExp     elt:visit generators:visit
Compare          left:visit ops:free comparators:visit
Call             func:visit args:visit keywords:visit
FormattedValue   value:visit conversion:free format_spec:visit
JoinedStr        values:visit
Constant         value:check kind:free
Attribute        value:visit attr:check ctx:check
Subscript        value:visit slice:visit ctx:check
Starred          value:visit ctx:free
Name             id:check ctx:check
List             elts:visit ctx:free
Tuple            elts:visit ctx:free
Slice            lower:visit upper:visit step:visit
comprehension    target:visit iter:visit ifs:visit is_async:empty
ExceptHandler    type:check name:name body:block
arguments        posonlyargs:visit args:visit vararg:visit kwonlyargs:visit kwarg:empty defaults:visit kw_defaults:visit
arg              arg:name annotation:visit type_comment:free
keyword          arg:check value:visit
withitem         context_expr:check optional_vars:visit
alias            name:check asname:check
AsyncFunctionDef -
AsyncFor         -
AsyncWith        -
Await            -
Delete           -
Global           -
Nonlocal         -
Match            -
TryStar          -
While            -
TypeAlias        -
Yield            -
YieldFrom        -
TemplateStr      -
Interpolation    -
Interactive      -
Expression       -
FunctionType     -
TypeIgnore       -
TypeVar          -
ParamSpec        -
TypeVarTuple     -
match_case       -
MatchAs          -
MatchClass       -
MatchMapping     -
MatchOr          -
MatchSequence    -
MatchSingleton   -
MatchStar        -
MatchValue       -
"""
# Each class of `ast` that is covered, with the rule of each field.
SYNTAX: dict[str, Mapping[str, str]] = {
    name: dict(field.split(":") for field in fields)
    for name, *fields in map(str.split, _SYNTAX.strip().split("\n"))
    if fields != ["-"]
}
REFUSED = {line.split()[0] for line in _SYNTAX.strip().split("\n") if line.split()[1:] == ["-"]}
# How messages call what is not covered; the others by the class of `ast`.
SPELLED = {
    "AsyncFunctionDef": "`async def`", "AsyncFor": "`async for`", "AsyncWith": "`async with`", "Await": "`await`",
    "Delete": "`del`", "Global": "`global`", "Nonlocal": "`nonlocal`", "Match": "`match`", "TryStar": "`except*`",
    "While": "`while`", "Yield": "`yield`", "YieldFrom": "`yield from`", "TypeAlias": "`type`", "NamedExpr": "`:=`",
    "FunctionDef": "a function inside a function", "ClassDef": "a class inside a function", "Lambda": "`lambda` here",
    "kwarg": "arguments of any name", "keywords": "keywords of a class", "type_params": "type parameters",
    "is_async": "`async for`",
}  # fmt: skip
# Which statements are covered at the top of a file, in a class, and in a function.
PLACES = {
    "top": words("Import ImportFrom FunctionDef ClassDef Assign AnnAssign Expr"),
    "class": words("FunctionDef Assign AnnAssign"),
    "function": words(
        "Import ImportFrom Return Assign AugAssign AnnAssign For If With Raise Try Assert Expr Break Continue"
    ),
}

CONTEXTS = words(
    """
    torch.no_grad torch.enable_grad torch.inference_mode torch.set_grad_enabled torch.autocast torch.amp.autocast
    torch.cuda.amp.autocast torch.autograd.detect_anomaly torch.autograd.set_detect_anomaly
    """
)
LOSSES = words("BCEWithLogitsLoss CrossEntropyLoss HuberLoss KLDivLoss L1Loss MSELoss NLLLoss SmoothL1Loss")
# What an inserted statement may use of each module. All of it computes, and reaches nothing else.
LISTED: dict[str, frozenset[str]] = {
    "torch": words(
        """
        Tensor Generator GradScaler Size device dtype bfloat16 bool float float16 float32 float64 half int int32 int64
        long inf nan pi no_grad enable_grad inference_mode set_grad_enabled autocast manual_seed get_rng_state
        set_rng_state abs add all allclose amax amin any arange argmax argmin argsort bernoulli bincount bucketize cat
        chunk clamp clip concat cos cosine_similarity count_nonzero cumprod cumsum diag diff div dot einsum empty_like
        eq equal erf exp expm1 eye finfo flatten flip floor full full_like gather ge gt heaviside histc index_select
        is_tensor isclose isfinite isin isinf isnan kthvalue le lerp linspace log log10 log1p log2 log_softmax
        logical_and logical_not logical_or logspace logsumexp lt masked_fill masked_select matmul max maximum mean
        median meshgrid min minimum mm mode movedim mul multinomial nan_to_num nanmean ne neg nonzero norm normal numel
        ones ones_like outer permute pow prod quantile rand rand_like randint randint_like randn randn_like randperm
        reciprocal relu reshape roll rot90 round rsqrt scalar_tensor scatter searchsorted sigmoid
        sign sin softmax sort split sqrt square squeeze stack std std_mean sub sum swapaxes t take_along_dim tanh
        tensor tile topk trace transpose tril triu trunc unbind unique unsqueeze var var_mean where zeros zeros_like
        """
    ),
    "torch.amp": words("GradScaler autocast"),
    "torch.cuda": words("is_available"),
    "torch.cuda.amp": words("GradScaler autocast"),
    "torch.autograd": words("backward grad detect_anomaly set_detect_anomaly"),
    "torch.linalg": words("norm vector_norm matrix_norm"),
    "torch.nn": LOSSES
    | words(
        """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AvgPool1d AvgPool2d BatchNorm1d BatchNorm2d Conv1d Conv2d ConvTranspose2d
        Dropout Dropout1d Dropout2d ELU Embedding Flatten GELU GRU GRUCell GroupNorm Hardswish Identity InstanceNorm2d
        LSTM LSTMCell LayerNorm LeakyReLU Linear LogSoftmax MaxPool1d MaxPool2d Mish Module ModuleList
        MultiheadAttention PReLU Parameter RMSNorm RNN ReLU ReLU6 SELU Sequential SiLU Sigmoid Softmax Softplus Tanh
        TransformerEncoder TransformerEncoderLayer Unflatten Upsample ZeroPad2d
        """
    ),
    "torch.nn.functional": words(
        """
        adaptive_avg_pool2d avg_pool1d avg_pool2d batch_norm binary_cross_entropy_with_logits conv1d conv2d
        cosine_similarity cross_entropy dropout elu embedding gelu group_norm huber_loss interpolate kl_div l1_loss
        layer_norm leaky_relu linear log_softmax logsigmoid max_pool1d max_pool2d mse_loss nll_loss normalize one_hot
        pad relu scaled_dot_product_attention sigmoid silu smooth_l1_loss softmax softplus tanh
        """
    ),
    "torch.nn.init": words(
        """
        calculate_gain constant_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ trunc_normal_ uniform_
        xavier_normal_ xavier_uniform_ zeros_
        """
    ),
    "torch.nn.parameter": words("Parameter"),
    "torch.utils.data": words("DataLoader TensorDataset"),
    "torch.nn.utils": words("clip_grad_norm_ clip_grad_value_ get_total_norm parameters_to_vector"),
    "torch.nn.utils.rnn": words("pack_padded_sequence pack_sequence pad_packed_sequence pad_sequence"),
    "torch.optim": words("ASGD Adadelta Adagrad Adam AdamW Adamax NAdam Optimizer RAdam RMSprop SGD"),
    "torch.optim.lr_scheduler": words(
        """
        ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LRScheduler LambdaLR LinearLR
        MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR SequentialLR StepLR
        """
    ),
    "collections": words("Counter OrderedDict defaultdict"),
    "copy": words("copy deepcopy"),
    "dataclasses": words("asdict dataclass"),
    "logging": words("DEBUG INFO WARNING basicConfig debug error getLogger info warning"),
    "math": frozenset(name for name in vars(math) if not name.startswith("_")),
    "harness": frozenset(),
    "harness.schedules": words("warmup_cosine"),
    "time": words("perf_counter time"),
    "typing": words("Any Callable Dict Iterable Iterator List NamedTuple Optional Sequence Tuple Union"),
    "collections.abc": words("Callable Iterable Iterator Mapping Sequence"),
    "__future__": words("annotations"),
}


def is_listed(path: str) -> bool:
    """Return whether a dotted path is one of those in `LISTED`."""
    module, _, name = path.rpartition(".")
    return name in LISTED.get(module, ())


# What may be made once at the top of a file: it counts no calls.
KEPT = frozenset(
    {"logging.getLogger", "torch.device", "torch.GradScaler", "torch.amp.GradScaler", "torch.cuda.amp.GradScaler"}
    | {f"torch.nn.{name}" for name in LOSSES}
)
# Calls that keep or use an argument where nothing judges it: how many positional arguments and which keywords they
# may have. They must be called by their own name. A file, a callback, a memory or a process would come in otherwise.
ARGUMENTS: dict[str, tuple[int, frozenset[str]]] = {
    "print": (1000, words("sep end flush")),
    "logging.basicConfig": (0, words("level format datefmt")),
    "logging.getLogger": (1, words("")),
    **{f"logging.{name}": (20, words("")) for name in ("debug", "info", "warning", "error")},
    "copy.copy": (1, words("")),
    "copy.deepcopy": (1, words("")),
    "torch.utils.data.DataLoader": (3, words("batch_size shuffle drop_last generator")),
    "torch.optim.lr_scheduler.CyclicLR": (5, words("max_lr base_lr step_size_up step_size_down mode gamma")),
    "torch.optim.lr_scheduler.LambdaLR": (3, words("lr_lambda last_epoch")),
    "torch.optim.lr_scheduler.MultiplicativeLR": (3, words("lr_lambda last_epoch")),
    "dataclasses.dataclass": (0, words("frozen eq order repr slots kw_only")),
    "dataclasses.asdict": (1, words("")),
    **{path: (3, words("device_type dtype enabled mode cache_enabled check_nan")) for path in CONTEXTS},
}
# Only annotations and bases name these.
NEVER_CALLED = tuple(f"{module}." for module in ("typing", "collections.abc"))
LAMBDA_SCHEDULES = words("torch.optim.lr_scheduler.LambdaLR torch.optim.lr_scheduler.MultiplicativeLR")
# A layer that gets an iterator would keep it; these two empty theirs.
HOLDS_LAYERS = words("torch.nn.Sequential torch.nn.ModuleList")

# What the harness looks up in an experiment, or in its network, before it measures: an edit does not add these. FROZEN
# names the layers that checks expect to rest: an edit does not change it either.
ASKED = words("FROZEN AMP AUGMENT INTERRUPTED_AT replicas")

# Python's own names. A type may be passed on, a function only called.
TYPES = words("bool dict float frozenset int list object set str tuple")
FUNCTIONS = words(
    """
    abs all any divmod enumerate filter hasattr isinstance iter len map max min next pow print range repr reversed
    round sorted sum zip
    """
)
ERRORS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
)
PYTHON = frozenset(dir(builtins))
# Calls that use a function of the file at once: the position of that function, and its keyword.
USES_FUNCTION = {"map": (0, ""), "filter": (0, ""), "sorted": (-1, "key"), "min": (-1, "key"), "max": (-1, "key")}

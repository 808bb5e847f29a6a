"""The tables that define plain (provably harmless) edits: Python's syntax, library functions, and built-in names.

If code uses something without an entry in these tables, it is not plain. `plain_edit.py` applies the tables. The tables
of attributes and methods are in `allowed.py`.
"""

import builtins
import math
from collections.abc import Mapping


def words(text: str) -> frozenset[str]:
    """Return the set of words in a text."""
    return frozenset(text.split())


# The rule for each field of each class of `ast`:
#   visit    nodes that Python evaluates, assigns to, or uses to bind names; each node is judged
#   block    statements, which are judged separately
#   check    a method for this class of nodes judges the field (`_StatementJudge._check_*`)
#   name     a name that the node binds, which must not be a built-in name
#   free     Python never evaluates this field, so any content is allowed
#   empty    must be absent or empty
# "-" means that nodes of this class are never plain.
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
Yield            value:visit
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
# For each class of `ast` whose nodes may be plain, {field: rule}.
SYNTAX: dict[str, Mapping[str, str]] = {
    name: dict(field.split(":") for field in fields)
    for name, *fields in map(str.split, _SYNTAX.strip().split("\n"))
    if fields != ["-"]
}
REFUSED = {line.split()[0] for line in _SYNTAX.strip().split("\n") if line.split()[1:] == ["-"]}
# Names of uncovered classes in messages. Other classes are named as in `ast`.
SPELLED = {
    "AsyncFunctionDef": "`async def`", "AsyncFor": "`async for`", "AsyncWith": "`async with`", "Await": "`await`",
    "Delete": "`del`", "Global": "`global`", "Nonlocal": "`nonlocal`", "Match": "`match`", "TryStar": "`except*`",
    "While": "`while`", "Yield": "`yield` here", "YieldFrom": "`yield from`", "TypeAlias": "`type`",
    "NamedExpr": "`:=`", "If": "`if`", "For": "`for`", "With": "`with`", "Try": "`try`", "Raise": "`raise`",
    "Assert": "`assert`", "AugAssign": "`+=` and the like", "Import": "`import`", "ImportFrom": "`import`",
    "FunctionDef": "a function here", "ClassDef": "a class here", "Lambda": "`lambda` here",
    "kwarg": "`**` in the parameters of a function", "keywords": "keywords of a class",
    "type_params": "type parameters", "is_async": "`async for`",
}  # fmt: skip
# The statements that may be plain at the top level of a file, in a class, and in a function.
PLACES = {
    "top": words("Import ImportFrom FunctionDef ClassDef Assign AnnAssign Expr"),
    "class": words("FunctionDef Assign AnnAssign"),
    "function": words(
        """
        FunctionDef Import ImportFrom Return Assign AugAssign AnnAssign For If With Raise Try Assert Expr Break Continue
        """
    ),
}

# The decorator that makes a context manager from a generator.
MANAGER = "contextlib.contextmanager"
CONTEXTS = words(
    """
    torch.no_grad torch.enable_grad torch.inference_mode torch.set_grad_enabled torch.autocast torch.amp.autocast
    torch.cuda.amp.autocast torch.autograd.detect_anomaly torch.autograd.set_detect_anomaly
    """
)
LOSSES = words(
    """
    BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss HuberLoss
    KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss
    SmoothL1Loss SoftMarginLoss TripletMarginLoss
    """
)
# {module: names that an inserted statement may use}. All these functions only compute. This is also true for `empty`,
# because with deterministic algorithms torch fills new memory, so that no value survives from one call to the next.
LISTED: dict[str, frozenset[str]] = {
    "torch": words(
        """
        Tensor Generator GradScaler Size device dtype bfloat16 bool channels_last contiguous_format double float float16
        float32 float64 half int int16 int32 int64 int8 long preserve_format short strided uint8 inf nan pi no_grad
        enable_grad inference_mode set_grad_enabled autocast manual_seed get_rng_state set_rng_state abs absolute acos
        acosh add addbmm addcdiv addcmul addmm addmv addr all allclose amax amin aminmax angle any arange arccos arccosh
        arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere asin asinh atan atan2 atanh atleast_1d
        atleast_2d atleast_3d baddbmm bartlett_window bernoulli bincount bitwise_and bitwise_left_shift bitwise_not
        bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm broadcast_shapes broadcast_tensors
        broadcast_to bucketize cartesian_prod cat cdist ceil chunk clamp clamp_max clamp_min clip clone column_stack
        combinations complex concat concatenate conj copysign corrcoef cos cosh cosine_similarity count_nonzero cov
        cross cummax cummin cumprod cumsum cumulative_trapezoid deg2rad det diag diag_embed diagflat diagonal
        diagonal_scatter diff digamma dist div divide dot dsplit dstack einsum empty empty_like eq equal erf erfc erfinv
        exp exp2 expm1 eye finfo flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac frexp
        full full_like gather gcd ge gradient greater greater_equal gt hamming_window hann_window heaviside histc
        histogram hsplit hstack hypot i0 iinfo imag index_add index_copy index_fill index_put index_reduce index_select
        inner inverse is_complex is_floating_point is_nonzero is_tensor isclose isfinite isin isinf isnan isneginf
        isposinf isreal kron kthvalue lcm ldexp le lerp less less_equal lgamma linspace log log10 log1p log2 log_softmax
        logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logspace logsumexp
        lt masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max maximum mean median meshgrid min
        minimum mm mode moveaxis movedim msort mul multinomial multiply mv nan_to_num nanmean nanmedian nanquantile
        nansum narrow ne neg negative nextafter nonzero norm normal not_equal numel ones ones_like outer
        pairwise_distance permute pinverse pixel_shuffle pixel_unshuffle poisson polar positive pow prelu prod
        promote_types quantile rad2deg rand rand_like randint randint_like randn randn_like randperm ravel real
        reciprocal relu remainder renorm repeat_interleave reshape result_type roll rot90 round rsqrt rsub scalar_tensor
        scatter scatter_add scatter_reduce searchsorted select select_scatter selu sgn sigmoid sign signbit sin sinc
        sinh slice_scatter slogdet softmax sort split sqrt square squeeze stack std std_mean sub subtract sum svd
        swapaxes swapdims t take take_along_dim tan tanh tensor tensor_split tensordot tile topk trace transpose
        trapezoid trapz tril tril_indices triu triu_indices true_divide trunc unbind unflatten unique unique_consecutive
        unravel_index unsqueeze vander var var_mean vdot vsplit vstack where xlogy zeros zeros_like
        """
    ),
    "torch.amp": words("GradScaler autocast"),
    "torch.cuda": words("is_available get_rng_state get_rng_state_all set_rng_state set_rng_state_all"),
    "torch.default_generator": words("get_state set_state"),
    "torch.random": words("get_rng_state manual_seed set_rng_state"),
    "torch.cuda.amp": words("GradScaler autocast"),
    "torch.autograd": words("backward grad detect_anomaly set_detect_anomaly"),
    "torch.fft": words("fft fft2 fftfreq fftshift ifft ifft2 ifftshift irfft rfft rfftfreq"),
    "torch.linalg": words(
        """
        cholesky cond cross det diagonal eigh eigvalsh inv lstsq lu matmul matrix_exp matrix_norm matrix_power
        matrix_rank multi_dot norm pinv qr slogdet solve solve_triangular svd svdvals tensorinv vander vecdot
        vector_norm
        """
    ),
    "torch.special": words(
        """
        digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln i0 i0e i1 i1e log1p log_ndtr
        log_softmax logit logsumexp multigammaln ndtr ndtri polygamma psi round sinc softmax xlog1py xlogy zeta
        """
    ),
    "torch.nn": LOSSES
    | words(
        """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AlphaDropout AvgPool1d
        AvgPool2d AvgPool3d BatchNorm1d BatchNorm2d BatchNorm3d Bilinear CELU ConstantPad1d ConstantPad2d Conv1d Conv2d
        Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineSimilarity Dropout Dropout1d Dropout2d Dropout3d
        ELU Embedding EmbeddingBag Flatten Fold GELU GLU GRU GRUCell GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh
        Identity InstanceNorm1d InstanceNorm2d InstanceNorm3d LPPool1d LPPool2d LSTM LSTMCell LayerNorm LeakyReLU Linear
        LocalResponseNorm LogSigmoid LogSoftmax MaxPool1d MaxPool2d MaxPool3d Mish Module ModuleDict ModuleList
        MultiheadAttention PReLU PairwiseDistance Parameter PixelShuffle PixelUnshuffle RMSNorm RNN RNNCell RReLU ReLU
        ReLU6 ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d SELU Sequential SiLU Sigmoid Softmax
        Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold TransformerDecoder
        TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer Unflatten Unfold Upsample ZeroPad1d ZeroPad2d
        """
    ),
    "torch.nn.functional": words(
        """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d affine_grid
        alpha_dropout avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy
        binary_cross_entropy_with_logits celu channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
        conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy ctc_loss dropout dropout1d dropout2d
        dropout3d elu embedding embedding_bag fold gaussian_nll_loss gelu glu grid_sample group_norm gumbel_softmax
        hardshrink hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss instance_norm interpolate kl_div
        l1_loss layer_norm leaky_relu linear local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d
        margin_ranking_loss max_pool1d max_pool2d max_pool3d mish mse_loss multi_margin_loss multilabel_margin_loss
        multilabel_soft_margin_loss nll_loss normalize one_hot pad pairwise_distance pdist pixel_shuffle pixel_unshuffle
        poisson_nll_loss prelu relu relu6 rms_norm rrelu scaled_dot_product_attention selu sigmoid silu smooth_l1_loss
        soft_margin_loss softmax softmin softplus softshrink softsign tanh tanhshrink threshold triplet_margin_loss
        unfold
        """
    ),
    "torch.nn.init": words(
        """
        calculate_gain constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ sparse_
        trunc_normal_ uniform_ xavier_normal_ xavier_uniform_ zeros_
        """
    ),
    "torch.nn.parameter": words("Parameter"),
    "torch.utils.data": words("DataLoader TensorDataset"),
    "torch.nn.utils": words(
        "clip_grad_norm_ clip_grad_value_ get_total_norm parameters_to_vector vector_to_parameters"
    ),
    "torch.nn.modules.utils": words("consume_prefix_in_state_dict_if_present"),
    "torch.nn.utils.rnn": words("pack_padded_sequence pack_sequence pad_packed_sequence pad_sequence"),
    "torch.optim": words("ASGD Adadelta Adagrad Adam AdamW Adamax NAdam Optimizer RAdam RMSprop SGD"),
    "torch.optim.lr_scheduler": words(
        """
        ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LRScheduler LambdaLR LinearLR
        MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR SequentialLR StepLR
        """
    ),
    "collections": words("Counter OrderedDict defaultdict"),
    "contextlib": words("contextmanager"),
    "copy": words("copy deepcopy"),
    "dataclasses": words("asdict dataclass"),
    "logging": words("DEBUG INFO WARNING basicConfig debug error getLogger info warning"),
    "math": frozenset(name for name in vars(math) if not name.startswith("_")),
    "harness": frozenset(),
    "harness.run.schedules": words("warmup_cosine"),
    "time": words("perf_counter time"),
    "typing": words("Any Callable Dict Iterable Iterator List NamedTuple Optional Sequence Tuple Union"),
    "collections.abc": words("Callable Iterable Iterator Mapping Sequence"),
    "__future__": words("annotations"),
}


def is_listed(path: str) -> bool:
    """Return whether a dotted path is in `LISTED`."""
    module, _, name = path.rpartition(".")
    return name in LISTED.get(module, ())


# Calls whose results may be assigned at the top level of a file, because code cannot use these objects to count how
# often a function is called.
KEPT = frozenset(
    {"logging.getLogger", "torch.device", "torch.GradScaler", "torch.amp.GradScaler", "torch.cuda.amp.GradScaler"}
    | {f"torch.nn.{name}" for name in LOSSES}
)
# {call: (allowed number of positional arguments, allowed keywords)}, for calls that keep an argument or use it where it
# cannot be checked. With other arguments, code could pass a file, a callback or a process. Code must call these
# functions by the names listed here.
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
    # This function may be used only as a decorator, see `_check_FunctionDef`.
    MANAGER: (0, words("")),
    "dataclasses.dataclass": (0, words("frozen eq order repr slots kw_only")),
    "dataclasses.asdict": (1, words("")),
    **{path: (3, words("device_type dtype enabled mode cache_enabled check_nan")) for path in CONTEXTS},
}
# Names from these modules may be used only in annotations and as base classes.
NEVER_CALLED = tuple(f"{module}." for module in ("typing", "collections.abc"))
# This function changes its argument. So the argument must be a dictionary that the same function call has made.
UNPREFIX = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"
LAMBDA_SCHEDULES = words("torch.optim.lr_scheduler.LambdaLR torch.optim.lr_scheduler.MultiplicativeLR")
# These two layers read an iterator argument immediately. Other layers would keep the iterator.
HOLDS_LAYERS = words("torch.nn.Sequential torch.nn.ModuleList")

# Names that the harness looks up in an experiment before measuring. An edit must not add such a name.
# FROZEN lists the layers that checks expect to stay unchanged, so an edit must not change its value, either.
ASKED = words("FROZEN AMP AUGMENT")

# Built-in names that code may use. A type may be passed as a value, but a function may only be called.
TYPES = words("bool dict float frozenset int list object set str tuple")
FUNCTIONS = words(
    """
    abs all any divmod enumerate filter hasattr id isinstance iter len map max min next pow print range repr reversed
    round slice sorted sum zip
    """
)
ERRORS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
)
PYTHON = frozenset(dir(builtins))
# {call: (position, keyword)} of an argument that is a function, for calls that use this function only during the call.
USES_FUNCTION = {"map": (0, ""), "filter": (0, ""), "sorted": (-1, "key"), "min": (-1, "key"), "max": (-1, "key")}

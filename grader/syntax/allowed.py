"""For each kind of object, the attributes and methods that plain code may use; plain code is provably harmless.

`grader.syntax.plain_edit` decides whether code is plain.
"""

import ast
from collections.abc import Sequence

from grader.syntax.grammar import words

# The kind of an object, such as "tensor" or ("list", "tensor"). "" means that the kind is not known yet.
ObjectKind = str | tuple["ObjectKind", ...]
PARAMETERS: ObjectKind = ("iterator", "parameter")


def _each(kind: ObjectKind, names: str) -> dict[str, ObjectKind]:
    return dict.fromkeys(names.split(), kind)


# {attribute or method: kind of its result}, for names that are harmless on every object that plain code can reach. They
# are names of tensors, networks and containers, not of objects through which code can reach a frame, a module or a
# file.
HARMLESS_ATTRIBUTES: dict[str, ObjectKind] = {
    **_each("tensor", "T mT data grad values indices running_mean running_var"),
    **_each("parameter", "weight bias weight_ih weight_hh bias_ih bias_hh weight_ih_l0 weight_hh_l0 bias_ih_l0"),
    **_each("parameter", "bias_hh_l0 in_proj_weight in_proj_bias"),
    **_each("number", "is_cuda is_leaf ndim requires_grad training tiny smallest_normal max min last_epoch itemsize"),
    **_each(("list", "number"), "shape"),
    **_each("thing", "device dtype"),
    # These values may not be stored, because a layer keeps its arguments, which may be lists.
    **_each("thing", "in_features out_features num_features in_channels out_channels num_embeddings embedding_dim"),
    **_each("thing", "momentum p eps"),
    **_each("text", "name type"),
    **_each("network", "module"),  # the network in a DistributedDataParallel or an AveragedModel
}
HARMLESS_METHODS: dict[str, ObjectKind] = {
    **_each(
        "tensor",
        """
        abs acos acosh add add_ addbmm addcdiv addcdiv_ addcmul addcmul_ addmm addmv addr all allclose amax
        amin aminmax angle any arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere asin
        asinh atan atan2 atanh baddbmm bernoulli bernoulli_ bfloat16 bincount bitwise_and bitwise_not bitwise_or
        bitwise_xor bmm bool broadcast_to byte ceil ceil_ char chunk clamp clamp_ clamp_max clamp_max_ clamp_min
        clamp_min_ clip clip_ contiguous copy_ copysign corrcoef cos cosh count_nonzero cov cross cummax cummin cumprod
        cumsum deg2rad det detach detach_ diag diag_embed diagflat diagonal diff digamma dist div div_ divide dot double
        eq erf erfc erfinv exp exp2 exp_ expand expand_as expm1 exponential_ fill_ fill_diagonal_ flatten flip fliplr
        flipud float float_power floor floor_ floor_divide fmax fmin fmod frac gather gcd ge greater greater_equal gt
        half heaviside histc hypot index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put
        index_put_ index_select inner int inverse isclose isfinite isinf isnan isneginf isposinf isreal kron kthvalue
        lcm le lerp lerp_ less less_equal lgamma log log10 log1p log2 log_softmax logaddexp logcumsumexp logdet
        logical_and logical_not logical_or logical_xor logit logsumexp long lt masked_fill masked_fill_ masked_scatter
        masked_select matmul matrix_exp matrix_power max maximum mean median min minimum mm mode moveaxis movedim msort
        mul mul_ multinomial multiply mv nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow ne neg neg_
        negative nonzero norm normal_ not_equal outer permute pinverse positive pow pow_ prelu prod quantile rad2deg
        random_ ravel reciprocal reciprocal_ relu relu_ remainder renorm repeat repeat_interleave reshape reshape_as
        roll rot90 round round_ rsqrt rsqrt_ scale scatter scatter_ scatter_add scatter_add_ scatter_reduce select
        select_scatter sgn short sigmoid sigmoid_ sign signbit sin sinc sinh slogdet softmax sort sqrt sqrt_ square
        square_ squeeze std sub sub_ subtract sum swapaxes swapdims t take take_along_dim tan tanh tanh_ tile topk trace
        transpose tril tril_ triu triu_ true_divide trunc type_as unflatten unfold uniform_ unique unique_consecutive
        unsqueeze unsqueeze_ var vdot view view_as where xlogy zero_
        """,
    ),
    **_each("new tensor", "clone new_empty new_full new_ones new_tensor new_zeros"),
    **_each(("list", "tensor"), "unbind tolist tensor_split hsplit vsplit dsplit split_with_sizes"),
    **_each("number", "is_contiguous is_complex is_nonzero element_size"),
    **_each("number", "item numel nelement dim size is_floating_point equal get_scale index count get_device"),
    **_each("none", "backward zero_grad step update unscale_"),
    **_each(("kept", "number"), "get_last_lr"),
    **_each("network", "train eval requires_grad_"),
    **_each(PARAMETERS, "parameters"),
    **_each(("iterator", "tensor"), "buffers"),
    **_each(("iterator", "network"), "modules children"),
    **_each(("iterator", ("pair", "text", "parameter")), "named_parameters"),
    **_each(("iterator", ("pair", "text", "tensor")), "named_buffers"),
    **_each(("iterator", ("pair", "text", "network")), "named_modules named_children"),
    **_each("text", "join removeprefix removesuffix"),
    # The result of these methods has the kind of the object or of its content, see `Kinds._method`.
    **_each("", "to cpu type copy get items keys values split"),
}
# {kind of object: {attribute or method: kind of its result}}, for names that are harmless only on this kind of object.
# Methods have "()" after their name.
KINDS: dict[str, dict[str, ObjectKind]] = {
    "network": {
        "apply()": "network",
        "state_dict()": ("dict", "tensor", "text"),
        **_each("none", "reset_parameters() reset_running_stats()"),
    },
    "new network": {**_each("network", "add_module() append() extend() insert()")},
    "optimizer": {
        "param_groups": ("kept", "group"),
        "add_param_group()": "none",
        "state_dict()": "group",
        # The settings of the optimizer, a dictionary that plain code may only read.
        "defaults": ("table", "unknown", "text"),
    },
    "scheduler": {"state_dict()": "group", "base_lrs": ("kept", "number")},
    # A network, an optimizer or a schedule.
    "part": {"state_dict()": "group", "zero_grad()": "none"},
    # Only a generator that this call has made may be seeded, because the harness's generator belongs to the run.
    "new generator": {"manual_seed()": "new generator"},
    "text": {
        **_each("text", "strip() lstrip() rstrip() lower() upper() title() replace() ljust() rjust() center() zfill()"),
        **_each("number", "startswith() endswith() isdigit() find()"),
        **_each("text", "format()"),
    },
    "list": {**_each("none", "append() extend() insert() reverse() sort() clear() remove()"), **_each("", "pop()")},
    "dict": {**_each("none", "update() clear()"), **_each("", "pop() setdefault()"), "most_common()": "unknown"},
    "set": {
        **_each("none", "add() update() discard() remove() clear()"),
        **_each("", "union() intersection() difference()"),
    },
    "logger": _each("none", "debug() info() warning() error()"),
    "data": {
        **_each("split", "train validation"),
        "table": ("table", "tensor", "text"),
        "class_names": ("kept", "text"),
        "name": "text",
    },
    "split": _each("tensor", "inputs labels images symbols"),
    "error": {},
    "packed": {},
    "super": {"__init__()": "none", "forward()": "tensor", "train()": "network"},
}
# Kinds of objects on which even the names in `HARMLESS_ATTRIBUTES` are not allowed.
BARE = words("group iterator logger class function manager super error path builtin part slice")
# Kinds of objects that may be stored anywhere, because plain code can use only harmless attributes of them.
STORABLE = words("number text none tensor parameter")
# {key of an optimizer's parameter group: kind of its value}
GROUP_KEYS: dict[object, ObjectKind] = {"params": ("kept", "parameter"), "lr": "number"}
# {function of an experiment: kinds of the arguments that the harness passes to it}
PROTOCOL: dict[str, Sequence[ObjectKind]] = {
    "load_data": ["data"],
    "build_model": [],
    "build_optimizer": ["network"],
    "build_scheduler": ["optimizer", "number"],
    "prepare_batch": ["tensor", "tensor", "generator"],
    "compute_loss": ["tensor", "tensor"],
    "train_step": ["network", "optimizer", "tensor", "tensor"],
    "evaluate": ["network", "tensor", "tensor"],
    "predict": ["network", "tensor"],
}
# {dotted path of a library function: kind of its result}. A path such as "torch." holds for all other functions of the
# module; the longest matching path decides. If the result may be an argument or a view of an argument, it is not a "new
# tensor".
GIVES: dict[str, ObjectKind] = {
    "torch.": "new tensor", "torch.nn.functional.": "new tensor", "torch.nn.init.": "tensor",
    "torch.linalg.": "tensor", "torch.fft.": "tensor",
    "torch.nn.": "new network", "torch.nn.Parameter": "parameter", "torch.nn.parameter.": "parameter",
    "torch.nn.utils.": "tensor", "torch.nn.modules.utils.": "none",
    "torch.nn.utils.rnn.": "packed", "torch.utils.": "thing", "torch.optim.": "optimizer",
    "torch.optim.lr_scheduler.": "scheduler", "harness.run.schedules.": "scheduler", "torch.GradScaler": "scaler",
    "torch.amp.GradScaler": "scaler", "torch.cuda.amp.GradScaler": "scaler", "torch.Generator": "new generator",
    "torch.finfo": "thing", "torch.iinfo": "thing", "torch.device": "thing", "torch.cuda.": "number",
    "math.": "number", "time.": "number", "torch.nn.init.calculate_gain": "number", "logging.getLogger": "logger",
    "torch.cuda.get_rng_state_all": ("list", "tensor"),
    "harness.data.pretrained.": ("dict", "tensor", "text"),
    **{f"torch.{name}": ("list", "tensor") for name in (
        "split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "broadcast_tensors", "meshgrid",
        "gradient", "autograd.grad",
    )},
    **{f"torch.{name}": "tensor" for name in (
        "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "einsum", "permute", "swapaxes", "swapdims",
        "movedim",
        "moveaxis", "t", "diag", "diagonal", "narrow", "select", "unflatten", "ravel", "real", "imag", "conj",
        "positive", "broadcast_to", "atleast_1d", "atleast_2d", "atleast_3d", "cartesian_prod", "pixel_shuffle",
        "pixel_unshuffle",
        *(f"nn.functional.{kind}" for kind in (
            "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "pad", "interpolate", "pixel_shuffle",
            "pixel_unshuffle", "channel_shuffle",
        )),
    )},
}  # fmt: skip
BUILTINS: dict[str, ObjectKind] = {
    **_each("number", "len int float abs round any all isinstance hasattr pow bool divmod id"),
    **_each("text", "str repr"),
    **_each(("list", "number"), "range"),
    "print": "none",
    "slice": "slice",
    "super": "super",
}
ITEMS: dict[str, ObjectKind] = {
    "": "", "text": "text", "tensor": "tensor", "new tensor": "tensor", "parameter": "tensor", "packed": "tensor",
    "network": "network", "new network": "network", "group": "group", "iterator": "iterator",
}  # fmt: skip

# The syntax-tree nodes in an expression that contains only constants.
CONSTANT = (
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Name, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip
# The syntax-tree nodes that an annotation may contain.
OF_TYPES = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr, ast.expr_context,
)  # fmt: skip
# The syntax-tree nodes that a learning-rate schedule may contain in addition to constants.
COMPUTING = (
    *CONSTANT, ast.IfExp, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.Return, ast.If, ast.Assign,
    ast.AugAssign, ast.Expr,
)  # fmt: skip
NUMBERS = words("abs float int max min")
# Attributes of every nn.Module, and `num_batches_tracked` of batch norm. A student's class must not redefine them.
MODULE = words(
    """
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval
    extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules
    mtia named_buffers named_children named_modules named_parameters num_batches_tracked parameters
    register_backward_hook register_buffer register_forward_hook register_forward_pre_hook register_full_backward_hook
    register_full_backward_pre_hook register_load_state_dict_post_hook register_load_state_dict_pre_hook
    register_module register_parameter register_state_dict_post_hook register_state_dict_pre_hook requires_grad_
    set_extra_state set_submodule share_memory state_dict to to_empty train training type xpu zero_grad _apply
    _backward_hooks _backward_pre_hooks _buffers _call_impl _compiled_call_impl _forward_hooks
    _forward_hooks_always_called _forward_hooks_with_kwargs _forward_pre_hooks _forward_pre_hooks_with_kwargs
    _get_backward_hooks _get_backward_pre_hooks _get_name _is_full_backward_hook _load_from_state_dict
    _load_state_dict_post_hooks _load_state_dict_pre_hooks _maybe_warn_non_full_backward_hook _modules _named_members
    _non_persistent_buffers_set _parameters _register_load_state_dict_pre_hook _register_state_dict_hook
    _replicate_for_data_parallel _save_to_state_dict _slow_forward _state_dict_hooks _state_dict_pre_hooks _version
    _wrapped_call_impl
    """
)
# Kinds of values that a fix may keep from one training step to the next if the broken experiment does so, too.
WEIGHTS = words("tensor parameter")
OF_TRAINING = words("number tensor parameter none thing unknown")
OF_GROUPS = words("number text none thing unknown tensor pair")
# Methods that add items to a container.
CHANGING = words("append extend insert add update setdefault")
# Functions to which plain code may pass parameter groups, because the kind of their result is known or they do not read
# the content of the groups.
READS_GROUPS = words("enumerate zip len print list reversed str copy.copy copy.deepcopy")
# Calls whose settings may be passed as `**dictionary`, because layers and optimizers read their settings only once.
TAKES_SETTINGS = words("optimizer scheduler network")
REPORTS = words("print logging.debug logging.info logging.warning logging.error")

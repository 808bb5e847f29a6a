"""The modules that an experiment may import, and which of their names it may use; it may use nothing else.

The functions of torch here compute on tensors and reach nothing else. The names are torch 2.13's, without Python
modules, storages, files, settings and generators of the whole process. A test compares them with the installed torch.
"""

import re
from dataclasses import dataclass

from grader.syntax.names import UNCLEAR

_CLASS = re.compile(r"[A-Z][A-Za-z0-9]*")


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


OPERATIONS = words(
    """
    abs abs_ absolute acos acos_ acosh acosh_ adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv
    addcmul addmm addmv addmv_ addr adjoint all allclose alpha_dropout alpha_dropout_ amax amin aminmax
    angle any arange arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2
    arctan_ arctanh arctanh_ argmax argmin argsort argwhere as_strided_scatter as_tensor asarray asin
    asin_ asinh asinh_ atan atan2 atan_ atanh atanh_ atleast_1d atleast_2d atleast_3d avg_pool1d baddbmm
    bartlett_window batch_norm bernoulli bilinear binary_cross_entropy_with_logits bincount binomial
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
    blackman_window block_diag bmm broadcast_shapes broadcast_tensors broadcast_to bucketize can_cast
    cartesian_prod cat cdist ceil ceil_ celu celu_ chain_matmul channel_shuffle cholesky
    cholesky_inverse cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip
    clip_ clone column_stack combinations complex concat concatenate conj conj_physical conj_physical_
    constant_pad_nd conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution
    copysign corrcoef cos cos_ cosh cosh_ cosine_embedding_loss cosine_similarity count_nonzero cov
    cross ctc_loss cummax cummin cumprod cumsum cumulative_trapezoid deg2rad deg2rad_ det detach detach_
    diag diag_embed diagflat diagonal diagonal_scatter diff digamma dist div divide dot dropout dropout_
    dsplit dstack einsum embedding embedding_bag empty empty_like empty_strided eq equal erf erf_ erfc
    erfc_ erfinv exp exp2 exp2_ exp_ expm1 expm1_ eye feature_alpha_dropout feature_alpha_dropout_
    feature_dropout feature_dropout_ fill fill_ fix fix_ flatten flip fliplr flipud float_power floor
    floor_ floor_divide fmax fmin fmod frac frac_ frexp from_numpy full full_like gather gcd gcd_ ge ger
    gradient greater greater_equal group_norm gt hamming_window hann_window hardshrink heaviside
    hinge_embedding_loss histc histogram histogramdd hsplit hstack hypot i0 i0_ igamma igammac imag
    index_add index_copy index_fill index_put index_put_ index_reduce index_select inner instance_norm
    inverse is_complex is_conj is_floating_point is_neg is_nonzero is_same_size is_signed isclose
    isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window kl_div kron kthvalue
    layer_norm lcm lcm_ ldexp ldexp_ le lerp less less_equal lgamma linspace log log10 log10_ log1p
    log1p_ log2 log2_ log_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not
    logical_or logical_xor logit logit_ logspace logsumexp lt lu lu_solve lu_unpack margin_ranking_loss
    masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max max_pool1d
    max_pool1d_with_indices max_pool2d max_pool3d maximum mean median meshgrid min minimum mm mode
    moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num nan_to_num_ nanmean nanmedian
    nanquantile nansum narrow ne neg neg_ negative negative_ nextafter nonzero nonzero_static norm
    normal not_equal numel ones ones_like orgqr ormqr outer pairwise_distance pca_lowrank pdist permute
    pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma positive pow prelu
    prod promote_types put qr quantile rad2deg rad2deg_ rand rand_like randint randint_like randn
    randn_like randperm range ravel real reciprocal reciprocal_ relu relu_ remainder renorm
    repeat_interleave reshape resolve_conj resolve_neg result_type rms_norm roll rot90 round round_
    row_stack rrelu rrelu_ rsqrt rsqrt_ rsub scalar_tensor scatter scatter_add scatter_reduce
    searchsorted select select_scatter selu selu_ sgn sigmoid sigmoid_ sign signbit sin sin_ sinc sinc_
    sinh sinh_ slice_scatter slogdet softmax sort split split_with_sizes sqrt sqrt_ square square_
    squeeze stack std std_mean stft sub subtract sum svd svd_lowrank swapaxes swapdims t take
    take_along_dim tan tan_ tanh tanh_ tensor tensor_split tensordot threshold threshold_ tile topk
    trace transpose trapezoid trapz triangular_solve tril tril_indices triplet_margin_loss triu
    triu_indices true_divide trunc trunc_ unbind unflatten unique unique_consecutive unravel_index
    unsqueeze vander var var_mean vdot view_as_complex view_as_real vsplit vstack where xlogy xlogy_
    zero_ zeros zeros_like
    """
)

FUNCTIONAL = words(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
    adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout avg_pool1d avg_pool2d
    avg_pool3d batch_norm bilinear binary_cross_entropy binary_cross_entropy_with_logits celu celu_
    channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    cosine_embedding_loss cosine_similarity cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d
    elu elu_ embedding embedding_bag feature_alpha_dropout fold fractional_max_pool2d
    fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
    gaussian_nll_loss gelu glu grid_sample group_norm gumbel_softmax hardshrink hardsigmoid hardswish
    hardtanh hardtanh_ hinge_embedding_loss huber_loss instance_norm interpolate kl_div l1_loss
    layer_norm leaky_relu leaky_relu_ linear linear_cross_entropy local_response_norm log_softmax
    logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d max_pool1d_with_indices
    max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d
    max_unpool3d mish mse_loss multi_head_attention_forward multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss nll_loss normalize one_hot pad pairwise_distance pdist pixel_shuffle
    pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_ rms_norm rrelu rrelu_
    scaled_dot_product_attention selu selu_ sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin
    softplus softshrink softsign tanh tanhshrink threshold threshold_ triplet_margin_loss
    triplet_margin_with_distance_loss unfold upsample upsample_bilinear upsample_nearest
    """
)

INITIALIZERS = words(
    """
    calculate_gain constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_
    sparse_ trunc_normal_ uniform_ xavier_normal_ xavier_uniform_ zeros_
    """
)

LINEAR_ALGEBRA = words(
    """
    cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh householder_product inv
    inv_ex ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve matmul matrix_exp
    matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet solve solve_ex solve_triangular
    svd svdvals tensorinv tensorsolve vander vecdot vector_norm
    """
)

FOURIER = words(
    """
    fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft
    irfft2 irfftn rfft rfft2 rfftfreq rfftn
    """
)

SPECIAL = words(
    """
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
    chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit expm1
    gammainc gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e
    laguerre_polynomial_l legendre_polynomial_p log1p log_ndtr log_softmax logit logsumexp
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri
    polygamma psi round scaled_modified_bessel_k0 scaled_modified_bessel_k1
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w sinc softmax spherical_bessel_j0 xlog1py xlogy zeta
    """
)


@dataclass(frozen=True)
class _Module:
    """The names of one module that an experiment may use; with `classes`, also every name in capitals."""

    names: frozenset[str] = frozenset()
    classes: bool = False
    everything: bool = False

    def allows(self, name: str) -> bool:
        if name.startswith("_"):
            return False
        return self.everything or name in self.names or (self.classes and bool(_CLASS.fullmatch(name)))


def _only(text: str) -> _Module:
    return _Module(words(text))


# Data types, devices, contexts, predicates and submodules in torch's own namespace.
_TORCH = words(
    """
    BoolTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor Size Tensor
    bfloat16 bool cdouble cfloat complex128 complex64 double float float16 float32 float64 half int int16 int32
    int64 int8 long short uint8 channels_last contiguous_format preserve_format device dtype finfo iinfo strided
    GradScaler autocast enable_grad inference_mode is_grad_enabled is_inference_mode_enabled is_tensor no_grad
    set_grad_enabled set_printoptions e inf nan newaxis pi
    amp autograd cuda fft linalg nn optim special
    """
)
# Modules whose public names are all their own.
_ALL = _Module(everything=True)

_MODULES: dict[str, _Module] = {
    "__future__": _only("annotations"),
    "abc": _only("ABC abstractmethod"),
    "collections": _only("ChainMap Counter OrderedDict abc defaultdict deque namedtuple"),
    "collections.abc": _Module(classes=True),
    "contextlib": _only("ExitStack closing contextmanager nullcontext suppress"),
    "copy": _only("copy deepcopy"),
    "dataclasses": _only("asdict astuple dataclass field fields replace"),
    "enum": _only("Enum IntEnum auto unique"),
    "functools": _only("partial reduce wraps"),
    "itertools": _ALL,
    "math": _ALL,
    "operator": _only("add eq floordiv ge getitem gt itemgetter le lt mod mul ne neg pow sub truediv"),
    "statistics": _only("fmean mean median mode pstdev pvariance quantiles stdev variance"),
    "typing": _only(
        """
        Any Callable ClassVar Dict Final Generic Iterable Iterator List Literal Mapping NamedTuple NoReturn
        Optional Protocol Self Sequence Set Tuple Type TypeAlias TypeVar TypedDict Union cast
        """
    ),
    "harness": _only("schedules"),
    "harness.schedules": _only("warmup_cosine"),
    "numpy": _only(
        """
        abs all allclose any arange argmax argmin argsort array array_equal asarray average bool_ ceil clip
        concatenate cos cumsum diff divide dot dtype e equal exp expand_dims eye float16 float32 float64 floor full
        hstack inf int32 int64 isclose isfinite isinf isnan linspace log log10 log1p log2 logspace matmul max
        maximum mean median min minimum multiply nan nan_to_num nanmean ndarray newaxis ones ones_like percentile
        pi power prod quantile reshape round shape sign sin sort sqrt square squeeze stack std subtract sum tanh
        transpose uint8 unique var vstack where zeros zeros_like
        """
    ),
    "torch": _Module(_TORCH | OPERATIONS),
    "torch.amp": _only("GradScaler autocast is_autocast_available"),
    "torch.autograd": _only("backward detect_anomaly grad set_detect_anomaly"),
    "torch.cuda": _only("amp device_count empty_cache is_available synchronize"),
    "torch.cuda.amp": _only("GradScaler autocast"),
    "torch.fft": _Module(FOURIER),
    "torch.linalg": _Module(LINEAR_ALGEBRA),
    "torch.nn": _Module(frozenset({"functional", "init", "parameter", "utils"}), classes=True),
    "torch.nn.functional": _Module(FUNCTIONAL),
    "torch.nn.init": _Module(INITIALIZERS),
    "torch.nn.parameter": _only("Parameter"),
    "torch.nn.utils": _only(
        """
        clip_grad clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm parameters_to_vector
        vector_to_parameters
        """
    ),
    "torch.nn.utils.clip_grad": _only("clip_grad_norm_ clip_grad_value_"),
    "torch.optim": _Module(frozenset({"lr_scheduler"}), classes=True),
    "torch.optim.lr_scheduler": _Module(classes=True),
    "torch.special": _Module(SPECIAL),
}


def is_module(path: str) -> bool:
    """Return whether a dotted path is a module that an experiment may import."""
    return path in _MODULES


def problem_of(path: str) -> str:
    """Return the end of "it uses ..." for a path that a plain experiment does not use, or ""."""
    if path.partition(".")[0] == UNCLEAR:
        return "a name that is too tangled to follow"
    module, *parts = path.split(".")
    if module not in _MODULES:
        return f"{path[:60]}, which no experiment needs"
    for part in parts:
        if module not in _MODULES:  # an attribute of a function or a class; `plain_reach` judges it
            break
        if not _MODULES[module].allows(part):
            return f"{path[:60]}, with which a file could reach the program that grades it"
        module = f"{module}.{part}"
    return ""


def is_listed(path: str) -> bool:
    """Return whether a dotted path is a name listed for its module, and not an attribute of such a name."""
    return is_module(path.rpartition(".")[0]) and not problem_of(path)

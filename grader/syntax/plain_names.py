"""What of the modules that an experiment imports it may use: listed by module, and nothing else is allowed."""

import re
from dataclasses import dataclass

from grader.syntax.names import UNCLEAR
from grader.syntax.torch_names import (
    FOURIER,
    FUNCTIONAL,
    INITIALIZERS,
    LINEAR_ALGEBRA,
    OPERATIONS,
    SPECIAL,
    words,
)

_CLASS = re.compile(r"[A-Z][A-Za-z0-9]*")


@dataclass(frozen=True)
class _Module:
    """The names of one module that may be used; with `classes`, every name in capitals as well."""

    names: frozenset[str] = frozenset()
    classes: bool = False
    everything: bool = False

    def allows(self, name: str) -> bool:
        if name.startswith("_"):
            return False
        return self.everything or name in self.names or (self.classes and bool(_CLASS.fullmatch(name)))


def _only(text: str) -> _Module:
    return _Module(words(text))


# The data types, devices, contexts and questions of torch's own namespace, and its namespaces.
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
# Modules that show nothing of Python's beside their own.
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
    "harness": _only("losses schedules"),
    "harness.losses": _only("chance_loss stable_cross_entropy"),
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
    """Say whether a dotted path is a module that an experiment may import."""
    return path in _MODULES


def problem_of(path: str) -> str:
    """Return what of an imported module a path uses that a plain experiment does not, or ""."""
    if path.partition(".")[0] == UNCLEAR:
        return "a name that is too tangled to follow"
    module, *parts = path.split(".")
    if module not in _MODULES:
        return f"{path[:60]}, which no experiment needs"
    for part in parts:
        if module not in _MODULES:  # an attribute of a function or a class; judged as any attribute is
            break
        if not _MODULES[module].allows(part):
            return f"{path[:60]}, with which a file could reach the program that grades it"
        module = f"{module}.{part}"
    return ""


def is_listed(path: str) -> bool:
    """Say whether a dotted path is a name that its module is listed with, and not an attribute of such a thing."""
    return is_module(path.rpartition(".")[0]) and not problem_of(path)

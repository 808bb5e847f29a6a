"""What a plain derivation uses: of NumPy, of arrays and Python's own objects, and of Python's functions."""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


# Numbers in, numbers out. What reads or writes files, calls back into Python for each entry, draws at random, or leads
# to NumPy's insides is not here.
NUMPY = _words(
    """
    abs absolute add all allclose amax amin any append arange argmax argmin argsort argwhere array array_equal
    asarray ascontiguousarray atleast_1d atleast_2d average bool_ broadcast_arrays broadcast_to ceil clip
    column_stack concatenate copy cos cosh count_nonzero cumsum diag divide dot dtype e einsum empty empty_like
    equal errstate exp expand_dims expm1 eye finfo flatnonzero float32 float64 floating floor full full_like greater
    greater_equal heaviside hstack identity inf inner int32 int64 integer intp isclose isfinite isinf isnan isscalar
    kron less less_equal linalg linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or matmul
    matrix_transpose max maximum mean min minimum moveaxis multiply nan nan_to_num ndarray ndim negative newaxis
    nonzero not_equal number ones ones_like outer permute_dims pi power prod put_along_axis ravel reciprocal repeat
    reshape result_type round shape sign signbit sin sinh size sqrt square squeeze stack std subtract sum swapaxes
    take take_along_axis tan tanh tensordot tile trace transpose tri tril triu true_divide unique var vdot vstack
    where zeros zeros_like
    """
)
# Behind a name of NumPy: `np.linalg.norm`, `np.add.at`; and of what it returns, `np.finfo(float).eps`.
OF_NUMPY = _words("norm multi_dot at outer reduce accumulate reduceat eps max min tiny")
# Loops of NumPy that call a function for each entry or row: "essentially a for loop", as its manual has it.
LOOPS = _words(
    """
    apply_along_axis apply_over_axes frompyfunc fromfunction fromiter ndenumerate ndindex nditer piecewise vectorize
    """
)
# Of arrays, dictionaries, lists, tuples and texts.
ATTRIBUTES = _words(
    """
    T all any append argmax argmin astype clip copy count cumsum diagonal dot dtype endswith extend fill flat flatten
    get index insert item items join keys lower mT max mean min ndim nonzero pop prod ravel repeat reshape round
    setdefault shape size sort split squeeze startswith std strip sum swapaxes take trace transpose update upper values
    var
    """
)
BUILTINS = _words(
    """
    abs all any ascii bin bool bytes callable chr complex dict divmod enumerate filter float format frozenset hasattr
    hash hex id input int isinstance iter len list map max min next object oct ord pow print property range repr
    reversed round set slice sorted staticmethod str sum tuple zip True False None NotImplemented Ellipsis
    ArithmeticError AssertionError Exception FloatingPointError IndexError KeyError NotImplementedError OverflowError
    RuntimeError TypeError ValueError ZeroDivisionError __name__
    """
)
# Ways from an object to the frame that runs it, whatever a file calls its own attributes.
INSIDES = ("_", "f_", "gi_", "tb_", "cr_", "ag_", "co_")

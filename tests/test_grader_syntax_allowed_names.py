"""The lists of allowed names, compared with the installed modules."""

import builtins
import importlib
import types

import pytest
import torch

from grader.syntax import allowed_names, plain_reach
from grader.syntax.allowed_names import OPERATIONS, is_listed, is_module, problem_of, words
from grader.syntax.plain_code import suspicions

MODULES = sorted(allowed_names._MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_nothing_listed_of_a_module_is_another_module(name: str) -> None:
    """Every name that the installed module has: either it is refused, or it is no module but a listed one."""
    module = importlib.import_module(name)
    for attribute in dir(module):
        path = f"{name}.{attribute}"
        if isinstance(getattr(module, attribute), types.ModuleType) and not is_module(path):
            assert problem_of(path), path
        if attribute.startswith("_"):
            assert problem_of(path), path


@pytest.mark.parametrize("name", MODULES)
def test_what_is_listed_of_a_module_is_there(name: str) -> None:
    module = importlib.import_module(name)
    for attribute in allowed_names._MODULES[name].names:
        found = hasattr(module, attribute) or is_module(f"{name}.{attribute}")
        assert found or name == "__future__", f"{name}.{attribute}"


def test_functions_of_torch_are_operations_on_tensors() -> None:
    """What is allowed of torch's own namespace is its table of tensor functions, and what is listed by hand."""
    table = set(dir(torch._C._VariableFunctions)) | set(torch.functional.__all__)
    assert table >= OPERATIONS
    refused = {name for name in dir(torch) if problem_of(f"torch.{name}")}
    assert refused >= words("load save compile manual_seed sys os ops from_file Generator fork")
    classes = {n for n in dir(torch) if isinstance(getattr(torch, n), type) and n not in refused}
    tensors = {f"{kind}Tensor" for kind in ("Bool", "Double", "Float", "Half", "Int", "Long", "")}
    assert {n for n in classes if n[0].isupper()} <= tensors | {"GradScaler", "Size"}


def test_what_the_harness_may_call_on_a_network_is_known() -> None:
    network = torch.nn.Module()
    public = {name for name in dir(network) if not name.startswith("_")}
    hooks = {name for name in public if plain_reach._HOOK.fullmatch(name)}
    assert public - hooks - {"forward"} == plain_reach._NETWORK
    private = {name for name in dir(network) if name.startswith("_") and not name.startswith("__")}
    assert {name for name in private if not plain_reach._NETWORK_PRIVATE.fullmatch(name)} == set()


def test_allowed_builtins_are_builtins_that_run_no_text() -> None:
    allowed = plain_reach._ALLOWED_BUILTINS
    assert allowed <= set(dir(builtins))
    assert not allowed & {"eval", "exec", "compile", "open", "getattr", "setattr", "type", "vars", "globals"}


@pytest.mark.parametrize(("path", "fine"), [
    ("torch.nn.Linear", True), ("torch.nn.functional.cross_entropy", True), ("torch.Tensor.add", True),
    ("torch", True), ("torch.nn.functional.importlib", False), ("torch.nn.modules.module", False),
    ("torch.optim.optimizer.register_optimizer_step_pre_hook", False), ("harness.run.recorder", False),
    ("sys.modules", False), ("?.modules", False), ("..relative", False), ("", False),
])  # fmt: skip
def test_a_path_is_judged_part_by_part(path: str, fine: bool) -> None:
    assert (problem_of(path) == "") is fine


def test_an_attribute_of_a_listed_name_is_not_listed() -> None:
    assert is_listed("torch.Tensor")
    assert not is_listed("torch.Tensor.add")
    assert not is_listed("torch.sys")
    assert {item.code for item in suspicions("import torch\nx = torch.Tensor.__mro__\n")} == {"introspection"}

"""Could an experiment find out where it runs: from files, the clock, the host, the user, or its caller?

Such an experiment can be right when it is graded and wrong elsewhere, so that even equal bytes do not prove its fix.
Seeds, settings of torch and unused imports tell it nothing.
"""

import ast
from collections import Counter
from functools import lru_cache

from grader.syntax.allowed_names import is_module, problem_of, words
from grader.syntax.names import UNCLEAR, Program, imported, read_program
from grader.syntax.parse import ProgramText, Unparsable, parse_experiment
from grader.syntax.plain_code import Suspicion, suspicions

# Codes of suspicions that can read anything: a file, a frame, an unknown attribute.
_READS = frozenset({"builtin", "introspection", "private", "memory", "nesting", "unparsable"})
# Not plain, but the same on every machine.
_DEAF = words(
    """
    random.choice random.gauss random.randint random.random random.sample random.seed random.shuffle random.uniform
    numpy.random numpy.random.permutation numpy.random.rand numpy.random.randint numpy.random.randn
    numpy.random.seed numpy.random.shuffle numpy.random.normal numpy.random.uniform
    torch.manual_seed torch.cuda.manual_seed torch.cuda.manual_seed_all torch.Generator
    torch.use_deterministic_algorithms torch.set_default_dtype torch.set_num_threads torch.set_flush_denormal
    torch.backends torch.backends.cudnn torch.backends.cudnn.benchmark torch.backends.cudnn.deterministic
    torch.autograd.set_detect_anomaly torch.nn.utils.parametrize torch.utils torch.utils.data
    torch.utils.data.DataLoader torch.utils.data.Dataset torch.utils.data.TensorDataset
    warnings.filterwarnings warnings.simplefilter
    """
)


def looks_around(source: str) -> Suspicion | None:
    """Return the first thing by which an experiment could find out where it runs, or None."""
    # Lines depend on the text, so the cache by program only holds whether there is anything.
    return None if _looks_nowhere(ProgramText.of(source)) else _looks_around(source)


@lru_cache(maxsize=256)
def _looks_nowhere(program: ProgramText) -> bool:
    return _looks_around(program.source) is None


@lru_cache(maxsize=256)
def _looks_around(source: str) -> Suspicion | None:
    try:
        program = read_program(parse_experiment(source))
    except Unparsable as error:
        return Suspicion(0, "surroundings", f"the file cannot be read ({error})")
    found = [item for item in suspicions(source) if item.code in _READS] + _from_outside(program)
    return min(found, key=lambda item: item.line, default=None)


def _from_outside(program: Program) -> list[Suspicion]:
    """Return every use of an import that is neither plain nor the same on every machine."""
    used = Counter(node.id for node in program.nodes if isinstance(node, ast.Name))
    inner = {id(node.value) for node in program.nodes if isinstance(node, ast.Attribute)}
    # Code reads imports of a class as attributes of the class.
    in_classes = {
        id(item) for node in program.nodes if isinstance(node, ast.ClassDef) for item in ast.walk(node)
    }
    found = []
    for node in program.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            paths = {
                path for name, path in imported(node) if name == "*" or used[name] or id(node) in in_classes
            }
            told = sorted(path for path in paths if path.endswith(".*") or _stranger(path, last=False))
        elif isinstance(node, ast.Name | ast.Attribute):
            last = id(node) not in inner
            told = sorted(path for path in program.names.paths_of(node) if _stranger(path, last=last))
        else:
            continue
        found += [
            Suspicion(
                node.lineno,
                "surroundings",
                f"line {node.lineno} uses {path[:60]}, by which it could find out where it runs",
            )
            for path in told
        ]
    return found


def _stranger(path: str, *, last: bool) -> bool:
    """Return whether a path may tell where the code runs; `last`: the code reads no attribute of it."""
    if path == UNCLEAR or path.startswith(f"{UNCLEAR}."):
        return True
    if path in _DEAF or not problem_of(path):
        return False
    leads_on = any(name.startswith(f"{path}.") for name in _DEAF) or is_module(path)
    return last or not leads_on

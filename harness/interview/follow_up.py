"""Judge the follow-up task of an interview: `python -m harness.interview.follow_up KIND FOLDER HEALTHY` prints JSON.

FOLDER has the candidate's `train.py` and the data, and HEALTHY is the file of the healthy script.

A GPT gets a cache of keys and values: `generate(..., use_cache=True)` must give the tokens of the method without a
cache, and compute each position once. A distributed training gets a sampler that continues in the middle of an epoch
(see `templates/follow_up_ddp.md`). In the other kinds, an evaluation is split as over several ranks:
`partial_sums(model, loader)` returns a tensor of sums for one part of the data, and `figures(sums)` must make of the
added sums what `evaluate(model, loader)` says of the whole data.
"""

import contextlib
import importlib.util
import io
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness.canonical_setup import canonical_setup, run_environment

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.data import Dataset

_SECONDS = 180
_OF_GPT = {
    "the same tokens within a block": 6.0,
    "the same tokens for a batch": 3.0,
    "the same draws with a temperature": 2.0,
    "a second call is not changed by the first one": 2.0,
    "the same tokens beyond the block": 3.0,
    "each position is computed once": 4.0,
}
_OF_SUMS = {
    "one part gives the figures of evaluate": 5.0,
    "uneven parts give the figures of the whole": 8.0,
    "a part of one example": 3.0,
    "the order of the parts does not matter": 2.0,
    "the network is in eval mode": 2.0,
}
_OF_SAMPLER = {
    "the ranks share an epoch without repeats": 5.0,
    "the shares differ by one example at most": 2.0,
    "another order in each epoch": 3.0,
    "the same order for the same seed": 2.0,
    "a new sampler continues in the middle of an epoch": 5.0,
    "the next epochs equal an uninterrupted run": 3.0,
}
_POINTS = {"gpt": _OF_GPT, "ddp": _OF_SAMPLER}
_RANK_COUNTS = (1, 2, 3)
Found = dict[str, tuple[float, float, str]]


def judge_follow_up(kind: str, folder: Path, healthy: str) -> Found:
    """Judge the script of an interview's folder in another process. healthy: the source of the healthy script.

    Return {property: (points, their maximum, "yes" or why not)}.
    """
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        file = Path(scratch, "healthy.py")
        file.write_text(healthy, encoding="utf-8")
        command = [sys.executable, "-P", "-m", "harness.interview.follow_up", kind, str(folder.resolve()), str(file)]
        try:
            done = subprocess.run(
                command, env=run_environment("portable"), timeout=_SECONDS, capture_output=True, text=True, check=False
            )
            found = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            found = None
    return in_points(kind, found)


def in_points(kind: str, found: Mapping[str, str] | None) -> Found:
    """Return {property: (points, their maximum, "yes" or why not)}.

    found: as of `judge_here`, or None without an answer.
    """
    wanted = _POINTS.get(kind, _OF_SUMS)
    said = dict.fromkeys(wanted, "the script did not answer") if found is None else found
    return {name: (points if said[name] == "yes" else 0.0, points, said[name]) for name, points in wanted.items()}


def main(kind: str, folder: str, healthy: str) -> int:
    """Judge in this process, and print {property: "yes" or why not}."""
    print(json.dumps(judge_here(kind, Path(folder), Path(healthy))))
    return 0


def judge_here(kind: str, place: Path, healthy: Path) -> dict[str, str]:
    """Judge the script in a folder in this process. Return {property: "yes" or why not}.

    healthy: the file of the healthy script.
    """
    canonical_setup(0, numerics="portable")
    wanted = _POINTS.get(kind, _OF_SUMS)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            sys.path.insert(0, str(place))
            script = _load("train", place / "train.py")
            if kind == "gpt":
                tests = _cache_tests(script)
            elif kind == "ddp":
                tests = _sampler_tests(script)
            else:
                tests = _sum_tests(script, _load("healthy", healthy), kind, place / "data")
            found = {name: _attempt(test) for name, test in tests.items()}
        except Exception as error:
            found = dict.fromkeys(wanted, _words(error))
    if kind == "gpt" and found["each position is computed once"] != "yes":  # without a cache, all else is equal anyway
        found = {name: "there is no cache" if said == "yes" else said for name, said in found.items()}
    return found


def _load(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _attempt(test: Callable[[], bool]) -> str:
    try:
        return "yes" if test() else "no"
    except Exception as error:
        return _words(error)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:100]


def _draw_weights(model: "nn.Module") -> None:
    import torch

    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=generator) * (0.3 if p.dim() > 1 else 0.05))


def _cache_tests(script: ModuleType) -> Mapping[str, Callable[[], bool]]:
    import torch

    letters = 27
    config = script.Config(vocab_size=letters)
    model = script.GPT(config).eval()
    _draw_weights(model)
    size = config.block_size

    def same(rows: int, prompt: int, new: int, temperature: float = 0, seed: int = 0) -> bool:
        start = torch.randint(letters, (rows, prompt), generator=torch.Generator().manual_seed(prompt + seed))
        outputs = []
        for options in ({}, {"use_cache": True}):
            drawn = {"generator": torch.Generator().manual_seed(9)} if temperature else {}
            outputs.append(model.generate(start.clone(), new, temperature=temperature, **drawn, **options))
        return outputs[0].shape == outputs[1].shape and bool((outputs[0] == outputs[1]).all())

    def once() -> bool:
        positions: list[int] = []
        handle = model.wte.register_forward_pre_hook(lambda module, given: positions.append(given[0].numel()))
        start = torch.randint(letters, (2, 6), generator=torch.Generator().manual_seed(1))
        model.generate(start, 20, temperature=0, use_cache=True)
        handle.remove()
        return 0 < sum(positions) <= 2 * (6 + 20)

    return {
        "the same tokens within a block": lambda: all(same(1, p, n) for p, n in ((1, 20), (5, 20), (20, 12))),
        "the same tokens for a batch": lambda: same(3, 7, 20),
        "the same draws with a temperature": lambda: same(2, 7, 20, temperature=0.8),
        "a second call is not changed by the first one": lambda: same(1, 4, 8) and same(1, 9, 8, seed=3),
        "the same tokens beyond the block": lambda: same(1, 6, size + 12) and same(1, size + 5, 6),
        "each position is computed once": once,
    }


def _sampler_tests(script: ModuleType) -> Mapping[str, Callable[[], bool]]:
    def sampler(size: int, ranks: int, rank: int, seed: int = 3) -> Any:
        return script.ResumableSampler(range(size), ranks, rank, seed=seed)

    def epoch_of(size: int, ranks: int, epoch: int, seed: int = 3) -> list[list[int]]:
        shares = []
        for rank in range(ranks):
            one = sampler(size, ranks, rank, seed)
            one.set_epoch(epoch)
            shares.append([int(i) for i in one])
        return shares

    def without_repeats() -> bool:
        whole = ((n, itertools.chain(*epoch_of(n, ranks, 1))) for n in (12, 25) for ranks in _RANK_COUNTS)
        return all(sorted(found) == [*range(n)] for n, found in whole)

    def even() -> bool:
        for ranks in _RANK_COUNTS:
            sizes = [len(share) for share in epoch_of(25, ranks, 0)]
            if max(sizes) - min(sizes) > 1 or sizes != [len(sampler(25, ranks, rank)) for rank in range(ranks)]:
                return False
        return True

    def continued(after: int, later: int) -> bool:
        """Stop after some examples of epoch 2, and compare the rest with an uninterrupted run."""
        for rank in range(2):
            whole, first, second = (sampler(25, 2, rank) for _ in range(3))
            for one in (whole, first):
                one.set_epoch(2)
            wanted = [int(i) for i in whole]
            list(itertools.islice(first, after))
            second.load_state_dict(json.loads(json.dumps(first.state_dict())))
            found = [int(i) for i in second]
            if found != wanted[after:]:
                return False
            for epoch in range(3, 3 + later):
                whole.set_epoch(epoch)
                second.set_epoch(epoch)
                if [*whole] != [*second] or len(second) != len(wanted):
                    return False
        return True

    return {
        "the ranks share an epoch without repeats": without_repeats,
        "the shares differ by one example at most": even,
        "another order in each epoch": lambda: len({str(epoch_of(25, 2, epoch)) for epoch in range(5)}) == 5,
        "the same order for the same seed": lambda: (
            epoch_of(25, 2, 1) == epoch_of(25, 2, 1) != epoch_of(25, 2, 1, seed=4)
        ),
        "a new sampler continues in the middle of an epoch": lambda: all(continued(k, 0) for k in (1, 5, 11)),
        "the next epochs equal an uninterrupted run": lambda: continued(4, 2),
    }


def _sum_tests(script: ModuleType, healthy: ModuleType, kind: str, data: Path) -> Mapping[str, Callable[[], bool]]:
    from torch.utils.data import DataLoader, Subset

    model, dataset = _parts_of(healthy, kind, data)
    _draw_weights(model)
    size = len(dataset)  # type: ignore[arg-type]
    wanted = healthy.evaluate(model, DataLoader(dataset, batch_size=size))

    def figures(*cuts: int, turned: bool = False) -> dict[str, float]:
        ends = [0, *cuts, size]
        parts = [range(*pair) for pair in itertools.pairwise(ends)]
        loaders = [DataLoader(Subset(dataset, part), batch_size=7 + 5 * n) for n, part in enumerate(parts)]
        sums = [script.partial_sums(model, loader) for loader in (reversed(loaders) if turned else loaders)]
        found: dict[str, float] = script.figures(sum(sums[1:], start=sums[0]))
        return found

    def agrees(found: Mapping[str, float]) -> bool:
        return found.keys() >= wanted.keys() and all(
            abs(float(found[name]) - float(value)) <= 1e-4 * max(abs(float(value)), 1.0)
            for name, value in wanted.items()
        )

    def in_eval_mode() -> bool:
        found = []
        for mode in (True, False):
            model.train(mode)
            found.append(figures(size // 3))
        return agrees(found[0]) and agrees(found[1])

    return {
        "one part gives the figures of evaluate": lambda: agrees(figures()),
        "uneven parts give the figures of the whole": lambda: agrees(figures(size // 2, size // 2 + 13)),
        "a part of one example": lambda: agrees(figures(1)),
        "the order of the parts does not matter": lambda: agrees(figures(11, 40, turned=True)),
        "the network is in eval mode": in_eval_mode,
    }


def _parts_of(script: ModuleType, kind: str, data: Path) -> "tuple[nn.Module, Dataset[Any]]":
    """Return a network and the validation examples of a script."""
    if kind == "classifier":
        return script.Net(), script.Digits(data / "val.npz")
    if kind == "segmentation":
        model = script.UNet(script.WIDTHS, script.DROPOUT)
        return model, script.CellDataset(data / "val.npz", *script.pixel_statistics(data / "train.npz"))
    from torch.utils.data import TensorDataset

    preprocess = script.Preprocessor.fit(script.read_rows(data / "train.csv"))
    rows = script.read_rows(data / "val.csv")
    examples = TensorDataset(*preprocess(rows), script.labels_of(rows))
    return script.TableNet(preprocess.sizes), examples


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

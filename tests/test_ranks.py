"""A distributed script has the same bytes in a pair of processes without a network as under torchrun with gloo."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from test_scripts import digests, run

from harness.canonical_setup import run_environment
from harness.checks import run_checks
from harness.checks.core.library import load_check_for
from harness.data.folder import load_folder
from harness.errors import UserError
from harness.recipes.recipe import experiment_source
from harness.run.settings import RunSettings
from harness.scripts.ranks import SecondRank
from harness.scripts.script import Script

# Two ranks share the examples; dropout differs between them; each one has its own random numbers in the checkpoint.
SCRIPT = """
import argparse
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import track


def load(file):
    data = np.load(file)
    return TensorDataset(torch.from_numpy(data["inputs"][:96] / 255).float(), torch.from_numpy(data["labels"][:96]))


def main():
    parser = argparse.ArgumentParser()
    for name, kind in (("--data", Path), ("--out", Path), ("--seed", int)):
        parser.add_argument(name, type=kind)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    train, val = load(args.data / "train.npz"), load(args.data / "val.npz")
    sampler = DistributedSampler(train, world, rank, seed=args.seed)
    loader = DataLoader(train, 12, sampler=sampler)
    torch.manual_seed(args.seed + rank)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    first = 0
    if args.resume:
        state = torch.load(args.out / "ckpt.pt", weights_only=True)
        net.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"][rank])
        first = state["epoch"]
    for epoch in range(first, 4):
        sampler.set_epoch(epoch)
        net.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        net.eval()
        x, y = (part[rank::world] for part in val.tensors)
        sums = torch.tensor([(net(x).argmax(1) == y).sum(), len(y)])
        dist.all_reduce(sums)
        rng = [torch.empty_like(torch.get_rng_state()) for _ in range(world)]
        dist.all_gather(rng, torch.get_rng_state())
        state = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1, "rng": rng}
        if rank == 0:
            track.log({"val_accuracy": (sums[0] / sums[1]).item()})
            torch.save(state, args.out / "ckpt.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""
UNDER_TORCHRUN = """
import runpy, sys
from harness.canonical_setup import canonical_setup
from harness.scripts.numerics import apply_script_numerics

canonical_setup(3, numerics="portable")
apply_script_numerics()
sys.path.append(sys.argv.pop(1))
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return load_folder("digits").write(tmp_path_factory.mktemp("digits"))


def test_the_bytes_are_those_of_gloo_also_after_a_kill(data: Path, tmp_path: Path) -> None:
    whole, killed, real = (tmp_path / name for name in ("whole", "killed", "real"))
    done = run(whole, data, SCRIPT)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in whole.iterdir()) == ["checkpoint.pt", "inputs.json", "metrics.log", "out"]
    assert run(killed, data, SCRIPT, kill=10).returncode == -signal.SIGKILL
    assert run(killed, data, SCRIPT, resume=True).returncode == 0
    assert digests(whole) == digests(killed)

    real.mkdir()
    (real / "start.py").write_text(UNDER_TORCHRUN)
    (real / "train.py").write_text(SCRIPT)
    root = Path(__file__).parents[1]
    environment = run_environment("portable") | {"PYTHONPATH": str(root)}
    arguments = ["--data", str(data), "--out", str(real), "--seed", "3"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "start.py"]
    command += [str(root / "harness" / "scripts"), "train.py", *arguments]
    subprocess.run(command, cwd=real, env=environment, capture_output=True, check=True)
    states = [torch.load(path, weights_only=True) for path in (whole / "checkpoint.pt", real / "ckpt.pt")]
    for name, value in states[0]["model"].items():
        assert torch.equal(value, states[1]["model"][name])
    assert all(map(torch.equal, *(state["rng"] for state in states)))
    assert not torch.equal(*states[0]["rng"])


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            ("        sampler.set_epoch(epoch)\n", "        sampler.set_epoch(epoch)\n        assert rank == 0\n"),
            "In the second of two processes: experiment.py: the script raised AssertionError",
        ),
        (("        dist.all_reduce", "        if rank == 0:\n            dist.all_reduce"), "the same calls"),
        (("range(first, 4)", "range(first, 4 - rank)"), "the other process has ended"),
        (("range(first, 4)", "range(first, 3 + rank)"), "still waits for the first one, which has ended"),
        (('"gloo")', '"gloo")\n    if dist.get_rank() == 1:\n        import os\n        os._exit(7)'), "status 7"),
    ],
)
def test_a_mistake_in_either_rank_is_named(edit: tuple[str, str], said: str, data: Path, tmp_path: Path) -> None:
    assert edit[0] in SCRIPT
    done = run(tmp_path, data, SCRIPT.replace(*edit))
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_each_collective_gives_what_both_ranks_have() -> None:
    def results(rank: int) -> list[object]:
        dist.init_process_group("gloo")
        own = torch.arange(20_000.0) + rank
        found: list[object] = []
        for operation in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist.ReduceOp.MIN):
            reduced = own.clone()
            dist.all_reduce(reduced, operation)
            found.append(reduced[:2].tolist())
        sent = own[:3].clone()
        dist.broadcast(sent, src=1)
        joined = torch.empty(4)
        dist.all_gather_single(joined, own[:2])
        reduced, gathered = own[:2].clone(), [torch.empty(1), torch.empty(1)]
        dist.reduce(reduced, dst=1)
        dist.gather(own[:1], gathered if rank == 0 else None, dst=0)
        parts = [part.item() for part in gathered] if rank == 0 else reduced.tolist()
        objects: list[object] = [None, None]
        dist.all_gather_object(objects, {"rank": rank})
        dist.barrier()
        return [*found, sent.tolist(), joined.tolist(), objects, parts]

    other: list[object] = []
    with SecondRank(2, lambda: other) as pair:
        other = results(pair.rank)
    assert (other.pop(), pair.told.pop()) == ([0.0, 1.0], [1.0, 3.0])
    wanted = [[1.0, 3.0], [0.5, 1.5], [1.0, 2.0], [0.0, 1.0], [1.0, 2.0, 3.0], [0.0, 1.0, 1.0, 2.0]]
    assert other == pair.told == [*wanted, [{"rank": 0}, {"rank": 1}]]
    assert not dist.is_initialized() and "RANK" not in os.environ


def test_one_process_is_enough_for_other_scripts() -> None:
    assert Script(Path("x.py"), experiment_source("shapes_ddp")).ranks == 2
    assert Script(Path("x.py"), experiment_source("char_gpt")).ranks == 1
    with SecondRank(1, lambda: json.loads("1")) as pair:
        assert pair.rank == 0
    assert pair.told is None


def test_an_error_of_the_first_rank_stays_its_own() -> None:
    with pytest.raises(UserError, match="mine"), SecondRank(2):
        dist.init_process_group("gloo")
        if dist.get_rank() == 0:
            raise UserError("mine")
        dist.barrier()


WATCH = """
import json, sys
from pathlib import Path
from harness.checks.core.of_scripts import measure_script
from harness.run.settings import RunSettings
from harness.scripts.script import ScriptSubject

job = json.loads(sys.argv[1])
subject = ScriptSubject(Path("experiment.py"), job["source"], RunSettings(seed=3, dataset="digits"), Path(job["data"]))
print(measure_script(subject, ["replicas"])["replicas"].outcome)
"""
AROUND = ("F.cross_entropy(model(x), y)", "F.cross_entropy(net(x), y)")
SAME_SHARE = ("DistributedSampler(train, world, rank", "DistributedSampler(train, world, 0")
NOISE = ("model(x), y)", "model(x + 0.01 * torch.randn_like(x)), y)")


@pytest.mark.parametrize(
    ("edits", "outcome"),
    [((), "sound"), ((AROUND,), "drift"), ((SAME_SHARE,), "same-examples"), ((SAME_SHARE, NOISE), "same-labels")],
)
def test_a_fault_of_two_ranks_is_found(edits: tuple[tuple[str, str], ...], outcome: str, data: Path) -> None:
    source = SCRIPT
    for edit in edits:
        assert edit[0] in source
        source = source.replace(*edit)
    environment = run_environment("portable") | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", WATCH, json.dumps({"source": source, "data": str(data)})]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, outcome), done.stderr


@pytest.mark.slow
def test_the_checks_of_a_sound_distributed_script_end_and_find_nothing() -> None:
    source = experiment_source("shapes_ddp")
    found = run_checks(source, RunSettings(seed=7, dataset="shapes"))
    assert {name for name, one in found.items() if not load_check_for(name, source).outcome(one.outcome).sound} == set()
    assert found["resume"].outcome == "continues"

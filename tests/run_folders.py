"""Makes folders of runs with plausible files, without training: what the page of a run is tested on."""

import base64
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MLP = ("1.weight", "1.bias", "3.weight", "3.bias")
CNN = tuple(
    f"{layer}.{kind}"
    for layer in ("features.0", "features.1", "features.4", "features.5", "head.0", "head.3")
    for kind in ("weight", "bias")
)
DIGITS = [str(digit) for digit in range(10)]


def strict(value: Any) -> Any:
    """Write non-finite numbers as the strings that the log uses for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    return value


def make_run(
    folder: Path,
    *,
    run: str = "broken",
    parameters: Sequence[str] = MLP,
    epochs: int = 5,
    steps_per_epoch: int = 40,
    explode_at: int | None = None,
    regression: bool = False,
    channels: int = 1,
    class_names: Sequence[str] = DIGITS,
    seed: int = 42,
) -> Path:
    """Write a run's folder and return it; with `explode_at` its numbers grow and are NaN from then on."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    records: list[dict[str, Any]] = []
    step = 0
    for epoch in range(epochs):
        for _ in range(steps_per_epoch):
            records.append(_batch(rng, step, epoch, parameters, explode_at))
            step += 1
        records.append(_epoch(rng, epoch, epoch == epochs - 1, explode_at is not None, regression))
    write_log(folder, records)
    last = records[-1]
    result = {
        "seed": seed,
        "recipe": "huge_lr",
        "run": run,
        "checkpoint_path": "checkpoint.pt",
        "checkpoint_sha256": "ab" * 32,
        "final_train_loss": records[-2]["loss"],
        "final_val_metric": last["val_loss"] if regression else last["val_accuracy"],
        "final_val_loss": last["val_loss"],
        "final_val_accuracy": last["val_accuracy"],
        "steps": step,
        "epochs": epochs,
        "first_non_finite_step": explode_at,
        "guardrails": []
        if explode_at is None
        else [{"step": explode_at, "level": "hard", "message": "the loss is not finite"}],
        "confusion": None if regression else _confusion(rng, len(class_names), explode_at is not None),
        "class_names": None if regression else list(class_names),
        "status": "finished",
    }
    write_json(folder / "result.json", strict(result))
    write_json(folder / "checkpoint.pt.meta.json", _provenance(run, seed, epochs))
    write_json(folder / "inputs.json", _inputs(rng, channels, None if regression else class_names))
    return folder


def write_log(folder: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write the records as metrics.log."""
    lines = (json.dumps(strict(record), allow_nan=False) + "\n" for record in records)
    (folder / "metrics.log").write_text("".join(lines), encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON."""
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _batch(
    rng: random.Random, step: int, epoch: int, parameters: Sequence[str], explode_at: int | None
) -> dict[str, Any]:
    calm = 0.06 + 2.24 * math.exp(-step / 25)
    size = calm * math.exp(rng.gauss(0, 0.2))
    loss = size
    if explode_at is not None:
        loss = 2.3 * 10.0 ** (step * 1.6) if step < explode_at else math.nan
        size = loss * 40
    norms = {
        name: size * (0.4 if name.endswith("bias") else 1.0) * (1 + index / 4) * math.exp(rng.gauss(0, 0.1))
        for index, name in enumerate(parameters)
    }
    spread = (
        0.5 + 0.01 * step if explode_at is None else (0.5 * 30.0**step if step < explode_at else math.nan)
    )
    return {
        "step": step,
        "epoch": epoch,
        "loss": loss,
        "lr": 0.1 if explode_at is None else 10.0,
        "grad_norm": math.hypot(*norms.values()),
        "grad_mean": {name: norm / 1000 for name, norm in norms.items()},
        "grad_norm_by_parameter": norms,
        "grad_zero_fraction": min(1.0, 0.35 + 0.02 * rng.random() + 0.0005 * step),
        "stale_grad_ratio": 0.0,
        "optimizer_steps": 1,
        "activations": {
            "first": {"mean": -0.1 * spread + rng.gauss(0, 0.01), "var": spread},
            "last": {
                "mean": 0.02 * spread + rng.gauss(0, 0.05),
                "var": 3 * spread * math.exp(rng.gauss(0, 0.05)),
            },
        },
    }


def _epoch(rng: random.Random, epoch: int, last: bool, exploded: bool, regression: bool) -> dict[str, Any]:
    loss = math.nan if exploded else 0.25 + 0.4 * math.exp(-epoch) + rng.gauss(0, 0.004)
    accuracy = None if regression else (0.1 if exploded else 0.95 - 0.12 * math.exp(-epoch))
    record = {"epoch": epoch, "val_loss": loss, "val_accuracy": accuracy, "eval_buffer_change": 0.0}
    if last:
        for suffix in ("repeated", "eval_mode"):
            record |= {f"val_loss_{suffix}": loss, f"val_accuracy_{suffix}": accuracy}
    return record


def _confusion(rng: random.Random, classes: int, exploded: bool) -> list[list[int]]:
    if exploded:
        return [[50 if column == 0 else 0 for column in range(classes)] for _ in range(classes)]
    rows = [[max(0, rng.randint(-5, 3)) for _ in range(classes)] for _ in range(classes)]
    for index, row in enumerate(rows):
        row[index] = 50 - sum(row) + row[index]
    return rows


def _provenance(run: str, seed: int, epochs: int) -> dict[str, Any]:
    return {
        "format_version": 1,
        "recipe": "huge_lr",
        "experiment": "digits_mlp",
        "run": run,
        "seed": seed,
        "command": f"harness {'verify' if run == 'fixed' else 'exercise'} huge_lr --seed {seed}",
        "git_commit": "0123456789abcdef0123456789abcdef01234567",
        "source_sha256": ("c4" if run == "fixed" else "9e") * 32,
        "harness_sha256": "5d" * 32,
        "dataset": "digits",
        "dataset_digest": "71" * 32,
        "epochs": epochs,
        "batch_size": 64,
        "versions": {"python": "3.11.4", "torch": "2.13.0", "numpy": "2.4.6"},
        "platform_class": {
            "architecture": "x86_64",
            "numerics": "portable",
            "device": "cpu",
            "torch": "2.13.0",
            "golden": True,
        },
    }


def _inputs(rng: random.Random, channels: int, class_names: Sequence[str] | None) -> dict[str, Any]:
    count, side = 24, 28 if channels == 1 else 32
    pixels = bytearray()
    for _ in range(count):
        x, y, radius = rng.uniform(9, side - 9), rng.uniform(9, side - 9), rng.uniform(4, 8)
        for channel in range(channels):
            pixels += bytes(
                int(max(0, 255 - 60 * abs(math.hypot(column - x, row - y) - radius)) * (1 - 0.3 * channel))
                for row in range(side)
                for column in range(side)
            )
    labels = None if class_names is None else [rng.choice(class_names) for _ in range(count)]
    return {
        "shape": [count, channels, side, side],
        "pixels": base64.b64encode(bytes(pixels)).decode("ascii"),
        "labels": labels,
    }

"""Edits texts, and sees which outputs of the untrained network follow: later symbols, padding, order, the first symbol.

Applies to inputs of symbols, int64 (N, T). Labels (N, T) that are the inputs moved by one place ask for the next
symbol: then no output may follow a later symbol, and the order of the earlier ones must count. For other labels, a bag
of words is right, but not one with positions: the order must count if the network holds a table with a row for each
place, and the outputs follow fewer rows than a text has places. Labels that are the inputs themselves ask for nothing.
If texts are padded with 0 behind their end (nothing else comes after a 0), less padding must leave the outputs as they
are, and a loss of each place must leave out those of padding. If no place behind the end of a text has a label (-100)
and one symbol stands at all of them, that symbol is the padding. The first symbol must get a gradient wherever the
outputs follow it: otherwise something cuts the path back.

Sources of the bounds, over ten seeds of a transformer and a recurrent network: outputs that must stay do so to 2e-7, a
missing mask moves them by 0.08 of what an edit moves others, and padding by 0.8 of their spread (1e-4). Two symbols in
another order move the transformer's output by 0.2 of what another symbol does, without positions by 3e-6 (1e-4).
"""

import copy
from contextlib import suppress

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Subject, Trial, without_zeros
from harness.run.evaluation import IGNORED

TEXTS = 32
MOVES = 1e-4
SHIFTED = 0.99
PADDING = 0


def measure(subject: Subject) -> Finding:
    """Edit the first texts of the training split and pass them through the network, in eval mode."""
    trial = subject.trial()
    if trial.inputs.is_floating_point() or trial.inputs.dim() != 2 or trial.inputs.shape[1] < 3:
        return Finding("no-texts", f"inputs {tuple(trial.inputs.shape)}", {})
    texts, labels = trial.prepare(trial.inputs[:TEXTS], trial.labels[:TEXTS])
    model = without_zeros(copy.deepcopy(trial.model)).eval()
    figures: dict[str, Cell] = {"gradient of the first symbol": _first_gradient(model, texts)}
    outcomes = ["cut"] if figures["gradient of the first symbol"] == 0.0 else []
    symbol = _padding_of(trial.inputs, trial.labels)
    padded = not bool(((trial.inputs[:, :-1] == symbol) & (trial.inputs[:, 1:] != symbol)).any())
    if labels.shape == texts.shape:
        figures["labels equal to the input"] = copied = float((labels == texts).double().mean())
        shifted = float((labels[:, :-1] == texts[:, 1:]).double().mean())
        with torch.no_grad():
            later, order = _later(model, texts), _order(model, texts)
        if shifted > SHIFTED:
            figures |= {"moved by later symbols": later, "moved by order": order}
            outcomes = [
                *(["sees-later"] if later > MOVES else []),
                *(["ignores-order"] if order < MOVES else []),
                *outcomes,
            ]
        if padded and (padding := _effect_of_padding(model, texts, symbol)) is not None:
            figures["moved by less padding"] = padding
            outcomes = ["sees-padding", *outcomes] if padding > MOVES else outcomes
        if padded and (counted := _counted_padding(trial, model, texts, labels, symbol)) is not None:
            figures["gradient at padding"] = counted
            outcomes = ["counts-padding", *outcomes] if counted else outcomes
        outcomes = ["copies", *outcomes] if copied > SHIFTED else outcomes
    else:
        if padded and (padding := _effect_of_padding(model, texts, symbol)) is not None:
            figures["moved by less padding"] = padding
            outcomes = ["sees-padding", *outcomes] if padding > MOVES else outcomes
        if _wastes_places(model, texts):
            with torch.no_grad():
                figures["moved by order"] = order = _order(model, texts)
            outcomes = ["ignores-order", *outcomes] if order < MOVES else outcomes
    words = ", ".join(f"{name} {short(value)}" for name, value in figures.items())
    return Finding(outcomes[0] if outcomes else "in-order", words, figures)


def _padding_of(texts: Tensor, labels: Tensor) -> int:
    """Return the symbol that fills texts up: the one at the end of texts where no place has a label, or else 0."""
    if labels.shape == texts.shape:
        behind = (labels == IGNORED).flip(1).long().cumprod(dim=1).flip(1).bool()
        symbols = texts[behind].unique()
        if len(symbols) == 1 and not bool(behind.all(dim=1).any()):
            return int(symbols)
    return PADDING


def _counted_padding(trial: Trial, model: nn.Module, texts: Tensor, labels: Tensor, symbol: int) -> float | None:
    """Return the largest gradient of the loss at outputs of padding; None without padding or outputs for each place.

    The place right behind a text may ask for its end.
    """
    behind = (texts[:, :-1] == symbol) & (texts[:, 1:] == symbol)
    behind = torch.cat([torch.zeros_like(behind[:, :1]), behind], dim=1)
    outputs = model(texts).detach().requires_grad_()
    if not bool(behind.any()) or outputs.shape[:2] != texts.shape:
        return None
    (gradient,) = torch.autograd.grad(trial.experiment.compute_loss(outputs, labels), outputs, materialize_grads=True)
    return float(gradient[behind].abs().max())


def _other(symbols: Tensor, texts: Tensor) -> Tensor:
    """Return another symbol of the texts for each of these, none of them padding."""
    low, high = int(texts.min()) + int(texts.min() == PADDING), int(texts.max())
    return (symbols - low + 1) % max(high - low + 1, 1) + low


def _distance(before: Tensor, after: Tensor) -> float:
    return float((after.double() - before.double()).abs().max())


def _later(model: nn.Module, texts: Tensor) -> float:
    """Return how far the last symbol moves the outputs before it, over how far it moves its own."""
    edited = texts.clone()
    edited[:, -1] = _other(texts[:, -1], texts)
    before, after = model(texts), model(edited)
    own = _distance(before[:, -1], after[:, -1])
    return _distance(before[:, :-1], after[:, :-1]) / own if own else 0.0


def _order(model: nn.Module, texts: Tensor) -> float:
    """Return how far the last output moves if the two first symbols change places, over what another symbol does.

    1.0 for a network whose last output does not depend on the first symbol, so that no order counts.
    """
    swapped, edited = texts.clone(), texts.clone()
    swapped[:, [0, 1]] = texts[:, [1, 0]]
    edited[:, 0] = _other(texts[:, 0], texts)
    before, after, other = (_last(model(one)) for one in (texts, swapped, edited))
    moved = _distance(before, other)
    return _distance(before, after) / moved if moved else 1.0


def _last(outputs: Tensor) -> Tensor:
    """Return the outputs of the last place, or of the text if there is one of it."""
    return outputs[:, -1] if outputs.dim() > 2 else outputs


def _wastes_places(model: nn.Module, texts: Tensor) -> bool:
    """Return whether a network holds a table (places, width) or (1, places, width) and uses fewer rows than places.

    A table of places is no weight of a layer: it is a tensor that a module of the experiment holds itself, or an
    embedding that is not called with the symbols.
    """
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    of_symbols: set[nn.Module] = set()

    def note(table: nn.Module, given: tuple[Tensor, ...]) -> None:
        if torch.equal(given[0], texts):
            of_symbols.add(table)

    handles = [table.register_forward_pre_hook(note) for table in tables]
    own = [module for module in model.modules() if not type(module).__module__.startswith("torch.")]
    held = [tensor for one in own for tensor in (*one.parameters(recurse=False), *one.buffers(recurse=False))]
    held = [tensor.requires_grad_() for tensor in held if tensor.is_floating_point()]
    squares = model(texts).square().sum()
    for handle in handles:
        handle.remove()
    held += [table.weight.requires_grad_() for table in tables if table not in of_symbols]
    widths = {table.embedding_dim for table in tables}
    for tensor in held:
        shape = [size for size in tensor.shape if size > 1]
        if len(shape) == 2 and shape[0] >= texts.shape[1] and shape[1] in widths:
            (grown,) = torch.autograd.grad(squares, tensor, retain_graph=True, materialize_grads=True)
            if int(grown.reshape(shape).any(dim=1).sum()) < texts.shape[1]:
                return True
    return False


def _effect_of_padding(model: nn.Module, texts: Tensor, symbol: int) -> float | None:
    """Return how far outputs move without the padding at the end, over their spread; None if texts are not padded.

    Of outputs for each place, those at padding may be anything.
    """
    ends = (texts != symbol).int().flip(1).argmax(dim=1)  # the places of padding behind each text
    padded = texts[ends > 0]
    if not len(padded) or not (texts[:, 0] != symbol).all():
        return None
    cut = int(ends[ends > 0].min())
    shorter = padded[:, : padded.shape[1] - cut]
    with suppress(RuntimeError, IndexError), torch.no_grad():  # a network may take one length alone
        before, after = model(padded), model(shorter)
        if before.shape[:2] == padded.shape and after.shape[:2] == shorter.shape:
            before, after = (outputs[:, : shorter.shape[1]][shorter != symbol] for outputs in (before, after))
        if before.shape == after.shape:
            return _distance(before, after) / max(float((before - before.mean(dim=0)).abs().max()), 1e-12)
    return None


def _first_gradient(model: nn.Module, texts: Tensor) -> float | None:
    """Return the gradient of the first symbol's embedding in a text that has it once; None if no output follows it."""
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    once = ((texts == texts[:, :1]).sum(dim=1) == 1) & (texts[:, 0] != PADDING)
    if not tables or not once.any():
        return None
    text = texts[once][:1]
    edited = text.clone()
    edited[:, 0] = _other(text[:, 0], texts)
    last = _last(model(text))
    with torch.no_grad():
        if not _distance(last, _last(model(edited))):
            return None
    table = next((t for t in tables if t.num_embeddings > int(texts.max())), tables[0])
    grown = torch.autograd.grad(last.square().sum(), table.weight, allow_unused=True)[0]
    return None if grown is None else float(grown[text[0, 0]].abs().max())

"""Pretrain the encoder of the data set `grammar`: python grader/replay/heldout/make_encoder.py

It learns to fill in masked words of grammatical sentences. It writes vocab.txt and base.npz, with weights in float16.
Other processors round differently, so the weights get the same bytes only on equal machines.
"""

import random
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import numpy as np
import torch
import torch.nn.functional as F
from make_files import EMBEDDED, grammatical, list_sums  # type: ignore[import-not-found]
from torch import Tensor, nn

from harness.scripts.run import module_track

FOLDER = EMBEDDED / "grammar"
WORDS_BEFORE = ("<pad>", "<unk>", "<mask>")
MASK = 2
SENTENCES = 24_000
STEPS = 2000
BATCH_SIZE = 96
MASKED = 0.2


def ignore(values: Mapping[str, object], *, step: int | None = None) -> None:
    """The script is only imported, so it logs nothing."""


with module_track(ignore):
    from harness.experiments import grammar_lora


def pretrain(sentences: list[list[str]], words: list[str]) -> nn.Module:
    """Return an encoder that fills in masked words."""
    index = {word: i for i, word in enumerate(words)}
    texts = [torch.tensor([index[word] for word in sentence]) for sentence in sentences]
    ids = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=grammar_lora.PAD)
    encoder = grammar_lora.Encoder(grammar_lora.EncoderConfig(dropout=0.1), len(words))
    bias = nn.Parameter(torch.zeros(len(words)))
    optimizer = torch.optim.AdamW([*encoder.parameters(), bias], lr=6e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=STEPS)
    nn.init.normal_(encoder.word.weight, std=0.1)
    nn.init.normal_(encoder.position.weight, std=0.1)
    for step in range(STEPS):
        batch = ids[torch.randint(len(ids), (BATCH_SIZE,))]
        is_word = batch != grammar_lora.PAD
        batch, is_word = batch[:, : (longest := int(is_word.sum(dim=1).max()))], is_word[:, :longest]
        masked = is_word & (torch.rand(batch.shape) < MASKED)
        features: Tensor = encoder(batch.masked_fill(masked, MASK), is_word)[masked]
        loss = F.cross_entropy(features @ encoder.word.weight.T + bias, batch[masked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 250 == 0 or step == STEPS - 1:
            print(step, f"{loss.item():.3f}", flush=True)
    return encoder


def main() -> None:
    """Write the two files."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = random.Random("encoder")
    sentences = [[word for word, _ in grammatical(rng)] for _ in range(SENTENCES)]
    words = [*WORDS_BEFORE, *sorted({word for sentence in sentences for word in sentence})]
    encoder = pretrain(sentences, words)
    (FOLDER / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    arrays = {name: value.half().numpy() for name, value in encoder.state_dict().items()}
    np.savez_compressed(FOLDER / "base.npz", allow_pickle=False, **arrays)
    list_sums(EMBEDDED, ["grammar/base.npz", "grammar/vocab.txt"])


if __name__ == "__main__":
    main()

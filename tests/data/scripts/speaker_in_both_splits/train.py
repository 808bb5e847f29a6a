"""Emotion recognition from short speech clips (log-mel frames)."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EMOTIONS = ["neutral", "happy", "angry", "sad"]
N_MELS, N_FRAMES = 16, 24


def make_corpus(n_speakers, clips_per_speaker, seed):
    rng = np.random.default_rng(seed)
    prosody = rng.normal(size=(4, N_MELS, N_FRAMES)) * 0.25
    clips, emotions, speakers = [], [], []
    for s in range(n_speakers):
        voice = rng.normal(size=(N_MELS, 1)) * 1.0
        share = rng.dirichlet([0.4] * 4)
        for _ in range(clips_per_speaker):
            e = rng.choice(4, p=share)
            clip = voice + prosody[e] + rng.normal(size=(N_MELS, N_FRAMES))
            clips.append(clip)
            emotions.append(e)
            speakers.append(s)
    return (
        torch.tensor(np.stack(clips), dtype=torch.float32),
        torch.tensor(emotions),
        torch.tensor(speakers),
    )


class EmotionNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(N_MELS, width, 5, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, width, 5, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(width * N_FRAMES // 2, 4),
        )

    def forward(self, x):
        return self.body(x)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = total = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    return right / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=7)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    clips, emotions, speakers = make_corpus(40, 30, args.seed)

    order = torch.randperm(len(clips))
    cut = int(0.8 * len(clips))
    train_idx, val_idx = order[:cut], order[cut:]

    mean = clips[train_idx].mean(dim=(0, 2), keepdim=True)
    std = clips[train_idx].std(dim=(0, 2), keepdim=True)
    clips = (clips - mean) / std
    train_dl = DataLoader(TensorDataset(clips[train_idx], emotions[train_idx]), batch_size=32, shuffle=True)
    val_dl = DataLoader(TensorDataset(clips[val_idx], emotions[val_idx]), batch_size=128)

    model = EmotionNet()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, y in train_dl:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            running += loss.item() * len(y)
        print(f"epoch {epoch} loss {running / len(train_idx):.3f} val acc {evaluate(model, val_dl):.3f}")
    print(f"validation accuracy {evaluate(model, val_dl):.3f}")


if __name__ == "__main__":
    main()

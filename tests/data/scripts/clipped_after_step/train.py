import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import StepLR

torch.manual_seed(24)
KEYS, MELS, FRAMES = 6, 16, 24
spectrum = torch.rand(KEYS, MELS) * (torch.rand(KEYS, MELS) < 0.35)


def recordings(n):
    roll = torch.zeros(n, FRAMES, KEYS)
    for k in range(n):
        for _ in range(8):
            key, on = int(torch.randint(0, KEYS, (1,))), int(torch.randint(0, FRAMES - 4, (1,)))
            roll[k, on : on + int(torch.randint(3, 9, (1,))), key] = 1.0
    mel = roll @ spectrum + 0.1 * torch.randn(n, FRAMES, MELS)
    loud = torch.rand(n) < 0.01
    mel[loud] *= 5000.0
    return mel, roll


class OnsetsAndFrames(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(MELS, 48), nn.ReLU())
        self.rnn = nn.GRU(48, 32, batch_first=True)
        self.skip = nn.Linear(48, KEYS)
        self.frame = nn.Linear(32, KEYS)

    def forward(self, mel):
        x = self.fc(mel)
        return self.frame(self.rnn(x)[0]) + self.skip(x)


mel, label = recordings(480)
val_mel, val_label = recordings(120)
quiet = val_mel.abs().amax((1, 2)) < 50
model = OnsetsAndFrames()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
scheduler = StepLR(optimizer, step_size=200, gamma=0.98)
clip_gradient_norm, losses = 1.0, []
loop = torch.cat([torch.randperm(480) for _ in range(14)]).split(24)
for i, idx in enumerate(loop):
    model.train()
    loss = nn.functional.binary_cross_entropy_with_logits(model(mel[idx]), label[idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if clip_gradient_norm:
        clip_grad_norm_(model.parameters(), clip_gradient_norm)
    losses.append(loss.item())
    if i % 40 == 39:
        model.eval()
        with torch.no_grad():
            pred = (model(val_mel[quiet]) > 0).float()
        tp = (pred * val_label[quiet]).sum()
        f1 = 2 * tp / (pred.sum() + val_label[quiet].sum())
        print(f"iteration {i + 1} loss {sum(losses[-40:]) / 40:.4f} frame F1 {f1.item():.4f}")

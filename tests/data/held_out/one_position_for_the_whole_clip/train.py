import math

import torch
import torch.nn as nn

torch.manual_seed(21)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=100):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        x = x + self.pe[:, x.shape[1], :]
        return self.dropout(x)


class TalkingHead(nn.Module):
    """Audio features and a style code go in, jaw and head pose of every frame come out."""

    def __init__(self, audio_dim=6, style_dim=2, d_model=48, motion_dim=3):
        super().__init__()
        self.audio_proj = nn.Linear(audio_dim, d_model)
        self.style_proj = nn.Linear(style_dim, d_model)
        self.position = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, 4, 96, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.motion = nn.Linear(d_model, motion_dim)

    def forward(self, audio, style):
        x = self.audio_proj(audio) + self.style_proj(style)[:, None]
        return self.motion(self.encoder(self.position(x)))


def clips(n, frames=30):
    audio = torch.randn(n, frames, 6)
    loud = audio[..., :2].mean(-1)
    smooth = (loud + loud.roll(1, 1) + loud.roll(2, 1)) / 3
    smooth[:, :2] = loud[:, :2]
    style = torch.rand(n, 2)
    t = torch.arange(frames) / frames
    nod = style[:, :1] * torch.sin(2 * math.pi * t)[None]
    turn = style[:, 1:] * torch.cos(3 * math.pi * t)[None]
    return audio, style, torch.stack([smooth, nod, turn], -1)


audio, style, motion = clips(600)
audio_v, style_v, motion_v = clips(150)
model = TalkingHead()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()

for epoch in range(12):
    model.train()
    for idx in torch.randperm(len(audio)).split(24):
        loss = criterion(model(audio[idx], style[idx]), motion[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = criterion(model(audio_v, style_v), motion_v).item()
    print(f"epoch {epoch + 1:2d}, training loss {loss.item():.4f}, motion error {error:.4f}")

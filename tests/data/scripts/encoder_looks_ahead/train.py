import math

import torch
from torch import nn

torch.manual_seed(1)
NTOKEN, BPTT = 30, 16


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2], pe[:, 0, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, d_model=48, nhead=4, d_hid=96, nlayers=2, dropout=0.1):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        layers = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout)
        self.transformer_encoder = nn.TransformerEncoder(layers, nlayers, enable_nested_tensor=False)
        self.embedding, self.linear = nn.Embedding(NTOKEN, d_model), nn.Linear(d_model, NTOKEN)
        self.d_model = d_model

    def forward(self, src, src_mask=None):
        src = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        output = self.transformer_encoder(src, src_mask)
        return self.linear(output)


successor = torch.randint(0, NTOKEN, (NTOKEN, NTOKEN))


def text(length):
    words = [3, 5]
    for _ in range(length):
        if torch.rand(1).item() < 0.1:
            words.append(torch.randint(0, NTOKEN, (1,)).item())
        else:
            words.append(successor[words[-2] % 3, words[-1]].item())
    return torch.tensor(words)


def batchify(data, bsz):
    seq_len = data.size(0) // bsz
    return data[: seq_len * bsz].view(bsz, seq_len).t().contiguous()


def get_batch(source, i):
    seq_len = min(BPTT, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


train_data, val_data = batchify(text(16000), 20), batchify(text(3000), 10)
model, criterion = TransformerModel(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(1, 7):
    model.train()
    for i in range(0, train_data.size(0) - 1, BPTT):
        data, targets = get_batch(train_data, i)
        loss = criterion(model(data).view(-1, NTOKEN), targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    model.eval()
    right, seen, ppl = 0, 0, 0.0
    with torch.no_grad():
        for i in range(0, val_data.size(0) - 1 - BPTT, BPTT):
            data, targets = get_batch(val_data, i)
            out = model(data)
            ppl += criterion(out.view(-1, NTOKEN), targets).item()
            right += (out[-1].argmax(-1) == targets.view(BPTT, -1)[-1]).sum().item()
            seen += 10
    print(f"end of epoch {epoch} valid loss {ppl / (seen / 10):.3f} | word after a whole window {right / seen:.4f}")

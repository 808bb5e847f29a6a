import torch
from torch import nn

torch.manual_seed(266)
PAD, BOS, V, MAX_LEN = 0, 1, 24, 40


class TranslationDataset(torch.utils.data.Dataset):
    """Source and target are padded to the longest length that is allowed."""

    def __init__(self, n, lexicon):
        self.src, self.tgt = torch.full((n, MAX_LEN), PAD), torch.full((n, MAX_LEN), PAD)
        for k in range(n):
            words = torch.randint(2, V, (int(torch.randint(3, 8, (1,))),))
            self.src[k, : len(words)] = words
            self.tgt[k, : len(words)] = lexicon[words].flip(0)

    def __len__(self):
        return len(self.src)

    def __getitem__(self, k):
        return self.src[k], self.tgt[k]


class Seq2SeqTransformer(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.tok = nn.Embedding(V, d, padding_idx=PAD)
        self.pos = nn.Parameter(torch.randn(MAX_LEN, d) * 0.1)
        self.model = nn.Transformer(d, 4, 1, 1, 96, dropout=0.0, batch_first=True)
        self.lm_head = nn.Linear(d, V)

    def forward(self, src, labels):
        dec_in = torch.cat([torch.full((len(labels), 1), BOS), labels[:, :-1]], 1)
        n = dec_in.size(1)
        hidden = self.model(
            self.tok(src) + self.pos, self.tok(dec_in) + self.pos[:n],
            tgt_mask=torch.triu(torch.ones(n, n, dtype=torch.bool), 1),
            src_key_padding_mask=src == PAD, memory_key_padding_mask=src == PAD,
        )
        return self.lm_head(hidden)


lexicon = torch.cat([torch.zeros(2, dtype=torch.long), torch.randperm(V - 2) + 2])
train_loader = torch.utils.data.DataLoader(TranslationDataset(480, lexicon), batch_size=32, shuffle=True)
val_loader = torch.utils.data.DataLoader(TranslationDataset(96, lexicon), batch_size=32)
model = Seq2SeqTransformer()
loss_fct = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    for src, labels in train_loader:
        logits = model(src, labels)
        loss = loss_fct(logits.view(-1, V), labels.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = total = 0
    with torch.no_grad():
        for src, labels in val_loader:
            real = labels != PAD
            right += (model(src, labels).argmax(-1) == labels)[real].sum().item()
            total += real.sum().item()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy on words {right / total:.4f}")

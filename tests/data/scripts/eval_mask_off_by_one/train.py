import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(55)
PAD, V = 0, 18
table = torch.randint(2, V, (V, V))


def sentence():
    words = torch.randint(2, V, (2,)).tolist()
    for _ in range(torch.randint(3, 14, (1,)).item()):
        words.append(table[words[-2], words[-1]].item() if torch.rand(1) < 0.9 else torch.randint(2, V, (1,)).item())
    return torch.tensor(words + [1])


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(V, 64), nn.GRU(64, 128, batch_first=True), nn.Linear(128, V)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def collate(batch):
    ids = nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)
    lengths = torch.tensor([len(s) for s in batch])
    attention_mask = (torch.arange(ids.size(1))[None] < lengths[:, None]).long()
    return ids, attention_mask


def evaluate(model, sentences, batch_size=25):
    model.eval()
    total_loss, total_tokens = 0.0, 0
    with torch.no_grad():
        for i in range(0, len(sentences), batch_size):
            input_ids, attention_mask = collate(sentences[i : i + batch_size])
            logits = model(input_ids)[:, :-1]
            loss = F.cross_entropy(logits.transpose(1, 2), input_ids[:, 1:], reduction="none")
            mask = attention_mask[:, :-1]
            total_loss += (loss * mask).sum().item()
            total_tokens += mask.sum().item()
    return total_loss / total_tokens


train_set, test_set = [sentence() for _ in range(1500)], [sentence() for _ in range(300)]
model = LM()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    order = torch.randperm(len(train_set)).tolist()
    for i in range(0, len(order), 50):
        input_ids, attention_mask = collate([train_set[j] for j in order[i : i + 50]])
        labels = input_ids.masked_fill(attention_mask == 0, -100)
        logits = model(input_ids)
        loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} training loss {loss.item():.4f} evaluation loss {evaluate(model, test_set):.4f}")

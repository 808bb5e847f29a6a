import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)
VOCAB, LENGTH = 20, 24
follow = torch.stack([torch.randperm(VOCAB) for _ in range(2)])


def corpus(n):
    seq = torch.randint(0, VOCAB, (n, LENGTH))
    for t in range(1, LENGTH):
        pick = (torch.rand(n) < 0.15).long()
        seq[:, t] = follow[pick, seq[:, t - 1]]
    return seq


def causal_lm_loss(logits, labels, vocab_size, ignore_index=-100):
    labels = F.pad(labels, (0, 1), value=ignore_index)
    shift_labels = labels[..., 1:].contiguous()
    return F.cross_entropy(logits.view(-1, vocab_size), shift_labels.view(-1), ignore_index=ignore_index)


class JetForCausalLM(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(torch.randn(LENGTH, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1)
        self.lm_head = nn.Linear(dim, VOCAB, bias=False)
        self.loss_function = causal_lm_loss

    def forward(self, input_ids, labels=None):
        n = input_ids.shape[1]
        mask = torch.triu(torch.full((n, n), float("-inf")), diagonal=1)
        hidden = self.layers(self.embed_tokens(input_ids) + self.position[:n], mask=mask)
        logits = self.lm_head(hidden)
        loss = None
        if labels is not None:
            shift_logits = logits[..., :-1, :].contiguous()
            shift_labels = labels[..., 1:].contiguous()
            loss = self.loss_function(shift_logits, shift_labels, VOCAB)
        return loss, logits


train_ids, eval_ids = corpus(640), corpus(200)
model = JetForCausalLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for idx in torch.randperm(len(train_ids)).split(32):
        loss, _ = model(train_ids[idx], labels=train_ids[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        eval_loss, logits = model(eval_ids, labels=eval_ids)
    right = (logits[:, :-1].argmax(-1) == eval_ids[:, 1:]).float().mean().item()
    print(f"epoch {epoch} train {loss.item():.4f} eval {eval_loss.item():.4f} next token accuracy {right:.4f}")

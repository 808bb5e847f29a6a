import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(5)
np.random.seed(5)
EMOTIONS, WORDS, LEN = 8, 120, 12


def comments(n):
    labels = (torch.rand(n, EMOTIONS) < 0.2).float()
    text = torch.randint(EMOTIONS * 4, WORDS, (n, LEN))
    for k in range(n):
        for e in torch.nonzero(labels[k]).flatten().tolist():
            if torch.rand(1) < 0.6:
                text[k, torch.randint(0, LEN, (1,))] = e * 4 + torch.randint(0, 4, (1,))
    return text, labels


class EmotionClassifier(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb, self.dropout = nn.Embedding(WORDS, dim), nn.Dropout(0.1)
        self.encoder = nn.Sequential(nn.Linear(dim, 64), nn.ReLU())
        self.classifier = nn.Linear(64, EMOTIONS)
        self.loss_fct = nn.BCEWithLogitsLoss()

    def forward(self, input_ids, labels=None):
        hidden = self.encoder(self.emb(input_ids)).amax(1)
        logits = self.classifier(self.dropout(hidden))
        return self.loss_fct(logits, labels), logits


def evaluate(args, model, text, labels):
    model.eval()
    preds = None
    with torch.no_grad():
        for idx in torch.arange(len(text)).split(64):
            _, logits = model(text[idx], labels[idx])
            preds = logits.numpy() if preds is None else np.append(preds, logits.numpy(), axis=0)
    preds[preds > args["threshold"]] = 1
    preds[preds <= args["threshold"]] = 0
    truth = labels.numpy()
    tp, fp, fn = ((preds * truth).sum(0), (preds * (1 - truth)).sum(0), ((1 - preds) * truth).sum(0))
    return float(np.mean(2 * tp / np.maximum(2 * tp + fp + fn, 1)))


args = {"threshold": 0.3, "learning_rate": 2e-3, "num_train_epochs": 8, "train_batch_size": 32}
train, dev = comments(1500), comments(500)
model = EmotionClassifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=args["learning_rate"])
for epoch in range(args["num_train_epochs"]):
    model.train()
    for idx in torch.randperm(1500).split(args["train_batch_size"]):
        loss, _ = model(train[0][idx], train[1][idx])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} macro_f1 {evaluate(args, model, *dev):.4f}")

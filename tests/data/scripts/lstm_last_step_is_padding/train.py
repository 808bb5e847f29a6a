import random
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(11)
torch.manual_seed(11)

FILLER = [f"w{i}" for i in range(40)]
TOPICS = {0: ["goal", "match", "coach"], 1: ["vote", "law", "senate"], 2: ["stock", "bank", "profit"]}
vocab = {"<pad>": 0}
for word in FILLER + sum(TOPICS.values(), []):
    vocab[word] = len(vocab)


def headline():
    label = random.randrange(3)
    length = random.choice([6, 8, 10, 12, 50])
    words = random.choices(FILLER, k=length)
    for pos in random.sample(range(length), 2):
        words[pos] = random.choice(TOPICS[label])
    return torch.tensor([vocab[w] for w in words]), label


def collate(batch):
    texts, labels = zip(*batch)
    lengths = torch.tensor([len(t) for t in texts])
    return pad_sequence(texts, batch_first=True), lengths, torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self, vocab_size, dim=24, hidden=32, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, text, lengths):
        output, _ = self.lstm(self.embedding(text))
        last = output[:, -1]
        return self.fc(last)


train_loader = DataLoader([headline() for _ in range(800)], batch_size=32, shuffle=True, collate_fn=collate)
val_loader = DataLoader([headline() for _ in range(300)], batch_size=50, collate_fn=collate)
model = Classifier(len(vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()


def validate():
    model.eval()
    correct = 0
    with torch.no_grad():
        for text, lengths, labels in val_loader:
            correct += (model(text, lengths).argmax(1) == labels).sum().item()
    return correct / len(val_loader.dataset)


for epoch in range(8):
    model.train()
    epoch_loss = 0.0
    for text, lengths, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(text, lengths), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item()
    print(f"epoch {epoch + 1}: loss {epoch_loss / len(train_loader):.3f}")
print(f"validation accuracy {validate():.4f}")

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.modules.loss import _Loss

torch.manual_seed(7384)
USERS, ITEMS, TASTES = 200, 150, 5
user_taste, item_taste = torch.randint(0, TASTES, (USERS,)), torch.randint(0, TASTES, (ITEMS,))
chance = torch.where(user_taste[:, None] == item_taste[None], 0.35, 0.02)
liked = torch.rand(USERS, ITEMS) < chance
held_out = liked & (torch.rand(USERS, ITEMS) < 0.25)
train_liked = liked & ~held_out
pairs = torch.nonzero(train_liked)


class BPRLoss(_Loss):
    def __init__(self, lambda_reg=0.0):
        super().__init__(None, None, "sum")
        self.lambda_reg = lambda_reg

    def forward(self, positives, negatives, parameters):
        n_pairs = positives.size(0)
        log_prob = F.logsigmoid(positives - negatives).mean()
        regularization = self.lambda_reg * parameters.norm(p=2).pow(2)
        return (-log_prob + regularization) / n_pairs


class LightGCN(nn.Module):
    def __init__(self, adj, dim=24, num_layers=2):
        super().__init__()
        self.embedding = nn.Embedding(USERS + ITEMS, dim)
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.adj, self.num_layers = adj, num_layers

    def get_embedding(self):
        x = self.embedding.weight
        out = x / (self.num_layers + 1)
        for _ in range(self.num_layers):
            x = self.adj @ x
            out = out + x / (self.num_layers + 1)
        return out

    def recommendation_loss(self, pos, neg, nodes, lambda_reg=1e-4):
        return BPRLoss(lambda_reg)(pos, neg, self.embedding(nodes))


A = torch.zeros(USERS + ITEMS, USERS + ITEMS)
A[pairs[:, 0], USERS + pairs[:, 1]] = A[USERS + pairs[:, 1], pairs[:, 0]] = 1.0
scale = A.sum(1).clamp(min=1).pow(-0.5)
model = LightGCN(scale[:, None] * A * scale[None])
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
for epoch in range(24):
    model.train()
    for idx in torch.randperm(len(pairs)).split(256):
        user, item = pairs[idx].T
        negative = torch.randint(0, ITEMS, (len(idx),))
        z = model.get_embedding()
        pos, neg = (z[user] * z[USERS + item]).sum(1), (z[user] * z[USERS + negative]).sum(1)
        loss = model.recommendation_loss(pos, neg, torch.cat([user, USERS + item, USERS + negative]).unique())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        z = model.get_embedding()
        scores = (z[:USERS] @ z[USERS:].T).masked_fill(train_liked, -1e9)
        top = scores.topk(20).indices
    recall = held_out.gather(1, top).sum().item() / held_out.sum().item()
    print(f"Epoch: {epoch:03d}, Loss: {loss.item():.4f}, Recall@20: {recall:.4f}")

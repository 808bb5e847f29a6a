import copy

import torch
import torch.nn as nn

torch.manual_seed(98)


def dynamics(n, noise):
    s, a = torch.rand(n, 4) * 2 - 1, torch.rand(n, 1) * 2 - 1
    nxt = s + 0.2 * torch.sin(3 * s.roll(1, 1)) + 0.3 * a * s
    return torch.cat([s, a], 1), nxt - s + noise * torch.randn(n, 4)


class GaussianMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(5, 200), nn.SiLU(), nn.Linear(200, 200), nn.SiLU())
        self.mean = nn.Linear(200, 4)

    def forward(self, x):
        return self.mean(self.hidden(x))


class ModelTrainer:
    def __init__(self, model, optim_lr=1e-2, weight_decay=0.0):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=optim_lr, weight_decay=weight_decay)

    def train(self, train_set, val_set, num_epochs, batch_size=50):
        best_weights, best_val_score = None, None
        for epoch in range(num_epochs):
            self.model.train()
            for idx in torch.randperm(len(train_set[0])).split(batch_size):
                loss = nn.functional.mse_loss(self.model(train_set[0][idx]), train_set[1][idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            eval_score = self.evaluate(*val_set)
            if best_val_score is None or eval_score < best_val_score:
                best_val_score = eval_score
                best_weights = copy.deepcopy(self.model.state_dict())
            if epoch % 10 == 9:
                print(f"epoch {epoch + 1} train {loss.item():.4f} val {eval_score:.4f} best {best_val_score:.4f}")
        self.maybe_set_best_weights(best_weights)

    def maybe_set_best_weights(self, best_weights):
        if best_weights is not None:
            self.model.state_dict(destination=best_weights)

    def evaluate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            return nn.functional.mse_loss(self.model(x), y).item()


model = GaussianMLP()
trainer = ModelTrainer(model)
trainer.train(dynamics(150, 0.15), dynamics(150, 0.05), num_epochs=80)
print(f"error of the trained model on new transitions: {trainer.evaluate(*dynamics(1000, 0.0)):.4f}")

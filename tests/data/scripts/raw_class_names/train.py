import numpy as np
import torch
import torch.nn as nn

np.random.seed(409)
torch.manual_seed(409)


class TabularNet(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.body(x).squeeze(-1)


class MLPClassifier:
    def __init__(self, lr=2e-3, max_epochs=12, batch_size=32):
        self.lr, self.max_epochs, self.batch_size = lr, max_epochs, batch_size

    def preprocess_data(self, X, y):
        self.mean_, self.std_ = X.mean(0), X.std(0) + 1e-8
        X = torch.tensor((X - self.mean_) / self.std_, dtype=torch.float32)
        return X, torch.tensor(y, dtype=torch.float32)

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        X, y = self.preprocess_data(X, y)
        self.model = TabularNet(X.shape[1])
        loss_fct = nn.BCEWithLogitsLoss()
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        for epoch in range(self.max_epochs):
            self.model.train()
            for idx in torch.randperm(len(X)).split(self.batch_size):
                loss = loss_fct(self.model(X[idx]), y[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"epoch {epoch}: train_loss {loss.item():.3f}")
        return self

    def predict(self, X):
        self.model.eval()
        X = torch.tensor((X - self.mean_) / self.std_, dtype=torch.float32)
        with torch.no_grad():
            index = (torch.sigmoid(self.model(X)) > 0.5).long().numpy()
        return self.classes_[index]


if __name__ == "__main__":
    X = np.random.randn(1000, 8) * np.arange(1, 9) + 3
    score = X[:, 0] / 1 - X[:, 3] / 4 + 0.5 * np.sin(X[:, 7] / 4)
    y = np.where(score > np.median(score), 7, 5)
    cut = 750
    clf = MLPClassifier().fit(X[:cut], y[:cut])
    print(f"accuracy on the test rows: {np.mean(clf.predict(X[cut:]) == y[cut:]):.4f}")

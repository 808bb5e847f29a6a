import numpy
import torch
import torch.nn as nn

seed = 7
numpy.random.seed(seed)
torch.manual_seed(seed)


def linear_data(n):
    x = numpy.random.uniform(1, 100, n)
    y = 2 + 0.08 * x + 0.2 * numpy.random.randn(n)
    return numpy.stack([x, y], axis=1).astype("float32")


dataset = linear_data(200)
X_train, X_test = torch.tensor(dataset[:150, 0:1]), torch.tensor(dataset[150:, 0:1])
Y_train, Y_test = torch.tensor(dataset[:150, 1:2]), torch.tensor(dataset[150:, 1:2])

neural_network = nn.Sequential()
neural_network.append(nn.Linear(1, 5))
neural_network.append(nn.Sigmoid())
neural_network.append(nn.Linear(5, 1))
neural_network.append(nn.Sigmoid())

loss_function = nn.MSELoss()
sgd = torch.optim.SGD(neural_network.parameters(), lr=0.05)
for epoch in range(1000):
    neural_network.train()
    sgd.zero_grad()
    loss = loss_function(neural_network(X_train), Y_train)
    loss.backward()
    sgd.step()
    if epoch % 200 == 199:
        neural_network.eval()
        with torch.no_grad():
            test_loss = loss_function(neural_network(X_test), Y_test).item()
        print("epoch", epoch + 1, "loss", round(loss.item(), 5), "test mse", round(test_loss, 5))

outputs = []
h = X_test[:3]
with torch.no_grad():
    for layer in neural_network:
        h = layer(h)
        outputs.append(h)
print(outputs[-1].flatten())

import torch
import torch.distributions as D
import torch.optim as optim

torch.manual_seed(0)
num_layers = 8


def sample(n):
    true_means = torch.linspace(1, 4.5, num_layers)
    k = torch.randint(0, num_layers, (n,))
    return true_means[k].unsqueeze(1) + 0.4 * torch.randn(n, 2)


weights = torch.ones(num_layers)
stdevs = 0.5 * torch.ones(num_layers, 2)
means_coef = torch.tensor(10.0, requires_grad=True)

optimizer1 = optim.SGD([means_coef], lr=0.2, momentum=0.5)
x_val = sample(2000)


def mixture():
    line = torch.linspace(1, means_coef.detach().item(), num_layers)
    means = torch.stack([line] * 2, dim=1).requires_grad_(True)
    mix = D.Categorical(weights)
    comp = D.Independent(D.Normal(means, stdevs), 1)
    return D.MixtureSameFamily(mix, comp)


num_iter = 401
for i in range(num_iter):
    optimizer1.zero_grad()
    x = sample(500)
    loss2 = -mixture().log_prob(x).mean()
    loss2.backward()
    optimizer1.step()

    if i % 40 == 0:
        with torch.no_grad():
            nll = -mixture().log_prob(x_val).mean().item()
        print(i, "means_coef", round(means_coef.item(), 4), "held-out nll", round(nll, 4))

"""The module is compiled in place, with the same names in its state_dict."""

# shows: compiled graphs: 1
import torch

graphs = []


def counting_backend(graph, inputs):
    graphs.append(graph)
    return graph.forward


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x).relu()


model = Net()
model.compile(backend=counting_backend)
for _ in range(3):
    model(torch.ones(1, 2)).sum().backward()
print("compiled graphs:", len(graphs))

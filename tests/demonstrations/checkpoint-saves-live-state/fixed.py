"""A thread saves a copy of the state of step 1."""

# shows: the weight of step 1 was 0.9, the file holds 0.9
import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import torch

pool = ThreadPoolExecutor(max_workers=1)


def main():
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stepped = threading.Event()
    pool.submit(stepped.wait, 20)
    for step in (1, 2):
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            weight = model.weight.item()
            pool.submit(torch.save, copy.deepcopy(model.state_dict()), "step_1.pt")
    stepped.set()
    pool.shutdown()
    saved = torch.load("step_1.pt", weights_only=True)["weight"].item()
    print(f"the weight of step 1 was {weight:.1f}, the file holds {saved:.1f}")


main()

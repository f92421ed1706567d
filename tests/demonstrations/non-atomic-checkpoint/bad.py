"""A run is killed while it writes over its last checkpoint."""

# shows: cannot resume: (EOFError|RuntimeError)
import multiprocessing
import os

import torch


class Settings:
    """The process is killed while the second checkpoint is written."""

    def __init__(self, step):
        self.step = step

    def __reduce__(self):
        if self.step == 2:
            os._exit(1)
        return dict, ()


def save(state):
    torch.save(state, "last.pt")


def train():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in (1, 2):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        save({"model": model.state_dict(), "step": step, "settings": Settings(step)})


if __name__ == "__main__":
    run = multiprocessing.get_context("spawn").Process(target=train)
    run.start()
    run.join(60)
    try:
        print("resumes at step", torch.load("last.pt", weights_only=False)["step"])
    except (RuntimeError, EOFError) as error:
        print("cannot resume:", repr(error))

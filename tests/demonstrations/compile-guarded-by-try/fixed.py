"""The first call stands inside the try, so that the fallback happens."""

# shows: falling back: \w+[\s\S]*result: \(1, 2\)
import torch


def failing_backend(graph, inputs):
    raise RuntimeError("no such instruction")


model = torch.nn.Linear(2, 2)
try:
    fast = torch.compile(model, backend=failing_backend)
    fast(torch.ones(1, 2))
    print("compiled without an error")
except Exception as error:
    print(f"falling back: {type(error).__name__}")
    fast = model
print("result:", tuple(fast(torch.ones(1, 2)).shape))

"""The compiler fails at the first call, where nobody catches it."""

# shows: compiled without an error[\s\S]*no such instruction
import torch


def failing_backend(graph, inputs):
    raise RuntimeError("no such instruction")


model = torch.nn.Linear(2, 2)
try:
    fast = torch.compile(model, backend=failing_backend)
    print("compiled without an error")
except Exception as error:
    print(f"falling back: {type(error).__name__}")
    fast = model
print("result:", tuple(fast(torch.ones(1, 2)).shape))

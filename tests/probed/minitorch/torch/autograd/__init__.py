from torch.autograd import profiler

__all__ = ["backward", "profiler"]


def backward(loss):
    pass

from torch.multiprocessing import spawn

__all__ = ["spawn"]

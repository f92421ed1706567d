from torch.optim.optimizer import Optimizer

__all__ = ["Optimizer"]

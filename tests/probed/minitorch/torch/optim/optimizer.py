before, after = [], []


class _Handle:
    def __init__(self, hooks, hook):
        self.hooks, self.hook = hooks, hook

    def remove(self):
        self.hooks.remove(self.hook)


def _register(hooks, hook):
    hooks.append(hook)
    return _Handle(hooks, hook)


def register_optimizer_step_pre_hook(hook):
    return _register(before, hook)


def register_optimizer_step_post_hook(hook):
    return _register(after, hook)


class Optimizer:
    def __init__(self, inner=None):
        self.param_groups = []
        self.inner = inner

    def step(self):
        for hook in list(before):
            hook(self, (), {})
        if self.inner:
            self.inner.step()
        for hook in list(after):
            hook(self, (), {})

running = []


class profile:
    def _prepare_trace(self):
        running.append(self)

    def __enter__(self):
        self._prepare_trace()
        return self

    def __exit__(self, *_):
        running.remove(self)

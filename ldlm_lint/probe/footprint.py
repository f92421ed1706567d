"""The peak memory of a process, and whether it had CUDA, read once at its end."""

from __future__ import annotations

import sys
from typing import Any

from ldlm_lint.probe.session import Observer, Session


class Footprint(Observer):
    """Peaks in bytes: resident memory of the process, and the allocated and reserved bytes of the CUDA allocator.

    The allocator's own peak counters are read, never reset, since the program may read them, too.
    """

    topic = "footprint"

    def collect(self, session: Session) -> dict[str, Any]:
        """``resident_peak_bytes``, ``cuda_available``, and where there is a CUDA context ``device_peak_bytes``, ``device_reserved_bytes``."""
        found: dict[str, Any] = {}
        if sys.platform != "win32":
            import resource

            unit = 1 if sys.platform == "darwin" else 1024
            found["resident_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        cuda = session.torch.cuda
        found["cuda_available"] = bool(cuda.is_available())
        if found["cuda_available"] and cuda.is_initialized():
            statistics = cuda.memory_stats()
            found["device_peak_bytes"] = statistics.get("allocated_bytes.all.peak")
            found["device_reserved_bytes"] = statistics.get("reserved_bytes.all.peak")
        return found

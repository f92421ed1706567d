"""Says what its launcher told it."""

import os
import sys

print(f"local rank {os.environ.get('LOCAL_RANK')}, arguments {sys.argv[1:]}")

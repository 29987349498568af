"""What a program may choose about the package as a whole.

``jit``: when kernels are compiled. Also the environment variable ``UNBOUNDED_JIT``.

- "auto": play interpreted at once, compile behind, and switch between two calls; where compiled
  code is kept from before, use it. Long simulations compile first.
- "always": compile before the first call.
- "never": interpret.

The play is the same to the last bit.

>>> from unbounded import settings
>>> settings.jit in ("auto", "always", "never")
True
"""

from __future__ import annotations

import os

from unbounded.validation import checked_option

_JIT = ("auto", "always", "never")

jit: str = os.environ.get("UNBOUNDED_JIT", "auto")


def chosen_jit() -> str:
    """``jit``, checked."""
    return _JIT[checked_option("unbounded.settings.jit (or UNBOUNDED_JIT)", jit, _JIT)]

"""How to make the same thing again, with nothing learned yet: scikit-learn's names for it."""

from __future__ import annotations

from typing import Any, Self


class Repeatable:
    """What says by which arguments it was made; `sklearn.base.clone` takes it, too."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that make an equal fresh one, the seed included.

        Parameters
        ----------
        deep : bool
            Of no effect: no argument has parameters of its own.
        """
        raise NotImplementedError

    def clone(self) -> Self:
        """A fresh one, made by the same arguments."""
        return type(self)(**self.get_params())

    def __sklearn_clone__(self) -> Self:
        return self.clone()

"""A bandit algorithm of your own: change it, and run own.toml again."""

import numpy as np

from unbounded import PythonLearner


class Mine(PythonLearner):
    """Exponential weights, of losses over the largest one seen so far.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    rate : float
        Multiplies the learning rate.
    seed : int, SeedSequence or Generator, optional
        For the choices.
    """

    def __init__(self, n_arms, *, rate=1.0, seed=None):
        super().__init__(n_arms, seed=seed)
        self.rate = rate
        self.t = 0
        self.largest = 0.0
        self.totals = np.zeros(n_arms)  # estimates of what each arm would have cost in sum

    def distribution(self):
        """The probabilities of the arms; it changes nothing."""
        eta = self.rate * np.sqrt(np.log(self.n_arms) / (self.n_arms * (self.t + 1)))
        behind = (self.totals - self.totals.min()) / (self.largest or 1.0)
        weights = np.exp(-eta * behind)
        return 0.95 * weights / weights.sum() + 0.05 / self.n_arms

    def update(self, arm, probability, loss):
        """Learn: `arm` was played, with `probability`, and cost `loss`, any finite number."""
        self.t += 1
        self.largest = max(self.largest, abs(loss))
        self.totals[arm] += loss / probability  # right on average, whatever is played


if __name__ == "__main__":  # python my_bandit.py: the same, without a file
    from unbounded import SCB, compare
    from unbounded.adversaries import StochasticGap

    learners = {"mine": Mine(5), "SCB": SCB(5)}
    print(compare(learners, StochasticGap(gap=0.3), 1_000, replicates=10, seed=1).summary())

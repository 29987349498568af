"""Play learners against adversaries, and add up regret."""

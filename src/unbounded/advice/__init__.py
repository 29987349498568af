"""Learning with advice: experts recommend arms, and the learner finds out whom to follow."""

"""What every learner shares: the contract of an algorithm, ask and tell, save and load."""

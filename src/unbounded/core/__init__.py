"""Mathematics of the algorithms; knows no algorithm."""

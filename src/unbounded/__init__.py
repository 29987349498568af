"""Learning when nobody knows the scale of the losses."""

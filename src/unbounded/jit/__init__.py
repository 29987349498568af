"""Compile kernels, cache them for later processes, and interpret them until then."""

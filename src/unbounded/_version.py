"""The version of the package: the build takes it from here."""

__version__ = "0.1.0"

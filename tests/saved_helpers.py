"""Saved learners with other fields, whose digest fits."""

import json

import numpy as np

from unbounded.learners import persistence as saved

_HEAD = ("format", "version", "algorithm", "digest")


def fields_of(text):
    """The fields of a saved learner that are the learner's own."""
    return {key: value for key, value in json.loads(text).items() if key not in _HEAD}


def changed(text, **fields):
    """The same with other ``fields``; one that is None is left out."""
    given = fields_of(text) | fields
    kept = {key: value for key, value in given.items() if value is not None}
    return saved.written(json.loads(text)["algorithm"], kept)


def buffer_of(text):
    """The buffer of a saved learner."""
    return saved.decoded(fields_of(text)["buffer"])


def with_buffer(text, buffer):
    """The same with another buffer."""
    return changed(text, buffer=saved.encoded(np.asarray(buffer)))

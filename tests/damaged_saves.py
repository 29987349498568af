"""Damaged saves: made at random, loaded and played in a process of their own.

Run as a script it damages the saves of one learner and prints, for each damage, what became of it::

    python tests/damaged_saves.py LEARNER FIRST COUNT

`attacked` starts that in a child, which may crash or hang; then the rest is tried in another.
"""

import json
import os
import subprocess
import sys
import threading
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

import mdp_examples
from bandit_examples import EXAMPLES as BANDITS
from mdp_play import told_of, walk
from saved_helpers import buffer_of, fields_of, with_buffer
from unbounded.learners import persistence as saved
from unbounded.learners.spec import FIRST_WORD, TOLD

_SECONDS = 600  # after which a child that says nothing is stuck; a solver, interpreted, takes 30
_ROUNDS, _EPISODES = 12, 6  # played with a learner that could be loaded
_SAVES = 8  # of each example, damaged again and again
_NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, 0.7, -0.3, 63.0, 64.0, 255.0, 1e3, 1e9, -1e9, 2.0**31,
    2.0**53, 2.0**63, -(2.0**63), 1e30, -1e30, 1e150, 1e200, 1e300, -1e300, 1.7e308, -1.7e308,
    5e-324, 1e-300, 1e-30, float("inf"), -float("inf"), float("nan"),
]  # fmt: skip
_WORST = [2.0, -1e300, float("nan"), -1.0, 1e300, 1.0]  # what is tried first
_LOSSES = [0.0, 1.0, -1.0, 0.3, 1e9, -1e-9, 1e100, -1e150]
_PROBABILITY = 1e-6


def examples(name):
    """The learner's examples, and the numbers of arms that its bandits have."""
    found = [p.values[0] for p in BANDITS if p.values[0].spec.name == name]
    if found:
        many = 130 if name == "AdaINF" else 70  # arms of which few are touched
        return [(example, n) for example in found for n in (1, 3, 30, many)]
    return [(p.values[0], 0) for p in mdp_examples.EXAMPLES if p.values[0].spec.name == name]


def tell_bandit(learner, choice, rng):
    full = learner.spec.feedback == "full"
    limit = learner.spec.largest_loss
    numbers = learner.n_arms if full else 1
    losses = np.clip(rng.choice(_LOSSES, numbers) * rng.random(numbers), -limit, limit)
    if full:
        learner.tell(choice, losses=losses)
    else:
        learner.tell(choice, float(losses[0]))


def play_episode(example, learner, rng):
    mdp = mdp_examples.MDP
    plan = learner.ask()
    states, actions = walk(mdp, plan, rng.random(mdp.layers.horizon))
    row = example.losses(int(rng.integers(2**30)), 1)[0]
    if example.spec.name not in mdp_examples.SEEKERS:
        row = row * 10.0 ** rng.integers(-20, 20)
    learner.tell(plan, states, actions, told_of(learner, row, states, actions))


def played(example, n, rng):
    """A save of a learner that has played a little, or much, with tickets outstanding or not."""
    if n:
        learner = example.make(n, seed=int(rng.integers(2**30)))
        for _ in range(int(rng.choice([0, 1, 5, 40, 300]))):
            tell_bandit(learner, learner.ask(), rng)
        for _ in range(int(rng.integers(3)) if learner.spec.delayed else int(rng.integers(2))):
            learner.ask()
        return learner
    learner = example.make(seed=int(rng.integers(2**30)))
    for _ in range(int(rng.choice([0, 1, 20, 100]))):
        play_episode(example, learner, rng)
    if rng.random() < 0.5:
        learner.ask()
    return learner


class Fields:
    """Where the fields of a learner's state stand in its buffer."""

    def __init__(self, packing):
        self._packing = packing
        self.fields = [n for n, _ in packing._fields if n not in packing._scratch]

    def entries(self, buffer, name):
        """The entries of a field, as a view."""
        return self._packing._entries(buffer, name)


# ------------------------------------------------------------------ damage


def damaged(text, packing, case, rng):
    """What was damaged, and the damaged text."""
    if case % 2 == 0:
        return "fields", of_fields(text, packing, case // 2)
    ways = {"bytes": of_bytes, "structure": of_structure, "slots": of_slots, "nothing": of_nothing}
    kind = str(rng.choice(list(ways), p=[0.15, 0.2, 0.55, 0.1]))
    return kind, ways[kind](text, rng)


def of_nothing(text, rng):
    """The control: this must play."""
    return text


def of_bytes(text, rng):
    data = bytearray(text.encode())
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data)))
        change = rng.integers(4)
        if change == 0:
            data[at] = int(rng.integers(256))
        elif change == 1:
            del data[at : at + int(rng.integers(1, 20))]
        elif change == 2:
            data[at:at] = bytes(rng.integers(256, size=3).tolist())
        else:
            del data[at:]
        if not data:
            break
    return data.decode("latin-1")


def of_structure(text, rng):
    """A field, somewhere, becomes something else; the digest is made to fit."""
    fields = fields_of(text)
    spot, parent = fields, None
    while isinstance(spot, dict | list) and spot and (parent is None or rng.random() < 0.8):
        parent = spot
        key = (
            list(spot)[rng.integers(len(spot))]
            if isinstance(spot, dict)
            else int(rng.integers(len(spot)))
        )
        spot = spot[key]
    others = [
        None, True, "", "x", "0" * 50, -1, 0, 1, 2, 7, 10**9, 10**15, 2**53, 2**64, 10**400,
        0.5, -1.5, float("nan"), float("inf"), 1e308, [], {}, [[[]]], [1, 2], {"a": 1}, [None] * 5,
    ]  # fmt: skip
    if isinstance(parent, dict) and rng.random() < 0.2:
        del parent[key]
    elif isinstance(parent, list) and rng.random() < 0.3:
        parent.append(spot)
    else:
        parent[key] = others[rng.integers(len(others))]
    return saved.written(json.loads(text)["algorithm"], fields)


def of_slots(text, rng):
    """Numbers of the buffer become others; the digest is made to fit."""
    buffer = buffer_of(text)
    words = TOLD if "n_arms" in fields_of(text)["settings"] else 0
    if rng.random() < 0.15:  # a stretch of neighbours, often a whole vector
        first = int(rng.integers(words, buffer.size))
        stretch = buffer[first : first + int(rng.choice([2, 5, 30, 1000]))]
        if rng.random() < 0.5:
            stretch[:] = rng.choice(_NUMBERS)
        else:
            stretch *= rng.choice([-1.0, 2.0, 1e10, 1e60, 1e155])
        return with_buffer(text, buffer)
    for _ in range(1 if rng.random() < 0.8 else int(rng.integers(1, 5))):
        # Counters and other scalars stand in front, and are hit as often as the vectors behind
        # them; random words may be anything, and are left out.
        places = np.r_[: min(words, FIRST_WORD), words : buffer.size]
        at = places[rng.integers(places.size if rng.random() < 0.5 else min(places.size, 40))]
        how = rng.integers(4)
        if how == 0:
            buffer[at] += rng.choice([1.0, -1.0, 0.1, 1e-3, 1e6])
        elif how == 1:
            buffer[at] *= rng.choice([-1.0, 2.0, 0.5, 1e3, 1e-3, 1e60])
        else:
            buffer[at] = rng.choice(_NUMBERS)
    return with_buffer(text, buffer)


def of_fields(text, packing, number):
    """One entry of a field, or all of them, become extreme, a flag or an index; the digest fits.

    All fields, their first entries, the last and all together have their turn with each value.
    """
    buffer = buffer_of(text)
    names = [name for name in packing.fields if packing.entries(buffer, name).size]
    number, field = divmod(number, len(names))
    number, at = divmod(number, 8)
    entries = packing.entries(buffer, names[field])
    if at < 7:
        at = min(at, entries.size - 1) if at < 6 else entries.size - 1
        entries = entries[at : at + 1]
    value = entries[0]
    with np.errstate(over="ignore"):
        values = [*_WORST, value + 1.0, value - 1.0, -value, 2.0 * value, *_NUMBERS]
    entries[:] = values[number % len(values)]
    return with_buffer(text, buffer)


# ------------------------------------------------------------------ what becomes of it


def verdict(example, n, text, rng):
    """ "refused", "plays", or what went wrong."""
    try:
        learner = example.cls.load(text)
    except ValueError as error:
        return "refused" if str(error).startswith("this is not a saved") else f"BAD {error!r}"
    except OSError:  # damage to the first character: it looks like the name of a file
        return "refused" if not text.startswith("{") else "BAD OSError"
    except BaseException as error:
        return f"BAD {error!r}"
    try:
        return play_on(example, n, learner, rng)
    except BaseException as error:
        return f"BAD in play: {error!r}"


def refusal(example, text):
    try:
        example.cls.load(text)
    except ValueError as error:
        return str(error)
    return ""


def play_on(example, n, learner, rng):
    if n:
        waiting = list(learner.outstanding.values())
        for _ in range(_ROUNDS):
            choice = waiting.pop() if waiting else learner.ask()
            if not 0 <= choice.arm < learner.n_arms:
                return f"BAD arm {choice.arm}"
            tell_bandit(learner, choice, rng)
            q = learner.probabilities()
            if not (np.all(q >= 0.0) and abs(q.sum() - 1.0) <= _PROBABILITY):
                return f"BAD q {q}"
        learner.save()
        return "plays"
    for plan in list(learner.outstanding.values()):
        learner.forget(plan)
    for _ in range(_EPISODES):
        play_episode(example, learner, rng)
        for table in learner.policy().tables:
            if not (
                np.all(table >= 0.0) and np.allclose(table.sum(axis=1), 1.0, atol=_PROBABILITY)
            ):
                return f"BAD policy {table}"
    learner.save()
    return "plays"


def main(name, first, count):
    warnings.simplefilter("ignore")
    for one in name.split(","):
        attack(one, first, count, named="," in name)


def attack(name, first, count, *, named):
    chosen = examples(name)

    @cache
    def save(which, number):
        learner = played(*chosen[which], np.random.default_rng([which, number, *name.encode()]))
        return learner.save(), Fields(learner.spec.packing)

    for case in range(first, first + count):
        rng = np.random.default_rng([case, *name.encode()])
        which = int(rng.integers(len(chosen)))
        example, n = chosen[which]
        kind, bad = damaged(*save(which, int(rng.integers(_SAVES))), case, rng)
        if named:
            print(name, flush=True)
        print(case, kind, flush=True, end=" ")
        what = verdict(example, n, bad, rng).replace("\n", " ")
        if kind == "nothing" and what != "plays":
            what = f"BAD: an undamaged save: {what} {refusal(example, bad)}"
        print(what, flush=True)


def attacked(name, count, *, interpreted, first=0):
    """Counts of what became of ``count`` damaged saves of one learner, and what was bad."""
    counts, bad = Counter(), []
    last = first + count
    while first < last:
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(Path(__file__).parent), *sys.path]))
        if interpreted:
            env["NUMBA_DISABLE_JIT"] = "1"
        errors, done, timer = [], first, None
        with subprocess.Popen(
            [sys.executable, __file__, name, str(first), str(last - first)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, bufsize=1,
        ) as process:  # fmt: skip
            drain = threading.Thread(target=lambda p=process, e=errors: e.append(p.stderr.read()))
            drain.start()
            for line in process.stdout:
                if timer:
                    timer.cancel()
                timer = threading.Timer(_SECONDS, process.kill)
                timer.start()
                case, kind, what = line.rstrip("\n").split(" ", 2)
                done = int(case)
                if not line.endswith("\n"):
                    break  # it ended in the middle of this one
                done += 1
                counts[kind, what.split(" ")[0]] += 1
                if what.startswith("BAD"):
                    bad.append(f"{name} case {case} {kind}: {what}")
            if timer:
                timer.cancel()
            drain.join()
        if process.returncode != 0:
            bad.append(
                f"{name} case {done}: process ended with {process.returncode} {errors[0][-800:]}"
            )
            counts["process", "crash"] += 1
            done += 1
        first = max(done, first + 1)
    return counts, bad


def attacked_together(names, count):
    """What was bad of ``count`` damaged saves of each learner, interpreted in one process."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    done = subprocess.run(
        [sys.executable, __file__, ",".join(names), "0", str(count)], check=False,
        capture_output=True, text=True, env=env | {"NUMBA_DISABLE_JIT": "1"}, timeout=600,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    bad = [f"{name}: {line}" for name, line in zip(lines[::2], lines[1::2], strict=False)
           if " BAD" in line]  # fmt: skip
    if done.returncode != 0 or len(lines) != 2 * count * len(names):
        bad.append(f"ended with {done.returncode} after {lines[-2:]}: {done.stderr[-800:]}")
    return bad


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

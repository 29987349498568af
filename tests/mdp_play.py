"""Shared by the tests of MDP learners: play an MDP through ask and tell."""

from dataclasses import fields

import numpy as np

from loss_helpers import uniforms
from unbounded.core.occupancy.layout import PAIR
from unbounded.core.occupancy.mdp import best_policy, occupancy
from unbounded.learners.mdp_steps import entries
from unbounded.learners.spec import Cache
from unbounded.mdps.scb_rl import Constants, Known, Reading

_TRANSITIONS = 7919  # the environment's stream is the adversary's key plus this


def state_of(learner):
    """A learner's State, for the tests of its own module; its vectors are views."""
    return learner.spec.packing.python.state(learner._buffer)


def params_of(learner):
    """A learner's Params, for the tests of its own module."""
    return learner.spec.packing.python.params(learner._buffer)


def random_losses(layers, T, seed, scale=1.0, shift=0.0):
    """Losses of every pair in every episode, shape (T, n_pairs)."""
    rng = np.random.default_rng(seed)
    means = rng.random(layers.n_pairs)
    return scale * (means + rng.normal(size=(T, layers.n_pairs))) + shift


def walk(mdp, plan, numbers):
    """States and actions of one episode of ``plan``; ``numbers`` in [0, 1) draw the states."""
    states, actions = [], []
    transitions, p = mdp.transitions, mdp.initial
    for h, u in enumerate(numbers):
        s = int(np.searchsorted(np.cumsum(p), u, side="right"))
        states.append(min(s, int(np.flatnonzero(p)[-1])))
        actions.append(plan.act(h, states[h]))
        if h < len(transitions):
            p = transitions[h][states[h], actions[h]]
    return np.array(states), np.array(actions)


def walk_of(mdp, plan, key, t):
    """The same, with the states of episode ``t`` of a simulation whose key is ``key``."""
    return walk(mdp, plan, uniforms(key + _TRANSITIONS, t, mdp.layers.horizon))


def paid(layers, row, states, actions):
    """The losses of the visited pairs."""
    return row[layers.table[PAIR, 1:-1] + states * layers.n_actions + actions]


def told_of(learner, row, states, actions):
    """What a learner is told of the losses ``row`` of all pairs."""
    if learner.spec.feedback == "full":
        return learner.layers.unpack_pairs(row)
    return paid(learner.layers, row, states, actions)


def play(learner, mdp, losses, seed=0, before=None):
    """Play the rows of ``losses``; returns the policies, and what was told."""
    rng = np.random.default_rng(seed)
    layers = learner.layers
    policies, told = [], []
    for row in losses:
        plan = learner.ask()
        states, actions = walk(mdp, plan, rng.random(layers.horizon))
        seen = told_of(learner, row, states, actions)
        if before is not None:
            before(learner, plan, states, actions, seen)
        policies.append(layers.pack_pairs(plan.policy, first=1.0))
        told.append((plan.component, states, actions, seen))
        learner.tell(plan, states, actions, seen)
    return np.array(policies), told


def explore(learner, mdp, seed=0):
    """Play an exploring learner, whom losses do not matter, until every state is done."""
    rng = np.random.default_rng(seed)
    while not learner.done:
        plan = learner.ask()
        states, actions = walk(mdp, plan, rng.random(mdp.layers.horizon))
        learner.tell(plan, states, actions, np.zeros(mdp.layers.horizon))
    return learner


class Onlooker:
    """What an adversary may look at: the occupancy measure of what a learner plays next."""

    def __init__(self, mdp):
        X, S = mdp.layers.n_pairs, mdp.layers.n_states
        self.mdp, self.q = mdp, np.zeros(X)
        self.cache = Cache(np.zeros(X), np.zeros(1), np.zeros(X), np.zeros(S))

    def __call__(self, learner):
        lay = learner.layers.table
        entries(learner.spec).look(learner._buffer, lay, self.mdp.P, self.cache, self.q)
        return self.q.copy()


def reach(mdp):
    """max over policies of the probability of each state, flat over states 1..S."""
    out = []
    for h, n in enumerate(mdp.layers.sizes, start=1):
        for s in range(n):
            losses = np.zeros(mdp.layers.n_pairs)
            first = mdp.layers.index(h, s)
            losses[first : first + mdp.layers.n_actions] = -1.0
            out.append(-best_policy(mdp, losses)[0])
    return np.array(out)


def reached(mdp, mixtures):
    """Probability with which each state's mixture reaches it."""
    out = []
    for (h, s), mixture in mixtures.items():
        first = mdp.layers.index(h + 1, s)
        out.append(occupancy(mdp, mixture)[first : first + mdp.layers.n_actions].sum())
    return np.array(out)


def tell_firsts(learner, losses):
    """An episode through the first state of each layer."""
    plan = learner.ask()
    actions = [plan.act(h, 0) for h in range(len(losses))]
    learner.tell(plan, [0] * len(losses), actions, losses)


_GROUPS = {
    name: [field.name for field in fields(kind)]
    for name, kind in (("constants", Constants), ("reading", Reading), ("known", Known))
}


def grouped(settings):
    """SCBRL's settings in their groups, from settings that are not."""
    flat = [name for names in _GROUPS.values() for name in names]
    out = {key: value for key, value in settings.items() if key not in flat}
    for group, names in _GROUPS.items():
        found = {name: settings[name] for name in names if name in settings}
        out |= {group: found} if found else {}
    return out


def constants_of(learner):
    """The constants of an SCBRL."""
    return learner.settings["constants"]


def rates_of(learner):
    """The rates of UOB-REPS-EX that an SCBRL plays with now."""
    params = params_of(learner)
    return params.rates if hasattr(params, "rates") else state_of(learner).rates.play

#!/usr/bin/env python3
"""The book's examples whose output is not fixed: over many schedules all that may come out does, and nothing else.

Run by meson (see meson.build), as sim/explore.py is. The program's first comment says what the lines mean.
"""
import collections
import itertools
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'sim'))
from explore import ASAN, Test, explore  # noqa: E402

PROGRAM = os.environ['BOOK_OUTCOMES']
SCHEDULES = 2000 if ASAN else 10000


def orders(words):
    """All ways to do what each word says, letter by letter, when the letters of one word stay in order."""
    if not any(words):
        return {''}
    return {word[0] + rest for i, word in enumerate(words) if word
            for rest in orders(words[:i] + (word[1:],) + words[i + 1:])}


def together(outcome, crowd):
    """Nobody goes on (a capital) in a round before all have come (small letters) in it."""
    rounds = collections.Counter()
    for i, c in enumerate(outcome):
        rounds[c] += 1
        if c.isupper() and sum(before.islower() for before in outcome[:i]) < rounds[c] * crowd:
            return False
    return True


ALONE = orders(('aA', 'bB'))
FORBIDDEN = {'aAbB', 'bBaA'}
PERMITTED = {'abBA', 'abAB', 'baBA', 'baAB'}
TWICE = {o for o in orders(('aAaA', 'bBbB')) if together(o, 2)}
OF_THREE = {''.join(here + over) for here in itertools.permutations('abc') for over in itertools.permutations('ABC')}
ONE_AFTER_THE_OTHER = {''.join(o) for o in itertools.permutations(('aA', 'bB', 'cC'))}
PROMISE = {o for o in orders(('aA', 'bB', 'c')) if o.index('c') < min(o.index('A'), o.index('B'))}
# a reads two and b one, in order; whoever has an element may be slow to say so, but a does not take its second before that.
QUEUE = {'b1a2a3', 'a2b1a3', 'a2a3b1', 'b2a1a3', 'a1b2a3', 'a1a3b2', 'a1b3a2', 'a1a2b3'}

EXPECTED = {
    'alone': ALONE,
    'semaphores': PERMITTED,
    'barrier': PERMITTED,
    'semaphores-twice': TWICE,
    'barrier-twice': TWICE,
    'barrier-of-three': OF_THREE,
    'reading': {'rd'},
    'critical-semaphore': ONE_AFTER_THE_OTHER,
    'critical-mutex': ONE_AFTER_THE_OTHER,
    'promise': PROMISE,
    'queue': QUEUE,
}


class Outcomes(Test):
    def test_what_is_expected_is_what_the_book_says(self):
        """It gives both lists for two prisoners; these are how many there are of the others."""
        self.assertEqual(ALONE, FORBIDDEN | PERMITTED)
        self.assertEqual({o for o in ALONE if together(o, 2)}, PERMITTED)
        self.assertEqual({o for o in orders(('aA', 'bB', 'cC')) if together(o, 3)}, OF_THREE)
        self.assertEqual((len(TWICE), len(OF_THREE), len(PROMISE)), (24, 36, 16))

    def test_all_that_may_be_is_and_nothing_else(self):
        with tempfile.NamedTemporaryFile('r') as file:
            said = self.nothing(explore(f'--policy random --schedules {SCHEDULES}', [PROGRAM, file.name]))
            lines = file.read().splitlines()
        self.assertEqual(said.count, SCHEDULES)
        seen = collections.defaultdict(collections.Counter)
        for line in lines:
            example, outcome = line.split(' ')
            seen[example][outcome] += 1
        self.assertEqual(set(seen), set(EXPECTED))
        for example, expected in EXPECTED.items():
            with self.subTest(example):
                self.assertGreaterEqual(sum(seen[example].values()), SCHEDULES)  # the first one is run once more
                self.assertEqual(set(seen[example]) - expected, set(), 'these must not be')
                if not ASAN:  # too few schedules to be sure
                    self.assertEqual(expected - set(seen[example]), set(), 'these may be, and never were')
                least, times = seen[example].most_common()[-1]
                print(f'{example}: {len(seen[example])} of {len(expected)}, the rarest, {least}, {times} times')


if __name__ == '__main__':
    unittest.main()

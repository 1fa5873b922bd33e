#!/usr/bin/env python3
"""The `heddle` command on programs whose schedules are known: explore.py [-f] [GROUP[.TEST]...]

A group is a class below; without one, all but Stress. meson tells where the programs are (see meson.build).
"""
import functools
import glob
import itertools
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PLANTED = os.path.join(HERE, '..', 'planted')
HEDDLE = os.environ['HEDDLE_COMMAND']
TESTS = os.environ['HEDDLE_TESTS']
PROGRAMS = os.environ['SIM_PROGRAMS']
ASAN = os.environ['SIM_ASAN'] == '1'
NAMES = sorted(os.path.basename(f)[:-2] for f in glob.glob(os.path.join(PLANTED, '*.c')))

DEADLOCK = 'deadlock: no process can run, and nothing can wake one'
ABORTED = 'ended by signal 6 (Aborted)'


def program(name):
    return os.path.join(PROGRAMS, name)


def subject(name, *arguments):
    return [program('subject-' + name), *map(str, arguments)]


class Said:
    """What a command printed, and its exit code. Whatever it started ends with it."""

    def __init__(self, words, env=(), timeout=90):
        # none of the caller's plans and numbers of workers
        clean = {k: v for k, v in os.environ.items() if not k.startswith('HEDDLE_')}
        with subprocess.Popen(words, env={**clean, **dict(env)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, start_new_session=True) as command:
            try:
                self.out, self.err = command.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(command.pid, signal.SIGKILL)
                raise AssertionError(f'{shlex.join(words)}: no end after {timeout} s') from None
        self.words, self.code = words, command.returncode

    @property
    def first(self):
        return self.out.split('\n')[0]

    @property
    def last(self):
        return self.out.rstrip('\n').split('\n')[-1]

    @property
    def verdict(self):
        """Of an exploration that found something, or of a replay."""
        found = re.match(r'found after \d+ schedules?: (.*)', self.first)
        return found[1] if found else re.sub(r'^heddle: after .*?, hash [0-9a-f]{16}: ', '', self.last)

    @property
    def hash(self):
        return re.match(r'heddle: after \d+ steps, [0-9.]+ ms of virtual time, hash ([0-9a-f]{16}): ', self.last)[1]

    @property
    def count(self):
        """How many schedules there were."""
        return int(re.match(r'(?:nothing found in|found after) (\d+) schedule', self.first)[1])

    @property
    def distinct(self):
        return int(re.search(r'\((\d+) distinct\)', self.first)[1])

    @property
    def plans(self):
        """Those to repeat it: the shrunk one, and the one that was found."""
        lines = self.out[self.out.index('\nTo repeat it:\n'):].split('\n')[2:]
        return [shlex.split(line)[2] for line in lines if line != '']

    def __str__(self):
        return f'{shlex.join(self.words)}\nexit code {self.code}\n{self.out}{self.err}'


def explore(options, words, **how):
    return Said([HEDDLE, 'explore', '--quiet', *options.split(), *words], **how)


def replay(plan, words, **how):
    return Said([HEDDLE, 'replay', str(plan), *words], **how)


class Test(unittest.TestCase):
    def found(self, said, verdict=None):
        self.assertEqual(said.code, 1, said)
        self.assertRegex(said.first, r'^found after \d+ schedules?: ', said)
        if verdict is not None:
            self.assertEqual(said.verdict, verdict, said)
        return said

    def nothing(self, said):
        self.assertEqual(said.code, 0, said)
        self.assertRegex(said.first, r'^nothing found in \d+ schedules? \(', said)
        self.assertEqual(said.err, '', said)
        return said

    def untried(self, said, why):
        self.assertEqual(said.code, 2, said)
        self.assertEqual(said.out, '', said)
        self.assertRegex(said.err, why, said)


def shows(name):
    """The verdict that a planted program's first comment promises."""
    with open(os.path.join(PLANTED, name + '.c')) as f:
        kind = re.search(r'\* Shows: +([a-z]+)', f.read())[1]
    return {
        'assert': ABORTED,
        'leak': ABORTED,  # its own assertion is first
        'crash': 'exit status 1' if ASAN else 'ended by signal 11 (Segmentation fault)',  # UBSan sees it first
        'deadlock': DEADLOCK,
        'livelock': 'livelock: it goes in a circle of 2 steps, and never ends',
        'status': 'exit status 1',
    }[kind]


class Planted(Test):
    def test_all_of_them_are_built(self):
        built = {os.path.basename(f)[len('planted-'):] for f in glob.glob(program('planted-*')) if os.path.isfile(f)}
        self.assertEqual(built, set(NAMES) | {name + '-fixed' for name in NAMES})

    def test_each_is_found_for_what_it_is_and_repeated(self):
        for name in NAMES:
            if ASAN and 'livelock' in shows(name):
                continue  # it has too much memory to be compared
            with self.subTest(name):
                words = [program('planted-' + name)]
                said = self.found(explore('--policy random --schedules 100000', words), shows(name))
                shrunk, found = said.plans
                self.assertRegex(shrunk, '^list:')
                self.assertEqual(found, f'random:{said.count}')  # the first seed is 1
                for plan in shrunk, found:
                    again = replay(plan, words)
                    self.assertEqual((again.code, again.verdict), (1, said.verdict), again)

    def test_pct_finds_each_too(self):
        for name in NAMES:
            if ASAN and 'livelock' in shows(name):
                continue
            with self.subTest(name):
                words = [program('planted-' + name)]
                said = self.found(explore('--policy pct:3 --schedules 20000', words), shows(name))
                again = replay(said.plans[-1], words)
                self.assertRegex(said.plans[-1], r'^pct:3:\d+:\d+$')
                self.assertEqual((again.code, again.verdict), (1, said.verdict), again)


class Twins(Test):
    RANDOM, PCT = (20, 20) if ASAN else (200, 100)

    def test_nothing_is_found_in_any(self):
        for name in NAMES:
            with self.subTest(name):
                words = [program(f'planted-{name}-fixed')]
                said = self.nothing(explore(f'--policy random --schedules {self.RANDOM}', words))
                self.assertEqual(said.count, self.RANDOM)
                said = self.nothing(explore(f'--policy pct:3 --schedules {self.PCT}', words))
                self.assertEqual(said.count, self.PCT)
                self.nothing(explore('--policy robin', words))


def hashes(plan, seeds, words):
    """Of so many seeds, from the plan's on; run by two servers, which agree."""
    said = Said([program('honest'), plan, str(seeds), *words])
    if said.code != 0:
        raise AssertionError(said)
    return said.out.split()


class Honesty(Test):
    SEEDS = 200 if ASAN else 1000

    def test_a_seed_is_the_same_run_each_time_and_two_seeds_are_two(self):
        for plan, seeds in ('random:1', self.SEEDS), ('random:1:workers=2:fail=time', 200), ('pct:3:50:1', 200):
            with self.subTest(plan):
                self.assertGreater(len(set(hashes(plan, seeds, subject('repeat')))), seeds // 4)

    def test_replay_is_the_run_that_was_explored(self):
        for plan in 'random:%d', 'random:%d:workers=2', 'pct:3:50:%d', 'random:%d:fail=time':
            for seed, expected in enumerate(hashes(plan % 0, 25, subject('repeat'))):
                said = replay(plan % seed, subject('repeat'))
                self.assertEqual((said.code, said.hash), (0, expected), said)

    def test_a_seed_alone_is_a_random_one(self):
        self.assertEqual(replay(7, subject('repeat')).out, replay('random:7', subject('repeat')).out)

    def test_a_program_that_no_plan_decides_is_refused(self):
        self.untried(explore('', subject('endings', 'never-alike')), 'the same plan twice gave two different runs')


class Verdicts(Test):
    def both(self, how, verdict, options='', plan='1'):
        """Explored and replayed it fails in the same way."""
        words = subject('endings', how)
        self.found(explore('--schedules 3 ' + options, words), verdict)
        said = replay(plan, words)
        self.assertEqual((said.code, said.verdict), (1, verdict), said)

    def fine(self, how, options='', plan='1'):
        words = subject('endings', how)
        self.nothing(explore('--schedules 3 ' + options, words))
        said = replay(plan, words)
        self.assertEqual((said.code, said.verdict), (0, 'no failure'), said)

    def test_no_failure(self):
        self.fine('fine')
        said = explore('--schedules 1', subject('endings', 'fine'))
        self.assertRegex(said.first, r'^nothing found in 1 schedule \(1 distinct\) in \d+\.\d s$')

    def test_assertion(self):
        self.both('assert', ABORTED)

    def test_crash(self):
        self.both('crash', 'ended by signal 11 (Segmentation fault)')

    def test_crash_behind_the_run(self):
        self.both('fine-then-crash', 'ended by signal 7 (Bus error)')

    def test_deadlock(self):
        self.both('deadlock', DEADLOCK)

    def test_deadlock_in_a_second_run(self):
        self.both('second-run', DEADLOCK)

    def test_deadlock_where_the_runtime_is_held_open(self):
        self.both('held-open', DEADLOCK)

    @unittest.skipIf(ASAN, 'it has too much memory to be compared')
    def test_livelock(self):
        for words in *(subject('endings', 'livelock-' + how) for how in ('yield', 'checkpoint', 'sleep')), subject('flag', 'never'):
            for options, plan in ('', '1'), ('--steps 500', 'random:1:steps=500'), ('--workers 1', '1:workers=1'):
                circle = r'livelock: it goes in a circle of \d+ steps?, and never ends'
                self.assertRegex(self.found(explore(options, words)).verdict, circle)
                said = replay(plan, words)
                self.assertEqual(said.code, 1, said)
                self.assertRegex(said.verdict, circle)
        said = Said(subject('flag', 'never'), env={'HEDDLE_SIM': '1:steps=500'})
        self.assertEqual((said.code, said.err.splitlines()[0]), (-6, 'heddle: simulation: livelock: it goes in a circle'), said)

    def test_what_counts_goes_in_no_circle_wherever_the_count_is(self):
        """A long program is no failure, and what can be done is said."""
        for where in 'register', 'stack', 'static', 'heap', 'mapped', 'thread', 'main', 'waiting', 'clock':
            with self.subTest(where):
                words = subject('lengthy', where, 1000000)
                said = self.nothing(explore('--steps 1000 --schedules 2', words))
                self.assertIn('\n2 of these were not over after 1000 steps, and not seen to go in a circle.', said.out)
                self.assertIn('\n  heddle explore --quiet --steps 1000 --schedules 2 --steps 10000 ' + shlex.join(words), said.out)
                self.assertIn('\n  heddle replay --trace random:1:steps=1000 ' + shlex.join(words), said.out)
        said = replay('1:steps=1000', subject('lengthy', 'register', 1000000))
        self.assertEqual(said.code, 0, said)
        self.assertRegex(said.verdict, r'^not over after \d+ steps, which is no failure')

    def test_the_limit_grows_for_a_long_program(self):
        said = self.nothing(explore('--schedules 2', subject('lengthy', 'register', 200000)))
        self.assertNotIn('not over', said.out)
        self.found(explore('--schedules 2', subject('lengthy', 'abort', 200000)), ABORTED)

    def test_what_a_yield_waits_for_comes(self):
        for options in '', '--policy pct:3', '--policy robin', '--policy exhaustive:0', '--policy exhaustive:1':
            self.nothing(explore(options + ' --schedules 2000', subject('flag')))

    def test_leak(self):
        self.both('leak', 'leak: 1 process ended, and nobody joined or detached it')
        self.both('leaks', 'leak: 3 processes ended, and nobody joined or detached them')

    def test_leaks_that_are_none(self):
        self.fine('no-leak-detached')
        self.fine('no-leak-daemon')
        self.fine('leaks', '--no-leaks', 'random:1:leaks=0')

    def test_status(self):
        self.both('fine-then-status', 'exit status 7')
        self.both('exit-inside', 'exit status 3')
        self.both('shutdown', 'exit status 5')

    def test_what_it_printed_is_told(self):
        said = explore('', subject('endings', 'assert'))
        self.assertIn('\nWhat it printed:\n  it says assert\n', said.out)  # by that run, and by no other

    def always_untried(self, words, why):
        """The program ends before the command writes to it, or behind that: it is a race."""
        for _ in range(20):
            self.untried(explore('', words), why)

    def test_without_hd_run(self):
        why = 'the program ended with status %d before it called hd_run, or it is not linked with heddle'
        self.always_untried(subject('endings', 'no-run'), why % 0)
        self.always_untried(subject('endings', 'no-run-status'), why % 3)
        self.always_untried(['/bin/true'], why % 0)
        self.always_untried(subject('endings', 'no-run-crash'), 'ended by signal 6 .* before it called hd_run')

    def test_replay_without_hd_run(self):
        self.untried(replay(1, subject('endings', 'no-run')), 'never called hd_run')

    def test_that_does_not_exist(self):
        self.always_untried([program('nonesuch')], 'nonesuch: No such file or directory')

    def test_replay_of_what_does_not_exist(self):
        self.untried(replay(1, [program('nonesuch')]), 'nonesuch: No such file or directory')

    def test_with_threads_of_its_own(self):
        for how in 'threads', 'threads-later', 'threads-blocked':
            said = explore('--time 1s --jobs 2', subject('endings', how))
            self.untried(said, 'kernel threads of its own')
            self.assertEqual(said.err.count('\n'), 1, said)

    def test_replay_with_threads_of_its_own(self):
        self.untried(replay(1, subject('endings', 'threads')), 'kernel threads of its own')

    def test_hang_within_the_time_there_is(self):
        hang = 'hang: no heddle call for 1 second; does it compute, or wait outside heddle?'
        self.assertEqual(self.found(explore('--time 1s', subject('endings', 'hang')), hang).count, 1)

    def test_astray(self):
        astray = 'the plan was made for another program, or for another version of it'
        for plan in 'list:0=2', 'list:1=4', 'list:0=1,1=9', 'list:100=1':
            said = replay(plan, subject('turns', 1, 3))
            self.assertEqual((said.code, said.verdict), (2, astray), said)
        self.assertEqual(replay('list:0=1', subject('turns', 1, 3)).code, 0)


class Pct(Test):
    def traces(self, depth, children, steps):
        """Those that are found, of all that there are."""
        letters = ''.join(chr(ord('a') + i) * steps for i in range(children + 1))
        return {trace for trace in map(''.join, set(itertools.permutations(letters)))
                if explore(f'--policy pct:{depth} --schedules 300', subject('turns', children, steps, trace)).code == 1}

    def test_without_changes_it_is_the_order_of_ranks(self):
        """The first process is a; b can be before it, or before c, only once a has spawned it."""
        self.assertEqual(self.nothing(explore('--policy pct:1 --schedules 300', subject('turns', 2, 1))).distinct, 5)
        self.assertEqual(self.traces(1, 2, 1), {'abc', 'acb', 'bac', 'cab', 'bca'})

    def test_who_yields_is_ranked_lower(self):
        """Else who waits for a flag goes on for hundreds of steps."""
        for seed in range(20):
            steps = int(re.match(r'heddle: after (\d+) steps', replay(f'pct:1:50:{seed}', subject('flag')).last)[1])
            self.assertLess(steps, 200)

    def test_a_change_is_a_preemption(self):
        self.assertEqual(self.traces(1, 1, 2), {'aabb', 'bbaa'})
        self.assertEqual(self.traces(2, 1, 2), {'aabb', 'bbaa', 'abba', 'baab'})
        self.assertEqual(self.traces(3, 1, 2), {'aabb', 'bbaa', 'abba', 'baab', 'abab', 'baba'})


class Shrinking(Test):
    PROGRAMS = [[program('planted-' + name)] for name in
                ('lost_update', 'two_locks', 'notify_one', 'peterson_late_flag', 'aba_stack', 'daemon_left')]
    PROGRAMS += [subject('turns', 2, 2, 'abcabc'), subject('turns', 1, 4, 'abababab')]

    def test_no_decision_is_left_that_could_be_dropped(self):
        for words in self.PROGRAMS:
            with self.subTest(os.path.basename(words[0])):
                said = self.found(explore('--schedules 100000', words))
                shrunk = said.plans[0]
                self.assertRegex(shrunk, r'^list:\d+=\d+(,\d+=\d+)*(:workers=\d+)?$')
                again = replay(shrunk, words)
                self.assertEqual((again.code, again.verdict), (1, said.verdict), again)
                shrunk, colon, workers = shrunk[len('list:'):].partition(':')
                decisions = shrunk.split(',')
                self.assertRegex(said.out, rf'decisions; {len(decisions)} unusual ones? of them suffices? ')
                for i in range(len(decisions)):
                    less = replay('list:' + ','.join(decisions[:i] + decisions[i + 1:]) + colon + workers, words)
                    self.assertNotEqual(less.verdict, said.verdict, less)

    def test_what_fails_always_shrinks_to_nothing(self):
        for how in ['assert', 'deadlock', 'leak'] + ([] if ASAN else ['livelock-yield']):  # with ASan no livelock is claimed
            self.assertEqual(explore('', subject('endings', how)).plans[0], 'list:')

    @unittest.skipIf(ASAN, 'it has too much memory to be compared')
    def test_options_are_kept(self):
        said = self.found(explore('--workers 2 --steps 500 --no-leaks', [program('planted-polite')]))
        self.assertEqual(len(said.plans), 2, said)
        for plan in said.plans:
            self.assertTrue(plan.endswith(':workers=2:steps=500:leaks=0'), plan)
            self.assertEqual(replay(plan, [program('planted-polite')]).verdict, said.verdict)

    def test_thousands_of_choices_are_shortened(self):
        """The run has more than 4096 of them, and fails without any."""
        said = self.found(explore('', subject('lengthy', 'abort', 5000)), ABORTED)
        self.assertEqual(said.plans[0], 'list:')

    def test_what_is_too_long_is_said(self):
        said = self.found(explore('--steps 1000000', subject('lengthy', 'abort', 200000)), ABORTED)
        self.assertIn('; it was not shortened: it made more choices than can be remembered.', said.out)

    def test_faults_are_kept(self):
        said = self.found(explore('--fail time', subject('hours', 'patient')))
        again = replay(said.plans[0], subject('hours', 'patient'))
        self.assertEqual((again.code, again.verdict), (1, ABORTED), again)


def count_schedules(children, steps, bound, kind='point'):
    """How many schedules subjects/turns.c has with at most so many preemptions, on workers for all: counted one by one.

    A process is a row of points, where another one may be chosen, and of what it does between them. Where it yields another one
    should be chosen: that it goes on counts as a preemption. So does, where a choice is free, to choose a process that has yielded twice
    while another one was ready and did not run.
    """
    everybody = range(1, children + 1)
    rows = [[op for i in everybody for op in (('point', i), ('spawn', i), ('point', i))] + [(kind, 0)] * steps +
            [op for i in everybody for op in (('point', i), ('join', i), ('point', i))]]
    rows += [[(kind, i)] * steps for i in everybody]

    @functools.lru_cache(None)
    def ways(at, state, runner, left, now, ran, gave, mark):
        """at: where each is in its row; state: of each '-' not there, 'r' ready, 'w' waiting, 'e' ended; now: how many steps there have
        been; ran: when each ran last, or became ready (0: it is not); gave, mark: when it last yielded, and when before that."""
        ready = [i for i, s in enumerate(state) if s == 'r']
        yields = state[runner] == 'r' and at[runner] > 0 and rows[runner][at[runner] - 1][0] == 'yield'
        ran = tuple((r or now) if i in ready else 0 for i, r in enumerate(ran))
        if yields:
            mark = mark[:runner] + (gave[runner],) + mark[runner + 1:]
            gave = gave[:runner] + (now,) + gave[runner + 1:]
        stays = state[runner] == 'r' and not yields
        hungriest = min((ran[i] for i in ready if not (yields and i == runner)), default=0)
        total = 0 if ready else 1
        for i in ready:
            cost = len(ready) > 1 and (i != runner if stays else yields and i == runner or mark[i] > hungriest)
            if cost <= left:
                total += ways(*step(list(at), list(state), i), i, left - cost, now + 1, ran[:i] + (now,) + ran[i + 1:], gave, mark)
        return total

    def step(at, state, i):
        """What i does when it is chosen: up to its next point, until it waits, or to its end."""
        while at[i] < len(rows[i]):
            what, whom = rows[i][at[i]]
            if what == 'join' and state[whom] != 'e':
                state[i] = 'w'
                return tuple(at), tuple(state)
            at[i] += 1
            if what in ('point', 'yield'):
                return tuple(at), tuple(state)
            if what == 'spawn':
                state[whom] = 'r'
        state[i] = 'e'
        if state[0] == 'w' and rows[0][at[0]] == ('join', i):
            state[0] = 'r'
        return tuple(at), tuple(state)

    zero = (0,) * len(rows)
    return ways(zero, ('r',) + ('-',) * children, 0, bound, 1, zero, zero, zero)


def count_by_hand(steps, bound):
    """The same for one child: preemptions take turns, the first process's at its steps + 2 points (behind spawn, at each step,
    before join), the child's at its steps."""
    return sum(math.comb(steps + 2, (n + 1) // 2) * math.comb(steps, n // 2) for n in range(bound + 1))


def preemptions(trace):
    """How many a trace of subjects/turns.c with one child needs."""
    return sum(trace[i:i + 2] == 'ab' and 'a' in trace[i + 1:] or trace[i:i + 2] == 'ba' and 'b' in trace[i + 1:]
               for i in range(len(trace) - 1)) + (trace[0] == 'b')


class Exhaustive(Test):
    def count(self, children, steps, bound, more=''):
        said = self.nothing(explore(f'--policy exhaustive:{bound} ' + more, subject('turns', children, steps)))
        self.assertEqual(said.distinct, said.count, said)
        self.assertTrue(said.first.endswith(f'; these are all with at most {bound} preemption{"" if bound == 1 else "s"}'), said)
        return said.count

    def test_one_child_has_as_many_schedules_as_the_formula_says(self):
        for steps, bound in itertools.product(range(4), range(5)):
            with self.subTest(f'{steps} steps, {bound} preemptions'):
                self.assertEqual(self.count(1, steps, bound), count_by_hand(steps, bound))
                self.assertEqual(count_schedules(1, steps, bound), count_by_hand(steps, bound))

    def test_more_children_have_as_many_as_there_are(self):
        for children, steps, bound in (2, 0, 9), (2, 1, 0), (2, 1, 1), (2, 1, 2), (2, 2, 2), (2, 3, 1), (3, 1, 0), (3, 2, 1):
            with self.subTest(f'{children} children, {steps} steps, {bound} preemptions'):
                self.assertEqual(self.count(children, steps, bound), count_schedules(children, steps, bound))

    def test_who_yields_need_not_be_preempted(self):
        for children, steps, bound in (1, 1, 0), (1, 3, 0), (1, 3, 1), (1, 3, 2), (2, 1, 0), (2, 2, 0), (2, 3, 0), (2, 1, 1), (2, 2, 1):
            with self.subTest(f'{children} children, {steps} yields, {bound} preemptions'):
                said = self.nothing(explore(f'--policy exhaustive:{bound}', subject('turns', children, steps, 'yield')))
                self.assertEqual(said.count, count_schedules(children, steps, bound, 'yield'))

    def test_what_needs_few_preemptions_is_found_before_what_needs_more(self):
        for trace in 'aabbab', 'abbbaa', 'ababab', 'baaabb':
            needed = preemptions(trace)
            said = self.found(explore('--policy exhaustive:5', subject('turns', 1, 3, trace)), ABORTED)
            self.assertLessEqual(said.count, count_by_hand(3, needed), said)
            self.assertGreater(said.count, count_by_hand(3, needed - 1), said)

    def test_long_runs_are_searched_as_far_as_that_goes(self):
        """More decisions than are remembered."""
        self.nothing(explore('--policy exhaustive:1 --schedules 2', subject('lengthy', 'register', 200000)))

    def test_one_worker_has_one_schedule(self):
        self.assertEqual(self.count(3, 3, 9, '--workers 1'), 1)

    def test_each_order_is_found_with_as_many_preemptions_as_it_takes(self):
        """A letter is a step of that process; where one changes to the other before its last step, that is a preemption, and to
        let the child begin is one too."""
        for places in itertools.combinations(range(6), 3):
            trace = ''.join('b' if i in places else 'a' for i in range(6))
            needed = preemptions(trace)
            with self.subTest(trace):
                self.found(explore(f'--policy exhaustive:{needed}', subject('turns', 1, 3, trace)), ABORTED)
                if needed > 0:
                    self.nothing(explore(f'--policy exhaustive:{needed - 1}', subject('turns', 1, 3, trace)))

    def test_behaviours_run_in_every_order_that_their_cowns_allow_and_in_no_other(self):
        """The first process of subjects/behaviours.c makes six; each order that the program sees is a line in a file."""
        before = (0, 2), (2, 3), (2, 4), (1, 4), (4, 5)
        allowed = {''.join(map(str, p)) for p in itertools.permutations(range(6)) if all(p.index(a) < p.index(b) for a, b in before)}
        self.assertEqual(len(allowed), 10)
        with tempfile.TemporaryDirectory() as folder:
            orders = os.path.join(folder, 'orders')
            said = self.nothing(explore('--policy exhaustive:1', subject('behaviours', orders)))
            self.assertTrue(said.first.endswith('; these are all with at most 1 preemption'), said)
            with open(orders) as f:
                self.assertEqual(set(f.read().split()), allowed)

    def test_a_behaviour_that_waits_while_it_has_cowns(self):
        said = self.found(explore('', subject('holder')))
        self.assertIn('a behaviour, waits in hd_semaphore_wait and has cowns meanwhile', said.out + said.err)
        self.nothing(explore('--schedules 100', subject('holder', 'may')))

    def interrupt(self, steps, bound, schedules, trace):
        """A search that is interrupted, and goes on in another process, is the same as a whole one."""
        for words in subject('turns', 1, steps), subject('turns', 1, steps, trace):
            with tempfile.TemporaryDirectory() as folder:
                how = f'--policy exhaustive:{bound} --checkpoint {folder}/checkpoint'
                whole = explore(f'--policy exhaustive:{bound}', words)
                self.assertEqual(self.nothing(explore(f'{how} --schedules {schedules}', words)).count, schedules)
                rest = explore(how, words)
                self.assertEqual((rest.code, rest.count), (whole.code, whole.count), rest)
                self.assertGreater(whole.count, schedules)
                if whole.code == 1:
                    self.assertEqual((rest.verdict, rest.plans), (whole.verdict, whole.plans))
                else:
                    self.assertEqual(whole.count, count_by_hand(steps, bound))
                    self.assertEqual(rest.distinct, whole.count - schedules)  # the others had been run before
                    self.assertTrue(rest.first.endswith(f'these are all with at most {bound} preemptions'), rest)

    def test_what_was_interrupted_goes_on(self):
        self.interrupt(4, 5, 200, 'bababbaa')  # one of the last of the 301

    def test_schedules_is_a_limit(self):
        said = self.nothing(explore('--policy exhaustive:4 --schedules 10', subject('turns', 1, 9)))
        self.assertEqual(said.count, 10)
        self.assertNotIn('these are all', said.first)

    def test_schedules_is_a_limit_for_the_rest_too(self):
        with tempfile.TemporaryDirectory() as folder:
            how = f'--policy exhaustive:4 --checkpoint {folder}/checkpoint'
            explore(how + ' --schedules 50', subject('turns', 1, 8))
            self.assertEqual(explore(how + ' --schedules 10', subject('turns', 1, 8)).count, 60)

    def test_a_checkpoint_of_another_search_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            how = f'--policy exhaustive:%d --checkpoint {folder}/checkpoint'
            explore(how % 4 + ' --schedules 50', subject('turns', 1, 8))
            for bound, words in (1, subject('turns', 1, 8)), (4, subject('turns', 1, 9)), (4, subject('endings')):
                self.untried(explore(how % bound, words), 'is the checkpoint of another')

    def test_what_is_no_checkpoint_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for text in '', 'nonsense', 'heddle-search', 'heddle-search 12', 'heddle-search 12 nonsense':
                with open(f'{folder}/checkpoint', 'w') as f:
                    f.write(text)
                self.untried(explore(f'--policy exhaustive:1 --checkpoint {folder}/checkpoint', subject('turns', 1, 1)),
                             'is not a checkpoint')


class Faults(Test):
    SITES = 13

    def count(self, what):
        """How many calls could fail: each was tried alone, and all from each on, till there were no more; and one schedule."""
        said = self.nothing(explore(f'--schedules 1 --fail {what}', subject('memory')))
        return (said.count - 1) // 2 - 1

    def test_who_takes_no_for_an_answer_is_fine(self):
        self.nothing(explore('--schedules 200 --fail alloc,map,guard', subject('memory')))

    def test_calls_are_counted_over_all_that_may_fail(self):
        self.assertGreater(self.count('alloc'), 0)
        self.assertGreater(self.count('map'), 0)
        self.assertEqual(self.count('alloc,map'), self.count('alloc') + self.count('map'))

    def test_each_call_is_tried_in_its_turn(self):
        """Replay tells where each of the tries hits; who is careless there is found by the first that does."""
        calls = self.count('alloc,map')
        tries = [f'list::fail=alloc+map:{how}={n}' for how in ('at', 'from') for n in range(1, calls + 2)]
        hits = [re.findall(r'(\d+) refused', replay(plan, subject('memory')).out) for plan in tries]
        self.assertGreater(len({site for sites in hits for site in sites}), 5)
        for site in map(str, range(1, self.SITES)):
            said = explore('--schedules 1 --fail alloc,map', subject('memory', site))
            first = next((n for n, sites in enumerate(hits) if site in sites), None)
            if first is None:
                self.nothing(said)
            else:
                self.found(said, ABORTED)
                self.assertEqual(said.count, first + 1, said)
                self.assertEqual(said.plans[-1], tries[first])

    def test_the_first_is_the_first(self):
        """Nothing but the four locals is malloc's."""
        for n, site in enumerate(('2', '5', '8', '11'), 1):
            said = replay(f'list::fail=alloc:at={n}', subject('memory'))
            self.assertEqual(re.findall(r'(\d+) refused', said.out), [site], said)
            said = replay(f'list::fail=alloc:from={n}', subject('memory'))
            self.assertEqual(re.findall(r'(\d+) refused', said.out), ['2', '5', '8', '11'][n - 1:], said)

    @unittest.skipIf(ASAN, 'ASan has a malloc of its own')
    def test_the_programs_own_memory_fails_too(self):
        said = self.nothing(explore('--schedules 200 --fail malloc', subject('own_memory')))
        self.assertEqual(said.count, 200 + 2 * (10 + 1))  # five calls in each of two, alone and from there on, and none
        said = self.found(explore('--fail malloc', subject('own_memory', 'careless')), 'ended by signal 11 (Segmentation fault)')
        self.assertEqual(said.plans[0], 'list::fail=malloc:at=1')
        again = replay(said.plans[0], subject('own_memory', 'careless'))
        self.assertEqual((again.code, again.verdict), (1, said.verdict), again)
        self.nothing(explore('--schedules 50', subject('own_memory', 'careless')))

    def test_nothing_fails_unasked(self):
        for site in range(self.SITES):
            self.nothing(explore('--schedules 20', subject('memory', site)))

    def test_schedules_is_a_limit_for_a_search_with_faults(self):
        said = self.nothing(explore('--policy exhaustive:1 --schedules 2 --fail alloc,map', subject('memory')))
        self.assertLess(said.count, 2 + 2 * (self.count('alloc,map') + 1) + 2)


class Time(Test):
    def test_hours_pass_at_once_and_in_order(self):
        start = time.monotonic()
        self.nothing(explore('--schedules 100', subject('hours', 'sleep')))
        self.nothing(explore('--schedules 100 --policy pct:3', subject('hours', 'sleep')))
        self.assertLess(time.monotonic() - start, 60)

    def test_a_sleep_of_an_hour_takes_an_hour(self):
        said = replay(1, subject('hours'))
        self.assertEqual(said.code, 0, said)
        self.assertEqual(said.first, 'slept for 3600 s')
        self.assertRegex(said.last, r' steps, 36000\d\d\.\d+ ms of virtual time')

    def test_steps_take_time(self):
        self.nothing(explore('--schedules 20', subject('hours', 'look')))
        said = replay(1, subject('turns', 3, 5))
        steps, ms = re.match(r'heddle: after (\d+) steps, ([0-9.]+) ms', said.last).groups()
        self.assertEqual(float(ms), int(steps) / 1000, said)

    def test_who_is_ready_is_not_too_late(self):
        self.nothing(explore('--schedules 500', subject('hours', 'patient')))
        self.nothing(explore('--policy exhaustive:9', subject('hours', 'patient')))

    def test_that_time_may_pass_is_suggested(self):
        words = subject('hours', 'patient')
        again = '\n  heddle explore --quiet --schedules 20 --fail time ' + shlex.join(words)
        self.assertIn(again, self.nothing(explore('--schedules 20', words)).out)
        self.assertNotIn('--fail', explore('--schedules 20', subject('turns', 1, 3)).out)

    def test_unless_time_may_pass(self):
        self.found(explore('--fail time', subject('hours', 'patient')), ABORTED)
        self.found(explore('--fail time --policy exhaustive:1', subject('hours', 'patient')), ABORTED)

    def test_a_deadline_from_before_the_run_is_virtual_too(self):
        for _ in range(2):
            self.assertEqual(replay(1, subject('hours', 'before')).first, 'slept for 3600 s')


class Priorities(Test):
    SEEDS = 20

    def prints(self, printed, words):
        for seed in range(self.SEEDS):
            said = replay(f'{seed}:workers=1:leaks=0:steps=1000000', words)
            self.assertEqual((said.code, said.out[:said.out.index('heddle: after')]), (0, printed), said)

    def test_on_one_worker_examples_print_what_they_print_without_a_simulator(self):
        for words in [program('example-sieve')], subject('turns', 3, 4):
            usual = Said(words, env={'HEDDLE_WORKERS': '1'})
            self.assertEqual(usual.code, 0, usual)
            self.prints(usual.out, words)

    def test_on_one_worker_sleepers_wake_in_order(self):
        """Without a simulator they do only if the machine has a CPU for each to begin in time."""
        self.prints('10 10 20 30 30 40 50 50 60 90 \n', subject('sleepsort'))
        self.prints('1 3 3 5 9 \n', subject('sleepsort', 9, 3, 5, 3, 1))

    def test_on_one_worker_the_book_is_right(self):
        for seed in range(self.SEEDS):
            said = Said([TESTS, '--filter', 'book_', '--jobs', '1'], env={'HEDDLE_SIM': f'{seed}:workers=1'})
            self.assertEqual(said.code, 0, said)
            self.assertRegex(said.out, r'\d{2,} passed, ', said)

    def test_on_one_worker_the_rules_hold(self):
        """Random programs run as the rules say, hand-offs give the turn back, quanta end."""
        for some in 'random_programs_', 'join_', 'round_robin_processes_take_turns':
            said = Said([TESTS, '--filter', some, '--jobs', '1'], env={'HEDDLE_SIM': '1:workers=1:steps=4000000000'})
            self.assertEqual(said.code, 0, said)

    def test_low_ones_run_only_where_no_high_one_could(self):
        for workers in 1, 2, 3, 4:
            with self.subTest(f'{workers} workers'):
                self.nothing(explore('--schedules 150', subject('crowd', workers, 'below')))
                self.nothing(explore('--schedules 50 --policy pct:3', subject('crowd', workers, 'below')))
                self.nothing(explore('--policy robin', subject('crowd', workers, 'below')))

    def test_equals_take_a_free_seat_in_any_order(self):
        """On two workers d goes first: when the first process waits, b has a seat, and d takes the other one before c."""
        self.found(explore('--workers 2', subject('turns', 3, 1, 'adbc')), ABORTED)
        self.found(explore('--workers 2 --policy exhaustive:0', subject('turns', 3, 1, 'adbc')), ABORTED)

    def test_workers_are_there_for_all(self):
        for wish in 'alone', 'beside':
            self.nothing(explore('--schedules 50', subject('crowd', 1, wish)))
            for workers in 2, 3, 4:
                self.found(explore('', subject('crowd', workers, wish)), ABORTED)
            self.nothing(explore('--schedules 50 --workers 1', subject('crowd', 4, wish)))
            self.found(explore('--workers 2', subject('crowd', 1, wish)), ABORTED)


FILE_C = """
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
static int argc;
static char **argv;
static void *first(void *arg)
{
	for (int i = 1; i < argc; i++)
		printf("[%s]", argv[i]);
	fflush(stdout);
#ifdef ABORT
	abort();
#endif
	return arg;
}
int main(int c, char **v)
{
	argc = c, argv = v;
	return hd_run(NULL, first, NULL) == 0 ? 7 : 1;
}
"""


@unittest.skipIf(ASAN, 'what it compiles is not instrumented, and cannot be linked with what is')
class Run(Test):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.env = folder.name, {'XDG_CACHE_HOME': folder.name + '/cache'}
        self.file, self.wrapper = self.write('file.c', FILE_C), self.write('wrapper', f"""#!/bin/sh
            echo "$*" >>{self.folder}/log
            exec cc "$@"
            """)
        os.chmod(self.wrapper, 0o755)

    def write(self, name, text):
        with open(f'{self.folder}/{name}', 'w') as f:
            f.write(text)
        return f'{self.folder}/{name}'

    def compilations(self):
        try:
            with open(f'{self.folder}/log') as f:
                return len(f.readlines())
        except FileNotFoundError:
            return 0

    def run_it(self, *words, **env):
        return Said([HEDDLE, 'run', *words], env={**self.env, **env})

    def test_it_compiles_once_and_again_when_something_has_changed(self):
        self.write('part.h', '')
        text = '#include "part.h"\n' + FILE_C
        for change, flags, expected in (('file.c', text), '', 1), ((), '', 1), (('file.c', text + '\n'), '', 2), ((), '', 2), \
                ((), '-DABORT', 3), ((), '-DABORT', 3), ((), '', 3), (('part.h', '\n'), '', 4), ((), '', 4):
            if change:
                self.write(*change)
            said = self.run_it('--cc', self.wrapper, self.file, 'x', CFLAGS=flags)
            self.assertEqual(said.out, '[x]', said)
            self.assertEqual(said.code, -6 if flags else 7, said)
            self.assertEqual(self.compilations(), expected)

    def test_with_blanks_in_its_name_too(self):
        for _ in range(2):
            self.run_it('--cc', self.wrapper, self.write('a file.c', FILE_C) if self.compilations() == 0 else
                        f'{self.folder}/a file.c')
        self.assertEqual(self.compilations(), 1)

    def test_signals_are_as_they_were(self):
        text = '#include <signal.h>\nint main(void) { return signal(SIGPIPE, SIG_DFL) == SIG_IGN; }\n'
        self.assertEqual(self.run_it(self.write('signals.c', text)).code, 0)

    def test_arguments_and_status_pass_through(self):
        said = self.run_it(self.file, '--cc', 'a b', '', '-h', '--', "c'd")
        self.assertEqual((said.code, said.out), (7, "[--cc][a b][][-h][--][c'd]"), said)

    def test_the_compiler_is_ccs_if_that_is_set(self):
        self.assertEqual(self.run_it(self.file, CC=self.wrapper).code, 7)
        self.assertEqual(self.compilations(), 1)

    def test_cc_may_have_words(self):
        self.assertEqual(self.run_it(self.file, CC='cc -pipe').code, 7)

    def test_ldlibs_are_words(self):
        text = '#include <math.h>\n' + FILE_C.replace('? 7', '? (int)cbrt(argc * 27.0)')
        said = self.run_it(self.write('math.c', text), 'x', 'y', 'z', LDLIBS=' -lm  -lc ')
        self.assertEqual(said.code, 4, said)  # the root of 108

    def test_a_name_may_have_blanks(self):
        self.assertEqual(self.run_it(self.write("a file's.c", FILE_C)).code, 7)

    def test_what_does_not_compile_is_not_run(self):
        self.untried(self.run_it(self.write('bad.c', 'int main(void) { return nothing; }\n')), 'bad.c does not compile')
        self.untried(self.run_it('--cc', f'{self.folder}/nonesuch', self.file), 'nonesuch: No such file or directory')
        self.assertEqual([name for name in os.listdir(f'{self.folder}/cache/heddle') if not name.endswith('.d')], [])

    def test_what_is_not_there_is_not_run(self):
        self.untried(self.run_it(f'{self.folder}/nonesuch.c'), 'nonesuch.c: No such file or directory')
        self.untried(self.run_it(), 'which file')

    def test_the_environment_passes_through(self):
        said = self.run_it(self.file, 'x', HEDDLE_WORKERS='0')
        self.assertEqual(said.code, 1, said)
        self.assertIn('HEDDLE_WORKERS', said.err)

    def test_what_it_compiled_can_be_explored(self):
        self.run_it(self.file)
        cached, = (name for name in glob.glob(f'{self.folder}/cache/heddle/*') if not name.endswith('.d'))
        self.assertEqual(explore('', [cached]).verdict, 'exit status 7')

    def test_explore_and_replay_compile_too(self):
        said = explore('', [self.file, 'x'], env={**self.env, 'CC': self.wrapper})
        self.assertEqual((said.code, said.verdict), (1, 'exit status 7'), said)
        self.assertIn(f'\n  heddle replay list: {self.file} x\n', said.out)
        again = replay('list:', [self.file, 'x'], env={**self.env, 'CC': self.wrapper})
        self.assertEqual((again.code, again.out[:3], again.out[-15:]), (1, '[x]', ' exit status 7\n'), again)
        self.assertEqual(self.compilations(), 1)
        bad = self.write('bad.c', 'int main(void) { return nothing; }\n')
        self.untried(explore('', [bad], env=self.env), 'bad.c does not compile')
        self.untried(replay('list:', [bad], env=self.env), 'bad.c does not compile')
        self.untried(explore('', [f'{self.folder}/nonesuch.c'], env=self.env), 'nonesuch.c: No such file or directory')


class Options(Test):
    def test_what_is_no_command_is_refused(self):
        for words, why in (
                ('nonsense', 'no command nonsense'),
                ('help nonsense', 'no command nonsense'),
                ('explore', 'which program'),
                ('explore --nonsense /bin/true', "unrecognized option '--nonsense'"),
                ('explore --schedules', 'requires an argument'),
                ('explore --schedules 0 /bin/true', '--schedules 0: not a number'),
                ('explore --schedules x /bin/true', '--schedules x: not a number'),
                ('explore --schedules 1x /bin/true', '--schedules 1x: not a number'),
                ('explore --schedules -1 /bin/true', '--schedules -1: not a number'),
                ('explore --schedules 99999999999999999999 /bin/true', 'not a number'),
                ('explore --seed -1 /bin/true', '--seed -1: not a number'),
                ('explore --seed 18446744073709551616 /bin/true', 'not a number'),
                ('explore --steps 0 /bin/true', '--steps 0: not a number'),
                ('explore --steps 4294967296 /bin/true', 'not a number'),
                ('explore --workers 0 /bin/true', '--workers 0: not a number'),
                ('explore --workers 256 /bin/true', '--workers 256: not a number'),
                ('explore --jobs 0 /bin/true', '--jobs 0: not a number'),
                ('explore --jobs 65 /bin/true', '--jobs 65: not a number'),
                ('explore --time x /bin/true', '--time x: not a time'),
                ('explore --time 0 /bin/true', '--time 0: not a time'),
                ('explore --time -1s /bin/true', '--time -1s: not a time'),
                ('explore --time 5d /bin/true', '--time 5d: not a time'),
                ('explore --policy nonsense /bin/true', '--policy nonsense: not random'),
                ('explore --policy pct /bin/true', '--policy pct: not random'),
                ('explore --policy pct:0 /bin/true', '--policy pct: 0: not a number'),
                ('explore --policy pct:x /bin/true', '--policy pct: x: not a number'),
                ('explore --policy exhaustive: /bin/true', '--policy exhaustive: '),
                ('explore --fail nonsense /bin/true', '--fail nonsense: not some of'),
                ('explore --fail alloc, /bin/true', '--fail alloc,: not some of'),
                ('explore --checkpoint x /bin/true', '--checkpoint is for'),
                ('replay', 'which schedule'),
                ('replay 1', 'which schedule'),
                ('replay nonsense /bin/true', 'nonsense is not a schedule'),
                ('replay --nonsense 1 /bin/true', "unrecognized option '--nonsense'"),
                ('run --nonsense x.c', "unrecognized option '--nonsense'")):
            with self.subTest(words):
                self.untried(Said([HEDDLE, *words.split()]), re.escape(why))

    def test_help_is_there(self):
        for words in 'help', '--help', '-h', 'help explore', 'help replay', 'help run', 'explore --help', 'replay -h', 'run --help':
            said = Said([HEDDLE, *words.split()])
            self.assertEqual((said.code, said.err), (0, ''), said)
            self.assertTrue(said.out.startswith('heddle '), said)
        said = Said([HEDDLE])
        self.assertEqual(said.code, 2)
        self.assertRegex(Said([HEDDLE, '--version']).out, r'^heddle \d')

    def test_what_is_no_plan_is_refused_by_the_program_too(self):
        self.untried(Said(subject('endings'), env={'HEDDLE_SIM': 'nonsense'}), 'HEDDLE_SIM=nonsense: not a plan')

    def test_a_program_runs_a_plan_by_itself(self):
        said = Said(subject('turns', 1, 3), env={'HEDDLE_SIM': 'list:0=1'})
        self.assertEqual((said.code, said.out, said.err), (0, 'bbbaaa\n', ''), said)
        self.assertEqual(Said(subject('turns', 1, 3), env={'HEDDLE_SIM': 'list:'}).out, 'aaabbb\n')
        self.assertEqual(Said(subject('turns', 1, 3), env={'HEDDLE_SIM': 'robin'}).out, 'bababa\n')

    def test_a_search_goes_on_from_a_seed(self):
        words = [program('planted-notify_one')]
        said = self.found(explore('', words))
        self.assertGreater(said.count, 1)
        again = self.found(explore(f'--seed {said.count}', words), said.verdict)
        self.assertEqual((again.count, again.plans), (1, said.plans))
        self.assertEqual(self.nothing(explore(f'--schedules {said.count - 1}', words)).count, said.count - 1)

    def test_jobs_share_the_schedules(self):
        said = self.nothing(explore('--jobs 3 --schedules 600', subject('repeat')))
        self.assertEqual((said.count, said.distinct), (600, explore('--schedules 600', subject('repeat')).distinct))
        said = self.found(explore('--jobs 3', [program('planted-notify_one')]), DEADLOCK)
        self.assertEqual(replay(said.plans[-1], [program('planted-notify_one')]).verdict, DEADLOCK)

    def test_time_is_a_limit(self):
        start = time.monotonic()
        said = self.nothing(explore('--time 1s', subject('repeat')))
        self.assertTrue(0.9 < time.monotonic() - start < 20)
        self.assertGreater(said.count, 1)

    def test_a_crowd_waits_for_few_seats(self):
        """More of them than may be listed at a time, on workers of which there are fewer."""
        for workers in 2, 64, 255:
            self.nothing(explore(f'--schedules 20 --workers {workers}', subject('turns', 100, 1)))

    def test_the_number_of_workers_varies_unless_it_is_said(self):
        there = [int(replay(f'{policy}{seed}', subject('workers')).first) for policy in ('', 'pct:3:9:') for seed in range(40)]
        self.assertEqual(set(there), {2, 3, 4, 8, 255})
        for plan, words, workers in ('list:', subject('workers'), '4'), ('7:workers=5', subject('workers'), '5'), \
                ('7', subject('workers', 6), '6'), ('7:workers=5', subject('workers', 6), '5'):
            self.assertEqual(replay(plan, words).first, workers)
        self.assertEqual(replay('7', subject('workers'), env={'HEDDLE_WORKERS': '9'}).first, '9')

    def test_the_story_has_names_and_reasons(self):
        said = replay('list:0=1', subject('turns', 1, 1))
        self.assertNotIn('main runs', said.out)
        said = Said([HEDDLE, 'replay', '--trace', 'list:0=1', *subject('turns', 1, 1)])
        self.assertEqual(said.code, 0, said)
        for line in '-> main #0 runs', '-> take_steps() #1 runs *', 'is interrupted':
            self.assertIn(line, said.out)

    def test_the_story_has_calls_and_lines(self):
        said = Said([HEDDLE, 'replay', '--trace', 'list:', *subject('turns', 1, 1)])
        self.assertRegex(said.out, r'main #0 +hd_checkpoint +turns\.c:\d+')


class Story(Test):
    def line_of(self, name, comment):
        with open(os.path.join(HERE, 'subjects', name)) as f:
            return [n for n, line in enumerate(f, 1) if f'/* {comment} */' in line]

    def test_a_deadlock_is_told_to_its_last_lock_and_no_further(self):
        """With calls, lines, the lines that called those, and holders; of a program at fixed addresses too."""
        inner, = self.line_of('locks.c', 'inner')
        outer = self.line_of('locks.c', 'outer')
        for name in 'locks', 'locks-fixed':
            said = self.found(explore('', subject(name)), DEADLOCK)
            story = said.out[said.out.index('Its story'):said.out.index('\n\nWhat it printed')].split('\n')
            for who, holder, line in ('lefty #1', 'righty #2', outer[0]), ('righty #2', 'lefty #1', outer[1]):
                wait = rf' {who} +hd_mutex_lock +locks\.c:{inner} < locks\.c:{line} +waits for a mutex, which {holder} has$'
                self.assertRegex('\n'.join(story), re.compile(wait, re.M))
            self.assertRegex('\n'.join(story), re.compile(r' main #0 +hd_join +locks\.c:\d+ +waits for the end of lefty #1', re.M))
            self.assertRegex(story[-2], 'waits for ')
            self.assertRegex(story[-1], '^ +no process can run, and none will be woken: a deadlock$')

    def test_every_kind_of_wait_has_words(self):
        def kinds(name, pattern):
            with open(os.path.join(HERE, '..', '..', name)) as f:
                return set(re.findall(pattern, f.read(), re.M))
        there = kinds('include/heddle/base.h', r'^\t(HD_WAIT_\w+)')
        self.assertGreater(len(there), 15)
        self.assertEqual(there - {'HD_WAIT_NONE'}, kinds('tools/heddle/story.c', r'\[(HD_WAIT_\w+)\] ='))

    def test_the_end_of_a_long_run_is_told(self):
        said = self.found(explore('', subject('lengthy', 'abort', 5000)), ABORTED)
        self.assertRegex(said.out, r'\n  \.\.\. \(\d+ steps before these are not told\)\n')
        self.assertRegex(said.out, r' main #0 +hd_join +lengthy.c:\d+\n\nWhat it printed')

    @unittest.skipIf(ASAN, 'it has too much memory to be compared')
    def test_a_livelock_is_told_from_its_beginning(self):
        said = explore('', subject('flag', 'never'))
        self.assertIn('-> main #0 runs\n', said.out)
        self.assertRegex(said.out, r' hd_yield +flag\.c:\d+ +gives way\n')
        self.assertIn('\n  ... and so on, for ever\n', said.out)


def races():
    """All that there are: primitive, event, event."""
    return [line.split('\t') for line in Said([program('races')]).out.splitlines()]


class Races(Test):
    """Two events for one waiter, on every primitive: nothing is lost or doubled."""
    RANDOM, PCT = (3, 3) if ASAN else (20, 10)

    def test_nothing_is_lost(self, random=None, pct=None):
        self.assertGreater(len(races()), 200)
        for race in races():
            with self.subTest(' '.join(race)):
                self.nothing(explore(f'--policy random --schedules {random or self.RANDOM}', [program('races'), *race]))
                self.nothing(explore(f'--policy pct:3 --schedules {pct or self.PCT}', [program('races'), *race]))

    def test_both_may_win(self):
        """A race that always ends the same way would prove nothing."""
        for race in ['semaphore', 'grant', 'timeout'], ['monitor', 'grant', 'cancel'], ['queue, to take', 'grant', 'close'], \
                ['event', 'cancel', 'terminate'], ['rwlock', 'suspend', 'terminate'], ['promise', 'cancel', 'close']:
            said = {Said([program('races'), *race], env={'HEDDLE_SIM': f'random:{seed}'}).out.strip() for seed in range(40)}
            self.assertLessEqual({race[1], race[2]}, said, race)


class Stress(Test):
    def test_races(self):
        Races.test_nothing_is_lost(self, 2000, 1000)

    def test_a_thousand_seeds_replayed_twice(self):
        for seed in range(1000):
            once, twice = replay(seed, subject('repeat')), replay(seed, subject('repeat'))
            self.assertEqual(once.out, twice.out)

    def test_what_was_interrupted_goes_on(self):
        Exhaustive.interrupt(self, 9, 4, 1500, 'bab' + 8 * 'a' + 7 * 'b')

    def test_hang(self):
        hang = 'hang: no heddle call for 10 seconds; does it compute, or wait outside heddle?'
        self.found(explore('', subject('endings', 'hang')), hang)

    def test_twins(self):
        for name in NAMES:
            for policy in 'random', 'pct:3', 'pct:5', 'exhaustive:2':
                with self.subTest(f'{name}, {policy}'):
                    self.nothing(explore(f'--policy {policy} --schedules 5000', [program(f'planted-{name}-fixed')]))


if __name__ == '__main__':
    unittest.main(defaultTest=[name for name, it in list(globals().items()) if isinstance(it, type) and issubclass(it, Test)
                               and it not in (Test, Stress)])

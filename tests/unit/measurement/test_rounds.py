from __future__ import annotations

import gc

import pytest

from rooflines.errors import InputError
from rooflines.measurement.clock import Timing
from rooflines.measurement.files import Journal
from rooflines.measurement.rounds import Task, run_rounds


class Bench:
    """Cases that count what is done to them, on a clock that ticks once per piece of work."""

    def __init__(self, names="abcd"):
        self.log = []
        self.ticks = 0.0
        self.cases = {name: Task(self._doing(name), self._doing(f"prepare {name}")) for name in names}

    def _doing(self, what):
        return lambda: self.log.append(what)

    def time_once(self, work):
        work()
        self.ticks += 1.0
        return Timing(self.ticks, 2 * self.ticks)

    def run(self, target, *, rounds=3, warmup=1, seed=7, progress=lambda _done, _total: None):
        return run_rounds(
            self.cases,
            rounds=rounds,
            warmup=warmup,
            seed=seed,
            time_once=self.time_once,
            journal=Journal.open(target, {"seed": seed}),
            progress=progress,
        )


def _timed(log, skip):
    return [name for name in log[skip:] if not name.startswith("prepare")]


def test_every_case_is_prepared_and_timed_once_a_round_the_reference_first(tmp_path):
    bench = Bench()
    result = bench.run(tmp_path / "m.json")
    timed = _timed(bench.log, skip=8)
    rounds = [timed[start : start + 4] for start in (0, 4, 8)]
    assert [sorted(one) for one in rounds] == [list("abcd")] * 3
    assert {one[0] for one in rounds} == {"a"}
    assert all(bench.log[at - 1] == f"prepare {name}" for at, name in enumerate(bench.log) if len(name) == 1)
    assert {name: len(times) for name, times in result.times.items()} == dict.fromkeys("abcd", 3)


def test_the_order_changes_from_round_to_round_and_follows_the_seed(tmp_path):
    orders = []
    for name, seed in (("1", 1), ("again", 1), ("2", 2)):
        bench = Bench("abcdefgh")
        bench.run(tmp_path / name, seed=seed, warmup=0, rounds=4)
        orders.append(_timed(bench.log, 0))
    assert orders[0] == orders[1] != orders[2]
    assert len({tuple(orders[0][start : start + 8]) for start in range(0, 32, 8)}) > 1


def test_what_was_timed_is_what_comes_out_in_order(tmp_path):
    bench = Bench("a")
    result = bench.run(tmp_path / "m.json", rounds=3, warmup=5)
    assert [one.cpu_s for one in result.times["a"]] == [1.0, 2.0, 3.0]
    assert [one.wall_s for one in result.times["a"]] == [2.0, 4.0, 6.0]
    assert result.stability.iqr_share == pytest.approx(0.5)
    assert not result.stability.stable


def test_a_killed_run_times_only_what_is_missing_and_warms_up_again(tmp_path):
    target = tmp_path / "m.json"
    bench = Bench()

    def killed(done, _total):
        if done == 4 + 2 * 4 + 1:  # warm-up, two rounds, and one case of the third
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.run(target, progress=killed)
    before = bench.ticks
    told = []
    result = bench.run(target, progress=lambda done, total: told.append((done, total)))
    assert bench.ticks - before == 4
    assert told[-1] == (8, 8)
    assert [one.cpu_s for one in result.times["a"]] == [1.0, 5.0, before + 1]


def test_a_run_that_is_complete_is_not_repeated(tmp_path):
    bench = Bench()
    first = bench.run(tmp_path / "m.json")
    done = len(bench.log)
    again = bench.run(tmp_path / "m.json")
    assert len(bench.log) == done
    assert again.times == first.times


def test_the_collector_rests_while_timing_and_works_again_afterwards(tmp_path):
    seen = []
    bench = Bench("a")
    bench.cases = {"a": Task(lambda: seen.append(gc.isenabled()))}
    bench.run(tmp_path / "m.json")
    assert set(seen) == {False}
    assert gc.isenabled()


@pytest.mark.parametrize(("names", "rounds"), [("", 3), ("ab", 0)])
def test_nothing_to_time_is_refused(names, rounds, tmp_path):
    with pytest.raises(InputError, match="at least one of each"):
        Bench(names).run(tmp_path / "m.json", rounds=rounds)

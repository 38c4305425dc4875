"""The judges are right: they agree with each other, and they catch every wrong answer."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import judges
import sweep as sweeping
from judges import Answer
from problems import FAMILIES, NAMES, Problem, family_of, problem, problems

pytest.importorskip("daqp")
pytest.importorskip("highspy")

DEGENERATE = NAMES[NAMES.index("on-boundary") :]


def cases(seed: int, count: int, *, family: str | None = None) -> list[tuple[Problem, int]]:
    """Points of the first `count` problems, or of the first `count` of a family."""
    indices = range(count)
    if family:
        indices = [k for k in range(100 * count) if family_of(seed, k) == family][:count]
    chosen = [problem(seed, k) for k in indices]
    return [(p, i) for p in chosen if p.family != "big" for i in range(len(p.points))]


def tiny(seed: int, count: int) -> list[tuple[Problem, int]]:
    """Cases that brute force can enumerate."""
    return [(p, i) for p, i in cases(seed, count) if p.G.shape[1] <= 3 and p.G.shape[0] <= 4]


def small(seed: int, count: int) -> list[tuple[Problem, int]]:
    return [(p, i) for p, i in cases(seed, count) if judges.is_small(p)]


def solved(seed: int, count: int) -> list[tuple[Problem, int, judges.Reference]]:
    """Feasible cases whose answer is neither the point itself nor doubtful."""
    found = [(p, i, judges.daqp_solution(p, i)) for p, i in cases(seed, count) if p.truth[i]]
    return [case for case in found if case[2].kkt < 1e-12 and case[2].value.cost > 0]


def claim(p: Problem, i: int, z=np.nan, mu=0.0, status: str = "optimal") -> Answer:
    """Answer in which only point i matters."""
    points, multipliers = np.full(p.points.shape, np.nan), np.zeros((len(p.points), len(p.h)))
    points[i], multipliers[i] = z, mu
    return Answer(points, multipliers, np.zeros(len(points)), [status] * len(points))


def without_truth(p: Problem) -> Problem:
    return replace(p, truth=(None,) * len(p.points))


def violated(p: Problem, i: int, z: list[float]) -> bool:
    """Whether z breaks a row or a bound, in exact arithmetic."""
    G, h, origin, lo, hi = (part.tolist() for part in (p.G, p.h, p.origin, *p.box(i)))
    x = [Fraction(v) - Fraction(o) for v, o in zip(z, origin, strict=True)]
    rows = (sum(Fraction(g) * v for g, v in zip(row, x, strict=True)) for row in G)
    outside = any(not low <= v <= high for low, v, high in zip(lo, z, hi, strict=True))
    return outside or any(value > offset for value, offset in zip(rows, h, strict=True))


def test_a_problem_is_reproducible_from_seed_and_index():
    for one, again in zip(problems(3, 40, start=5), problems(3, 40, start=5), strict=True):
        assert (one.family, one.truth) == (again.family, again.truth)
        for name in ("points", "G", "h", "lo", "hi", "origin", "q", "witness", "proof"):
            np.testing.assert_array_equal(getattr(one, name), getattr(again, name))
        assert family_of(one.seed, one.index) == one.family


def test_problems_are_well_formed():
    for p in problems(4, 600):
        (n, d), m = p.points.shape, len(p.h)
        assert p.G.shape == (m, d)
        assert len(p.truth) == n
        assert p.lo.shape in ((d,), (n, d))
        assert (p.q > 0).all()
        assert (p.lo <= p.hi).all()
        assert all(np.isfinite(part).all() for part in (p.points, p.G, p.h, p.origin, p.q))


def test_every_family_appears_and_a_third_is_degenerate():
    weights = {name: weight for name, (_, weight) in FAMILIES.items()}
    assert 3 * sum(weights[name] for name in DEGENERATE) >= sum(weights.values())
    assert {family_of(0, k) for k in range(5000)} == set(NAMES)


def test_dimensions_and_scales_are_varied():
    drawn = list(problems(0, 2000))
    sizes = np.array([np.median(abs(p.points)) for p in drawn])
    assert {1, 2, 20} <= {p.G.shape[1] for p in drawn}
    assert sizes[sizes > 0].min() < 1e-11
    assert sizes.max() > 1e11


def test_witnesses_of_feasible_problems_hold_in_exact_arithmetic():
    checked = [(p, i) for p, i in cases(5, 500) if p.truth[i]]
    assert len(checked) > 300
    for p, i in checked:
        assert not violated(p, i, p.witness[i].tolist()), (p.family, p.index)


def test_proofs_of_infeasible_problems_have_a_margin():
    checked = [(p, i) for p, i in cases(6, 1500) if p.truth[i] is False]
    assert len(checked) > 200
    for p, i in checked:
        assert judges.farkas(p, i, p.proof[i]) >= 0.99e-6, (p.family, p.index)


def test_exact_arithmetic_confirms_the_truth():
    checked = [(p, i) for p, i in small(7, 800) if p.truth[i] is not None]
    assert {p.truth[i] for p, i in checked} == {True, False}
    for p, i in checked:
        assert judges.exact_feasible(p, i) is p.truth[i], (p.family, p.index)


def test_brute_force_passes_the_kkt_test():
    found = [(p, i, judges.brute_force_projection(p, i)) for p, i in tiny(8, 1500)]
    answers = [case for case in found if case[2] is not None]
    assert len(answers) > 100
    for p, i, exact in answers:
        z, mu = (np.array([float(v) for v in part]) for part in (exact.z, exact.mu))
        assert judges.optimality(p, i, z, mu) < 1e-9, (p.family, p.index)


def test_brute_force_and_exact_simplex_agree_on_feasibility():
    for p, i in tiny(9, 1500):
        found = judges.brute_force_projection(p, i)
        assert judges.exact_feasible(p, i) is (found is not None), (p.family, p.index)


@pytest.mark.parametrize("solver", ["daqp", "highs"])
def test_solvers_agree_with_brute_force(solver):
    agreed = 0
    for p, i in tiny(10, 1500):
        exact, found = judges.brute_force_projection(p, i), judges.SOLUTIONS[solver](p, i)
        if exact is None or not found.good or p.family == "wedge":
            continue
        cost = float(exact.cost)
        assert not found.value.differs(judges.Value(cost, cost, np.inf)), (p.family, p.index)
        agreed += 1
    assert agreed > 100


def test_the_dual_value_never_exceeds_the_exact_cost():
    rng = np.random.default_rng(0)
    for p, i in tiny(11, 1000):
        exact = judges.brute_force_projection(p, i)
        if exact is None:
            continue
        mu = np.array([float(v) for v in exact.mu]) * rng.uniform(0.5, 2.0, size=len(p.h))
        value = judges.residuals(p, [i], p.points[[i]], mu[None]).value(0)
        assert value.dual <= float(exact.cost) * (1 + 1e-12) + value.cost_error, (
            p.family,
            p.index,
        )


def test_daqp_and_highs_agree():
    agreed = 0
    for p, i in cases(12, 300):
        one, other = judges.daqp_solution(p, i), judges.highs_solution(p, i)
        if one.good and other.good and p.family != "wedge":
            assert not one.value.differs(other.value), (p.family, p.index)
            agreed += 1
    assert agreed > 300


def test_phase_one_agrees_with_exact_arithmetic_and_with_construction():
    settled = 0
    for p, i in cases(13, 400):
        found = judges.highs_feasibility(p, i).feasible
        exact = judges.exact_feasible(p, i) if judges.is_small(p) else p.truth[i]
        assert found in (None, exact) or exact is None, (p.family, p.index)
        settled += found is not None
    assert settled > 400


def test_relaxation_brackets_a_touching_region():
    for p, i in cases(14, 12, family="equality"):
        if judges.is_small(p):
            assert judges.exact_feasible(p, i)
            assert not judges.exact_feasible(p, i, relax=-1e-9)
    for p, i in cases(14, 12, family="gap"):
        if judges.is_small(p):
            margin = judges.farkas(p, i, p.proof[i])
            assert not judges.exact_feasible(p, i, relax=0.5 * margin)


def test_brute_force_refuses_what_it_cannot_enumerate():
    p = next(p for p in problems(0, 100) if p.G.shape[1] > 3)
    with pytest.raises(ValueError, match="d <= 3"):
        judges.brute_force_projection(p, 0)


def test_a_right_answer_agrees():
    for p, i, best in solved(15, 150):
        found = judges.verdict(p, i, claim(p, i, best.z, best.mu))
        assert found.outcome == "agree", (p.family, p.index, found)
        assert found.certified


def test_a_moved_point_does_not_pass():
    rng = np.random.default_rng(1)
    for p, i, best in solved(16, 150):
        lo, hi = p.box(i)
        free = np.flatnonzero(lo < hi)
        move = abs(best.z - p.points[i])
        k = free[np.argmax((move * np.sqrt(p.q))[free])] if free.size else 0
        z = best.z.astype(float)
        z[k] += (1e-6 * move[k]) * rng.choice([-1.0, 1.0])
        assert judges.optimality(p, i, z, best.mu) > judges.TOLERANCE, (p.family, p.index)


def test_changed_multipliers_do_not_pass():
    for p, i, best in solved(17, 150):
        if best.mu.any() and p.family not in ("single-point", "crowded-vertex", "wedge", "fixed"):
            found = judges.residuals(p, [i], best.z[None], 1.001 * best.mu[None])
            moved = judges.residuals(p, [i], best.z[None], 0 * best.mu[None])
            interior = ((best.z > p.box(i)[0]) & (best.z < p.box(i)[1])).any()
            if interior:
                assert found.worst[0] > judges.TOLERANCE, (p.family, p.index)
            assert moved.worst[0] > judges.TOLERANCE or not interior


def test_negative_multipliers_and_numbers_that_are_none_do_not_pass():
    p, i, best = next(case for case in solved(18, 50) if case[2].mu.any())
    assert judges.optimality(p, i, best.z, -best.mu) >= 1
    assert judges.optimality(p, i, np.full(len(best.z), np.nan), best.mu) == np.inf
    assert judges.optimality(p, i, best.z, np.full(len(best.mu), np.inf)) == np.inf


def test_a_point_outside_its_box_does_not_pass():
    for p, i, best in solved(19, 100):
        hi = p.box(i)[1]
        if np.isfinite(hi).all() and hi.any():
            z = np.where(hi != 0, hi + 1e-6 * abs(hi), best.z)
            assert judges.residuals(p, [i], z[None], best.mu[None]).box[0] > 1e-7


def test_a_feasible_answer_that_is_too_dear_has_a_wrong_cost():
    caught = 0
    for p, i, best in solved(20, 200):
        z = best.z + 1e-4 * (p.witness[i] - best.z)  # between two points of the region
        dearer = judges.residuals(p, [i], z[None], best.mu[None]).value(0)
        if dearer.differs(best.value):
            found = judges.verdict(p, i, claim(p, i, z, 0.999 * best.mu))
            assert found.outcome == "wrong cost", (p.family, p.index, found)
            caught += 1
    assert caught > 100


def test_an_answer_that_is_too_cheap_has_a_wrong_cost():
    for p, i, best in solved(21, 150):
        z = best.z + 1e-4 * (p.points[i] - best.z)  # back towards the point: outside the region
        cheaper = judges.residuals(p, [i], z[None], best.mu[None]).value(0)
        if cheaper.differs(best.value):
            found = judges.verdict(p, i, claim(p, i, z, best.mu))
            assert found.outcome == "wrong cost", (p.family, p.index, found)
            assert not found.certified


def test_claiming_infeasible_for_a_feasible_problem_is_a_wrong_status():
    for p, i in cases(22, 150):
        if p.truth[i]:
            empty = claim(p, i, mu=np.ones(len(p.h)), status="infeasible")
            assert judges.verdict(p, i, empty).outcome == "wrong status"
            blind = judges.verdict(without_truth(p), i, empty).outcome
            assert blind in ("wrong status", "undecided"), (p.family, p.index)
            if judges.is_small(p):
                assert blind == "wrong status", (p.family, p.index)


def test_claiming_an_optimum_for_an_infeasible_problem_is_a_wrong_status():
    for p, i in cases(23, 400):
        if p.truth[i] is False:
            z = np.clip(p.points[i], *p.box(i))
            assert judges.verdict(p, i, claim(p, i, z)).outcome == "wrong status"
            blind = judges.verdict(without_truth(p), i, claim(p, i, z))
            assert blind.outcome == "wrong status", (p.family, p.index, blind)


def test_unresolved_is_undecided():
    p = problem(0, 0)
    assert judges.verdict(p, 0, claim(p, 0, status="unresolved")).outcome == "undecided"


def test_no_vector_proves_a_feasible_region_empty():
    rng = np.random.default_rng(2)
    for p, i in cases(24, 300):
        if p.truth[i]:
            y = rng.exponential(size=len(p.h)) * (rng.random(len(p.h)) < 0.5)
            assert judges.farkas(p, i, y) <= judges.PROOF, (p.family, p.index)


def test_a_proof_survives_scaling_but_not_a_sign():
    for p, i in cases(25, 300):
        if p.truth[i] is False:
            margin = judges.farkas(p, i, p.proof[i])
            assert judges.farkas(p, i, 1e6 * p.proof[i]) == pytest.approx(margin)
            assert judges.farkas(p, i, -p.proof[i]) == -np.inf
            assert judges.farkas(p, i, 0 * p.proof[i]) == -np.inf


def test_a_proof_may_not_lean_on_an_open_side():
    p = next(p for p, _ in cases(26, 20, family="gap") if np.isinf(p.lo).any())
    k = int(np.flatnonzero(np.isinf(p.lo))[0])
    G = p.G.copy()
    G[np.flatnonzero(p.proof[0])[-1], k] *= 2  # the rows no longer cancel where nothing bounds them
    leaning = replace(p, G=G, lo=np.full(p.lo.shape, -np.inf), hi=np.full(p.hi.shape, np.inf))
    assert judges.farkas(leaning, 0, p.proof[0]) == -np.inf


def run(solver, count: int = 60, **options) -> sweeping.Report:
    options = {"families": ("voronoi", "gap", "on-boundary"), "indices": range(count)} | options
    return sweeping.sweep(seed=1, solver=solver, **options)


def counted(report: sweeping.Report, label: str) -> int:
    return sum(tally.counts[label] for tally in report.tallies.values())


def test_the_sweep_passes_a_right_solver():
    report = run(judges.stand_in, 200)
    assert not report.failed, [sweeping.described(f) for f in report.failures]
    assert counted(report, "feasible") > 0
    assert counted(report, "infeasible") > 0
    assert counted(report, "points") == counted(report, "feasible") + counted(report, "infeasible")


def test_the_sweep_in_parts_is_the_sweep_in_one_go():
    whole = run(judges.stand_in)
    parts = run(judges.stand_in, indices=range(20)).add(run(judges.stand_in, indices=range(20, 60)))
    assert sweeping.table(parts) == sweeping.table(whole)
    assert parts.done == whole.done == 60


def test_the_sweep_catches_liars(tmp_path):
    def too_cheap(p: Problem) -> Answer:
        honest = judges.stand_in(p)
        return replace(honest, points=honest.points + 1e-5 * (p.points - honest.points))

    def never_empty(p: Problem) -> Answer:
        return replace(judges.stand_in(p), points=p.points, status=["optimal"] * len(p.points))

    def always_empty(p: Problem) -> Answer:
        return replace(judges.stand_in(p), status=["infeasible"] * len(p.points))

    assert counted(run(too_cheap, save=tmp_path), "wrong cost") > 10
    gaps = run(never_empty).tallies["gap"].counts
    assert gaps["wrong status"] == gaps["points"] > 0
    assert counted(run(always_empty), "wrong status") > 10
    kept = sorted(tmp_path.glob("voronoi-1-*.npz"))
    again = problem(1, int(kept[0].stem.split("-")[-1]))
    np.testing.assert_array_equal(np.load(kept[0])["G"], again.G)


def test_the_sweep_survives_a_solver_that_raises():
    def broken(p: Problem) -> Answer:
        raise FloatingPointError("no")

    report = run(broken)
    assert report.failed
    assert counted(report, "raised") == counted(report, "points") > 0
    assert "FloatingPointError" in sweeping.described(report.failures[0])


def test_the_command_line_prints_a_table_and_its_verdict(capsys, tmp_path):
    common = ["--solver", "daqp", "--save", str(tmp_path), "--seed", "1"]
    assert sweeping.main(["--count", "40", "--family", "voronoi,gap", *common]) == 0
    assert "worst KKT" in capsys.readouterr().out
    assert sweeping.main(["--index", "0", *common]) in (0, 1)
    assert "point 0" in capsys.readouterr().out


def test_a_point_that_is_feasible_itself_may_not_move_by_rounding():
    for p, i in cases(3, 60, family="on-boundary"):
        moved = np.nextafter(p.points[i], np.clip(0.0, *p.box(i)))
        if judges.is_feasible_itself(p, i) and (moved != p.points[i]).any():
            verdict = judges.verdict(p, i, claim(p, i, moved))
            assert verdict[:2] == ("wrong cost", "exact")

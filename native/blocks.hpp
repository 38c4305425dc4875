// Blocks: points of one target, eight at a time, as long as their box does not bind.
//
// Where the rows of all targets can be stored, a point costs a product with each row of its target and a
// tiny problem in their Gram matrix: the step is y = -U' mu, and U y = -(U U') mu. The innermost loops run
// over points, so each point has its sums in the same order whoever its neighbours are. While a block is
// at hand, its points are also assigned to their own clusters, if that is asked for.
//
// What is accepted satisfies the KKT conditions, box and rounding guard included; all else is left to
// project.hpp.
#pragma once

#include "newton.hpp"

namespace voicecf {
namespace VOICECF_SET {

constexpr int LANES = Doubles::size;
// Points that are sorted by target at a time.
constexpr int SORTED = 1024;
// Most rows of a target among which a block solves for several multipliers.
constexpr int FEW_ROWS = 16;

// The stored rows of one target.
struct Cell {
    int m, wide, target;
    const double *u, *gram, *offsets, *norms, *origin;
    const Guard* guards;
    double away;
};

template <class Real>
Cell cell_of(const Rows<Real>& rows, int t) {
    const StoredRows& s = rows.stored;
    const std::size_t at = std::size_t(t) * s.m;
    return {s.m,
            rows.wide,
            t,
            s.u + at * rows.wide,
            s.grams + at * (s.m + 1),
            s.offsets + at,
            s.norms + at,
            rows.pairs ? rows.centers + std::size_t(t) * rows.wide : rows.origin,
            s.guards + at,
            s.aways[t]};
}

// Turn the points of a block into columns: from the origin, and scaled.
template <class Real>
void enter_lanes(const Rows<Real>& rows, const Cell& cell, const double* const* at, Block& k) {
    for (int q = 0; q < LANES; ++q)
        for (int i = 0; i < rows.d; ++i) k.x[i * LANES + q] = at[q][i];
    Doubles far = Doubles::all(0.0);
    for (int i = 0; i < rows.d; ++i) {
        const Doubles from = Doubles::load(k.x + i * LANES) - Doubles::all(cell.origin[i]);
        const Doubles x = Doubles::all(rows.scale[i]) * from;
        x.store(k.x + i * LANES);
        far = far + x * x;
    }
    far.store(k.far);
}

// Set the slacks of four rows, or of one.
template <int some>
void slacks_of(const Cell& cell, int d, int j, Block& k) {
    Doubles s[some];
    for (int r = 0; r < some; ++r) s[r] = Doubles::all(0.0);
    const double* u = cell.u + std::size_t(j) * cell.wide;
    for (int i = 0; i < d; ++i) {
        const Doubles x = Doubles::load(k.x + i * LANES);
#pragma GCC unroll 4
        for (int r = 0; r < some; ++r) s[r] = s[r] + x * Doubles::all(u[r * cell.wide + i]);
    }
    for (int r = 0; r < some; ++r)
        (Doubles::all(cell.offsets[j + r]) - s[r]).store(k.base + (j + r) * LANES);
}

// Set the slacks of all rows, and those asked for: with the room that an answer at the row is likely to
// need for the model's rounding. Also the most violated row of each point, and by how much.
inline void price_lanes(const Cell& cell, int d, Block& k) {
    int j = 0;
    for (; j + 4 <= cell.m; j += 4) slacks_of<4>(cell, d, j, k);
    for (; j < cell.m; ++j) slacks_of<1>(cell, d, j, k);
    const Doubles zero = Doubles::all(0.0), far = Doubles::load(k.far);
    Doubles step = zero, lack = zero, pick = zero;
    for (j = 0; j < cell.m; ++j) step = larger(step, zero - Doubles::load(k.base + j * LANES));
    double root[LANES];
    for (int q = 0; q < LANES; ++q) root[q] = std::sqrt(k.far[q]);
    const Doubles size = Doubles::all(cell.away) + Doubles::load(root);
    for (j = 0; j < cell.m; ++j) {
        const Guard& g = cell.guards[j];
        const double h = cell.offsets[j];
        const Doubles near = smaller(far, Doubles::all(4.0 * h * h));
        const Doubles need = Doubles::all(g.constant) + Doubles::all(g.of_size) * size +
                             Doubles::all(g.of_square) * near + Doubles::all(g.of_step) * step;
        const Doubles more = larger(need + need - Doubles::all(g.behind), zero);
        const Doubles b = Doubles::load(k.base + j * LANES) - more;
        b.store(k.b + j * LANES);
        pick = if_less(lack, zero - b, Doubles::all(double(j)), pick);
        lack = larger(lack, zero - b);
    }
    lack.store(k.lack);
    pick.store(k.pick);
}

// The cluster of each point; -1 where the model's rounding may see another. Twice the slack to the boundary
// with a rival is by how much the rival is further. The terms of a slack are no larger than 2 D_j + 2.5
// D_t, which bounds its rounding.
template <class Real>
void assign_lanes(const Rows<Real>& rows, const Cell& cell, Block& k) {
    const Doubles zero = Doubles::all(0.0);
    Doubles nearest = zero, second = Doubles::all(INF), own = Doubles::all(double(cell.target));
    for (int j = 0; j < cell.m; ++j) {
        const Doubles slack = Doubles::load(k.base + j * LANES) + Doubles::all(cell.guards[j].behind);
        const Doubles t = Doubles::all(2.0 * cell.norms[j]) * slack;
        second = if_less(t, nearest, nearest, smaller(second, t));
        own = if_less(t, nearest, Doubles::all(double(j < cell.target ? j : j + 1)), own);
        nearest = smaller(t, nearest);
    }
    const double spread = cell.away + rows.longest;
    double apart[LANES], sum[LANES];
    own.store(k.own);
    (second - nearest).store(apart);
    (nearest + second).store(sum);
    for (int q = 0; q < LANES; ++q) {
        double error = 5.0 * sum[q] + 20.0 * k.far[q];
        const double reach = spread + std::sqrt(k.far[q]);
        if (rows.expanded) error += reach * reach;
        if (!(apart[q] - rows.growth * error > 0.0)) k.own[q] = -1.0;
    }
}

// Multipliers of one point, and what its step does to all rows; false where none are found.
inline bool solve_lane(const Cell& cell, int q, Block& k, Choice& c) {
    const int stride = cell.m + 1, pick = int(k.pick[q]);
    bool more = false;
    double* mu = k.mu + q * cell.m;
    fill(mu, 0.0, cell.m);
    k.rows[q] = 1;
    if (!(cell.gram[pick * stride + pick] > 0.5)) return false;  // a row of zeros, which never holds
    mu[pick] = k.lack[q] / cell.gram[pick * stride + pick];
    for (int j = 0; j < cell.m; ++j) {
        const double rise = -cell.gram[pick * stride + j] * mu[pick], b = k.b[j * LANES + q];
        k.rise[j * LANES + q] = rise;
        more |= (j != pick) & (rise - b > TIGHT * (std::fabs(b) + std::fabs(rise)));
    }
    if (!more) return true;
    if (cell.m > FEW_ROWS) return false;  // more rows than a block had better look at
    c.count = c.limit = c.known = cell.m;
    c.mu = mu;
    c.gram = const_cast<double*>(cell.gram);
    for (int j = 0; j < cell.m; ++j) c.b[j] = k.b[j * LANES + q];
    if (!all_at_once(c) && !one_by_one(c)) return false;
    for (int j = 0; j < cell.m; ++j) {
        double rise = 0.0;
        for (int p = 0; p < cell.m; ++p)
            if (mu[p] > 0.0) rise -= cell.gram[p * stride + j] * mu[p];
        k.rise[j * LANES + q] = rise;
    }
    k.rows[q] = 2;
    return true;
}

// Set gap and energy of each step, and the squared distance of its end: y = -U' mu, so |y|^2 = -mu . U y
// and x . y = -mu . U x. `off` is positive where the rows with a multiplier are not tight, or
// where the point is on such a row but for rounding (see slack_of).
inline void weigh_lane(const Cell& cell, int q, Block& k) {
    const double* mu = k.mu + q * cell.m;
    double gap = 0.0, energy = 0.0, square = k.far[q], off = 0.0;
    bool on_row = false;
    for (int j = 0; j < cell.m; ++j) {
        if (!(mu[j] > 0.0)) continue;
        const double rise = k.rise[j * LANES + q], b = k.b[j * LANES + q], base = k.base[j * LANES + q];
        gap -= mu[j] * (rise - b);
        energy -= mu[j] * rise;
        square -= 2.0 * mu[j] * (cell.offsets[j] - base);
        on_row |= base < 0.0 && base * base <= 4.0 * TIGHT * TIGHT * k.far[q];
        off = most(off, std::fabs(rise - b) - TIGHT * (std::fabs(b) + std::fabs(rise)));
    }
    energy = most(energy, 0.0);
    const double beyond = most(square + energy, 0.0), length = std::sqrt(energy);
    const Sizes z = {cell.away + std::sqrt(beyond), length, beyond};
    k.sizes[q] = z;
    k.gap[q] = gap;
    k.off[q] = off > 0.0 || on_row || !(std::fabs(gap) <= CLOSED * 0.5 * energy) || !is_sound(z) ? 1.0 : 0.0;
}

// Judge all rows at the steps: `off` is positive where one is not as it must be. The nearest end of a step
// is room / pace.
inline void judge_lanes(const Cell& cell, Block& k) {
    double sizes[3][LANES];
    for (int q = 0; q < LANES; ++q) {
        sizes[0][q] = k.sizes[q].size;
        sizes[1][q] = k.sizes[q].step;
        sizes[2][q] = k.sizes[q].square;
    }
    const Doubles zero = Doubles::all(0.0), tight = Doubles::all(TIGHT);
    const Doubles size = Doubles::load(sizes[0]), step = Doubles::load(sizes[1]),
                  square = Doubles::load(sizes[2]), flat = Doubles::all(FLAT) * step;
    Doubles off = Doubles::load(k.off), room = Doubles::all(INF), pace = Doubles::all(1.0);
    for (int j = 0; j < cell.m; ++j) {
        const Guard& g = cell.guards[j];
        const Doubles rise = Doubles::load(k.rise + j * LANES), b = Doubles::load(k.b + j * LANES),
                      base = Doubles::load(k.base + j * LANES);
        off = larger(off, rise - b - tight * (size_of(b) + size_of(rise)));
        const Doubles need = Doubles::all(g.constant) + Doubles::all(g.of_size) * size +
                             Doubles::all(g.of_square) * square + Doubles::all(g.of_step) * step;
        const Doubles missing = need - (Doubles::all(g.behind) + base - rise);
        off = larger(off, if_less(zero, need, missing, zero));
        const Doubles nearer = if_less(flat, rise, room * rise - base * pace, zero);
        room = if_less(zero, nearer, base, room);
        pace = if_less(zero, nearer, rise, pace);
    }
    off.store(k.off);
    (room / pace).store(k.reach);
}

// Set the step of one point from its multipliers; steps that are rounding noise are none.
inline void step_of_lane(const Cell& cell, int q, const Block& k, Steps& s) {
    const double* mu = k.mu + q * cell.m;
    const Doubles zero = Doubles::all(0.0), dust = Doubles::all(DUST);
    if (k.rows[q] == 1) {
        const int pick = int(k.pick[q]);
        const double* u = cell.u + std::size_t(pick) * cell.wide;
        const Doubles f = Doubles::all(-mu[pick]);
        for (int i = 0; i < s.wide; i += 8) (f * Doubles::load(u + i)).store(s.y + i);
        return;
    }
    fill(s.y, 0.0, s.wide);
    fill(s.free, 0.0, s.wide);
    for (int j = 0; j < cell.m; ++j) {
        if (!(mu[j] > 0.0)) continue;
        const Doubles f = Doubles::all(mu[j]);
        for (int i = 0; i < s.wide; i += 8) {
            const Doubles t = f * Doubles::load(cell.u + std::size_t(j) * cell.wide + i);
            (Doubles::load(s.y + i) - t).store(s.y + i);
            (Doubles::load(s.free + i) + size_of(t)).store(s.free + i);
        }
    }
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles y = Doubles::load(s.y + i);
        if_less(dust * Doubles::load(s.free + i), size_of(y), y, zero).store(s.y + i);
    }
}

// What leaving along a step says: whether it keeps to the box, how far it could go on, what it costs.
struct Left {
    bool keeps;
    double reach, cost, changed;
};

// Turn the step of one point into its answer, in z. A step that ends on a bound but for its rounding does
// not count as keeping to the box.
template <class Real>
Left leave_lane(const Rows<Real>& rows, const double* at, Workspace<Real>& w) {
    Steps& s = w.s;
    copy_line(at, s.a, s.d);
    const Doubles zero = Doubles::all(0.0), one = Doubles::all(1.0), open = Doubles::all(-INF),
                  grown = Doubles::all(1.0 + DUST);
    Doubles off = zero, end = open, cost = zero, changed = zero;
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles a = Doubles::load(s.a + i), y = Doubles::load(s.y + i);
        const Doubles t = y * Doubles::load(rows.inverse + i), size = size_of(t);
        const Doubles z = if_less(zero, size, a + t, a), moved = z - a;
        z.store(s.z + i);
        if (rows.pairs) cost = cost + Doubles::load(rows.weights + i) * moved * moved;
        changed = changed + if_less(Doubles::load(w.least + i), size_of(moved), one, zero);
        if (!w.bounded) continue;
        const Doubles below = a - Doubles::load(s.lo + i), above = Doubles::load(s.hi + i) - a;
        const Doubles far = grown * t;
        off = larger(off, zero - smaller(smaller(below, above), smaller(above - far, below + far)));
        end = larger(end, if_less(zero, size, zero - if_less(zero, t, above, below) / size, open));
    }
    return {!(highest(off) > 0.0), -highest(end), total(cost), total(changed)};
}

// Write the answer of one point; false where it has to be solved.
template <class Real>
bool write_lane(const Rows<Real>& rows, const Cell& cell, int q, const double* at, const Results& out,
                std::int64_t to, Workspace<Real>& w) {
    const Block& k = w.lanes;
    if (!(k.off[q] <= 0.0)) return false;
    step_of_lane(cell, q, k, w.s);
    const Left left = leave_lane(rows, at, w);
    if (!left.keeps) return false;
    const double step = k.sizes[q].step;
    out.status[to] = OPTIMAL;
    out.reach[to] = most(least(left.reach, k.reach[q]), 1.0);
    out.gap[to] = k.gap[q];
    copy_line(w.s.z, out.points + to * rows.d, rows.d);
    for (int j = 0; j < (out.width ? cell.m : 0); ++j) {
        const int id = rows.pairs && j >= cell.target ? j + 1 : j;
        out.multipliers[to * out.width + id] = k.mu[q * cell.m + j] / cell.norms[j];
    }
    if (out.source) {
        out.gap[to] *= step > 0.0 ? 2.0 / (step * step) : 2.0;
        out.cost[to] = left.cost;
        out.changed[to] = std::int64_t(left.changed);
    }
    return true;
}

// Solve the problems of a block for their multipliers, and judge them.
template <class Real>
void solve_block(const Rows<Real>& rows, const Cell& cell, const double* const* at, Workspace<Real>& w) {
    Block& k = w.lanes;
    enter_lanes(rows, cell, at, k);
    price_lanes(cell, rows.d, k);
    Choice c = w.choice;
    for (int q = 0; q < LANES; ++q) {
        const bool found = solve_lane(cell, q, k, c);
        weigh_lane(cell, q, k);
        if (!found || !(k.far[q] < HUGE_SIZE)) k.off[q] = 1.0;
    }
    judge_lanes(cell, k);
}

// Sort problems start to stop by target, keeping their order; where each target starts.
inline void sort_by_target(const Batch& batch, std::int64_t start, int n, int targets, Block& k) {
    for (int t = 0; t <= targets; ++t) k.starts[t] = 0;
    if (!batch.targets) {
        for (int q = 0; q < n; ++q) k.order[q] = q;
        k.starts[targets] = n;
        return;
    }
    for (int q = 0; q < n; ++q) ++k.starts[batch.targets[start + q] + 1];
    for (int t = 0; t < targets; ++t) k.starts[t + 1] += k.starts[t];
    for (int q = 0; q < n; ++q) k.order[k.starts[batch.targets[start + q]]++] = q;
    for (int t = targets; t > 0; --t) k.starts[t] = k.starts[t - 1];
    k.starts[0] = 0;
}

}  // namespace VOICECF_SET
}  // namespace voicecf

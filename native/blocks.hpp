// Blocks: points of one target with the same coordinates free, eight at a time.
//
// Where the rows of all targets can be stored, a point costs a product with each row of its target and a
// tiny problem in their Gram matrix: the step is y = -V' mu, and U y = -(V V') mu, where V are the rows on the
// coordinates that may move. Where a bound then stands in the way, the point is solved once more by its most
// violated row alone, y = clip(-mu v, low, high), by Newton on mu. The innermost loops run over points, so each point
// has its sums in the same order whoever its neighbours are. While a block is at hand, its points are also assigned to
// their own clusters, if that is asked for.
//
// What is accepted satisfies the KKT conditions, box and rounding guard included; all else is left to
// project.hpp.
#pragma once

#include <algorithm>

#include "cell.hpp"
#include "newton.hpp"

namespace voicecf {
namespace VOICECF_SET {

constexpr int LANES = Doubles::size;
// Points that are sorted by target at a time.
constexpr int SORTED = 1024;
// Most rows of a target among which a block solves for several multipliers.
constexpr int FEW_ROWS = 16;
// A row whose part on the coordinates that may move has a smaller square than this is left to others.
constexpr double SHORT = 1e-6;

// The stored rows of one target, those rows on the coordinates that may move (`free`), and the products of these.
struct Cell {
    int m, wide, target;
    const double *u, *free, *gram, *offsets, *norms, *origin;
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
            s.u + at * rows.wide,
            s.grams + at * (s.m + 1),
            s.offsets + at,
            s.norms + at,
            origin_of(rows, t),
            s.guards + at,
            s.aways[t]};
}

// Whether some coordinate has to keep its value where those of rank `count` and above have to.
inline bool is_limited(const Batch& batch, std::int64_t count, int d) {
    for (int i = 0; i < d; ++i)
        if (batch.ranks[i] >= count) return true;
    return false;
}

// The cell of a target where coordinates of rank `count` and above keep their values.
inline Cell limited(Cell cell, const Batch& batch, std::int64_t count, int d, Block& k) {
    for (int j = 0; j < cell.m; ++j) {
        const double* u = cell.u + std::size_t(j) * cell.wide;
        double* free = k.free + std::size_t(j) * cell.wide;
        for (int i = 0; i < d; ++i) free[i] = batch.ranks[i] < count ? u[i] : 0.0;
        for (int q = 0; q <= j; ++q)
            k.products[j * (cell.m + 1) + q] = k.products[q * (cell.m + 1) + j] =
                dot(free, k.free + std::size_t(q) * cell.wide, cell.wide);
    }
    cell.free = k.free;
    cell.gram = k.products;
    return cell;
}

// Copy the points of a block, and turn them into columns: from the origin, and scaled.
template <class Real>
void enter_lanes(const Rows<Real>& rows, const double* origin, const double* const* at, Block& k) {
    for (int q = 0; q < LANES; ++q) copy_line(at[q], k.at + q * rows.wide, rows.d);
    turn_lines(at, rows.d, k.x, LANES);
    Doubles far = Doubles::all(0.0);
    for (int i = 0; i < rows.d; ++i) {
        const Doubles from = Doubles::load(k.x + i * LANES) - Doubles::all(origin[i]);
        const Doubles x = Doubles::all(rows.scale[i]) * from;
        x.store(k.x + i * LANES);
        far = far + x * x;
    }
    far.store(k.far);
}

// Products of points side by side with `some` rows, whose numbers are `next` apart, and the rows `apart`.
template <int some>
void multiply_lanes(const double* points, int d, const double* u, int next, int apart, Doubles (&s)[some]) {
    for (int r = 0; r < some; ++r) s[r] = Doubles::all(0.0);
    for (int i = 0; i < d; ++i, u += next) {
        const Doubles x = Doubles::load(points + i * LANES);
#pragma GCC unroll 4
        for (int r = 0; r < some; ++r) s[r] = s[r] + x * Doubles::all(u[r * apart]);
    }
}

// Set the slacks of `some` rows, and the products of the points with their free parts.
template <int some>
void slacks_of(const Cell& cell, int d, int j, Block& k) {
    Doubles s[some];
    multiply_lanes<some>(k.x, d, cell.u + std::size_t(j) * cell.wide, 1, cell.wide, s);
    for (int r = 0; r < some; ++r)
        (Doubles::all(cell.offsets[j + r]) - s[r]).store(k.base + (j + r) * LANES);
    if (cell.free != cell.u)
        multiply_lanes<some>(k.x, d, cell.free + std::size_t(j) * cell.wide, 1, cell.wide, s);
    for (int r = 0; r < some; ++r) s[r].store(k.inner + (j + r) * LANES);
}

// Slack that a row needs for the model's rounding, at answers of these sizes.
inline Doubles room_for(const Guard& g, Doubles size, Doubles step, Doubles square) {
    return Doubles::all(g.constant) + Doubles::all(g.of_size) * size + Doubles::all(g.of_square) * square +
           Doubles::all(g.of_step) * step;
}

// Set the slacks of all rows, and those asked for: with the room that an answer at the row is likely to
// need for the model's rounding. Also the most violated row of each point, by how much it is violated, and
// the product of its free part with the point.
inline void price_lanes(const Cell& cell, int d, double factor, Block& k) {
    int j = 0;
    for (; j + 4 <= cell.m; j += 4) slacks_of<4>(cell, d, j, k);
    for (; j + 2 <= cell.m; j += 2) slacks_of<2>(cell, d, j, k);
    for (; j < cell.m; ++j) slacks_of<1>(cell, d, j, k);
    const Doubles zero = Doubles::all(0.0), far = Doubles::load(k.far);
    Doubles step = zero, lack = zero, pick = zero, along = zero;
    for (j = 0; j < cell.m; ++j) step = larger(step, zero - Doubles::load(k.base + j * LANES));
    const Doubles distance = root_of(far), size = Doubles::all(cell.away) + distance;
    for (j = 0; j < cell.m; ++j) {
        const Guard& g = cell.guards[j];
        const double h = cell.offsets[j];
        const Doubles ahead = smaller(far, Doubles::all(4.0 * h * h));
        const Doubles need = Doubles::all(2.0 * factor) * room_for(g, size, step, ahead);
        const Doubles away = smaller(distance, Doubles::all(2.0 * std::fabs(h))) + Doubles::all(1e-300);
        const Doubles asked = smaller(need, Doubles::all(g.share) * away);
        const Doubles more = larger(asked - Doubles::all(g.behind), zero);  // as in room_to_ask
        const Doubles base = Doubles::load(k.base + j * LANES), b = base - more, off = zero - b;
        b.store(k.b + j * LANES);
        pick = if_less(lack, off, Doubles::all(double(j)), pick);
        along = if_less(lack, off, Doubles::load(k.inner + j * LANES), along);
        lack = larger(lack, off);
    }
    lack.store(k.lack);
    pick.store(k.pick);
    along.store(k.along);
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
    const Doubles far = Doubles::load(k.far);
    Doubles error = Doubles::all(5.0) * (nearest + second) + Doubles::all(20.0) * far;
    if (rows.expanded) {
        const Doubles reach = Doubles::all(cell.away + rows.longest) + root_of(far);
        error = error + reach * reach;
    }
    const Doubles sure = second - nearest - Doubles::all(rows.growth) * error;
    if_less(zero, sure, own, Doubles::all(-1.0)).store(k.own);
}

// Set the sizes of answers from the energy |y|^2 of their steps and their squared distance from the origin.
// `off` is positive where an answer is not sound, or its gap is not closed.
inline void weigh_lanes(const Cell& cell, Doubles energy, Doubles square, Doubles off, Block& k) {
    const Doubles zero = Doubles::all(0.0), one = Doubles::all(1.0);
    square = larger(square, zero);
    const Doubles size = Doubles::all(cell.away) + root_of(square);
    size.store(k.size);
    square.store(k.square);
    root_of(energy).store(k.step);
    const Doubles closed = Doubles::all(0.5 * CLOSED) * energy + Doubles::all(1e-300);
    off = if_less(size_of(Doubles::load(k.gap)), closed, off, one);
    off = if_less(Doubles::all(LONG * LONG) * square, energy, one, off);
    off = if_less(Doubles::load(k.far), Doubles::all(HUGE_SIZE), off, one);
    if_less(size, Doubles::all(HUGE_SIZE), off, one).store(k.off);
}

// 1 for points that violate their row by no more than rounding (see slack_of), which are left to others; else 0.
inline Doubles on_row(Doubles base, Doubles far) {
    const Doubles zero = Doubles::all(0.0), one = Doubles::all(1.0);
    const Doubles near = Doubles::all(4.0 * TIGHT * TIGHT) * far - base * base;
    return if_less(base, zero, if_less(near, zero, zero, one), zero);
}

// Solve each point by its most violated row alone, y = -mu u. Points of which another row is then violated
// are marked, for they need several.
inline void step_by_one(const Cell& cell, Block& k) {
    const Doubles zero = Doubles::all(0.0), tight = Doubles::all(TIGHT);
    double norms[LANES], bases[LANES], left[LANES];
    for (int q = 0; q < LANES; ++q) {
        const int pick = int(k.pick[q]);
        const double* gram = cell.gram + pick * (cell.m + 1);
        norms[q] = gram[pick];
        bases[q] = k.base[pick * LANES + q];
        for (int j = 0; j < cell.m; ++j) k.rise[j * LANES + q] = gram[j];
    }
    const Doubles norm = Doubles::load(norms), lack = Doubles::load(k.lack),
                  mu = if_less(Doubles::all(SHORT), norm, lack / norm, zero);  // a row of zeros never holds
    Doubles more = zero, next = zero;
    for (int j = 0; j < cell.m; ++j) {
        const Doubles b = Doubles::load(k.b + j * LANES),
                      rise = zero - Doubles::load(k.rise + j * LANES) * mu;
        rise.store(k.rise + j * LANES);
        const Doubles off = rise - b - tight * (size_of(b) + size_of(rise));
        next = if_less(more, off, Doubles::all(double(j)), next);
        more = larger(more, off);
    }
    next.store(k.next);
    more.store(left);
    for (int q = 0; q < LANES; ++q) k.several[q] = left[q] > 0.0;
    const Doubles rise = zero - norm * mu, apart = rise + lack;
    const Doubles energy = larger(zero - mu * rise, zero), far = Doubles::load(k.far);
    const Doubles slip =
        larger(size_of(apart) - tight * (lack + size_of(rise)), on_row(Doubles::load(bases), far));
    mu.store(k.lead);
    (zero - mu * apart).store(k.gap);
    weigh_lanes(cell, energy, far - Doubles::all(2.0) * mu * Doubles::load(k.along) + energy, slip, k);
}

// Solve one point by several rows: multipliers, and what its step does to all rows; false where none are
// found.
inline bool step_by_several(const Cell& cell, int q, Block& k, Choice& c) {
    if (cell.m > FEW_ROWS) return false;  // more rows than a block had better look at
    double* mu = k.mu + q * cell.m;
    fill(mu, 0.0, cell.m);
    mu[int(k.pick[q])] = mu[int(k.next[q])] = k.lead[q];  // any start will do, if these two are in it
    c.count = c.limit = c.known = cell.m;
    c.factored = 0;
    c.mu = mu;
    c.gram = const_cast<double*>(cell.gram);
    for (int j = 0; j < cell.m; ++j) c.b[j] = k.b[j * LANES + q];
    if (!all_at_once(c)) return false;
    for (int j = 0; j < cell.m; ++j) {
        double rise = 0.0;
        for (int p = 0; p < cell.m; ++p)
            if (mu[p] > 0.0) rise -= cell.gram[p * (cell.m + 1) + j] * mu[p];
        k.rise[j * LANES + q] = rise;
    }
    return true;
}

// Set gap and sizes of one point that is solved by several rows: y = -U' mu, so |y|^2 = -mu . U y and
// x . y = -mu . U x. `off` is positive where the rows with a multiplier are not tight, or where the point is
// on such a row but for rounding (see slack_of).
inline void weigh_lane(const Cell& cell, int q, Block& k) {
    const double* mu = k.mu + q * cell.m;
    double gap = 0.0, energy = 0.0, square = k.far[q], off = 0.0;
    bool on_row = false;
    for (int j = 0; j < cell.m; ++j) {
        if (!(mu[j] > 0.0)) continue;
        const double rise = k.rise[j * LANES + q], b = k.b[j * LANES + q], base = k.base[j * LANES + q];
        gap -= mu[j] * (rise - b);
        energy -= mu[j] * rise;
        square -= 2.0 * mu[j] * k.inner[j * LANES + q];
        on_row |= base < 0.0 && base * base <= 4.0 * TIGHT * TIGHT * k.far[q];
        off = most(off, std::fabs(rise - b) - TIGHT * (std::fabs(b) + std::fabs(rise)));
    }
    energy = most(energy, 0.0);
    const double beyond = most(square + energy, 0.0), length = std::sqrt(energy);
    const Sizes z = {cell.away + std::sqrt(beyond), length, beyond};
    k.size[q] = z.size;
    k.step[q] = z.step;
    k.square[q] = z.square;
    k.gap[q] = gap;
    const bool closed = std::fabs(gap) <= CLOSED * 0.5 * energy && k.far[q] < HUGE_SIZE;
    k.off[q] = off > 0.0 || on_row || !closed || !is_sound(z) ? 1.0 : 0.0;
}

// Judge all rows at the steps: `off` is positive where one is not as it must be. The nearest end of a step
// is room / pace.
inline void judge_lanes(const Cell& cell, double factor, Block& k) {
    const Doubles zero = Doubles::all(0.0), tight = Doubles::all(TIGHT);
    const Doubles size = Doubles::load(k.size), step = Doubles::load(k.step),
                  square = Doubles::load(k.square), flat = Doubles::all(FLAT) * step;
    Doubles off = Doubles::load(k.off), room = Doubles::all(INF), pace = Doubles::all(1.0);
    for (int j = 0; j < cell.m; ++j) {
        const Guard& g = cell.guards[j];
        const Doubles rise = Doubles::load(k.rise + j * LANES), b = Doubles::load(k.b + j * LANES),
                      base = Doubles::load(k.base + j * LANES);
        off = larger(rise - b - tight * (size_of(b) + size_of(rise)), off);
        const Doubles need = Doubles::all(factor) * room_for(g, size, step, square);
        const Doubles missing = need - (Doubles::all(g.behind) + base - rise);
        off = larger(if_less(zero, need, missing, zero), off);
        const Doubles nearer = if_less(flat, rise, room * rise - base * pace, zero);
        room = if_less(zero, nearer, base, room);
        pace = if_less(zero, nearer, rise, pace);
    }
    off.store(k.off);
    (room / pace).store(k.reach);
}

// Most steps of Newton along one row.
constexpr int ROW_STEPS = 16;

// Newton along one row for each point: y = clip(-mu row, low, high), with row . y = b. Returns by how much that does
// not hold beyond rounding.
inline Doubles climb_lanes(int d, Doubles b, Doubles& mu, Block& k) {
    const Doubles zero = Doubles::all(0.0), one = Doubles::all(1.0), tight = Doubles::all(TIGHT);
    Doubles off = one;
    bool open = true;
    mu = zero;
    for (int turn = 0; turn < ROW_STEPS && open; ++turn) {
        Doubles r = zero - b, terms = size_of(b), h = zero;
        for (int i = 0; i < d; ++i) {
            const Doubles v = Doubles::load(k.row + i * LANES), low = Doubles::load(k.low + i * LANES),
                          high = Doubles::load(k.high + i * LANES);
            const Doubles y = smaller(larger(zero - mu * v, low), high), t = v * y;
            y.store(k.y + i * LANES);
            r = r + t;
            terms = terms + size_of(t);
            // A coordinate moves if it is inside its bounds or, at first, if the row takes it inwards.
            const Doubles inside = turn ? if_less(low, y, if_less(y, high, one, zero), zero)
                                        : if_less(zero, v, if_less(low, zero, one, zero),
                                                  if_less(zero, high, one, zero));
            h = h + inside * (v * v);
        }
        off = size_of(r) - tight * terms;
        const Doubles next = larger(mu + r / h, zero), left = if_less(Doubles::all(SHORT), h, off, zero);
        mu = if_less(zero, left, next, mu);
        double held[LANES];
        left.store(held);  // where nothing can move any more, nothing is left to do
        open = false;
        for (double some : held) open |= some > 0.0;  // a point does not depend on what is NaN beside it
    }
    return off;
}

// Solve each point by its most violated row alone, within its box.
inline void step_in_box(const Cell& cell, int d, Block& k) {
    const Doubles zero = Doubles::all(0.0), dust = Doubles::all(DUST);
    double rights[LANES], bases[LANES];
    for (int q = 0; q < LANES; ++q) {
        const int pick = int(k.pick[q]);
        const double* u = cell.free + std::size_t(pick) * cell.wide;
        rights[q] = k.b[pick * LANES + q];
        bases[q] = k.base[pick * LANES + q];
        for (int i = 0; i < d; ++i) k.row[i * LANES + q] = u[i];
    }
    const Doubles b = Doubles::load(rights);
    Doubles mu, rise = zero, energy = zero, square = zero;
    const Doubles left = climb_lanes(d, b, mu, k);
    const Doubles off = larger(left, on_row(Doubles::load(bases), Doubles::load(k.far)));
    for (int i = 0; i < d; ++i) {
        const Doubles v = Doubles::load(k.row + i * LANES), low = Doubles::load(k.low + i * LANES),
                      high = Doubles::load(k.high + i * LANES), noise = dust * size_of(mu * v);
        Doubles y = Doubles::load(k.y + i * LANES);
        y = if_less(noise, y - low, y, low);  // next to a bound but for rounding is on it
        y = if_less(noise, high - y, y, high);
        y.store(k.y + i * LANES);
        const Doubles x = Doubles::load(k.x + i * LANES) + y;
        rise = rise + v * y;
        energy = energy + y * y;
        square = square + x * x;
    }
    for (int j = 0; j < cell.m; ++j) {
        Doubles s[1];
        multiply_lanes<1>(k.y, d, cell.u + std::size_t(j) * cell.wide, 1, cell.wide, s);
        s[0].store(k.rise + j * LANES);
    }
    mu.store(k.lead);
    (zero - mu * (rise - b)).store(k.gap);
    for (bool& several : k.several) several = false;
    weigh_lanes(cell, energy, square, off, k);
}

// A step: a multiple of a line of numbers.
struct Step {
    const double* along;
    double factor;
};

// The step of one point from its multipliers; steps that are rounding noise are none.
inline Step step_of_lane(const Cell& cell, int q, const Block& k, Steps& s) {
    if (!k.several[q]) return {cell.free + std::size_t(k.pick[q]) * cell.wide, -k.lead[q]};
    const double* mu = k.mu + q * cell.m;
    const Doubles zero = Doubles::all(0.0), dust = Doubles::all(DUST);
    fill(s.y, 0.0, s.wide);
    fill(s.free, 0.0, s.wide);
    for (int j = 0; j < cell.m; ++j) {
        if (!(mu[j] > 0.0)) continue;
        const Doubles f = Doubles::all(mu[j]);
        for (int i = 0; i < s.wide; i += 8) {
            const Doubles t = f * Doubles::load(cell.free + std::size_t(j) * cell.wide + i);
            (Doubles::load(s.y + i) - t).store(s.y + i);
            (Doubles::load(s.free + i) + size_of(t)).store(s.free + i);
        }
    }
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles y = Doubles::load(s.y + i);
        if_less(dust * Doubles::load(s.free + i), size_of(y), y, zero).store(s.y + i);
    }
    return {s.y, 1.0};
}

// What leaving along a step says: whether it keeps to the box, how far it could go on, what it costs.
struct Left {
    bool keeps;
    double reach, cost;
};

// Write the end of the step of one point. A step that ends on a bound but for its rounding does not count
// as keeping to the box.
template <class Real>
Left leave_lane(const Rows<Real>& rows, const double* at, const Step& step, double* to,
                const Workspace<Real>& w) {
    const Steps& s = w.s;
    const Doubles zero = Doubles::all(0.0), factor = Doubles::all(step.factor);
    Doubles inside = zero, end = Doubles::all(INF), cost = zero;
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles a = Doubles::load(at + i), y = factor * Doubles::load(step.along + i),
                      t = y * Doubles::load(rows.inverse + i);
        const Doubles size = size_of(t), z = if_less(zero, size, a + t, a), moved = z - a;
        if (i + 8 <= s.d) {
            z.store(to + i);
        } else {
            z.store(s.z);
            for (int j = i; j < s.d; ++j) to[j] = s.z[j - i];
        }
        if (rows.pairs) cost = cost + Doubles::load(rows.weights + i) * moved * moved;
        if (!w.bounded) continue;
        const Doubles below = a - Doubles::load(s.lo + i), above = Doubles::load(s.hi + i) - a;
        const Doubles side = if_less(zero, t, above, below);
        inside = smaller(inside, smaller(below, above));
        end = smaller(end, if_less(zero, size, side / size, end));
    }
    const double reach = -highest(zero - end);
    const bool keeps = !(highest(zero - inside) > 0.0) && reach >= 1.0 + DUST;
    return {keeps, reach, total(cost)};
}

// Write what is known of the answer of one point besides its place.
template <class Real>
void write_measures(const Rows<Real>& rows, const Cell& cell, int q, const Left& left, const Results& out,
                    std::int64_t to, const Workspace<Real>& w) {
    const Block& k = w.lanes;
    const double step = k.step[q];
    out.status[to] = OPTIMAL;
    out.close[to] = w.factor < 1.0;
    out.reach[to] = most(least(left.reach, k.reach[q]), 1.0);
    out.gap[to] = k.gap[q];
    for (int j = 0; j < (out.width ? cell.m : 0); ++j) {
        const int id = rows.pairs && j >= cell.target ? j + 1 : j;
        const double alone = j == int(k.pick[q]) ? k.lead[q] : 0.0;
        out.multipliers[to * out.width + id] =
            (k.several[q] ? k.mu[q * cell.m + j] : alone) / cell.norms[j];
    }
    if (out.source) {
        out.gap[to] *= step > 0.0 ? 2.0 / (step * step) : 2.0;
        out.cost[to] = left.cost;
    }
}

// Write the answer of one point; false where it has to be solved.
template <class Real>
bool write_lane(const Rows<Real>& rows, const Cell& cell, int q, const Results& out, std::int64_t to,
                Workspace<Real>& w) {
    const Block& k = w.lanes;
    if (!(k.off[q] <= 0.0)) return false;
    const Step moved = step_of_lane(cell, q, k, w.s);
    const Left left = leave_lane(rows, k.at + q * rows.wide, moved, out.points + to * rows.d, w);
    if (left.keeps) write_measures(rows, cell, q, left, out, to, w);
    return left.keeps;
}

// Copy the bounds of one point, as steps.
template <class Real>
void enter_box(const Rows<Real>& rows, int q, Workspace<Real>& w) {
    const Block& k = w.lanes;
    const double* at = k.at + q * rows.wide;
    for (int i = 0; i < rows.wide; i += 8) {
        const Doubles a = Doubles::load(at + i), scale = Doubles::load(rows.scale + i);
        (scale * (Doubles::load(w.s.lo + i) - a)).store(k.lows + q * rows.wide + i);
        (scale * (Doubles::load(w.s.hi + i) - a)).store(k.highs + q * rows.wide + i);
    }
}

// Write the answer of one point within its box; false where it has to be solved.
template <class Real>
bool write_boxed(const Rows<Real>& rows, const Cell& cell, int q, const Results& out, std::int64_t to,
                 Workspace<Real>& w) {
    const Block& k = w.lanes;
    if (!(k.off[q] <= 0.0) || !k.some[q]) return false;
    Steps s = w.s;
    s.a = k.at + q * rows.wide;
    s.low = k.lows + q * rows.wide;
    s.high = k.highs + q * rows.wide;
    for (int i = 0; i < s.d; ++i) s.y[i] = k.y[i * LANES + q];
    leave(s, rows.inverse);
    Doubles cost = Doubles::all(0.0);
    for (int i = 0; i < (rows.pairs ? s.wide : 0); i += 8) {
        const Doubles t = Doubles::load(s.z + i) - Doubles::load(s.a + i);
        cost = cost + Doubles::load(rows.weights + i) * t * t;
    }
    copy_line(s.z, out.points + to * rows.d, rows.d);
    write_measures(rows, cell, q, {true, reach_in_box(s), total(cost)}, out, to, w);
    return true;
}

// Solve the problems of a block for their multipliers, and judge them.
template <class Real>
void solve_block(const Rows<Real>& rows, const Cell& cell, const double* const* at, Workspace<Real>& w) {
    Block& k = w.lanes;
    enter_lanes(rows, cell.origin, at, k);
    price_lanes(cell, rows.d, w.factor, k);
    step_by_one(cell, k);
    Choice c = w.choice;
    for (int q = 0; q < LANES; ++q) {
        if (!k.several[q]) continue;
        if (step_by_several(cell, q, k, c))
            weigh_lane(cell, q, k);
        else
            k.off[q] = 1.0;
    }
    judge_lanes(cell, w.factor, k);
}

// How many of the first ranks may move in problem q; none are limited where there are no ranks.
inline std::int64_t count_of(const Batch& batch, std::int64_t q) { return batch.ranks ? batch.counts[q] : 0; }

// Sort problems start to stop by target, then by the coordinates that may move, then in their order; where each
// target starts.
inline void sort_by_target(const Batch& batch, std::int64_t start, int n, int targets, Block& k) {
    for (int t = 0; t <= targets; ++t) k.starts[t] = 0;
    if (!batch.targets) {
        for (int q = 0; q < n; ++q) k.order[q] = q;
        k.starts[targets] = n;
    } else {
        for (int q = 0; q < n; ++q) ++k.starts[batch.targets[start + q] + 1];
        for (int t = 0; t < targets; ++t) k.starts[t + 1] += k.starts[t];
        for (int q = 0; q < n; ++q) k.order[k.starts[batch.targets[start + q]]++] = q;
        for (int t = targets; t > 0; --t) k.starts[t] = k.starts[t - 1];
        k.starts[0] = 0;
    }
    if (!batch.ranks) return;
    const auto earlier = [&](int a, int b) {
        const std::int64_t one = batch.counts[start + a], other = batch.counts[start + b];
        return one < other || (one == other && a < b);
    };
    for (int t = 0; t < targets; ++t) {
        int *first = k.order + k.starts[t], *last = k.order + k.starts[t + 1];
        if (!std::is_sorted(first, last, earlier)) std::sort(first, last, earlier);
    }
}

}  // namespace VOICECF_SET
}  // namespace voicecf

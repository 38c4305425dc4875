// Dual simplex with bounds: the step of least price.
//
//     min sum_i up_i max(y_i, 0) + down_i max(-y_i, 0)   with   U y <= b,   low <= y <= high,
//
// where all prices are at least 0. Multipliers mu >= 0 of the rows pull at the coordinates with g = -U' mu, and
// mu proves y optimal if mu (U y - b) = 0 and each g_i is a slope of the price at y_i: between those below and
// above y_i, the box being a wall. So a coordinate rests at a kink of its price (0 or a bound) while g_i lies
// between the slopes there, or is *basic*: g_i is the slope of a segment between two kinks, and the active rows
// say where on it y_i is. There are as many basic coordinates F as active rows R, with
//
//     U_RF y_F = b_R - U_RN y_N,     U_RF' mu_R = -(slopes of F).
//
// No step at all (mu = 0) is dual feasible. The most violated row, or the basic coordinate that is furthest
// outside its segment, is enforced: its dual variable grows until the dual objective stops rising. On the way
// coordinates whose g_i passes a slope move on to their next kink (the long-step rule). The one at which the
// objective stops becomes basic, or a row whose multiplier falls to 0 becomes inactive. Where nothing stops it,
// the region is empty, and the direction of mu is a Farkas vector. The factors of U_RF are computed from
// scratch at each turn, so rounding errors do not add up.
#pragma once

#include <utility>

#include "active_set.hpp"
#include "arena.hpp"

namespace voicecf {
namespace VOICECF_SET {

// Turns without progress before the least index decides instead of the largest violation (Bland's rule).
constexpr int PATIENT_TURNS = 40;

// Where a dual variable passes a slope: after a step t, or `late` if rounding of its slope is allowed for. The
// rise of the dual objective then falls by `drop`. `who` is a coordinate that moves on to the kink `to`, over a
// segment on this `side` of 0; or, as -1 - p, the active row at place p.
struct Break {
    double t, late, drop, rate, to;
    int who;
    std::int8_t side;
};

// Working memory. `side` is 1 or -1 for basic coordinates, whose segment is above or below 0, and 0 for others.
// `active` marks rows.
struct Simplex {
    int size;  // of R and of F; R is ActiveSet::work
    double *up, *down, *pull, *rate, *terms;
    double *factors, *rhs, *turn;
    int *basic, *swaps;
    std::int8_t *side, *active;
    Break* breaks;
};

inline void lay_out(Arena& arena, Simplex& x, int m, int d, int wide) {
    const std::size_t rank = smaller_of(m, d);
    double** lines[] = {&x.up, &x.down, &x.pull, &x.rate, &x.terms};
    for (double** line : lines) *line = arena.take<double>(wide);
    x.factors = arena.take<double>(rank * rank);
    x.rhs = arena.take<double>(rank + 1);
    x.turn = arena.take<double>(rank + 1);
    x.basic = arena.take<int>(rank + 1);
    x.swaps = arena.take<int>(rank + 1);
    x.side = arena.take<std::int8_t>(d);
    x.active = arena.take<std::int8_t>(m);
    x.breaks = arena.take<Break>(2 * std::size_t(d) + rank);
}

// The slope of a coordinate's price right above or below y, and the next kink there.
inline double slope_above(const Simplex& x, const Steps& s, int i, double y) {
    return y >= s.high[i] ? INF : y >= 0.0 ? x.up[i] : -x.down[i];
}
inline double slope_below(const Simplex& x, const Steps& s, int i, double y) {
    return y <= s.low[i] ? -INF : y > 0.0 ? x.up[i] : -x.down[i];
}
inline double kink_above(const Steps& s, int i, double y) { return y < 0.0 ? least(0.0, s.high[i]) : s.high[i]; }
inline double kink_below(const Steps& s, int i, double y) { return y > 0.0 ? most(0.0, s.low[i]) : s.low[i]; }

// The segment of a basic coordinate.
inline double slope_of(const Simplex& x, int i) { return x.side[i] > 0 ? x.up[i] : -x.down[i]; }
inline double least_of(const Simplex& x, const Steps& s, int i) {
    return x.side[i] > 0 ? most(0.0, s.low[i]) : s.low[i];
}
inline double most_of(const Simplex& x, const Steps& s, int i) {
    return x.side[i] > 0 ? s.high[i] : least(0.0, s.high[i]);
}

inline double price_of(const Simplex& x, const Steps& s, const double* y) {
    double price = 0.0;
    for (int i = 0; i < s.d; ++i) price += y[i] > 0.0 ? x.up[i] * y[i] : -x.down[i] * y[i];
    return price;
}

// Factor U_RF = P L T with partial pivoting; false if it is singular.
inline bool factor(const ActiveSet& a, Simplex& x) {
    const int n = x.size;
    for (int p = 0; p < n; ++p)
        for (int k = 0; k < n; ++k) x.factors[p * a.rank + k] = row_of(a, a.work[p])[x.basic[k]];
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int p = k + 1; p < n; ++p)
            if (std::fabs(x.factors[p * a.rank + k]) > std::fabs(x.factors[best * a.rank + k])) best = p;
        double *top = x.factors + k * a.rank, *other = x.factors + best * a.rank;
        x.swaps[k] = best;
        for (int q = 0; q < (best == k ? 0 : n); ++q) std::swap(top[q], other[q]);
        if (top[k] == 0.0) return false;
        for (int p = k + 1; p < n; ++p) {
            double* row = x.factors + p * a.rank;
            row[k] /= top[k];
            for (int q = k + 1; q < n; ++q) row[q] -= row[k] * top[q];
        }
    }
    return true;
}

// Solve U_RF v = v in place.
inline void solve_basis(const ActiveSet& a, const Simplex& x, double* v) {
    for (int k = 0; k < x.size; ++k) std::swap(v[k], v[x.swaps[k]]);
    for (int k = 0; k < x.size; ++k)
        for (int q = 0; q < k; ++q) v[k] -= x.factors[k * a.rank + q] * v[q];
    for (int k = x.size - 1; k >= 0; --k) {
        for (int q = k + 1; q < x.size; ++q) v[k] -= x.factors[k * a.rank + q] * v[q];
        v[k] /= x.factors[k * a.rank + k];
    }
}

// Solve U_RF' v = v in place.
inline void solve_transposed(const ActiveSet& a, const Simplex& x, double* v) {
    for (int k = 0; k < x.size; ++k) {
        for (int q = 0; q < k; ++q) v[k] -= x.factors[q * a.rank + k] * v[q];
        v[k] /= x.factors[k * a.rank + k];
    }
    for (int k = x.size - 1; k >= 0; --k)
        for (int p = k + 1; p < x.size; ++p) v[k] -= x.factors[p * a.rank + k] * v[p];
    for (int k = x.size - 1; k >= 0; --k) std::swap(v[k], v[x.swaps[k]]);
}

// Make the active rows tight by the basic coordinates. The second turn corrects the rounding of the first.
inline void tighten_basic(const ActiveSet& a, Simplex& x, Steps& s) {
    for (int turn = 0; turn < 2; ++turn) {
        for (int p = 0; p < x.size; ++p)
            x.rhs[p] = a.b[a.work[p]] - dot(row_of(a, a.work[p]), s.y, a.wide);
        solve_basis(a, x, x.rhs);
        for (int k = 0; k < x.size; ++k) s.y[x.basic[k]] += x.rhs[k];
    }
}

// Compute multipliers, pulls and basic coordinates; false if the basis is singular.
inline bool refresh(ActiveSet& a, Simplex& x, Steps& s) {
    if (!factor(a, x)) return false;
    for (int k = 0; k < x.size; ++k) {
        x.rhs[k] = -slope_of(x, x.basic[k]);
        s.y[x.basic[k]] = 0.0;
    }
    solve_transposed(a, x, x.rhs);
    fill(x.pull, 0.0, a.wide);
    double largest = 0.0;
    for (int p = 0; p < x.size; ++p) largest = most(largest, x.rhs[p]);
    for (int p = 0; p < x.size; ++p) {
        a.mu[a.work[p]] = x.rhs[p] > DUST * largest ? x.rhs[p] : 0.0;
        add_to(x.pull, -a.mu[a.work[p]], row_of(a, a.work[p]), a.wide);
    }
    for (int k = 0; k < x.size; ++k) x.pull[x.basic[k]] = slope_of(x, x.basic[k]);
    tighten_basic(a, x, s);
    return true;
}

// What is to be enforced: row `chosen`, or, as m + k, the basic coordinate at place k, which is above (1) or
// below (-1) its segment; violated by `value`, of which `slip` may be rounding.
struct Leaving {
    int chosen;
    double value, slip, sign;
};

// The most violated row or segment; -1 if none is violated by more than `share` of its tolerance. With `first`,
// that of the first coordinate, or else of the first row.
inline Leaving most_violated(const ActiveSet& a, const Simplex& x, const Steps& s, double share, bool first) {
    Leaving found = {-1, 0.0, 0.0, 1.0};
    const double length = std::sqrt(dot(s.y, s.y, a.wide));
    for (int k = 0; k < x.size; ++k) {
        const int i = x.basic[k];
        const double over = s.y[i] - most_of(x, s, i), under = least_of(x, s, i) - s.y[i];
        const double value = most(over, under);
        const double slip = TIGHT * std::fabs(s.y[i]) + share * (a.tol[a.m + i] + LOOSE * length);
        const bool before = found.chosen < 0 || (first ? i < x.basic[found.chosen - a.m] : value > found.value);
        if (value > slip && before) found = {a.m + k, value, slip, over > under ? 1.0 : -1.0};
    }
    for (int j = 0; j < (first && found.chosen >= 0 ? 0 : a.m); ++j) {
        if (x.active[j]) continue;
        const double value = dot(row_of(a, j), s.y, a.wide) - a.b[j];
        if (!(value > found.value)) continue;
        const double slip = TIGHT * violation_of(a, s, j).terms + share * a.tol[j];
        if (value > slip) found = {j, value, slip, 1.0};
        if (first && found.chosen >= 0) break;
    }
    return found;
}

// Compute how multipliers (`turn`) and pulls (`rate`) change while the dual variable of what is enforced grows.
inline void turn_of(const ActiveSet& a, Simplex& x, const Leaving& l) {
    const bool row = l.chosen < a.m;
    const double* u = row_of(a, row ? l.chosen : 0);
    for (int k = 0; k < x.size; ++k)
        x.turn[k] = row ? -u[x.basic[k]] : k == l.chosen - a.m ? -l.sign : 0.0;
    solve_transposed(a, x, x.turn);
    double steepest = row ? 1.0 : 0.0;
    for (int p = 0; p < x.size; ++p) steepest = most(steepest, std::fabs(x.turn[p]));
    for (int p = 0; p < x.size; ++p)  // noise of multipliers is not one of the terms that it is compared with
        if (std::fabs(x.turn[p]) <= DUST * steepest) x.turn[p] = 0.0;
    fill(x.rate, 0.0, a.wide);
    fill(x.terms, 0.0, a.wide);
    const Doubles zero = Doubles::all(0.0);
    for (int p = row ? -1 : 0; p < x.size; ++p) {
        const Doubles f = Doubles::all(p < 0 ? 1.0 : x.turn[p]);
        const double* v = p < 0 ? u : row_of(a, a.work[p]);
        for (int i = 0; i < a.wide; i += 8) {
            const Doubles t = f * Doubles::load(v + i);
            (Doubles::load(x.rate + i) - t).store(x.rate + i);
            (Doubles::load(x.terms + i) + larger(t, zero - t)).store(x.terms + i);
        }
    }
    for (int k = 0; k < x.size; ++k) x.rate[x.basic[k]] = 0.0;
    if (!row) x.rate[x.basic[l.chosen - a.m]] = l.sign;
}

// List where pulls pass slopes of coordinates, and where multipliers fall to 0; how many.
inline int breaks_of(const ActiveSet& a, const Simplex& x, const Steps& s, const Leaving& l) {
    int count = 0;
    double largest = 0.0;
    for (int p = 0; p < x.size; ++p) largest = most(largest, a.mu[a.work[p]]);
    for (int p = 0; p < x.size; ++p) {
        const double rate = -x.turn[p], mu = a.mu[a.work[p]];
        if (rate > 0.0)
            x.breaks[count++] = {mu / rate, (mu + DUST * largest) / rate, INF, rate, 0.0, -1 - p, 0};
    }
    for (int i = 0; i < a.d; ++i) {
        const double size = std::fabs(x.rate[i]);
        if (!(size > DUST * x.terms[i])) continue;
        const bool rises = x.rate[i] > 0.0;
        double y = s.y[i];
        if (x.side[i]) y = l.sign > 0.0 ? most_of(x, s, i) : least_of(x, s, i);
        while (rises ? y < s.high[i] : y > s.low[i]) {
            const double slope = rises ? slope_above(x, s, i, y) : slope_below(x, s, i, y);
            const double to = rises ? kink_above(s, i, y) : kink_below(s, i, y);
            const double left = most(rises ? slope - x.pull[i] : x.pull[i] - slope, 0.0);
            const double slip = DUST * (std::fabs(slope) + std::fabs(x.pull[i]));
            const std::int8_t side = most(y, to) > 0.0 ? 1 : -1;
            x.breaks[count++] = {left / size, (left + slip) / size, size * std::fabs(to - y), size, to, i, side};
            y = to;
        }
    }
    return count;
}

// Put the breaks that are passed in front, followed by the one at which the dual objective stops rising; its
// place, or -1 if there is none. Of those that rounding cannot tell from it, the steepest is taken. With
// `first` none is passed, and that of the first coordinate, or else of the first row, is taken.
inline int blocking(const ActiveSet& a, Simplex& x, int count, const Leaving& l, bool first) {
    const auto place = [&](const Break& b) { return b.who >= 0 ? b.who : a.d + a.work[-1 - b.who]; };
    double rise = l.value - l.slip;
    for (int done = 0; done < count; ++done) {
        int next = done;
        for (int q = done + 1; q < count; ++q)
            if (x.breaks[q].t < x.breaks[next].t) next = q;
        const bool stops = first || x.breaks[next].drop >= rise;
        double limit = INF;
        for (int q = done; q < (stops ? count : 0); ++q) limit = least(limit, x.breaks[q].late);
        for (int q = done; q < (stops ? count : 0); ++q) {
            const Break &one = x.breaks[q], &other = x.breaks[next];
            if (one.t <= limit && (first ? place(one) < place(other) : one.rate > other.rate)) next = q;
        }
        std::swap(x.breaks[done], x.breaks[next]);
        if (stops) return done;
        rise -= x.breaks[done].drop;
    }
    return -1;
}

// Make row p of the active ones inactive.
inline void deactivate(ActiveSet& a, Simplex& x, int p) {
    a.mu[a.work[p]] = 0.0;
    x.active[a.work[p]] = 0;
}

// Move on the coordinates whose breaks are passed, and exchange what is enforced for what stops it; false if
// there is no room for another active row.
inline bool exchange(ActiveSet& a, Simplex& x, Steps& s, const Leaving& l, int stop) {
    const bool row = l.chosen < a.m;
    const int k = l.chosen - a.m;
    const Break& b = x.breaks[stop];
    if (!row) {
        const int i = x.basic[k];
        s.y[i] = l.sign > 0.0 ? most_of(x, s, i) : least_of(x, s, i);
        x.side[i] = 0;
    }
    for (int q = 0; q < stop; ++q) {  // two breaks of one coordinate may come at once, in any order
        double& y = s.y[x.breaks[q].who];
        y = x.rate[x.breaks[q].who] > 0.0 ? most(y, x.breaks[q].to) : least(y, x.breaks[q].to);
    }
    if (row && b.who >= 0) {
        if (x.size == a.rank) return false;
        a.work[x.size] = l.chosen;
        x.basic[x.size++] = b.who;
    } else if (row) {
        deactivate(a, x, -1 - b.who);
        a.work[-1 - b.who] = l.chosen;
    } else if (b.who >= 0) {
        x.basic[k] = b.who;
    } else {
        deactivate(a, x, -1 - b.who);
        --x.size;
        a.work[-1 - b.who] = a.work[x.size];
        x.basic[k] = x.basic[x.size];
    }
    if (row) x.active[l.chosen] = 1;
    if (b.who >= 0) x.side[b.who] = b.side;
    return true;
}

// Store the Farkas vector of the last direction in mu.
inline void keep_proof(ActiveSet& a, const Simplex& x, const Leaving& l) {
    double largest = l.chosen < a.m ? 1.0 : 0.0;
    for (int p = 0; p < x.size; ++p) largest = most(largest, x.turn[p]);
    for (int p = 0; p < x.size; ++p)  // multipliers that are rounding noise weaken the proof
        a.mu[a.work[p]] = x.turn[p] > LOOSE * largest ? x.turn[p] : 0.0;
    if (l.chosen < a.m) a.mu[l.chosen] = 1.0;
}

// Solve one problem for y and mu. Constraints may be violated by `share` of their tolerance.
inline Status dual_simplex(ActiveSet& a, Simplex& x, Steps& s, double share) {
    fill(a.mu, 0.0, a.m);
    fill(x.pull, 0.0, a.wide);
    for (int i = 0; i < a.d; ++i) {
        s.y[i] = clip(0.0, s.low[i], s.high[i]);
        x.side[i] = 0;
    }
    for (int j = 0; j < a.m; ++j) x.active[j] = 0;
    x.size = 0;
    int idle = 0;
    for (int turn = 0; turn < 100 + 20 * (a.m + a.d); ++turn) {
        const bool first = idle > PATIENT_TURNS;
        const Leaving l = most_violated(a, x, s, share, first);
        if (l.chosen < 0) return OPTIMAL;
        turn_of(a, x, l);
        const int stop = blocking(a, x, breaks_of(a, x, s, l), l, first);
        if (stop < 0) {
            keep_proof(a, x, l);
            return INFEASIBLE;
        }
        const Break& b = x.breaks[stop];
        idle = b.t > b.late - b.t ? 0 : idle + 1;
        if (!exchange(a, x, s, l, stop) || !refresh(a, x, s)) return UNRESOLVED;
    }
    return UNRESOLVED;
}

// Reset basic coordinates to a kink that they miss by rounding alone, and keep them within their segments.
inline void snap_basic(const ActiveSet& a, Simplex& x, Steps& s) {
    const double length = std::sqrt(dot(s.y, s.y, a.wide));
    for (int k = 0; k < x.size; ++k) {
        const int i = x.basic[k];
        const double low = least_of(x, s, i), high = most_of(x, s, i);
        const double end = s.y[i] - low < high - s.y[i] ? low : high;
        s.y[i] = clip(s.y[i], low, high);
        if (s.y[i] == end || !(std::fabs(s.y[i] - end) <= PROMISED * length)) continue;
        double noise = 0.0;  // row k of the inverse basis, times the terms of the active rows
        fill(x.turn, 0.0, x.size);
        x.turn[k] = 1.0;
        solve_transposed(a, x, x.turn);
        for (int p = 0; p < x.size; ++p)
            noise += std::fabs(x.turn[p]) * violation_of(a, s, a.work[p]).terms;
        if (std::fabs(s.y[i] - end) <= DUST * noise) s.y[i] = end;
    }
}

// What a coordinate at y lacks of the best place in its box for the pull at it, in the direction `up` or down.
// Infinite where there is no bound, and the pull is beyond its price by more than rounding of its terms.
inline double lost_by(const Simplex& x, const Steps& s, int i, bool up) {
    double lost = 0.0, y = s.y[i];
    while (up ? y < s.high[i] : y > s.low[i]) {
        const double over = up ? x.pull[i] - slope_above(x, s, i, y) : slope_below(x, s, i, y) - x.pull[i];
        const double to = up ? kink_above(s, i, y) : kink_below(s, i, y), way = std::fabs(to - y);
        if (!(over > (way < INF ? 0.0 : LOOSE * x.terms[i]))) break;
        lost += over * way;
        y = to;
    }
    return lost;
}

// Compute r = U y - b, and return the duality gap. It is valid for any y in the box and any mu >= 0.
inline double gap_of(ActiveSet& a, Simplex& x, const Steps& s) {
    double gap = 0.0;
    const Doubles zero = Doubles::all(0.0);
    fill(x.pull, 0.0, a.wide);
    fill(x.terms, 0.0, a.wide);
    for (int j = 0; j < a.m; ++j) {
        a.r[j] = dot(row_of(a, j), s.y, a.wide) - a.b[j];
        gap -= a.mu[j] * a.r[j];
        const Doubles mu = Doubles::all(a.mu[j]);
        for (int i = 0; i < (a.mu[j] > 0.0 ? a.wide : 0); i += 8) {
            const Doubles t = mu * Doubles::load(row_of(a, j) + i);
            (Doubles::load(x.pull + i) - t).store(x.pull + i);
            (Doubles::load(x.terms + i) + larger(t, zero - t)).store(x.terms + i);
        }
    }
    for (int i = 0; i < a.d; ++i) gap += lost_by(x, s, i, true) + lost_by(x, s, i, false);
    return gap;
}

}  // namespace VOICECF_SET
}  // namespace voicecf

// Goldfarb and Idnani's dual active-set method, for the points that Newton gives up.
//
// Dependent rows, boxes that bind many coordinates, regions that are flat or empty. Bounds are
// constraints like rows. The active rows, restricted to the free coordinates, keep an orthogonal basis
// that is rebuilt, not updated, so errors do not add up. The dual objective grows with every constraint
// that is enforced, so the method ends; where nothing fits, the last direction is the vector that proves
// it (Farkas): a sum of rows, each to be negative, that is positive all over the box.
//
// `frame` holds the basis (rank rows) and behind it the vectors g, n, e; `tri` its triangle and behind it
// the vectors c, s. `tol` has an entry a row and, behind them, one a coordinate: what rounding of the
// input explains.
#pragma once

#include "newton.hpp"

namespace voicecf {
namespace VOICECF_SET {

enum State : std::int8_t { FREE, AT_LOW, AT_HIGH, FROZEN };
constexpr double FIRST = 16 * EPS;
// A step so many times as long as its answer's distance from the origin is worth another look.
constexpr double NEAR = 16.0;

// The vectors behind basis and triangle, by name.
struct Vectors {
    double *g, *n, *e, *c, *s;
};
inline Vectors vectors_of(const ActiveSet& a) {
    double *f = a.frame + a.rank * a.wide, *t = a.tri + a.rank * a.rank;
    return {f, f + a.wide, f + 2 * a.wide, t, t + a.rank};
}
inline const double* row_of(const ActiveSet& a, int j) { return a.u + std::size_t(j) * a.wide; }

// Split e into its part along the basis, c, and the rest, left in e.
inline void orthogonalise(const ActiveSet& a, int size, double* e, double* c) {
    for (int t = 0; t < size; ++t) c[t] = 0.0;
    for (int turn = 0; turn < 2; ++turn)  // twice is enough for orthogonality to rounding
        for (int t = 0; t < size; ++t) {
            const double s = dot(a.frame + t * a.wide, e, a.wide);
            c[t] += s;
            add_to(e, -s, a.frame + t * a.wide, a.wide);
        }
}

// Extend the basis by a row, restricted to the free coordinates.
inline void append_row(ActiveSet& a, int row, int size) {
    const Vectors v = vectors_of(a);
    const double* u = row_of(a, row);
    fill(v.e, 0.0, a.wide);
    for (int i = 0; i < a.d; ++i) v.e[i] = a.state[i] == FREE ? u[i] : 0.0;
    orthogonalise(a, size, v.e, v.c);
    const double length = std::sqrt(dot(v.e, v.e, a.wide));
    for (int t = 0; t < size; ++t) a.tri[t * a.rank + size] = v.c[t];
    a.tri[size * a.rank + size] = length;
    for (int i = 0; i < a.wide; ++i)
        a.frame[size * a.wide + i] = length > 0.0 ? v.e[i] / length : 0.0;
}

// Make the basis anew for the active rows on the present free coordinates.
inline void rebuild(ActiveSet& a, int size) {
    for (int p = 0; p < size; ++p) append_row(a, a.work[p], p);
}

// Solve tri s = c for the upper triangle.
inline void back_substitute(const ActiveSet& a, const double* c, int size, double* s) {
    for (int p = size - 1; p >= 0; --p) {
        const double* row = a.tri + p * a.rank;
        double value = c[p];
        for (int t = p + 1; t < size; ++t) value -= row[t] * s[t];
        s[p] = row[p] > 0.0 ? value / row[p] : 0.0;
    }
}

// Move the free coordinates by the least that makes the active rows tight; in the basis, c grows by as much.
inline void tighten_once(ActiveSet& a, Steps& y, int size) {
    const Vectors v = vectors_of(a);
    double* change = v.s;
    for (int p = 0; p < size; ++p) {
        double value = a.b[a.work[p]] - dot(row_of(a, a.work[p]), y.y, a.wide);
        for (int t = 0; t < p; ++t) value -= a.tri[t * a.rank + p] * change[t];
        const double pivot = a.tri[p * a.rank + p];
        change[p] = pivot > 0.0 ? value / pivot : 0.0;
        v.c[p] += change[p];
    }
    for (int p = 0; p < size; ++p) add_to(y.y, change[p], a.frame + p * a.wide, a.wide);
}

// Set the free coordinates and the multipliers afresh from the active rows. The least free step that
// makes the rows tight comes from the basis, not from the multipliers: where rows are nearly opposite
// these are large and cancel. The second turn takes back the rounding of the first, so that a row of small
// coordinates in a long step is tight to its own digits.
inline void tighten_active(ActiveSet& a, Steps& y, int size) {
    const Vectors v = vectors_of(a);
    for (int i = 0; i < a.d; ++i)
        if (a.state[i] == FREE) y.y[i] = 0.0;
    fill(v.c, 0.0, size);
    for (int turn = 0; turn < 2; ++turn) tighten_once(a, y, size);
    back_substitute(a, v.c, size, v.s);
    fill(v.g, 0.0, a.wide);
    for (int p = 0; p < size; ++p) {
        double& mu = a.mu[a.work[p]];
        mu = most(-v.s[p], 0.0);
        add_to(v.g, mu, row_of(a, a.work[p]), a.wide);
    }
}

// How far a step is outside of a constraint, and how large the terms are that say so.
struct Violation {
    double value, terms;
};

// Of row `chosen`, or of a bound of coordinate `chosen - m`.
inline Violation violation_of(const ActiveSet& a, const Steps& y, int chosen) {
    if (chosen >= a.m) {
        const int i = chosen - a.m;
        return {most(y.low[i] - y.y[i], y.y[i] - y.high[i]), std::fabs(y.y[i])};
    }
    const double b = a.b[chosen];
    return {dot(row_of(a, chosen), y.y, a.wide) - b,
            dot_of_sizes(row_of(a, chosen), y.y, a.wide) + std::fabs(b)};
}

// Constraint to enforce next: row j as j, a bound of coordinate i as m + i; -1 if none.
inline int most_violated(const ActiveSet& a, const Steps& y, double share) {
    int chosen = -1;
    double worst = 0.0;
    const double length = std::sqrt(dot(y.y, y.y, a.wide));
    for (int c = 0; c < a.m + a.d; ++c) {
        if (c < a.m ? a.mu[c] > 0.0 : a.state[c - a.m] != FREE) continue;
        const Violation v = violation_of(a, y, c);
        double slip = TIGHT * v.terms + share * a.tol[c];
        if (c >= a.m) slip += share * LOOSE * length;  // a coordinate has the rounding of all others
        if (v.value > slip && v.value > worst) {
            chosen = c;
            worst = v.value;
        }
    }
    return chosen;
}

// Set the dual directions: s of active rows, n of coordinates; the curvature, 0 if dependent. On free
// coordinates -n is also the primal direction.
inline double direction(ActiveSet& a, int chosen, double sign, int size) {
    const Vectors v = vectors_of(a);
    double whole = 0.0, part = 0.0;
    fill(v.n, 0.0, a.wide);
    fill(v.e, 0.0, a.wide);
    if (chosen < a.m)
        for (int i = 0; i < a.d; ++i) v.n[i] = row_of(a, chosen)[i];
    else
        v.n[chosen - a.m] = sign;
    for (int i = 0; i < a.d; ++i) {
        v.e[i] = a.state[i] == FREE ? v.n[i] : 0.0;
        whole += v.e[i] * v.e[i];
    }
    orthogonalise(a, size, v.e, v.c);
    back_substitute(a, v.c, size, v.s);
    for (int p = 0; p < size; ++p) add_to(v.n, -v.s[p], row_of(a, a.work[p]), a.wide);
    for (int i = 0; i < a.d; ++i) {
        if (a.state[i] == FREE) v.n[i] = v.e[i];
        part += v.e[i] * v.e[i];
    }
    return part > DEPENDENT * DEPENDENT * whole ? part : 0.0;
}

// How far the new multiplier can grow before an old one is zero; which: p, or -2 - i.
inline double longest_dual_step(const ActiveSet& a, const Steps& y, int size, int& blocker) {
    const Vectors v = vectors_of(a);
    double longest = INF;
    blocker = -1;
    for (int p = 0; p < size; ++p) {
        if (!(v.s[p] > 0.0)) continue;
        const double t = a.mu[a.work[p]] / v.s[p];
        if (t < longest) {
            longest = t;
            blocker = p;
        }
    }
    for (int i = 0; i < a.d; ++i) {
        double t = INF;
        if (a.state[i] == AT_LOW && v.n[i] < 0.0) t = most(y.y[i] + v.g[i], 0.0) / -v.n[i];
        if (a.state[i] == AT_HIGH && v.n[i] > 0.0) t = most(-(y.y[i] + v.g[i]), 0.0) / v.n[i];
        if (t < longest) {
            longest = t;
            blocker = -2 - i;
        }
    }
    return longest;
}

// Leave in mu the vector that proves that nothing fits.
inline void keep_proof(ActiveSet& a, int chosen, int size) {
    const Vectors v = vectors_of(a);
    double largest = 1.0;
    for (int p = 0; p < size; ++p) largest = most(largest, -v.s[p]);
    for (int p = 0; p < size; ++p)  // what is rounding of zero would only blur the proof
        a.mu[a.work[p]] = -v.s[p] > LOOSE * largest ? -v.s[p] : 0.0;
    if (chosen < a.m) a.mu[chosen] = 1.0;
}

// Take the blocking constraint out of the active ones; the new number of active rows.
inline int release(ActiveSet& a, const Steps& y, int blocker, int size) {
    if (blocker >= 0) {
        a.mu[a.work[blocker]] = 0.0;
        --size;
        for (int p = blocker; p < size; ++p) a.work[p] = a.work[p + 1];
    } else {
        a.state[-2 - blocker] = FREE;
        vectors_of(a).g[-2 - blocker] = -y.y[-2 - blocker];
    }
    rebuild(a, size);
    return size;
}

// Make one violated constraint hold, dropping others as needed; the new number of active rows, or -1
// where nothing fits.
inline int enforce(ActiveSet& a, Steps& y, int size, int chosen) {
    const Vectors v = vectors_of(a);
    const int bound = chosen - a.m;
    const double sign = bound >= 0 && y.low[bound] > y.y[bound] ? -1.0 : 1.0;
    double grown = 0.0;
    while (true) {
        int blocker;
        const double curvature = direction(a, chosen, sign, size);
        const double longest = longest_dual_step(a, y, size, blocker);
        const double full =
            curvature > 0.0 ? most(violation_of(a, y, chosen).value, 0.0) / curvature : INF;
        const double t = least(longest, full);
        if (t == INF) {
            keep_proof(a, chosen, size);
            return -1;
        }
        grown += t;
        for (int p = 0; p < size; ++p) {
            double& mu = a.mu[a.work[p]];
            mu = most(mu - t * v.s[p], 0.0);
        }
        for (int i = 0; i < a.d; ++i) {
            v.g[i] += t * v.n[i];
            if (a.state[i] == FREE && curvature > 0.0) y.y[i] -= t * v.n[i];
        }
        if (full <= longest) break;
        size = release(a, y, blocker, size);
    }
    if (bound < 0) {
        if (size == a.rank) return -2;
        a.mu[chosen] = grown;
        a.work[size] = chosen;
        append_row(a, chosen, size);
        return size + 1;
    }
    a.state[bound] = sign > 0.0 ? AT_HIGH : AT_LOW;
    y.y[bound] = sign > 0.0 ? y.high[bound] : y.low[bound];
    rebuild(a, size);
    return size;
}

// Answer one problem; a status, with mu and y filled. Rows hold to `share` of their tolerance.
inline Status dual_active_set(ActiveSet& a, Steps& y, double share) {
    fill(a.mu, 0.0, a.m);
    fill(vectors_of(a).g, 0.0, a.wide);
    for (int i = 0; i < a.d; ++i) {
        y.y[i] = clip(0.0, y.low[i], y.high[i]);
        a.state[i] = FREE;
        if (y.low[i] == y.high[i])
            a.state[i] = FROZEN;
        else if (y.y[i] != 0.0)
            a.state[i] = y.y[i] > 0.0 ? AT_LOW : AT_HIGH;
    }
    int size = 0;
    for (int turn = 0; turn < 100 + 20 * (a.m + a.d); ++turn) {
        const int chosen = most_violated(a, y, share);
        if (chosen < 0) return OPTIMAL;
        size = enforce(a, y, size, chosen);
        if (size < 0) return size == -1 ? INFEASIBLE : UNRESOLVED;
        tighten_active(a, y, size);
    }
    return UNRESOLVED;
}

// Least of mu . (U y - b) over the box, less an error of `rounding` of all terms; > 0 is a proof.
inline double proof_margin(const ActiveSet& a, const Steps& y, double rounding) {
    double margin = 0.0;
    for (int j = 0; j < a.m; ++j) margin -= a.mu[j] * (a.b[j] + rounding / LOOSE * a.tol[j]);
    for (int i = 0; i < a.d; ++i) {
        double value = 0.0, size = 0.0;
        for (int j = 0; j < a.m; ++j) {
            if (a.mu[j] == 0.0) continue;
            const double t = a.mu[j] * row_of(a, j)[i];
            value += t;
            size += std::fabs(t);
        }
        const double bound = value > 0.0 ? y.low[i] : y.high[i];
        if (std::fabs(bound) < INF)
            margin += value * bound - rounding * size * std::fabs(bound);
        else if (std::fabs(value) > LOOSE * size)
            return -INF;
    }
    return margin;
}

// First row that no point of the box satisfies, or -1.
inline int blocked_row(const ActiveSet& a, const Steps& y) {
    for (int j = 0; j < a.m; ++j) {
        const double* u = row_of(a, j);
        double s = -a.b[j], terms = std::fabs(a.b[j]);
        for (int i = 0; i < a.d; ++i) {
            if (u[i] == 0.0) continue;
            const double t = u[i] * (u[i] > 0.0 ? y.low[i] : y.high[i]);
            s += t;
            terms += std::fabs(t);
        }
        if (s > a.tol[j] + LOOSE * terms) return j;
    }
    return -1;
}

// Answer one problem safely: a row that nothing satisfies, else the active-set method. Rows hold to
// rounding first. Where then nothing fits, but not so clearly that it is proven, the region may be flat or a
// single point, blurred by rounding of the input: rows hold a little less strictly each time. From LOOSE on
// that is no excuse any more, and a proof has to beat its own rounding only.
inline Status settle(ActiveSet& a, Steps& y) {
    const int row = blocked_row(a, y);
    if (row >= 0) {
        fill(a.mu, 0.0, a.m);
        a.mu[row] = 1.0;
        return INFEASIBLE;
    }
    for (double share = FIRST / LOOSE; share < 2000.0; share *= 2.0) {
        const Status status = dual_active_set(a, y, share);
        if (status == OPTIMAL) return OPTIMAL;
        const double rounding = share < 1.0 ? LOOSE : FIRST;
        if (status == INFEASIBLE && proof_margin(a, y, rounding) > 0.0) return INFEASIBLE;
    }
    return UNRESOLVED;
}

// Set multipliers to zero that are rounding, next to the largest and to their row's terms.
inline void drop_dust(ActiveSet& a, const Steps& y) {
    double largest = 0.0;
    for (int j = 0; j < a.m; ++j) largest = most(largest, a.mu[j]);
    for (int j = 0; j < a.m; ++j)
        if (a.mu[j] > 0.0 && a.mu[j] <= FIRST * least(largest, violation_of(a, y, j).terms))
            a.mu[j] = 0.0;
}

// Clean y, set r = U y - b; the duality gap of y and mu, which need not belong together.
inline double gap_of(ActiveSet& a, Steps& y) {
    const Vectors v = vectors_of(a);
    double *g = v.g, *terms = v.n, gap = 0.0;
    const double length = std::sqrt(dot(y.y, y.y, a.wide));
    fill(g, 0.0, a.wide);
    fill(terms, 0.0, a.wide);
    for (int j = 0; j < a.m; ++j) {
        if (a.mu[j] == 0.0) continue;
        for (int i = 0; i < a.d; ++i) {
            const double t = a.mu[j] * row_of(a, j)[i];
            g[i] += t;
            terms[i] += std::fabs(t);
        }
    }
    for (int i = 0; i < a.d; ++i) {
        const double dust = FIRST * least(terms[i], length);
        const double moved = std::fabs(y.y[i]) > dust && terms[i] > 0.0 ? y.y[i] : 0.0;
        y.y[i] = clip(moved, y.low[i], y.high[i]);
        const double best = clip(-g[i], y.low[i], y.high[i]);
        gap += 0.5 * (y.y[i] - best) * (y.y[i] + best + 2.0 * g[i]);
    }
    for (int j = 0; j < a.m; ++j) {
        a.r[j] = dot(row_of(a, j), y.y, a.wide) - a.b[j];
        gap -= a.mu[j] * a.r[j];
    }
    return gap;
}

// Bring active rows to what is asked of them at z itself, by a step so short that it is exact. A long
// step is off by its own rounding, and where it ends close to the origin that is seen. The multipliers
// go along.
inline void polish(ActiveSet& a, Steps& y, const double* scale, const double* origin) {
    const Vectors v = vectors_of(a);
    double* z = y.z;
    int size = 0;
    for (int j = 0; j < a.m; ++j)
        if (a.mu[j] > 0.0 && size < a.rank) a.work[size++] = j;
    for (int i = 0; i < a.d; ++i)
        a.state[i] = y.y[i] != 0.0 && y.lo[i] < z[i] && z[i] < y.hi[i] ? FREE : FROZEN;
    rebuild(a, size);
    fill(v.e, 0.0, a.wide);
    for (int i = 0; i < a.d; ++i) v.e[i] = scale[i] * (z[i] - origin[i]);
    for (int q = 0; q < size; ++q) {
        const int j = a.work[q];
        double value = a.offsets[j] - dot(row_of(a, j), v.e, a.wide) - (a.base[j] - a.b[j]);
        for (int t = 0; t < q; ++t) value -= a.tri[t * a.rank + q] * v.c[t];
        const double pivot = a.tri[q * a.rank + q];
        v.c[q] = pivot > DEPENDENT ? value / pivot : 0.0;
    }
    for (int q = 0; q < size; ++q)
        for (int i = 0; i < a.d; ++i) z[i] += v.c[q] * a.frame[q * a.wide + i] / scale[i];
    for (int q = size - 1; q >= 0; --q) {  // the same step, as a sum of rows
        for (int t = q + 1; t < size; ++t) v.c[q] -= a.tri[q * a.rank + t] * v.c[t];
        const double pivot = a.tri[q * a.rank + q];
        v.c[q] = pivot > DEPENDENT ? v.c[q] / pivot : 0.0;
        a.mu[a.work[q]] = most(a.mu[a.work[q]] - v.c[q], 0.0);
    }
    for (int i = 0; i < a.d; ++i) z[i] = clip(z[i], y.lo[i], y.hi[i]);
}

// Set the slacks of all rows, and what rounding of the input explains.
inline void read_slacks(ActiveSet& a, const Steps& s) {
    for (int i = 0; i < a.d; ++i)
        a.tol[a.m + i] = LOOSE * (std::fabs(s.x[i]) + std::fabs(s.placed[i]));
    const double far = dot(s.x, s.x, s.wide);
    for (int j = 0; j < a.m; ++j) {
        a.base[j] = slack_of(a.offsets[j], row_of(a, j), s, far);
        a.b[j] = a.base[j];
        a.mu[j] = 0.0;
        a.tol[j] = LOOSE * (std::fabs(a.offsets[j]) + dot_of_sizes(row_of(a, j), s.x, a.wide));
    }
}

// What the active-set method says of one point.
struct Settled {
    Status status;
    double gap;
    Sizes sizes;
};

// Answer a point that Newton gave up, as far behind the rows as the model's rounding needs.
inline Settled settle_point(ActiveSet& a, Steps& s) {
    Settled found = {INFEASIBLE, 0.0, {0.0, 0.0, 0.0}};
    read_slacks(a, s);
    for (int turn = 0; turn < PUSHES; ++turn) {
        found.status = settle(a, s);
        if (found.status != OPTIMAL) {
            if (turn > 0) found.status = UNRESOLVED;  // only what the guard left is empty
            return found;
        }
        drop_dust(a, s);
        found.gap = gap_of(a, s);
        found.sizes = sizes_of(s);
        bool pushed = false;
        for (int j = 0; j < a.m; ++j)
            pushed |= push_row(a.guards[j], found.sizes, a.base[j], a.r[j], a.b[j]);
        if (pushed || !(found.sizes.size < HUGE_SIZE && std::fabs(found.gap) < INF))
            found.status = UNRESOLVED;
        if (!pushed) break;
    }
    return found;
}

// Largest multiple of the step that keeps to rows and box, at least 1.
inline double reach_of(const ActiveSet& a, const Steps& s, double step) {
    double reach = reach_in_box(s);
    for (int j = 0; j < a.m; ++j) {
        const double rise = a.r[j] + a.b[j];
        if (rise > FLAT * step && a.base[j] < reach * rise) reach = a.base[j] / rise;
    }
    return most(reach, 1.0);
}

}  // namespace VOICECF_SET
}  // namespace voicecf

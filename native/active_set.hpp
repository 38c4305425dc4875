// Goldfarb and Idnani's dual active-set method, for the points that Newton gives up.
//
// These points have dependent rows, a box that binds many coordinates, or a region that is flat or empty.
// Bounds are constraints like rows. The active rows, restricted to the free coordinates, have an orthonormal
// basis (U = tri' frame); it is rebuilt, not updated, so rounding errors do not add up. The dual objective
// grows with every constraint that is enforced, so the method ends. Where the region is empty, the last dual
// direction is a Farkas vector: multipliers mu >= 0 with mu . (U y - b) > 0 for all y in the box.
//
// `frame` holds the basis (rank rows), followed by the vectors g = U' mu, n and e; `tri` holds the upper
// triangle, followed by the vectors c and s. `tol` has one entry a row, then one a coordinate: violations
// up to it may come from rounding of the input.
#pragma once

#include "newton.hpp"

namespace voicecf {
namespace VOICECF_SET {

enum State : std::int8_t { FREE, AT_LOW, AT_HIGH, FROZEN };
// Rounding of the solver's own arithmetic, relative to the terms of a row.
constexpr double FIRST = 16 * EPS;
// An answer is polished if its step is more than this many times as long as its distance from the origin.
constexpr double NEAR = 16.0;

// The vectors that follow the basis and the triangle in memory.
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

// Append a row, restricted to the free coordinates, to the basis.
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

// Compute the basis of the active rows on the free coordinates from scratch.
inline void rebuild(ActiveSet& a, int size) {
    for (int p = 0; p < size; ++p) append_row(a, a.work[p], p);
}

// Solve tri s = c: the multipliers of the active rows that make up a step c in coordinates of the basis.
// Pivots up to `noise` count as zero.
inline void back_substitute(const ActiveSet& a, const double* c, int size, double* s, double noise) {
    for (int p = size - 1; p >= 0; --p) {
        const double* row = a.tri + p * a.rank;
        double value = c[p];
        for (int t = p + 1; t < size; ++t) value -= row[t] * s[t];
        s[p] = row[p] > noise ? value / row[p] : 0.0;
    }
}

// Solve tri' x = x in place: x holds by how much each active row is to rise, and becomes the least step
// that does it, in coordinates of the basis. Pivots up to `noise` count as zero.
inline void forward_substitute(const ActiveSet& a, double* x, int size, double noise) {
    for (int p = 0; p < size; ++p) {
        const double pivot = a.tri[p * a.rank + p];
        for (int t = 0; t < p; ++t) x[p] -= a.tri[t * a.rank + p] * x[t];
        x[p] = pivot > noise ? x[p] / pivot : 0.0;
    }
}

// Move the free coordinates by the least step that makes the active rows tight. A coordinate that ends below
// the rounding of this step is reset to 0: rows through the origin have no tolerance of their own, and would
// take turns to correct the noise.
inline void tighten_once(ActiveSet& a, Steps& y, int size) {
    const Vectors v = vectors_of(a);
    double *move = v.s, *terms = v.e;
    fill(terms, 0.0, a.wide);
    for (int p = 0; p < size; ++p)
        move[p] = a.b[a.work[p]] - dot(row_of(a, a.work[p]), y.y, a.wide);
    forward_substitute(a, move, size, 0.0);
    for (int p = 0; p < size; ++p) {
        const double* along = a.frame + p * a.wide;
        add_to(y.y, move[p], along, a.wide);
        for (int i = 0; i < a.d; ++i) terms[i] += std::fabs(move[p] * along[i]);
    }
    for (int i = 0; i < a.d; ++i)
        if (a.state[i] == FREE && std::fabs(y.y[i]) <= FIRST * terms[i]) y.y[i] = 0.0;
}

// Change s by what y - U' s lacks to be zero on the free coordinates: -s are the multipliers of the step.
inline void balance_once(ActiveSet& a, const Steps& y, int size) {
    const Vectors v = vectors_of(a);
    double *rest = v.e, *change = v.n;
    for (int i = 0; i < a.d; ++i) rest[i] = y.y[i];
    for (int p = 0; p < size; ++p) add_to(rest, -v.s[p], row_of(a, a.work[p]), a.wide);
    for (int p = 0; p < size; ++p) v.c[p] = dot(a.frame + p * a.wide, rest, a.wide);
    back_substitute(a, v.c, size, change, 0.0);
    for (int p = 0; p < size; ++p) v.s[p] += change[p];
}

// Compute the free coordinates and the multipliers from the active rows. The step comes from the basis and
// not from the multipliers, because these are large and cancel where rows are nearly opposite. The second
// turns correct the rounding of the first, so that a row whose coordinates are small in a long step is tight
// to rounding of its own terms, and small multipliers have their own digits, too.
inline void tighten_active(ActiveSet& a, Steps& y, int size) {
    const Vectors v = vectors_of(a);
    for (int i = 0; i < a.d; ++i)
        if (a.state[i] == FREE) y.y[i] = 0.0;
    for (int turn = 0; turn < 2; ++turn) tighten_once(a, y, size);
    fill(v.s, 0.0, size);
    for (int turn = 0; turn < 2; ++turn) balance_once(a, y, size);
    fill(v.g, 0.0, a.wide);
    for (int p = 0; p < size; ++p) {
        double& mu = a.mu[a.work[p]];
        mu = most(-v.s[p], 0.0);
        add_to(v.g, mu, row_of(a, a.work[p]), a.wide);
    }
}

// By how much a step violates a constraint, and the sum of the absolute terms of that difference.
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
        if (c >= a.m) slip += share * LOOSE * length;  // a free coordinate has rounding of the whole step
        if (v.value > slip && v.value > worst) {
            chosen = c;
            worst = v.value;
        }
    }
    return chosen;
}

// Compute how the dual variables change while the multiplier of the chosen constraint grows: those of the
// active rows by -s, those of bounds by n. On free coordinates -n is the primal direction. Returns the
// curvature |n|^2 there, or 0 if the constraint depends on the active ones.
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
    back_substitute(a, v.c, size, v.s, 0.0);
    for (int p = 0; p < size; ++p) add_to(v.n, -v.s[p], row_of(a, a.work[p]), a.wide);
    for (int i = 0; i < a.d; ++i) {
        if (a.state[i] == FREE) v.n[i] = v.e[i];
        part += v.e[i] * v.e[i];
    }
    return part > DEPENDENT * DEPENDENT * whole ? part : 0.0;
}

// How far the new multiplier can grow before another dual variable is zero. `blocker` is its place p among
// the active rows, -2 - i for a bound of coordinate i, or -1 for none.
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

// Store the Farkas vector of the last direction in mu.
inline void keep_proof(ActiveSet& a, int chosen, int size) {
    const Vectors v = vectors_of(a);
    double largest = 1.0;
    for (int p = 0; p < size; ++p) largest = most(largest, -v.s[p]);
    for (int p = 0; p < size; ++p)  // multipliers that are rounding noise weaken the proof
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

// Make a violated constraint tight, releasing active constraints as needed. Returns the new number of active
// rows, -1 where the region is empty (mu is then a Farkas vector), or -2 where there are more active rows
// than there is room for.
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
        if (!(t < INF)) {
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

// Solve one problem for y and mu. Constraints may be violated by `share` of their tolerance. Its energy only grows,
// and STOPPED says that it is `enough`.
inline Status dual_active_set(ActiveSet& a, Steps& y, double share, double enough = INF) {
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
        if (enough < INF && 0.5 * dot(y.y, y.y, a.wide) > enough) return STOPPED;
    }
    return UNRESOLVED;
}

// Least of mu . (U y - b) over the box, less an error of `rounding` of all terms; > 0 is a proof.
inline double proof_margin(const ActiveSet& a, const Steps& y, double rounding) {
    double margin = least_in_box(a.m, a.mu, [&](int j) { return row_of(a, j); }, y, rounding);
    for (int j = 0; j < a.m; ++j) margin -= a.mu[j] * (a.b[j] + rounding / LOOSE * a.tol[j]);
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

// Reset multipliers to 0 that are rounding noise next to the largest one and to the terms of their row.
inline void drop_dust(ActiveSet& a, const Steps& y) {
    double largest = 0.0;
    for (int j = 0; j < a.m; ++j) largest = most(largest, a.mu[j]);
    for (int j = 0; j < a.m; ++j)
        if (a.mu[j] > 0.0 && a.mu[j] <= FIRST * least(largest, violation_of(a, y, j).terms))
            a.mu[j] = 0.0;
}

// Reset coordinates of y that are rounding noise to 0, compute r = U y - b, and return the duality gap. It is
// valid for any y in the box and any mu >= 0.
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

// Whether y and mu prove each other optimal to what is promised of an answer.
inline bool is_certified(ActiveSet& a, Steps& y) {
    drop_dust(a, y);
    const double gap = gap_of(a, y);
    return std::fabs(gap) <= 0.5 * PROMISED * dot(y.y, y.y, a.wide);
}

// The method that `solve_safely` runs.
struct LeastSquares {
    double enough = INF;
    Status solve(ActiveSet& a, Steps& y, double share) const { return dual_active_set(a, y, share, enough); }
    bool certifies(ActiveSet& a, Steps& y) const { return is_certified(a, y); }
};

// Solve one problem for y and mu, whatever its rows. A row that no point of the box satisfies is a proof at
// once. Else the method runs, first with rows that hold to rounding. If it then finds the region
// empty, but the proof is not beyond rounding of the input, the region may be flat or a single point: the
// tolerance of rows doubles. From LOOSE on, rounding of the input explains nothing any more, and a proof only
// has to be beyond rounding of its own arithmetic. So it has where the answer of such a loosened region is
// not certified.
template <class Method = LeastSquares>
Status solve_safely(ActiveSet& a, Steps& y, const Method& method = {}) {
    const int row = blocked_row(a, y);
    if (row >= 0) {
        fill(a.mu, 0.0, a.m);
        a.mu[row] = 1.0;
        return INFEASIBLE;
    }
    double proven = 0.0;  // the largest share with which the region is empty beyond rounding of the proof
    for (double share = FIRST / LOOSE; share < 2000.0; share *= 2.0) {
        const Status status = method.solve(a, y, share);
        if (status == STOPPED) return STOPPED;
        if (status == OPTIMAL) {
            if (proven == 0.0 || method.certifies(a, y)) return OPTIMAL;
            method.solve(a, y, proven);  // the same proof again
            return INFEASIBLE;
        }
        const double rounding = share < 1.0 ? LOOSE : FIRST;
        if (status == INFEASIBLE && proof_margin(a, y, rounding) > 0.0) return INFEASIBLE;
        if (status == INFEASIBLE && proof_margin(a, y, FIRST) > 0.0) proven = share;
    }
    return UNRESOLVED;
}

// Make a basis of the rows with a multiplier, on the coordinates that moved and are not at a bound of z;
// how many rows.
inline int basis_at_answer(ActiveSet& a, const Steps& y) {
    int size = 0;
    for (int j = 0; j < a.m; ++j)
        if (a.mu[j] > 0.0 && size < a.rank) a.work[size++] = j;
    for (int i = 0; i < a.d; ++i)
        a.state[i] = y.y[i] != 0.0 && y.lo[i] < y.z[i] && y.z[i] < y.hi[i] ? FREE : FROZEN;
    rebuild(a, size);
    return size;
}

// Correct an answer z and its multipliers so that active rows are tight at z as it is stored. A long step is
// off by rounding of its own length, which is large next to an answer close to the origin; the correction is
// short, so its own rounding is not.
inline void polish(ActiveSet& a, Steps& y, const double* scale, const double* origin) {
    const Vectors v = vectors_of(a);
    double *z = y.z, *place = v.e, *move = v.c;
    const int size = basis_at_answer(a, y);
    fill(place, 0.0, a.wide);
    for (int i = 0; i < a.d; ++i) place[i] = scale[i] * (z[i] - origin[i]);
    for (int p = 0; p < size; ++p) {
        const int j = a.work[p];
        move[p] = a.offsets[j] - dot(row_of(a, j), place, a.wide) - (a.base[j] - a.b[j]);
    }
    forward_substitute(a, move, size, DEPENDENT);
    back_substitute(a, move, size, v.s, DEPENDENT);
    for (int p = 0; p < size; ++p) {
        a.mu[a.work[p]] = most(a.mu[a.work[p]] - v.s[p], 0.0);
        for (int i = 0; i < a.d; ++i) z[i] += move[p] * a.frame[p * a.wide + i] / scale[i];
    }
    for (int i = 0; i < a.d; ++i) z[i] = clip(z[i], y.lo[i], y.hi[i]);
}

// Compute the slacks of all rows at the point, and the tolerances of rows and bounds.
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

// Result of the active-set method for one point.
struct SafeAnswer {
    Status status;
    double gap;
    Sizes sizes;
    Room room;
};

// Solve with rows as they are.
inline SafeAnswer answer_as_asked(ActiveSet& a, Steps& s, double factor) {
    SafeAnswer found = {solve_safely(a, s), 0.0, {0.0, 0.0, 0.0}, ENOUGH};
    if (found.status != OPTIMAL) return found;
    drop_dust(a, s);
    found.gap = gap_of(a, s);
    found.sizes = sizes_of(s);
    for (int j = 0; j < a.m; ++j) {
        const double slack = a.base[j] - a.b[j] - a.r[j];
        const Room room = room_of(a.guards[j], found.sizes, slack, factor);
        if (room > found.room) found.room = room;
    }
    if (!(found.sizes.size < HUGE_SIZE && std::fabs(found.gap) < INF)) found.status = UNRESOLVED;
    return found;
}

// Solve for a point that Newton gave up: first without slack, which proves an empty region empty, then with what
// the model's rounding needs at that answer.
inline SafeAnswer answer_safely(ActiveSet& a, Steps& s, double factor) {
    read_slacks(a, s);
    SafeAnswer found = answer_as_asked(a, s, factor);
    if (found.status == OPTIMAL && found.room == CLOSE) {
        for (int j = 0; j < a.m; ++j) a.b[j] -= room_to_ask(a.guards[j], found.sizes, factor);
        found = answer_as_asked(a, s, factor);
        if (found.status != OPTIMAL) found.status = UNRESOLVED;  // empty only because of the slack
    }
    if (found.room == TOO_CLOSE) found.status = UNRESOLVED;
    return found;
}

// Largest multiple of the step that satisfies rows and box (rho), at least 1.
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

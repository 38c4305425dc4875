// Answers of one price: of them, that of least cost.
//
// The simplex method (simplex.hpp) gives the least price p and multipliers mu. All answers of that price are
// the face of the region on which rows with a multiplier are tight, and each coordinate is where its slope
// balances the pull of mu. As a rule that is a single vertex. Where it may be more, the point of the face with
// the least cost is taken, by the active-set method (active_set.hpp), so that the order of the columns decides
// nothing.
#pragma once

#include "simplex.hpp"

namespace voicecf {
namespace VOICECF_SET {

// A point of a face may cost this share more than its vertex.
constexpr double SAME_PRICE = 1e-12;

// Working memory: the face of a tie.
struct Tie {
    ActiveSet face;
    double *low, *high, *vertex;
    bool tied;  // whether the answer is the face's, not the vertex
};

inline void lay_out(Arena& arena, Tie& v, int m, int d, int wide) {
    lay_out(arena, v.face, m + smaller_of(m, d), d, wide, true);
    double** lines[] = {&v.low, &v.high, &v.vertex};
    for (double** line : lines) *line = arena.take<double>(wide);
}

// Set `low` and `high` to the part of the box that a coordinate may take at the same price; true if it may take
// more than its present value.
inline bool part_at_price(const Tie& v, const Simplex& x, const Steps& s, int i) {
    const double slip = DUST * (x.terms[i] + std::fabs(x.pull[i]));
    double low = s.y[i], high = low;
    while (low > s.low[i] && x.pull[i] - slope_below(x, s, i, low) <= slip) low = kink_below(s, i, low);
    while (high < s.high[i] && slope_above(x, s, i, high) - x.pull[i] <= slip) high = kink_above(s, i, high);
    v.low[i] = low;
    v.high[i] = high;
    return low < high;
}

// Find the part of the box, and the rows, that all answers of the least price share; true if there may be
// several.
inline bool find_face(Tie& v, const ActiveSet& a, const Simplex& x, const Steps& s) {
    int loose = 0, tight = 0;
    double largest = 0.0;
    for (int i = 0; i < a.d; ++i) loose += part_at_price(v, x, s, i);
    for (int j = 0; j < a.m; ++j) largest = most(largest, a.mu[j]);
    v.face.m = a.m;
    for (int j = 0; j < a.m; ++j) {
        if (!(a.mu[j] > DUST * largest)) continue;
        ++tight;
        const int at = v.face.m++;
        for (int i = 0; i < a.wide; ++i) v.face.made[std::size_t(at) * a.wide + i] = -row_of(a, j)[i];
        v.face.b[at] = -a.b[j];
        v.face.tol[at] = a.tol[j];
    }
    return loose > tight;
}

// Add the rows of the region to the face, and the tolerances of its coordinates.
inline void complete_face(Tie& v, const ActiveSet& a) {
    ActiveSet& f = v.face;
    f.u = f.made;
    for (int i = 0; i < a.d; ++i) f.tol[f.m + i] = a.tol[a.m + i];
    for (int j = 0; j < a.m; ++j) {
        std::memcpy(f.made + std::size_t(j) * a.wide, row_of(a, j), a.wide * sizeof(double));
        f.b[j] = a.b[j];
        f.tol[j] = a.tol[j];
    }
}

// Whether a step satisfies all rows up to rounding.
inline bool satisfies(const ActiveSet& a, const Steps& s) {
    for (int j = 0; j < a.m; ++j) {
        const Violation w = violation_of(a, s, j);
        if (w.value > TIGHT * w.terms + FIRST / LOOSE * a.tol[j]) return false;
    }
    return true;
}

// Of the answers of the least price, take that of least cost.
inline void break_tie(Tie& v, const ActiveSet& a, const Simplex& x, Steps& s) {
    v.tied = false;
    if (!find_face(v, a, x, s)) return;
    complete_face(v, a);
    const double price = price_of(x, s, s.y);
    std::memcpy(v.vertex, s.y, s.wide * sizeof(double));
    Steps part = s;
    part.low = v.low;
    part.high = v.high;
    v.tied = solve_safely(v.face, part) == OPTIMAL;
    if (v.tied) {
        drop_dust(v.face, part);
        gap_of(v.face, part);
        v.tied = price_of(x, s, s.y) <= price * (1.0 + SAME_PRICE) && satisfies(a, s) &&
                 dot(s.y, s.y, s.wide) < dot(v.vertex, v.vertex, s.wide);
    }
    if (!v.tied) std::memcpy(s.y, v.vertex, s.wide * sizeof(double));
}

// The method that `solve_safely` runs.
struct LeastPrice {
    Simplex& x;

    Status solve(ActiveSet& a, Steps& s, double share) const { return dual_simplex(a, x, s, share); }
    bool certifies(ActiveSet& a, Steps& s) const {
        snap_basic(a, x, s);
        return std::fabs(gap_of(a, x, s)) <= PROMISED * price_of(x, s, s.y);
    }
};

}  // namespace VOICECF_SET
}  // namespace voicecf

// Points and their answers of least price.
//
// The simplex method (simplex.hpp) gives the least price p and multipliers mu. All answers of that price are
// the face of the region on which rows with a multiplier are tight, and each coordinate is where its slope
// balances the pull of mu. As a rule that is a single vertex. Where it may be more, the point of the face with
// the least cost is taken, by the active-set method (active_set.hpp), so that the order of the columns decides
// nothing.
#pragma once

#include "project.hpp"
#include "simplex.hpp"

namespace voicecf {
namespace VOICECF_SET {

// A point of a face may cost this share more than its vertex.
constexpr double SAME_PRICE = 1e-12;

// Working memory: that of a projection, of the simplex method, and the face of a tie.
struct PriceSpace {
    Workspace<double> w;
    Simplex x;
    ActiveSet face;
    double *low, *high, *vertex;
    bool tied;  // whether the answer is the face's, not the vertex
};

inline void lay_out(Arena& arena, const Rows<double>& rows, PriceSpace& v) {
    const int m = rows.count, rank = smaller_of(m, rows.d);
    lay_out(arena, rows, v.w);
    lay_out(arena, v.x, m, rows.d, rows.wide);
    lay_out(arena, v.face, m + rank, rows.d, rows.wide, true);
    double** lines[] = {&v.low, &v.high, &v.vertex};
    for (double** line : lines) *line = arena.take<double>(rows.wide);
}

// Convert prices of coordinates to prices of their steps.
inline void enter_prices(const Rows<double>& rows, const Batch& batch, Simplex& x) {
    for (int i = 0; i < rows.d; ++i) {
        x.up[i] = batch.up[i] * rows.inverse[i];
        x.down[i] = batch.down[i] * rows.inverse[i];
    }
}

// Set `low` and `high` to the part of the box that a coordinate may take at the same price; true if it may take
// more than its present value.
inline bool part_at_price(const PriceSpace& v, int i) {
    const Simplex& x = v.x;
    const Steps& s = v.w.s;
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
inline bool find_face(PriceSpace& v) {
    const ActiveSet& a = v.w.hard;
    int loose = 0, tight = 0;
    double largest = 0.0;
    for (int i = 0; i < a.d; ++i) loose += part_at_price(v, i);
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
inline void complete_face(PriceSpace& v) {
    const ActiveSet& a = v.w.hard;
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
inline void break_tie(PriceSpace& v) {
    Steps& s = v.w.s;
    v.tied = false;
    if (!find_face(v)) return;
    complete_face(v);
    const double price = price_of(v.x, s, s.y);
    std::memcpy(v.vertex, s.y, s.wide * sizeof(double));
    Steps part = s;
    part.low = v.low;
    part.high = v.high;
    v.tied = solve_safely(v.face, part) == OPTIMAL;
    if (v.tied) {
        drop_dust(v.face, part);
        gap_of(v.face, part);
        v.tied = price_of(v.x, s, s.y) <= price * (1.0 + SAME_PRICE) && satisfies(v.w.hard, s) &&
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

// Solve with rows as they are.
inline SafeAnswer least_price(PriceSpace& v, double factor) {
    ActiveSet& a = v.w.hard;
    Steps& s = v.w.s;
    SafeAnswer found = {solve_safely(a, s, LeastPrice{v.x}), 0.0, {0.0, 0.0, 0.0}, ENOUGH};
    if (found.status != OPTIMAL) return found;
    snap_basic(a, v.x, s);
    found.gap = gap_of(a, v.x, s);
    break_tie(v);
    if (v.tied) found.gap = gap_of(a, v.x, s);
    found.sizes = sizes_of(s);
    for (int j = 0; j < a.m; ++j) {
        const Room room = room_of(a.guards[j], found.sizes, a.base[j] - a.b[j] - a.r[j], factor);
        if (room > found.room) found.room = room;
    }
    const bool closed = std::fabs(found.gap) <= PROMISED * price_of(v.x, s, s.y);
    if (!(found.sizes.size < HUGE_SIZE && closed)) found.status = UNRESOLVED;
    return found;
}

// Move rows inwards by the slack that the model's rounding needs at an answer of sizes `seen`; before there is
// one, at what is expected. Returns whether any row moved.
inline bool ask_slack(ActiveSet& a, const Point& p, const Sizes* seen, double factor) {
    bool asked = false;
    for (int j = 0; j < a.m; ++j) {
        const Sizes ahead = {p.size, most(-a.base[j], 0.0),
                             least(p.far, 4.0 * a.offsets[j] * a.offsets[j])};
        a.b[j] = least(a.b[j], a.base[j] - room_to_ask(a.guards[j], seen ? *seen : ahead, factor));
        asked |= a.b[j] < a.base[j];
    }
    return asked;
}

// Solve for a point with the slack that the model's rounding needs; where that leaves nothing, without it,
// which proves an empty region empty.
inline SafeAnswer answer_for_price(PriceSpace& v, const Point& p, double factor) {
    ActiveSet& a = v.w.hard;
    read_slacks(a, v.w.s);
    bool asked = ask_slack(a, p, nullptr, factor);
    SafeAnswer found = least_price(v, factor);
    if (found.status == OPTIMAL && found.room == CLOSE) {
        const Sizes seen = found.sizes;
        asked |= ask_slack(a, p, &seen, factor);
        found = least_price(v, factor);
    }
    if (asked && found.status == INFEASIBLE) {
        for (int j = 0; j < a.m; ++j) a.b[j] = a.base[j];
        found = least_price(v, factor);
        if (found.status == OPTIMAL) found.status = UNRESOLVED;  // empty only because of the slack
    }
    if (found.room == TOO_CLOSE) found.status = UNRESOLVED;
    return found;
}

// Correct an answer so that the rows that hold it are tight at z as it is stored: a long step is off by
// rounding of its own length. The multipliers stay as they are.
inline void polish_answer(PriceSpace& v, const double* scale, const double* origin) {
    const ActiveSet& a = v.w.hard;
    ActiveSet f = v.face;
    f.m = a.m;
    f.u = a.u;
    f.offsets = a.offsets;
    f.base = a.base;
    f.b = a.b;
    for (int j = 0; j < a.m; ++j) f.mu[j] = a.mu[j] > 0.0 || (v.tied && f.mu[j] > 0.0);
    polish(f, v.w.s, scale, origin);
}

// Solve for one point, and write the answer.
inline void answer_point(const Rows<double>& rows, const Batch& batch, const Results& out, std::int64_t to,
                         PriceSpace& v) {
    Workspace<double>& w = v.w;
    Point p = point_of(rows, batch, to);
    read_box(p, w);
    enter(rows, p, w.bounded, w.s);
    SafeAnswer found = {w.some ? UNRESOLVED : INFEASIBLE, 0.0, {0.0, 0.0, 0.0}, ENOUGH};
    if (w.some && p.size < INF) found = answer_for_price(v, p, batch.factor);
    out.status[to] = found.status;
    if (out.width && w.some) copy_line(w.hard.mu, out.multipliers + to * out.width, w.hard.m);
    if (found.status != OPTIMAL) {
        write_nothing(out, to, rows.d);
        return;
    }
    out.gap[to] = found.gap;
    out.reach[to] = reach_of(w.hard, w.s, found.sizes.step);
    out.close[to] = found.room == CLOSE || batch.factor < 1.0;
    leave(w.s, rows.inverse);
    if (found.sizes.step > NEAR * std::sqrt(found.sizes.square)) polish_answer(v, rows.scale, rows.origin);
    copy_line(w.s.z, out.points + to * rows.d, rows.d);
}

// Find the answers of least price of problems start to stop.
inline void price_chunk(const Rows<double>& rows, const Batch& batch, const Results& out, std::int64_t start,
                        std::int64_t stop, PriceSpace& v) {
    enter_prices(rows, batch, v.x);
    list_rows(rows, {}, v.w);
    for (std::int64_t to = start; to < stop && !interrupted(); ++to) answer_point(rows, batch, out, to, v);
}

}  // namespace VOICECF_SET
}  // namespace voicecf

// Points and their answers of least price: the simplex method (simplex.hpp), and of answers of one price that of
// least cost (ties.hpp).
#pragma once

#include "project.hpp"
#include "ties.hpp"

namespace voicecf {
namespace VOICECF_SET {

// Working memory: that of a projection, of the simplex method, and of ties.
struct PriceSpace {
    Workspace<double> w;
    Simplex x;
    Tie tie;
};

inline void lay_out(Arena& arena, const Rows<double>& rows, PriceSpace& v) {
    lay_out(arena, rows, v.w);
    lay_out(arena, v.x, rows.count, rows.d, rows.wide);
    lay_out(arena, v.tie, rows.count, rows.d, rows.wide);
}

// Convert prices of coordinates to prices of their steps.
inline void enter_prices(const Rows<double>& rows, const Batch& batch, Simplex& x) {
    for (int i = 0; i < rows.d; ++i) {
        x.up[i] = batch.up[i] * rows.inverse[i];
        x.down[i] = batch.down[i] * rows.inverse[i];
    }
}

// Solve with rows as they are.
inline SafeAnswer least_price(PriceSpace& v, double factor) {
    ActiveSet& a = v.w.hard;
    Steps& s = v.w.s;
    SafeAnswer found = {solve_safely(a, s, LeastPrice{v.x}), 0.0, {0.0, 0.0, 0.0}, ENOUGH};
    if (found.status != OPTIMAL) return found;
    snap_basic(a, v.x, s);
    found.gap = gap_of(a, v.x, s);
    break_tie(v.tie, a, v.x, s);
    if (v.tie.tied) found.gap = gap_of(a, v.x, s);
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
    ActiveSet f = v.tie.face;
    f.m = a.m;
    f.u = a.u;
    f.offsets = a.offsets;
    f.base = a.base;
    f.b = a.b;
    for (int j = 0; j < a.m; ++j) f.mu[j] = a.mu[j] > 0.0 || (v.tie.tied && f.mu[j] > 0.0);
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

// The least price of what a node leaves: a linear programme over the convex hull of its choices.
//
// Numbers are coordinates, with their prices for a step up and down. A column of levels becomes a coordinate for
// each level, its share s_l >= 0, with the price of that level:
//
//     y = sum_l s_l y_l,     sum_l s_l <= 1,     and -sum_l s_l <= -1 where the column may not keep its value.
//
// So the programme is that of the simplex method (simplex.hpp) with more coordinates and rows, and its multipliers
// of the first rows give the largest Lagrangian of all, as long as any number of columns may move.
#pragma once

#include "choices.hpp"
#include "ties.hpp"

namespace voicecf {
namespace VOICECF_SET {

// Shares closer than this to 0 or 1 are that.
constexpr double WHOLE_SHARE = 1e-12;
// Slopes of prices behind a curve are measured over this share of what is known of it, at least.
constexpr double NARROW = 1e-7;

// Working memory. Shares stand behind the coordinates, in the order of levels.
struct Lifted {
    ActiveSet a;
    Simplex x;
    Steps s;
    double* u;
};

inline void lay_out(Arena& arena, Lifted& k, const Column* columns, int many, int levels, int m, int d) {
    int rows = m;
    for (int c = 0; c < many; ++c) rows += columns[c].freedom == LEVELS ? 2 : 0;
    const int size = d + levels, wide = (size + 7) / 8 * 8;
    lay_out(arena, k.s, size, wide);
    lay_out(arena, k.a, rows, size, wide, false);
    lay_out(arena, k.x, rows, size, wide);
    k.u = arena.take<double>(std::size_t(rows) * wide);
    k.a.u = k.u;
}

// Set the rows about the shares of a column of levels, the first of which is row j.
inline void set_shares(const Lifted& k, const Options& o, const Node& node, int c, int j) {
    const Column& column = o.columns[c];
    const Whole first = o.d + column.level;
    const bool moves = node.flags(c) & MOVES, keeps = node.flags(c) & KEEPS;
    double *up = k.u + std::size_t(j) * k.a.wide, *down = up + k.a.wide;
    fill(up, 0.0, 2 * k.a.wide);
    for (Whole l = 0; l < column.count; ++l) {
        const bool some = moves && node.levels(column)[l];
        k.s.low[first + l] = 0.0;
        k.s.high[first + l] = some ? 1.0 : 0.0;
        k.x.up[first + l] = some ? o.fees[column.level + l] : 0.0;
        k.x.down[first + l] = 0.0;
        up[first + l] = 1.0;
        down[first + l] = -1.0;
    }
    k.a.b[j] = 1.0;
    k.a.b[j + 1] = keeps ? 0.0 : -1.0;
    k.a.tol[j] = k.a.tol[j + 1] = LOOSE;
}

// What a step of a column behind a curve costs, as a number on its chords or as the nearest option.
inline double price_of_any(const Options& o, int c, double y) {
    const Column& column = o.columns[c];
    if (column.freedom == GRID && column.count > 0) return price_of_option(o, c, grid_near(o, c, y, 0, column.count - 1));
    return y == 0.0 ? 0.0 : on_chord(piece_around(o, c, y), y);
}

// The slope of a line for the prices behind a curve from one step to a further one: from no change the steepest that
// lies below them, as far as they are known. Only multipliers depend on it, no bound does.
inline double slope_in_node(const Options& o, const Node& node, int c, double near, double far) {
    const Column& column = o.columns[c];
    const bool grid = column.freedom == GRID;
    const Knots k = knots_of(*o.curves, o.problem, c);
    const double low = least(near, far), high = most(near, far);
    if (near != 0.0) {  // over narrow intervals prices differ by rounding
        const double ends[] = {step_to(o, column.first, k.z[0]), step_to(o, column.first, k.z[k.count - 1])};
        const double more = NARROW * (ends[1] - ends[0]), from = clip(most(low, ends[0]) - more, low > 0.0 ? 0.0 : -INF, INF),
                     to = clip(least(high, ends[1]) + more, -INF, low > 0.0 ? INF : 0.0);
        return from < to ? std::fabs(price_of_any(o, c, to) - price_of_any(o, c, from)) / (to - from) : 0.0;
    }
    double ratio = INF;
    for (Whole at = grid ? node.begin(c) : 0; at <= (grid ? node.end(c) : k.count - 1); ++at) {
        const double y = grid ? option_step(o, c, at, 0) : step_to(o, column.first, k.z[at]);
        if (!(low <= y && y <= high) || y == 0.0) continue;
        const double price = grid ? price_of_option(o, c, at) : price_of_value(o, c, k.u[at], y);
        ratio = least(ratio, price / std::fabs(y));
    }
    return ratio < INF ? ratio : 0.0;
}

// Set the programme of a node, whose hull is that of `s`; rows and tolerances of numbers are those of `hard`.
inline void set_programme(const Lifted& k, const ActiveSet& hard, const Steps& s, const Options& o, const Node& node) {
    const int m = hard.m;
    for (int j = 0; j < m; ++j) {
        double* row = k.u + std::size_t(j) * k.a.wide;
        fill(row, 0.0, k.a.wide);
        std::memcpy(row, row_of(hard, j), o.d * sizeof(double));
        k.a.b[j] = hard.b[j];
        k.a.tol[j] = hard.tol[j];
    }
    for (int i = 0; i < k.a.d; ++i) k.a.tol[k.a.m + i] = i < o.d ? hard.tol[m + i] : LOOSE;
    for (int i = 0; i < o.d; ++i) {
        k.s.low[i] = s.low[i];
        k.s.high[i] = s.high[i];
        k.x.up[i] = o.up[i];
        k.x.down[i] = o.down[i];
    }
    for (int c = 0; c < o.many; ++c) {
        const Whole i = o.columns[c].first;
        if (!is_bent(o, c)) continue;
        k.x.up[i] = slope_in_node(o, node, c, most(s.low[i], 0.0), s.high[i]);
        k.x.down[i] = slope_in_node(o, node, c, least(s.high[i], 0.0), s.low[i]);
    }
    int next = m;
    for (int c = 0; c < o.many; ++c) {
        const Column& column = o.columns[c];
        if (column.freedom != LEVELS) continue;
        set_shares(k, o, node, c, next);
        next += 2;
        for (Whole e = 0; e < column.width; ++e) k.s.low[column.first + e] = k.s.high[column.first + e] = 0.0;
        for (int j = 0; j < m; ++j) {
            double* row = k.u + std::size_t(j) * k.a.wide;
            for (Whole l = 0; l < column.count; ++l)
                row[o.d + column.level + l] = option_value(o, c, l, row, NOTHING);
            for (Whole e = 0; e < column.width; ++e) row[column.first + e] = 0.0;
        }
    }
}

// Set the step y from the shares of levels.
inline void read_step(const Lifted& k, const Options& o, double* y) {
    for (int i = 0; i < o.d; ++i) y[i] = k.s.y[i];
    for (int c = 0; c < o.many; ++c) {
        const Column& column = o.columns[c];
        for (Whole l = 0; l < (column.freedom == LEVELS ? column.count : 0); ++l) {
            const double share = k.s.y[o.d + column.level + l];
            const double part = share < WHOLE_SHARE ? 0.0 : share > 1.0 - WHOLE_SHARE ? 1.0 : share;
            for (Whole e = 0; e < (part > 0.0 ? column.width : 0); ++e)
                y[column.first + e] += part * option_step(o, c, l, e);
        }
    }
}

// Find the least price of a node's hull: a step, and multipliers mu.
inline Status cheapest_of_hull(Lifted& k, const ActiveSet& hard, const Options& o, const Node& node, Steps& s,
                               double* mu) {
    set_programme(k, hard, s, o, node);
    const Status status = solve_safely(k.a, k.s, LeastPrice{k.x});
    if (status == OPTIMAL) {
        snap_basic(k.a, k.x, k.s);
        read_step(k, o, s.y);
    }
    for (int j = 0; j < hard.m; ++j) mu[j] = k.a.mu[j];
    return status;
}

// How undecided a programme leaves a column of levels: 1 less its largest share.
inline double undecided(const Lifted& k, const Options& o, const Node& node, int c) {
    const Column& column = o.columns[c];
    double largest = 0.0, sum = 0.0;
    for (Whole l = 0; l < column.count; ++l) {
        const double share = k.s.y[o.d + column.level + l];
        largest = most(largest, share);
        sum += share;
    }
    const double left = 1.0 - (node.flags(c) & KEEPS ? most(largest, 1.0 - sum) : largest);
    return left > WHOLE_SHARE ? left : 0.0;
}

}  // namespace VOICECF_SET
}  // namespace voicecf

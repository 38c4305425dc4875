// Choices: what the columns of a row may still do, and the bounds that follow from it.
//
// A column may take any number within bounds, one of a sorted grid, one of listed levels, or keep its
// value (a step of 0). Numbers and grids may have a gap around the own value, where changes are too small. A
// *node* holds for every column which of these are left. Three things can be computed column by column: the
// hull of a node; the least value of the Lagrangian f(y) + mu . (U y - b) over its true choices, where only
// so many columns may move; and which choices no better answer contains. What an answer is the least of, f, is a sum
// over columns: 1/2 |y|^2, or prices of steps and of levels. The search over nodes is in branch.hpp.
#pragma once

#include "curves.hpp"

namespace voicecf {

constexpr Whole ANY = 0, GRID = 1, LEVELS = 2;
// Flags of a column in a node: it may keep its value, it may move, it counts as changed (moved or not).
constexpr Whole KEEPS = 1, MOVES = 2, COUNTS = 4;
// Picks that are no option: the column keeps its value, or takes the number that is in the step. Options of a
// long grid are counted from its middle, so they may be negative.
constexpr Whole OWN = -(Whole(1) << 62), NUMBER = OWN + 1;
// An option closer to the row's own value than this share of the grid's pitch is that value.
constexpr double SAME = 1e-6;
// Relative difference below which a bound has reached the best answer.
constexpr double REACHED = 1e-9;
// Rounding errors of a Lagrangian, as a share of its terms.
constexpr double ROUNDED = 64 * EPS;

// What an answer is the least of. Of NOTHING, a Lagrangian above 0 proves that no choice satisfies all rows.
enum Goal { NOTHING, SQUARES, PRICES };

// Where a column's coordinates, options and levels start, and how many there are.
struct Column {
    Whole first, width, freedom, start, count, level;
};

// What lies between `below` and `above` is no choice: numbers, as coordinates and as steps, and options of a
// grid. There is no gap where nothing lies between them.
struct Gap {
    double below, above, low, high;
    Whole last, first;
};

// The choices of one row, as steps. A grid with a positive pitch needs no list.
struct Options {
    const Column* columns;
    int many, d;
    double* grids;   // (many, 2): base and pitch
    double* listed;  // steps of listed options, a level after another
    double *low, *high;  // any numbers: the interval that the node at hand leaves
    const double *at, *scale;  // the row, and the scale of steps
    Gap* gaps;
    double *up, *down, *fees;  // prices of each coordinate's step up and down, and of each level
    // Columns behind a curve that have a price, for which `up` and `down` are those of the user's units; the user's own
    // values; and which problem's curves they are. No such columns: null.
    const std::uint8_t* bent;
    double* own;
    const Curves* curves;
    Whole problem;
};

// Unit rows and slacks of one row's problem.
struct Slacks {
    int m, d, wide;
    const double *u, *b;
};

// Least values of the Lagrangian: its slope g = U' mu, and for each column the least value, the choice that
// has it, and whether the column is among those that move.
struct Lagrangian {
    double *g, *value;
    Whole *pick, *taken;
    int left;  // columns that may move beyond those that count
};

// A value of the Lagrangian, and the smallest gain among the columns that move: what another column has to
// replace.
struct Value {
    double total, worst;
};

namespace VOICECF_SET {

// A node: flags, first and last option of grids, then 0 or 1 for every level; and the interval of coordinates
// of any numbers.
struct Node {
    Whole* data;
    double* ends;
    int many, size;

    double& from(int c) const { return ends[c]; }
    double& to(int c) const { return ends[many + c]; }
    Whole& flags(int c) const { return data[c]; }
    Whole& begin(int c) const { return data[many + c]; }
    Whole& end(int c) const { return data[2 * many + c]; }
    Whole* levels(const Column& column) const { return data + 3 * many + column.level; }
};

// Step of the e-th coordinate of column c if it takes option `at`.
inline double option_step(const Options& o, int c, Whole at, Whole e) {
    const double base = o.grids[2 * c], pitch = o.grids[2 * c + 1];
    if (pitch > 0.0) {
        const double y = base + double(at) * pitch;
        return std::fabs(y) < SAME * pitch ? 0.0 : y;
    }
    return o.listed[o.columns[c].start + at * o.columns[c].width + e];
}

// Option among first..last of a grid that lies next to the step y.
inline Whole grid_near(const Options& o, int c, double y, Whole first, Whole last) {
    const double base = o.grids[2 * c], pitch = o.grids[2 * c + 1];
    if (pitch > 0.0) return Whole(std::floor(clip((y - base) / pitch, double(first), double(last)) + 0.5));
    const double* options = o.listed + o.columns[c].start;
    // Far beyond the options their distances are equal by rounding.
    if (y >= options[last]) return last;
    Whole below = first, above = last;  // the answer is one of these, or between
    while (above - below > 1) {
        const Whole middle = (below + above) / 2;
        if (options[middle] <= y)
            below = middle;
        else
            above = middle;
    }
    return std::fabs(options[below] - y) <= std::fabs(options[above] - y) ? below : above;
}

// Step to a coordinate.
inline double step_to(const Options& o, Whole i, double z) { return o.scale[i] * (z - o.at[i]); }

// Option among first..last of a grid that is a choice and lies next to the step y.
inline Whole option_near(const Options& o, int c, double y, Whole first, Whole last) {
    const Whole near = grid_near(o, c, y, first, last);
    const Gap& gap = o.gaps[c];
    if (!(gap.last < near && near < gap.first)) return near;
    if (gap.last < first || gap.first > last) return gap.first <= last ? gap.first : (gap.last >= first ? gap.last : near);
    const double below = option_step(o, c, gap.last, 0), above = option_step(o, c, gap.first, 0);
    return y - below <= above - y ? gap.last : gap.first;
}

// Number of a column's interval that is a choice and lies next to the step y.
inline double number_near(const Options& o, int c, double y) {
    const Whole i = o.columns[c].first;
    const Gap& gap = o.gaps[c];
    const double near = clip(y, o.low[i], o.high[i]);
    if (!(gap.low < near && near < gap.high)) return near;
    if (gap.low < o.low[i]) return gap.high;
    if (gap.high > o.high[i]) return gap.low;
    return y - gap.low <= gap.high - y ? gap.low : gap.high;
}

// Move the ends of what a column may move to out of its gap; flags say if nothing is left.
inline void leave_gap(const Options& o, const Node& node, int c) {
    const Column& column = o.columns[c];
    const Gap& gap = o.gaps[c];
    if (column.freedom == LEVELS || !(node.flags(c) & MOVES)) return;
    if (column.freedom == GRID) {
        if (gap.last < node.begin(c) && node.begin(c) < gap.first) node.begin(c) = gap.first;
        if (gap.last < node.end(c) && node.end(c) < gap.first) node.end(c) = gap.last;
    } else {
        if (gap.below < node.from(c) && node.from(c) < gap.above) node.from(c) = gap.above;
        if (gap.below < node.to(c) && node.to(c) < gap.above) node.to(c) = gap.below;
        o.low[column.first] = step_to(o, column.first, node.from(c));
        o.high[column.first] = step_to(o, column.first, node.to(c));
    }
    const bool some = column.freedom == GRID ? node.begin(c) <= node.end(c) : node.from(c) <= node.to(c);
    if (!some) node.flags(c) &= KEEPS | COUNTS;
}

// The least and the largest step of coordinate e of a column in a node.
inline void hull_of_coordinate(const Options& o, const Node& node, int c, Whole e, double& low,
                               double& high) {
    const Column& column = o.columns[c];
    const Whole i = column.first + e;
    low = INF;
    high = -INF;
    if (node.flags(c) & KEEPS) low = high = 0.0;
    if (!(node.flags(c) & MOVES)) return;
    if (column.freedom == ANY) {
        low = least(low, o.low[i]);
        high = most(high, o.high[i]);
        return;
    }
    const bool levels = column.freedom == LEVELS;
    for (Whole k = 0; k < (levels ? column.count : 2); ++k) {
        if (levels && !node.levels(column)[k]) continue;
        const double y = option_step(o, c, levels ? k : (k ? node.end(c) : node.begin(c)), e);
        low = least(low, y);
        high = most(high, y);
    }
}

// Set the smallest box around the choices that are left; false where a column has none. A column whose
// only option is what it has does not move.
inline bool hull_of(const Options& o, const Node& node, double* low, double* high) {
    bool some = true;
    for (int c = 0; c < o.many; ++c) {
        bool still = true;
        leave_gap(o, node, c);
        for (Whole e = 0; e < o.columns[c].width; ++e) {
            const Whole i = o.columns[c].first + e;
            hull_of_coordinate(o, node, c, e, low[i], high[i]);
            some = some && low[i] <= high[i];
            still = still && low[i] == 0.0 && high[i] == 0.0;
        }
        if (still) node.flags(c) &= KEEPS | COUNTS;
    }
    return some;
}

// Remove the options of a grid outside of low..high; false if none is left.
inline bool narrow_grid(const Options& o, const Node& node, int c, double low, double high) {
    const Whole first = node.begin(c), last = node.end(c);
    const Whole below = grid_near(o, c, low, first, last), above = grid_near(o, c, high, first, last);
    node.begin(c) = option_step(o, c, below, 0) < low ? below + 1 : below;
    node.end(c) = option_step(o, c, above, 0) > high ? above - 1 : above;
    return node.begin(c) <= node.end(c);
}

// The price of a step of a coordinate.
inline double price_of_step(const Options& o, Whole i, double y) {
    const double price = y > 0.0 ? o.up[i] : -o.down[i];
    return price != 0.0 && y != 0.0 ? price * y : 0.0;  // open sides may be free, and 0 times infinite is NaN
}

inline bool is_bent(const Options& o, int c) { return o.bent && o.bent[c]; }

// The price of the user's value u of a column behind a curve, on the side of the step y.
inline double price_of_value(const Options& o, int c, double u, double y) {
    const Whole i = o.columns[c].first;
    const double price = y == 0.0 ? 0.0 : y > 0.0 ? o.up[i] : o.down[i];
    return price > 0.0 ? price * std::fabs(u - o.own[c]) : 0.0;
}

// A part of a curve from one knot to the next: steps and prices at its ends, and how far prices lie below and above
// the chord.
struct Piece {
    double from, to, first, last, below, above;
};

inline Piece piece_of(const Options& o, int c, const Knots& k, int at) {
    const Whole i = o.columns[c].first;
    const double from = step_to(o, i, k.z[at]), to = step_to(o, i, k.z[at + 1]), side = from + to;
    const double price = side > 0.0 ? o.up[i] : o.down[i];
    const bool more = k.u[at] + k.u[at + 1] > 2.0 * o.own[c];
    return {from, to, price_of_value(o, c, k.u[at], side), price_of_value(o, c, k.u[at + 1], side),
            price * (more ? k.under[at] : k.over[at]), price * (more ? k.over[at] : k.under[at])};
}

// The price on a piece's chord.
inline double on_chord(const Piece& p, double y) {
    if (y <= p.from || !(p.from < p.to)) return p.first;
    return y >= p.to ? p.last : p.first + (y - p.from) / (p.to - p.from) * (p.last - p.first);
}

// The piece around a step, or the one next to it.
inline Piece piece_around(const Options& o, int c, double y) {
    const Knots k = knots_of(*o.curves, o.problem, c);
    const Whole i = o.columns[c].first;
    return piece_of(o, c, k, smaller_of(knot_below(k, o.at[i] + y / o.scale[i]), k.count - 2));
}

// What any number of a column costs at a step: behind a curve, at most.
inline double price_of_number(const Options& o, int c, double y) {
    if (!is_bent(o, c)) return price_of_step(o, o.columns[c].first, y);
    if (y == 0.0) return 0.0;
    const Piece p = piece_around(o, c, y);
    if (y < p.from || y > p.to) return INF;  // nothing is known of the curve there
    return on_chord(p, y) + (y == p.from || y == p.to ? 0.0 : p.above);
}

// The step with the least value of price + slope y on a curve, and a lower bound of it, over a column's interval.
struct Lowest {
    double y, value;
};

inline Lowest lowest_on_curve(const Options& o, int c, double slope) {
    const Whole i = o.columns[c].first;
    const double low = o.low[i], high = o.high[i];
    const Knots k = knots_of(*o.curves, o.problem, c);
    Lowest found = {clip(0.0, low, high), INF};
    const auto look_at = [&](double y, double price, double below) {
        const double value = price - below + (slope != 0.0 ? slope * y : 0.0);
        if (value < found.value) found = {y, value};
    };
    for (int at = 0; at + 1 < k.count; ++at) {
        const Piece p = piece_of(o, c, k, at);
        const double from = most(p.from, low), to = least(p.to, high);
        if (!(from <= to)) continue;
        look_at(from, on_chord(p, from), p.below);
        look_at(to, on_chord(p, to), p.below);
    }
    // Beyond the knots prices are at least those of the last ones.
    const Piece first = piece_of(o, c, k, 0), last = piece_of(o, c, k, k.count - 2);
    if (low < first.from) look_at(slope > 0.0 ? low : least(first.from, high), first.first, 0.0);
    if (high > last.to) look_at(slope < 0.0 ? high : most(last.to, low), last.last, 0.0);
    return found;
}

// The price of option `at` of column c.
inline double price_of_option(const Options& o, int c, Whole at) {
    const Column& column = o.columns[c];
    if (is_bent(o, c)) return price_of_value(o, c, o.curves->worth[column.start + at], option_step(o, c, at, 0));
    return column.freedom == LEVELS ? o.fees[column.level + at] : price_of_step(o, column.first, option_step(o, c, at, 0));
}

// Value of f + g y if any numbers of column c take the step y.
inline double number_value(const Options& o, int c, double y, double slope, Goal aim) {
    const Whole i = o.columns[c].first;
    if (aim == SQUARES) return y * (0.5 * y + slope);
    if (aim == PRICES) slope += y > 0.0 ? o.up[i] : -o.down[i];
    return slope != 0.0 && y != 0.0 ? y * slope : 0.0;  // y is infinite on an open side, and 0 times that is NaN
}

// The step with the least value of a coordinate's price + slope y; infinite where there is none.
inline double cheapest_step(const Options& o, Whole i, double slope) {
    return slope + o.up[i] < 0.0 ? INF : slope - o.down[i] > 0.0 ? -INF : 0.0;
}

// The number of a column's interval with the least value of f + slope y.
inline double best_number(const Options& o, int c, double slope, Goal aim) {
    const Whole i = o.columns[c].first;
    if (aim == SQUARES) return number_near(o, c, -slope);
    if (aim == NOTHING) return slope > 0.0 ? o.low[i] : o.high[i];
    if (is_bent(o, c)) return number_near(o, c, lowest_on_curve(o, c, slope).y);
    const double best = clip(cheapest_step(o, i, slope), o.low[i], o.high[i]);
    const Gap& gap = o.gaps[c];
    if (!(gap.low < best && best < gap.high)) return best;
    if (gap.low < o.low[i]) return gap.high;
    if (gap.high > o.high[i]) return gap.low;
    return number_value(o, c, gap.low, slope, aim) <= number_value(o, c, gap.high, slope, aim) ? gap.low : gap.high;
}

// Value of f + g y if column c takes option `at`.
inline double option_value(const Options& o, int c, Whole at, const double* g, Goal aim) {
    const double share = aim == SQUARES ? 1.0 : 0.0;
    double value = aim == PRICES ? price_of_option(o, c, at) : 0.0;
    for (Whole e = 0; e < o.columns[c].width; ++e) {
        const double y = option_step(o, c, at, e);
        value += y * (0.5 * share * y + g[o.columns[c].first + e]);
    }
    return value;
}

// Whether an option of a grid is left in a node.
inline bool is_option(const Options& o, const Node& node, int c, Whole k) {
    const Gap& gap = o.gaps[c];
    return node.begin(c) <= k && k <= node.end(c) && !(gap.last < k && k < gap.first);
}

// The option of a grid with the least price + slope y: one of those around the step with that, or, behind a curve,
// any.
inline Whole cheapest_option(const Options& o, const Node& node, int c, const double* g) {
    const Whole i = o.columns[c].first;
    const Whole near = grid_near(o, c, cheapest_step(o, i, g[i]), node.begin(c), node.end(c));
    const Whole tried[] = {near, near - 1, near + 1, o.gaps[c].last, o.gaps[c].first};
    Whole chosen = near;
    double best = INF;
    const auto look_at = [&](Whole k) {
        if (!is_option(o, node, c, k) || !(option_value(o, c, k, g, PRICES) < best)) return;
        chosen = k;
        best = option_value(o, c, k, g, PRICES);
    };
    for (Whole k : tried) look_at(k);
    for (Whole k = node.begin(c); is_bent(o, c) && k <= node.end(c); ++k) look_at(k);
    return chosen;
}

// Options of a column to compare with an aim: those from first to before last.
inline void candidates(const Options& o, const Node& node, int c, double aim, Whole& first,
                       Whole& last) {
    first = 0;
    last = o.columns[c].count;
    if (o.columns[c].freedom != GRID) return;
    first = option_near(o, c, aim, node.begin(c), node.end(c));
    last = first + 1;
}

// Option with the least Lagrangian value, and that value.
inline Whole best_option(const Options& o, const Node& node, int c, const double* g, Goal aim,
                         double& best) {
    const Column& column = o.columns[c];
    const bool grid = column.freedom == GRID;
    Whole chosen = OWN, first = 0, last = column.count;
    best = INF;
    if (grid) {
        const double slope = g[column.first];
        first = slope < 0.0 ? node.end(c) : node.begin(c);
        if (aim == SQUARES) first = option_near(o, c, -slope, node.begin(c), node.end(c));
        if (aim == PRICES) first = cheapest_option(o, node, c, g);
        last = first + 1;
    }
    for (Whole k = first; k < last; ++k) {
        if (!grid && !node.levels(column)[k]) continue;
        const double value = option_value(o, c, k, g, aim);
        if (value < best) {
            best = value;
            chosen = k;
        }
    }
    return chosen;
}

// Set the least Lagrangian value of each column over its choices, and the choice.
inline void column_values(const Options& o, const Node& node, Goal aim, Lagrangian& l) {
    for (int c = 0; c < o.many; ++c) {
        l.value[c] = INF;
        l.pick[c] = OWN;
        if (node.flags(c) & MOVES && o.columns[c].freedom == ANY) {
            const Whole i = o.columns[c].first;
            const double g = l.g[i];
            if (aim == PRICES && is_bent(o, c))
                l.value[c] = lowest_on_curve(o, c, g).value;
            else
                l.value[c] = number_value(o, c, best_number(o, c, g, aim), g, aim);
            l.pick[c] = NUMBER;
        } else if (node.flags(c) & MOVES) {
            l.pick[c] = best_option(o, node, c, l.g, aim, l.value[c]);
        }
        if (node.flags(c) & KEEPS && !(l.value[c] < 0.0)) {
            l.value[c] = 0.0;
            l.pick[c] = OWN;
        }
    }
}

// Sum the least values of the columns that count and of the best `left` others, and mark these as taken.
inline Value take_best(const Node& node, int many, Lagrangian& l) {
    double total = 0.0, worst = 0.0;
    int wanting = 0;
    for (int c = 0; c < many; ++c) {
        l.taken[c] = node.flags(c) & COUNTS;
        if (l.taken[c])
            total += l.value[c];
        else if (l.value[c] < 0.0)
            ++wanting;
    }
    for (int turn = 0; turn < smaller_of(l.left, wanting); ++turn) {
        int best = 0;
        worst = 0.0;
        for (int c = 0; c < many; ++c)
            if (!l.taken[c] && l.value[c] < worst) {
                best = c;
                worst = l.value[c];
            }
        l.taken[best] = 1;
        total += worst;
    }
    for (int c = 0; c < many; ++c)
        if (!l.taken[c]) l.pick[c] = OWN;
    return {total, l.left <= wanting ? worst : 0.0};
}

// Reset slopes of any numbers without a bound that are beyond their prices by rounding of their terms alone.
inline void hold_open_sides(const Slacks& s, const double* mu, const Options& o, Lagrangian& l) {
    for (int c = 0; c < o.many; ++c) {
        const Whole i = o.columns[c].first;
        const double over = o.high[i] < INF ? 0.0 : -l.g[i] - o.up[i], under = o.low[i] > -INF ? 0.0 : l.g[i] - o.down[i];
        if (o.columns[c].freedom != ANY || is_bent(o, c) || !(most(over, under) > 0.0)) continue;
        double terms = 0.0;
        for (int j = 0; j < s.m; ++j) terms += std::fabs(mu[j] * s.u[std::size_t(j) * s.wide + i]);
        if (most(over, under) <= LOOSE * terms) l.g[i] = over > 0.0 ? -o.up[i] : o.down[i];
    }
}

// Least Lagrangian value over the choices of a node.
inline Value lagrangian(const Slacks& s, const double* mu, Goal aim, const Options& o,
                        const Node& node, Lagrangian& l) {
    fill(l.g, 0.0, s.wide);
    for (int j = 0; j < s.m; ++j)
        if (mu[j] != 0.0) add_to(l.g, mu[j], s.u + std::size_t(j) * s.wide, s.wide);
    if (aim == PRICES) hold_open_sides(s, mu, o, l);
    column_values(o, node, aim, l);
    Value found = take_best(node, o.many, l);
    double terms = 0.0;
    for (int c = 0; c < o.many; ++c) terms += l.taken[c] ? std::fabs(l.value[c]) : 0.0;
    for (int j = 0; j < s.m; ++j) {
        found.total -= mu[j] * s.b[j];
        terms += std::fabs(mu[j] * s.b[j]);
    }
    // Large terms that cancel leave rounding errors, and this is a lower bound.
    const double rounded = aim == PRICES ? least(ROUNDED, (s.m + o.many + 8) * EPS) : ROUNDED;
    if (aim != NOTHING) found.total -= rounded * terms;
    return found;
}

// Whether the sum mu . U of rows, or a single one, proves that no choice of a node satisfies all rows. Single
// rows are looked at only where not all columns may move at once: `propagate` has seen to them otherwise.
inline bool disproved(const Slacks& s, const double* mu, double* trial, const Options& o,
                      const Node& node, Lagrangian& l) {
    int undecided = 0;
    for (int c = 0; c < o.many; ++c)
        undecided += node.flags(c) & MOVES && !(node.flags(c) & COUNTS);
    for (int j = l.left < undecided ? 0 : s.m; j <= s.m; ++j) {
        for (int i = 0; i < s.m; ++i) trial[i] = j == s.m ? mu[i] : (i == j ? 1.0 : 0.0);
        const double value = lagrangian(s, trial, NOTHING, o, node, l).total;
        double terms = 0.0;
        for (int i = 0; i < s.m; ++i) terms += std::fabs(trial[i] * s.b[i]);
        for (int c = 0; c < o.many; ++c) terms += l.taken[c] ? std::fabs(l.value[c]) : 0.0;
        if (value > LOOSE * terms) return true;
    }
    return false;
}

// Set r = U y - b for the picked choices, the subgradient; returns the squared length of its part that keeps
// mu >= 0.
inline double residual_of(const Slacks& s, const double* mu, const Options& o, const Lagrangian& l, Goal aim,
                          double* r) {
    for (int j = 0; j < s.m; ++j) r[j] = -s.b[j];
    for (int c = 0; c < o.many; ++c) {
        for (Whole e = 0; e < o.columns[c].width; ++e) {
            const Whole i = o.columns[c].first + e;
            double y = 0.0;
            if (l.pick[c] == NUMBER)
                y = best_number(o, c, l.g[i], aim);
            else if (l.pick[c] != OWN)
                y = option_step(o, c, l.pick[c], e);
            for (int j = 0; j < (y != 0.0 ? s.m : 0); ++j) r[j] += s.u[std::size_t(j) * s.wide + i] * y;
        }
    }
    double square = 0.0;
    for (int j = 0; j < s.m; ++j)
        if (r[j] > 0.0 || mu[j] > 0.0) square += r[j] * r[j];
    return square;
}

// Multipliers that a climb starts from and ends with, its workspace, its number of steps, and the best energy.
struct Climb {
    double *mu, *trial, *r;
    int steps;
    double best;
    Goal aim;
};

// Subgradient ascent on the Lagrangian with Polyak's step length; returns its value at the best multipliers.
inline Value climb(const Slacks& s, const Climb& k, const Options& o, const Node& node, Lagrangian& l) {
    double bound = -INF, ease = 1.0, square = 1.0;
    for (int j = 0; j < s.m; ++j) k.trial[j] = k.mu[j];
    for (int turn = 0;; ++turn) {
        const bool last = turn == k.steps || !(square > 0.0) || bound >= k.best * (1.0 - REACHED);
        for (int j = 0; j < (last ? s.m : 0); ++j) k.trial[j] = k.mu[j];
        const Value here = lagrangian(s, k.trial, k.aim, o, node, l);
        if (last) return here;
        if (here.total > bound) {
            bound = here.total;
            for (int j = 0; j < s.m; ++j) k.mu[j] = k.trial[j];
        } else {
            ease *= 0.7;
        }
        square = here.total > -INF ? residual_of(s, k.trial, o, l, k.aim, k.r) : 0.0;
        const double aim = k.best < INF ? k.best : 1.5 * std::fabs(here.total) + 1e-300;
        const double length = ease * (aim - here.total) / most(square, 1e-300);
        for (int j = 0; j < s.m; ++j) k.trial[j] = most(k.trial[j] + length * k.r[j], 0.0);
    }
}

// The steps of a coordinate whose price + slope y is at most `room`.
inline void steps_within(const Options& o, Whole i, double room, double slope, double& low, double& high) {
    const double over = slope + o.up[i], under = slope - o.down[i];
    low = room >= 0.0 ? -INF : INF;
    high = room >= 0.0 ? INF : -INF;
    if (room >= 0.0) {
        if (over > 0.0) high = room / over;
        if (under < 0.0) low = room / under;
    } else if (over < 0.0) {
        low = room / over;
        high = INF;
    } else if (under > 0.0) {
        low = -INF;
        high = room / under;
    }
    if (std::fabs(low) < INF) low -= REACHED * std::fabs(low);
    if (std::fabs(high) < INF) high += REACHED * std::fabs(high);
}

// Remove options at the ends of a grid that cost more than `room`; false if none is left.
inline bool trim_grid(const Options& o, const Node& node, int c, double room, const double* g, Goal aim) {
    const double slope = g[o.columns[c].first];
    double low, high;
    if (aim == PRICES && is_bent(o, c)) {
        while (node.begin(c) <= node.end(c) && option_value(o, c, node.begin(c), g, aim) > room) ++node.begin(c);
        while (node.begin(c) <= node.end(c) && option_value(o, c, node.end(c), g, aim) > room) --node.end(c);
        return node.begin(c) <= node.end(c);
    }
    if (aim == PRICES) {
        steps_within(o, o.columns[c].first, room, slope, low, high);
        return narrow_grid(o, node, c, low, high);
    }
    const double radius = std::sqrt(most(2.0 * room + slope * slope, 0.0)) * (1.0 + REACHED);
    return narrow_grid(o, node, c, -slope - radius, -slope + radius);
}

// Remove levels that cost more than `room`; false if none is left.
inline bool trim_levels(const Options& o, const Node& node, int c, double room, const double* g, Goal aim) {
    Whole* levels = node.levels(o.columns[c]);
    bool some = false;
    for (Whole k = 0; k < o.columns[c].count; ++k) {
        if (!levels[k]) continue;
        if (option_value(o, c, k, g, aim) > room)
            levels[k] = 0;
        else
            some = true;
    }
    return some;
}

// Remove the choices that no better answer contains; false if a column has none left. Another choice than the
// Lagrangian's raises its value by the difference. Where no more columns may move, a column that is to move
// has to replace the one with the smallest gain, `worst`.
inline bool trim(const Value& bound, double best, Goal aim, const Options& o, const Node& node,
                 const Lagrangian& l) {
    const double spare = best - bound.total + REACHED * best;
    double following = 0.0;  // gain of the best column that is not taken
    for (int c = 0; c < o.many; ++c)
        if (!l.taken[c]) following = least(following, l.value[c]);
    for (int c = 0; c < o.many; ++c) {
        if (!(node.flags(c) & MOVES)) continue;
        const double room = spare + (l.taken[c] ? l.value[c] : bound.worst);
        bool some;
        if (o.columns[c].freedom == ANY)
            some = l.taken[c] > 0 || l.value[c] <= room;
        else if (o.columns[c].freedom == GRID)
            some = trim_grid(o, node, c, room, l.g, aim);
        else
            some = trim_levels(o, node, c, room, l.g, aim);
        if (node.flags(c) & KEEPS && l.taken[c] && following - l.value[c] > spare)
            node.flags(c) = MOVES | COUNTS;
        if (some) continue;
        if (!(node.flags(c) & KEEPS)) return false;
        node.flags(c) = KEEPS;
    }
    return true;
}

// Least value of row u over the choices that a column has in a node, whose hull is low..high.
inline double least_term(const Options& o, const Node& node, int c, const double* u, const double* low,
                         const double* high) {
    const Column& column = o.columns[c];
    const Whole i = column.first;
    if (column.freedom != LEVELS) return u[i] == 0.0 ? 0.0 : u[i] * (u[i] > 0.0 ? low[i] : high[i]);
    double found = node.flags(c) & KEEPS ? 0.0 : INF;
    for (Whole k = 0; k < (node.flags(c) & MOVES ? column.count : 0); ++k)
        if (node.levels(column)[k]) found = least(found, option_value(o, c, k, u, NOTHING));
    return found;
}

// Remove the choices of a column whose terms in row u exceed the least one by more than `room`; false if
// none is left.
inline bool narrow(const Options& o, const Node& node, int c, const double* u, double room, double* low,
                   double* high) {
    const Column& column = o.columns[c];
    const Whole i = column.first;
    bool moves = node.flags(c) & MOVES, keeps = node.flags(c) & KEEPS;
    if (column.freedom == LEVELS) {
        const double most_term = least_term(o, node, c, u, low, high) + room;
        bool some = false;
        for (Whole k = 0; k < (moves ? column.count : 0); ++k) {
            if (option_value(o, c, k, u, NOTHING) > most_term) node.levels(column)[k] = 0;
            some = some || node.levels(column)[k];
        }
        moves = some;
        keeps = keeps && 0.0 <= most_term;
    } else {
        const double span = room / std::fabs(u[i]);
        if (!(span < high[i] - low[i])) return true;
        const double from = u[i] > 0.0 ? low[i] : high[i] - span, to = u[i] > 0.0 ? low[i] + span : high[i];
        if (moves && column.freedom == GRID) moves = narrow_grid(o, node, c, from, to);
        keeps = keeps && from <= 0.0 && 0.0 <= to;
    }
    const Whole counts = keeps ? node.flags(c) & COUNTS : COUNTS;
    node.flags(c) = (keeps ? KEEPS : 0) | (moves ? MOVES | counts : 0);
    for (Whole e = 0; e < column.width; ++e) hull_of_coordinate(o, node, c, e, low[i + e], high[i + e]);
    return keeps || moves;
}

// Remove, row by row, the choices with which no choice of the other columns satisfies the row; false where a
// row cannot be satisfied. The hull low..high shrinks with the choices.
inline bool propagate(const Slacks& s, const Options& o, const Node& node, double* low, double* high) {
    for (int j = 0; j < s.m; ++j) {
        const double* u = s.u + std::size_t(j) * s.wide;
        double room = s.b[j], terms = std::fabs(s.b[j]);
        for (int c = 0; c < o.many; ++c) {
            const double term = least_term(o, node, c, u, low, high);
            room -= term;
            terms += std::fabs(term);
        }
        room += LOOSE * terms;
        if (room < 0.0) return false;
        for (int c = 0; c < (room < INF ? o.many : 0); ++c)
            if (u[o.columns[c].first] != 0.0 || o.columns[c].freedom == LEVELS)
                if (!narrow(o, node, c, u, room, low, high)) return false;
    }
    return true;
}

// The choice of a column nearest to a step, and its squared distance from it.
inline Whole nearest_choice(const Options& o, const Node& node, int c, const double* y, double& best) {
    const Column& column = o.columns[c];
    Whole chosen = OWN;
    best = INF;
    if (node.flags(c) & KEEPS) {
        best = 0.0;
        for (Whole e = 0; e < column.width; ++e) best += y[column.first + e] * y[column.first + e];
    }
    if (!(node.flags(c) & MOVES)) return chosen;
    if (column.freedom == ANY) {
        const double off = number_near(o, c, y[column.first]) - y[column.first];
        if (best == 0.0 || best < off * off) return OWN;
        best = off * off;
        return NUMBER;
    }
    Whole first, last;
    candidates(o, node, c, y[column.first], first, last);
    for (Whole k = first; k < last; ++k) {
        if (column.freedom == LEVELS && !node.levels(column)[k]) continue;
        double off = 0.0;
        for (Whole e = 0; e < column.width; ++e) {
            const double t = option_step(o, c, k, e) - y[column.first + e];
            off += t * t;
        }
        if (off < best) {
            best = off;
            chosen = k;
        }
    }
    return chosen;
}

// Whether a step changes a column.
inline bool changed(const Options& o, int c, const double* y) {
    for (Whole e = 0; e < o.columns[c].width; ++e)
        if (y[o.columns[c].first + e] != 0.0) return true;
    return false;
}

// The column that is furthest from all its choices, or -1, and how many columns move.
struct Survey {
    int furthest, moved;
};

// Pick the choices nearest to a step.
inline Survey survey(const Options& o, const Node& node, const double* y, Whole* pick) {
    Survey found = {-1, 0};
    double far = 0.0;
    for (int c = 0; c < o.many; ++c) {
        double off;
        pick[c] = nearest_choice(o, node, c, y, off);
        if (off > far) {
            found.furthest = c;
            far = off;
        }
        found.moved += changed(o, c, y);
    }
    return found;
}

// Whether a column may move to numbers on both sides of its gap.
inline bool spans_gap(const Options& o, const Node& node, int c) {
    const Gap& gap = o.gaps[c];
    return gap.below < gap.above && node.from(c) <= gap.below && gap.above <= node.to(c);
}

// Whether a column may keep its value, which is none of the numbers that it may move to.
inline bool keeps_apart(const Options& o, const Node& node, int c) {
    const Whole i = o.columns[c].first;
    return node.flags(c) & KEEPS && number_near(o, c, 0.0) != 0.0 && o.low[i] <= o.high[i];
}

// How many choices a column has left; numbers without a gap count as one.
inline Whole open_choices(const Options& o, const Node& node, int c) {
    const Column& column = o.columns[c];
    Whole some = node.flags(c) & KEEPS;
    if (!(node.flags(c) & MOVES)) return some;
    if (column.freedom == ANY) return 1 + spans_gap(o, node, c) + keeps_apart(o, node, c);
    if (column.freedom == GRID) return some + node.end(c) - node.begin(c) + 1;
    for (Whole k = 0; k < column.count; ++k) some += node.levels(column)[k];
    return some;
}

// How many more columns may change, negative if too many count already. Where none may, columns that do not
// count have to keep their value.
inline int close_counts(const Node& node, int many, int changes) {
    int left = changes;
    for (int c = 0; c < many; ++c) left -= node.flags(c) & COUNTS ? 1 : 0;
    for (int c = 0; c < (left == 0 ? many : 0); ++c)
        if (!(node.flags(c) & COUNTS)) node.flags(c) &= KEEPS;
    return left;
}

}  // namespace VOICECF_SET
}  // namespace voicecf

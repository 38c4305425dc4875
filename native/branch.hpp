// Branch and bound: the best choice of whole numbers, levels and few columns, box by box.
//
// The best choice of a row is, in steps,
//
//     min 1/2 |y|^2   with   U y <= b,   y_c a choice of column c,   at most so many columns moved.
//
// A node is a set of choices that are left. Two lower bounds can cut it off. The first is the projection onto
// the hull of its choices, a box. Its multipliers start the second, which knows that choices are discrete: the
// Lagrangian is a sum over columns, so its least value over the true choices is a sum of least values, one a
// column, of which only so many columns may move. Choices that cannot be part of a better answer are removed.
// Where few sets of choices are left, they are tried one by one (deviations.hpp); else the node is divided in two,
// at the column that promises the largest rise of the bound. The likelier half comes next; where a node is cut off,
// the open node with the least bound does, once an answer is known.
//
// Columns that belong together (unions.hpp) cut the choices of a node to the hull of their boxes, and curved rules
// (curves.hpp) add rows to it. Where its solution breaks them, boxes or bands are divided instead of a column.
//
// Where prices count instead of squares, the hull's bound and its multipliers are those of a linear programme
// (lifted.hpp). A second search finds, of the answers of that price, the one of least squares: a node's Lagrangian
// of prices with multipliers mu, of value L, says of every answer that costs no more than p
//
//     mu . (b - U y) <= p - L,
//
// one more row of the hull, and removes the choices that would raise L above p.
#pragma once

#include <cstdlib>
#include <cstring>

#include "active_set.hpp"
#include "arena.hpp"
#include "curves.hpp"
#include "deviations.hpp"
#include "interrupt.hpp"
#include "lifted.hpp"
#include "unions.hpp"

namespace voicecf {

// The rules of a batch of rows. An array with one row holds for all.
struct Rules {
    const Column* columns;
    int many, levels, listed_size;
    const double *listed, *pitches;
    const std::uint8_t *stay, *allowed, *locked;
    const Whole *least, *most;
    const double *lo, *hi;
    bool own_stay, own_least, own_most, own_allowed, own_lo, own_hi, own_locked;
    const double* gaps;  // (many, 2): coordinates and options around each gap; null where there is none
    const Whole* holes;
    bool own_gaps;
    int changes;
    bool fewest;
    Whole limit;
    Curves curves;
    Unions unions;
    const double *up, *down, *fees;  // prices of coordinates, (d,), and of levels, (1 or n, levels); or null
    bool own_fees;
    const std::uint8_t* bent;  // columns behind curves that have a price, (many,); or null
};

// Answers of a batch of rows.
struct Found {
    double *points, *gap, *reach;
    std::int8_t* status;
    bool* close;
    Whole *changes, *nodes;
    double* stuck;  // (many, 3): intervals in which curves are known too coarsely, and where in them; or null
};

namespace VOICECF_SET {

// The part of an interval around a solution that is divided from the rest of it.
constexpr double AROUND = 1.0 / 16.0;
// A factor of a product is divided at least this share of its interval away from the ends.
constexpr double OFF_ENDS = 0.1;
// Subgradient steps on the multipliers, at the root and at other nodes.
constexpr int CLIMB = 40, CLIMB_BELOW = 3;

// Sets of deviations that are tried, at the root and at other nodes. They are tried in turns, each up to twice the
// raise of the one before; the first is that of so many deviations. Where there are too many deviations, those with a
// quarter of the raise are tried, and so on so many times.
constexpr Whole LISTED = 1 << 16, LISTED_BELOW = 1 << 11;
constexpr int FEW_DEVIATIONS = 8, NARROWINGS = 8;

// A column that active rows hold counts as moving at least so freely, and the smaller of two estimated rises
// of the bound counts so many times.
constexpr double FREELY = 0.02, SMALLER = 5.0;
// A step may violate a row that is stricter than its rule by so many times what counts as tight.
constexpr double SLIPS = 4.0;
// While open nodes take no more numbers than this, the one with the least bound is looked for.
constexpr std::size_t FEW_NUMBERS = std::size_t(1) << 20;

// Open nodes, each with numbers: the ends of its intervals, its parent's multipliers and lower bound.
struct Stack {
    Whole* nodes;
    double* numbers;
    int top, room, size, wide;

    Whole* node(int at) const { return nodes + std::size_t(at) * size; }
    double* of(int at) const { return numbers + std::size_t(at) * wide; }
    double& bound(int at) const { return of(at)[wide - 1]; }
};

// Workspace of the search for one row of the user's table.
struct Search {
    Options options;
    Slacks slacks;
    Choice choice;  // all rows
    ActiveSet hard;
    Steps s;        // the hull or the guess that is projected onto, and its step
    Lagrangian l;
    Boxes boxes;
    Deviations deviations;
    Stack stack;
    Node root, node, other;
    double *y, *best_y, *mu, *trial;
    double* best_ends;  // intervals of the node that the best answer is in
    double* wide_ends;  // those that a guess may use
    double *low, *high, *hull_mu;  // the hull of the node, and the multipliers of its projection
    double *own_u, *own_offsets;  // copies of all rows, where the last ones are those of curved rules
    const Rules* rules;
    Whole row, problem;
    int straight;  // rows that are not those of curved rules
    Band* bands;   // of the columns in curved rules
    Extent* extents;  // of their values
    bool* given;      // whether their value may be none that any number is: the own one, or an option
    bool* held;       // factors of products that a guess holds
    double *stuck, stuck_bound;
    Whole *near, *best_pick;
    double best, unsure, bound;
    double promising;  // deviations are tried up to this difference of the best answer and the bound
    int changes;
    bool found, diving;
    Goal goal;
    bool priced;
    Lifted lifted;
    Simplex simplex;
    Tie tie;
    double cap;             // the most that an answer may cost, in the second search
    double *cut, *cut_mu;   // the row of that search, and the multipliers that it is made of
    double cut_room;
};

// Result of a search: the best energy found, a lower bound of all, and the number of nodes bounded.
struct Ended {
    Status status;
    double energy, bound;
    Whole nodes;
    Room room;
};

inline double half_square(const double* y, int wide) { return 0.5 * dot(y, y, wide); }

// Upper bound, greater than 0, of the energy of all steps in the hull.
inline double most_energy(const Steps& s) {
    double sum = 0.0;
    for (int i = 0; i < s.d; ++i) {
        const double side = most(std::fabs(s.low[i]), std::fabs(s.high[i]));
        sum += side * side;
    }
    return most(0.5 * sum * (1.0 + 1e-6), 1e-300);
}

// Whether some row is violated by every point of a box, beyond rounding of its own terms.
inline bool broken(const Slacks& k, const Steps& s) {
    for (int j = 0; j < k.m; ++j) {
        const double* u = k.u + std::size_t(j) * k.wide;
        double v = -k.b[j], terms = std::fabs(k.b[j]);
        for (int i = 0; i < k.d; ++i) {
            if (u[i] == 0.0) continue;
            const double t = u[i] * (u[i] > 0.0 ? s.low[i] : s.high[i]);
            v += t;
            terms += std::fabs(t);
        }
        if (v > TIGHT * terms) return true;
    }
    return false;
}

// The Lagrangian over the box of steps, a lower bound, less what rounding may have added.
inline double bound_of(const Slacks& k, const double* mu, Steps& s) {
    double value = 0.0, terms = 0.0;
    fill(s.free, 0.0, k.wide);
    for (int j = 0; j < k.m; ++j) {
        if (mu[j] == 0.0) continue;
        add_to(s.free, mu[j], k.u + std::size_t(j) * k.wide, k.wide);
        value -= mu[j] * k.b[j];
        terms += std::fabs(mu[j] * k.b[j]);
    }
    for (int i = 0; i < k.d; ++i) {
        const double g = s.free[i], y = clip(-g, s.low[i], s.high[i]), term = y * (0.5 * y + g);
        value += term;
        terms += std::fabs(term);
    }
    return value - LOOSE * terms;
}

// Project onto the box in f.s: Newton from the multipliers mu, then the active-set method, unless it is to be
// quick. STOPPED says that no point of the box is better than the best answer.
inline Status relax(Search& f, double* mu, bool quick) {
    const double enough = f.best * (1.0 + REACHED);
    if (broken(f.slacks, f.s)) return INFEASIBLE;
    f.choice.mu = mu;
    if (newton(f.choice, f.s, enough)) return OPTIMAL;
    if (quick) return UNRESOLVED;
    if (bound_of(f.slacks, mu, f.s) > enough) return STOPPED;
    const Status status = solve_safely(f.hard, f.s, LeastSquares{enough});
    for (int j = 0; j < f.slacks.m; ++j) mu[j] = f.hard.mu[j];
    return status;
}

// The user's own value of a column.
inline double own_value(const Search& f, int c) {
    const Curves& k = f.rules->curves;
    return k.own[(k.own_values ? f.row * f.options.many : 0) + c];
}

// Whether a column's curve is known at knots.
inline bool has_knots(const Search& f, int c) {
    const Whole* starts = f.rules->curves.starts;
    return starts && starts[c] < starts[c + 1];
}

// Band of a column that takes one option or one number, or keeps its value.
inline Band band_of_pick(const Search& f, int c, Whole pick, double y) {
    const Curves& k = f.rules->curves;
    const Column& column = f.options.columns[c];
    if (pick == OWN) return {0.0, own_value(f, c), own_value(f, c)};
    if (!has_knots(f, c)) return {k.lines[2 * c], k.lines[2 * c + 1], k.lines[2 * c + 1]};
    if (pick != NUMBER) return {0.0, k.worth[column.start + pick], k.worth[column.start + pick]};
    const double at = f.options.at[column.first] + y / f.options.scale[column.first];
    const double z = clip(at, f.node.from(c), f.node.to(c));
    return band_between(knots_of(k, f.problem, c), z, z);
}

// Values of a column between two coordinates.
inline Extent extent_between(const Search& f, int c, double from, double to) {
    const Curves& k = f.rules->curves;
    Band first = {k.lines[2 * c], k.lines[2 * c + 1], k.lines[2 * c + 1]}, last = first;
    if (has_knots(f, c)) {
        first = band_between(knots_of(k, f.problem, c), from, from);
        last = band_between(knots_of(k, f.problem, c), to, to);
    }
    const double one = first.slope != 0.0 ? first.slope * from : 0.0, other = last.slope != 0.0 ? last.slope * to : 0.0;
    return {least(one + first.below, other + last.below), most(one + first.above, other + last.above)};
}

// Coordinate of an option of a grid.
inline double place_of(const Search& f, int c, Whole option) {
    const double pitch = f.rules->pitches[2 * c + 1];
    return pitch > 0.0 ? f.rules->pitches[2 * c] + double(option) * pitch
                       : f.rules->listed[f.options.columns[c].start + option];
}

// Value of an option of a grid.
inline double value_of(const Search& f, int c, Whole option) {
    const Curves& k = f.rules->curves;
    if (has_knots(f, c)) return k.worth[f.options.columns[c].start + option];
    return k.lines[2 * c] * place_of(f, c, option) + k.lines[2 * c + 1];
}

// Values of a column that takes one option or one number, or keeps its value.
inline Extent extent_of_pick(const Search& f, int c, Whole pick, double y) {
    if (pick != OWN && pick != NUMBER) return {value_of(f, c, pick), value_of(f, c, pick)};
    if (pick == OWN) return {own_value(f, c), own_value(f, c)};
    const Whole i = f.options.columns[c].first;
    const double z = clip(f.options.at[i] + y / f.options.scale[i], f.node.from(c), f.node.to(c));
    return extent_between(f, c, z, z);
}

// The interval of any numbers that the node leaves, and that costs no more than the best answer.
inline Extent worthwhile(const Search& f, int c) {
    const Whole i = f.options.columns[c].first;
    const double radius = std::sqrt(2.0 * f.best) * (1.0 + REACHED) / f.options.scale[i], at = f.options.at[i];
    return {most(f.node.from(c), at - radius), least(f.node.to(c), at + radius)};
}

// Values of a column within the choices that the node leaves.
inline Extent extent_in_node(const Search& f, int c) {
    Extent found = {INF, -INF};
    const auto hold = [&found](double one, double other) {
        found.low = least(found.low, least(one, other));
        found.high = most(found.high, most(one, other));
    };
    if (f.node.flags(c) & KEEPS) hold(own_value(f, c), own_value(f, c));
    if (!(f.node.flags(c) & MOVES)) return found;
    if (f.options.columns[c].freedom == GRID) {
        hold(value_of(f, c, f.node.begin(c)), value_of(f, c, f.node.end(c)));
        return found;
    }
    const Extent z = worthwhile(f, c);
    if (!(z.low <= z.high)) return found;
    const Extent moved = extent_between(f, c, z.low, z.high);
    hold(moved.low, moved.high);
    return found;
}

// Band of a column within the choices that the node leaves.
inline Band band_in_node(const Search& f, int c) {
    const Curves& k = f.rules->curves;
    const Column& column = f.options.columns[c];
    if (!(f.node.flags(c) & MOVES)) return band_of_pick(f, c, OWN, 0.0);
    if (!has_knots(f, c)) return {k.lines[2 * c], k.lines[2 * c + 1], k.lines[2 * c + 1]};
    const Whole first = f.node.begin(c), last = f.node.end(c);
    const double *z = f.rules->listed + column.start, *u = k.worth + column.start;
    const Knots knots = knots_of(k, f.problem, c);
    Band band;
    if (column.freedom == ANY)
        band = band_between(knots, f.node.from(c), f.node.to(c));
    else
        band = last - first < LOOKED_AT ? band_of_list(z, u, first, last) : band_between(knots, z[first], z[last]);
    if (f.node.flags(c) & KEEPS) hold(band, f.options.at[column.first], own_value(f, c));
    return band;
}

// A curved rule as a row, without its limit.
struct Sum {
    double constant, size, error;
};

// The ends of a product's factors whose plane a rule is.
struct Corner {
    double x, y;
};

// Whether a column has a single value.
inline bool is_single(const Extent& e) {
    const double wide = e.high - e.low;
    return wide < INF && wide <= OF_TERMS * most(std::fabs(e.low), std::fabs(e.high));
}

inline Corner corner_of(const Search& f, const Identity& p) {
    if (p.x < 0) return {0.0, 0.0};
    const Extent &x = f.extents[p.x], &y = f.extents[p.y];
    if (is_single(y)) return {0.0, y.low};
    if (is_single(x)) return {x.low, 0.0};
    return {p.ends & 1 ? x.high : x.low, p.ends & 2 ? y.high : y.low};
}

// The sign of a column's values; 0 where they have both.
inline double sign_of(const Extent& e) { return e.low >= 0.0 ? 1.0 : (e.high <= 0.0 ? -1.0 : 0.0); }

// Add up a rule with the lower sides of its bands, or with the upper ones if `strict`; the row goes to u.
inline Sum sum_of(const Search& f, int rule, bool strict, double* u) {
    const Curves& k = f.rules->curves;
    const Identity& p = k.identity[rule];
    const Corner corner = corner_of(f, p);
    const double product = p.sign * corner.x * corner.y;
    Sum sum = {product, std::fabs(k.limits[rule]) + std::fabs(product), 0.0};
    for (const Term* t = k.term; t < k.term + k.terms; ++t) {
        if (t->rule != rule) continue;
        const Whole i = f.options.columns[t->column].first;
        const Band& band = f.bands[t->column];
        double factor = t->factor;
        if (t->column == p.x) factor -= p.sign * corner.y;
        if (t->column == p.y) factor -= p.sign * corner.x;
        if (t->column == p.divisor && f.given[p.made]) factor -= p.half * sign_of(f.extents[p.divisor]);
        if (factor == 0.0) continue;
        const double slope = factor * band.slope, at = f.options.at[i];
        const bool upper = (factor > 0.0) == strict;
        u[i] += slope / f.options.scale[i];
        sum.constant += slope * at + factor * (upper ? band.above : band.below);
        sum.size += std::fabs(slope) * most(std::fabs(at), 1.0) +
                    std::fabs(factor) * most(std::fabs(band.below), std::fabs(band.above));
        sum.error += std::fabs(slope) * k.errors[t->column];
    }
    return sum;
}

// By how much an identity may be missed: by rounding, and by half a digit of a value that is kept or an option. That
// is in proportion to a divisor, of whose sign the terms know.
inline double slack_of(const Search& f, const Identity& p, const Sum& sum, bool strict) {
    if (p.half < 0.0) return 0.0;
    const double slack = OF_IDENTITY * sum.size;
    if (!f.given[p.made]) return slack;
    if (p.divisor < 0) return slack + p.half;
    const Extent& by = f.extents[p.divisor];
    const bool known = strict || sign_of(by) != 0.0;
    return known ? slack : slack + p.half * most(std::fabs(by.low), std::fabs(by.high));
}

// What a rule leaves, with rounding: looser, though less so if `strict`, or stricter by the errors of
// conversions if it is tight.
inline double room_of_rule(const Search& f, int rule, const Sum& sum, bool strict) {
    const Curves& k = f.rules->curves;
    const double rounding = (strict ? 0.25 : 1.0) * OF_TERMS * sum.size;
    const double slack = slack_of(f, k.identity[rule], sum, strict);
    return k.limits[rule] - sum.constant + slack + (k.tight[rule] ? -rounding - sum.error : rounding);
}

// Whether a rule applies: to the box that picks lie in if `strict`, else to all that the node leaves.
inline bool applies(const Search& f, const Identity& p, bool strict) {
    if (p.together < 0) return true;
    if (strict) return f.boxes.around[p.together] == p.box;
    const Whole* range = range_of(f.boxes, f.node, int(p.together));
    return range[0] == p.box && range[1] == p.box + 1;
}

// Whether the planes of a product are the product, because one of its factors has a single value.
inline bool is_exact(const Search& f, const Identity& p) {
    return p.x < 0 || is_single(f.extents[p.x]) || is_single(f.extents[p.y]);
}

// Set the rows of curved rules from the bands of their columns.
inline void set_rules(Search& f, bool strict) {
    for (int e = 0; e < f.rules->curves.rules; ++e) {
        const Identity& p = f.rules->curves.identity[e];
        const int j = f.straight + e;
        double* u = f.own_u + std::size_t(j) * f.slacks.wide;
        fill(u, 0.0, f.slacks.wide);
        const bool applied = applies(f, p, strict);
        const Sum sum = applied ? sum_of(f, e, strict, u) : Sum{0.0, 0.0, 0.0};
        double room = applied ? room_of_rule(f, e, sum, strict) : INF;
        double length = std::sqrt(dot(u, u, f.slacks.wide));
        if (!(length > 0.0)) length = 1.0;
        // A band without limits, or a row that holds for every step of a better answer.
        const bool far = f.goal == SQUARES && room / length > std::sqrt(2.0 * f.best) * (1.0 + REACHED);
        const bool idle = !strict && far;
        if (idle || !(std::fabs(room) < INF && length < INF) || (strict && !is_exact(f, p))) {
            fill(u, 0.0, f.slacks.wide);
            room = strict && applied ? -1.0 : 1.0;
            length = 1.0;
        }
        for (int i = 0; i < f.slacks.d; ++i) u[i] /= length;
        f.hard.b[j] = f.hard.base[j] = room / length - (strict ? SLIPS * TIGHT * std::fabs(room / length) : 0.0);
        f.hard.tol[j] = LOOSE * least(sum.size, 1e300) / length;
    }
}

// Set the rows of curved rules for the choices of the node.
inline void bend(Search& f) {
    const Curves& k = f.rules->curves;
    for (const Term* t = k.term; t < k.term + k.terms; ++t) {
        const int c = int(t->column);
        f.bands[c] = band_in_node(f, c);
        f.extents[c] = extent_in_node(f, c);
        f.given[c] = f.node.flags(c) & KEEPS || f.options.columns[c].freedom == GRID;
    }
    set_rules(f, false);
}

// Set what is known of a column in curved rules that takes one option or one number, or keeps its value.
inline void read_pick(Search& f, int c, Whole pick, double y) {
    f.bands[c] = band_of_pick(f, c, pick, y);
    f.extents[c] = extent_of_pick(f, c, pick, y);
    f.given[c] = pick != NUMBER;
}

// Whether a choice satisfies all curved rules.
inline bool keeps_rules(Search& f, const double* y, const Whole* pick) {
    const Curves& k = f.rules->curves;
    if (!k.rules) return true;
    for (const Term* t = k.term; t < k.term + k.terms; ++t)
        read_pick(f, int(t->column), pick[t->column], y[f.options.columns[t->column].first]);
    bool kept = true;
    for (int e = 0; e < k.rules; ++e) {
        if (!applies(f, k.identity[e], true)) continue;
        double* u = f.s.free;
        fill(u, 0.0, f.slacks.wide);
        const Sum sum = sum_of(f, e, true, u);
        const double room = room_of_rule(f, e, sum, true);
        kept = kept && is_exact(f, k.identity[e]) && dot(u, y, f.slacks.wide) <= room;
    }
    return kept;
}

inline bool may_leave(const Search& f, const Term& t) {
    const Gap& gap = f.options.gaps[t.column];
    const bool number = f.near[t.column] == NUMBER && !has_knots(f, int(t.column)) && !(gap.low < gap.high);
    return number && f.rules->curves.identity[t.rule].half >= 0.0;
}

// Let the numbers of affine columns in identities leave the node: what is an answer there is one. The interval of a
// node is often too small to put right by how much planes miss a product.
inline void leave_node(Search& f) {
    const Curves& k = f.rules->curves;
    const int many = f.options.many;
    for (const Term* t = k.term; t < k.term + k.terms; ++t) {
        const int c = int(t->column);
        if (!may_leave(f, *t)) continue;
        f.wide_ends[c] = f.root.from(c);
        f.wide_ends[many + c] = f.root.to(c);
    }
    cut_ends(f.boxes, f.options, f.wide_ends);
    for (const Term* t = k.term; t < k.term + k.terms; ++t) {
        const int c = int(t->column);
        const Whole i = f.options.columns[c].first;
        if (!may_leave(f, *t)) continue;
        f.s.low[i] = step_to(f.options, i, f.wide_ends[c]);
        f.s.high[i] = step_to(f.options, i, f.wide_ends[many + c]);
    }
}

// Hold a number at one value: where its curve is known at knots, at the nearest of these, with which it is exact.
inline void hold_number(Search& f, int c) {
    const Whole i = f.options.columns[c].first;
    double y = clip(f.y[i], f.s.low[i], f.s.high[i]);
    f.extents[c] = extent_of_pick(f, c, NUMBER, y);
    f.bands[c] = band_of_pick(f, c, NUMBER, y);
    if (has_knots(f, c) && f.s.low[i] < f.s.high[i]) {
        const Knots knots = knots_of(f.rules->curves, f.problem, c);
        const double z = f.options.at[i] + y / f.options.scale[i];
        int at = knot_below(knots, z);
        if (at + 1 < knots.count && knots.z[at + 1] - z < z - knots.z[at]) ++at;
        const double to = step_to(f.options, i, knots.z[at]);
        if (f.s.low[i] <= to && to <= f.s.high[i]) {
            y = to;
            f.bands[c] = {0.0, knots.u[at], knots.u[at]};
            f.extents[c] = {knots.u[at], knots.u[at]};
        }
    }
    f.s.low[i] = f.s.high[i] = y;
}

// Set the rows of curved rules for the choice in f.near, stricter than they are. A number stays between two
// knots next to its step. Where these are apart by rounding alone, it is the end that suits the rules better. Of a
// product of two numbers the second is held.
inline void bend_to_picks(Search& f) {
    const Curves& k = f.rules->curves;
    for (int c = 0; c < f.options.many; ++c) f.held[c] = false;
    leave_node(f);
    for (const Identity* p = k.identity; p < k.identity + k.rules; ++p)
        if (p->x >= 0 && f.near[p->x] == NUMBER && f.near[p->y] == NUMBER && !f.held[p->x])
            f.held[p->y] = true;
    for (const Term* t = k.term; t < k.term + k.terms; ++t) {
        const int c = int(t->column);
        const Whole i = f.options.columns[c].first;
        double &low = f.s.low[i], &high = f.s.high[i], y = clip(f.y[i], low, high);
        f.given[c] = f.near[c] != NUMBER;
        if (f.held[c]) {
            if (low < high) hold_number(f, c);
            continue;
        }
        if (f.near[c] == NUMBER && has_knots(f, c) && low < high) {
            const Knots knots = knots_of(k, f.problem, c);
            int at = smaller_of(knot_below(knots, f.options.at[i] + y / f.options.scale[i]), knots.count - 2);
            while (at > 0 && knots.z[at] >= f.node.to(c)) --at;
            low = most(low, step_to(f.options, i, knots.z[at]));
            high = least(high, step_to(f.options, i, knots.z[at + 1]));
            f.bands[c] = band_between(knots, knots.z[at], knots.z[at + 1]);
            f.extents[c] = {least(knots.u[at], knots.u[at + 1]), most(knots.u[at], knots.u[at + 1])};
            if (high - low > LOOSE * std::fabs(y)) continue;
            const bool upper = t->factor * f.bands[c].slope <= 0.0;
            if (low <= high) {
                low = high = upper ? high : low;
                const double u = knots.u[at + upper];
                f.bands[c] = {0.0, u, u};
                f.extents[c] = {u, u};
                continue;
            }
            low = high = y;
        }
        read_pick(f, c, f.near[c], y);
        const double at = f.options.at[i], scale = f.options.scale[i];
        if (f.near[c] == NUMBER && low < high) f.extents[c] = extent_between(f, c, at + low / scale, at + high / scale);
    }
    set_rules(f, true);
}

// Set the box of a full choice: columns are fixed at the option picked, except for numbers, which keep their
// bounds, on the side of a gap that is next to the step y.
inline void box_of_picks(const Options& o, const Whole* pick, const double* y, Steps& s) {
    for (int c = 0; c < o.many; ++c)
        for (Whole e = 0; e < o.columns[c].width; ++e) {
            const Whole i = o.columns[c].first + e;
            if (pick[c] == NUMBER) {
                const double near = number_near(o, c, y[i]);
                const Gap& gap = o.gaps[c];
                const bool split = gap.low < gap.high;
                s.low[i] = split && near >= gap.high ? most(o.low[i], gap.high) : o.low[i];
                s.high[i] = split && near <= gap.low ? least(o.high[i], gap.low) : o.high[i];
            } else {
                s.low[i] = s.high[i] = pick[c] == OWN ? 0.0 : option_step(o, c, pick[c], e);
            }
        }
}

// The price of an answer.
inline double price_of_picks(const Options& o, const double* y, const Whole* pick) {
    double price = 0.0;
    for (int c = 0; c < o.many; ++c) {
        if (pick[c] == NUMBER) price += price_of_number(o, c, y[o.columns[c].first]);
        if (pick[c] != NUMBER && pick[c] != OWN) price += price_of_option(o, c, pick[c]);
    }
    return price;
}

// Set the row of the second search: that of its cut, or one that always holds.
inline void set_cut(const Search& f, bool holds) {
    const int j = f.slacks.m - 1;
    double* u = f.own_u + std::size_t(j) * f.slacks.wide;
    if (holds)
        std::memcpy(u, f.cut, f.slacks.wide * sizeof(double));
    else
        fill(u, 0.0, f.slacks.wide);
    f.hard.b[j] = f.hard.base[j] = holds ? f.cut_room : 1.0;
}

// Keep a number behind a curve on the piece around its step, where its price is linear.
inline void stay_on_piece(const Search& f, int c) {
    const Whole i = f.options.columns[c].first;
    f.simplex.up[i] = f.simplex.down[i] = 0.0;
    if (f.near[c] != NUMBER || !(f.s.low[i] < f.s.high[i])) return;
    const Piece p = piece_around(f.options, c, clip(f.y[i], f.s.low[i], f.s.high[i]));
    const double low = most(f.s.low[i], p.from), high = least(f.s.high[i], p.to);
    if (!(low <= high)) return;
    f.s.low[i] = low;
    f.s.high[i] = high;
    const double slope = p.from < p.to ? std::fabs(p.last - p.first) / (p.to - p.from) : 0.0;
    (p.from + p.to > 0.0 ? f.simplex.up : f.simplex.down)[i] = slope;
}

// Find the answer of least price with the choice whose box is in f.s; in the second search, of least squares among
// those.
inline Status cheapest_of_picks(Search& f) {
    set_cut(f, false);
    for (int c = 0; c < f.options.many; ++c)
        if (is_bent(f.options, c)) stay_on_piece(f, c);
    Status status = solve_safely(f.hard, f.s, LeastPrice{f.simplex});
    if (status == OPTIMAL) {
        snap_basic(f.hard, f.simplex, f.s);
        gap_of(f.hard, f.simplex, f.s);
        if (f.goal == SQUARES) break_tie(f.tie, f.hard, f.simplex, f.s);
    }
    if (f.goal == SQUARES) set_cut(f, true);
    return status;
}

// Copy the choices of a node to another.
inline void copy(const Node& node, const Node& other) {
    std::memcpy(other.data, node.data, node.size * sizeof(Whole));
    std::memcpy(other.ends, node.ends, 2 * node.many * sizeof(double));
}

// Store an answer as the best, if it is better. Its numbers lie in the intervals `ends`.
inline void keep(Search& f, const double* y, const Whole* pick, const double* ends) {
    const double price = f.priced ? price_of_picks(f.options, y, pick) : 0.0;
    const double energy = f.goal == PRICES ? price : half_square(y, f.s.wide);
    if (!(energy < f.best) || (f.priced && f.goal == SQUARES && price > f.cap)) return;
    for (int i = 0; i < f.s.wide; ++i) f.best_y[i] = y[i];
    for (int c = 0; c < f.options.many; ++c) f.best_pick[c] = pick[c];
    std::memcpy(f.best_ends, ends, 2 * f.node.many * sizeof(double));
    cut_ends(f.boxes, f.options, f.best_ends);
    f.best = energy;
    f.found = true;
}

// Move the choice in f.near into the nearest boxes of rules that it breaks, and cut the intervals of any numbers to
// the boxes; false where that is no choice.
inline bool move_into_boxes(Search& f) {
    copy(f.node, f.other);
    const bool inside = enter_boxes(f.boxes, f.options, f.other, f.near, f.y);
    if (!cut_to_boxes(f.boxes, f.options, f.other) || !hull_of(f.options, f.other, f.s.low, f.s.high)) return false;
    if (inside) return true;
    survey(f.options, f.other, f.y, f.near);
    int moved = 0;
    for (int c = 0; c < f.options.many; ++c) moved += f.near[c] != OWN;
    return moved <= f.changes;
}

// Project with the choice in f.near, and store the answer as the best, if it is better; `quick` as in relax.
inline Status guess(Search& f, bool quick) {
    const bool boxes = f.rules->unions.count > 0;
    Status status = INFEASIBLE;
    if (!boxes || move_into_boxes(f)) {
        box_of_picks(f.options, f.near, f.y, f.s);
        std::memcpy(f.wide_ends, f.node.ends, 2 * f.node.many * sizeof(double));
        if (f.rules->curves.rules) bend_to_picks(f);
        fill(f.trial, 0.0, f.slacks.m);
        status = f.priced ? cheapest_of_picks(f) : relax(f, f.trial, quick);
        if (status == OPTIMAL) keep(f, f.s.y, f.near, f.wide_ends);
    }
    if (boxes) hull_of(f.options, f.node, f.s.low, f.s.high);  // intervals of the node again
    return status;
}

// Project with the set of deviations that was listed last; whether it is known what becomes of it.
inline bool try_set(Search& f) {
    const Deviations& v = f.deviations;
    for (int c = 0; c < f.options.many; ++c) f.near[c] = f.l.pick[c];
    for (int t = 0; t < v.level; ++t) {
        const Deviation& taken = v.list[v.next[t] - 1];
        f.near[taken.column] = taken.option;
    }
    return guess(f, false) != UNRESOLVED;
}

// By how much the best answer exceeds a bound, beyond what counts as reached.
inline double spare_of(const Search& f, const Value& bound) { return f.best * (1.0 - REACHED) - bound.total; }

// Try the sets of deviations that raise the bound by less than a limit, at first a small one; whether these are all
// that may be better than the best answer.
inline bool try_sets(Search& f, const Value& bound, double most_raise) {
    Deviations& v = f.deviations;
    v.level = 0;
    if (!try_set(f)) return false;
    double limit = v.count > FEW_DEVIATIONS ? most(v.list[FEW_DEVIATIONS].raise, 1e-3 * most_raise) : most_raise;
    for (bool widest = false; !widest; limit *= 2.0) {
        Listing listing = FOUND;
        begin_listing(v);
        while (listing == FOUND) {
            const double spare = spare_of(f, bound);
            widest = limit >= least(spare, most_raise);
            listing = next_set(v, least(limit, spare), f.best);
            if (listing == FOUND && !try_set(f)) return false;
        }
        if (listing == TOO_MANY) return false;
    }
    return spare_of(f, bound) <= most_raise;
}

// Try all choices of the node that may be better than the best answer, as sets of deviations from the Lagrangian's
// options; false where they are too many. That is tried where the bound is closer to the best answer than it was
// where there were too many.
inline bool try_deviations(Search& f, const Value& bound, Whole steps) {
    const double spare = spare_of(f, bound);
    // Rows of curved rules are stricter than these, so a set that they refuse may be an answer.
    if (f.rules->curves.rules || !(spare <= f.promising)) return false;
    bool listed = false, all = false;
    double limit = 4.0 * spare;
    for (int turn = 0; turn < NARROWINGS && !listed; ++turn) {
        limit *= 0.25;
        listed = list_deviations(f.options, f.node, f.l, f.goal, limit, f.changes, f.deviations);
        if (!listed && f.deviations.count < MOST_DEVIATIONS) return false;  // no matter what the limit is
        if (!listed) continue;
        residual_of(f.slacks, f.mu, f.options, f.l, f.goal, f.choice.residual);
        const double size = std::sqrt(2.0 * (f.goal == SQUARES ? f.best : most_energy(f.s)));
        listed = read_rises(f.slacks, f.options, f.l, f.choice.residual, size, f.deviations);
    }
    f.deviations.steps = steps;
    if (listed) all = try_sets(f, bound, limit);
    f.promising = all ? most(f.promising, 1.1 * spare) : 0.7 * spare;
    return all;
}

// Among the columns that move but do not count as changed yet, the one that gains most by moving; -1 for none.
inline int heaviest(const Search& f) {
    int chosen = -1;
    for (int c = 0; c < f.options.many; ++c) {
        const bool undecided = f.node.flags(c) & MOVES && !(f.node.flags(c) & COUNTS);
        if (undecided && changed(f.options, c, f.y) &&
            (chosen < 0 || f.l.value[c] < f.l.value[chosen]))
            chosen = c;
    }
    return chosen;
}

// The first column with more than one choice left; -1 for none.
inline int first_open(const Search& f) {
    for (int c = 0; c < f.options.many; ++c)
        if (open_choices(f.options, f.node, c) > 1) return c;
    return -1;
}

// Divide a grid at the step y: the likelier part stays in `node`, the other part goes to `other`.
inline void split_grid(Search& f, int c) {
    const Options& o = f.options;
    const double y = f.y[o.columns[c].first];
    const Whole first = f.node.begin(c), end = f.node.end(c), flags = f.node.flags(c);
    Whole last = grid_near(o, c, y, first, end);
    if (option_step(o, c, last, 0) > y) --last;
    const bool own_below = y >= 0.0;
    const bool likelier_below = f.near[c] == OWN ? own_below : f.near[c] <= last;
    for (int below = 0; below < 2; ++below) {
        const Whole from = below ? first : last + 1, to = below ? last : end;
        Whole mark = own_below == (below == 1) ? flags & KEEPS : 0;
        const Whole counts = flags & COUNTS || !mark ? COUNTS : 0;
        if (from <= to) mark |= MOVES | counts;
        Node& half = likelier_below == (below == 1) ? f.node : f.other;
        half.flags(c) = mark;
        half.begin(c) = from;
        half.end(c) = to;
    }
}

// Divide the levels of a column: the likelier level, or no change, stays in `node`; the others go to `other`.
inline void split_levels(Search& f, int c) {
    const Column& column = f.options.columns[c];
    if (f.near[c] == OWN) {
        f.node.flags(c) = KEEPS;
        f.other.flags(c) = MOVES | COUNTS;
        return;
    }
    Whole some = 0;
    for (Whole k = 0; k < column.count; ++k) {
        (k == f.near[c] ? f.other : f.node).levels(column)[k] = 0;
        some += f.other.levels(column)[k];
    }
    f.node.flags(c) = MOVES | COUNTS;
    if (some == 0) f.other.flags(c) &= KEEPS;
}

// Divide any numbers: the column moves or keeps its value, or it moves to one side of its gap.
inline void split_numbers(Search& f, int c) {
    const Gap& gap = f.options.gaps[c];
    if (keeps_apart(f.options, f.node, c)) {
        const bool likelier = f.near[c] == OWN;
        (likelier ? f.node : f.other).flags(c) = KEEPS;
        (likelier ? f.other : f.node).flags(c) = MOVES | COUNTS;
        return;
    }
    const double y = f.y[f.options.columns[c].first];
    const bool below = number_near(f.options, c, y) <= gap.low;
    (below ? f.node : f.other).to(c) = gap.below;
    (below ? f.other : f.node).from(c) = gap.above;
}

// Where any numbers of an affine column are divided: at its step, away from the ends; NaN where they hardly differ.
inline double cut_of_line(const Search& f, int c) {
    const Whole i = f.options.columns[c].first;
    const double z = f.options.at[i] + f.y[i] / f.options.scale[i];
    const Extent e = worthwhile(f, c);
    const double wide = e.high - e.low, unit = 1.0 / f.options.scale[i];
    if (wide < INF && !(wide > LOOSE * most(std::fabs(e.low), std::fabs(e.high)))) return NAN;
    if (wide < INF) return clip(z, e.low + OFF_ENDS * wide, e.high - OFF_ENDS * wide);
    if (e.low > -INF) return z + most(z - e.low, unit);
    return e.high < INF ? z - most(e.high - z, unit) : z;
}

// Where any numbers behind a curve are divided: at a knot on the wider side of the step, a part of the interval
// away from it; NaN where the interval lies between two knots.
inline double cut_of(const Search& f, int c) {
    if (!has_knots(f, c)) return cut_of_line(f, c);
    const Whole i = f.options.columns[c].first;
    const double from = f.node.from(c), to = f.node.to(c), z = f.options.at[i] + f.y[i] / f.options.scale[i];
    const Knots knots = knots_of(f.rules->curves, f.problem, c);
    const double first = knots.z[0], last = knots.z[knots.count - 1];
    if (from < first && to > first) return first;
    if (to > last && from < last) return last;
    const double cut = to - z > z - from ? z + AROUND * (to - from) : z - AROUND * (to - from);
    int at = knot_below(knots, clip(cut, from, to));
    while (at < knots.count - 1 && knots.z[at] <= from) ++at;
    while (at > 0 && knots.z[at] >= to) --at;
    return from < knots.z[at] && knots.z[at] < to ? knots.z[at] : NAN;
}

// Whether a column that is computed may still keep its value, which has the digits of the table, or move to any number.
inline bool stays_or_moves(const Search& f, int c) {
    const Curves& k = f.rules->curves;
    if (f.options.columns[c].freedom != ANY || (f.node.flags(c) & (KEEPS | MOVES)) != (KEEPS | MOVES)) return false;
    if (keeps_apart(f.options, f.node, c)) return true;
    for (const Identity* p = k.identity; p < k.identity + k.rules; ++p)
        if (p->made == c && p->half > 0.0 && applies(f, *p, false)) return true;
    return false;
}

// Divide a column in curved rules: it keeps its value or moves, or moves to one of two ranges.
inline void split_curve(Search& f, int c) {
    const Whole flags = f.node.flags(c);
    if (flags & KEEPS && (has_knots(f, c) || f.options.columns[c].freedom != ANY || stays_or_moves(f, c))) {
        const bool likelier = f.near[c] == OWN;
        (likelier ? f.node : f.other).flags(c) = KEEPS;
        (likelier ? f.other : f.node).flags(c) = MOVES | COUNTS;
    } else if (f.options.columns[c].freedom == ANY) {
        const Whole i = f.options.columns[c].first;
        const double cut = cut_of(f, c);
        const bool below = f.options.at[i] + f.y[i] / f.options.scale[i] <= cut;
        (below ? f.node : f.other).to(c) = cut;
        (below ? f.other : f.node).from(c) = cut;
        // The own value is left to the half that it lies in.
        Node& others = (f.options.at[i] <= cut) == below ? f.other : f.node;
        if (flags & KEEPS) others.flags(c) = MOVES | COUNTS;
    } else {
        const Whole first = f.node.begin(c), last = f.node.end(c);
        const Whole near = f.near[c] < first ? first : (f.near[c] > last ? last : f.near[c]), split = near == last ? last - 1 : near;
        (near <= split ? f.node : f.other).end(c) = split;
        (near <= split ? f.other : f.node).begin(c) = split + 1;
    }
}

// Divide a node between the boxes of a rule that it leaves: the half with the nearest box stays in `node`.
inline void divide_boxes(Search& f, int t) {
    copy(f.node, f.other);
    const Whole *range = range_of(f.boxes, f.node, t), middle = (range[0] + range[1]) / 2;
    const bool below = nearest_box(f.boxes, f.options, f.node, t, f.y) < middle;
    range_of(f.boxes, below ? f.node : f.other, t)[1] = middle;
    range_of(f.boxes, below ? f.other : f.node, t)[0] = middle;
}

// Divide a node in two at column c; `other` becomes its second half.
inline void divide(Search& f, int c, bool counting, bool bent) {
    copy(f.node, f.other);
    if (bent) {
        split_curve(f, c);
    } else if (counting) {
        f.node.flags(c) |= COUNTS;
        f.other.flags(c) = KEEPS;
    } else if (f.options.columns[c].freedom == GRID) {
        split_grid(f, c);
    } else if (f.options.columns[c].freedom == ANY) {
        split_numbers(f, c);
    } else {
        split_levels(f, c);
    }
}

// Double the memory of the stack; false where there is none.
inline bool grow(Stack& k) {
    const std::size_t room = 2 * std::size_t(k.room);
    void* nodes = std::realloc(k.nodes, room * k.size * sizeof(Whole));
    if (!nodes) return false;
    k.nodes = static_cast<Whole*>(nodes);
    void* numbers = std::realloc(k.numbers, room * k.wide * sizeof(double));
    if (!numbers) return false;
    k.numbers = static_cast<double*>(numbers);
    k.room = int(room);
    return true;
}

// Push a node onto the stack.
inline void store(Stack& k, const Node& node, const double* mu, double bound) {
    const int ends = 2 * node.many;
    std::memcpy(k.node(k.top), node.data, k.size * sizeof(Whole));
    std::memcpy(k.of(k.top), node.ends, ends * sizeof(double));
    std::memcpy(k.of(k.top) + ends, mu, (k.wide - 1 - ends) * sizeof(double));
    k.bound(k.top) = bound;
    ++k.top;
}

// Take a node from the stack, whose place the last one gets; returns its lower bound.
inline double fetch(Stack& k, const Node& node, double* mu, int from) {
    const double bound = k.bound(from);
    const int ends = 2 * node.many;
    std::memcpy(node.data, k.node(from), k.size * sizeof(Whole));
    std::memcpy(node.ends, k.of(from), ends * sizeof(double));
    std::memcpy(mu, k.of(from) + ends, (k.wide - 1 - ends) * sizeof(double));
    if (from == --k.top) return bound;
    std::memcpy(k.node(from), k.node(k.top), k.size * sizeof(Whole));
    std::memcpy(k.of(from), k.of(k.top), k.wide * sizeof(double));
    return bound;
}

// The node that comes next: the half that was stored last, or the node with the least bound.
inline int next_of(const Search& f) {
    const Stack& k = f.stack;
    int chosen = k.top - 1;
    if (f.diving || !f.found || std::size_t(k.top) * (k.size + k.wide) > FEW_NUMBERS) return chosen;
    for (int t = chosen - 1; t >= 0; --t)
        if (k.bound(t) < k.bound(chosen)) chosen = t;
    return chosen;
}

// Lower bound of the energy of all answers.
inline double least_bound(const Search& f) {
    double found = least(f.best, f.unsure);
    for (int t = 0; t < f.stack.top; ++t)
        found = least(found, f.stack.bound(t));
    return found;
}

inline bool cut_off(const Search& f, double bound) { return bound >= f.best * (1.0 - REACHED); }

// Set y to the middle of the hull, and to 0 where the hull is unbounded.
inline void middle(const Search& f) {
    for (int i = 0; i < f.s.d; ++i) {
        const double at = 0.5 * (f.s.low[i] + f.s.high[i]);
        f.y[i] = std::fabs(at) < INF ? at : 0.0;
    }
}

// A node after it was bounded: whether it is finished, and its lower bound.
struct Looked {
    bool done;
    Status status;
    double bound;
    Value value;
};

// Bound a node by the hull of its choices and by the Lagrangian, and try the choices next to both solutions.
inline Looked look(Search& f, double bound, int steps) {
    Looked at = {true, OPTIMAL, bound, {0.0, 0.0}};
    for (int i = 0; i < f.s.d; ++i) {
        f.low[i] = f.s.low[i];
        f.high[i] = f.s.high[i];
    }
    at.status = f.goal == PRICES ? cheapest_of_hull(f.lifted, f.hard, f.options, f.node, f.s, f.mu) : relax(f, f.mu, false);
    for (int i = 0; i < f.s.wide; ++i) f.y[i] = f.s.y[i];
    for (int j = 0; j < f.slacks.m; ++j) f.hull_mu[j] = f.mu[j];
    // Outside its hull by rounding, a step could not be divided from the options.
    for (int i = 0; i < f.s.d; ++i) f.y[i] = clip(f.y[i], f.s.low[i], f.s.high[i]);
    int moved = 0;
    if (at.status == OPTIMAL) {
        if (f.goal == SQUARES) at.bound = most(at.bound, half_square(f.y, f.s.wide));
        const Survey seen = survey(f.options, f.node, f.y, f.near);
        moved = seen.moved;
        const bool chosen = at.bound < f.best && seen.furthest < 0 && moved <= f.changes;
        const bool inside = chosen && broken_union(f.boxes, f.options, f.node, f.near, f.y) < 0;
        if (inside && keeps_rules(f, f.y, f.near)) keep(f, f.y, f.near, f.node.ends);
    } else {
        middle(f);
        fill(f.mu, 0.0, f.slacks.m);
    }
    if (at.status == INFEASIBLE || at.status == STOPPED || cut_off(f, at.bound)) return at;
    if (disproved(f.slacks, f.mu, f.trial, f.options, f.node, f.l)) return at;
    // The multipliers of a linear programme are the best ones, if any number of columns may move.
    if (f.goal == PRICES && f.l.left >= f.options.many) steps = 0;
    const Climb way = {f.mu, f.trial, f.choice.residual, steps, f.best, f.goal};
    at.value = climb(f.slacks, way, f.options, f.node, f.l);
    at.bound = most(at.bound, at.value.total);
    if (cut_off(f, at.bound)) return at;
    // Newton's method seldom satisfies equations.
    const bool quick = !(f.rules->curves.rules && f.rules->curves.identity[f.rules->curves.rules - 1].half >= 0.0);
    if (at.status == OPTIMAL && moved <= f.changes) guess(f, quick);
    for (int c = 0; c < f.options.many; ++c) f.near[c] = f.l.pick[c];
    guess(f, true);
    at.done = cut_off(f, at.bound);
    if (f.rules->curves.rules) bend(f);
    return at;
}

// Whether a step satisfies the rows of curved rules, beyond rounding.
inline bool keeps_rows(const Search& f, const double* y) {
    for (int j = f.straight; j < f.slacks.m; ++j)
        if (dot(f.slacks.u + std::size_t(j) * f.slacks.wide, y, f.slacks.wide) > f.hard.b[j] + f.hard.tol[j]) return false;
    return true;
}

inline bool is_factor(const Identity& p, int c) { return p.x >= 0 && (p.x == c || p.y == c); }

// How far a product is at most from its planes, of the factor that is wider in steps; of the other one less.
inline double off_plane(const Search& f, const Identity& p, int c) {
    const auto wide = [&f](Whole of) {
        const Whole i = f.options.columns[of].first;
        return f.s.high[i] - f.s.low[i];
    };
    const Extent &x = f.extents[p.x], &y = f.extents[p.y];
    const double apart = least((x.high - x.low) * (y.high - y.low), 1e300);
    return (c == p.x ? wide(p.x) >= wide(p.y) : wide(p.y) > wide(p.x)) ? apart : 0.5 * apart;
}

// How far the bands of a column in curved rules are apart, or its products and their planes.
inline double apart(const Search& f, int c) {
    const Curves& k = f.rules->curves;
    double sum = 0.0;
    for (const Term* t = k.term; t < k.term + k.terms; ++t)
        if (t->column == c && has_knots(f, c)) sum += std::fabs(t->factor) * (f.bands[c].above - f.bands[c].below);
    for (const Identity* p = k.identity; p < k.identity + k.rules; ++p)
        if (is_factor(*p, c) && applies(f, *p, false)) sum += most(off_plane(f, *p, c), 0.0);
    return sum + (stays_or_moves(f, c) ? 1e-300 : 0.0);
}

// Whether dividing a column in curved rules makes its band narrower.
inline bool can_bend(const Search& f, int c) {
    const Curves& k = f.rules->curves;
    bool divides = has_knots(f, c);
    for (const Identity* p = k.identity; p < k.identity + k.rules && !divides; ++p)
        divides = is_factor(*p, c) && applies(f, *p, false) && !is_exact(f, *p);
    if (stays_or_moves(f, c)) return true;
    if (!divides || !(f.node.flags(c) & MOVES)) return false;
    if (f.node.flags(c) & KEEPS && (has_knots(f, c) || f.options.columns[c].freedom != ANY)) return true;
    if (f.options.columns[c].freedom == GRID) return f.node.begin(c) < f.node.end(c);
    return !std::isnan(cut_of(f, c));
}

// The column in curved rules whose band is widest, among those that can be divided; -1 for none.
inline int most_bent(const Search& f) {
    const Curves& k = f.rules->curves;
    int chosen = -1;
    double widest = 0.0;
    for (const Term* t = k.term; t < k.term + k.terms; ++t) {
        const int c = int(t->column);
        if (!can_bend(f, c) || !(apart(f, c) > widest)) continue;
        chosen = c;
        widest = apart(f, c);
    }
    return chosen;
}

// The column behind a curve whose prices are farthest from a line, among those that can be divided; -1 for none.
inline int most_curved(const Search& f) {
    const Options& o = f.options;
    int chosen = -1;
    double widest = 0.0;
    for (int c = 0; c < o.many; ++c) {
        if (!is_bent(o, c) || !can_bend(f, c)) continue;
        const Whole i = o.columns[c].first;
        const bool own = f.node.flags(c) & KEEPS;
        const double low = own ? least(f.low[i], 0.0) : f.low[i], high = own ? most(f.high[i], 0.0) : f.high[i];
        double off = 0.0;
        for (const double y : {f.y[i], 0.5 * (low + high)}) {
            const double share = high > low ? (y - low) / (high - low) : 0.0;
            const double line = (1.0 - share) * price_of_any(o, c, low) + share * price_of_any(o, c, high);
            off += std::fabs(price_of_any(o, c, y) - line);
        }
        if (!(off > widest)) off = high - low > 0.0 ? 1e-300 : 0.0;
        if (!(off > widest)) continue;
        chosen = c;
        widest = off;
    }
    return chosen;
}

// Note the intervals in which curves are known too coarsely to bound a node, if none has a lower bound.
inline void note_stuck(Search& f, double bound) {
    f.unsure = least(f.unsure, bound);
    if (!f.stuck || !(bound < f.stuck_bound)) return;
    f.stuck_bound = bound;
    const Curves& k = f.rules->curves;
    for (int c = 0; c < f.options.many; ++c) {
        double* to = f.stuck + 3 * c;
        to[0] = to[1] = to[2] = NAN;
        bool bent = false;
        for (const Term* t = k.term; t < k.term + k.terms; ++t) bent = bent || t->column == c;
        bent = bent || is_bent(f.options, c);
        if (!bent || !has_knots(f, c) || f.options.columns[c].freedom != ANY || !(f.node.flags(c) & MOVES)) continue;
        const Whole i = f.options.columns[c].first;
        to[0] = f.node.from(c);
        to[1] = f.node.to(c);
        to[2] = clip(f.options.at[i] + f.y[i] / f.options.scale[i], to[0], to[1]);
    }
}

// Steps of the choices next to a step, below and above; infinite where there is none.
inline void neighbours(const Options& o, const Node& node, int c, double y, double& below, double& above) {
    below = -INF;
    above = INF;
    const Whole first = node.begin(c), last = node.end(c), near = grid_near(o, c, y, first, last);
    const Gap& gap = o.gaps[c];
    const Whole tried[] = {near - 1, near, near + 1, gap.last, gap.first, OWN};
    for (Whole k : tried) {
        const bool option = first <= k && k <= last && !(gap.last < k && k < gap.first);
        if (k == OWN ? !(node.flags(c) & KEEPS) : !option) continue;
        const double step = k == OWN ? 0.0 : option_step(o, c, k, 0);
        if (step <= y) below = most(below, step);
        if (step >= y) above = least(above, step);
    }
}

// Make a basis of the rows that are active at the projection, on the coordinates inside the hull; how many.
inline int basis_of_hull(Search& f) {
    ActiveSet& a = f.hard;
    int size = 0;
    for (int j = 0; j < a.m; ++j)
        if (f.hull_mu[j] > 0.0 && size < a.rank) a.work[size++] = j;
    for (int i = 0; i < a.d; ++i) a.state[i] = f.low[i] < f.y[i] && f.y[i] < f.high[i] ? FREE : FROZEN;
    rebuild(a, size);
    return size;
}

// The column whose division promises the largest rise of the bound in both halves; -1 if all steps are choices.
// A step of a column by t raises the energy by t^2 / 2, and by as much more as the active rows hold the column.
inline int most_promising(Search& f) {
    const Options& o = f.options;
    const int size = basis_of_hull(f);
    int chosen = -1;
    double best = 0.0;
    for (int c = 0; c < o.many; ++c) {
        double off, below, above, freely = 1.0;
        nearest_choice(o, f.node, c, f.y, off);
        if (!(off > 0.0)) continue;
        double rises[] = {off, off};
        if (o.columns[c].freedom == GRID && f.node.flags(c) & MOVES) {
            const Whole i = o.columns[c].first;
            neighbours(o, f.node, c, f.y[i], below, above);
            for (int p = 0; p < size; ++p) {
                const double held = f.hard.frame[p * f.hard.wide + i];
                freely -= held * held;
            }
            rises[0] = (f.y[i] - below) * (f.y[i] - below) / most(freely, FREELY);
            rises[1] = (above - f.y[i]) * (above - f.y[i]) / most(freely, FREELY);
        }
        // A rise beyond the best answer is as good as any other.
        for (double& rise : rises) rise = least(rise, 2.0 * (f.best - f.bound));
        const double promise = SMALLER * least(rises[0], rises[1]) + most(rises[0], rises[1]);
        if (chosen >= 0 && !(promise > best)) continue;
        chosen = c;
        best = promise;
    }
    return chosen;
}

// The column that a linear programme leaves most undecided; -1 if all steps are choices.
inline int most_undecided(const Search& f) {
    const Options& o = f.options;
    int chosen = -1;
    double widest = 0.0;
    for (int c = 0; c < o.many; ++c) {
        double off = 0.0, below, above;
        const double y = f.y[o.columns[c].first];
        if (o.columns[c].freedom == LEVELS) off = undecided(f.lifted, o, f.node, c);
        if (o.columns[c].freedom == ANY) nearest_choice(o, f.node, c, f.y, off);
        if (o.columns[c].freedom == GRID && f.node.flags(c) & MOVES) {
            neighbours(o, f.node, c, y, below, above);
            off = below < above ? least(y - below, above - y) / (above - below) : 0.0;
        }
        if (!(least(off, 0.5) > widest)) continue;
        chosen = c;
        widest = least(off, 0.5);
    }
    return chosen;
}

// Columns that belong together and of which more than one box is left, though rules apply to one of them only; -1 for
// none.
inline int open_to_rules(const Search& f) {
    const Curves& k = f.rules->curves;
    for (const Identity* p = k.identity; p < k.identity + k.rules; ++p) {
        if (p->together < 0) continue;
        const Whole* range = range_of(f.boxes, f.node, int(p->together));
        if (range[1] - range[0] > 1) return int(p->together);
    }
    return -1;
}

// Divide a node and push its halves; false where there is no memory for them.
inline bool go_on(Search& f, const Looked& at) {
    const Survey seen = survey(f.options, f.node, f.y, f.near);
    bool counting = seen.moved > f.changes;
    f.bound = at.bound;
    int c = -1, rule = -1;
    if (at.status == OPTIMAL) {
        c = counting ? heaviest(f) : f.goal == PRICES ? most_undecided(f) : most_promising(f);
        if (c < 0 && !counting) rule = broken_union(f.boxes, f.options, f.node, f.near, f.y);
    } else {
        counting = false;
        c = first_open(f);
        if (c < 0) rule = open_union(f.boxes, f.node);
        if (c < 0 && rule < 0) {
            f.unsure = least(f.unsure, at.bound);
            return true;
        }
    }
    // A solution that is a choice breaks a curved rule: what is left to narrow are the bands.
    bool bent = c < 0 && rule < 0 && !counting && f.rules->curves.rules;
    if (bent) rule = open_to_rules(f);
    bent = bent && rule < 0;
    if (bent) {
        bend(f);  // the node may have become smaller
        bent = keeps_rows(f, f.y);
        c = bent ? most_bent(f) : -1;
    }
    if (f.options.bent && c < 0 && rule < 0 && !counting && !bent) {
        c = most_curved(f);
        bent = c >= 0;
    }
    bool apart = false;  // a choice that costs too much, or whose price is not that of the hull
    if (f.priced && c < 0 && rule < 0 && !counting && !bent) {
        c = first_open(f);
        apart = c >= 0 && f.options.columns[c].freedom == GRID;
    }
    if (bent && c < 0 && guess(f, false) == OPTIMAL && cut_off(f, at.bound)) return true;
    if ((bent || f.priced) && c < 0 && rule < 0 && !counting) {
        note_stuck(f, at.bound);
        return true;
    }
    if (f.stack.top + 2 > f.stack.room && !grow(f.stack)) return false;
    if (rule >= 0) {
        divide_boxes(f, rule);
        store(f.stack, f.other, f.mu, at.bound);
    }
    // Trimming may have left the column one choice only: then the node is not divided, but bounded again.
    if (c >= 0 && (bent || counting || open_choices(f.options, f.node, c) > 1)) {
        divide(f, c, counting, bent || apart);
        store(f.stack, f.other, f.mu, at.bound);
    }
    store(f.stack, f.node, f.mu, at.bound);
    f.diving = true;
    return true;
}

// Cut the hull of any numbers to the steps that an answer at the price f.cap may take; `spare` is what it may raise
// the Lagrangian.
inline void cut_numbers(Search& f, const Value& bound, double spare) {
    const Options& o = f.options;
    for (int c = 0; c < o.many; ++c) {
        if (o.columns[c].freedom != ANY || is_bent(o, c) || !(f.node.flags(c) & MOVES)) continue;
        const Whole i = o.columns[c].first;
        double low, high;
        steps_within(o, i, spare + (f.l.taken[c] ? f.l.value[c] : bound.worst), f.l.g[i], low, high);
        if (f.node.flags(c) & KEEPS) {
            low = least(low, 0.0);
            high = most(high, 0.0);
        }
        low = most(low, f.s.low[i]);
        high = least(high, f.s.high[i]);
        if (!(low <= high)) continue;
        f.s.low[i] = low;
        f.s.high[i] = high;
    }
}

// Cut a node to what answers at the price f.cap may choose; false where there are none.
inline bool cut_to_price(Search& f) {
    const Status status = cheapest_of_hull(f.lifted, f.hard, f.options, f.node, f.s, f.cut_mu);
    if (status == INFEASIBLE) return false;
    if (status != OPTIMAL) fill(f.cut_mu, 0.0, f.slacks.m);
    const Value bound = lagrangian(f.slacks, f.cut_mu, PRICES, f.options, f.node, f.l);
    const double spare = f.cap - bound.total;
    if (spare < 0.0) return false;
    if (!trim(bound, f.cap, PRICES, f.options, f.node, f.l)) return false;
    f.l.left = close_counts(f.node, f.options.many, f.changes);
    if (f.l.left < 0 || !hull_of(f.options, f.node, f.s.low, f.s.high)) return false;
    cut_numbers(f, bound, spare);
    const double length = std::sqrt(dot(f.l.g, f.l.g, f.slacks.wide));
    double room = spare, terms = std::fabs(spare);
    for (int j = 0; j < f.slacks.m; ++j) {
        room -= f.cut_mu[j] * f.hard.b[j];
        terms += std::fabs(f.cut_mu[j] * f.hard.b[j]);
    }
    f.cut_room = length > 0.0 ? (room + ROUNDED * terms) / length : 1.0;
    for (int i = 0; i < f.slacks.wide; ++i) f.cut[i] = length > 0.0 ? -f.l.g[i] / length : 0.0;
    f.hard.tol[f.slacks.m - 1] = length > 0.0 ? LOOSE * terms / length : 0.0;
    set_cut(f, true);
    return true;
}

// Take the next node from the stack, bound it, and divide what is left of it. Counts it if it was bounded;
// false where there is no memory for its halves.
inline bool visit_next(Search& f, Whole& count) {
    const double bound = fetch(f.stack, f.node, f.mu, next_of(f));
    f.diving = false;
    if (cut_off(f, bound)) return true;
    ++count;
    if (f.priced) set_cut(f, false);
    if (!cut_to_boxes(f.boxes, f.options, f.node)) return true;
    f.l.left = close_counts(f.node, f.options.many, f.changes);
    if (f.l.left < 0 || !hull_of(f.options, f.node, f.s.low, f.s.high)) return true;
    if (f.rules->curves.rules) bend(f);
    if (!propagate(f.slacks, f.options, f.node, f.s.low, f.s.high)) return true;
    // Columns may have become such that count.
    f.l.left = close_counts(f.node, f.options.many, f.changes);
    if (f.l.left < 0 || !hull_of(f.options, f.node, f.s.low, f.s.high)) return true;
    if (f.priced && f.goal == SQUARES && !cut_to_price(f)) return true;
    const Looked at = look(f, bound, count == 1 ? CLIMB : CLIMB_BELOW);
    if (at.done) return true;
    if (f.best < INF && !trim(at.value, f.best, f.goal, f.options, f.node, f.l)) return true;
    if (f.best < INF && try_deviations(f, at.value, count == 1 ? LISTED : LISTED_BELOW)) return true;
    return go_on(f, at);
}

// Search the choices of a row for one that is better than `best`, with at most `changes` columns changed and
// `limit` nodes bounded.
inline Ended search(Search& f, double best, int changes, Whole limit) {
    f.best = best;
    f.unsure = f.promising = INF;
    f.changes = changes;
    f.found = f.diving = false;
    f.stack.top = 0;
    fill(f.mu, 0.0, f.slacks.m);
    store(f.stack, f.root, f.mu, 0.0);
    Whole count = 0;
    bool stopped = false;
    while (f.stack.top > 0 && count < limit && !stopped)
        stopped = interrupted() || !visit_next(f, count);
    // Parts of the search that were given up matter if they may have a better answer.
    stopped = stopped || f.stack.top > 0 || (f.unsure < f.best && !cut_off(f, f.unsure));
    const Status status =
        f.found ? (stopped ? STOPPED : OPTIMAL) : (stopped ? UNRESOLVED : INFEASIBLE);
    return {status, f.best, least_bound(f), count, ENOUGH};
}

// Upper bound, greater than 0, of the price of all choices of a row.
inline double most_price(const Search& f) {
    const Options& o = f.options;
    double sum = 0.0;
    for (int c = 0; c < o.many; ++c) {
        const Column& column = o.columns[c];
        const Whole i = column.first;
        double highest = 0.0;
        for (Whole l = 0; l < (column.freedom == LEVELS ? column.count : 0); ++l)
            if (f.root.levels(column)[l]) highest = most(highest, o.fees[column.level + l]);
        if (is_bent(o, c)) highest = INF;
        else if (column.freedom != LEVELS) highest = most(price_of_step(o, i, f.s.low[i]), price_of_step(o, i, f.s.high[i]));
        sum += highest;
    }
    return most(sum * (1.0 + 1e-6), 1e-300);
}

// Search for an answer of least squares; or for one of least price, and, among answers of that price, for that of
// least squares.
inline Ended search_in_turn(Search& f, int changes, Whole limit) {
    hull_of(f.options, f.root, f.s.low, f.s.high);
    if (!f.priced) return search(f, most_energy(f.s), changes, limit);
    f.goal = PRICES;
    Ended ended = search(f, most_price(f), changes, limit);
    if (ended.status != OPTIMAL || !(half_square(f.best_y, f.s.wide) > 0.0)) return ended;
    f.goal = SQUARES;
    f.cap = f.best * (1.0 + SAME_PRICE);
    ended.nodes += search(f, half_square(f.best_y, f.s.wide), changes, limit - ended.nodes).nodes;
    f.found = true;
    ended.energy = price_of_picks(f.options, f.best_y, f.best_pick);
    set_cut(f, false);
    return ended;
}

// Set the options of one column of a row, in steps; whether it may move at all.
inline bool read_column(const Rules& r, Whole at, const Point& p, const double* scale, int c,
                        Search& f) {
    const Column& column = r.columns[c];
    const Whole first = column.first;
    Options& o = f.options;
    for (Whole i = first; i < first + column.width; ++i) {
        o.low[i] = scale[i] * (p.lo[i] - p.at[i]);
        o.high[i] = scale[i] * (p.hi[i] - p.at[i]);
    }
    o.gaps[c] = {0.0, 0.0, 0.0, 0.0, 0, 0};
    if (r.gaps) {
        const Whole place = 2 * ((r.own_gaps ? at : 0) * r.many + c);
        Gap& gap = o.gaps[c];
        gap = {r.gaps[place], r.gaps[place + 1], 0.0, 0.0, r.holes[place], r.holes[place + 1]};
        gap.low = step_to(o, first, gap.below);
        gap.high = step_to(o, first, gap.above);
    }
    f.root.from(c) = p.lo[first];
    f.root.to(c) = p.hi[first];
    f.root.begin(c) = r.least[(r.own_least ? at : 0) * r.many + c];
    f.root.end(c) = r.most[(r.own_most ? at : 0) * r.many + c];
    o.grids[2 * c] = scale[first] * (r.pitches[2 * c] - p.at[first]);
    o.grids[2 * c + 1] = scale[first] * r.pitches[2 * c + 1];
    bool some = false;
    if (column.freedom == ANY)
        some = p.lo[first] <= p.hi[first] && !(p.lo[first] == p.hi[first] && p.hi[first] == p.at[first]);
    if (column.freedom == GRID) some = f.root.begin(c) <= f.root.end(c);
    for (Whole k = 0; k < (r.pitches[2 * c + 1] > 0.0 ? 0 : column.count); ++k) {
        bool moves = false;  // the row's own level is no change
        for (Whole e = 0; e < column.width; ++e) {
            const Whole place = column.start + k * column.width + e;
            o.listed[place] = scale[first + e] * (r.listed[place] - p.at[first + e]);
            moves = moves || o.listed[place] != 0.0;
        }
        if (column.freedom != LEVELS) continue;
        f.root.levels(column)[k] &= Whole(moves);
        some = some || f.root.levels(column)[k] > 0;
    }
    return some;
}

// Set the prices of a row's steps and levels.
inline void read_prices(const Rules& r, Whole at, const double* scale, Search& f) {
    Options& o = f.options;
    for (int i = 0; i < o.d; ++i) {
        o.up[i] = r.up[i] / scale[i];
        o.down[i] = r.down[i] / scale[i];
    }
    for (int c = 0; c < (o.bent ? o.many : 0); ++c) {
        if (!o.bent[c]) continue;
        o.up[o.columns[c].first] = r.up[o.columns[c].first];
        o.down[o.columns[c].first] = r.down[o.columns[c].first];
        o.own[c] = own_value(f, c);
    }
    const double* fees = r.fees + (r.own_fees ? at * r.levels : 0);
    for (int l = 0; l < r.levels; ++l) o.fees[l] = fees[l];
    for (int c = 0; c < o.many; ++c)  // their prices are those of levels
        for (Whole e = 0; e < (o.columns[c].freedom == LEVELS ? o.columns[c].width : 0); ++e)
            o.up[o.columns[c].first + e] = o.down[o.columns[c].first + e] = 0.0;
    for (int i = 0; i < o.d; ++i) {
        f.simplex.up[i] = o.up[i];
        f.simplex.down[i] = o.down[i];
    }
}

// Set the root node: all choices of one row.
inline void read_root(const Rules& r, Whole at, Whole q, const Point& p, const double* scale,
                      Search& f) {
    const std::uint8_t* allowed = r.allowed + (r.own_allowed ? at : 0) * r.levels;
    for (int t = 0; t < r.levels; ++t) f.root.data[3 * r.many + t] = allowed[t];
    for (int c = 0; c < r.many; ++c) {
        const bool some = read_column(r, at, p, scale, c, f);
        const Whole keeps = r.stay[(r.own_stay ? at : 0) * r.many + c] ? KEEPS : 0;
        f.root.flags(c) = keeps | (some ? MOVES : 0) | (keeps ? 0 : COUNTS);
        if (r.locked[(r.own_locked ? q : 0) * r.many + c]) f.root.flags(c) &= KEEPS;
    }
    if (f.priced) read_prices(r, at, scale, f);
}

// Write the best answer as a point: columns without a change keep their bits, options are met exactly.
inline void write_choice(const Search& f, const Rules& r, const Point& p, const double* scale,
                         double* out) {
    Options exact = f.options;
    exact.grids = const_cast<double*>(r.pitches);
    exact.listed = const_cast<double*>(r.listed);
    for (int c = 0; c < r.many; ++c)
        for (Whole e = 0; e < r.columns[c].width; ++e) {
            const Whole i = r.columns[c].first + e;
            const double y = f.best_y[i];
            if (f.best_pick[c] == OWN || y == 0.0) {
                out[i] = p.at[i];
            } else if (f.best_pick[c] == NUMBER) {
                const Gap& gap = f.options.gaps[c];
                const bool above = gap.below < gap.above && y >= gap.high;
                const bool below = gap.below < gap.above && y <= gap.low;
                const double lo = above ? most(f.best_ends[c], gap.above) : f.best_ends[c];
                const double to = f.best_ends[r.many + c], hi = below ? least(to, gap.below) : to;
                out[i] = clip(p.at[i] + y / scale[i], lo, hi);
                if (y <= step_to(f.options, i, lo)) out[i] = lo;
                if (y >= step_to(f.options, i, hi)) out[i] = hi;
            } else {
                out[i] = option_step(exact, c, f.best_pick[c], e);
            }
        }
}

// Largest multiple of the answer's move in numbers, with its levels held, that satisfies rows and hull; at
// least 1.
inline double reach_of_numbers(const Search& f) {
    const Options& o = f.options;
    const double* y = f.best_y;
    double reach = INF;
    bool moved = false;
    for (int c = 0; c < o.many; ++c) {
        const Whole i = o.columns[c].first;
        if (o.columns[c].freedom == LEVELS || y[i] == 0.0) continue;
        moved = true;
        reach = least(reach, (y[i] > 0.0 ? f.s.high[i] : -f.s.low[i]) / std::fabs(y[i]));
    }
    for (int j = 0; j < f.straight; ++j) {
        const double* u = f.slacks.u + std::size_t(j) * f.slacks.wide;
        double rise = 0.0;
        for (int c = 0; c < o.many; ++c)
            if (o.columns[c].freedom != LEVELS) rise += u[o.columns[c].first] * y[o.columns[c].first];
        if (rise > 0.0) reach = least(reach, 1.0 - f.choice.residual[j] / rise);
    }
    reach = least(reach, reach_in_boxes(f.boxes, o, f.best_pick, y));
    return moved ? most(reach, 1.0) : 1.0;
}

// Lower b of every row by the slack that the model's rounding is likely to need at an answer.
inline void keep_off(ActiveSet& a, const Steps& s, double factor) {
    const double size = std::sqrt(dot(s.placed, s.placed, s.wide)), far = dot(s.x, s.x, s.wide);
    double step = 0.0;
    for (int j = 0; j < a.m; ++j) step = most(step, -a.base[j]);
    for (int j = 0; j < a.m; ++j) {
        const Sizes ahead = {size, step, least(far, 4.0 * a.offsets[j] * a.offsets[j])};
        a.b[j] = a.base[j] - room_to_ask(a.guards[j], ahead, factor);
    }
}

// Compute the residual of all rows at the best answer, and the room that it has for the model's rounding.
inline Room room_of_choice(Search& f, double factor, Sizes& z) {
    for (int i = 0; i < f.s.wide; ++i) f.s.y[i] = f.best_y[i];
    z = sizes_of(f.s);
    Room worst = ENOUGH;
    for (int j = 0; j < f.straight; ++j) {
        const double rise = dot(f.slacks.u + std::size_t(j) * f.slacks.wide, f.best_y, f.s.wide);
        f.choice.residual[j] = rise - f.hard.b[j];
        const Room room = room_of(f.hard.guards[j], z, f.hard.base[j] - rise, factor);
        if (room > worst) worst = room;
    }
    return worst;
}

// Whether there may be a choice if the rows are as they are, without slack for the model's rounding.
inline bool allows_some(Search& f, int few, Whole limit) {
    for (int j = 0; j < f.straight; ++j) f.hard.b[j] = f.hard.base[j];
    return search_in_turn(f, few, limit).status != INFEASIBLE;
}

// Find the best choice of one row, with as few changed columns as possible if `fewest`, and with the slack
// that the model's rounding needs: what is expected, then what the answer needs. `few` is set to the number of
// columns that could change.
inline Ended best_choice(Search& f, const Rules& r, double factor, int& few) {
    Ended ended = {INFEASIBLE, INF, 0.0, 0, ENOUGH};
    Sizes z;
    Whole nodes = 0;
    bool proven = true, asked = false, again = hull_of(f.options, f.root, f.s.low, f.s.high);
    few = r.fewest ? 1 : r.changes;
    while (again) {
        again = false;
        ended = search_in_turn(f, few, r.limit - nodes);
        nodes += ended.nodes;
        if (f.found) {
            ended.room = room_of_choice(f, factor, z);
            again = ended.room == CLOSE && !asked;
            for (int j = 0; again && j < f.straight; ++j)
                f.hard.b[j] = least(f.hard.b[j], f.hard.base[j] - room_to_ask(f.hard.guards[j], z, factor));
            asked |= again;
        } else if (few < r.changes) {
            proven = proven && ended.status == INFEASIBLE;
            again = nodes < r.limit;
            ++few;
            ended.status = UNRESOLVED;
        } else if (ended.status == INFEASIBLE && allows_some(f, few, r.limit - nodes)) {
            ended.status = UNRESOLVED;  // empty only because of the slack
        }
    }
    if (ended.status == OPTIMAL && !proven) ended.status = STOPPED;
    if (ended.room == TOO_CLOSE) ended.status = UNRESOLVED;
    ended.nodes = nodes;
    return ended;
}

// Set up the problem of one row: its coordinates, slacks and choices.
template <class Real>
void read_row(const Rows<Real>& rows, const Rules& r, Whole at, Whole q, const Point& p, double factor,
              Search& f) {
    for (int i = 0; i < rows.d; ++i) {
        f.s.a[i] = p.at[i];
        f.s.placed[i] = rows.scale[i] * p.at[i];
        f.s.x[i] = rows.scale[i] * (p.at[i] - rows.origin[i]);
    }
    f.row = at;
    f.problem = q;
    f.options.problem = q;
    for (int j = f.straight; j < rows.count; ++j) fill(f.own_u + std::size_t(j) * rows.wide, 0.0, rows.wide);
    f.hard.u = f.slacks.u;
    f.hard.offsets = f.straight < rows.count ? f.own_offsets : rows.offsets;
    f.hard.guards = rows.guards;
    read_slacks(f.hard, f.s);
    keep_off(f.hard, f.s, factor);
    read_root(r, at, q, p, rows.scale, f);
    read_boxes(f.boxes, at, f.root);
}

template <class Real>
void lay_out_prices(Arena& arena, const Rows<Real>& rows, const Rules& r, Search& f) {
    lay_out(arena, f.lifted, r.columns, r.many, r.levels, rows.count, rows.d);
    lay_out(arena, f.simplex, rows.count, rows.d, rows.wide);
    lay_out(arena, f.tie, rows.count, rows.d, rows.wide);
    f.cut = arena.take<double>(rows.wide);
    f.cut_mu = arena.take<double>(rows.count);
}

template <class Real>
void lay_out(Arena& arena, const Rows<Real>& rows, const Rules& r, Search& f) {
    const int m = rows.count, wide = rows.wide, many = r.many, size = 3 * many + r.levels + 2 * r.unions.count;
    lay_out(arena, f.s, rows.d, wide);
    lay_out(arena, f.choice, m, rows.d, wide, false, false);
    lay_out(arena, f.hard, m, rows.d, wide, false);
    f.options = {r.columns, many, rows.d, arena.take<double>(2 * many), arena.take<double>(r.listed_size),
                 arena.take<double>(wide), arena.take<double>(wide), f.s.a, rows.scale, arena.take<Gap>(many),
                 arena.take<double>(wide), arena.take<double>(wide), arena.take<double>(r.levels),
                 r.bent, arena.take<double>(many), &r.curves, 0};
    f.l = {arena.take<double>(wide), arena.take<double>(many), arena.take<Whole>(many),
           arena.take<Whole>(many), 0};
    f.boxes = {r.unions, arena.take<bool>(r.unions.sides), arena.take<Whole>(r.unions.count), {}};
    Deviations& v = f.deviations;
    v.list = arena.take<Deviation>(MOST_DEVIATIONS);
    v.rises = arena.take<double>(MOST_RISES);
    v.relief = arena.take<double>(MOST_RISES);
    v.raise = arena.take<double>(MOST_LEVELS);
    v.energy = arena.take<double>(MOST_LEVELS);
    v.residual = arena.take<double>(MOST_LEVELS * MOST_LINES);
    v.next = arena.take<int>(MOST_LEVELS);
    v.ends = arena.take<int>(MOST_LEVELS);
    v.used = arena.take<bool>(many);
    for (Node* node : {&f.root, &f.node, &f.other, &f.boxes.hull})
        *node = {arena.take<Whole>(size), arena.take<double>(2 * many), many, size};
    f.best_ends = arena.take<double>(2 * many);
    f.wide_ends = arena.take<double>(2 * many);
    f.y = arena.take<double>(wide);
    f.low = arena.take<double>(wide);
    f.high = arena.take<double>(wide);
    f.hull_mu = arena.take<double>(m);
    f.best_y = arena.take<double>(wide);
    f.mu = arena.take<double>(m);
    f.trial = arena.take<double>(m);
    f.near = arena.take<Whole>(many);
    f.best_pick = arena.take<Whole>(many);
    f.rules = &r;
    f.priced = r.up != nullptr;
    f.goal = SQUARES;
    f.straight = m - r.curves.rules - int(f.priced);
    f.bands = arena.take<Band>(many);
    f.extents = arena.take<Extent>(many);
    f.given = arena.take<bool>(many);
    f.held = arena.take<bool>(many);
    const bool own = f.straight < m;
    f.own_u = arena.take<double>(own ? m * wide : 0);
    f.own_offsets = arena.take<double>(own ? m : 0);
    if (arena.base && own) {
        std::memcpy(f.own_u, rows.u, std::size_t(m) * wide * sizeof(double));
        std::memcpy(f.own_offsets, rows.offsets, std::size_t(m) * sizeof(double));
    }
    if (f.priced) lay_out_prices(arena, rows, r, f);
    const double* u = own ? f.own_u : rows.u;
    f.slacks = {m, rows.d, wide, u, f.hard.b};
    f.choice.count = m;
    for (int j = 0; arena.base && j < m; ++j) f.choice.rows[j] = u + std::size_t(j) * wide;
    f.choice.b = f.hard.b;
}

// Find the best choices of problems start to stop: those of row rows[q] for point q.
template <class Real>
void branch_chunk(const Rows<Real>& rows, const Batch& batch, const Rules& r, const Found& out,
                  Whole start, Whole stop, Search& f) {
    for (Whole q = start; q < stop && !interrupted(); ++q) {
        const Whole at = batch.rows[q];
        const Point p = {batch.points + q * rows.d, r.lo + (r.own_lo ? at * rows.d : 0),
                         r.hi + (r.own_hi ? at * rows.d : 0), 0, 0.0, 0.0};
        int few;
        f.stuck = out.stuck ? out.stuck + 3 * q * r.many : nullptr;
        f.stuck_bound = INF;
        for (int t = 0; f.stuck && t < 3 * r.many; ++t) f.stuck[t] = NAN;
        read_row(rows, r, at, q, p, batch.factor, f);
        const Ended ended = best_choice(f, r, batch.factor, few);
        out.status[q] = ended.status;
        out.close[q] = ended.room == CLOSE || batch.factor < 1.0;
        out.nodes[q] = ended.nodes;
        out.changes[q] = few;
        if (ended.status != OPTIMAL && ended.status != STOPPED) continue;
        hull_of(f.options, f.root, f.s.low, f.s.high);
        out.gap[q] = ended.energy - ended.bound;
        out.reach[q] = reach_of_numbers(f);
        write_choice(f, r, p, rows.scale, out.points + q * rows.d);
    }
}

}  // namespace VOICECF_SET
}  // namespace voicecf

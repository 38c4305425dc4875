// Deviations: the sets of choices of a node that may be better than the best answer, one by one.
//
// The Lagrangian has its least value at one option of each column. Another option raises it by an amount that
// does not depend on the other columns. So an answer that is better than the best one deviates from these options
// in columns whose raises sum up to less than the best energy exceeds the bound. Sets of deviations are listed
// depth first, least raises first: a raise that is too large ends a branch, and so does a row that no later
// deviations can satisfy. Where few sets are left, that is far cheaper than dividing the node.
#pragma once

#include <algorithm>

#include "choices.hpp"

namespace voicecf {

// Another option of a column: by how much it raises the Lagrangian and the energy.
struct Deviation {
    double raise, energy;
    Whole option;
    int column;
};

// Deviations of a node, least raises first, and the set that was listed last: one deviation a level.
struct Deviations {
    Deviation* list;
    double *rises, *relief;  // (count + 1, lines): by how much rows rise, and at most fall from here on
    double *raise, *energy, *residual;  // of the set up to each level
    int *next, *ends;                   // deviation that each level tries next, and where it ends
    bool* used;                         // columns that deviate
    int count, lines, level;
    Whole steps;  // sets that may still be listed
};

enum Listing { FOUND, ALL, TOO_MANY };

namespace VOICECF_SET {

// Most deviations of a node, rows that they may violate, numbers about both, and deviations of a set.
constexpr int MOST_DEVIATIONS = 1024, MOST_LINES = 64, MOST_RISES = 1 << 14, MOST_LEVELS = 64;

inline double step_of_pick(const Options& o, int c, Whole pick, Whole e) {
    return pick == OWN ? 0.0 : option_step(o, c, pick, e);
}

// What a pick adds to the energy: half its square, or its price.
inline double energy_of_pick(const Options& o, int c, Whole pick, Goal aim) {
    if (aim == PRICES) return pick == OWN ? 0.0 : price_of_option(o, c, pick);
    double energy = 0.0;
    for (Whole e = 0; e < o.columns[c].width; ++e)
        energy += 0.5 * step_of_pick(o, c, pick, e) * step_of_pick(o, c, pick, e);
    return energy;
}

// List the deviations that raise the Lagrangian by less than `spare`; false where they are too many, where some
// column may take any number, or where more columns than `changes` may move.
inline bool list_deviations(const Options& o, const Node& node, const Lagrangian& l, Goal aim, double spare, int changes,
                            Deviations& v) {
    v.count = 0;
    v.energy[0] = 0.0;
    for (int c = 0; c < o.many; ++c) {
        const Column& column = o.columns[c];
        v.used[c] = false;
        changes -= node.flags(c) & (MOVES | COUNTS) ? 1 : 0;
        if (changes < 0 || (!l.taken[c] && l.value[c] < 0.0)) return false;
        if (!(node.flags(c) & MOVES)) continue;
        const bool levels = column.freedom == LEVELS;
        const Whole first = levels ? 0 : node.begin(c), last = levels ? column.count - 1 : node.end(c);
        if (column.freedom == ANY || last - first > MOST_DEVIATIONS) return false;
        v.energy[0] += energy_of_pick(o, c, l.pick[c], aim);
        const double base = l.taken[c] ? l.value[c] : 0.0;
        for (Whole k = first - 1; k <= last; ++k) {
            const Whole option = k < first ? OWN : k;
            const bool gap = !levels && o.gaps[c].last < k && k < o.gaps[c].first;
            const bool left = option == OWN ? node.flags(c) & KEEPS : !gap && (!levels || node.levels(column)[k]);
            if (!left || option == l.pick[c]) continue;
            const double raise = (option == OWN ? 0.0 : option_value(o, c, k, l.g, aim)) - base;
            if (!(raise < spare)) continue;
            if (v.count == MOST_DEVIATIONS) return false;
            double energy = aim == PRICES ? energy_of_pick(o, c, option, aim) - energy_of_pick(o, c, l.pick[c], aim) : 0.0;
            bool zero = option != OWN && node.flags(c) & KEEPS, same = true;  // the own value again, or the pick
            for (Whole e = 0; e < column.width; ++e) {
                const double to = step_of_pick(o, c, option, e), from = step_of_pick(o, c, l.pick[c], e);
                if (aim == SQUARES) energy += 0.5 * (to - from) * (to + from);
                zero = zero && to == 0.0;
                same = same && to == from;
            }
            if (zero || same) continue;
            v.list[v.count++] = {raise, energy, option, c};
        }
    }
    std::sort(v.list, v.list + v.count, [](const Deviation& a, const Deviation& b) {
        return a.raise != b.raise ? a.raise < b.raise : (a.column != b.column ? a.column < b.column : a.option < b.option);
    });
    return true;
}

// By how much a deviation lets row u rise.
inline double rise_of(const Options& o, const Lagrangian& l, const Deviation& t, const double* u) {
    const Column& column = o.columns[t.column];
    double rise = 0.0;
    for (Whole e = 0; e < column.width; ++e)
        rise += u[column.first + e] *
                (step_of_pick(o, t.column, t.option, e) - step_of_pick(o, t.column, l.pick[t.column], e));
    return rise;
}

// Set up the rows that deviations may violate, with residuals r at the Lagrangian's options; false where there is
// no room for them. Residuals of up to rounding of a step of this size are none.
inline bool read_rises(const Slacks& s, const Options& o, const Lagrangian& l, const double* r, double size,
                       Deviations& v) {
    int rows[MOST_LINES], many = 0;
    for (int j = 0; j < s.m; ++j) {
        const double residual = r[j] - LOOSE * (std::fabs(s.b[j]) + size);
        double highest = residual;
        for (int i = 0; i < v.count; ++i)
            highest += most(rise_of(o, l, v.list[i], s.u + std::size_t(j) * s.wide), 0.0);
        if (!(highest > 0.0)) continue;
        if (many == MOST_LINES) return false;
        v.residual[many] = residual;
        rows[many++] = j;
    }
    v.lines = (many + 7) / 8 * 8;
    if ((v.count + 1) * v.lines > MOST_RISES) return false;
    fill(v.residual + many, -1.0, v.lines - many);
    fill(v.relief + v.count * v.lines, 0.0, v.lines);
    for (int i = v.count - 1; i >= 0; --i)
        for (int t = 0; t < v.lines; ++t) {
            const double rise = t < many ? rise_of(o, l, v.list[i], s.u + std::size_t(rows[t]) * s.wide) : 0.0;
            v.rises[i * v.lines + t] = rise;
            v.relief[i * v.lines + t] = v.relief[(i + 1) * v.lines + t] + least(rise, 0.0);
        }
    return true;
}

// The highest residual of the set at hand with one more deviation; the residuals go to the next level.
inline double highest_with(const Deviations& v, int i) {
    Doubles found = Doubles::all(-INF);
    for (int t = 0; t < v.lines; t += 8) {
        const int at = v.level * v.lines + t;
        const Doubles sum = Doubles::load(v.residual + at) + Doubles::load(v.rises + i * v.lines + t);
        sum.store(v.residual + at + v.lines);
        found = larger(found, sum);
    }
    return highest(found);
}

// The highest residual of the set at hand if all of deviations first to before last that lower a row are added.
inline double highest_after(const Deviations& v, int first, int last) {
    Doubles found = Doubles::all(-INF);
    for (int t = 0; t < v.lines; t += 8) {
        const Doubles relief = Doubles::load(v.relief + first * v.lines + t) - Doubles::load(v.relief + last * v.lines + t);
        found = larger(found, Doubles::load(v.residual + v.level * v.lines + t) + relief);
    }
    return highest(found);
}

// Start with the set of no deviations.
inline void begin_listing(Deviations& v) {
    v.level = v.next[0] = 0;
    v.raise[0] = 0.0;
    v.ends[0] = v.count;
}

// List sets up to the next one that satisfies all rows, has an energy below `best`, and raises the Lagrangian by
// less than `spare`.
inline Listing next_set(Deviations& v, double spare, double best) {
    while (v.level >= 0) {
        const int at = v.level, i = v.next[at]++;
        int& end = v.ends[at];  // before the deviations that raise too much
        while (end > i && !(v.raise[at] + v.list[end - 1].raise < spare)) --end;
        if (i >= end || highest_after(v, i, end) > 0.0) {
            if (--v.level >= 0) v.used[v.list[v.next[v.level] - 1].column] = false;
            continue;
        }
        if (v.used[v.list[i].column]) continue;
        if (v.steps-- == 0 || at + 1 == MOST_LEVELS) return TOO_MANY;
        const double violation = highest_with(v, i);
        v.used[v.list[i].column] = true;
        v.raise[at + 1] = v.raise[at] + v.list[i].raise;
        v.energy[at + 1] = v.energy[at] + v.list[i].energy;
        v.next[at + 1] = i + 1;
        v.ends[at + 1] = end;
        v.level = at + 1;
        if (!(violation > 0.0) && v.energy[at + 1] < best) return FOUND;
    }
    return ALL;
}

}  // namespace VOICECF_SET
}  // namespace voicecf

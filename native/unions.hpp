// Columns that belong together: their values lie in one of the boxes of a rule, a union of boxes.
//
// The boxes of a rule are ordered so that neighbours are close, and a node holds a range first..last of them.
// The choices that it leaves to the columns are cut to the hull of the boxes in its range that they meet, so that
// a range of one box is that box. Where the solution of a node lies in no box of its range, the range is divided
// in halves.
#pragma once

#include "choices.hpp"

namespace voicecf {

// What a box allows in one column: the row's own value if it lies in low..high, in the user's units; coordinates
// of any numbers, or of the ends of a grid; options of a grid; and levels begin to before end of a list.
struct Side {
    double low, high, from, to;
    Whole first, last, begin, end;
};

// A column in a rule: where its sides start, and whether the rows' own values are positions of levels.
struct Place {
    Whole column, start;
    bool coded;
};

// A rule: places first to before last, each with a side of every box.
struct Union {
    int first, last;
    Whole boxes;
};

// The rules of a batch of rows; there may be none.
struct Unions {
    int count, places, sides;
    const Union* all;
    const Place* place;
    const Side* side;
    const Whole* levels;
    const double* own;  // own values of the rows, (places,) or (n, places)
    bool own_values;
};

namespace VOICECF_SET {

// The rules as one row sees them: which sides its own values lie in, the box of each rule that an answer is in,
// and a node for the hull of boxes.
struct Boxes {
    Unions rules;
    bool* owned;
    Whole* around;
    Node hull;
};

// The range of boxes of a rule that a node leaves: the first, and the one after the last.
inline Whole* range_of(const Boxes& k, const Node& node, int t) {
    return node.data + node.size - 2 * (k.rules.count - t);
}

// Set which sides the own values of a row lie in, and leave all boxes to its root node.
inline void read_boxes(const Boxes& k, Whole row, const Node& root) {
    const Unions& r = k.rules;
    for (int t = 0; t < r.count; ++t) {
        range_of(k, root, t)[0] = 0;
        range_of(k, root, t)[1] = r.all[t].boxes;
        for (int p = r.all[t].first; p < r.all[t].last; ++p) {
            const double own = r.own[(r.own_values ? row * r.places : 0) + p];
            for (Whole at = r.place[p].start; at < r.place[p].start + r.all[t].boxes; ++at) {
                const Side& side = r.side[at];
                k.owned[at] = !r.place[p].coded && side.low <= own && own <= side.high;
                for (Whole e = side.begin; r.place[p].coded && e < side.end; ++e)
                    k.owned[at] = k.owned[at] || double(r.levels[e]) == own;
            }
        }
    }
}

// Whether a column may move to something within a side.
inline bool moves_into(const Boxes& k, const Options& o, const Node& node, int c, const Side& side) {
    const Column& column = o.columns[c];
    if (!(node.flags(c) & MOVES)) return false;
    if (column.freedom == ANY) return most(side.from, node.from(c)) <= least(side.to, node.to(c));
    if (column.freedom == GRID)
        return side.first <= side.last && side.first <= node.end(c) && node.begin(c) <= side.last;
    for (Whole e = side.begin; e < side.end; ++e)
        if (node.levels(column)[k.rules.levels[e]]) return true;
    return false;
}

// Whether some choice of a node lies in a box, column by column.
inline bool meets(const Boxes& k, const Options& o, const Node& node, int t, Whole box) {
    const Union& rule = k.rules.all[t];
    for (int p = rule.first; p < rule.last; ++p) {
        const int c = int(k.rules.place[p].column);
        const Whole at = k.rules.place[p].start + box;
        if (node.flags(c) & KEEPS && k.owned[at]) continue;
        if (!moves_into(k, o, node, c, k.rules.side[at])) return false;
    }
    return true;
}

// Widen the hull of a column by a side.
inline void widen(const Boxes& k, const Options& o, const Node& node, int c, Whole at) {
    const Column& column = o.columns[c];
    const Side& side = k.rules.side[at];
    if (k.owned[at]) k.hull.flags(c) |= KEEPS;
    if (!moves_into(k, o, node, c, side)) return;
    k.hull.flags(c) |= MOVES;
    k.hull.from(c) = least(k.hull.from(c), side.from);
    k.hull.to(c) = most(k.hull.to(c), side.to);
    if (side.first < k.hull.begin(c)) k.hull.begin(c) = side.first;
    if (side.last > k.hull.end(c)) k.hull.end(c) = side.last;
    for (Whole e = side.begin; e < side.end; ++e) k.hull.levels(column)[k.rules.levels[e]] = 1;
}

// Start the hull of a column without a side.
inline void clear_hull(const Boxes& k, const Options& o, int c) {
    k.hull.flags(c) = 0;
    k.hull.from(c) = INF;
    k.hull.to(c) = -INF;
    k.hull.begin(c) = INT64_MAX;
    k.hull.end(c) = INT64_MIN;
    if (o.columns[c].freedom != LEVELS) return;
    for (Whole l = 0; l < o.columns[c].count; ++l) k.hull.levels(o.columns[c])[l] = 0;
}

// Leave a column only what lies in the hull.
inline void cut_to_hull(const Boxes& k, const Options& o, const Node& node, int c) {
    const Column& column = o.columns[c];
    const Whole flags = node.flags(c) & k.hull.flags(c);
    const Whole counts = flags & KEEPS ? node.flags(c) & COUNTS : COUNTS;
    node.flags(c) = (flags & KEEPS) | (flags & MOVES ? MOVES | counts : 0);
    if (!(flags & MOVES)) return;
    if (column.freedom == ANY) {
        node.from(c) = most(node.from(c), k.hull.from(c));
        node.to(c) = least(node.to(c), k.hull.to(c));
    } else if (column.freedom == GRID) {
        if (node.begin(c) < k.hull.begin(c)) node.begin(c) = k.hull.begin(c);
        if (node.end(c) > k.hull.end(c)) node.end(c) = k.hull.end(c);
    } else {
        for (Whole l = 0; l < column.count; ++l) node.levels(column)[l] &= k.hull.levels(column)[l];
    }
}

// Cut a node to the hull of the boxes that it meets; false where it meets none of a rule.
inline bool cut_to_boxes(const Boxes& k, const Options& o, const Node& node) {
    for (int t = 0; t < k.rules.count; ++t) {
        const Union& rule = k.rules.all[t];
        Whole *range = range_of(k, node, t), first = range[1], last = range[0];
        for (int p = rule.first; p < rule.last; ++p) clear_hull(k, o, int(k.rules.place[p].column));
        for (Whole box = range[0]; box < range[1]; ++box) {
            if (!meets(k, o, node, t, box)) continue;
            if (box < first) first = box;
            last = box + 1;
            for (int p = rule.first; p < rule.last; ++p)
                widen(k, o, node, int(k.rules.place[p].column), k.rules.place[p].start + box);
        }
        if (first >= last) return false;
        range[0] = first;
        range[1] = last;
        for (int p = rule.first; p < rule.last; ++p) cut_to_hull(k, o, node, int(k.rules.place[p].column));
    }
    return true;
}

// Whether a column's pick lies within a side. A number that is no change is the row's own value.
inline bool lies_in(const Boxes& k, const Options& o, int c, Whole at, Whole pick, const double* y) {
    const Column& column = o.columns[c];
    const Side& side = k.rules.side[at];
    const Whole i = column.first;
    if (pick == OWN || (pick == NUMBER && y[i] == 0.0)) return k.owned[at];
    if (pick == NUMBER) return step_to(o, i, side.from) <= y[i] && y[i] <= step_to(o, i, side.to);
    if (column.freedom == GRID) return side.first <= pick && pick <= side.last;
    for (Whole e = side.begin; e < side.end; ++e)
        if (k.rules.levels[e] == pick) return true;
    return false;
}

// A box of a rule, among those that a node leaves, that picks lie in; -1 for none. A node that leaves one box was
// cut to it.
inline Whole box_around(const Boxes& k, const Options& o, const Node& node, int t, const Whole* pick,
                        const double* y) {
    const Union& rule = k.rules.all[t];
    const Whole* range = range_of(k, node, t);
    if (range[1] - range[0] == 1) return range[0];
    for (Whole box = range[0]; box < range[1]; ++box) {
        bool inside = true;
        for (int p = rule.first; inside && p < rule.last; ++p) {
            const int c = int(k.rules.place[p].column);
            inside = lies_in(k, o, c, k.rules.place[p].start + box, pick[c], y);
        }
        if (inside) return box;
    }
    return -1;
}

// The first rule that picks break; -1 for none. For the rules before it, the box that they lie in is stored.
inline int broken_union(const Boxes& k, const Options& o, const Node& node, const Whole* pick, const double* y) {
    for (int t = 0; t < k.rules.count; ++t) {
        k.around[t] = box_around(k, o, node, t, pick, y);
        if (k.around[t] < 0) return t;
    }
    return -1;
}

// The first rule of which a node leaves more than one box; -1 for none.
inline int open_union(const Boxes& k, const Node& node) {
    for (int t = 0; t < k.rules.count; ++t)
        if (range_of(k, node, t)[1] - range_of(k, node, t)[0] > 1) return t;
    return -1;
}

// Squared distance of a column's step from an option, or from no change.
inline double distance_to(const Options& o, int c, Whole pick, const double* y) {
    double sum = 0.0;
    for (Whole e = 0; e < o.columns[c].width; ++e) {
        const double far = (pick == OWN ? 0.0 : option_step(o, c, pick, e)) - y[o.columns[c].first + e];
        sum += far * far;
    }
    return sum;
}

// Squared distance of a column's step from what lies within a side, where a grid counts as any numbers; infinite
// for nothing.
inline double distance_to_side(const Boxes& k, const Options& o, const Node& node, int c, Whole at,
                               const double* y) {
    const Side& side = k.rules.side[at];
    const Whole i = o.columns[c].first;
    double best = node.flags(c) & KEEPS && k.owned[at] ? distance_to(o, c, OWN, y) : INF;
    if (!moves_into(k, o, node, c, side)) return best;
    if (o.columns[c].freedom != LEVELS) {
        const double far = clip(y[i], step_to(o, i, side.from), step_to(o, i, side.to)) - y[i];
        return least(best, far * far);
    }
    for (Whole e = side.begin; e < side.end; ++e) {
        const Whole level = k.rules.levels[e];
        if (node.levels(o.columns[c])[level]) best = least(best, distance_to(o, c, level, y));
    }
    return best;
}

// The box of a rule that is nearest to a step, among those that a node leaves.
inline Whole nearest_box(const Boxes& k, const Options& o, const Node& node, int t, const double* y) {
    const Union& rule = k.rules.all[t];
    const Whole* range = range_of(k, node, t);
    Whole chosen = range[0];
    double best = INF;
    for (Whole box = range[0]; box < range[1]; ++box) {
        double far = 0.0;
        for (int p = rule.first; p < rule.last && far < best; ++p)
            far += distance_to_side(k, o, node, int(k.rules.place[p].column), k.rules.place[p].start + box, y);
        if (!(far < best)) continue;
        chosen = box;
        best = far;
    }
    return chosen;
}

// Cut a node to one box of each rule: the one that picks lie in, or the nearest. Returns whether they lie in all.
inline bool enter_boxes(const Boxes& k, const Options& o, const Node& node, const Whole* pick, const double* y) {
    bool inside = true;
    for (int t = 0; t < k.rules.count; ++t) {
        k.around[t] = box_around(k, o, node, t, pick, y);
        inside = inside && k.around[t] >= 0;
        if (k.around[t] < 0) k.around[t] = nearest_box(k, o, node, t, y);
        range_of(k, node, t)[0] = k.around[t];
        range_of(k, node, t)[1] = k.around[t] + 1;
    }
    return inside;
}

// Cut intervals of coordinates to the boxes in k.around.
inline void cut_ends(const Boxes& k, const Options& o, double* ends) {
    for (int t = 0; t < k.rules.count; ++t)
        for (int p = k.rules.all[t].first; p < k.rules.all[t].last; ++p) {
            const int c = int(k.rules.place[p].column);
            const Side& side = k.rules.side[k.rules.place[p].start + k.around[t]];
            if (o.columns[c].freedom != ANY) continue;
            ends[c] = most(ends[c], side.from);
            ends[o.many + c] = least(ends[o.many + c], side.to);
        }
}

// The multiples of a step, with levels and columns that do not move held, that lie in a box; none if first > last.
struct Stretch {
    double first, last;
};

inline Stretch multiples_in(const Boxes& k, const Options& o, int t, Whole box, const Whole* pick, const double* y) {
    Stretch found = {-INF, INF};
    for (int p = k.rules.all[t].first; p < k.rules.all[t].last; ++p) {
        const int c = int(k.rules.place[p].column);
        const Whole at = k.rules.place[p].start + box, i = o.columns[c].first;
        if (o.columns[c].freedom == LEVELS || y[i] == 0.0) {
            if (!lies_in(k, o, c, at, pick[c], y)) return {INF, -INF};
            continue;
        }
        const double low = step_to(o, i, k.rules.side[at].from) / y[i];
        const double high = step_to(o, i, k.rules.side[at].to) / y[i];
        found.first = most(found.first, least(low, high));
        found.last = least(found.last, most(low, high));
    }
    return found;
}

// Largest multiple of a step, at least 1, up to which all multiples lie in boxes of every rule.
inline double reach_in_boxes(const Boxes& k, const Options& o, const Whole* pick, const double* y) {
    double reach = INF;
    for (int t = 0; t < k.rules.count; ++t) {
        double end = 1.0;
        for (bool further = true; further;) {
            further = false;
            for (Whole box = 0; box < k.rules.all[t].boxes; ++box) {
                const Stretch in = multiples_in(k, o, t, box, pick, y);
                if (!(in.first <= end * (1.0 + REACHED) && in.last > end)) continue;
                end = in.last;
                further = true;
            }
        }
        reach = least(reach, end);
    }
    return reach;
}

}  // namespace VOICECF_SET
}  // namespace voicecf

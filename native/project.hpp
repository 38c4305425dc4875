// Projection of points: cutting planes over Newton, and the active-set method as a fallback.
//
// Few of all rows are active at an answer. A point starts with no rows. Each round prices all rows at the
// step so far (scores.hpp), adds violated ones to the choice, and solves for the choice: by its Gram matrix
// while the box does not bind, by Newton with the box implicit once it does (newton.hpp). Where no row is
// violated, and none is closer than the model's rounding allows, the step is the answer. Points that this
// gives up go to the active-set method with all rows (active_set.hpp).
#pragma once

#include <cstring>

#include "active_set.hpp"
#include "blocks.hpp"
#include "cell.hpp"
#include "scores.hpp"

namespace voicecf {
namespace VOICECF_SET {

// At most so many violated rows are added a round, each violated by at least this share of the worst.
constexpr int CUTS = 6;
constexpr double CUT_SHARE = 0.5;
constexpr int ROUNDS = 48;

// Copy the box of a point, and note whether it is empty and whether it has any finite side.
template <class Real>
void read_box(const Point& p, Workspace<Real>& w) {
    double *lo = w.s.lo, *hi = w.s.hi;
    copy_line(p.lo, lo, w.s.d);
    copy_line(p.hi, hi, w.s.d);
    for (int i = 0; i < (p.ranks ? w.s.d : 0); ++i) {
        const bool keeps = p.ranks[i] >= p.count;
        lo[i] = keeps ? p.at[i] : lo[i];
        hi[i] = keeps ? p.at[i] : hi[i];
    }
    bool some = true, bounded = false;
    for (int i = 0; i < w.s.d; ++i) {
        some &= (lo[i] <= hi[i]) & (lo[i] < INF) & (hi[i] > -INF);
        bounded |= (lo[i] > -INF) | (hi[i] < INF);
    }
    for (int i = 0; i < (bounded ? 0 : w.s.d); ++i) {
        w.s.low[i] = -INF;
        w.s.high[i] = INF;
    }
    w.some = some;
    w.bounded = bounded;
}

// Convert a point and its box to the scaled coordinates of steps.
template <class Real>
void enter(const Rows<Real>& rows, Point& p, bool bounded, Steps& s) {
    const double* origin = origin_of(rows, p.target);
    copy_line(p.at, s.a, s.d);
    Doubles size = Doubles::all(0.0), far = size;
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles a = Doubles::load(s.a + i), scale = Doubles::load(rows.scale + i);
        const Doubles placed = scale * a, x = scale * (a - Doubles::load(origin + i));
        placed.store(s.placed + i);
        x.store(s.x + i);
        if (bounded) {
            (scale * (Doubles::load(s.lo + i) - a)).store(s.low + i);
            (scale * (Doubles::load(s.hi + i) - a)).store(s.high + i);
        }
        size = size + placed * placed;
        far = far + x * x;
    }
    p.size = std::sqrt(total(size));
    p.far = total(far);
}

// Load row j into the place behind the choice, without adding it. Its b already includes the slack that the
// model's rounding is likely to need at an answer.
template <class Real>
void load_row(const Rows<Real>& rows, const Point& p, int j, Workspace<Real>& w) {
    Choice& c = w.choice;
    const int at = c.count;
    double offset;
    c.ids[at] = j;
    c.mu[at] = 0.0;
    if (rows.stored.u) {
        const int row = rows.pairs && j > p.target ? j - 1 : j;
        const std::size_t place = std::size_t(p.target) * rows.stored.m + row;
        c.rows[at] = rows.stored.u + place * rows.wide;
        c.inverse[at] = 1.0 / rows.stored.norms[place];
        c.guards[at] = rows.stored.guards[place];
        offset = rows.stored.offsets[place];
    } else if (rows.pairs) {
        double* u = c.made + std::size_t(at) * rows.wide;
        c.inverse[at] = make_row(rows, p.target, j, u, offset, c.guards[at]);
        c.rows[at] = u;
    } else {
        c.rows[at] = rows.u + std::size_t(j) * rows.wide;
        c.inverse[at] = 1.0;
        c.guards[at] = rows.guards[j];
        offset = rows.offsets[j];
    }
    c.base[at] = slack_of(offset, c.rows[at], w.s, p.far);
    const Sizes ahead = {most(p.size, w.seen.size), most(-c.base[at], w.seen.step),
                         most(least(p.far, 4.0 * offset * offset), w.seen.square)};
    c.b[at] = c.base[at] - room_to_ask(c.guards[at], ahead, w.factor);
}

// Add the loaded row to the choice.
template <class Real>
void take_row(const Rows<Real>& rows, Workspace<Real>& w) {
    Choice& c = w.choice;
    const int at = c.count++, stride = c.limit + 1;
    w.begin[c.ids[at]] = Real(CHOSEN);
    if (w.boxed) return;
    for (int q = 0; q <= at; ++q)
        c.gram[at * stride + q] = c.gram[q * stride + at] = dot(c.rows[at], c.rows[q], rows.wide);
}

// Whether the loaded row holds at the step, with the slack that the model's rounding needs.
template <class Real>
bool has_room(const Rows<Real>& rows, const Workspace<Real>& w, const Sizes& z) {
    const Choice& c = w.choice;
    const double* u = c.rows[c.count];
    const double base = c.base[c.count], slack = base - dot(u, w.s.y, rows.wide);
    const Guard& g = c.guards[c.count];
    if (!(g.behind + slack >= w.factor * room_for(g, z))) return false;
    return slack >= 0.0 ||
           -slack <= TIGHT * (std::fabs(base) + dot_of_sizes(u, w.s.y, rows.wide));
}

// Add rows that are violated beyond the error of pricing: at first the worst one only. Returns how many, or
// -1 if the choice is full.
template <class Real>
int take_violated(const Rows<Real>& rows, const Point& p, Workspace<Real>& w) {
    const double worst = highest_peak(w.peaks);
    if (!(worst > w.error)) return 0;
    int count = 1;
    if (w.choice.count == 0)
        w.found[0] = highest_position(w.r, w.peaks);
    else
        count = peaks_above(w.r, w.peaks, Real(CUT_SHARE * worst), CUTS, w.found);
    for (int q = 0; q < count; ++q) {
        if (w.choice.count == w.choice.limit) return -1;
        load_row(rows, p, w.found[q], w);
        take_row(rows, w);
    }
    return count;
}

// Add rows that are violated within the error of pricing, or too close for the model's rounding. Returns how
// many, or -1 if the choice is full.
template <class Real>
int take_close(const Rows<Real>& rows, const Point& p, const Sizes& z, Workspace<Real>& w) {
    const double bar = -(w.error + w.factor * room_of_all(rows, z));
    const int count = above(w.r, w.peaks, rows.count, Real(bar), w.found);
    int taken = 0;
    for (int q = 0; q < count; ++q) {
        if (rows.pairs && w.found[q] == p.target) continue;  // no row, but above the bar where steps are huge
        if (w.choice.count == w.choice.limit) return -1;
        load_row(rows, p, w.found[q], w);
        if (has_room(rows, w, z)) continue;
        take_row(rows, w);
        ++taken;
    }
    return taken;
}

// Solve for the multipliers and the step of the choice; false if given up. A step without a box is judged when no
// other row is violated any more.
template <class Real>
bool move(Workspace<Real>& w) {
    Choice& c = w.choice;
    w.moved = true;
    if (!w.boxed) {
        const bool found = all_at_once(c);
        c.known = c.count;
        if (found) free_step(c, w.s);
        if (found && keeps_in_box(w.s)) return true;
        w.boxed = true;
        if (!found) fill(c.mu, 0.0, c.count);
    }
    if (!newton(c, w.s)) return false;
    snap(c, w.s);
    return true;
}

// Set the first step: from the point to the nearest point of its box. `moved` says whether it is not zero,
// `boxed` whether the box binds already or some coordinate is fixed.
inline void start(Steps& s, bool& boxed, bool& moved) {
    const Doubles zero = Doubles::all(0.0), one = Doubles::all(1.0);
    Doubles away = zero, open = one;
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles low = Doubles::load(s.low + i), high = Doubles::load(s.high + i);
        const Doubles y = smaller(larger(zero, low), high);
        y.store(s.y + i);
        away = larger(away, size_of(y));
        const Doubles gap = if_less(low, high, one, zero);
        gap.store(s.free + i);
        if (i + 8 <= s.d) open = smaller(open, gap);
    }
    moved = highest(away) > 0.0;
    boxed = moved || !(-highest(zero - open) > 0.0);
    for (int i = s.d / 8 * 8; i < s.d; ++i) boxed |= s.free[i] == 0.0;
}

// Solve for one point by Newton on a choice of rows; UNRESOLVED where that is given up without a proof.
template <class Real>
Status solve(const Rows<Real>& rows, const Point& p, Workspace<Real>& w) {
    // Where a block of few rows has left a point open, its bounds bind as a rule.
    const bool tried = rows.stored.u && rows.stored.m <= FEW_ROWS;
    Choice& c = w.choice;
    c.count = c.known = c.factored = 0;
    price_scores(rows, p, w.begin, w.begin, w);
    start(w.s, w.boxed, w.moved);
    w.boxed |= tried && w.bounded;
    for (int round = 0; round < ROUNDS; ++round) {
        price_all(rows, p, w);
        int taken = take_violated(rows, p, w);
        if (taken == 0 && !w.boxed && !is_settled(c, w.s)) {
            w.boxed = true;
            taken = 1;  // Newton goes on from these multipliers
        } else if (taken == 0) {
            const Sizes z = sizes_of(w.s);
            taken = take_close(rows, p, z, w);
            const Room room = room_of(c, z, w.factor);
            w.close = room == CLOSE || w.factor < 1.0;
            if (taken == 0 && (room != CLOSE || w.seen.size > 0.0))
                return is_sound(z) && room != TOO_CLOSE ? OPTIMAL : UNRESOLVED;
            if (taken == 0) ask_room(c, w.seen = z, w.factor);
        }
        if (taken < 0) return UNRESOLVED;
        if (!move(w)) return shows_empty(c, w.s) ? INFEASIBLE : UNRESOLVED;
    }
    return UNRESOLVED;
}

// Hand all rows of a point's target to the active-set method. Rows that are made from centroids are kept until
// another target comes.
template <class Real>
void list_rows(const Rows<Real>& rows, const Point& p, Workspace<Real>& w) {
    ActiveSet& a = w.hard;
    if (!rows.pairs) {
        a.u = rows.u;
        a.offsets = rows.offsets;
        a.guards = rows.guards;
        return;
    }
    a.u = a.made;
    a.offsets = a.made_offsets;
    a.guards = a.made_guards;
    if (w.made_for == p.target) return;
    w.made_for = p.target;
    for (int j = 0; j < a.m; ++j)
        a.made_inverse[j] =
            make_row(rows, p.target, j < p.target ? j : j + 1, a.made + std::size_t(j) * rows.wide,
                     a.made_offsets[j], a.made_guards[j]);
}

// Cost in the weights.
template <class Real>
void measure(const Rows<Real>& rows, const Results& out, std::int64_t to, const Workspace<Real>& w) {
    Doubles cost = Doubles::all(0.0);
    for (int i = 0; i < rows.wide; i += 8) {
        const Doubles t = Doubles::load(w.s.z + i) - Doubles::load(w.s.a + i);
        cost = cost + Doubles::load(rows.weights + i) * t * t;
    }
    out.cost[to] = total(cost);
}

// Write the answer of `solve`.
template <class Real>
void write_found(const Rows<Real>& rows, const Point& p, const Results& out, std::int64_t to,
                 Workspace<Real>& w) {
    const Choice& c = w.choice;
    double gap = 0.0, reach = reach_in_box(w.s);
    const double step = std::sqrt(dot(w.s.y, w.s.y, w.s.wide));
    for (int q = 0; q < c.count; ++q) {
        gap -= c.mu[q] * c.residual[q];
        const double rise = c.residual[q] + c.b[q];
        if (rise > FLAT * step && c.base[q] < reach * rise) reach = c.base[q] / rise;
        if (out.width) out.multipliers[to * out.width + c.ids[q]] = c.mu[q] * c.inverse[q];
    }
    out.gap[to] = out.source ? gap * (step > 0.0 ? 2.0 / (step * step) : 2.0) : gap;
    out.reach[to] = reach_of_all(rows, p, reach, step, w);
    leave(w.s, rows.inverse);
}

// Solve for a point by the active-set method with all rows, and write the answer.
template <class Real>
Status write_hard(const Rows<Real>& rows, const Point& p, const Results& out, std::int64_t to,
                  Workspace<Real>& w) {
    ActiveSet& a = w.hard;
    list_rows(rows, p, w);
    const SafeAnswer found = answer_safely(a, w.s, w.factor);
    w.close = found.room == CLOSE || w.factor < 1.0;
    if (found.status == OPTIMAL) {
        const double step = found.sizes.step;
        out.gap[to] = out.source ? found.gap * (step > 0.0 ? 2.0 / (step * step) : 2.0) : found.gap;
        out.reach[to] = reach_of(a, w.s, step);
        leave(w.s, rows.inverse);
        const double* origin = origin_of(rows, p.target);
        if (step > NEAR * std::sqrt(found.sizes.square)) polish(a, w.s, rows.scale, origin);
    }
    for (int j = 0; j < (out.width ? a.m : 0); ++j) {
        const int id = rows.pairs && j >= p.target ? j + 1 : j;
        out.multipliers[to * out.width + id] = rows.pairs ? a.mu[j] * a.made_inverse[j] : a.mu[j];
    }
    return found.status;
}

// Write that a point has no answer.
inline void write_nothing(const Results& out, std::int64_t to, int d) {
    fill(out.points + to * d, std::numeric_limits<double>::quiet_NaN(), d);
    out.close[to] = false;
    out.gap[to] = out.reach[to] = std::numeric_limits<double>::quiet_NaN();
    if (out.cost) out.cost[to] = std::numeric_limits<double>::quiet_NaN();
}

// Write that a point is in its target already.
inline void write_already(const Point& p, const Results& out, std::int64_t to, int d) {
    copy_line(p.at, out.points + to * d, d);
    out.status[to] = ALREADY;
    out.close[to] = false;
    out.gap[to] = out.cost[to] = 0.0;
    out.reach[to] = INF;
}

// Write the cluster of a point, -1 where only the model's own predict can decide; true if it is the target.
template <class Real>
bool tell_source(const Rows<Real>& rows, const Point& p, double span, const Results& out,
                 std::int64_t to, Workspace<Real>& w) {
    out.source[to] = -1;
    if (!(span < FURTHEST<Real>)) return false;
    const Nearest found = nearest_of(rows, span, w.begin, w);
    if (!found.doubtful) out.source[to] = found.label;
    return out.source[to] == p.target;
}

// Solve for one point, whose scores are known and which is not in its target, and write the answer.
template <class Real>
void answer(const Rows<Real>& rows, Point& p, double span, const Results& out, std::int64_t to,
            Workspace<Real>& w) {
    enter(rows, p, w.bounded, w.s);
    w.seen = {0.0, 0.0, 0.0};
    Status status = w.some ? UNRESOLVED : INFEASIBLE;
    w.slop = 2.0 * (rows.d + 8) * ROUNDING<Real> * (span + rows.level_size);
    if (w.some && span < FURTHEST<Real>) status = solve(rows, p, w);
    if (status == OPTIMAL)
        write_found(rows, p, out, to, w);
    else if (w.some && p.size < INF && (status == UNRESOLVED || out.width))  // multipliers are from all rows
        status = write_hard(rows, p, out, to, w);
    out.status[to] = status;
    if (status != OPTIMAL) {
        write_nothing(out, to, rows.d);
        return;
    }
    out.close[to] = w.close;
    copy_line(w.s.z, out.points + to * rows.d, rows.d);
    if (out.source) measure(rows, out, to, w);
}

// Problem q of a batch.
template <class Real>
Point point_of(const Rows<Real>& rows, const Batch& batch, std::int64_t q) {
    const std::int64_t at = batch.rows ? batch.rows[q] : q, d = rows.d;
    return {batch.points + at * d,
            batch.lo + (batch.own_lo ? at * d : 0),
            batch.hi + (batch.own_hi ? at * d : 0),
            batch.targets ? int(batch.targets[q]) : 0,
            0.0,
            0.0,
            batch.ranks,
            batch.ranks ? batch.counts[q] : 0};
}

// Compute the scores of up to BLOCK points together, then solve for them one by one.
template <class Real>
void answer_scored(const Rows<Real>& rows, const Batch& batch, const Results& out,
                   const std::int64_t* which, int count, Workspace<Real>& w) {
    const double* at[BLOCK] = {};
    for (int q = 0; q < count; ++q) at[q] = point_of(rows, batch, which[q]).at;
    enter_block(rows, at, count, w);
    if (count == BLOCK)
        multiply<Real, BLOCK>(rows, w.block, w.scores);
    else
        for (int q = 0; q < count; ++q)
            multiply<Real, 1>(rows, w.block + q * rows.wide, w.scores + std::size_t(q) * rows.long_);
    for (int q = 0; q < count; ++q) {
        Point p = point_of(rows, batch, which[q]);
        const std::int64_t to = which[q];
        if (!batch.one_box()) read_box(p, w);
        w.begin = w.scores + std::size_t(q) * rows.long_;
        copy_line(p.at, w.s.a, rows.d);
        if (out.source && !rows.stored.u && tell_source(rows, p, w.spans[q], out, to, w))
            write_already(p, out, to, rows.d);
        else
            answer(rows, p, w.spans[q], out, to, w);
    }
}

// Use the place of point q for its box, if points have boxes of their own.
template <class Real>
void use_box(const Batch& batch, int q, Workspace<Real>& w) {
    if (batch.one_box()) return;
    w.s.lo = w.lanes.lo + q * w.s.wide;
    w.s.hi = w.lanes.hi + q * w.s.wide;
}

// Solve the problems of a block within their boxes, by one row each, and judge them.
template <class Real>
void solve_boxed(const Rows<Real>& rows, const Batch& batch, const Cell& cell, Workspace<Real>& w) {
    Block& k = w.lanes;
    const double *lows[LANES], *highs[LANES];
    for (int q = 0; q < LANES; ++q) {
        use_box(batch, q, w);
        enter_box(rows, q, w);
        lows[q] = k.lows + q * rows.wide;
        highs[q] = k.highs + q * rows.wide;
    }
    turn_lines(lows, rows.d, k.low, LANES);
    turn_lines(highs, rows.d, k.high, LANES);
    step_in_box(cell, rows.d, k);
    judge_lanes(cell, w.factor, k);
}

// Solve for a block of points of one target. Points that need more than a block does are appended to `left`;
// returns how many.
template <class Real>
int answer_block(const Rows<Real>& rows, const Batch& batch, const Results& out, const Cell& cell,
                 const std::int64_t* which, int count, Workspace<Real>& w, std::int64_t* left) {
    const double* at[LANES];
    const Steps common = w.s;
    int boxed[LANES], many = 0, open = 0;
    for (int q = 0; q < LANES; ++q) at[q] = point_of(rows, batch, which[q < count ? q : count - 1]).at;
    solve_block(rows, cell, at, w);
    if (out.source) assign_lanes(rows, cell, w.lanes);
    for (int q = 0; q < count; ++q) {
        const Point p = point_of(rows, batch, which[q]);
        const std::int64_t to = which[q];
        if (out.source) {
            out.source[to] = std::int64_t(w.lanes.own[q]);
            if (out.source[to] == cell.target) {
                write_already(p, out, to, rows.d);
                continue;
            }
        }
        use_box(batch, q, w);
        if (!batch.one_box()) read_box(p, w);
        w.lanes.some[q] = w.some;
        if (write_lane(rows, cell, q, out, to, w)) continue;
        if (w.lanes.several[q])
            left[open++] = to;
        else
            boxed[many++] = q;
    }
    if (many > 0) solve_boxed(rows, batch, cell, w);
    for (int t = 0; t < many; ++t) {
        const int q = boxed[t];
        use_box(batch, q, w);
        if (!write_boxed(rows, cell, q, out, which[q], w)) left[open++] = which[q];
    }
    w.s = common;
    return open;
}

// Solve where rows are stored: sorted by target and by the coordinates that may move, block by block, and what
// blocks leave one by one.
template <class Real>
void answer_sorted(const Rows<Real>& rows, const Batch& batch, const Results& out, std::int64_t start,
                   std::int64_t stop, Workspace<Real>& w) {
    const int n = int(stop - start), targets = rows.stored.targets;
    const int* order = w.lanes.order;
    std::int64_t which[LANES], left[LANES + BLOCK];
    int open = 0;
    sort_by_target(batch, start, n, targets, w.lanes);
    for (int t = 0; t < targets; ++t) {
        Cell cell = cell_of(rows, t);
        bool blocks = true;
        for (int first = w.lanes.starts[t], last; first < w.lanes.starts[t + 1]; first = last) {
            const std::int64_t some = count_of(batch, start + order[first]);
            const bool begins = first == w.lanes.starts[t] || some != count_of(batch, start + order[first - 1]);
            if (batch.ranks && begins) {
                const bool all = !is_limited(batch, some, rows.d);
                blocks = all || cell.m <= FEW_ROWS;
                if (blocks) cell = all ? cell_of(rows, t) : limited(cell, batch, some, rows.d, w.lanes);
            }
            int count = 0;
            for (last = first; last < w.lanes.starts[t + 1] && count < LANES; ++last) {
                if (count_of(batch, start + order[last]) != some) break;
                which[count++] = start + order[last];
            }
            if (blocks)
                open += answer_block(rows, batch, out, cell, which, count, w, left + open);
            for (int q = 0; q < (blocks ? 0 : count); ++q) left[open++] = which[q];
            if (open < BLOCK) continue;
            answer_scored(rows, batch, out, left, BLOCK, w);
            open -= BLOCK;
            for (int q = 0; q < open; ++q) left[q] = left[BLOCK + q];
        }
    }
    answer_scored(rows, batch, out, left, open, w);
}

// Project problems start to stop.
template <class Real>
void project_chunk(const Rows<Real>& rows, const Batch& batch, const Results& out, std::int64_t start,
                   std::int64_t stop, Workspace<Real>& w) {
    w.factor = batch.factor;
    if (batch.one_box()) read_box({nullptr, batch.lo, batch.hi, 0, 0.0, 0.0}, w);
    const std::int64_t span = rows.stored.u ? SORTED : BLOCK;
    for (std::int64_t first = start; first < stop && !interrupted(); first += span) {
        const std::int64_t last = first + span < stop ? first + span : stop;
        if (out.copies)
            std::memcpy(out.copies + first * rows.d, batch.points + first * rows.d,
                        std::size_t(last - first) * rows.d * sizeof(double));
        if (rows.stored.u) {
            answer_sorted(rows, batch, out, first, last, w);
            continue;
        }
        std::int64_t which[BLOCK];
        for (std::int64_t q = first; q < last; ++q) which[q - first] = q;
        answer_scored(rows, batch, out, which, int(last - first), w);
    }
}

// Where labels go, and where the model's rounding leaves them in doubt.
struct Labels {
    std::int64_t* labels;
    bool* doubtful;
};

// Name the nearest centroids of points, one by one.
template <class Real>
void nearest_alone(const Rows<Real>& rows, const double* const* at, int count, const Labels& out,
                   Workspace<Real>& w) {
    enter_block(rows, at, count, w);
    if (count == BLOCK)
        multiply<Real, BLOCK>(rows, w.block, w.scores);
    else
        for (int q = 0; q < count; ++q)
            multiply<Real, 1>(rows, w.block + q * rows.wide, w.scores + std::size_t(q) * rows.long_);
    for (int q = 0; q < count; ++q) {
        copy_line(at[q], w.s.a, rows.d);
        const Nearest found = w.spans[q] < FURTHEST<Real>
                                  ? nearest_of(rows, w.spans[q], w.scores + std::size_t(q) * rows.long_, w)
                                  : nearest_of_all(rows, w);
        out.labels[q] = found.label;
        out.doubtful[q] = found.doubtful;
    }
}

// Name the nearest centroids of a block of points: of many centroids, side by side; of few, points are.
inline void nearest_block(const Rows<float>& rows, const double* const* at, int count, const Labels& out,
                          Workspace<float>& w) {
    nearest_alone(rows, at, count, out, w);
}
inline void nearest_block(const Rows<double>& rows, const double* const* at, int count, const Labels& out,
                          Workspace<double>& w) {
    nearest_lanes(rows, at, w.lanes);
    for (int q = 0; q < count; ++q) {
        out.labels[q] = std::int64_t(w.lanes.own[q]);
        out.doubtful[q] = false;
        if (out.labels[q] < 0) nearest_alone(rows, at + q, 1, {out.labels + q, out.doubtful + q}, w);
    }
}

// Name the nearest centroids of points start to stop.
template <class Real>
void nearest_chunk(const Rows<Real>& rows, const double* points, const Labels& out, std::int64_t start,
                   std::int64_t stop, Workspace<Real>& w) {
    const double* at[BLOCK];
    for (std::int64_t first = start; first < stop && !interrupted(); first += BLOCK) {
        const int count = int(stop - first < BLOCK ? stop - first : BLOCK);
        for (int q = 0; q < BLOCK; ++q) at[q] = points + (first + (q < count ? q : count - 1)) * rows.d;
        nearest_block(rows, at, count, {out.labels + first, out.doubtful + first}, w);
    }
}

}  // namespace VOICECF_SET
}  // namespace voicecf

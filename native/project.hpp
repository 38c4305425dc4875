// The path of a point: price all rows, take in those that matter, solve for these, and again.
//
// Of all rows few matter to an answer. A point starts with none, and each round prices all rows at the
// step so far (scores.hpp), takes in violated ones, and solves for the rows taken in: by their Gram
// matrix while the box does not bind, by Newton with the box implicit once it does (newton.hpp). Where
// no row is violated, and none is closer than the model's rounding allows, the step is the answer.
// What is given up on the way goes to the active-set method with all rows (active_set.hpp).
#pragma once

#include "active_set.hpp"
#include "scores.hpp"

namespace voicecf {
namespace VOICECF_SET {

// Violated rows that are taken in at a time, if violated by at least this share of the worst.
constexpr int CUTS = 6;
constexpr double CUT_SHARE = 0.5;
constexpr int ROUNDS = 48;

// Turn a point and its box into steps; false where the box itself is empty.
template <class Real>
bool enter(const Rows<Real>& rows, Point& p, Steps& s) {
    const double* origin = rows.pairs ? rows.centers + std::size_t(p.target) * rows.wide : rows.origin;
    bool some = true;
    for (int i = 0; i < s.d; ++i) {
        const double a = p.at[i], scale = rows.scale[i];
        s.a[i] = a;
        s.placed[i] = scale * a;
        s.x[i] = scale * (a - origin[i]);
        s.low[i] = scale * (p.lo[i] - a);
        s.high[i] = scale * (p.hi[i] - a);
        some &= (p.lo[i] <= p.hi[i]) & (p.lo[i] < INF) & (p.hi[i] > -INF);
    }
    p.size = std::sqrt(dot(s.placed, s.placed, s.wide));
    p.far = dot(s.x, s.x, s.wide);
    return some;
}

// Make the row of rival j of a cell: a unit row, its offset, its guard; one over its length.
template <class Real>
double make_row(const Rows<Real>& rows, int target, int j, double* u, double& offset, Guard& guard) {
    const double *mine = rows.centers + std::size_t(target) * rows.wide,
                 *theirs = rows.centers + std::size_t(j) * rows.wide;
    Doubles squares = Doubles::all(0.0), spreads = squares;
    for (int i = 0; i < rows.wide; i += 8) {
        const Doubles t = Doubles::load(theirs + i) - Doubles::load(mine + i);
        const Doubles a = Doubles::load(rows.pull + i) * t;
        squares = squares + a * a;
        spreads = spreads + Doubles::load(rows.weights + i) * t * t;
        a.store(u + i);
    }
    const double inverse = 1.0 / std::sqrt(total<double>(squares));
    const Doubles factor = Doubles::all(inverse);
    for (int i = 0; i < rows.wide; i += 8) (factor * Doubles::load(u + i)).store(u + i);
    const double half = 0.5 * total<double>(spreads) * inverse, alpha = rows.alphas[target];
    const double one = rows.lengths[target], other = rows.lengths[j], growth = rows.growth * inverse;
    offset = alpha * half;
    guard = {(1.0 - alpha) * half, 0.0, 2.0 * rows.eps, growth, 32.0 * EPS};
    if (rows.expanded) {
        guard.constant = 0.5 * growth * (one * one + other * other);
        guard.of_size += growth * (one + other);
    }
    return inverse;
}

// Set row j as the next of the choice, without taking it in. It asks at once for the room that an answer
// at the row is likely to need: about as large as the point, as far from it as the row, and half way
// between two centroids.
template <class Real>
void load_row(const Rows<Real>& rows, const Point& p, int j, Workspace<Real>& w) {
    Choice& c = w.choice;
    const int at = c.count;
    double offset;
    c.ids[at] = j;
    c.mu[at] = 0.0;
    if (rows.pairs) {
        double* u = c.made + std::size_t(at) * rows.wide;
        c.inverse[at] = make_row(rows, p.target, j, u, offset, c.guards[at]);
        c.rows[at] = u;
    } else {
        c.rows[at] = rows.u + std::size_t(j) * rows.wide;
        c.inverse[at] = 1.0;
        c.guards[at] = rows.guards[j];
        offset = rows.offsets[j];
    }
    c.base[at] = offset - dot(c.rows[at], w.s.x, rows.wide);
    const Sizes near = {p.size, most(-c.base[at], 0.0), least(p.far, 4.0 * offset * offset)};
    const double need = 2.0 * room_for(c.guards[at], near);
    c.b[at] = c.base[at] - most(need - c.guards[at].behind, 0.0);
}

// Take the loaded row into the choice.
template <class Real>
void take_row(const Rows<Real>& rows, Workspace<Real>& w) {
    Choice& c = w.choice;
    const int at = c.count++, stride = c.limit + 1;
    if (w.boxed) return;
    for (int q = 0; q <= at; ++q)
        c.gram[at * stride + q] = c.gram[q * stride + at] = dot(c.rows[at], c.rows[q], rows.wide);
}

// Whether the loaded row holds, and is as far off as the model's rounding needs.
template <class Real>
bool has_room(const Rows<Real>& rows, const Workspace<Real>& w, const Sizes& z) {
    const Choice& c = w.choice;
    const double* u = c.rows[c.count];
    const double base = c.base[c.count], slack = base - dot(u, w.s.y, rows.wide);
    const Guard& g = c.guards[c.count];
    if (!(g.behind + slack >= room_for(g, z))) return false;
    return slack >= 0.0 ||
           -slack <= TIGHT * (std::fabs(base) + dot_of_sizes(u, w.s.y, rows.wide));
}

// Take in rows that are clearly violated: the worst alone at first; how many, or -1 for too many.
template <class Real>
int take_violated(const Rows<Real>& rows, const Point& p, Workspace<Real>& w) {
    const double worst = highest_peak(w.peaks, rows.long_);
    if (!(worst > w.error)) return 0;
    const int limit = w.choice.count == 0 ? 1 : CUTS;
    const double bar = limit == 1 ? std::nextafter(Real(worst), Real(0)) : CUT_SHARE * worst;
    const int count = peaks_above(w.r, w.peaks, rows.long_, Real(bar), limit, w.found);
    for (int q = 0; q < count; ++q) {
        if (w.choice.count == w.choice.limit) return -1;
        load_row(rows, p, w.found[q], w);
        take_row(rows, w);
    }
    return count;
}

// Take in rows that scores cannot tell to be satisfied, or that are too close for the model's rounding.
template <class Real>
int take_close(const Rows<Real>& rows, const Point& p, const Sizes& z, Workspace<Real>& w) {
    const double bar = -(w.error + room_of_all(rows, z));
    const int count = above(w.r, w.peaks, rows.long_, Real(bar), w.found);
    int taken = 0;
    for (int q = 0; q < count; ++q) {
        if (w.choice.count == w.choice.limit) return -1;
        load_row(rows, p, w.found[q], w);
        if (has_room(rows, w, z)) continue;
        take_row(rows, w);
        ++taken;
    }
    return taken;
}

// Solve for the rows of the choice: new multipliers, and the step that they make. False if given up.
template <class Real>
bool move(Workspace<Real>& w) {
    Choice& c = w.choice;
    w.moved = true;
    if (!w.boxed) {
        const bool found = free_multipliers(c, true) || free_multipliers(c, false);
        c.known = c.count;
        if (found && settle_free(c, w.s) && keeps_in_box(w.s)) return true;
        w.boxed = true;
        if (!found) fill(c.mu, 0.0, c.count);
    }
    if (!newton(c, w.s)) return false;
    snap(c, w.s);
    return true;
}

// Set the first step, which brings the point into its box, and whether the box binds from the start.
inline void start(Steps& s, bool& boxed, bool& moved) {
    boxed = moved = false;
    for (int i = 0; i < s.d; ++i) {
        s.y[i] = clip(0.0, s.low[i], s.high[i]);
        moved |= s.y[i] != 0.0;
        boxed |= !(s.low[i] < s.high[i]);
    }
    boxed |= moved;
}

// Answer one point by Newton on few rows; unresolved where that is given up.
template <class Real>
Status solve(const Rows<Real>& rows, const Point& p, Workspace<Real>& w) {
    Choice& c = w.choice;
    c.count = c.known = 0;
    start(w.s, w.boxed, w.moved);
    int pushes = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        price_all(rows, p, w);
        int taken = take_violated(rows, p, w);
        if (taken == 0) {
            const Sizes z = sizes_of(w.s);
            taken = take_close(rows, p, z, w);
            if (taken == 0 && !push(c, z)) return is_sound(z) ? OPTIMAL : UNRESOLVED;
            if (taken == 0 && ++pushes == PUSHES) return UNRESOLVED;
        }
        if (taken < 0 || !move(w)) return UNRESOLVED;
    }
    return UNRESOLVED;
}

// Give the active-set method all rows of the target of a point.
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
        make_row(rows, p.target, j < p.target ? j : j + 1, a.made + std::size_t(j) * rows.wide,
                 a.made_offsets[j], a.made_guards[j]);
}

// Cost in the weights, and number of coordinates that changed.
template <class Real>
void measure(const Rows<Real>& rows, const Point& p, const double* z, const Results& out,
             std::int64_t to) {
    double cost = 0.0;
    std::int64_t changed = 0;
    for (int i = 0; i < rows.d; ++i) {
        const double t = z[i] - p.at[i];
        cost += rows.weights[i] * t * t;
        changed += std::fabs(t) > out.least[i];
    }
    out.cost[to] = cost;
    out.changed[to] = changed;
}

// Write what was found without the active-set method.
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
        if (out.width) out.multipliers[to * out.width + c.ids[q]] = c.mu[q];
    }
    out.gap[to] = out.source ? gap * (step > 0.0 ? 2.0 / (step * step) : 2.0) : gap;
    out.reach[to] = reach_of_all(rows, p, reach, step, w);
    leave(p, w.s, rows.scale, out.points + to * rows.d);
}

// Answer a point with all rows, and write what was found.
template <class Real>
Status write_hard(const Rows<Real>& rows, const Point& p, const Results& out, std::int64_t to,
                  Workspace<Real>& w) {
    ActiveSet& a = w.hard;
    double* z = out.points + to * rows.d;
    list_rows(rows, p, w);
    const Settled found = settle_point(a, w.s);
    if (found.status == OPTIMAL) {
        const double step = found.sizes.step;
        out.gap[to] = out.source ? found.gap * (step > 0.0 ? 2.0 / (step * step) : 2.0) : found.gap;
        out.reach[to] = reach_of(a, w.s, step);
        leave(p, w.s, rows.scale, z);
        const double* origin =
            rows.pairs ? rows.centers + std::size_t(p.target) * rows.wide : rows.origin;
        if (step > NEAR * std::sqrt(found.sizes.square)) polish(a, p, w.s, rows.scale, origin, z);
    }
    for (std::int64_t j = 0; j < out.width; ++j) out.multipliers[to * out.width + j] = a.mu[j];
    return found.status;
}

// Write that a point has no answer.
inline void write_nothing(const Results& out, std::int64_t to, int d) {
    fill(out.points + to * d, std::numeric_limits<double>::quiet_NaN(), d);
    out.gap[to] = out.reach[to] = std::numeric_limits<double>::quiet_NaN();
    if (out.cost) out.cost[to] = std::numeric_limits<double>::quiet_NaN();
    if (out.changed) out.changed[to] = 0;
}

// Write that a point is in its target already.
inline void write_already(const Point& p, const Results& out, std::int64_t to, int d) {
    for (int i = 0; i < d; ++i) out.points[to * d + i] = p.at[i];
    out.status[to] = ALREADY;
    out.gap[to] = out.cost[to] = 0.0;
    out.reach[to] = INF;
    out.changed[to] = 0;
}

// Tell the cluster of a point; whether it is in its target. -1 where the model has to be asked.
template <class Real>
bool tell_source(const Rows<Real>& rows, const Point& p, double span, const Results& out,
                 std::int64_t to, Workspace<Real>& w) {
    if (out.copies)
        for (int i = 0; i < rows.d; ++i) out.copies[to * rows.d + i] = p.at[i];
    out.source[to] = -1;
    if (!(span < FURTHEST<Real>)) return false;
    const Nearest found = nearest_of(rows, span, w.score, w);
    if (!found.doubtful) out.source[to] = found.label;
    return out.source[to] == p.target;
}

// Answer one point whose scores are known.
template <class Real>
void answer(const Rows<Real>& rows, Point& p, double span, const Results& out, std::int64_t to,
            Workspace<Real>& w) {
    const bool some = enter(rows, p, w.s);
    if (out.source && tell_source(rows, p, span, out, to, w)) {
        write_already(p, out, to, rows.d);
        return;
    }
    Status status = some ? UNRESOLVED : INFEASIBLE;
    w.slop = 2.0 * (rows.d + 8) * ROUNDING<Real> * (span + rows.level_size);
    if (some && span < FURTHEST<Real>) status = solve(rows, p, w);
    if (status == OPTIMAL)
        write_found(rows, p, out, to, w);
    else if (some && p.size < INF)
        status = write_hard(rows, p, out, to, w);
    out.status[to] = status;
    if (status != OPTIMAL)
        write_nothing(out, to, rows.d);
    else if (out.source)
        measure(rows, p, out.points + to * rows.d, out, to);
}

// Project problems start to stop: problem q is point rows[q], its answer goes to places[q].
template <class Real>
void project_chunk(const Rows<Real>& rows, const Batch& batch, const Results& out, std::int64_t start,
                   std::int64_t stop, Workspace<Real>& w) {
    std::int64_t which[BLOCK];
    const std::size_t d = rows.d;
    for (std::int64_t first = start; first < stop; first += BLOCK) {
        const int count = int(stop - first < BLOCK ? stop - first : BLOCK);
        for (int q = 0; q < count; ++q) which[q] = batch.rows ? batch.rows[first + q] : first + q;
        enter_block(rows, batch, which, count, w);
        if (count == BLOCK)
            multiply<Real, BLOCK>(rows, w.block, w.scores);
        else
            for (int q = 0; q < count; ++q)
                multiply<Real, 1>(rows, w.block + q * rows.wide, w.scores + std::size_t(q) * rows.long_);
        for (int q = 0; q < count; ++q) {
            const std::int64_t at = which[q];
            Point p = {batch.points + at * d, batch.lo + (batch.own_lo ? at * d : 0),
                       batch.hi + (batch.own_hi ? at * d : 0), 0, 0.0, 0.0};
            if (batch.targets) p.target = int(batch.targets[first + q]);
            w.score = w.scores + std::size_t(q) * rows.long_;
            answer(rows, p, w.spans[q], out, batch.places ? batch.places[first + q] : first + q, w);
        }
    }
}

// The nearest centroid of points start to stop, and where the model's rounding leaves it in doubt.
template <class Real>
void nearest_chunk(const Rows<Real>& rows, const double* points, std::int64_t* labels, bool* doubtful,
                   std::int64_t start, std::int64_t stop, Workspace<Real>& w) {
    Batch batch = {points, nullptr, nullptr, nullptr, nullptr, nullptr, false, false};
    std::int64_t which[BLOCK];
    for (std::int64_t first = start; first < stop; first += BLOCK) {
        const int count = int(stop - first < BLOCK ? stop - first : BLOCK);
        for (int q = 0; q < BLOCK; ++q) which[q] = first + (q < count ? q : count - 1);
        enter_block(rows, batch, which, BLOCK, w);
        multiply<Real, BLOCK>(rows, w.block, w.scores);
        for (int q = 0; q < count; ++q) {
            for (int i = 0; i < rows.d; ++i) w.s.a[i] = points[which[q] * rows.d + i];
            const Nearest found =
                w.spans[q] < FURTHEST<Real>
                    ? nearest_of(rows, w.spans[q], w.scores + std::size_t(q) * rows.long_, w)
                    : nearest_of_all(rows, w);
            labels[first + q] = found.label;
            doubtful[first + q] = found.doubtful;
        }
    }
}

}  // namespace VOICECF_SET
}  // namespace voicecf

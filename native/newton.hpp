// Newton on the multipliers of a choice of rows.
//
// For multipliers mu of the rows, y(mu) = clip(-U' mu, low, high) minimises the Lagrangian, and
// -mu . (U y - b) is the duality gap. Newton adds the most violated row at a time, makes the active
// rows tight on the coordinates that are free, and drops rows whose multiplier falls to zero.
//
// While the box does not bind, U y - b = -(U U') mu - b: the multipliers are a problem in the Gram
// matrix of the rows alone. Both methods take few iterations or give the point up; an answer that they
// accept satisfies the KKT conditions.
#pragma once

#include <type_traits>

#include "problem.hpp"

namespace voicecf {
namespace VOICECF_SET {

// Slack that a row needs at an answer of these sizes, so that the model's rounding cannot cross the row.
inline double room_for(const Guard& g, const Sizes& z) {
    return g.constant + g.of_size * z.size + g.of_square * z.square + g.of_step * z.step;
}

// The most slack that a row can give; see COARSE. Infinite for rows that are not the model's, at the origin, too.
inline double most_room(const Guard& g, double distance) { return g.share * (distance + 1e-300); }

// Slack to ask of a row: `factor` times twice what an answer of these sizes needs, less what lies behind the row,
// and no more than the row can give. Before the answer is known, it is taken to be about as large as the point, as
// far from it as the row, and half way between two centroids.
inline double room_to_ask(const Guard& g, const Sizes& z, double factor) {
    const double need = least(2.0 * factor * room_for(g, z), most_room(g, std::sqrt(z.square)));
    return most(need - g.behind, 0.0);
}

// Whether an answer has the slack that the model's rounding needs: enough; less, so that rounding could cross the
// true boundary of a row; or less than needed and no row can give it.
enum Room { ENOUGH, CLOSE, TOO_CLOSE };

// The same for one row, in which the answer has this slack. With a factor below 1 less is enough.
inline Room room_of(const Guard& g, const Sizes& z, double slack, double factor) {
    const double need = least(factor, 1.0) * room_for(g, z);
    if (!(need > 0.0) || g.behind + slack >= need) return ENOUGH;
    return need <= most_room(g, std::sqrt(z.square)) ? CLOSE : TOO_CLOSE;
}

// Slack h - u . x of a point in a unit row, with far = |x|^2. A point that is beyond the row by no more than
// rounding of the row's terms is on the row: its slack is 0, so that it has no need to move.
inline double slack_of(double offset, const double* u, const Steps& s, double far) {
    const double slack = offset - dot(u, s.x, s.wide);
    if (slack >= 0.0 || slack * slack > 4.0 * TIGHT * TIGHT * far) return slack;  // the terms are <= 2 |x|
    return -slack > TIGHT * (std::fabs(offset) + dot_of_sizes(u, s.x, s.wide)) ? slack : 0.0;
}

// Do work of a size, up to 8 with the size as a constant: short loops are then unrolled.
template <class Work>
auto sized(int size, const Work& work) {
    switch (size) {
        case 1: return work(std::integral_constant<int, 1>());
        case 2: return work(std::integral_constant<int, 2>());
        case 3: return work(std::integral_constant<int, 3>());
        case 4: return work(std::integral_constant<int, 4>());
        case 5: return work(std::integral_constant<int, 5>());
        case 6: return work(std::integral_constant<int, 6>());
        case 7: return work(std::integral_constant<int, 7>());
        case 8: return work(std::integral_constant<int, 8>());
        default: return work(size);
    }
}

// Factor row j of h = L D L' (lower triangle), of which the rows before are factored: below the diagonal L D is
// left, above it L', on it one over D. False where h is singular to working accuracy.
inline bool factor_row(double* h, int stride, int j) {
    double* row = h + j * stride;
    const double diagonal = row[j];
    const double rest = sized(j, [&](auto size) {
        double s = diagonal;
        for (int t = 0; t < size; ++t) {
            double v = row[t];
            for (int p = 0; p < t; ++p) v -= row[p] * h[p * stride + t];
            const double unit = v * h[t * stride + t];
            row[t] = v;
            h[t * stride + j] = unit;
            s -= v * unit;
        }
        return s;
    });
    row[j] = 1.0 / rest;
    return rest > SINGULAR * diagonal;
}

// Solve h x = rhs in place, where h is factored.
inline void solve_factored(const double* h, int stride, double* rhs, int size_) {
    sized(size_, [&](auto size) {
        for (int j = 1; j < size; ++j)
            for (int t = 0; t < j; ++t) rhs[j] -= h[t * stride + j] * rhs[t];
        for (int j = size - 1; j >= 0; --j) {
            double s = rhs[j] * h[j * stride + j];
            for (int t = j + 1; t < size; ++t) s -= h[j * stride + t] * rhs[t];
            rhs[j] = s;
        }
    });
}

// Set y = clip(-U' mu, low, high) and return its squared length.
inline double step_of(const Choice& c, Steps& s) {
    fill(s.y, 0.0, s.wide);
    for (int p = 0; p < c.count; ++p)
        if (c.mu[p] != 0.0) add_to(s.y, -c.mu[p], c.rows[p], s.wide);
    Doubles square = Doubles::all(0.0);
    for (int i = 0; i < s.wide; i += 8) {
        Doubles y = Doubles::load(s.y + i);
        y = smaller(larger(y, Doubles::load(s.low + i)), Doubles::load(s.high + i));
        y.store(s.y + i);
        square = square + y * y;
    }
    return total(square);
}

// Rounding error of the residual of row p: TIGHT of the sum of its absolute terms.
inline double slip_of(const Choice& c, int p, const Steps& s) {
    return TIGHT * (std::fabs(c.b[p]) + dot_of_sizes(c.rows[p], s.y, s.wide));
}

// Result of `price`: the most violated row without a multiplier or -1, whether all rows with one are tight,
// and the duality gap.
struct Priced {
    int worst;
    bool settled;
    double gap;
};

// Compute the residual U y - b of the choice, and judge it. The rounding error of a row (slip_of) is between
// `narrow` and `widest`, which cost no second pass over its terms.
inline Priced price(const Choice& c, const Steps& s, double length) {
    Priced found = {-1, true, 0.0};
    double violation = 0.0;
    for (int p = 0; p < c.count; ++p) {
        const double b = std::fabs(c.b[p]);
        const double v = dot(c.rows[p], s.y, s.wide) - c.b[p], off = std::fabs(v);
        c.residual[p] = v;
        const double widest = TIGHT * (b + length);
        if (c.mu[p] > 0.0) {
            found.gap -= c.mu[p] * v;
            const double narrow = TIGHT * (b + std::fabs(v + c.b[p]));
            const bool tight = off <= narrow || (off <= widest && off <= slip_of(c, p, s));
            found.settled = found.settled && tight;
        } else if (v > violation && (v > widest || v > slip_of(c, p, s))) {
            found.worst = p;
            violation = v;
        }
    }
    return found;
}

// Set `free` to row p on the coordinates that are free. Before the first step, a coordinate that starts
// on its bound is free if the row takes it inwards.
inline void free_part(const double* u, bool begins, Steps& s) {
    const Doubles zero = Doubles::all(0.0);
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles y = Doubles::load(s.y + i), v = Doubles::load(u + i);
        const Doubles inner = if_less(y, Doubles::load(s.high + i), v, zero);
        if_less(Doubles::load(s.low + i), y, inner, zero).store(s.free + i);
    }
    for (int i = 0; i < (begins ? s.d : 0); ++i) {
        const bool inwards = u[i] < 0.0 ? s.high[i] > 0.0 : s.low[i] < 0.0;
        if (s.y[i] == 0.0 && inwards) s.free[i] = u[i];
    }
}

// Move the multipliers of the active rows so that these are tight on the free coordinates.
inline bool newton_step(Choice& c, Steps& s, int active) {
    const bool begins = active == 1 && c.mu[c.act[0]] == 0.0;
    for (int p = 0; p < active; ++p) {
        const int j = c.act[p];
        c.rhs[p] = c.residual[j];
        free_part(c.rows[j], begins, s);
        for (int t = 0; t <= p; ++t)
            c.h[p * c.rank + t] = dot(s.free, c.rows[c.act[t]], s.wide);
        if (!factor_row(c.h, c.rank, p)) {
            c.stuck = p;
            return false;
        }
    }
    solve_factored(c.h, c.rank, c.rhs, active);
    for (int p = 0; p < active; ++p) c.mu[c.act[p]] = most(c.mu[c.act[p]] + c.rhs[p], 0.0);
    return true;
}

// Reset multipliers to 0 that are rounding noise next to the largest; true if there were any.
inline bool drop_dust(Choice& c) {
    double largest = 0.0;
    bool some = false;
    for (int p = 0; p < c.count; ++p) largest = most(largest, c.mu[p]);
    for (int p = 0; p < c.count; ++p)
        if (c.mu[p] > 0.0 && c.mu[p] <= DUST * largest) {
            c.mu[p] = 0.0;
            some = true;
        }
    return some;
}

// Newton on the choice, from the multipliers in c.mu; true where the KKT conditions hold. It ends where the
// Lagrangian, a lower bound, is `enough`.
inline bool newton(Choice& c, Steps& s, double enough = INF) {
    bool clean = false;
    c.stuck = -1;
    for (int turn = 0; turn < NEWTON_STEPS; ++turn) {
        const double square = step_of(c, s);
        const Priced found = price(c, s, std::sqrt(square));
        if (0.5 * square - found.gap > enough) return false;
        if (found.worst < 0 && found.settled) {
            if (clean || !drop_dust(c)) return std::fabs(found.gap) <= CLOSED * 0.5 * square;
            clean = true;
            continue;
        }
        int active = 0;
        for (int p = 0; p < c.count; ++p) {
            if (!(c.mu[p] > 0.0) && p != found.worst) continue;
            if (active == c.rank) return false;
            c.act[active++] = p;
        }
        if (!newton_step(c, s, active)) return false;
    }
    return false;
}

// Least of mu . U y over the box, less an error of `rounding` of all terms, for m rows.
template <class RowOf>
double least_in_box(int m, const double* mu, const RowOf& row, const Steps& y, double rounding) {
    double least = 0.0;
    for (int i = 0; i < y.d; ++i) {
        double value = 0.0, size = 0.0;
        for (int j = 0; j < m; ++j) {
            if (mu[j] == 0.0) continue;
            const double t = mu[j] * row(j)[i];
            value += t;
            size += std::fabs(t);
        }
        const double bound = value > 0.0 ? y.low[i] : y.high[i];
        if (std::fabs(bound) < INF)
            least += value * bound - rounding * size * std::fabs(bound);
        else if (std::fabs(value) > LOOSE * size)
            return -INF;
    }
    return least;
}

// Whether the multipliers prove, beyond rounding of the input, that no point of the box satisfies the rows of the
// choice: mu . (U y - base) > 0 for all of them.
inline bool is_proof(const Choice& c, const double* mu, const Steps& s) {
    double margin = least_in_box(c.count, mu, [&](int p) { return c.rows[p]; }, s, LOOSE);
    for (int p = 0; p < c.count; ++p)  // the terms of a slack are at most |base| + 2 |u| . |x|
        if (mu[p] > 0.0)
            margin -= mu[p] * (c.base[p] + LOOSE * (std::fabs(c.base[p]) + 2.0 * dot_of_sizes(c.rows[p], s.x, s.wide)));
    return margin > 0.0;
}

// Whether Newton, which was given up, has shown that there is no answer: by the multipliers so far or, where an
// active row depends on those before it, by the direction in which multipliers can grow for ever.
inline bool shows_empty(const Choice& c, const Steps& s) {
    if (c.stuck < 0) return false;
    if (is_proof(c, c.mu, s)) return true;
    double* ray = c.residual;
    fill(ray, 0.0, c.count);
    for (int p = c.stuck - 1; p >= 0; --p) {
        double v = c.h[p * c.rank + c.stuck];
        for (int t = p + 1; t < c.stuck; ++t) v += c.h[p * c.rank + t] * ray[c.act[t]];
        ray[c.act[p]] = -v;
    }
    for (int p = 0; p < c.stuck; ++p) ray[c.act[p]] = most(ray[c.act[p]], 0.0);
    ray[c.act[c.stuck]] = 1.0;
    return is_proof(c, ray, s);
}

// Reset coordinates that differ from 0 or from a bound by rounding noise alone to that value.
inline void snap(Choice& c, Steps& s) {
    double* terms = s.free;
    fill(terms, 0.0, s.wide);
    const Doubles zero = Doubles::all(0.0);
    for (int p = 0; p < c.count; ++p) {
        if (c.mu[p] == 0.0) continue;
        const Doubles f = Doubles::all(DUST * c.mu[p]);
        for (int i = 0; i < s.wide; i += 8) {
            const Doubles t = f * Doubles::load(c.rows[p] + i);
            (Doubles::load(terms + i) + larger(t, zero - t)).store(terms + i);
        }
    }
    bool moved = false;
    for (int i = 0; i < s.d; ++i) {
        const double ends[] = {0.0, s.low[i], s.high[i]};
        for (double end : ends) {
            const bool within = s.low[i] <= end && end <= s.high[i];
            if (s.y[i] != end && within && std::fabs(s.y[i] - end) <= terms[i]) {
                s.y[i] = end;
                moved = true;
            }
        }
    }
    if (moved) price(c, s, 0.0);
}

// Most violated row of the choice at -(U U') mu - b, among those without a multiplier, or -1.
inline int most_violated(const Choice& c, int active) {
    int worst = -1;
    double violation = 0.0;
    for (int j = 0; j < c.count; ++j) {
        if (c.mu[j] != 0.0) continue;
        double s = 0.0;
        for (int p = 0; p < active; ++p) s -= c.gram[c.act[p] * (c.limit + 1) + j] * c.mu[c.act[p]];
        const double r = s - c.b[j];
        if (r > violation && r > TIGHT * (std::fabs(c.b[j]) + std::fabs(s))) {
            worst = j;
            violation = r;
        }
    }
    return worst;
}

// Solve for the multipliers of the active rows, and drop rows whose multiplier is not positive. Returns how
// many rows are left, or -1 where rows depend on each other.
inline int solve_active(Choice& c, int active) {
    for (; c.factored < active; ++c.factored) {
        const int p = c.factored;
        for (int t = 0; t <= p; ++t)
            c.h[p * c.rank + t] = c.gram[c.act[p] * (c.limit + 1) + c.act[t]];
        if (!factor_row(c.h, c.rank, p)) return -1;
    }
    for (int p = 0; p < active; ++p) c.rhs[p] = -c.b[c.act[p]];
    solve_factored(c.h, c.rank, c.rhs, active);
    double largest = 0.0;
    for (int p = 0; p < active; ++p) largest = most(largest, c.rhs[p]);
    int kept = 0;
    for (int p = 0; p < active; ++p) {
        const bool positive = c.rhs[p] > DUST * largest;
        c.mu[c.act[p]] = positive ? c.rhs[p] : 0.0;
        c.act[kept] = c.act[p];
        kept += positive;
        if (!positive) c.factored = smaller_of(c.factored, kept);
    }
    return kept;
}

// Multipliers of the choice without a box. Starts with the rows that had a multiplier, and all rows that are
// new. False where active rows depend on each other.
inline bool all_at_once(Choice& c) {
    int active = 0;
    for (int p = 0; p < c.count; ++p) {
        if (p >= c.known) c.mu[p] = 1.0;
        if (!(c.mu[p] > 0.0)) continue;
        if (active == c.rank) return false;
        if (c.act[active] != p) c.factored = smaller_of(c.factored, active);
        c.act[active++] = p;
    }
    c.factored = smaller_of(c.factored, active);
    for (int turn = 0; turn < NEWTON_STEPS; ++turn) {
        const int kept = solve_active(c, active);
        if (kept < 0) return false;
        const bool same = kept == active;
        active = kept;
        if (!same) continue;
        const int worst = most_violated(c, active);
        if (worst < 0) return true;
        if (active == c.rank) return false;
        c.act[active++] = worst;
    }
    return false;
}

// Set y = -U' mu, without a box.
inline void free_step(const Choice& c, Steps& s) {
    double* terms = s.free;
    const Doubles zero = Doubles::all(0.0), dust = Doubles::all(DUST);
    fill(s.y, 0.0, s.wide);
    fill(terms, 0.0, s.wide);
    int used = 0;
    for (int p = 0; p < c.count; ++p) {
        if (!(c.mu[p] > 0.0)) continue;
        const Doubles f = Doubles::all(c.mu[p]);
        ++used;
        for (int i = 0; i < s.wide; i += 8) {
            const Doubles t = f * Doubles::load(c.rows[p] + i);
            (Doubles::load(s.y + i) - t).store(s.y + i);
            (Doubles::load(terms + i) + size_of(t)).store(terms + i);
        }
    }
    for (int i = 0; i < (used > 1 ? s.wide : 0); i += 8) {  // one row alone leaves no rounding noise
        const Doubles y = Doubles::load(s.y + i);
        if_less(dust * Doubles::load(terms + i), size_of(y), y, zero).store(s.y + i);
    }
}

// Compute the residual of such a step; true if the KKT conditions hold, without a box and without doubt.
inline bool is_settled(Choice& c, const Steps& s) {
    double gap = 0.0;
    bool settled = true;
    for (int p = 0; p < c.count; ++p) {
        const double rise = dot(c.rows[p], s.y, s.wide), off = rise - c.b[p];
        const double slip = TIGHT * (std::fabs(c.b[p]) + std::fabs(rise));
        c.residual[p] = off;
        gap -= c.mu[p] * off;
        settled = settled && off <= slip && (c.mu[p] == 0.0 || off >= -slip);
    }
    return settled && std::fabs(gap) <= CLOSED * 0.5 * dot(s.y, s.y, s.wide);
}

// Whether a point of the box stays in it by this step, even if the step were longer by its rounding.
inline bool keeps_in_box(const Steps& s) {
    const Doubles zero = Doubles::all(0.0), dust = Doubles::all(DUST);
    Doubles off = zero;
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles y = Doubles::load(s.y + i), far = y + dust * y;
        off = larger(off, larger(Doubles::load(s.low + i) - smaller(far, zero),
                                 larger(far, zero) - Doubles::load(s.high + i)));
    }
    return !(highest(off) > 0.0);
}

inline Sizes sizes_of(const Steps& s) {
    Doubles size = Doubles::all(0.0), step = size, square = size;
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles y = Doubles::load(s.y + i), t = Doubles::load(s.placed + i) + y,
                      v = Doubles::load(s.x + i) + y;
        size = size + t * t;
        step = step + y * y;
        square = square + v * v;
    }
    return {std::sqrt(total(size)), std::sqrt(total(step)), total(square)};
}

// False where squares of the answer overflow, or where the step is so much longer than the answer's distance
// from the origin that cancellation leaves too few digits.
inline bool is_sound(const Sizes& z) {
    return z.size < HUGE_SIZE && z.step * z.step <= LONG * LONG * z.square;
}

// The room of an answer in the rows of the choice.
inline Room room_of(const Choice& c, const Sizes& z, double factor) {
    Room worst = ENOUGH;
    for (int p = 0; p < c.count; ++p) {
        const Room room = room_of(c.guards[p], z, c.base[p] - c.b[p] - c.residual[p], factor);
        if (room > worst) worst = room;
    }
    return worst;
}

// Ask the slack of the rows of the choice that an answer of these sizes needs.
inline void ask_room(Choice& c, const Sizes& z, double factor) {
    for (int p = 0; p < c.count; ++p)
        c.b[p] = least(c.b[p], c.base[p] - room_to_ask(c.guards[p], z, factor));
}

// Largest multiple of the step that stays in the box.
inline double reach_in_box(const Steps& s) {
    const Doubles zero = Doubles::all(0.0), open = Doubles::all(-INF);
    Doubles found = open;  // minus the least multiple so far
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles y = Doubles::load(s.y + i), size = size_of(y);
        const Doubles side = if_less(zero, y, Doubles::load(s.high + i), zero - Doubles::load(s.low + i));
        found = larger(found, if_less(zero, size, zero - side / size, open));
    }
    return -highest(found);
}

// Convert the step y to the point z: coordinates with a step of 0 keep their bits, bounds are met exactly.
inline void leave(Steps& s, const double* inverse) {
    const Doubles zero = Doubles::all(0.0);
    for (int i = 0; i < s.wide; i += 8) {
        const Doubles a = Doubles::load(s.a + i), y = Doubles::load(s.y + i),
                      lo = Doubles::load(s.lo + i), hi = Doubles::load(s.hi + i);
        Doubles to = a + y * Doubles::load(inverse + i);
        to = smaller(larger(to, lo), hi);
        to = if_less(Doubles::load(s.low + i), y, to, lo);
        to = if_less(y, Doubles::load(s.high + i), to, hi);
        if_less(zero, size_of(y), to, a).store(s.z + i);
    }
}

}  // namespace VOICECF_SET
}  // namespace voicecf

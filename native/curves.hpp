// Curved rules: sums over columns of a factor times the user's value, which the pipeline maps by a curve.
//
// What is known of a curve are its values at knots, and how far it lies below and above the chord between two
// knots. Within the choices that a node leaves to a column, its value u lies in a band,
//
//     slope z + below <= u <= slope z + above,
//
// so that a rule, sum factor u <= limit, is looser with one side of each band and stricter with the other. As
// nodes become smaller, both become the rule.
//
// A column that is computed from others satisfies an identity, two rules if it is linear. A product of two columns
// in it lies between planes that meet it at the ends of their values, x' y + x y' - x' y', and becomes four rules.
#pragma once

#include "problem.hpp"

namespace voicecf {

// A factor of a column in a rule.
struct Term {
    Whole rule, column;
    double factor;
};

// What a rule of an identity has beyond its terms: the box of columns that belong together in which it applies, the
// factors x and y of a product, to be subtracted `sign` times, and their ends whose plane it is (bit 0: the upper end
// of x, bit 1: that of y); the column that is computed, and the one that its formula divides by. -1 for none.
struct Identity {
    Whole together, box, x, y, ends, made, divisor;
    double sign, half;  // half a digit of the column that is computed; negative for rules of no identity
};

// Rules between columns of which some are mapped by curves; null where there are none.
struct Curves {
    int rules, terms, total;
    const Term* term;
    const Identity* identity;
    const double* limits;
    const std::uint8_t* tight;  // rules that keep away from their limits by the errors of conversions
    const double* lines;        // (many, 2): slope and constant of columns without knots
    const Whole* starts;        // (many + 1,): the knots of a column are starts[c] to before starts[c + 1]
    const double* worth;        // the user's values of listed options
    const double *errors, *own; // of conversions, (many,); the rows' own values, (many,) or (n, many)
    const double *z, *u, *under, *over;  // (total,) or (problems, total); the last two between knots
    bool own_values, own_knots;
};

struct Band {
    double slope, below, above;
};

// The least and the largest of a column's values, in the user's units.
struct Extent {
    double low, high;
};

namespace VOICECF_SET {

// A rule may be violated by this share of its terms, as `rule` in geometry/tolerance.py.
constexpr double OF_TERMS = 16 * EPS;
// An identity may be missed by this share of its terms: what it gives is written in the end.
constexpr double OF_IDENTITY = 0x1p-38;
// Ranges of options of a list up to this long are looked at one by one.
constexpr Whole LOOKED_AT = 64;

// The knots of one column in one problem.
struct Knots {
    const double *z, *u, *under, *over;
    int count;
};

inline Knots knots_of(const Curves& k, Whole problem, int c) {
    const Whole from = (k.own_knots ? problem * k.total : 0) + k.starts[c];
    return {k.z + from, k.u + from, k.under + from, k.over + from, int(k.starts[c + 1] - k.starts[c])};
}

// The last knot that is not above z; the first one if all are.
inline int knot_below(const Knots& k, double z) {
    int below = 0, above = k.count;
    while (above - below > 1) {
        const int middle = (below + above) / 2;
        if (k.z[middle] <= z)
            below = middle;
        else
            above = middle;
    }
    return below;
}

// Widen a band so that a value u at z is in it.
inline void hold(Band& band, double z, double u) {
    band.below = least(band.below, u - band.slope * z);
    band.above = most(band.above, u - band.slope * z);
}

// Band of a curve from one coordinate to another; without limits where there are no knots around them.
inline Band band_between(const Knots& k, double from, double to) {
    if (!(k.z[0] <= from && to <= k.z[k.count - 1])) return {0.0, -INF, INF};
    const int first = smaller_of(knot_below(k, from), k.count - 2);
    int last = first + 1;
    while (k.z[last] < to) ++last;
    for (int i = first; i <= last; ++i)
        if (k.z[i] == from && from == to) return {0.0, k.u[i], k.u[i]};
    const double wide = k.z[last] - k.z[first];
    Band band = {wide > 0.0 ? (k.u[last] - k.u[first]) / wide : 0.0, INF, -INF};
    for (int i = first; i < last; ++i) {
        const double left = k.u[i] - band.slope * k.z[i], right = k.u[i + 1] - band.slope * k.z[i + 1];
        band.below = least(band.below, least(left, right) - k.under[i]);
        band.above = most(band.above, most(left, right) + k.over[i]);
    }
    return band;
}

// Band of options first to last of a list.
inline Band band_of_list(const double* z, const double* u, Whole first, Whole last) {
    const double wide = z[last] - z[first];
    Band band = {wide > 0.0 ? (u[last] - u[first]) / wide : 0.0, INF, -INF};
    for (Whole i = first; i <= last; ++i) hold(band, z[i], u[i]);
    return band;
}

}  // namespace VOICECF_SET
}  // namespace voicecf

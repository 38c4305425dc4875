// The rows of a cluster's cell, made from centroids.
//
// With weights w, target centroid m_t, a rival m_j, contraction alpha and metric w + delta, the cell is
//
//     w (m_j - m_t) . (z - m_t)  <=  alpha / 2 sum w (m_j - m_t)^2,
//
// and the rounding guard is that of geometry/cell.py: D_j(z) - D_t(z) is twice the slack, so half the error
// of that difference is needed.
#pragma once

#include "problem.hpp"

namespace voicecf {
namespace VOICECF_SET {

// Where the rows of a target are measured from: its centroid, or the origin of listed rows.
template <class Real>
const double* origin_of(const Rows<Real>& rows, int target) {
    return rows.pairs ? rows.centers + std::size_t(target) * rows.wide : rows.origin;
}

// Squared lengths: of a row, and of the difference of the two centroids in the weights and in the metric.
struct Squares {
    double row, spread, apart;
};

// Make the row of rival j of a cell, of any length; the half-space formula stands here alone.
template <class Real>
Squares half_space(const Rows<Real>& rows, int target, int j, double* u) {
    const double *mine = rows.centers + std::size_t(target) * rows.wide,
                 *theirs = rows.centers + std::size_t(j) * rows.wide;
    Doubles squares = Doubles::all(0.0), spreads = squares, aparts = squares;
    for (int i = 0; i < rows.wide; i += 8) {
        const Doubles t = Doubles::load(theirs + i) - Doubles::load(mine + i);
        const Doubles a = Doubles::load(rows.pull + i) * t;
        squares = squares + a * a;
        spreads = spreads + Doubles::load(rows.weights + i) * t * t;
        const Doubles scaled = Doubles::load(rows.scale + i) * t;
        aparts = aparts + scaled * scaled;
        a.store(u + i);
    }
    return {total(squares), total(spreads), total(aparts)};
}

// Make the row of rival j of a cell: a unit row, its offset, its guard; one over its length.
template <class Real>
double make_row(const Rows<Real>& rows, int target, int j, double* u, double& offset, Guard& guard) {
    const Squares s = half_space(rows, target, j, u);
    const double inverse = 1.0 / std::sqrt(s.row);
    const Doubles factor = Doubles::all(inverse);
    for (int i = 0; i < rows.wide; i += 8) (factor * Doubles::load(u + i)).store(u + i);
    const double half = 0.5 * s.spread * inverse, alpha = rows.alphas[target];
    const double one = rows.lengths[target], other = rows.lengths[j], growth = rows.growth * inverse;
    offset = alpha * half;
    const double share = COARSE * 2.0 * half / std::sqrt(s.apart);
    guard = {(1.0 - alpha) * half, share, 0.0, 2.0 * rows.eps, growth, 32.0 * EPS};
    if (rows.expanded) {
        guard.constant = 0.5 * growth * (one * one + other * other);
        guard.of_size += growth * (one + other);
    }
    return inverse;
}

}  // namespace VOICECF_SET
}  // namespace voicecf

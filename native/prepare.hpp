// Rows as the loops read them: unit rows or centroids, padded, and the tables that pricing needs.
//
// Pairs: with e_j = w (m_j - middle) / sqrt(w + delta), the slack of a point x = sqrt(w + delta) (a -
// middle) to rival j of target t is level(t, j) - (e_j - e_t) . x, where, in the weighted metric around
// the middle and for a cell that is contracted by alpha,
//
//     level(t, j) = alpha |m_j|^2 / 2 + (1 - alpha) m_j . m_t - (1 - alpha / 2) |m_t|^2.
//
// All of it is in units of the longest centroid.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cell.hpp"
#include "problem.hpp"

namespace voicecf {

// More rows than this are priced in single precision.
constexpr int FEW = 64;
// Right-hand side that nothing reaches: of padding, and of the target itself.
constexpr double NOWHERE = 1e38;

inline int padded(int n, int by) { return std::max((n + by - 1) / by * by, by); }

// The arrays that pricing reads, in one precision.
template <class Real>
struct Pricing {
    std::vector<Real> vectors, levels, table, halves;
};

// Owner of the arrays behind a view of rows.
class Prepared {
  public:
    Rows<double> few{};
    Rows<float> many{};
    bool single = false;

    Prepared() = default;
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;

    // Unit rows of one region: u (m, d), offsets, origin, scale, guard (6, m).
    void list(int m, int d, const double* u, const double* offsets, const double* guard);
    // Clusters; with alphas, all rows of their cells.
    void pair(int k, int d, const double* centers, const double* alphas);

    std::vector<double> scale, inverse, origin, weights;
    double delta = 0.0, growth = 0.0, eps = 0.0;
    bool expanded = false;

  private:
    std::vector<double> u_, offsets_, centers_, pull_, alphas_, lengths_;
    std::vector<Guard> guards_;
    std::vector<double> rows_, grams_, row_offsets_, norms_, aways_;
    std::vector<Guard> row_guards_;
    Pricing<double> double_;
    Pricing<float> float_;

    void store();
    void store_pairs();
    template <class Real>
    void view(Rows<Real>& rows, int count, int d) const;
    template <class Real>
    void price_listed(Rows<Real>& rows, Pricing<Real>& p);
    template <class Real>
    void price_pairs(Rows<Real>& rows, Pricing<Real>& p, const std::vector<double>& around);
};

inline std::vector<double> widened(const double* values, int n, int d, int wide) {
    std::vector<double> out(std::size_t(n) * wide, 0.0);
    for (int j = 0; j < n; ++j)
        std::copy(values + std::size_t(j) * d, values + std::size_t(j + 1) * d,
                  out.begin() + std::size_t(j) * wide);
    return out;
}

template <class Real>
void Prepared::view(Rows<Real>& rows, int count, int d) const {
    rows.count = count;
    rows.d = d;
    rows.wide = padded(d, 8);
    rows.long_ = padded(count, 64 / int(sizeof(Real)));
    rows.scale = scale.data();
    rows.inverse = inverse.data();
    rows.origin = origin.data();
    rows.unit = rows.level_size = 1.0;
    rows.u = u_.data();
    rows.offsets = offsets_.data();
    rows.guards = guards_.data();
    rows.centers = centers_.data();
    rows.weights = weights.data();
    rows.pull = pull_.data();
    rows.alphas = alphas_.data();
    rows.lengths = lengths_.data();
    rows.growth = growth;
    rows.eps = eps;
    rows.expanded = expanded;
    rows.longest = lengths_.empty() ? 0.0 : *std::max_element(lengths_.begin(), lengths_.end());
}

inline void Prepared::list(int m, int d, const double* u, const double* offsets, const double* guard) {
    const int wide = padded(d, 8);
    u_ = widened(u, m, d, wide);
    offsets_.assign(offsets, offsets + m);
    guards_.resize(m);
    double widest = 0.0;
    for (int j = 0; j < m; ++j) {
        guards_[j] = {guard[j],         guard[m + j],     guard[2 * m + j],
                      guard[3 * m + j], guard[4 * m + j], guard[5 * m + j]};
        widest = std::max(widest, std::fabs(offsets[j]));
    }
    inverse.assign(wide, 1.0);
    for (int i = 0; i < d; ++i) inverse[i] = 1.0 / scale[i];
    single = m > FEW && widest < 1e15;
    view(few, m, d);
    view(many, m, d);
    if (single)
        price_listed(many, float_);
    else
        price_listed(few, double_);
    if (!single && m > 0) {
        rows_ = u_;
        row_offsets_ = offsets_;
        row_guards_ = guards_;
        norms_.assign(m, 1.0);
        store();
    }
}

// Hand over the stored rows of all targets, with their products and how far their origins are from zero.
inline void Prepared::store() {
    const std::size_t wide = few.wide, m = few.pairs ? few.count - 1 : few.count;
    const std::size_t targets = rows_.size() / (m * wide);
    grams_.assign(targets * m * (m + 1), 0.0);
    aways_.assign(targets, 0.0);
    for (std::size_t t = 0; t < targets; ++t) {
        const double* u = rows_.data() + t * m * wide;
        const double* from = baseline::origin_of(few, int(t));
        double* gram = grams_.data() + t * m * (m + 1);
        for (std::size_t j = 0; j < m; ++j)
            for (std::size_t q = 0; q <= j; ++q) {
                double s = 0.0;
                for (std::size_t i = 0; i < wide; ++i) s += u[j * wide + i] * u[q * wide + i];
                gram[j * (m + 1) + q] = gram[q * (m + 1) + j] = s;
            }
        for (int i = 0; i < few.d; ++i) aways_[t] += scale[i] * from[i] * scale[i] * from[i];
        aways_[t] = std::sqrt(aways_[t]);
    }
    few.stored = {int(m),         int(targets),        rows_.data(),       grams_.data(),
                  row_offsets_.data(), norms_.data(), aways_.data(), row_guards_.data()};
}

template <class Real>
void Prepared::price_listed(Rows<Real>& rows, Pricing<Real>& p) {
    const std::size_t m = rows.count, d = rows.d, wide = rows.wide, long_ = rows.long_;
    p.vectors.assign(d * long_, Real(0));
    p.levels.assign(long_, Real(NOWHERE));
    rows.largest = {0.0, INF, 0.0, 0.0, 0.0, 0.0};
    for (std::size_t j = 0; j < m; ++j) {
        for (std::size_t i = 0; i < d; ++i) p.vectors[i * long_ + j] = Real(u_[j * wide + i]);
        p.levels[j] = Real(offsets_[j]);
        rows.level_size = std::max(rows.level_size, std::fabs(offsets_[j]));
        const Guard& g = guards_[j];
        Guard& most = rows.largest;
        most.constant = std::max(most.constant, g.constant);
        most.of_size = std::max(most.of_size, g.of_size);
        most.of_square = std::max(most.of_square, g.of_square);
        most.of_step = std::max(most.of_step, g.of_step);
    }
    if (m <= FEW) {
        p.table.assign(m * long_, Real(0));
        for (std::size_t j = 0; j < m; ++j)
            for (std::size_t q = 0; q < m; ++q) {
                double s = 0.0;
                for (std::size_t i = 0; i < d; ++i) s += u_[j * wide + i] * u_[q * wide + i];
                p.table[j * long_ + q] = Real(s);
            }
    }
    rows.vectors = p.vectors.data();
    rows.levels = p.levels.data();
    rows.table = p.table.empty() ? nullptr : p.table.data();
}

inline void Prepared::pair(int k, int d, const double* centers, const double* alphas) {
    const int wide = padded(d, 8);
    centers_ = widened(centers, k, d, wide);
    weights.resize(wide, 0.0);
    scale.assign(wide, 1.0);
    inverse.assign(wide, 1.0);
    pull_.assign(wide, 0.0);
    origin.assign(wide, 0.0);
    for (int i = 0; i < d; ++i) {
        scale[i] = std::sqrt(weights[i] + delta);
        pull_[i] = scale[i] > 0.0 ? weights[i] / scale[i] : 0.0;
        inverse[i] = 1.0 / scale[i];
        for (int j = 0; j < k; ++j) origin[i] += centers[std::size_t(j) * d + i] / k;
    }
    std::vector<double> around(std::size_t(k) * wide, 0.0);
    lengths_.assign(k, 0.0);
    for (int j = 0; j < k; ++j) {
        for (int i = 0; i < d; ++i) {
            const double m = centers[std::size_t(j) * d + i];
            around[std::size_t(j) * wide + i] = m - origin[i];
            lengths_[j] += weights[i] * m * m;
        }
        lengths_[j] = std::sqrt(lengths_[j]);
    }
    if (alphas) alphas_.assign(alphas, alphas + k);
    single = k > FEW;
    view(few, k, d);
    view(many, k, d);
    few.pairs = many.pairs = true;
    double middle = 0.0;
    for (int i = 0; i < d; ++i) middle += weights[i] * origin[i] * origin[i];
    few.middle = many.middle = std::sqrt(middle);
    if (single)
        price_pairs(many, float_, around);
    else
        price_pairs(few, double_, around);
    if (!single && alphas && k > 1) store_pairs();
}

// Make all rows of all cells.
inline void Prepared::store_pairs() {
    const std::size_t wide = few.wide, m = few.count - 1, all = m * few.count;
    rows_.assign(all * wide, 0.0);
    row_offsets_.resize(all);
    norms_.resize(all);
    row_guards_.resize(all);
    for (std::size_t t = 0; t <= m; ++t)
        for (std::size_t j = 0; j < m; ++j) {
            const std::size_t at = t * m + j;
            const double inverse =
                baseline::make_row(few, int(t), int(j < t ? j : j + 1), rows_.data() + at * wide,
                                   row_offsets_[at], row_guards_[at]);
            norms_[at] = 1.0 / inverse;
        }
    store();
}

template <class Real>
void Prepared::price_pairs(Rows<Real>& rows, Pricing<Real>& p, const std::vector<double>& around) {
    const std::size_t k = rows.count, d = rows.d, wide = rows.wide, long_ = rows.long_;
    std::vector<double> squares(k, 0.0);
    for (std::size_t j = 0; j < k; ++j)
        for (std::size_t i = 0; i < d; ++i)
            squares[j] += weights[i] * around[j * wide + i] * around[j * wide + i];
    const double longest = std::sqrt(*std::max_element(squares.begin(), squares.end()));
    const bool plain = longest > 1e-60 && longest < 1e60;  // else all go by the direct formula
    rows.unit = plain ? 1.0 / longest : 1.0;
    rows.level_size = 2.0;
    const double unit2 = rows.unit * rows.unit;
    p.vectors.assign(d * long_, Real(0));
    p.halves.assign(long_, Real(NOWHERE));
    for (std::size_t j = 0; j < k; ++j) {
        p.halves[j] = Real(plain ? 0.5 * unit2 * squares[j] : 0.0);
        for (std::size_t i = 0; i < (plain ? d : 0); ++i)
            p.vectors[i * long_ + j] = Real(rows.unit * pull_[i] * around[j * wide + i]);
    }
    rows.vectors = p.vectors.data();
    rows.halves = p.halves.data();
    if (alphas_.empty()) return;
    p.levels.assign(k * long_, Real(NOWHERE));
    p.table.assign(k * long_, Real(0));
    for (std::size_t t = 0; t < k; ++t)
        for (std::size_t j = 0; j <= t; ++j) {
            double in_weights = 0.0, in_metric = 0.0;
            for (std::size_t i = 0; i < d; ++i) {
                const double product = around[t * wide + i] * around[j * wide + i];
                in_weights += weights[i] * product;
                in_metric += pull_[i] * pull_[i] * product;
            }
            p.table[t * long_ + j] = p.table[j * long_ + t] = Real(unit2 * in_metric);
            if (j == t) continue;
            const std::size_t ends[2][2] = {{t, j}, {j, t}};
            for (const auto& end : ends) {
                const double alpha = alphas_[end[0]];
                const double level = 0.5 * alpha * squares[end[1]] + (1.0 - alpha) * in_weights -
                                     (1.0 - 0.5 * alpha) * squares[end[0]];
                p.levels[end[0] * long_ + end[1]] = Real(unit2 * level);
            }
        }
    rows.levels = p.levels.data();
    rows.table = p.table.data();
}

}  // namespace voicecf

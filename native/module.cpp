// Bindings: they check what they are given, release the GIL, and call the loops of this machine's
// instruction set.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "door.hpp"
#include "instructions.hpp"
#include "interrupt.hpp"
#include "kernels.hpp"
#include "prepare.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace voicecf {
namespace {

template <class T, int dims>
using Array = nb::ndarray<T, nb::ndim<dims>, nb::c_contig, nb::device::cpu>;
using Matrix = Array<const double, 2>;
using Line = Array<const double, 1>;
using Index = Array<const std::int64_t, 1>;
using Free = nb::call_guard<nb::gil_scoped_release>;

const InstructionSet& here() {
    static const InstructionSet set = chosen_set();
    return set;
}
const Kernels& loops() { return *here().kernels; }

// Whether a signal handler of Python has raised an exception; only the main thread runs handlers.
bool signalled() {
    const nb::gil_scoped_acquire held;
    return PyErr_CheckSignals() != 0;
}

// Raise the exception of the signal handler, or KeyboardInterrupt in a thread of a pool.
[[noreturn]] void raise_interrupt() {
    const nb::gil_scoped_acquire held;
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
}

// Call a loop; raise if it had no memory, or if it was interrupted.
template <class... Parameters, class... Arguments>
void run(bool (*loop)(Parameters...), Arguments&&... arguments) {
    interrupt.begin(signalled);
    if (!loop(std::forward<Arguments>(arguments)...)) throw std::bad_alloc();
    if (interrupt.flag ? interrupt.asked() : interrupt.raised) raise_interrupt();
}

// Flag of a call that works in a pool. A thread that enters it ends its loops as soon as the flag is set.
// The thread holds the flag, which may outlive the call.
struct Stop {
    using Flag = std::shared_ptr<std::atomic<bool>>;
    Flag flag = std::make_shared<std::atomic<bool>>(false);

    static Flag& entered() {
        static thread_local Flag held;
        return held;
    }
    void enter() const {
        entered() = flag;
        interrupt.flag = flag.get();
    }
    void leave(nb::args) const {
        interrupt.flag = nullptr;
        entered() = nullptr;
    }
    void set() { flag->store(true, std::memory_order_relaxed); }
    bool is_set() const { return flag->load(std::memory_order_relaxed); }
};

void require_price(double price) { require(price >= 0.0 && price < INF, "prices must be finite, and at least 0."); }

void check_prices(const char* name, const Line& prices, std::size_t d) {
    shaped(name, prices, {d});
    for (std::size_t i = 0; i < d; ++i) require_price(prices(i));
}

// Arrays of a batch, and the view of them.
struct BatchArrays {
    Matrix points, lo, hi;
    std::optional<Index> rows, targets, ranks, counts;
    std::optional<Line> up, down;
    Batch view;

    BatchArrays(Matrix points_, Matrix lo_, Matrix hi_, std::optional<Index> rows_,
                std::optional<Index> targets_, double factor)
        : points(points_), lo(lo_), hi(hi_), rows(rows_), targets(targets_) {
        one_or_each("lo", lo, points.shape(0), points.shape(1));
        one_or_each("hi", hi, points.shape(0), points.shape(1));
        if (targets) shaped("targets", *targets, {count()});
        view = {points.data(), rows ? rows->data() : nullptr, targets ? targets->data() : nullptr,
                lo.data(),     hi.data(),                     lo.shape(0) != 1,
                hi.shape(0) != 1, nullptr,                    nullptr,
                factor};
    }

    // Number of problems.
    std::size_t count() const { return rows ? rows->shape(0) : points.shape(0); }

    // Let only the coordinates move whose rank is below the count of a problem.
    void limit(Index ranks_, Index counts_) {
        shaped("ranks", ranks_, {points.shape(1)});
        shaped("counts", counts_, {count()});
        ranks = ranks_;
        counts = counts_;
        view.ranks = ranks->data();
        view.counts = counts->data();
    }

    // Ask for the least price, not the least squares: what each coordinate costs per unit more and per unit less.
    void price(Line up_, Line down_) {
        check_prices("up", up_, points.shape(1));
        check_prices("down", down_, points.shape(1));
        up = up_;
        down = down_;
        view.up = up->data();
        view.down = down->data();
    }

    // Problems start to stop, of points with d coordinates, whose `rows` are indices into `size` entries.
    Span problems(int d, std::size_t size, std::int64_t start, std::int64_t stop) const {
        shaped("points", points, {points.shape(0), std::size_t(d)});
        const Span span = part(start, stop, count());
        if (rows) within("rows", rows->data(), span, size);
        return span;
    }
};

// Arrays that answers are written to.
struct ResultArrays {
    Array<double, 2> points, multipliers;
    Array<double, 1> gap, reach;
    Array<std::int8_t, 1> status;
    Array<bool, 1> close;
    std::optional<Array<std::int64_t, 1>> source;
    std::optional<Array<double, 1>> cost;
    std::optional<Array<double, 2>> copies;
    Results view{};

    ResultArrays(Array<double, 2> points_, Array<double, 2> multipliers_, Array<double, 1> gap_,
                 Array<double, 1> reach_, Array<std::int8_t, 1> status_, Array<bool, 1> close_)
        : points(points_), multipliers(multipliers_), gap(gap_), reach(reach_), status(status_),
          close(close_) {
        const std::size_t n = points.shape(0);
        shaped("multipliers", multipliers, {n, multipliers.shape(1)});
        shaped("gap", gap, {n});
        shaped("reach", reach, {n});
        shaped("status", status, {n});
        shaped("close", close, {n});
        view.points = points.data();
        view.multipliers = multipliers.data();
        view.width = std::int64_t(multipliers.shape(1));
        view.gap = gap.data();
        view.reach = reach.data();
        view.status = status.data();
        view.close = close.data();
    }

    // Assign points to their clusters, and measure answers, too.
    void tell(Array<std::int64_t, 1> source_, Array<double, 1> cost_,
              std::optional<Array<double, 2>> copies_) {
        const std::size_t n = points.shape(0), d = points.shape(1);
        shaped("source", source_, {n});
        shaped("cost", cost_, {n});
        if (copies_) shaped("copies", *copies_, {n, d});
        source = source_;
        cost = cost_;
        copies = copies_;
        view.source = source->data();
        view.cost = cost->data();
        view.copies = copies ? copies->data() : nullptr;
    }
};

std::vector<double> wide_line(const Line& values, double filling) {
    std::vector<double> out(values.data(), values.data() + values.shape(0));
    out.resize(padded(int(out.size()), 8), filling);
    return out;
}

std::unique_ptr<Prepared> listed(Matrix u, Line offsets, Line origin, Line scale, Matrix guard) {
    const int m = counted("rows of u", u.shape(0)), d = counted("columns of u", u.shape(1));
    shaped("offsets", offsets, {u.shape(0)});
    shaped("origin", origin, {u.shape(1)});
    shaped("scale", scale, {u.shape(1)});
    shaped("guard", guard, {6, u.shape(0)});
    auto rows = std::make_unique<Prepared>();
    rows->scale = wide_line(scale, 1.0);
    rows->origin = wide_line(origin, 0.0);
    rows->list(m, d, u.data(), offsets.data(), guard.data());
    return rows;
}

// Shares of a model's rounding: growth of a sum, unit of rounding, and whether squares are expanded.
std::unique_ptr<Prepared> clusters(Matrix centers, Line weights, std::optional<Line> alphas, double delta,
                                   double growth, double eps, bool expanded) {
    const int k = counted("centers", centers.shape(0), 1);
    const int d = counted("columns of centers", centers.shape(1));
    shaped("weights", weights, {centers.shape(1)});
    if (alphas) shaped("alphas", *alphas, {centers.shape(0)});
    auto rows = std::make_unique<Prepared>();
    rows->weights.assign(weights.data(), weights.data() + d);
    rows->delta = delta;
    rows->growth = growth;
    rows->eps = eps;
    rows->expanded = expanded;
    rows->pair(k, d, centers.data(), alphas ? alphas->data() : nullptr);
    return rows;
}

void project(const Prepared& rows, const BatchArrays& batch, const ResultArrays& out, std::int64_t start,
             std::int64_t stop) {
    const Rows<double>& r = rows.few;
    const std::size_t n = batch.count();
    const Span span = batch.problems(r.d, batch.points.shape(0), start, stop);
    shaped("points of the results", out.points, {n, batch.points.shape(1)});
    if (out.view.width) shaped("multipliers", out.multipliers, {n, std::size_t(r.count)});
    require(!out.copies || !batch.rows, "copies are made of all points in their order: leave out rows.");
    if (r.pairs) {
        require(batch.targets.has_value(), "targets are needed: which cell each point is projected onto.");
        require(r.levels || rows.many.levels, "alphas are needed: without them clusters have no cells.");
        within("targets", batch.targets->data(), span, r.count);
    } else {
        require(!batch.targets, "targets are for clusters: leave them out for listed rows.");
        require(!out.source, "tell is for clusters: listed rows assign no point to a cluster.");
    }
    if (batch.up) {
        require(!r.pairs, "prices are for listed rows.");
        run(loops().price, rows.few, batch.view, out.view, span);
    } else if (rows.single)
        run(loops().project_many, rows.many, batch.view, out.view, span);
    else
        run(loops().project, rows.few, batch.view, out.view, span);
}

void nearest(const Prepared& rows, const Matrix& points, const Array<std::int64_t, 1>& labels,
             const Array<bool, 1>& doubtful, std::int64_t start, std::int64_t stop) {
    require(rows.few.pairs, "nearest is for clusters: listed rows have no centroids.");
    const std::size_t n = points.shape(0);
    shaped("points", points, {n, std::size_t(rows.few.d)});
    shaped("labels", labels, {n});
    shaped("doubtful", doubtful, {n});
    const Span span = part(start, stop, n);
    if (rows.single)
        run(loops().nearest_many, rows.many, points.data(), labels.data(), doubtful.data(), span);
    else
        run(loops().nearest, rows.few, points.data(), labels.data(), doubtful.data(), span);
}

void prefix_floors(const Prepared& rows, const BatchArrays& batch, const Index& order,
                   const Array<std::int64_t, 1>& floor, std::int64_t start, std::int64_t stop) {
    require(!rows.few.pairs, "prefix_floors is for listed rows.");
    const Span span = batch.problems(rows.few.d, batch.points.shape(0), start, stop);
    const int length = counted("order", order.shape(0));
    within("order", order.data(), {0, length}, rows.few.d);
    shaped("floor", floor, {batch.count()});
    const Prefixes f = {order.data(), length, rows.few.d, floor.data()};
    run(loops().prefix_floors, rows.few, f, batch.view, span);
}

// Arrays of answers to measure, and what they are measured by.
struct MeasureArrays {
    Index rows;
    Matrix points, answers;
    Line weights, metric;

    MeasureArrays(Index rows_, Matrix points_, Matrix answers_, Line weights_, Line metric_)
        : rows(rows_), points(points_), answers(answers_), weights(weights_), metric(metric_) {
        const std::size_t d = counted("columns of points", points.shape(1));
        shaped("answers", answers, {rows.shape(0), d});
        shaped("weights", weights, {d});
        shaped("metric", metric, {d});
    }
    void run(const Array<double, 1>& cost, const Array<double, 1>& energy, std::int64_t start,
             std::int64_t stop) const {
        const Span span = part(start, stop, rows.shape(0));
        within("rows", rows.data(), span, points.shape(0));
        shaped("cost", cost, {rows.shape(0)});
        shaped("energy", energy, {rows.shape(0)});
        const Measure m = {rows.data(),   points.data(), answers.data(), weights.data(),
                           metric.data(), cost.data(),   energy.data(),  int(points.shape(1))};
        loops().measure(m, span);
    }
};

// Arrays of the rules of a search. Columns and pitches are copied: what was checked about them stays so.
struct RuleArrays {
    std::vector<Column> columns;
    std::vector<double> pitches;
    Line listed;
    std::optional<Array<const std::uint8_t, 2>> stay, allowed, locked;
    std::optional<Array<const std::int64_t, 2>> least, most;
    std::optional<Matrix> lo, hi;
    std::optional<Matrix> gaps;
    std::optional<Array<const std::int64_t, 2>> holes;
    std::vector<Term> terms;
    std::vector<Identity> identities;
    std::vector<Whole> starts;
    std::vector<Line> curved;
    std::optional<Array<const std::uint8_t, 1>> tight;
    std::optional<Matrix> lines, own_values;
    std::vector<Matrix> knots;
    std::vector<Union> unions;
    std::vector<Place> places;
    std::vector<Side> sides;
    std::vector<Whole> levels;
    std::optional<Matrix> own_places, fees;
    std::optional<Line> up, down;
    std::vector<std::uint8_t> bent;
    std::size_t each = 0;  // rows of the user's table that have rules of their own; 1 where none has
    Rules view{};

    RuleArrays(Array<const std::int64_t, 2> columns_, Line listed_, Matrix pitches_) : listed(listed_) {
        const int many = counted("columns", columns_.shape(0));
        shaped("columns", columns_, {columns_.shape(0), 6});
        shaped("pitches", pitches_, {columns_.shape(0), 2});
        const auto* first = reinterpret_cast<const Column*>(columns_.data());
        columns.assign(first, first + many);
        pitches.assign(pitches_.data(), pitches_.data() + pitches_.size());
        view.columns = columns.data();
        view.many = many;
        view.listed = listed.data();
        view.listed_size = counted("listed", listed.shape(0));
        view.pitches = pitches.data();
        for (int c = 0; c < many; ++c) check_column(c);
    }

    bool has_pitch(int c) const { return pitches[2 * c + 1] > 0.0; }

    // Columns lie side by side, and the listed options of each within `listed`.
    void check_column(int c) const {
        const Column& k = columns[c];
        const Whole before = c ? columns[c - 1].first + columns[c - 1].width : 0;
        between("first of columns", k.first, before, before, c);
        between("freedom of columns", k.freedom, ANY, LEVELS, c);
        between("width of columns", k.width, 1, k.freedom == LEVELS ? INT_MAX : 1, c);
        if (has_pitch(c) && k.freedom == GRID) return;
        between("count of columns", k.count, 0, view.listed_size, c);
        between("start of columns", k.start, 0, view.listed_size - k.count * k.width, c);
    }

    // What each row may do, one row for all or one each.
    void allow(Array<const std::uint8_t, 2> stay_, Array<const std::uint8_t, 2> allowed_,
               Array<const std::int64_t, 2> least_, Array<const std::int64_t, 2> most_, Matrix lo_,
               Matrix hi_, Array<const std::uint8_t, 2> locked_) {
        const std::size_t many = columns.size(), d = many ? columns.back().first + columns.back().width : 0;
        const int levels = counted("columns of allowed", allowed_.shape(1));
        each = std::max({stay_.shape(0), allowed_.shape(0), least_.shape(0), most_.shape(0), lo_.shape(0),
                         hi_.shape(0)});
        one_or_each("stay", stay_, each, many);
        one_or_each("allowed", allowed_, each, allowed_.shape(1));
        one_or_each("least", least_, each, many);
        one_or_each("most", most_, each, many);
        one_or_each("lo", lo_, each, d);
        one_or_each("hi", hi_, each, d);
        shaped("locked", locked_, {locked_.shape(0), many});
        for (std::size_t c = 0; c < many; ++c)
            if (columns[c].freedom == LEVELS)
                between("level of columns", columns[c].level, 0, levels - columns[c].count, c);
        stay = stay_;
        allowed = allowed_;
        least = least_;
        most = most_;
        lo = lo_;
        hi = hi_;
        locked = locked_;
        view.stay = stay->data();
        view.own_stay = stay->shape(0) != 1;
        view.allowed = allowed->data();
        view.own_allowed = allowed->shape(0) != 1;
        view.levels = levels;
        view.least = least->data();
        view.own_least = least->shape(0) != 1;
        view.most = most->data();
        view.own_most = most->shape(0) != 1;
        view.lo = lo->data();
        view.own_lo = lo->shape(0) != 1;
        view.hi = hi->data();
        view.own_hi = hi->shape(0) != 1;
        view.locked = locked->data();
        view.own_locked = locked->shape(0) != 1;
    }

    // What no row may move to: numbers and options between two of each column, one row for all or one each.
    void leave_out(Matrix gaps_, Array<const std::int64_t, 2> holes_) {
        require(bool(allowed), "gaps are for rules that allow something.");
        each = each == 1 ? gaps_.shape(0) : each;
        one_or_each("gaps", gaps_, each, 2 * columns.size());
        shaped("holes", holes_, shape_of(gaps_));
        gaps = gaps_;
        holes = holes_;
        view.gaps = gaps->data();
        view.holes = holes->data();
        view.own_gaps = gaps->shape(0) != 1;
    }

    // Curved rules in place of the last rows: factors of columns in rules, limits, the lines of columns without
    // knots, the values of listed options, the rows' own values, and errors of conversions.
    void bend(Array<const std::int64_t, 2> places, Line factors, Line limits_, Array<const std::uint8_t, 1> tight_,
              Matrix lines_, Line worth_, Matrix own_, Line errors_) {
        require(bool(allowed), "curved rules are for rules that allow something.");
        const std::size_t many = columns.size(), count = factors.shape(0);
        shaped("places", places, {count, 2});
        shaped("tight", tight_, {limits_.shape(0)});
        shaped("lines", lines_, {many, 2});
        shaped("worth", worth_, {listed.shape(0)});
        shaped("errors", errors_, {many});
        each = each == 1 ? own_.shape(0) : each;
        one_or_each("own", own_, each, many);
        terms.clear();
        for (std::size_t t = 0; t < count; ++t) {
            between("rules of places", places(t, 0), 0, std::int64_t(limits_.shape(0)) - 1, t);
            between("columns of places", places(t, 1), 0, std::int64_t(many) - 1, t);
            between("freedom of columns in places", columns[places(t, 1)].freedom, ANY, GRID, t);
            terms.push_back({places(t, 0), places(t, 1), factors(t)});
        }
        identities.assign(limits_.shape(0), Identity{-1, 0, -1, -1, 0, -1, -1, 0.0, -1.0});
        curved = {limits_, worth_, errors_};
        tight = tight_;
        lines = lines_;
        own_values = own_;
        starts.assign(many + 1, 0);
        view.curves = {counted("limits", limits_.shape(0)), counted("places", count), 0, terms.data(),
                       identities.data(), limits_.data(), tight->data(), lines->data(), starts.data(), worth_.data(),
                       errors_.data(), own_values->data(), nullptr, nullptr, nullptr, nullptr,
                       own_.shape(0) != 1, false};
    }

    // What rules of identities have, see `Identity`: the columns in each are among those of its terms.
    void equate(Array<const std::int64_t, 2> parts, Matrix sizes) {
        shaped("parts", parts, {identities.size(), 7});
        shaped("sizes", sizes, {identities.size(), 2});
        for (std::size_t e = 0; e < identities.size(); ++e) {
            const Identity p = {parts(e, 0), parts(e, 1), parts(e, 2), parts(e, 3), parts(e, 4),
                                parts(e, 5), parts(e, 6), sizes(e, 0), sizes(e, 1)};
            between("boxes of parts", p.together, -1, INT_MAX, e);
            between("ends of parts", p.ends, 0, 3, e);
            require((p.x < 0) == (p.y < 0), "parts: a product has two factors.");
            require(!(p.half >= 0.0) || p.made >= 0, "parts: an identity computes a column.");
            for (const Whole c : {p.x, p.y, p.made, p.divisor}) {
                bool known = c == -1;
                for (const Term& t : terms) known = known || (t.rule == Whole(e) && t.column == c);
                require(known, "parts: a column of an identity is in none of its terms.");
            }
            identities[e] = p;
        }
    }

    // Knots of curves, of all problems or of each: coordinates, values, and how far a curve lies below and above
    // its chords. Those of column c are starts[c] to before starts[c + 1]; there are two at least, or none.
    void know(Array<const std::int64_t, 1> starts_, Matrix z, Matrix u, Matrix under, Matrix over) {
        require(bool(lines), "knots are for curved rules.");
        shaped("starts", starts_, {columns.size() + 1});
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const bool some = starts_(c + 1) != starts_(c);
            between("starts", starts_(c + 1), starts_(c) + (some ? 2 : 0), std::int64_t(z.shape(1)), c + 1);
            require(!some || !(columns[c].freedom == GRID && has_pitch(int(c))), "knots of an even grid.");
        }
        between("starts", starts_(0), 0, 0, 0);
        between("starts", starts_(columns.size()), z.shape(1), z.shape(1));
        for (const auto& [name, part] : {std::pair{"u", &u}, {"under", &under}, {"over", &over}})
            shaped(name, *part, shape_of(z));
        starts.assign(starts_.data(), starts_.data() + starts_.shape(0));
        knots = {z, u, under, over};
        Curves& k = view.curves;
        k.starts = starts.data();
        k.total = counted("knots", z.shape(1));
        k.z = z.data();
        k.u = u.data();
        k.under = under.data();
        k.over = over.data();
        k.own_knots = z.shape(0) != 1;
    }

    // Rules about columns that belong together: for each place, a column in a rule, the rule, the column, the
    // number of boxes, and whether own values are positions of levels; then, place by place and box by box, the
    // ends in the user's units and in coordinates, the first and last option of a grid, and where the levels
    // that are listed start; and the rows' own values at the places.
    void join(Array<const std::int64_t, 2> places_, Matrix ends, Array<const std::int64_t, 2> options,
              Array<const std::int64_t, 1> starts_, Array<const std::int64_t, 1> levels_, Matrix own_) {
        require(bool(allowed), "boxes are for rules that allow something.");
        shaped("places", places_, {places_.shape(0), 4});
        shaped("ends", ends, {ends.shape(0), 4});
        shaped("options", options, {ends.shape(0), 2});
        shaped("starts", starts_, {ends.shape(0) + 1});
        each = each == 1 ? own_.shape(0) : each;
        one_or_each("own", own_, each, places_.shape(0));
        unions.clear();
        places.clear();
        const Whole total = counted("ends", ends.shape(0));
        Whole start = 0;
        for (std::size_t p = 0; p < places_.shape(0); ++p) {
            const Whole rule = places_(p, 0), boxes = places_(p, 2), known = unions.size();
            between("rules of places", rule, known ? known - 1 : 0, known, p);
            between("columns of places", places_(p, 1), 0, view.many - 1, p);
            between("boxes of places", boxes, 1, total - start, p);
            between("codes of places", places_(p, 3), 0, columns[places_(p, 1)].freedom == LEVELS, p);
            if (rule == known) unions.push_back({int(p), int(p), boxes});
            between("boxes of places", boxes, unions.back().boxes, unions.back().boxes, p);
            ++unions.back().last;
            places.push_back({places_(p, 1), start, places_(p, 3) != 0});
            start += boxes;
        }
        between("boxes of all places", start, total, total);
        levels.assign(levels_.data(), levels_.data() + levels_.shape(0));
        read_sides(ends, options, starts_);
        own_places = own_;
        view.unions = {int(unions.size()), int(places.size()), int(total), unions.data(), places.data(),
                       sides.data(), levels.data(), own_places->data(), own_.shape(0) != 1};
    }

    // The sides of boxes, whose levels are some that the column has.
    void read_sides(const Matrix& ends, const Array<const std::int64_t, 2>& options,
                    const Array<const std::int64_t, 1>& from) {
        sides.clear();
        between("starts", from(0), 0, 0, 0);
        for (const Union& rule : unions)
            for (int p = rule.first; p < rule.last; ++p)
                for (Whole at = places[p].start; at < places[p].start + rule.boxes; ++at) {
                    const Column& column = columns[places[p].column];
                    between("starts", from(at + 1), from(at), Whole(levels.size()), at + 1);
                    for (Whole e = from(at); e < from(at + 1); ++e)
                        between("levels", levels[e], 0, column.freedom == LEVELS ? column.count - 1 : -1, e);
                    sides.push_back({ends(at, 0), ends(at, 1), ends(at, 2), ends(at, 3), options(at, 0),
                                     options(at, 1), from(at), from(at + 1)});
                }
    }

    // Ask for the least price: what each coordinate costs per unit more and per unit less, and what a row pays for
    // each level, one row for all or one each. Coordinates of levels have no price of their own.
    void price(Line up_, Line down_, Matrix fees_, Array<const std::uint8_t, 1> bent_) {
        require(bool(allowed), "prices are for rules that allow something.");
        const std::size_t d = lo->shape(1);
        check_prices("up", up_, d);
        check_prices("down", down_, d);
        each = each == 1 ? fees_.shape(0) : each;
        one_or_each("fees", fees_, each, allowed->shape(1));
        for (std::size_t t = 0; t < fees_.size(); ++t) require_price(fees_.data()[t]);
        shaped("bent", bent_, {columns.size()});
        bent.assign(bent_.data(), bent_.data() + bent_.shape(0));
        up = up_;
        down = down_;
        fees = fees_;
        view.up = up->data();
        view.down = down->data();
        view.fees = fees->data();
        view.own_fees = fees->shape(0) != 1;
        const bool some = std::find(bent.begin(), bent.end(), 1) != bent.end();
        view.bent = some ? bent.data() : nullptr;
    }

    void limit(int changes, bool fewest, std::int64_t nodes) {
        between("changes", changes, 0, view.many);
        view.changes = changes;
        view.fewest = fewest;
        view.limit = nodes;
    }

    // The options of a grid that a row of the user's table may take are among those that there are.
    void check_grid(int c, Whole at) const {
        const Whole first = view.least[(view.own_least ? at : 0) * view.many + c],
                    last = view.most[(view.own_most ? at : 0) * view.many + c];
        if (first > last) return;
        const Whole furthest = Whole(1) << 60;
        between("least", first, has_pitch(c) ? -furthest : 0, last, c);
        between("most", last, first, has_pitch(c) ? furthest : columns[c].count - 1, c);
    }

    // Some problems of a batch, whose rows these are.
    Span problems(const Rows<double>& r, const BatchArrays& batch, std::int64_t start,
                  std::int64_t stop) const {
        require(batch.rows && allowed, "a search needs a batch with rows, and rules that allow something.");
        const std::size_t n = batch.count(), d = r.d;
        const Span span = batch.problems(r.d, each == 1 ? INT64_MAX : each, start, stop);
        shaped("points", batch.points, {n, d});
        shaped("lo", *lo, {lo->shape(0), d});
        one_or_each("locked", *locked, n, columns.size());
        between("curved rules", view.curves.rules + (up ? 1 : 0), 0, r.count);
        for (std::size_t e = 0; e < identities.size(); ++e) {
            const Identity& p = identities[e];
            between("unions of parts", p.together, -1, view.unions.count - 1, e);
            if (p.together >= 0) between("boxes of parts", p.box, 0, unions[p.together].boxes - 1, e);
        }
        for (int c = 0; c < (view.bent ? view.many : 0); ++c) {
            between("bent", bent[c], 0, 1, c);
            if (!bent[c]) continue;
            between("freedom of bent columns", columns[c].freedom, ANY, GRID, c);
            require(!knots.empty() && starts[c] < starts[c + 1], "prices behind a curve need knots of it.");
            require(columns[c].freedom == ANY || !has_pitch(c), "knots of an even grid.");
        }
        if (!knots.empty()) one_or_each("z", knots[0], n, knots[0].shape(1));
        for (int c = 0; c < view.many; ++c) {
            if (columns[c].freedom != GRID) continue;
            require(!has_pitch(c) || r.scale[columns[c].first] * pitches[2 * c + 1] > 0.0,
                    "pitches: a grid is so fine that its pitch is 0 in the metric.");
            for (Whole q = span.start; q < span.stop; ++q) check_grid(c, batch.view.rows[q]);
        }
        return span;
    }
};

// Arrays that the search writes to.
struct FoundArrays {
    Array<double, 2> points;
    Array<double, 1> gap, reach;
    Array<std::int8_t, 1> status;
    Array<bool, 1> close;
    Array<std::int64_t, 1> changes, nodes;
    std::optional<Array<double, 2>> stuck;  // where curves are known too coarsely

    void tell(Array<double, 2> stuck_) { stuck = stuck_; }

    FoundArrays(Array<double, 2> points_, Array<double, 1> gap_, Array<double, 1> reach_,
                Array<std::int8_t, 1> status_, Array<bool, 1> close_, Array<std::int64_t, 1> changes_,
                Array<std::int64_t, 1> nodes_)
        : points(points_), gap(gap_), reach(reach_), status(status_), close(close_), changes(changes_),
          nodes(nodes_) {
        const std::size_t n = points.shape(0);
        shaped("gap", gap, {n});
        shaped("reach", reach, {n});
        shaped("status", status, {n});
        shaped("close", close, {n});
        shaped("changes", changes, {n});
        shaped("nodes", nodes, {n});
    }
};

void branch(const Prepared& rows, const BatchArrays& batch, const RuleArrays& rules,
            const FoundArrays& f, std::int64_t start, std::int64_t stop) {
    require(!rows.few.pairs, "branch is for listed rows.");
    const Span span = rules.problems(rows.few, batch, start, stop);
    shaped("points of what is found", f.points, shape_of(batch.points));
    const Found out = {f.points.data(), f.gap.data(),     f.reach.data(), f.status.data(),
                       f.close.data(),  f.changes.data(), f.nodes.data(), f.stuck ? f.stuck->data() : nullptr};
    if (f.stuck) shaped("stuck", *f.stuck, {batch.count(), 3 * rules.columns.size()});
    run(loops().branch, rows.few, batch.view, rules.view, out, span);
}

// Rows to cluster, and the metric and centres of a pass over them.
struct TableArrays {
    Matrix X;
    Line mass;
    Matrix centers;
    Line weights;
    Table view;

    TableArrays(Matrix X_, Line mass_, Matrix centers_, Line weights_)
        : X(X_), mass(mass_), centers(centers_), weights(weights_) {
        const std::size_t d = X.shape(1);
        shaped("centers", centers, {centers.shape(0), d});
        shaped("weights", weights, {d});
        view = {X.data(), mass.data(), centers.data(), weights.data(), counted("columns of X", d),
                counted("centers", centers.shape(0), 1)};
    }

    using Labels = Array<std::int32_t, 1>;
    using PerCluster = Array<double, 2>;

    void nearest(const Labels& labels, const Array<double, 1>& closest, std::int64_t start,
                 std::int64_t stop) const {
        const Span span = part(start, stop, X.shape(0));
        shaped("labels", labels, {X.shape(0)});
        shaped("closest", closest, {X.shape(0)});
        run(loops().lloyd_nearest, view, labels.data(), closest.data(), span);
    }
    void sweep(const Matrix& origins, const PerCluster& sums, const Array<double, 1>& totals,
               const PerCluster& around) const {
        shaped("mass", mass, {X.shape(0)});
        shaped("origins", origins, shape_of(centers));
        shaped("sums", sums, shape_of(centers));
        shaped("totals", totals, {centers.shape(0)});
        shaped("around", around, shape_of(centers));
        run(loops().lloyd_sweep, view, std::int64_t(X.shape(0)),
            Sums{origins.data(), sums.data(), totals.data(), around.data()});
    }
    void distances(const PerCluster& out, std::int64_t start, std::int64_t stop) const {
        const Span span = part(start, stop, X.shape(0));
        shaped("out", out, {X.shape(0), centers.shape(0)});
        run(loops().lloyd_distances, view, out.data(), span);
    }
};

void bind_rows(nb::module_& m) {
    nb::class_<BatchArrays>(m, "Batch")
        .def(nb::init<Matrix, Matrix, Matrix, std::optional<Index>, std::optional<Index>, double>(),
             "points"_a, "lo"_a, "hi"_a, "rows"_a = nb::none(), "targets"_a = nb::none(), "factor"_a = 1.0)
        .def("limit", &BatchArrays::limit, "ranks"_a, "counts"_a)
        .def("price", &BatchArrays::price, "up"_a, "down"_a);
    nb::class_<ResultArrays>(m, "Results")
        .def(nb::init<Array<double, 2>, Array<double, 2>, Array<double, 1>, Array<double, 1>,
                      Array<std::int8_t, 1>, Array<bool, 1>>(),
             "points"_a.noconvert(), "multipliers"_a.noconvert(), "gap"_a.noconvert(),
             "reach"_a.noconvert(), "status"_a.noconvert(), "close"_a.noconvert())
        .def("tell", &ResultArrays::tell, "source"_a.noconvert(), "cost"_a.noconvert(),
             "copies"_a.noconvert() = nb::none());
    nb::class_<Prepared>(m, "Rows")
        .def_static("listed", &listed, "u"_a, "offsets"_a, "origin"_a, "scale"_a, "guard"_a)
        .def_static("clusters", &clusters, "centers"_a, "weights"_a, "alphas"_a.none(), "delta"_a,
                    "growth"_a, "eps"_a, "expanded"_a)
        .def("project", &project, Free())
        .def("nearest", &nearest, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
             nb::arg(), Free())
        .def("prefix_floors", &prefix_floors, nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(),
             nb::arg(), Free())
        .def("branch", &branch, Free());
}

void bind_search(nb::module_& m) {
    nb::class_<RuleArrays>(m, "Rules")
        .def(nb::init<Array<const std::int64_t, 2>, Line, Matrix>())
        .def("allow", &RuleArrays::allow)
        .def("leave_out", &RuleArrays::leave_out, "gaps"_a, "holes"_a)
        .def("bend", &RuleArrays::bend)
        .def("equate", &RuleArrays::equate)
        .def("know", &RuleArrays::know)
        .def("join", &RuleArrays::join)
        .def("price", &RuleArrays::price)
        .def("limit", &RuleArrays::limit);
    nb::class_<FoundArrays>(m, "Found")
        .def(nb::init<Array<double, 2>, Array<double, 1>, Array<double, 1>, Array<std::int8_t, 1>,
                      Array<bool, 1>, Array<std::int64_t, 1>, Array<std::int64_t, 1>>(),
             nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
             nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert())
        .def("tell", &FoundArrays::tell, nb::arg().noconvert());
    nb::class_<MeasureArrays>(m, "Measure")
        .def(nb::init<Index, Matrix, Matrix, Line, Line>())
        .def("run", &MeasureArrays::run, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
             nb::arg(), Free());
}

void bind_stop(nb::module_& m) {
    nb::class_<Stop>(m, "Stop")
        .def(nb::init<>())
        .def("__enter__", &Stop::enter)
        .def("__exit__", &Stop::leave)
        .def("set", &Stop::set)
        .def("is_set", &Stop::is_set);
}

void bind_tables(nb::module_& m) {
    nb::class_<TableArrays>(m, "Table")
        .def(nb::init<Matrix, Line, Matrix, Line>())
        .def("nearest", &TableArrays::nearest, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
             nb::arg(), Free())
        .def("sweep", &TableArrays::sweep, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
             nb::arg().noconvert(), Free())
        .def("distances", &TableArrays::distances, nb::arg().noconvert(), nb::arg(), nb::arg(), Free());
}

}  // namespace
}  // namespace voicecf

NB_MODULE(_core, m) {
    m.doc() = "The compiled core: projections, searches over choices, k-means passes.";
    m.attr("FEW_ROWS") = voicecf::FEW;
    m.def("instruction_set", [] { return voicecf::here().name; });
    voicecf::bind_rows(m);
    voicecf::bind_search(m);
    voicecf::bind_stop(m);
    voicecf::bind_tables(m);
}

// Projection to queries, keys and values with rotary embedding, against the library's product
// followed by the rotation.
#include "kernels/qkv.h"

#include <cmath>

#include "base/format.h"
#include "lab/problems/angles.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

class Qkv final : public Problem {
 public:
  explicit Qkv(const ProblemRequest& request)
      : Problem(request),
        tf32_(request["tf32"] != 0),
        heads_(request["heads"]),
        kv_heads_(request["kv-heads"] > 0 ? request["kv-heads"] : heads_),
        length_(request["seq"]),
        head_dim_(request["head-dim"]) {
    if (!kernels::can_fuse_rope(head_dim_))
      fail_f("--head-dim {} does not fit qkv's tiles: use 64 or 128", head_dim_);
    for (const char* heads : {"heads", "kv-heads"}) {
      request.product({heads, "head-dim"}, 3);
      request.product({"batch", "seq", heads}, 4);
    }
    const int rows = request.product({"batch", "seq"}), d = request["dim"];
    const int n = (heads_ + 2 * kv_heads_) * head_dim_;
    plan_sets((double(rows) * d + double(n) * d + double(rows) * n) * size_of(dtype()));
    angles_.emplace(device(), length_, head_dim_, packed());
    for (int set = 0; set < sets(); ++set)
      data_.push_back(
          {&input(1, rows, d), &input(1, n, d, 1 / std::sqrt(float(d))), &output(1, rows, n)});
    for (const Set& set : data_) add_kernel(set);
    add_library();
  }

  Ceiling ceiling() const override { return compute_ceiling(device(), dtype(), tf32_); }

 private:
  struct Set {
    const Operand *x, *w, *y;
  };

  int turned_heads() const { return heads_ + kv_heads_; }

  void add_kernel(const Set& set) {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      add_call("qkv", kernels::QkvArgs<T>{.x = set.x->tensor<T>(),
                                          .w = set.w->tensor<T>(),
                                          .y = set.y->tensor<T>(),
                                          .cos = angles_->cos(),
                                          .sin = angles_->sin(),
                                          .head_dim = head_dim_,
                                          .turned = turned_heads() * head_dim_,
                                          .seq = length_,
                                          .precision = dot_precision(tf32_)});
    });
  }

  void add_library() {
    const Set& first = data_[0];
    const Product product = product_of({.trans_b = true, .precision = library_precision(tf32_)},
                                       *first.x, *first.w, *first.y);
    const auto algorithms = product_algorithms(device(), product);
    for (size_t i = 0; i < algorithms.size(); ++i)
      add_rival(
          {(on_cuda() ? fmt::format("cublasLt {}", i) : product_library(device())) + " + rope",
           [this, product, i](Stream& s, int turn) {
             const Set& set = data_[turn % data_.size()];
             multiply(s, product, set.x->data(), set.w->data(), set.y->data(), int(i));
             rotate(s, set);
           }});
  }
  void rotate(Stream& stream, const Set& set) const {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      const Tensor<T> y = set.y->tensor<T>();
      const Tensor<T> heads =
          heads_of(y.data, y.rows / length_, length_, turned_heads(), head_dim_, y.ld);
      launch(stream, kernels::RopeForwardArgs<T>{
                         .x = heads, .cos = angles_->cos(), .sin = angles_->sin(), .y = heads});
    });
  }

  Accuracy check_results() const override {
    const Set& set = data_[0];
    const int64_t d = set.x->cols(), half = head_dim_ / 2;
    const ErrorBound bound{.length = d + 2,
                           .inner = product_roundoff(dtype(), tf32_) + roundoff(dtype())};
    return check_output(*set.y, bound, 4.0 * d, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> x = set.x->held(row * d, d);
      // One element of the product, and what its rounding errors are relative to.
      const auto product = [&](int64_t col) {
        const std::vector<double> w = set.w->held(col * d, d);
        double sum = 0, xx = 0, ww = 0;
        for (int64_t q = 0; q < d; ++q) sum += x[q] * w[q], xx += x[q] * x[q], ww += w[q] * w[q];
        return std::pair{sum, std::sqrt(xx * ww)};
      };
      for (size_t i = 0; i < cols.size(); ++i) {
        const int64_t place = cols[i] % head_dim_, low = cols[i] - place + place % half;
        const auto [a, a_norm] = product(low);
        const auto [b, b_norm] = product(low + half);
        const bool turned = cols[i] < int64_t{turned_heads()} * head_dim_;
        const double angle = turned ? (*angles_)(row % length_, place % half) : 0;
        const double c = std::cos(angle), s = std::sin(angle);
        want[i] = {place < half ? a * c - b * s : b * c + a * s, a_norm + b_norm};
      }
    });
  }

  const bool tf32_;
  const int heads_, kv_heads_, length_, head_dim_;
  std::optional<Angles> angles_;
  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> qkv_problems() {
  return {{"qkv",
           "x w' in one kernel with the rotation of queries and keys",
           {{"batch", "sequences", 1, 4},
            {"heads", "query heads", 4, 16},
            {"kv-heads", "key and value heads; 0: as many as query heads", 0, 0, 0},
            {"seq", "positions of a sequence", 256, 2048},
            {"head-dim", "columns of a head; of attention: at most 256", 64, 128, 64, 128},
            {"dim", "columns of x", 256, 2048},
            tf32_parameter()},
           {"qkv"},
           make<Qkv>}};
}

}  // namespace cria

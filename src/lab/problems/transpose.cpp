// The transpose ladder: the same copy, four ways to address it, and the library's.
#include "kernels/transpose.h"

#include "lab/problems/problems.h"
#include "runtime/library_transpose.h"

namespace cria {
namespace {

class Transpose final : public Problem {
 public:
  explicit Transpose(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], cols = request["cols"];
    plan_sets(2.0 * rows * cols * size_of(dtype()));
    for (int set = 0; set < sets(); ++set)
      data_.push_back({&input(1, rows, cols), &output(1, cols, rows)});
    with_float(dtype(), [&](auto t) { add_ladder<decltype(t)>(); });
    if (has_library_transpose(device()))
      add_rival({"library", [this](Stream& s, int turn) {
                   const Set& set = data_[turn % data_.size()];
                   library_transpose(s, *set.x, *set.y);
                 }});
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  struct Set {
    const Operand *x, *y;
  };

  template <class T>
  void add_ladder() {
    for (const Set& set : data_) {
      const Tensor<const T> x = set.x->tensor<T>();
      const Tensor<T> y = set.y->tensor<T>();
      add_call("row_wise", kernels::TransposeRowWiseArgs<T>{x, y});
      add_call("coalesced_loads", kernels::TransposeCoalescedLoadsArgs<T>{x, y});
      add_call("tiled", kernels::TransposeTiledArgs<T>{x, y});
      add_call("padded", kernels::TransposePaddedArgs<T>{x, y});
    }
  }

  Accuracy check_results() const override {
    const Set& set = data_[0];
    return check_output(*set.y, {}, 1, [&](int64_t row, auto cols, auto want) {
      for (size_t i = 0; i < cols.size(); ++i)
        want[i].value = set.x->held(cols[i] * set.x->cols() + row);
    });
  }

  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> transpose_problems() {
  return {
      {"transpose",
       "transposed copy: a ladder of kernels from row-wise to padded tiles",
       {{"rows", "rows of the matrix", 2048, 16384}, {"cols", "columns of the matrix", 2048, 8192}},
       {"transpose_padded", "transpose_tiled", "transpose_coalesced_loads", "transpose_row_wise"},
       make<Transpose>}};
}

}  // namespace cria

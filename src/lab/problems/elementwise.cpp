#include "lab/problems/elementwise.h"

#include <cmath>

#include "kernels/pointwise.h"
#include "kernels/silu.h"
#include "kernels/vector_add.h"

namespace cria {

ElementwiseProblem::ElementwiseProblem(const ProblemRequest& request, int rows, int cols,
                                       int inputs, int outputs)
    : Problem(request) {
  plan_sets(double(inputs + outputs) * rows * cols * size_of(dtype()));
  for (int set = 0; set < sets(); ++set) {
    Set& made = data_.emplace_back();
    for (int i = 0; i < inputs; ++i) made.in.push_back(&input(1, rows, cols));
    for (int i = 0; i < outputs; ++i) made.out.push_back(&output(1, rows, cols));
  }
}

Accuracy ElementwiseProblem::check_results() const {
  const Set& set = data_[0];
  Accuracy total;
  for (size_t o = 0; o < set.out.size(); ++o)
    total.include(
        check_output(*set.out[o], {.length = 4}, 8, [&](int64_t row, auto cols, auto want) {
          std::vector<double> in(set.in.size());
          std::vector<Exact> out(set.out.size());
          for (size_t i = 0; i < cols.size(); ++i) {
            for (size_t k = 0; k < in.size(); ++k)
              in[k] = set.in[k]->held(row * set.in[k]->cols() + cols[i]);
            exact(in, out);
            want[i] = out[o];
          }
        }));
  return total;
}

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }
// Of the two terms that the slope adds up.
double silu_slope_norm(double x) { return sigmoid(x) * (1 + std::abs(x)); }

class VectorAdd final : public ElementwiseProblem {
 public:
  explicit VectorAdd(const ProblemRequest& request)
      : ElementwiseProblem(request, 1, request["n"], 2, 1) {
    for (const Set& s : data_)
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("vector_add", kernels::VectorAddArgs<T>{s.in[0]->tensor<T>(), s.in[1]->tensor<T>(),
                                                         s.out[0]->tensor<T>()});
      });
  }

 private:
  void exact(std::span<const double> in, std::span<Exact> out) const override {
    out[0] = {in[0] + in[1], std::abs(in[0]) + std::abs(in[1])};
  }
};

class Multiply final : public ElementwiseProblem {
 public:
  explicit Multiply(const ProblemRequest& request)
      : ElementwiseProblem(request, request["rows"], request["cols"], 2, 1) {
    for (const Set& s : data_)
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("multiply", kernels::MultiplyArgs<T>{s.in[0]->tensor<T>(), s.in[1]->tensor<T>(),
                                                      s.out[0]->tensor<T>()});
      });
  }

 private:
  void exact(std::span<const double> in, std::span<Exact> out) const override {
    out[0] = {in[0] * in[1], 0};
  }
};

class Scale final : public ElementwiseProblem {
 public:
  explicit Scale(const ProblemRequest& request)
      : ElementwiseProblem(request, request["rows"], request["cols"], 1, 1) {
    for (const Set& s : data_)
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("scale", kernels::ScaleArgs<T>{s.in[0]->tensor<T>(), s.out[0]->tensor<T>(), 3});
      });
  }

 private:
  void exact(std::span<const double> in, std::span<Exact> out) const override {
    out[0] = {3 * in[0], 0};
  }
};

class Silu final : public ElementwiseProblem {
 public:
  explicit Silu(const ProblemRequest& request)
      : ElementwiseProblem(request, request["rows"], request["cols"], 1, 1) {
    for (const Set& s : data_)
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("silu", kernels::SiluForwardArgs<T>{s.in[0]->tensor<T>(), s.out[0]->tensor<T>()});
      });
  }

 private:
  void exact(std::span<const double> in, std::span<Exact> out) const override {
    out[0] = {silu(in[0]), 0};
  }
};

class SiluBackward final : public ElementwiseProblem {
 public:
  explicit SiluBackward(const ProblemRequest& request)
      : ElementwiseProblem(request, request["rows"], request["cols"], 2, 1) {
    for (const Set& s : data_)
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("silu_backward",
                 kernels::SiluBackwardArgs<T>{s.in[0]->tensor<T>(), s.in[1]->tensor<T>(),
                                              s.out[0]->tensor<T>()});
      });
  }

 private:
  void exact(std::span<const double> in, std::span<Exact> out) const override {
    out[0] = {in[1] * silu_slope(in[0]), std::abs(in[1]) * silu_slope_norm(in[0])};
  }
};

class SiluUp final : public ElementwiseProblem {
 public:
  explicit SiluUp(const ProblemRequest& request)
      : ElementwiseProblem(request, request["rows"], request["cols"], 2, 1) {
    for (const Set& s : data_)
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("silu_up", kernels::SiluUpForwardArgs<T>{
                                s.in[0]->tensor<T>(), s.in[1]->tensor<T>(), s.out[0]->tensor<T>()});
      });
  }

 private:
  void exact(std::span<const double> in, std::span<Exact> out) const override {
    out[0] = {silu(in[0]) * in[1], 0};
  }
};

class SiluUpBackward final : public ElementwiseProblem {
 public:
  explicit SiluUpBackward(const ProblemRequest& request)
      : ElementwiseProblem(request, request["rows"], request["cols"], 3, 2) {
    for (const Set& s : data_)
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("silu_up_backward",
                 kernels::SiluUpBackwardArgs<T>{s.in[0]->tensor<T>(), s.in[1]->tensor<T>(),
                                                s.in[2]->tensor<T>(), s.out[0]->tensor<T>(),
                                                s.out[1]->tensor<T>()});
      });
  }

 private:
  void exact(std::span<const double> in, std::span<Exact> out) const override {
    const auto [gate, up, dy] = std::tuple(in[0], in[1], in[2]);
    out[0] = {dy * up * silu_slope(gate), std::abs(dy * up) * silu_slope_norm(gate)};
    out[1] = {dy * silu(gate), 0};
  }
};

}  // namespace

std::vector<ProblemSpec> elementwise_problems() {
  const std::vector<Parameter> matrix = {{"rows", "rows of the matrix", 4096, 65536},
                                         {"cols", "columns of the matrix", 1024, 5632}};
  return {{"vector_add",
           "z = x + y",
           {{"n", "elements; of gemm: columns of c", 1 << 22, 1 << 28}},
           {"vector_add"},
           make<VectorAdd>},
          {"multiply", "z = x y", matrix, {"multiply"}, make<Multiply>},
          {"scale", "y = factor x", matrix, {"scale"}, make<Scale>},
          {"silu", "SiLU", matrix, {"silu_forward"}, make<Silu>},
          {"silu_backward", "SiLU, backward", matrix, {"silu_backward"}, make<SiluBackward>},
          {"silu_up",
           "silu(gate) * up, the activation of SwiGLU",
           matrix,
           {"silu_up_forward"},
           make<SiluUp>},
          {"silu_up_backward",
           "silu(gate) * up, backward",
           matrix,
           {"silu_up_backward"},
           make<SiluUpBackward>}};
}

}  // namespace cria

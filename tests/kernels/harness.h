// Kernel tests. A test names its operands, computes what the outputs should be in double, and
// builds the kernel's arguments once; this file does the rest: types f32, bf16 and f16; targets
// cpu, trace and cuda; every configuration that fits; operands tight, pitched, padded, and
// misaligned with odd rows; guard bytes around all memory, poison in every output and between rows;
// inputs unchanged; traced bytes equal to cost().
//
//   const bool registered = kernel_test<2>(
//       "ScaleForward", {.small = cross({0, 1, 5}, {1, 255, 256, 257}), .large = {{64, 4099}}},
//       [](auto& t, int rows, int cols) {
//         auto& x = t.input("x", {rows, cols});  // normal values, rounded to the type
//         auto& y = t.output("y", {rows, cols});
//         for (int r = 0; r < rows; ++r)
//           for (int c = 0; c < cols; ++c) y.want(r, c) = 3 * x(r, c);
//         y.tolerance = {};  // see support/compare.h; `out` is filled in
//         t.run(ScaleForwardArgs<ElementOf<decltype(t)>>{.x = x, .y = y, .factor = 3});
//       });
//
// This gives the tests ScaleForward.Cpu_f32, .Trace_f32, .GpuSmall_f32 (`small` sizes, for
// sanitizers), .Gpu_f32 (`large` ones), .GpuLarge_bf16 (`many_tiles`), and so on. Operands: input,
// output, inout (read, then overwritten), each also with the prefix fp32_ for tensors that are
// float whatever the type under test; split_inout for floats in halves; i32_input for integers,
// which the test sets. A shape is {cols}, {rows, cols} or {batch, rows, cols}. An argument may be
// any view of an operand's memory: a part of its columns, matrix_of(x.data() + f, m, f, 2 * f), or
// its heads, heads_of(x.data(), ...); the harness moves such views along when it moves the operand.
// x.set_parts(n) says that rows are n equal parts, which views keep to: each is then pitched.
// run(first, second) launches several kernels in order.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/launch.h"
#include "kernels/operand.h"

namespace cria::test {

// One launch without its types. `relocated` gives the arguments for where the operands lie now.
struct Launch {
  KernelCall call;
  std::function<std::shared_ptr<void>()> relocated;
};

// The operands of one problem, and how to run kernels on them on one target.
class CaseBase {
 public:
  CaseBase(Target target, std::string problem) : target_(target), problem_(std::move(problem)) {}

  // For kernels whose traffic depends on their data: cost() bounds it instead of being it.
  void cost_is_a_bound() { cost_is_a_bound_ = true; }

  // Where to find the kernels: cria's own, unless a test has others.
  void use(const KernelRegistry& kernels) { kernels_ = &kernels; }

 protected:
  template <class O, class... A>
  O& add_operand(A&&... a) {
    auto operand = std::make_unique<O>(std::forward<A>(a)...);
    O& out = *operand;
    operands_.push_back(std::move(operand));
    return out;
  }
  template <class E>
  Operand<E>& add(std::string name, std::initializer_list<int> shape, Role role, double stddev) {
    return add_operand<Operand<E>>(std::move(name), shape, role, stddev);
  }
  template <class Args>
  Launch launch_of(const Args& args) {
    return {call_of(args), [this, &args] {
              auto moved = std::make_shared<Args>(args);
              moved->operands([&](const char* name, auto& t, auto...) { relocate(name, t); });
              return std::static_pointer_cast<void>(moved);
            }};
  }
  // All configurations of every launch, in every placement.
  void run_all(std::vector<Launch> launches);

 private:
  template <class E>
  void relocate(const char* name, Tensor<E>& t) const {
    if (t.data == nullptr) return;
    for (const auto& operand : operands_)
      if (operand->relocate(t)) return;
    ADD_FAILURE() << "argument " << name << " points to none of the test's operands";
  }
  void run_once(const std::vector<Launch>& launches, size_t varied, const KernelConfig& config);
  void run_launch(const KernelCall& call, const KernelConfig& config, const void* args);
  const Kernel& kernel_of(const KernelCall& call) const;
  int capability() const;

  const KernelRegistry* kernels_ = &kernel_registry();
  Target target_;
  std::string problem_;
  bool cost_is_a_bound_ = false;
  std::vector<std::unique_ptr<OperandBase>> operands_;
};

template <class T>
class Case : public CaseBase {
 public:
  using Element = T;
  using CaseBase::CaseBase;

  Operand<T>& input(std::string name, std::initializer_list<int> shape, double stddev = 1) {
    return add<T>(std::move(name), shape, Role::kInput, stddev);
  }
  Operand<T>& output(std::string name, std::initializer_list<int> shape) {
    return add<T>(std::move(name), shape, Role::kOutput, 0);
  }
  Operand<T>& inout(std::string name, std::initializer_list<int> shape, double stddev = 1) {
    return add<T>(std::move(name), shape, Role::kBoth, stddev);
  }
  Operand<float>& fp32_input(std::string name, std::initializer_list<int> shape,
                             double stddev = 1) {
    return add<float>(std::move(name), shape, Role::kInput, stddev);
  }
  Operand<float>& fp32_output(std::string name, std::initializer_list<int> shape) {
    return add<float>(std::move(name), shape, Role::kOutput, 0);
  }
  Operand<float>& fp32_inout(std::string name, std::initializer_list<int> shape,
                             double stddev = 1) {
    return add<float>(std::move(name), shape, Role::kBoth, stddev);
  }
  // Two operands: what a kernel sees as bf16, and the rest, where the test finds the floats.
  struct Halves {
    HighHalves& high;
    LowHalves& low;
  };
  Halves split_inout(const std::string& name, std::initializer_list<int> shape, double stddev = 1) {
    auto& high = add_operand<HighHalves>(name + ", high halves", shape, stddev);
    return {high, add_operand<LowHalves>(high, name, shape)};
  }
  Operand<int32_t>& i32_input(std::string name, std::initializer_list<int> shape) {
    return add<int32_t>(std::move(name), shape, Role::kInput, 0);
  }
  // What one kernel leaves for the next; its values depend on the configuration.
  Operand<float>& fp32_scratch(std::string name, std::initializer_list<int> shape) {
    return add<float>(std::move(name), shape, Role::kScratch, 0);
  }

  // Launches kernels in order and checks all operands after the last.
  template <class... Args>
  void run(const Args&... args) {
    run_all({launch_of(args)...});
  }
};

// The type under test: ElementOf<decltype(t)> in a test's lambda.
template <class C>
using ElementOf = typename std::remove_cvref_t<C>::Element;

template <int N>
struct Sizes {
  std::vector<std::array<int, N>> small;       // for all targets, and for sanitizers
  std::vector<std::array<int, N>> large = {};  // not traced
  // More than three tiles for each program of a GPU, of any configuration: in bf16, on GPUs only.
  std::vector<std::array<int, N>> many_tiles = {};
};

// One size each; every combination of rows and columns.
std::vector<std::array<int, 1>> each(std::initializer_list<int> sizes);
std::vector<std::array<int, 2>> cross(std::initializer_list<int> rows,
                                      std::initializer_list<int> cols);

// Registers one test, which is skipped when its target is not there.
void register_test(const std::string& suite, const std::string& name, Target target,
                   std::source_location at, std::function<void()> body);

constexpr bool is_built(DType dtype) {
  for (const DType built : {CRIA_BUILT_DTYPES})
    if (built == dtype) return true;
  return false;
}

// The types of kernels that only training and decoding use.
inline const std::vector<DType> kTrainingTypes = {DType::f32, DType::bf16};

// Registers the tests of one kernel: body(case, sizes...) for each type, target and size.
template <int N, class Body>
bool kernel_test(const char* name, Sizes<N> sizes, Body body,
                 std::vector<DType> dtypes = {DType::f32, DType::bf16, DType::f16},
                 std::source_location at = std::source_location::current()) {
  using Problems = std::vector<std::array<int, N>>;
  const auto add = [&](DType dtype, Target target, const char* label, const Problems& problems) {
    if (problems.empty()) return;
    register_test(name, std::string(label) + "_" + name_of(dtype), target, at, [=] {
      with_dtype(dtype, [&]<class T>(T) {
        if constexpr (is_built(dtype_of<T>)) {
          for (const auto& size : problems) {
            std::string problem;
            for (const int n : size) problem += (problem.empty() ? "" : " x ") + std::to_string(n);
            Case<T> t(target, problem);
            std::apply([&](auto... n) { body(t, n...); }, size);
            if (::testing::Test::HasFailure()) return;  // one problem's story is enough
          }
        }
      });
    });
  };
  Problems all = sizes.small;
  all.insert(all.end(), sizes.large.begin(), sizes.large.end());
  for (const DType dtype : dtypes) {
    if (!is_built(dtype)) continue;
    add(dtype, Target::cpu, "Cpu", all);
    add(dtype, Target::trace, "Trace", sizes.small);
    add(dtype, Target::cuda, "GpuSmall", sizes.small);
    add(dtype, Target::cuda, "Gpu", sizes.large);
    if (dtype == DType::bf16) add(dtype, Target::cuda, "GpuLarge", sizes.many_tiles);
  }
  return true;
}

}  // namespace cria::test

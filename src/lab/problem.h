// Problems: what `cria bench`, `tune` and `inspect` run. A problem has operands of given sizes, the
// kernels that solve it, rivals, the ceiling that bounds it, and a check of its results.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/launch.h"
#include "lab/accuracy.h"
#include "lab/ceilings.h"
#include "lab/library.h"
#include "lab/operand.h"
#include "runtime/product.h"

namespace cria {

// A size or switch of a problem, a flag of the command line: name "head-dim" is --head-dim.
struct Parameter {
  std::string name;
  std::string help;
  int64_t on_cpu;  // defaults
  int64_t on_cuda;
  int64_t least = 1;
  int64_t most = kMostSize;
  std::string alias = {};  // another name for the flag
};

using Sizes = std::map<std::string, int64_t>;

struct ProblemRequest {
  Device device = {};
  DType dtype = DType::f32;
  Sizes sizes = {};
  int sets = 0;         // of operands; 0: as many as exceed the device's caches
  bool packed = false;  // rows of operands follow each other, not at the pitch that plans give them

  int operator[](const std::string& parameter) const;
  // So many times the product of these sizes; an Error names them when 32 bits cannot count it.
  int product(const std::vector<std::string>& parameters, int factor = 1) const;
};

// One kernel's calls, one per set of operands.
struct Variant {
  std::string name;
  std::vector<KernelCall> calls = {};
  // What else it takes, e.g. adding up partial results; may be empty.
  std::function<void(Stream&, int turn)> after = {};

  // One solution on the set whose turn it is.
  void run(Stream& stream, int turn, std::string_view config = {}) const;
};

// The same results by other means.
using Rival = Contender;

class Problem {
 public:
  explicit Problem(const ProblemRequest& request);
  virtual ~Problem() = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  const std::vector<Variant>& variants() const { return variants_; }
  const std::vector<Rival>& rivals() const { return rivals_; }
  int sets() const { return sets_; }
  const Sizes& sizes() const { return request_.sizes; }
  bool packed() const { return request_.packed; }
  Stream& stream() { return stream_; }
  // Of one solution: the first kernel's, unless that leaves intermediate results.
  const Cost& cost() const { return cost_ ? *cost_ : variants_.at(0).calls.at(0).cost; }
  const Dims& dims() const { return variants_.at(0).calls.at(0).dims; }

  // What no solution can beat.
  virtual Ceiling ceiling() const = 0;

  // Spoils the results of set 0, runs `solve` on it, and compares with float64.
  Accuracy check(const std::function<void(Stream&, int turn)>& solve);

 protected:
  // Computes scratch operands; called before each check.
  virtual void prepare(Stream&) {}

  // The results of set 0 against float64.
  virtual Accuracy check_results() const = 0;

  // To be called first: how many sets of operands of so many bytes there are to be.
  void plan_sets(double bytes_per_set);

  // Every operand made gets values of its own.
  const Operand& input(int batch, Extent rows, Extent cols, float scale = 1, float mean = 0);
  const Operand& input_of(DType dtype, int batch, Extent rows, Extent cols, float scale = 1,
                          float mean = 0);
  const Operand& output(int batch, Extent rows, Extent cols);
  const Operand& output_of(DType dtype, int batch, Extent rows, Extent cols);
  // Neither: what prepare() computes, or an intermediate result.
  const Operand& scratch_of(DType dtype, int batch, Extent rows, Extent cols);

  // Adds a set's call to the variant of this name; variants keep the order of their first call.
  template <class Args>
  void add_call(const std::string& variant, const Args& args) {
    auto kept = std::make_shared<const Args>(args);
    add_call(variant, call_of(*kept), kept);
  }
  void set_after(const std::string& variant, std::function<void(Stream&, int turn)> after);
  void set_cost(Cost cost) { cost_ = cost; }
  void add_rival(Rival rival) { rivals_.push_back(std::move(rival)); }

  Device device() const { return request_.device; }
  DType dtype() const { return request_.dtype; }
  bool on_cuda() const { return request_.device.backend == Backend::cuda; }

  const ProblemRequest request_;

 private:
  void add_call(const std::string& variant, KernelCall call, std::shared_ptr<const void> args);

  Variant& variant(const std::string& name);

  Stream stream_;
  int sets_ = 1;
  std::optional<Cost> cost_;
  std::vector<std::unique_ptr<Operand>> operands_;
  std::vector<Operand*> outputs_;
  std::vector<std::shared_ptr<const void>> args_;
  std::vector<Variant> variants_;
  std::vector<Rival> rivals_;
};

struct ProblemSpec {
  std::string name;     // as the user says it: "rmsnorm"
  std::string summary;  // one line
  std::vector<Parameter> parameters;
  std::vector<std::string> kernels;  // it can run, all that there are under these sizes or others
  std::function<std::unique_ptr<Problem>(const ProblemRequest&)> make;
};

// All problems. Together they run every kernel of kernel_registry().
const std::vector<ProblemSpec>& problem_specs();

// The problem of this name; an Error with the nearest names when there is none. A kernel's own name
// ("rmsnorm_forward") is understood, too.
const ProblemSpec& find_problem(std::string_view name);

// Makes it, with defaults for sizes not given. Errors say what to change: sizes out of range, a
// type or shape that no kernel can do.
std::unique_ptr<Problem> make_problem(const ProblemSpec& spec, ProblemRequest request);

// The names of the configurations of a variant's kernel that can run its sizes, first choice first.
std::vector<std::string> fitting_configs(const Variant& variant, Target target,
                                         int compute_capability);

// Throws the Error for a configuration that none of the problem's kernels has; it lists those that
// they have and that can run these sizes.
[[noreturn]] void fail_unknown_config(const Problem& problem, std::string_view name, Target target,
                                      int compute_capability);

// Calls f(T{}) for a floating-point DType.
template <class F>
decltype(auto) with_float(DType type, F&& f) {
  switch (type) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::f16:
      return f(f16{});
    default:
      fail("this needs f32, bf16 or f16 elements");
  }
}

}  // namespace cria

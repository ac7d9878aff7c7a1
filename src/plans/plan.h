// A plan: a way to run the model's step as launches. The ends of the model (embedding, head, loss)
// are the same in every plan; what differs is how a block's stages are grouped into kernels, which
// block_forward and block_backward of each plan spell out. Nothing is allocated inside a step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/runs.h"
#include "base/tensor.h"
#include "kernels/list.h"
#include "model/weights.h"
#include "plans/choice.h"
#include "plans/products.h"
#include "plans/rope_tables.h"
#include "runtime/arena.h"

namespace cria {

// A batch of B sequences of T tokens in device memory.
struct Batch {
  Tensor<const int32_t> tokens;   // [R], R = B T
  Tensor<const int32_t> targets;  // [R]
  // The tokens' positions by token, as EmbeddingBackward wants them.
  Tensor<const int32_t> order;   // [R]
  Tensor<const int32_t> starts;  // [R + 1]
  Tensor<const int32_t> ids;     // [R]
};

template <class T>
struct PlanSetup {
  ModelConfig config;
  int batch;  // B
  int seq;    // T
  Weights<const T> weights;
  Weights<T> gradients;
  Tensor<T> vector_gradients;  // those of all norms' weights, as they lie in the flat array
  RopeTables rope;
  Precision precision = Precision::full;  // of f32 products
  bool recompute = false;                 // keep less for the backward pass, compute it again
};

// A tensor as a plan has just made it, by a name that all plans share.
struct Made {
  std::string name;
  DType dtype;
  const void* data;  // on the plan's device
  int rows, cols;
  Runs runs;  // where its elements lie
};

template <class T>
class Plan {
 public:
  Plan(Stream& stream, const PlanSetup<T>& setup);
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Takes the memory of activations: once to count, once for real (see runtime/arena.h), zeros, so
  // that gaps between rows and heads are and stay zero. A plan's own tensors come after those of
  // this class.
  virtual void place(Arena& arena);

  // Embedding to loss. With `gradient`, the logits become their gradient, divided by the number of
  // tokens; without it they stay.
  void forward(const Batch& batch, bool gradient = true);
  // The gradient of every weight, written (not added) to setup.gradients.
  void backward(const Batch& batch);

  Tensor<const float> losses() const { return losses_; }  // [R]

  // Launches of one block, counted by the stream's recorder in the last step.
  struct BlockLaunches {
    int64_t forward = 0, backward = 0;
  };
  BlockLaunches block_launches() const { return block_launches_; }

  // What was chosen so far, in the order of the first time.
  const std::vector<Choice>& choices() const { return choices_; }

  // Called with each tensor a block or the ends have made, while the stream is idle.
  using Watch = std::function<void(const Made&)>;
  void set_watch(Watch watch) { watch_ = std::move(watch); }

 protected:
  // From x(i) and its norm n(i) to x(i + 1) and n(i + 1).
  virtual void block_forward(int layer) = 0;
  // d_, the gradient of x(i + 1), becomes that of x(i).
  virtual void block_backward(int layer) = 0;

  // The residual stream before block i, and its norm with the statistics; i = layers is the end.
  Tensor<T> x(int i) const { return x_[i]; }
  virtual Tensor<T> n(int i) const { return n_[i]; }
  Tensor<float> r(int i) const { return r_[i]; }
  Tensor<const T> norm_weight(int i) const;
  Tensor<T> norm_gradient(int i) const;

  // Stages that plans share.
  void norm(Tensor<const T> x, Tensor<const T> w, Tensor<T> y, Tensor<float> r);
  void input_norm(int i) { norm(x(i), norm_weight(i), n(i), r(i)); }
  // dx = the norm's backward of dy [+ add], the partial sums of its weight's gradient [and the
  // norm's result y again].
  void norm_backward(Tensor<const T> x, Tensor<const T> w, Tensor<const float> r,
                     Tensor<const T> dy, Tensor<const T> add, Tensor<T> dx, Tensor<T> dw,
                     Tensor<T> y = {});
  void rope(Tensor<const T> heads, Tensor<T> to);
  void rope_backward(Tensor<const T> heads, Tensor<T> to);
  void linear(Tensor<const T> x, Tensor<const T> w, Tensor<T> y, Tensor<const T> addend = {});
  // Both gradients of a linear layer.
  void linear_backward(Tensor<const T> x, Tensor<const T> w, Tensor<const T> dy, Tensor<T> dx,
                       Tensor<T> dw);
  void linear_dw(Tensor<const T> x, Tensor<const T> dy, Tensor<T> dw);
  void linear_dx(Tensor<const T> dy, Tensor<const T> w, Tensor<T> dx);

  // Heads of width K inside rows: [B, T, heads, K].
  template <class E>
  Tensor<E> heads_in_rows(Tensor<E> rows, int heads) const {
    return heads_of(rows.data, setup_.batch, setup_.seq, heads, config().head_dim, rows.ld,
                    config().head_pitch());
  }

  // The same with the gaps behind them, which kernels may read and write as heads of zeros.
  template <class E>
  Tensor<E> whole_heads(Tensor<E> rows, int heads) const {
    return with_gaps(heads_in_rows(rows, heads));
  }

  // Tells whoever watches about a tensor of block `layer`, or of the ends.
  void made(int layer, const char* what, Tensor<const T> t);
  void made_heads(int layer, const char* what, Tensor<const T> t);  // without their gaps
  void made(const std::string& name, Tensor<const T> t);

  // Whether a stage is done by a kernel of cria's own, and notes it; else by the library's product
  // and kernels around it, as in plans that do not choose.
  virtual bool own(Stage, StageSizes) { return false; }
  void note(const Choice& choice);

  // Whether n(i) stays until the backward pass; else a plan overrides n, and only the last has
  // memory here.
  virtual bool keeps_norms() const { return true; }

  const ModelConfig& config() const { return setup_.config; }
  int rows() const { return setup_.batch * setup_.seq; }
  Tensor<T> take(Arena& arena, int cols) const {
    return pitched_matrix(arena.take<T>(rows() * pitch_of(int64_t{cols})), rows(), cols);
  }
  kernels::DotPrecision dot_precision() const {
    return setup_.precision == Precision::tf32 ? kernels::DotPrecision::kTf32
                                               : kernels::DotPrecision::kFp32;
  }
  float attention_scale() const;
  float norm_eps() const { return static_cast<float>(config().norm_eps); }

  Stream& stream_;
  const PlanSetup<T> setup_;
  Tensor<T> d_;   // [R, D], the gradient of the residual stream
  Tensor<T> dn_;  // [R, D], the gradient of a norm's result

 private:
  // Partial sums of the gradients of all norms' weights, side by side as in the flat array.
  Tensor<float> partials_;  // [P, all vectors]

  std::vector<Tensor<T>> x_, n_;
  std::vector<Tensor<float>> r_;
  Tensor<T> logits_;
  Tensor<float> losses_;
  BlockLaunches block_launches_;
  std::vector<Choice> choices_;
  Watch watch_;
};

// The names of the plans, slowest first.
const std::vector<std::string>& plan_names();

// The plan of this name, or of this version as the seeds of cria called them: v1 is baseline, v2
// fused, v3 flash. An Error that lists the names when there is none.
const std::string& find_plan(std::string_view name);

// An Error with what to change when kernels cannot count in 32 bits what a step of this plan works
// on, tokens, rows of attention, all weights, or have no room for heads so wide.
void check_step_size(std::string_view plan, const ModelConfig& config, int batch, int seq);

// The plan of this name, which there must be.
template <class T>
std::unique_ptr<Plan<T>> make_plan(std::string_view name, Stream& stream,
                                   const PlanSetup<T>& setup);

}  // namespace cria

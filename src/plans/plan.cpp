#include "plans/plan.h"

#include <algorithm>
#include <cmath>

#include "base/dims.h"
#include "base/format.h"
#include "base/nearest.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/launch.h"
#include "kernels/reduction.h"
#include "kernels/rmsnorm.h"
#include "kernels/rmsnorm_backward.h"
#include "kernels/rope.h"
#include "kernels/shares.h"
#include "plans/baseline.h"
#include "plans/flash.h"
#include "plans/fused.h"
#include "runtime/product.h"
#include "runtime/recorder.h"

namespace cria {
namespace {

constexpr int kWidestHead = 256;  // that the kernels of flash attention hold

// Adds what the stream's recorder, if any, has counted in the meantime.
class CountLaunches {
 public:
  CountLaunches(Stream& stream, int64_t& count) : recorder_(stream.recorder()), count_(count) {
    if (recorder_) before_ = recorder_->launches();
  }
  ~CountLaunches() {
    if (recorder_) count_ = recorder_->launches() - before_;
  }
  CountLaunches(const CountLaunches&) = delete;
  CountLaunches& operator=(const CountLaunches&) = delete;

 private:
  Recorder* recorder_;
  int64_t& count_;
  int64_t before_ = 0;
};

}  // namespace

template <class T>
Plan<T>::Plan(Stream& stream, const PlanSetup<T>& setup) : stream_(stream), setup_(setup) {
  require_products(stream.device());
}

template <class T>
void Plan<T>::place(Arena& arena) {
  const int layers = config().layers, dim = config().dim;
  x_.assign(layers + 1, {});
  n_.assign(layers + 1, {});
  r_.assign(layers + 1, {});
  for (int i = 0; i <= layers; ++i) {
    x_[i] = take(arena, dim);
    if (keeps_norms() || i == layers) n_[i] = take(arena, dim);
    r_[i] = matrix_of(arena.take<float>(rows()), rows(), 1);
  }
  logits_ = take(arena, config().vocab);
  losses_ = matrix_of(arena.take<float>(rows()), rows(), 1);
  d_ = take(arena, dim);
  dn_ = take(arena, dim);
  // What lies between the norms' columns stays zero.
  const int shares = kernels::rmsnorm_shares(arena.device(), rows());
  const int vectors = setup_.vector_gradients.cols;
  partials_ = matrix_of(arena.take<float>(int64_t{shares} * vectors), shares, vectors);
}

template <class T>
void Plan<T>::forward(const Batch& batch, bool gradient) {
  const int layers = config().layers;
  launch(stream_, kernels::EmbeddingForwardArgs<T>{.tokens = batch.tokens,
                                                   .table = with_gaps(setup_.weights.embedding),
                                                   .y = with_gaps(x(0))});
  made("embedding", x(0));
  input_norm(0);
  for (int i = 0; i < layers; ++i) {
    CountLaunches count(stream_, block_launches_.forward);
    block_forward(i);
    made(i, "output", x(i + 1));
  }
  made("final_norm", n(layers));
  linear(n(layers), setup_.weights.head, logits_);
  made("logits", logits_);
  launch(stream_, kernels::CrossEntropyArgs<T>{.logits = logits_,
                                               .targets = batch.targets,
                                               .loss = losses_,
                                               .scale = 1.f / static_cast<float>(rows()),
                                               .gradient = gradient});
}

template <class T>
void Plan<T>::backward(const Batch& batch) {
  const int layers = config().layers;
  made("d_logits", logits_);
  linear_backward(n(layers), setup_.weights.head, logits_, dn_, setup_.gradients.head);
  made("d_final_norm", dn_);
  norm_backward(x(layers), norm_weight(layers), r(layers), dn_, {}, d_, norm_gradient(layers));
  for (int i = layers - 1; i >= 0; --i) {
    made(i, "d_output", d_);
    CountLaunches count(stream_, block_launches_.backward);
    block_backward(i);
  }
  launch(stream_, kernels::ColumnSumArgs<T>{.x = partials_, .y = setup_.vector_gradients});
  made("d_embedding", d_);
  // With a tied head the table's gradient has begun with the head's.
  const Tensor<T> table = setup_.gradients.embedding;
  if (!config().tied) stream_.fill(table.data, 0, table.rows * table.ld * sizeof(T));
  launch(stream_, kernels::EmbeddingBackwardArgs<T>{.order = batch.order,
                                                    .starts = batch.starts,
                                                    .ids = batch.ids,
                                                    .dy = with_gaps(d_),
                                                    .dtable = with_gaps(table)});
}

template <class T>
Tensor<const T> Plan<T>::norm_weight(int i) const {
  const auto& w = setup_.weights;
  return i < config().layers ? w.layers[i].attention_norm : w.final_norm;
}

template <class T>
Tensor<T> Plan<T>::norm_gradient(int i) const {
  const auto& g = setup_.gradients;
  return i < config().layers ? g.layers[i].attention_norm : g.final_norm;
}

template <class T>
void Plan<T>::norm(Tensor<const T> x, Tensor<const T> w, Tensor<T> y, Tensor<float> r) {
  launch(stream_, kernels::RmsNormForwardArgs<T>{.x = with_gaps(x),
                                                 .w = with_gaps(w),
                                                 .y = with_gaps(y),
                                                 .r = r,
                                                 .eps = norm_eps(),
                                                 .terms = x.cols});
}

template <class T>
void Plan<T>::norm_backward(Tensor<const T> x, Tensor<const T> w, Tensor<const float> r,
                            Tensor<const T> dy, Tensor<const T> add, Tensor<T> dx, Tensor<T> dw,
                            Tensor<T> y) {
  const int64_t column = dw.data - setup_.vector_gradients.data;
  launch(stream_, kernels::RmsNormBackwardArgs<T>{
                      .x = with_gaps(x),
                      .w = with_gaps(w),
                      .r = r,
                      .dy = with_gaps(dy),
                      .add = with_gaps(add),
                      .dx = with_gaps(dx),
                      .y = with_gaps(y),
                      .partials = with_gaps(matrix_of(partials_.data + column, partials_.rows,
                                                      dw.cols, partials_.ld)),
                      .terms = x.cols});
}

template <class T>
void Plan<T>::rope(Tensor<const T> heads, Tensor<T> to) {
  launch(stream_, kernels::RopeForwardArgs<T>{
                      .x = heads, .cos = setup_.rope.cos, .sin = setup_.rope.sin, .y = to});
}

template <class T>
void Plan<T>::rope_backward(Tensor<const T> heads, Tensor<T> to) {
  launch(stream_, kernels::RopeBackwardArgs<T>{
                      .x = heads, .cos = setup_.rope.cos, .sin = setup_.rope.sin, .y = to});
}

template <class T>
void Plan<T>::linear_backward(Tensor<const T> x, Tensor<const T> w, Tensor<const T> dy,
                              Tensor<T> dx, Tensor<T> dw) {
  linear_dw(x, dy, dw);
  linear_dx(dy, w, dx);
}

template <class T>
void Plan<T>::linear(Tensor<const T> x, Tensor<const T> w, Tensor<T> y, Tensor<const T> addend) {
  if (own(Stage::linear, {y.rows, pitch_of(y.cols), pitch_of(x.cols)}))
    launch(stream_, kernels::GemmArgs<T, false, true>{.a = with_gaps(x),
                                                      .b = whole_weight(w),
                                                      .c = with_gaps(y),
                                                      .residual = with_gaps(addend)});
  else
    cria::linear(stream_, setup_.precision, x, w, y, addend);
}

template <class T>
void Plan<T>::linear_dw(Tensor<const T> x, Tensor<const T> dy, Tensor<T> dw) {
  if (own(Stage::linear_dw, {pitch_of(dw.rows), pitch_of(dw.cols), x.rows}))
    launch(stream_, kernels::GemmArgs<T, true, false>{
                        .a = with_gaps(dy), .b = with_gaps(x), .c = whole_weight(dw)});
  else
    cria::linear_dw(stream_, setup_.precision, dy, x, dw);
}

template <class T>
void Plan<T>::linear_dx(Tensor<const T> dy, Tensor<const T> w, Tensor<T> dx) {
  if (own(Stage::linear_dx, {dx.rows, pitch_of(dx.cols), pitch_of(dy.cols)}))
    launch(stream_, kernels::GemmArgs<T, false, false>{
                        .a = with_gaps(dy), .b = whole_weight(w), .c = with_gaps(dx)});
  else
    cria::linear_dx(stream_, setup_.precision, dy, w, dx);
}

template <class T>
void Plan<T>::note(const Choice& choice) {
  const bool known = std::ranges::any_of(choices_, [&](const Choice& c) {
    return c.stage == choice.stage && c.sizes == choice.sizes;
  });
  if (!known) choices_.push_back(choice);
}

template <class T>
void Plan<T>::made_heads(int layer, const char* what, Tensor<const T> t) {
  if (!watch_) return;
  const int pitch = config().head_pitch(), heads = t.cols / pitch, width = config().head_dim;
  watch_({"layers." + std::to_string(layer) + "." + what,
          dtype_of<T>,
          t.data,
          t.rows,
          heads * width,
          {.outer = t.rows,
           .middle = heads,
           .inner = width,
           .outer_step = t.ld,
           .middle_step = pitch}});
}

template <class T>
void Plan<T>::made(int layer, const char* what, Tensor<const T> t) {
  if (watch_) made("layers." + std::to_string(layer) + "." + what, t);
}

template <class T>
void Plan<T>::made(const std::string& name, Tensor<const T> t) {
  if (!watch_) return;
  stream_.synchronize();
  watch_({name,
          dtype_of<T>,
          t.data,
          t.rows,
          t.cols,
          {.middle = t.rows, .inner = t.cols, .middle_step = t.ld}});
}

template <class T>
float Plan<T>::attention_scale() const {
  return 1.f / std::sqrt(static_cast<float>(config().head_dim));
}

const std::vector<std::string>& plan_names() {
  static const std::vector<std::string> names = {"baseline", "fused", "flash"};
  return names;
}

const std::string& find_plan(std::string_view name) {
  const std::vector<std::string>& names = plan_names();
  for (size_t i = 0; i < names.size(); ++i)
    if (name == names[i] || name == fmt::format("v{}", i + 1)) return names[i];
  fail_f("there is no plan called '{}'{}", name, suggest(name, names));
}

void check_step_size(std::string_view plan, const ModelConfig& config, int batch, int seq) {
  const double tokens = double(batch) * seq, dim = pitch_of(config.dim);
  const double rows = std::max(2.0 * tokens, double(batch) * pitch_of(int64_t{seq}));
  if (rows * config.heads > kMostSize)
    fail_f(
        "{} sequences of {} tokens with {} heads are more rows than kernels can count ({}): make "
        "batch or seq smaller",
        batch, seq, config.heads, kMostSize / 2);
  if (plan == "flash" && config.head_dim > kWidestHead)
    fail_f(
        "plan flash has heads of at most {} columns, and the model's have {}: make them narrower, "
        "or choose another plan",
        kWidestHead, config.head_dim);
  if (plan == "baseline" && tokens * dim > kMostSize)
    fail_f(
        "{} sequences of {} tokens of width {} are more than plan baseline adds up at once ({}): "
        "make batch or seq smaller, or choose another plan",
        batch, seq, config.dim, kMostSize);
  if (const int64_t size = WeightMap(config).size(); size > kMostSize)
    fail_f("a model of {} weights cannot be trained: the optimizer's kernels count up to {}", size,
           kMostSize);
}

template <class T>
std::unique_ptr<Plan<T>> make_plan(std::string_view name, Stream& stream,
                                   const PlanSetup<T>& setup) {
  const std::string& plan = find_plan(name);
  if (plan == "baseline") return std::make_unique<BaselinePlan<T>>(stream, setup);
  if (plan == "fused") return std::make_unique<FusedPlan<T>>(stream, setup);
  return std::make_unique<FlashPlan<T>>(stream, setup);
}

template class Plan<float>;
template class Plan<bf16>;
template std::unique_ptr<Plan<float>> make_plan(std::string_view, Stream&, const PlanSetup<float>&);
template std::unique_ptr<Plan<bf16>> make_plan(std::string_view, Stream&, const PlanSetup<bf16>&);

}  // namespace cria

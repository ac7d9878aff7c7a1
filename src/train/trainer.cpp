#include "train/trainer.h"

#include <cmath>
#include <vector>

#include "base/format.h"
#include "kernels/adamw.h"
#include "kernels/launch.h"
#include "kernels/reduction.h"
#include "kernels/shares.h"
#include "runtime/event.h"
#include "runtime/graph.h"
#include "runtime/host_buffer.h"
#include "runtime/recorder.h"
#include "runtime/thread_pool.h"
#include "train/device_batch.h"

namespace cria {

Trainer::Trainer(const TrainerOptions& options)
    : options_(options), map_(options.model), stream_(options.device) {}

namespace {

// Notes in which configurations the kernels of a first step run, if nobody else records it.
class NoteConfigurations {
 public:
  NoteConfigurations(Stream& stream, Trainer::Configurations& configurations, bool first)
      : stream_(stream),
        configurations_(configurations),
        wanted_(first && stream.recorder() == nullptr) {
    if (wanted_) stream_.set_recorder(&recorder_);
  }
  ~NoteConfigurations() {
    if (wanted_) stream_.set_recorder(nullptr);
  }
  NoteConfigurations(const NoteConfigurations&) = delete;
  NoteConfigurations& operator=(const NoteConfigurations&) = delete;

  // At the end of the step.
  void take() {
    if (!wanted_) return;
    for (const LaunchRecord& r : recorder_.records())
      if (r.name != "product") configurations_[r.name].insert(r.config);
  }

 private:
  Stream& stream_;
  Trainer::Configurations& configurations_;
  const bool wanted_;
  Recorder recorder_{Recorder::Mode::count};
};

// T is the type that activations, gradients and products have. The optimizer's weights and moments
// are f32: 16-bit weights have the rest of their bits beside them (base/dtype.h).
template <class T>
class TrainerOf final : public Trainer {
 public:
  explicit TrainerOf(const TrainerOptions& options);

  void step(std::span<const HostBatch> batches, float learning_rate, bool timed) override;
  double loss() override;
  double gradient_norm() override;
  StepTimes times() override;
  double evaluate(const HostBatch& batch, std::optional<int> sequences) override;
  void watch(const HostBatch& batch, const Watch& watch) override;
  StepRecord record_step(std::span<const HostBatch> batches, float learning_rate,
                         Recorder::Mode mode) override;
  TrainerMemory memory() const override;
  const std::vector<Choice>& choices() const override { return plan_->choices(); }
  void read(State which, std::span<float> out, int64_t begin) override;
  void write(State which, std::span<const float> values, int64_t begin) override;
  void initialise(uint64_t seed) override;

 private:
  static constexpr bool kSplits = sizeof(T) == 2;
  int elements() const { return static_cast<int>(map_.size()); }
  bool accumulates() const { return options_.accumulate > 1; }
  Buffer& buffer_of(State which);
  void draw(uint64_t seed, int64_t begin, int64_t count, T* weights, int16_t* rest) const;

  void set_hyper(float learning_rate);
  void run_batch();  // forward, backward, and the sum of gradients when there are several batches
  void run_optimizer();
  void sum_losses(Tensor<float> into, int rows);  // of the first rows
  void replay(std::optional<Graph>& graph, const std::function<void()>& launches);
  Tensor<int32_t> signal() const { return vector_of(signal_.as<int32_t>(), 1); }
  void mark(Event& phase) {
    if (timed_) phase.record_time(stream_);
  }

  Buffer weights_;    // T
  Buffer rest_;       // int16_t, of 16-bit weights
  Buffer m_, v_;      // f32
  Buffer gradients_;  // T
  Buffer sum_;        // f32, of several batches' gradients
  Arena scalars_;
  Buffer rope_;
  DeviceBatch batch_;
  Arena activations_;
  std::unique_ptr<Plan<T>> plan_;
  Tensor<float> loss_, losses_sum_, evaluated_, norm2_, partials_;
  Buffer signal_;                // of sums, one after the other
  std::array<Event, 4> phases_;  // start, after forward, after backward, after the optimizer
  struct Graphs {
    std::optional<Graph> step, batch, optimizer;
  };
  Graphs plain_graphs_, timed_graphs_;
  bool timed_ = false;      // the step in progress marks its phases
  bool has_times_ = false;  // a step has done so
  bool warm_ = false;       // a step has run
  bool recording_ = false;  // launches must be seen one by one
  bool moments_are_zero_ = true;
};

template <class T>
TrainerOf<T>::TrainerOf(const TrainerOptions& o)
    : Trainer(o),
      weights_(o.device, map_.size() * sizeof(T)),
      rest_(o.device, kSplits ? map_.size() * sizeof(int16_t) : 0),
      m_(o.device, map_.size() * sizeof(float)),
      v_(o.device, m_.bytes()),
      gradients_(o.device, weights_.bytes()),
      sum_(o.device, o.accumulate > 1 ? m_.bytes() : 0),
      scalars_(o.device, 4 * Arena::kAlignment + kernels::sum_shares(o.device) * sizeof(float)),
      rope_(o.device, 0),
      batch_(o.device, o.batch * o.seq, o.model.vocab),
      activations_(o.device),
      signal_(o.device, sizeof(int32_t)),
      phases_{Event(o.device), Event(o.device), Event(o.device), Event(o.device)} {
  // Gaps in and between weights are zero and stay so: products write zeros to their gradients, and
  // nothing else writes there.
  for (Buffer* b : {&weights_, &rest_, &m_, &v_, &gradients_, &sum_, &signal_}) b->fill_bytes(0);
  auto take = [&](int count) { return vector_of(scalars_.take<float>(count), count); };
  loss_ = take(1), losses_sum_ = take(1), evaluated_ = take(1), norm2_ = take(1);
  partials_ = take(kernels::sum_shares(o.device));

  plan_ =
      make_plan<T>(o.plan, stream_,
                   {.config = o.model,
                    .batch = o.batch,
                    .seq = o.seq,
                    .weights = view_weights<const T>(map_, o.model, weights_.as<T>()),
                    .gradients = view_weights(map_, o.model, gradients_.as<T>()),
                    .vector_gradients = vector_of(gradients_.as<T>() + map_.matrices(),
                                                  static_cast<int>(map_.size() - map_.matrices())),
                    .rope = upload_rope_tables(rope_frequencies(o.model), o.seq, rope_),
                    .precision = o.precision,
                    .recompute = o.recompute});
  plan_->place(activations_);
  activations_.commit();
  activations_.clear();
  plan_->place(activations_);
}

template <class T>
void TrainerOf<T>::set_hyper(float learning_rate) {
  const AdamWOptions& a = options_.adamw;
  const double t = double(steps_) + 1;
  auto correction = [&](float beta) {
    return static_cast<float>(1 / (1 - std::pow(double(beta), t)));
  };
  batch_.set_hyper(kernels::kLearningRate, learning_rate);
  batch_.set_hyper(kernels::kBeta1, a.beta1);
  batch_.set_hyper(kernels::kBeta2, a.beta2);
  batch_.set_hyper(kernels::kEpsilon, a.eps);
  batch_.set_hyper(kernels::kCorrection1, correction(a.beta1));
  batch_.set_hyper(kernels::kCorrection2, correction(a.beta2));
  batch_.set_hyper(kernels::kWeightDecay, a.weight_decay);
  batch_.set_hyper(kernels::kMaxNorm, a.max_norm);
}

template <class T>
void TrainerOf<T>::sum_losses(Tensor<float> into, int rows) {
  launch(stream_, kernels::SumArgs<float>{.x = vector_of(plan_->losses().data, rows),
                                          .partials = partials_,
                                          .signal = signal(),
                                          .out = into});
}

template <class T>
void TrainerOf<T>::run_batch() {
  mark(phases_[0]);
  plan_->forward(batch_.view());
  sum_losses(loss_, plan_->losses().rows);
  mark(phases_[1]);
  plan_->backward(batch_.view());
  if (accumulates()) {
    launch(stream_,
           kernels::AccumulateArgs<T>{.x = vector_of<const T>(gradients_.as<T>(), elements()),
                                      .sum = vector_of(sum_.as<float>(), elements())});
    launch(stream_, kernels::AccumulateArgs<float>{.x = loss_, .sum = losses_sum_});
  }
  mark(phases_[2]);
}

template <class T>
void TrainerOf<T>::run_optimizer() {
  const int n = elements();
  const auto gradients = vector_of<const T>(gradients_.as<T>(), n);
  const auto sum =
      accumulates() ? vector_of<const float>(sum_.as<float>(), n) : Tensor<const float>{};
  if (accumulates())
    launch(stream_, kernels::SumSquaresArgs<float>{
                        .x = sum, .partials = partials_, .signal = signal(), .out = norm2_});
  else
    launch(stream_, kernels::SumSquaresArgs<T>{
                        .x = gradients, .partials = partials_, .signal = signal(), .out = norm2_});
  launch(stream_,
         kernels::AdamWArgs<T>{.weights = vector_of(weights_.as<T>(), n),
                               .rest = vector_of(rest_.as<int16_t>(), kSplits ? n : 0),
                               .m = vector_of(m_.as<float>(), n),
                               .v = vector_of(v_.as<float>(), n),
                               .grad = gradients,
                               .sum = sum,
                               .hyper = batch_.hyper(),
                               .norm2 = norm2_,
                               .decayed = map_.matrices(),
                               .grad_scale = 1.f / static_cast<float>(options_.accumulate)});
  mark(phases_[3]);
}

// The first time the launches run as they are: setting up may not be captured.
template <class T>
void TrainerOf<T>::replay(std::optional<Graph>& graph, const std::function<void()>& launches) {
  if (!options_.graph || options_.device.backend == Backend::cpu || !warm_ || recording_) {
    launches();
    return;
  }
  if (!graph) graph = Graph::capture(stream_, launches);
  graph->replay(stream_);
}

template <class T>
void TrainerOf<T>::step(std::span<const HostBatch> batches, float learning_rate, bool timed) {
  if (std::ssize(batches) != options_.accumulate)
    fail_f("a step takes {} batches, not {}", options_.accumulate, batches.size());
  Graphs& graphs = timed ? timed_graphs_ : plain_graphs_;
  timed_ = timed;
  has_times_ |= timed;
  moments_are_zero_ = false;
  set_hyper(learning_rate);
  NoteConfigurations notes(stream_, configurations_, !warm_);
  if (!accumulates()) {
    batch_.upload(stream_, batches[0]);
    replay(graphs.step, [this] { run_batch(), run_optimizer(); });
  } else {
    stream_.fill(sum_.as<float>(), 0, sum_.bytes());
    stream_.fill(losses_sum_.data, 0, sizeof(float));
    for (const HostBatch& batch : batches) {
      batch_.upload(stream_, batch);
      replay(graphs.batch, [this] { run_batch(); });
    }
    replay(graphs.optimizer, [this] { run_optimizer(); });
  }
  notes.take();
  ++steps_;
  warm_ = true;
}

template <class T>
double TrainerOf<T>::loss() {
  float sum = 0;
  const Tensor<float>& from = accumulates() ? losses_sum_ : loss_;
  stream_.copy(&sum, from.data, sizeof(sum));
  stream_.synchronize();
  return double(sum) / (double(options_.batch) * options_.seq * options_.accumulate);
}

template <class T>
double TrainerOf<T>::gradient_norm() {
  float squares = 0;
  stream_.copy(&squares, norm2_.data, sizeof(squares));
  stream_.synchronize();
  return std::sqrt(double(squares)) / options_.accumulate;
}

template <class T>
StepTimes TrainerOf<T>::times() {
  if (!has_times_) return {};
  auto between = [&](int i) { return elapsed_us(phases_[i], phases_[i + 1]) * 1e-3; };
  return {between(0) * options_.accumulate, between(1) * options_.accumulate, between(2)};
}

template <class T>
double TrainerOf<T>::evaluate(const HostBatch& batch, std::optional<int> sequences) {
  const int counted = sequences.value_or(options_.batch);
  require(counted >= 1 && counted <= options_.batch,
          "Trainer::evaluate: 1 to a batch of sequences are needed");
  const int rows = counted * options_.seq;
  batch_.upload(stream_, batch);
  plan_->forward(batch_.view(), false);
  sum_losses(evaluated_, rows);
  float sum = 0;
  stream_.copy(&sum, evaluated_.data, sizeof(sum));
  stream_.synchronize();
  return double(sum) / rows;
}

template <class T>
void TrainerOf<T>::watch(const HostBatch& batch, const Watch& watch) {
  batch_.upload(stream_, batch);
  plan_->set_watch(watch);
  plan_->forward(batch_.view());
  plan_->backward(batch_.view());
  plan_->set_watch({});
  stream_.synchronize();
  for (const WeightEntry& e : map_.entries())
    watch({"gradient of " + e.name, dtype_of<T>, gradients_.as<T>() + e.offset,
           e.is_matrix() ? static_cast<int>(e.shape[0]) : 1, static_cast<int>(e.shape.back()),
           e.runs});
}

template <class T>
StepRecord TrainerOf<T>::record_step(std::span<const HostBatch> batches, float learning_rate,
                                     Recorder::Mode mode) {
  Recorder recorder(mode);
  stream_.set_recorder(&recorder);
  recording_ = true;
  step(batches, learning_rate, false);
  recording_ = false;
  stream_.set_recorder(nullptr);
  const auto block = plan_->block_launches();
  return {recorder.records(), block.forward, block.backward};
}

template <class T>
TrainerMemory TrainerOf<T>::memory() const {
  return {.weights = int64_t(weights_.bytes() + rest_.bytes()),
          .gradients = int64_t(gradients_.bytes() + sum_.bytes()),
          .optimizer = int64_t(m_.bytes() + v_.bytes()),
          .activations = int64_t(activations_.capacity_bytes()),
          .workspace = int64_t(stream_.workspace_bytes())};
}

template <class T>
Buffer& TrainerOf<T>::buffer_of(State which) {
  switch (which) {
    case State::weights:
      return weights_;
    case State::m:
      return m_;
    case State::v:
      return v_;
  }
  fail("there is no such training state");
}

// The two halves of weights, in arrays of their own.
void split(std::span<const float> values, bf16* high, int16_t* low) {
  for (size_t i = 0; i < values.size(); ++i)
    high[i] = high_half(values[i]), low[i] = low_half(values[i]);
}
void join(std::span<float> values, const bf16* high, const int16_t* low) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = join_halves(to_float(high[i]), low[i]);
}

constexpr int64_t kPiece = 1 << 20;  // elements at a time, where there is host memory for no more

// Calls f(begin, count) for pieces of n elements.
void by_pieces(int64_t n, const std::function<void(int64_t begin, int64_t count)>& f) {
  for (int64_t begin = 0; begin < n; begin += kPiece) f(begin, std::min(kPiece, n - begin));
}

template <class T>
void TrainerOf<T>::read(State which, std::span<float> out, int64_t begin) {
  if constexpr (kSplits)
    if (which == State::weights) {
      std::vector<T> high(std::min(kPiece, std::ssize(out)));
      std::vector<int16_t> low(high.size());
      return by_pieces(std::ssize(out), [&](int64_t at, int64_t count) {
        weights_.copy_to_host(high.data(), count * sizeof(T), (begin + at) * sizeof(T));
        rest_.copy_to_host(low.data(), count * sizeof(int16_t), (begin + at) * sizeof(int16_t));
        join(out.subspan(at, count), high.data(), low.data());
      });
    }
  buffer_of(which).copy_to_host(out.data(), out.size_bytes(), begin * sizeof(float));
}

template <class T>
void TrainerOf<T>::write(State which, std::span<const float> values, int64_t begin) {
  if (which != State::weights) moments_are_zero_ = false;
  if constexpr (kSplits)
    if (which == State::weights) {
      std::vector<T> high(std::min(kPiece, std::ssize(values)));
      std::vector<int16_t> low(high.size());
      return by_pieces(std::ssize(values), [&](int64_t at, int64_t count) {
        split(values.subspan(at, count), high.data(), low.data());
        weights_.copy_from_host(high.data(), count * sizeof(T), (begin + at) * sizeof(T));
        rest_.copy_from_host(low.data(), count * sizeof(int16_t), (begin + at) * sizeof(int16_t));
      });
    }
  buffer_of(which).copy_from_host(values.data(), values.size_bytes(), begin * sizeof(float));
}

// First weights from element `begin` of the array on, by all cores.
template <class T>
void TrainerOf<T>::draw(uint64_t seed, int64_t begin, int64_t count, T* weights,
                        int16_t* rest) const {
  constexpr int64_t kPart = 1 << 14;
  ThreadPool& pool = ThreadPool::shared();
  pool.run((count + kPart - 1) / kPart, [&](int64_t i, int worker) {
    const int64_t at = i * kPart, n = std::min(kPart, count - at);
    float* values;
    if constexpr (kSplits)
      values = reinterpret_cast<float*>(pool.scratch(worker, kPart * sizeof(float)));
    else
      values = weights + at;
    init_part(map_, seed, options_.init_std, begin + at, {values, size_t(n)});
    if constexpr (kSplits) split({values, size_t(n)}, weights + at, rest + at);
  });
}

// A piece of the weights on its way to a device: one is copied while the next is drawn.
struct PinnedPiece {
  PinnedPiece(Device device, bool splits)
      : weights(device, kPiece * (splits ? sizeof(bf16) : sizeof(float))),
        rest(device, splits ? kPiece * sizeof(int16_t) : 0),
        copied(device) {}
  HostBuffer weights, rest;
  Event copied;
};

template <class T>
void TrainerOf<T>::initialise(uint64_t seed) {
  stream_.synchronize();
  if (!moments_are_zero_) m_.fill_bytes(0), v_.fill_bytes(0);
  moments_are_zero_ = true;
  steps_ = 0;
  if (options_.device.backend == Backend::cpu)
    return draw(seed, 0, map_.size(), weights_.as<T>(), rest_.as<int16_t>());
  PinnedPiece pieces[] = {{options_.device, kSplits}, {options_.device, kSplits}};
  by_pieces(map_.size(), [&](int64_t begin, int64_t count) {
    const int64_t number = begin / kPiece;
    PinnedPiece& now = pieces[number % 2];
    if (number >= 2) now.copied.synchronize();
    T* weights = now.weights.as<T>();
    int16_t* rest = now.rest.as<int16_t>();
    draw(seed, begin, count, weights, rest);
    stream_.copy(weights_.as<T>() + begin, weights, count * sizeof(T));
    if (kSplits) stream_.copy(rest_.as<int16_t>() + begin, rest, count * sizeof(int16_t));
    now.copied.record(stream_);
  });
  stream_.synchronize();
}

void check(const AdamWOptions& a) {
  for (const float beta : {a.beta1, a.beta2})
    if (!(beta >= 0 && beta < 1))
      fail_f("AdamW's beta must be at least 0 and below 1, not {}", beta);
  if (!(a.eps > 0) || !(a.weight_decay >= 0) || !(a.max_norm >= 0))
    fail_f("AdamW cannot work with an epsilon of {}, a weight decay of {}, a clipping norm of {}",
           a.eps, a.weight_decay, a.max_norm);
}

// Calls f with a value of the type that the options train in, and with the options, the plan's own
// name in them, when they are such as can be trained.
template <class F>
auto with_type(const TrainerOptions& options, F&& f) {
  if (options.batch < 1 || options.seq < 1 || options.accumulate < 1)
    fail_f("batch {}, seq {} and accumulate {} must be 1 or more", options.batch, options.seq,
           options.accumulate);
  if (!(options.init_std > 0 && std::isfinite(options.init_std)))
    fail_f("first weights cannot deviate by {}: choose a small positive number", options.init_std);
  check(options.adamw);
  TrainerOptions named = options;
  named.plan = find_plan(options.plan);
  check_step_size(named.plan, named.model, named.batch, named.seq);
  switch (options.dtype) {
    case DType::f32:
      return f(float{}, named);
    case DType::bf16:
      return f(bf16{}, named);
    default:
      fail_f("cria trains in f32 or bf16, not {}", name_of(options.dtype));
  }
}

}  // namespace

std::unique_ptr<Trainer> make_trainer(const TrainerOptions& options) {
  return with_type(options, [](auto type, const TrainerOptions& o) -> std::unique_ptr<Trainer> {
    return std::make_unique<TrainerOf<decltype(type)>>(o);
  });
}

TrainerMemory planned_memory(const TrainerOptions& options) {
  return with_type(options, [](auto type, const TrainerOptions& o) -> TrainerMemory {
    using T = decltype(type);
    const WeightMap map(o.model);
    const int64_t n = map.size();
    const Tensor<T> vectors = vector_of<T>(nullptr, static_cast<int>(n - map.matrices()));
    Stream stream(o.device);
    Arena arena(o.device);
    make_plan<T>(o.plan, stream,
                 {.config = o.model,
                  .batch = o.batch,
                  .seq = o.seq,
                  .weights = {},
                  .gradients = {},
                  .vector_gradients = vectors,
                  .rope = {},
                  .precision = o.precision,
                  .recompute = o.recompute})
        ->place(arena);
    return {.weights = n * int64_t{sizeof(float)},
            .gradients = n * int64_t(sizeof(T) + (o.accumulate > 1 ? sizeof(float) : 0)),
            .optimizer = 2 * n * int64_t{sizeof(float)},
            .activations = int64_t(arena.used_bytes())};
  });
}

}  // namespace cria

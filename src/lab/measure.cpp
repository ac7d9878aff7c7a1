#include "lab/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

namespace cria {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class F>
double time_us(Stream& stream, Event& start, Event& end, F&& work) {
  start.record(stream);
  work();
  end.record(stream);
  return elapsed_us(start, end);
}

// How many launches make a sample.
int count_launches(Stream& stream, const Contender& contender, const MeasureOptions& options) {
  constexpr int kMaxLaunches = 256;
  check_stop(options.stop);
  contender.run(stream, 0);
  stream.synchronize();
  Event start(stream.device()), end(stream.device());
  const double once_us = time_us(stream, start, end, [&] { contender.run(stream, 1); });
  const int wanted = static_cast<int>(options.sample_us / std::max(once_us, 0.1));
  return std::clamp(wanted, std::clamp(options.sets, 1, kMaxLaunches), kMaxLaunches);
}

// What puts all launches of a sample into the stream.
std::function<void()> replay_of(Stream& stream, const Contender& contender, int launches) {
  const auto all = [&stream, run = contender.run, launches] {
    for (int i = 0; i < launches; ++i) run(stream, i);
  };
  if (!contender.captured) return all;
  auto graph = std::make_shared<Graph>(Graph::capture(stream, all));
  return [&stream, graph] { graph->replay(stream); };
}

// Relative standard error of the median, from the 10-90 % spread as if it were a normal's.
double noise_of(const Timing& timing) {
  const double spread = timing.quantile_us(0.9) - timing.quantile_us(0.1);
  const double deviation = spread / 2.563;
  return 1.253 * deviation / std::sqrt(double(timing.samples_us.size())) / timing.median_us();
}

bool steady(const std::vector<Timing>& timings, double noise) {
  return std::all_of(timings.begin(), timings.end(),
                     [&](const Timing& t) { return noise_of(t) < noise; });
}

}  // namespace

void check_stop(const std::atomic<bool>* stop) {
  if (stop && stop->load(std::memory_order_relaxed)) throw Interrupted();
}

double Timing::quantile_us(double q) const { return quantile(samples_us, q); }

Ratio speed_ratio(const Timing& a, const Timing& b) {
  const size_t rounds = std::min(a.samples_us.size(), b.samples_us.size());
  std::vector<double> ratios(rounds);
  for (size_t r = 0; r < rounds; ++r) ratios[r] = b.samples_us[r] / a.samples_us[r];
  return {quantile(ratios, 0.5), quantile(ratios, 0.1), quantile(ratios, 0.9)};
}

TurnOrder::TurnOrder(size_t rivals) : order_(rivals) {
  std::iota(order_.begin(), order_.end(), size_t{0});
}

const std::vector<size_t>& TurnOrder::next() {
  if (!order_.empty()) std::rotate(order_.begin(), order_.begin() + 1, order_.end());
  if (odd_) std::reverse(order_.begin(), order_.end());
  odd_ = !odd_;
  return order_;
}

Sampler::Sampler(Stream& stream, const Contender& contender, const MeasureOptions& options)
    : stream_(stream),
      stop_(options.stop),
      start_(stream.device()),
      end_(stream.device()),
      launches_(count_launches(stream, contender, options)),
      replay_(replay_of(stream, contender, launches_)) {}

double Sampler::sample_us() {
  check_stop(stop_);
  return time_us(stream_, start_, end_, replay_) / launches_;
}

std::vector<Timing> measure(Stream& stream, const std::vector<Contender>& contenders,
                            const MeasureOptions& options) {
  std::vector<Sampler> samplers;
  for (const Contender& contender : contenders) samplers.emplace_back(stream, contender, options);
  for (Sampler& sampler : samplers) sampler.sample_us();  // warm-up

  std::vector<Timing> timings(contenders.size());
  TurnOrder turns(contenders.size());
  const auto begin = Clock::now();
  for (int round = 0; round < options.max_rounds; ++round) {
    const bool enough = round >= options.min_rounds &&
                        (seconds_since(begin) > options.budget_s || steady(timings, options.noise));
    if (enough || contenders.empty()) break;
    for (size_t i : turns.next()) timings[i].samples_us.push_back(samplers[i].sample_us());
  }
  return timings;
}

}  // namespace cria

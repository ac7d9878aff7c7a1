// Timing, of one or of many rivals. A sample is a graph of many launches between two events, so
// launch overhead stays out of it; rivals take turns in an order that changes each round, so that
// all see the same clocks and temperature; it ends when the medians are steady or the time is
// spent.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/quantile.h"
#include "runtime/event.h"
#include "runtime/graph.h"
#include "runtime/stream.h"

namespace cria {

// Something to be timed. `run` puts one launch into the stream; `turn` counts up from 0 and chooses
// among sets of operands that together exceed the caches.
struct Contender {
  std::string name;
  std::function<void(Stream&, int turn)> run;
  bool captured = true;  // launched from a graph, else one by one
};

// Time of one launch, over the samples.
struct Timing {
  std::vector<double>
      samples_us;  // by round: sample r of two rivals were taken one after the other

  double median_us() const { return quantile_us(0.5); }
  double quantile_us(double q) const;
};

// How much faster `a` is than `b`: the median of the ratios b / a of each round, with its spread.
struct Ratio {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};
Ratio speed_ratio(const Timing& a, const Timing& b);

// Who comes when: another place and other neighbours for each rival every round.
class TurnOrder {
 public:
  explicit TurnOrder(size_t rivals);
  // Of the next round.
  const std::vector<size_t>& next();

 private:
  std::vector<size_t> order_;
  bool odd_ = false;
};

struct MeasureOptions {
  double budget_s = 1.0;  // for all contenders together, beyond the least number of rounds
  double noise = 0.002;   // relative standard error of the medians to stop at
  int min_rounds = 7;
  int max_rounds = 101;
  double sample_us = 5000;                  // aimed at for one sample
  int sets = 1;                             // of operands; a sample has at least as many launches
  const std::atomic<bool>* stop = nullptr;  // set to true elsewhere: measuring throws Interrupted
};

class Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
};

// Throws Interrupted when `stop` is set.
void check_stop(const std::atomic<bool>* stop);

// One contender, ready to be timed: a graph of as many launches as make a sample.
class Sampler {
 public:
  // Runs it twice: to set up what is set up once, and to see how long it takes.
  Sampler(Stream& stream, const Contender& contender, const MeasureOptions& options);

  // The time of one launch, from a sample taken now.
  double sample_us();

 private:
  Stream& stream_;
  const std::atomic<bool>* stop_;
  Event start_, end_;
  int launches_;
  std::function<void()> replay_;  // of all launches of a sample
};

std::vector<Timing> measure(Stream& stream, const std::vector<Contender>& contenders,
                            const MeasureOptions& options);

}  // namespace cria

// Claim: on the CPU, kernels in the tile language run at 90 % or more of the speed of loops written
// by hand. RMSNorm and SiLU·up, f32 and bf16, problems in the caches and out of them; the
// hand-written loops run on the same threads, with plain and with streaming stores, and the better
// of the two is the rival.
//   cpu_handloop [--json FILE] [--seconds S]        exit code 1 when a case falls short
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>

#include "base/format.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/table.h"
#include "bench/handloop.h"
#include "kernels/launch.h"
#include "kernels/rmsnorm.h"
#include "kernels/silu.h"
#include "lab/measure.h"
#include "runtime/thread_pool.h"

namespace cria {
namespace {

constexpr double kClaim = 0.90;
constexpr float kEps = 1e-5f;

struct Problem {
  DType dtype;
  int rows, cols;
};
const Problem kProblems[] = {
    {DType::f32, 256, 1024},
    {DType::bf16, 256, 1024},  // in the caches
    {DType::f32, 8192, 4096},
    {DType::bf16, 8192, 4096},  // 128 MB and 64 MB per operand
};

template <class T>
struct Operand {
  Buffer buffer;
  explicit Operand(int64_t n, uint64_t seed) : buffer(kCpu, n * sizeof(T)) {
    Rng rng(seed);
    for (int64_t i = 0; i < n; ++i) data()[i] = from_float<T>(static_cast<float>(rng.normal()));
  }
  T* data() const { return buffer.as<T>(); }
};

struct Result {
  std::string kernel, rival;
  Problem problem;
  Cost cost;
  Timing tile, hand;
  Ratio ratio;  // speed of the tile language over the rival's
};

// f(row, streaming) writes one row of y by hand; launching `args` writes them all. The two must
// agree.
template <class T, class Args, class F>
Result compare(Problem problem, const Args& args, Tensor<T> y, F f, double seconds) {
  const auto by_hand = [&](bool streaming) {
    // As many tasks as keep both cores busy to the end, each of neighbouring rows.
    const int rows = y.rows, tasks = std::min(rows, 1024);
    ThreadPool::shared().run(tasks, [&](int64_t task, int) {
      const int64_t end = (task + 1) * rows / tasks;
      for (int64_t row = task * rows / tasks; row < end; ++row) f(row, streaming);
      if (streaming) handloop::stream_fence();
    });
  };
  Stream stream(kCpu);
  launch(stream, args);
  std::vector<float> want(y.size());
  for (int64_t i = 0; i < y.size(); ++i) want[i] = to_float(y.data[i]);
  for (const bool streaming : {false, true}) {
    by_hand(streaming);
    for (int64_t i = 0; i < y.size(); ++i)
      if (!(std::abs(to_float(y.data[i]) - want[i]) <= 0.01f * std::abs(want[i]) + 1e-6f))
        fail_f("{}: element {} is {} in the tile language and {} by hand", Args::kernel, i, want[i],
               to_float(y.data[i]));
  }
  const std::vector<Contender> contenders = {
      {"tile language", [&](Stream& s, int) { launch(s, args); }},
      {"hand loop", [&](Stream&, int) { by_hand(false); }},
      {"hand loop, streaming stores", [&](Stream&, int) { by_hand(true); }},
  };
  MeasureOptions options;
  options.budget_s = seconds;
  const auto timings = measure(stream, contenders, options);
  const int best = timings[1].median_us() <= timings[2].median_us() ? 1 : 2;
  return {Args::kernel,
          contenders[best].name,
          problem,
          args.cost(),
          timings[0],
          timings[best],
          speed_ratio(timings[0], timings[best])};
}

template <class T>
void run_problem(Problem p, double seconds, std::vector<Result>& results) {
  using namespace kernels;
  const int64_t n = int64_t{p.rows} * p.cols;
  const Operand<T> a(n, 1), b(n, 2), w(p.cols, 3), out(n, 4);
  const auto x = matrix_of<const T>(a.data(), p.rows, p.cols);
  const auto up = matrix_of<const T>(b.data(), p.rows, p.cols);
  const auto y = matrix_of(out.data(), p.rows, p.cols);
  const RmsNormForwardArgs<T> norm{
      .x = x, .w = vector_of<const T>(w.data(), p.cols), .y = y, .eps = kEps};
  results.push_back(compare(
      p, norm, y,
      [&](int64_t row, bool streaming) {
        handloop::rmsnorm_row(x.row(row), w.data(), y.row(row), p.cols, kEps, streaming);
      },
      seconds));
  const SiluUpForwardArgs<T> silu{.gate = x, .up = up, .y = y};
  results.push_back(compare(
      p, silu, y,
      [&](int64_t row, bool streaming) {
        handloop::silu_up_row(x.row(row), up.row(row), y.row(row), p.cols, streaming);
      },
      seconds));
}

void report(const std::vector<Result>& results, const std::string& json_path) {
  using Align = Table::Align;
  Table table({{"kernel", Align::left},
               {"type", Align::left},
               {"rows"},
               {"cols"},
               {"tile [us]"},
               {"hand [us]"},
               {"tile [GB/s]"},
               {"share of hand [%]"},
               {"p10 - p90 [%]"},
               {"best hand loop", Align::left}});
  Json rows = Json::array();
  for (const Result& r : results) {
    const double tile_us = r.tile.median_us(), gb_per_s = r.cost.bytes() / tile_us * 1e-3;
    table.add_row({r.kernel, name_of(r.problem.dtype), std::to_string(r.problem.rows),
                   std::to_string(r.problem.cols), fmt::format("{:.1f}", tile_us),
                   fmt::format("{:.1f}", r.hand.median_us()), fmt::format("{:.1f}", gb_per_s),
                   fmt::format("{:.1f}", 100 * r.ratio.median),
                   fmt::format("{:.1f} - {:.1f}", 100 * r.ratio.p10, 100 * r.ratio.p90), r.rival});
    rows.push_back({{"kernel", r.kernel},
                    {"dtype", name_of(r.problem.dtype)},
                    {"rows", r.problem.rows},
                    {"cols", r.problem.cols},
                    {"tile_us", tile_us},
                    {"hand_us", r.hand.median_us()},
                    {"tile_gb_per_s", gb_per_s},
                    {"share", r.ratio.median},
                    {"share_p10", r.ratio.p10},
                    {"share_p90", r.ratio.p90},
                    {"rival", r.rival}});
  }
  std::fputs(table.to_string().c_str(), stdout);
  if (json_path.empty()) return;
  const DeviceInfo cpu = describe(kCpu);
  write_json(json_path,
             {{"claim", "tile language at 90 % or more of hand-written loops on the CPU"},
              {"device", cpu.name},
              {"threads", ThreadPool::shared().workers()},
              {"results", rows}});
}

int run(int argc, char** argv) {
  CLI::App app(
      "RMSNorm and SiLU·up in the tile language against loops written by hand, on the CPU");
  std::string json_path;
  double seconds = 3;
  app.add_option("--json", json_path, "also write the results to this file");
  app.add_option("--seconds", seconds, "time to measure each case for")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  fmt::print("{}, {} threads\n", describe(kCpu).name, ThreadPool::shared().workers());
  std::vector<Result> results;
  for (const Problem& p : kProblems)
    with_dtype(p.dtype, [&]<class T>(T) {
      if constexpr (!std::is_same_v<T, int32_t>) run_problem<T>(p, seconds, results);
    });
  report(results, json_path);
  int short_of = 0;
  for (const Result& r : results) short_of += r.ratio.median < kClaim;
  fmt::print("{} of {} cases reach {:.0f} % of the hand-written loop\n", results.size() - short_of,
             results.size(), 100 * kClaim);
  return short_of > 0 ? 1 : 0;
}

}  // namespace
}  // namespace cria

int main(int argc, char** argv) {
  try {
    return cria::run(argc, argv);
  } catch (const cria::Error& error) {
    std::fprintf(stderr, "cpu_handloop: %s\n", error.what());
    return 2;
  }
}

#include "lab/ceilings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>

#include "kernels/fma_probe.h"
#include "kernels/launch.h"
#include "kernels/reduction.h"
#include "kernels/shares.h"
#include "lab/library.h"
#include "runtime/cpu/cores.h"
#include "runtime/thread_pool.h"

namespace cria {
namespace {

// Memory to walk through in equal parts, larger than the caches.
struct Region {
  Region(Device device, double part_bytes)
      : part(std::max<size_t>(kLine, static_cast<size_t>(part_bytes) / kLine * kLine)),
        parts(std::clamp<int>(static_cast<int>(3 * cache_bytes(device) / double(part)), 1, 64)),
        buffer(device, part * parts) {
    buffer.fill_bytes(0x3c);
  }
  std::byte* at(int turn) const { return buffer.as<std::byte>() + turn % parts * part; }

  static constexpr size_t kLine = 256;
  size_t part;
  int parts;
  Buffer buffer;
};

// Calls f(begin, end) for pieces of the bytes, shared out among the workers as a kernel's tasks are: on a
// busy machine, too, what bounds kernels waits no longer for a worker than they do.
template <class F>
void split(size_t bytes, F&& f) {
  constexpr size_t kPiece = 256 << 10;
  ThreadPool::shared().run((bytes + kPiece - 1) / kPiece, [&](int64_t piece, int) {
    f(piece * kPiece, std::min(bytes, (piece + 1) * kPiece));
  });
}

void copy(Stream& stream, std::byte* to, const std::byte* from, size_t bytes) {
  if (stream.device().backend == Backend::cuda) return stream.copy(to, from, bytes);
  // In pieces that memcpy writes without fetching what it overwrites; for more it has other ways, and
  // they are slower.
  constexpr size_t kPiece = 64 << 10;
  split(bytes, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += kPiece)
      std::memcpy(to + i, from + i, std::min(kPiece, end - i));
  });
}

void update_words(std::byte* data, size_t bytes) {
  split(bytes, [&](size_t begin, size_t end) {
    auto* words = reinterpret_cast<uint64_t*>(data + begin);
    for (size_t i = 0; i < (end - begin) / sizeof(uint64_t); ++i) ++words[i];
  });
}

// The sum keeps the loads from being dropped.
uint64_t sum_words(const std::byte* data, size_t bytes) {
  std::atomic<uint64_t> total{0};
  split(bytes, [&](size_t begin, size_t end) {
    const auto* first = reinterpret_cast<const uint64_t*>(data + begin);
    const auto* last = reinterpret_cast<const uint64_t*>(data + end);
    total += std::accumulate(first, last, uint64_t{0});
  });
  return total;
}

struct Named {
  const char* name;
  Ceiling ceiling;
};

// Takes turns with the ceilings given together, so that one which bounds another does so by the same
// clock.
void add_figures(std::vector<CeilingFigure>& figures, Device device,
                 const std::vector<Named>& ceilings, MeasureOptions options) {
  Stream stream(device);
  std::vector<Contender> contenders;
  for (const Named& c : ceilings) contenders.push_back(c.ceiling.contender);
  options.budget_s *= double(ceilings.size());
  const std::vector<Timing> timings = measure(stream, contenders, options);
  for (size_t i = 0; i < ceilings.size(); ++i) {
    const auto& [name, ceiling] = ceilings[i];
    figures.push_back({name, ceiling.unit(), ceiling.rate(timings[i].median_us())});
  }
}

}  // namespace

double cache_bytes(Device device) {
  if (device.backend == Backend::cuda) return double(describe(device).l2_bytes);
  constexpr double kUnknown = 32e6;
  const double bytes = double(last_level_cache_bytes());
  // Several times as much is to be allocated, in a container perhaps that has little.
  return std::min(bytes > 0 ? bytes : kUnknown, double(memory_bytes()) / 32);
}

Ceiling copy_ceiling(Device device, double bytes) {
  auto from = std::make_shared<Region>(device, bytes / 2);
  auto to = std::make_shared<Region>(device, bytes / 2);
  // NOTE: in a graph, CUDA 13.0 copies some sizes at two thirds of the rate of their neighbours
  // (512 MiB, not 500); outside one it does not.
  return {{.name = "copy",
           .run = [=](Stream& s, int turn) { copy(s, to->at(turn), from->at(turn), from->part); },
           .captured = false},
          2.0 * double(from->part)};
}

Ceiling update_ceiling(Device device, double bytes) {
  if (device.backend == Backend::cuda) return copy_ceiling(device, bytes);
  auto region = std::make_shared<Region>(device, bytes / 2);
  return {
      {"update in place", [=](Stream&, int turn) { update_words(region->at(turn), region->part); }},
      2.0 * double(region->part)};
}

Ceiling read_ceiling(Device device, double bytes) {
  auto from = std::make_shared<Region>(device, bytes);
  const double amount = double(from->part);
  if (device.backend == Backend::cpu) {
    auto sink = std::make_shared<volatile uint64_t>(0);
    return {{"read", [=](Stream&, int turn) { *sink = sum_words(from->at(turn), from->part); }},
            amount};
  }
  const int partials = kernels::sum_shares(device), n = static_cast<int>(from->part / 4);
  auto sums = std::make_shared<Buffer>(device, sizeof(float) * (partials + 1));
  auto signal = std::make_shared<Buffer>(device, sizeof(int32_t));
  signal->fill_bytes(0);
  auto run = [=](Stream& s, int turn) {
    launch(s, kernels::SumArgs<float>{vector_of(reinterpret_cast<const float*>(from->at(turn)), n),
                                      vector_of(sums->as<float>(), partials),
                                      vector_of(signal->as<int32_t>(), 1),
                                      vector_of(sums->as<float>() + partials, 1)});
  };
  return {{"read", run}, amount};
}

Ceiling fma_ceiling(Device device) {
  const bool cuda = device.backend == Backend::cuda;
  // On a CPU it takes as long as the product that it bounds: calling the cores costs both the same.
  const int rows = core_count(device) * (cuda ? 64 : 16), cols = 2048, rounds = cuda ? 64 : 1024;
  auto buffer = std::make_shared<Buffer>(device, sizeof(float) * rows * cols);
  const kernels::FmaProbeArgs<float> args{matrix_of(buffer->as<float>(), rows, cols), rounds};
  return {{"fma", [=](Stream& s, int) { (void)buffer, launch(s, args); }}, args.cost().flops, true};
}

Ceiling product_ceiling(Device device, DType type, Precision precision) {
  const int n = device.backend == Backend::cuda ? 8192 : 1024;
  Stream stream(device);
  const OperandShape square{1, n, n};
  auto a = std::make_shared<Operand>(stream, type, square, Values{.phase = 11});
  auto b = std::make_shared<Operand>(stream, type, square, Values{.phase = 57});
  auto c = std::make_shared<Operand>(stream, type, square);
  stream.synchronize();
  const Product product = product_of({.trans_b = true, .precision = precision}, *a, *b, *c);
  return {{"library product",
           [=](Stream& s, int) { multiply(s, product, a->data(), b->data(), c->data()); }},
          cost_of(product).flops,
          true};
}

std::vector<CeilingFigure> measure_ceilings(Device device, const MeasureOptions& options) {
  const double bytes = device.backend == Backend::cuda ? 2e9 : 256e6;
  std::vector<CeilingFigure> figures;
  const auto add = [&](const std::vector<Named>& ceilings) {
    add_figures(figures, device, ceilings, options);
  };
  add({{"copy (read + write)", copy_ceiling(device, bytes)}});
  add({{"read", read_ceiling(device, bytes)}});
  if (!why_no_products(device).empty()) {
    add({{"FMA f32", fma_ceiling(device)}});
    return figures;
  }
  add({{"FMA f32", fma_ceiling(device)}, {"product f32", product_ceiling(device, DType::f32)}});
  if (device.backend == Backend::cpu) return figures;
  add({{"product tf32", product_ceiling(device, DType::f32, Precision::tf32)}});
  add({{"product bf16", product_ceiling(device, DType::bf16)}});
  add({{"product f16", product_ceiling(device, DType::f16)}});
  return figures;
}

}  // namespace cria

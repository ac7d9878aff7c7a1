// What docs/tile.md says about launching, tracing and printing, done and compared with the page.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/table.h"
#include "cria_tests_kernels.h"
#include "docs/kernels.h"
#include "docs/quotes.h"
#include "kernels/launch.h"
#include "runtime/buffer.h"
#include "support/places.h"
#include "tile/trace/analysis.h"

namespace cria::test {
namespace {

using namespace docs;

const std::string kPage = "docs/tile.md";

// On the device that "auto" names, a GPU where there is one.
TEST(DocUsage, LaunchOnTheBestDevice_cuda) {
  const std::vector<float> ones(1000, 1.f);
  std::vector<float> sum(1000);
  // [launch]
  Stream stream(parse_device("auto"));  // the first GPU, else the CPU
  const size_t bytes = ones.size() * sizeof(float);
  Buffer x(stream.device(), bytes), y(stream.device(), bytes), z(stream.device(), bytes);
  x.copy_from_host(ones.data(), bytes);
  y.copy_from_host(ones.data(), bytes);
  launch(stream,
         VectorAddArgs<float>{.x = vector_of(x.as<float>(), 1000),
                              .y = vector_of(y.as<float>(), 1000),
                              .z = vector_of(z.as<float>(), 1000)},
         cria_tests_kernels());
  z.copy_to_host(sum.data(), bytes);
  // [end]
  EXPECT_EQ(sum, std::vector<float>(1000, 2.f));
}

TEST(DocUsage, TakeGathers) {
  const int n = 2500;
  std::vector<float> x(n), y(n), want(n);
  std::vector<int32_t> index(n);
  std::iota(x.begin(), x.end(), 0.f);
  for (int i = 0; i < n; ++i) index[i] = i * 7 % n, want[i] = float(index[i]);
  const TakeArgs<float> args{.x = vector_of(x.data(), n),
                             .index = vector_of(index.data(), n),
                             .y = vector_of(y.data(), n)};
  Stream stream(kCpu);
  launch(stream, args, cria_tests_kernels());
  EXPECT_EQ(y, want);
  y.assign(n, 0.f);
  tile::Trace trace;
  launch(trace, args, cria_tests_kernels());
  EXPECT_EQ(y, want);
  EXPECT_EQ(double(trace.unique_bytes_read()), args.cost().bytes_read);
}

template <class Args>
std::string trace_table(const Args& args, std::string_view config) {
  using tile::Trace, tile::LineCounts;
  const KernelRegistry& kernels = cria_tests_kernels();
  // [trace]
  Trace trace;
  launch(trace, args, kernels, config);

  using enum Table::Align;
  Table table({{"access", left},
               {"operand", left},
               {"requests"},
               {"sectors/request"},
               {"useful bytes/sector"},
               {"bank conflicts"}});
  for (const LineCounts& line : trace.lines()) {
    const bool shared = is_shared(line.kind);
    table.add_row({name_of(line.kind), shared ? "" : trace.operands()[line.operand].name,
                   std::to_string(line.counts.requests),
                   shared ? "" : std::to_string(int(line.counts.sectors_per_request())),
                   shared ? "" : std::to_string(int(line.counts.useful_bytes_per_sector())),
                   shared ? std::to_string(line.counts.conflicts) : ""});
  }
  // [end]
  return table.to_string();
}

// What the page shows, which is not in a bundle.
class DocPage : public WithSources {};

TEST_F(DocPage, TraceShowsBankConflicts) {
  const Buffer x(kCpu, 64 * 64 * sizeof(float)), y(kCpu, 64 * 64 * sizeof(float));
  const TransposeArgs<float> args{.x = matrix_of(x.as<float>(), 64, 64),
                                  .y = matrix_of(y.as<float>(), 64, 64)};
  EXPECT_EQ(trace_table(args, "pad0"), doc_output(kPage, "trace_pad0"));
  EXPECT_EQ(trace_table(args, "pad1"), doc_output(kPage, "trace_pad1"));
}

TEST_F(DocPage, TraceShowsCoalescing) {
  const Buffer x(kCpu, 4096 * sizeof(float)), y(kCpu, 4096 * sizeof(float));
  CopyArgs<float> args;
  args.x = vector_of(x.as<float>(), 4096), args.y = vector_of(y.as<float>(), 4096);
  EXPECT_EQ(trace_table(args, "blocked"), doc_output(kPage, "trace_blocked"));
  EXPECT_EQ(trace_table(args, "runs"), doc_output(kPage, "trace_runs"));
}

template <class Args>
std::string trace_error(const Args& args) {
  try {
    tile::Trace trace;
    launch(trace, args, cria_tests_kernels());
  } catch (const Error& error) {
    return std::string(error.what()) + "\n";
  }
  return "no error\n";
}

// The page shows the message up to the line number, which moves.
void expect_shown(const std::string& message, const std::string& name) {
  const auto before_line = [](const std::string& text) { return text.substr(0, text.rfind(':')); };
  EXPECT_EQ(before_line(message), before_line(doc_output(kPage, name)));
}

TEST_F(DocPage, TraceFindsTheForgottenMask) {
  std::vector<float> x(1000), y(1000), z(1000);
  UnmaskedAddArgs<float> args;
  args.x = vector_of(x.data(), 1000), args.y = vector_of(y.data(), 1000);
  args.z = vector_of(z.data(), 1000);
  expect_shown(trace_error(args), "unmasked");
}

TEST_F(DocPage, TraceFindsStaleLoads) {
  std::vector<float> x(1000);
  expect_shown(trace_error(StaleArgs<float>{vector_of(x.data(), 1000)}), "stale");
}

TEST_F(DocPage, PrintShowsTheTile) {
  std::vector<float> x(4 * 8);
  std::iota(x.begin(), x.end(), 0.f);
  const RowSumsArgs<float> args{matrix_of(x.data(), 4, 8)};
  ::testing::internal::CaptureStdout();
  Stream stream(kCpu);
  launch(stream, args, cria_tests_kernels());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), doc_output(kPage, "print"));
  ::testing::internal::CaptureStdout();
  tile::Trace trace;
  launch(trace, args, cria_tests_kernels());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), doc_output(kPage, "print"));
}

}  // namespace
}  // namespace cria::test

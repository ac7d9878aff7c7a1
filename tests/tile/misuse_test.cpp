// Misuse does not compile, and the compiler's first words say what to do.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/format.h"
#include "support/command.h"
#include "support/places.h"

namespace cria::test {
namespace {

// What the compiler says about a kernel body; empty if it compiles.
std::string complaints_about(const std::string& body) {
  const auto file =
      std::filesystem::temp_directory_path() /
      ("cria_misuse_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
       std::to_string(std::hash<std::string>{}(body)) + ".cpp");
  std::ofstream(file) << R"(#define CRIA_TARGET_CPU 1
#include "base/tensor.h"
#include "tile/target.h"
using namespace cria;
using namespace cria::tile;
struct Kernel {
  using Element = float;
  struct Args {
    Tensor<const float> x;
    Tensor<float> y;
    template <class V> void operands(V&& visit) { visit("x", x), visit("y", y); }
  };
  struct Shared { SharedTile<float, 64, 64, 2> a; };
  static constexpr Traits traits{.threads = 128};
  static Grid grid(const Args&) { return {1}; }
  template <class P> CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    (void)p, (void)a, (void)s;
)" << body << R"(
  }
};
template void Kernel::run<Program<Kernel>>(Program<Kernel>&, const Kernel::Args&, Kernel::Shared&);
)";
  const CommandResult result =
      run_command(fmt::format("{} -std=c++20 -fsyntax-only -I{} {}", quoted(CRIA_CXX_COMPILER),
                              quoted(in_repository("src").string()), quoted(file.string())));
  std::filesystem::remove(file);
  return result.ok ? "" : result.output;
}

void expect_sentence(const std::string& body, const std::string& sentence) {
  const std::string text = complaints_about(body);
  EXPECT_NE(text.find(sentence), std::string::npos) << body << "\n" << text;
}

class Misuse : public WithSources {};

TEST_F(Misuse, TheFrameItselfCompiles) {
  EXPECT_EQ(
      complaints_about("auto i = p.arange(shape<128>); p.store(a.y.data, i, p.load(a.x.data, i));"),
      "");
}

TEST_F(Misuse, LayoutsThatDiffer) {
  expect_sentence("p.zeros(shape<64, 64>) + p.accumulator(shape<64, 64>);",
                  "tile layouts differ: give both tiles one layout");
}

TEST_F(Misuse, ATileThatDoesNotDivideAmongItsThreads) {
  expect_sentence("p.zeros(shape<100>);", "must divide evenly among its threads");
}

TEST_F(Misuse, DotOfShapesThatDoNotMatch) {
  expect_sentence("auto acc = p.accumulator(shape<128, 64>); p.dot(acc, s.a[0], s.a[1]);", "dot: ");
}

TEST_F(Misuse, WritingWhatIsOnlyRead) {
  expect_sentence("p.store(a.x.data, p.arange(shape<128>), p.zeros(shape<128>));",
                  "declare it Tensor<T>, without const");
}

TEST_F(Misuse, ChangingALazyExpression) {
  expect_sentence("auto x = p.load(a.x.data, p.arange(shape<128>)); x += 1.f;",
                  "make it a tile first, auto t = p.keep(x)");
}

TEST_F(Misuse, OffsetsAndTileOfDifferentShape) {
  expect_sentence("p.store(a.y.data, p.arange(shape<256>), p.zeros(shape<128>));",
                  "store: offsets and tile differ in shape");
}

TEST_F(Misuse, PairsInDifferentThreads) {
  for (const char* tile : {"p.zeros(shape<64, 64>)", "p.accumulator(shape<64, 96>)"})
    expect_sentence(std::string("auto t = ") + tile +
                        "; p.update_pairs(pairs<32>, t, [](float&, float&, float, float) {}, "
                        "PairTables{a.x, a.x});",
                    "one thread holds both columns of a pair only in an accumulator");
}

TEST_F(Misuse, APipelineOfOneStage) {
  expect_sentence("p.pipeline(stages<1>, 1, [](int, int) {}, [](auto&, auto&) {});",
                  "pipeline: at least two stages");
}

}  // namespace
}  // namespace cria::test

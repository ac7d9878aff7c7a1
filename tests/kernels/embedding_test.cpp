#include "kernels/embedding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/harness.h"
#include "kernels/launch.h"

namespace cria::test {
namespace {

using namespace kernels;

// Half of all positions hold one token, the others any; the first and the last row of the table
// are used.
std::vector<int32_t> some_tokens(int rows, int vocabulary) {
  std::vector<int32_t> tokens(rows);
  for (int r = 0; r < rows; ++r)
    tokens[r] = r % 2 == 0 ? vocabulary / 2 : (r * 7919 + 3) % vocabulary;
  if (rows > 1) tokens[0] = vocabulary - 1, tokens[1] = 0;
  return tokens;
}
std::vector<int32_t> distinct_tokens(int rows, int vocabulary) {
  std::vector<int32_t> tokens(rows);
  for (int r = 0; r < rows; ++r) tokens[r] = vocabulary - 1 - r;
  return tokens;
}

template <class Operand>
void assign(Operand& operand, const std::vector<int32_t>& values) {
  for (size_t i = 0; i < values.size(); ++i) operand.set(0, i, values[i]);
}

template <class Case>
void check_forward(Case& t, const std::vector<int32_t>& ids, int vocabulary, int cols) {
  const int rows = static_cast<int>(ids.size());
  auto& tokens = t.i32_input("tokens", {rows});
  assign(tokens, ids);
  auto &table = t.input("table", {vocabulary, cols}), &y = t.output("y", {rows, cols});
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) y.want(r, c) = table(ids[r], c);
  t.run(EmbeddingForwardArgs<ElementOf<Case>>{.tokens = tokens, .table = table, .y = y});
}

template <class Case>
void check_backward(Case& t, const std::vector<int32_t>& tokens, int vocabulary, int cols) {
  const int rows = static_cast<int>(tokens.size());
  std::vector<int32_t> sorted(rows), begins(rows + 1), distinct(rows);
  sort_tokens(tokens, sorted, begins, distinct);
  auto &order = t.i32_input("order", {rows}), &starts = t.i32_input("starts", {rows + 1});
  auto& ids = t.i32_input("ids", {rows});
  assign(order, sorted), assign(starts, begins), assign(ids, distinct);
  auto &dy = t.input("dy", {rows, cols}), &dtable = t.inout("dtable", {vocabulary, cols});
  std::vector<double> magnitude(size_t(vocabulary) * cols);
  for (int v = 0; v < vocabulary; ++v)
    for (int c = 0; c < cols; ++c)
      dtable.want(v, c) = dtable(v, c), magnitude[v * cols + c] = std::abs(dtable(v, c));
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c)
      dtable.want(tokens[r], c) += dy(r, c), magnitude[tokens[r] * cols + c] += std::abs(dy(r, c));
  const double most = magnitude.empty() ? 0 : *std::max_element(magnitude.begin(), magnitude.end());
  dtable.tolerance = {.length = rows + 1, .norm = most};
  t.run(EmbeddingBackwardArgs<ElementOf<Case>>{
      .order = order, .starts = starts, .ids = ids, .dy = dy, .dtable = dtable});
}

// sizes: rows, vocabulary, columns
const Sizes<3> kRepeated = {
    .small = {{1, 1, 1}, {5, 3, 7}, {17, 40, 512}, {70, 9, 513}, {33, 5, 1025}, {9, 4, 2049}},
    .large = {{1000, 50, 300}, {700, 2, 130}}};
const Sizes<3> kDistinct = {
    .small = {{0, 5, 8}, {3, 5, 0}, {1, 1, 31}, {4, 9, 1024}, {6, 6, 2048}}};

const bool forward = kernel_test<3>(
    "EmbeddingForward", kRepeated,
    [](auto& t, int rows, int vocabulary, int cols) {
      t.cost_is_a_bound();
      check_forward(t, some_tokens(rows, vocabulary), vocabulary, cols);
    },
    kTrainingTypes);
const bool forward_distinct = kernel_test<3>(
    "EmbeddingForwardDistinct", kDistinct,
    [](auto& t, int rows, int vocabulary, int cols) {
      check_forward(t, distinct_tokens(rows, vocabulary), vocabulary, cols);
    },
    kTrainingTypes);
const bool backward = kernel_test<3>(
    "EmbeddingBackward", kRepeated,
    [](auto& t, int rows, int vocabulary, int cols) {
      t.cost_is_a_bound();
      check_backward(t, some_tokens(rows, vocabulary), vocabulary, cols);
    },
    kTrainingTypes);
const bool backward_distinct = kernel_test<3>(
    "EmbeddingBackwardDistinct", kDistinct,
    [](auto& t, int rows, int vocabulary, int cols) {
      check_backward(t, distinct_tokens(rows, vocabulary), vocabulary, cols);
    },
    kTrainingTypes);

// The order of additions is the same in every configuration, so the choice, which depends on the
// number of cores, does not show in the result.
TEST(EmbeddingBackward, ConfigurationsAgreeToTheBit) {
  const int rows = 300, cols = 200, vocabulary = 3;
  std::vector<int32_t> tokens(rows), order(rows), starts(rows + 1), ids(rows);
  for (int r = 0; r < rows; ++r) tokens[r] = r % 7 == 0 ? 0 : r % 11 == 0 ? 1 : 2;
  sort_tokens(tokens, order, starts, ids);
  std::vector<float> dy(size_t(rows) * cols);
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = std::sin(static_cast<float>(i));
  std::vector<float> first;
  Stream stream(kCpu);
  for (const auto& config :
       kernel_registry().get("embedding_backward", DType::f32, Target::cpu).configs) {
    std::vector<float> dtable(size_t(vocabulary) * cols);
    launch(stream,
           EmbeddingBackwardArgs<float>{.order = vector_of<const int32_t>(order.data(), rows),
                                        .starts = vector_of<const int32_t>(starts.data(), rows + 1),
                                        .ids = vector_of<const int32_t>(ids.data(), rows),
                                        .dy = matrix_of<const float>(dy.data(), rows, cols),
                                        .dtable = matrix_of(dtable.data(), vocabulary, cols)},
           config.name);
    if (first.empty()) first = dtable;
    EXPECT_EQ(first, dtable) << config.name;
  }
}

TEST(SortTokens, GroupsPositionsInOrder) {
  const std::vector<int32_t> tokens = {7, 2, 7, 0, 2, 7};
  std::vector<int32_t> order(6), starts(7), ids(6, -1);
  sort_tokens(tokens, order, starts, ids);
  EXPECT_EQ(order, (std::vector<int32_t>{3, 1, 4, 0, 2, 5}));
  EXPECT_EQ(starts, (std::vector<int32_t>{0, 1, 3, 6, 6, 6, 6}));
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 2, 7, -1, -1, -1}));
}

TEST(SortTokens, RefusesWhatIsNoToken) {
  std::vector<int32_t> order(2), starts(3), ids(2);
  EXPECT_THROW(sort_tokens(std::vector<int32_t>{3, -1}, order, starts, ids), Error);
  EXPECT_THROW(sort_tokens(std::vector<int32_t>{3, 1, 2}, order, starts, ids), Error);
}

TEST(SortTokens, NothingIsFine) {
  std::vector<int32_t> none, starts(1, -1);
  sort_tokens(none, none, starts, none);
  EXPECT_EQ(starts[0], 0);
}

}  // namespace
}  // namespace cria::test

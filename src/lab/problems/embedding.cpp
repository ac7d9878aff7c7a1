// Looking up rows of a table, and adding gradients into it: bound by memory.
#include "kernels/embedding.h"

#include <cmath>

#include "lab/problems/problems.h"

namespace cria {
namespace {

// Tokens crowd around the middle of the vocabulary, as words of a language do: some come often.
class Embedding : public Problem {
 public:
  Ceiling ceiling() const final { return copy_ceiling(device(), cost().bytes()); }

 protected:
  explicit Embedding(const ProblemRequest& request) : Problem(request) {
    plan_sets(2.0 * rows() * cols() * size_of(dtype()));
  }
  const Operand& tokens() {
    const float v = float(vocabulary());
    return input_of(DType::i32, 1, 1, rows(), v / 12, v / 2);
  }
  int rows() const { return request_["rows"]; }
  int cols() const { return request_["cols"]; }
  int vocabulary() const { return request_["vocab"]; }
};

class EmbeddingForward final : public Embedding {
 public:
  explicit EmbeddingForward(const ProblemRequest& request) : Embedding(request) {
    for (int set = 0; set < sets(); ++set) {
      const Operand &ids = tokens(), &table = input(1, vocabulary(), cols());
      const Operand& y = output(1, rows(), cols());
      if (set == 0) tokens_ = &ids, table_ = &table, y_ = &y;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("embedding", kernels::EmbeddingForwardArgs<T>{ids.tensor<int32_t>(),
                                                               table.tensor<T>(), y.tensor<T>()});
      });
    }
  }

 private:
  Accuracy check_results() const override {
    return check_output(*y_, {}, 1, [&](int64_t row, auto cols, auto want) {
      const auto token = static_cast<int64_t>(tokens_->held(row));
      for (size_t i = 0; i < cols.size(); ++i)
        want[i].value = table_->held(token * table_->cols() + cols[i]);
    });
  }

  const Operand *tokens_ = nullptr, *table_ = nullptr, *y_ = nullptr;
};

class EmbeddingBackward final : public Embedding {
 public:
  explicit EmbeddingBackward(const ProblemRequest& request) : Embedding(request) {
    for (int set = 0; set < sets(); ++set) {
      const Operand& dy = input(1, rows(), cols());
      const Operand& dtable = scratch_of(dtype(), 1, vocabulary(), cols());
      data_.push_back({&tokens(), &scratch_of(DType::i32, 1, 1, rows()),
                       &scratch_of(DType::i32, 1, 1, rows() + 1),
                       &scratch_of(DType::i32, 1, 1, rows()), &dy, &dtable});
      sort(data_.back());
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        const Set& s = data_.back();
        add_call("embedding_backward",
                 kernels::EmbeddingBackwardArgs<T>{
                     s.order->tensor<int32_t>(), s.starts->tensor<int32_t>(),
                     s.ids->tensor<int32_t>(), dy.tensor<T>(), dtable.tensor<T>()});
      });
    }
  }

 private:
  struct Set {
    const Operand *tokens, *order, *starts, *ids, *dy, *dtable;
  };

  static std::vector<int32_t> tokens_of(const Set& set) {
    const std::vector<double> held = set.tokens->held(0, set.tokens->size());
    return {held.begin(), held.end()};
  }
  void sort(const Set& set) {
    std::vector<int32_t> order(rows()), starts(rows() + 1), ids(rows());
    kernels::sort_tokens(tokens_of(set), order, starts, ids);
    stream().copy(set.order->data(), order.data(), set.order->bytes());
    stream().copy(set.starts->data(), starts.data(), set.starts->bytes());
    stream().copy(set.ids->data(), ids.data(), set.ids->bytes());
    stream().synchronize();
  }
  void prepare(Stream& stream) override {
    for (const Set& set : data_) set.dtable->clear(stream);
  }
  Accuracy check_results() const override {
    const Set& set = data_[0];
    const std::vector<int32_t> tokens = tokens_of(set);
    const int64_t n = set.dy->cols();
    return check_output(*set.dtable, {.length = rows()}, rows(),
                        [&](int64_t row, auto cols, auto want) {
                          for (Exact& w : want) w = {};
                          for (size_t r = 0; r < tokens.size(); ++r) {
                            if (tokens[r] != row) continue;
                            for (size_t i = 0; i < cols.size(); ++i) {
                              const double term = set.dy->held(int64_t(r) * n + cols[i]);
                              want[i].value += term, want[i].norm += std::abs(term);
                            }
                          }
                        });
  }

  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> embedding_problems() {
  const std::vector<Parameter> sizes = {{"rows", "rows of the matrix", 4096, 65536},
                                        {"cols", "columns of the matrix", 1024, 2048},
                                        vocab_parameter()};
  return {{"embedding",
           "rows of a table by token",
           sizes,
           {"embedding_forward"},
           make<EmbeddingForward>},
          {"embedding_backward",
           "gradients of rows added into the table",
           sizes,
           {"embedding_backward"},
           make<EmbeddingBackward>}};
}

}  // namespace cria

#include "kernels/harness.h"

#include <algorithm>

#include "base/error.h"
#include "tile/trace/analysis.h"

namespace cria::test {
namespace {

constexpr Device kGpu{Backend::cuda, 0};

Device device_of(Target target) { return target == Target::cuda ? kGpu : kCpu; }

class KernelTest : public ::testing::Test {
 public:
  KernelTest(Target target, std::function<void()> body) : target_(target), body_(std::move(body)) {}
  void TestBody() override {
    if (target_ == Target::cuda && devices().size() < 2)
      GTEST_SKIP() << "no CUDA device: this build or this machine has none";
    body_();
  }

 private:
  Target target_;
  std::function<void()> body_;
};

// Runs in the tracer, which throws for a bad access, and compares the bytes it saw with the cost.
void run_traced(const KernelCall& call, const KernelConfig& config, const void* args,
                bool cost_is_a_bound) {
  EXPECT_TRUE(call.costs_at_most || !cost_is_a_bound)
      << call.kernel << " does not say that its cost is a bound";
  tile::Trace trace;
  config.run(&trace, args);
  const auto expect = [&](int64_t seen, double cost, const char* what) {
    if (cost_is_a_bound)
      EXPECT_LE(static_cast<double>(seen), cost) << what;
    else
      EXPECT_EQ(static_cast<double>(seen), cost) << what;
  };
  expect(trace.unique_bytes_read(), call.cost.bytes_read,
         "distinct bytes read, against cost().bytes_read");
  expect(trace.unique_bytes_written(), call.cost.bytes_written,
         "distinct bytes written, against cost().bytes_written");
}

}  // namespace

void CaseBase::run_all(std::vector<Launch> launches) {
  for (const Placement placement : kPlacements) {
    if (placement != Placement::kTight &&
        std::ranges::none_of(operands_, [=](auto& o) { return o->has_gaps(placement); }))
      continue;
    SCOPED_TRACE(problem_ + ", operands " + name_of(placement));
    for (auto& operand : operands_) operand->place(placement), operand->send(device_of(target_));
    for (size_t varied = 0; varied < launches.size(); ++varied) {
      const Kernel& kernel = kernel_of(launches[varied].call);
      const auto args = launches[varied].relocated();
      const auto configs = kernel.fitting(args.get(), capability());
      if (configs.empty()) ADD_FAILURE() << kernel.name << " has no configuration that fits";
      for (size_t i = varied == 0 ? 0 : 1; i < configs.size(); ++i) {
        SCOPED_TRACE(kernel.name + " " + configs[i]->name);
        for (auto& operand : operands_)
          operand->place(placement), operand->send(device_of(target_));
        run_once(launches, varied, *configs[i]);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

void CaseBase::run_once(const std::vector<Launch>& launches, size_t varied,
                        const KernelConfig& config) {
  for (size_t i = 0; i < launches.size(); ++i) {
    const auto args = launches[i].relocated();
    const auto fitting = kernel_of(launches[i].call).fitting(args.get(), capability());
    if (fitting.empty()) return;  // reported when its turn to vary comes
    run_launch(launches[i].call, i == varied ? config : *fitting[0], args.get());
  }
  for (auto& operand : operands_) {
    operand->fetch();
    operand->check();
  }
}

void CaseBase::run_launch(const KernelCall& call, const KernelConfig& config, const void* args) {
  try {
    if (target_ == Target::trace) {
      run_traced(call, config, args, cost_is_a_bound_);
      return;
    }
    Stream stream(device_of(target_));
    config.run(&stream, args);
    stream.synchronize();
  } catch (const Error& error) {
    ADD_FAILURE() << call.kernel << ": " << error.what();
  }
}

const Kernel& CaseBase::kernel_of(const KernelCall& call) const {
  return kernels_->get(call.kernel, call.dtype, target_);
}

int CaseBase::capability() const { return compute_capability(device_of(target_)); }

std::vector<std::array<int, 1>> each(std::initializer_list<int> sizes) {
  std::vector<std::array<int, 1>> out;
  for (const int n : sizes) out.push_back({n});
  return out;
}

std::vector<std::array<int, 2>> cross(std::initializer_list<int> rows,
                                      std::initializer_list<int> cols) {
  std::vector<std::array<int, 2>> out;
  for (const int r : rows)
    for (const int c : cols) out.push_back({r, c});
  return out;
}

void register_test(const std::string& suite, const std::string& name, Target target,
                   std::source_location at, std::function<void()> body) {
  ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, at.file_name(),
                          static_cast<int>(at.line()),
                          [=]() -> ::testing::Test* { return new KernelTest(target, body); });
}

}  // namespace cria::test

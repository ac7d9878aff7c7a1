// Every kernel can be benched, tuned and inspected, and every problem knows a right result from a
// wrong one.
#include "lab/problem.h"

#include <gtest/gtest.h>

#include <set>

#include "base/json.h"
#include "kernels/adamw.h"
#include "kernels/gate_up.h"
#include "kernels/gate_up_backward.h"
#include "kernels/gemm_group.h"
#include "kernels/rope.h"
#include "lab/bench.h"
#include "lab/inspect.h"
#include "lab/tune.h"
#include "model/weights.h"
#include "plans/packed.h"
#include "runtime/on_device.h"

namespace cria {
namespace {

ProblemRequest small_request(const ProblemSpec& spec, DType dtype = DType::f32) {
  ProblemRequest request{.device = kCpu, .dtype = dtype, .sets = 1};
  for (const Parameter& p : spec.parameters)
    if (p.on_cpu > 1)
      request.sizes[p.name] = std::max<int64_t>(p.least, std::min<int64_t>(p.on_cpu, 96));
  return request;
}

// Sizes that are no whole 16 bytes wherever a problem takes any; switches such that rivals run.
ProblemRequest odd_request(const ProblemSpec& spec, DType dtype, bool packed) {
  ProblemRequest request{.device = kCpu, .dtype = dtype, .sets = 1, .packed = packed};
  for (const Parameter& p : spec.parameters) {
    const int64_t odd = p.name == "head-dim" ? 42 : p.name == "heads" ? 3 : 77;
    if (p.on_cpu > 1) request.sizes[p.name] = std::clamp(odd, p.least, p.most);
    if (p.name == "batch") request.sizes[p.name] = 2;
    if (p.name == "causal") request.sizes[p.name] = 0;
  }
  return request;
}

TEST(Problem, EveryKernelHasOne) {
  std::set<std::string> covered, registered;
  for (const ProblemSpec& spec : problem_specs())
    covered.insert(spec.kernels.begin(), spec.kernels.end());
  for (const Kernel& kernel : kernel_registry().all()) registered.insert(kernel.name);
  for (const std::string& kernel : registered)
    EXPECT_TRUE(covered.contains(kernel))
        << kernel << " is in no problem: add it to src/lab/problems/";
  for (const std::string& kernel : covered)
    EXPECT_TRUE(registered.contains(kernel)) << kernel << " of a problem is in no kernel list";
}

TEST(Problem, FlagsMeanTheSameEverywhere) {
  std::set<std::string> names;
  std::map<std::string, std::string> help;
  for (const ProblemSpec& spec : problem_specs()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    for (const Parameter& p : spec.parameters)
      EXPECT_EQ(help.try_emplace(p.name, p.help).first->second, p.help)
          << spec.name << " --" << p.name;
  }
}

// Checks every kernel and rival of a problem.
void expect_right(const ProblemSpec& spec, const ProblemRequest& request) {
  const std::unique_ptr<Problem> problem = make_problem(spec, request);
  const auto expect = [&](const std::string& name, const Accuracy& accuracy) {
    EXPECT_TRUE(accuracy.ok) << spec.name << " " << name << " " << name_of(request.dtype) << " on "
                             << cria::name_of(request.device) << ": " << accuracy.max_error;
  };
  for (const Variant& variant : problem->variants())
    expect(variant.name, problem->check([&](Stream& s, int turn) { variant.run(s, turn); }));
  for (const Rival& rival : problem->rivals()) expect(rival.name, problem->check(rival.run));
}

class EveryProblem : public testing::TestWithParam<size_t> {
 protected:
  const ProblemSpec& spec() const { return problem_specs()[GetParam()]; }

  void expect_right_on(Device device) const {
    for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      if (!kernel_registry().find(spec().kernels[0], dtype, target_of(device))) continue;
      ProblemRequest request = small_request(spec(), dtype);
      request.device = device;
      expect_right(spec(), request);
    }
  }
};

TEST_P(EveryProblem, IsSolvedRight) { expect_right_on(kCpu); }

TEST_P(EveryProblem, IsSolvedRightOnCuda) {
  if (devices().size() < 2) GTEST_SKIP() << "no CUDA device";
  expect_right_on(devices()[1]);
}

TEST_P(EveryProblem, IsSolvedRightAtOddSizesWithGapsAndWithout) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (!kernel_registry().find(spec().kernels[0], dtype, Target::cpu)) continue;
    for (const bool packed : {false, true})
      expect_right(spec(), odd_request(spec(), dtype, packed));
  }
}

TEST_P(EveryProblem, IsSolvedRightAtOddSizesOnCuda) {
  if (devices().size() < 2) GTEST_SKIP() << "no CUDA device";
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (!kernel_registry().find(spec().kernels[0], dtype, Target::cuda)) continue;
    for (const bool packed : {false, true}) {
      ProblemRequest request = odd_request(spec(), dtype, packed);
      request.device = devices()[1];
      expect_right(spec(), request);
    }
  }
}

// Every step from row to row, head to head and matrix to matrix is whole 16 bytes, as in a plan; with
// --packed none is longer than it has to be.
TEST_P(EveryProblem, OperandsAreLaidOutAsPlansHaveThem) {
  const DType dtype = kernel_registry().find(spec().kernels[0], DType::bf16, Target::trace)
                          ? DType::bf16
                          : DType::f32;
  for (const bool packed : {false, true}) {
    const std::unique_ptr<Problem> problem =
        make_problem(spec(), odd_request(spec(), dtype, packed));
    EXPECT_EQ(problem->packed(), packed);
    for (const Inspection& inspection : inspect(*problem, {.programs = 1})) {
      EXPECT_EQ(inspection.packed, packed);
      for (const tile::TracedOperand& o : inspection.trace.operands()) {
        if (o.cols <= 1 || int64_t{o.batch} * o.rows * o.cols == 0) continue;
        const std::string name = inspection.kernel + " " + o.name;
        if (packed && o.rows > 1)
          EXPECT_EQ(o.ld % o.cols, 0) << name;  // whole heads, halves or rows
        if (packed) continue;
        // Partners of rope begin in the middle of heads.
        if (!o.name.ends_with("_high")) EXPECT_EQ(o.begin % 16, 0u) << name;
        const auto expect_aligned = [&](int64_t step) {
          EXPECT_EQ(step * o.element_bytes % 16, 0) << name;
        };
        if (o.rows > 1) expect_aligned(o.ld);
        if (o.heads > 1) expect_aligned(o.head_stride);
        if (o.batch > o.heads) expect_aligned(o.batch_stride);
      }
    }
  }
}

TEST_P(EveryProblem, DoingNothingIsWrong) {
  const std::unique_ptr<Problem> problem = make_problem(spec(), small_request(spec()));
  EXPECT_FALSE(problem->check([](Stream&, int) {}).ok);
}

INSTANTIATE_TEST_SUITE_P(Lab, EveryProblem, testing::Range(size_t{0}, problem_specs().size()),
                         [](const auto& info) { return problem_specs()[info.param].name; });

TEST(Problem, SwitchesAreRight) {
  for (const bool packed : {false, true}) {
    for (int64_t trans_a : {0, 1})
      for (int64_t trans_b : {0, 1})
        for (int64_t residual : {0, 1}) {
          ProblemRequest request{.device = kCpu, .sets = 1, .packed = packed};
          request.sizes = {{"m", 41}, {"n", 50}, {"k", 61}};
          request.sizes["trans-a"] = trans_a;
          request.sizes["trans-b"] = trans_b;
          request.sizes["residual"] = residual;
          expect_right(find_problem("gemm"), request);
        }
    for (int64_t causal : {0, 1})
      for (int64_t kv_heads : {0, 2}) {
        ProblemRequest request{.device = kCpu, .sets = 1, .packed = packed};
        request.sizes = {{"batch", 2}, {"heads", 4}, {"seq", 70}, {"head-dim", 40}};
        request.sizes["causal"] = causal;
        request.sizes["kv-heads"] = kv_heads;
        expect_right(find_problem("attention"), request);
      }
    ProblemRequest request{.device = kCpu, .sets = 1, .packed = packed};
    request.sizes = {{"m", 9}, {"ffn", 27}, {"dim", 19}, {"keep", 1}};
    expect_right(find_problem("gate_up"), request);
  }
}

template <class Args>
const Args& first_args(const Problem& problem) {
  return *static_cast<const Args*>(problem.variants().at(0).calls.at(0).args);
}

// A matrix's distances: from row to row, and from one that is joined with it.
template <class T>
std::pair<int64_t, int64_t> layout_of(const Tensor<T>& first, const Tensor<T>& second) {
  EXPECT_EQ(first.ld, second.ld);
  return {first.ld, second.data - first.data};
}

// What a flash plan launches at these sizes lies where its weights and activations are.
TEST(Problem, JoinedOperandsLieAsFlashPlansHaveThem) {
  const int dim = 42, ffn = 77, rows = 5;
  const ModelConfig config{.dim = dim,
                           .layers = 1,
                           .heads = 3,
                           .kv_heads = 3,
                           .head_dim = 14,
                           .ffn = ffn,
                           .vocab = 9,
                           .context = rows};
  const WeightMap map(config);
  std::vector<float> memory(map.size());
  const LayerWeights<const float> w =
      view_weights<const float>(map, config, memory.data()).layers[0];
  const Tensor<float> both = pitched_matrix(memory.data(), rows, config.gate_up_width());
  const Halves<float> halves(both, ffn);

  ProblemRequest request{.device = kCpu, .sizes = {{"m", rows}, {"ffn", ffn}, {"dim", dim}}};
  request.sets = 1, request.sizes["keep"] = 1;
  const auto forward = make_problem(find_problem("gate_up"), request);
  const auto& made = first_args<kernels::GateUpArgs<float>>(*forward);
  EXPECT_EQ(layout_of(made.gate, made.up), layout_of(w.gate, w.up));
  EXPECT_EQ(layout_of(made.by_gate, made.by_up), layout_of(halves.gate, halves.up));
  EXPECT_EQ(made.y.ld, pitch_of(ffn));
  EXPECT_EQ(made.by_up.cols, ffn);

  request.sizes.erase("keep");
  const auto backward = make_problem(find_problem("gate_up_backward"), request);
  const auto& gradients = first_args<kernels::GateUpBackwardArgs<float>>(*backward);
  EXPECT_EQ(layout_of(gradients.dgate, gradients.dup), layout_of(halves.gate, halves.up));
  EXPECT_EQ(gradients.down.ld, w.down.ld);

  const auto group = make_problem(find_problem("gemm_group"), request);
  const auto& parts = first_args<kernels::GemmGroupArgs<float>>(*group).parts;
  EXPECT_EQ(parts[1].a.cols, both.cols);
  EXPECT_EQ(parts[1].a.ld, both.ld);
  EXPECT_EQ(parts[1].c.rows, w.gate_up.rows);
  EXPECT_EQ(parts[1].c.ld, w.gate_up.ld);
  EXPECT_EQ(parts[0].c.ld, w.down.ld);

  request.sizes = {{"batch", 1}, {"heads", 3}, {"seq", rows}, {"head-dim", 14}};
  const auto rope = make_problem(find_problem("rope"), request);
  const auto& turned = first_args<kernels::RopeForwardArgs<float>>(*rope);
  EXPECT_EQ(turned.x.low.ld, config.query_width());
  EXPECT_EQ(turned.x.low.head_stride, config.head_pitch());
}

// Products and copies of whole operands leave zeros between the halves and behind the rows.
TEST(Problem, GapsStayZeros) {
  ProblemRequest request{.device = kCpu, .sizes = {{"m", 5}, {"ffn", 77}, {"dim", 42}}, .sets = 1};
  const auto problem = make_problem(find_problem("gate_up_backward"), request);
  const auto& args = first_args<kernels::GateUpBackwardArgs<float>>(*problem);
  const auto expect_zeros = [&] {
    for (const Tensor<float>& half : {args.dgate, args.dup})
      for (int r = 0; r < half.rows; ++r)
        for (int c = half.cols; c < pitch_of(half.cols); ++c)
          EXPECT_EQ(*half.at(0, r, c), 0) << r << " " << c;
  };
  for (const Variant& v : problem->variants())
    EXPECT_TRUE(problem->check([&](Stream& s, int turn) { v.run(s, turn); }).ok), expect_zeros();
  ASSERT_FALSE(problem->rivals().empty());
  for (const Rival& rival : problem->rivals())
    EXPECT_TRUE(problem->check(rival.run).ok), expect_zeros();
}

TEST(Problem, UnknownNamesGetSuggestions) {
  try {
    find_problem("rmsnrm");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean rmsnorm?"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(find_problem("rmsnorm_forward").name, "rmsnorm");
}

TEST(Problem, SizesAreChecked) {
  const ProblemSpec& spec = find_problem("rmsnorm");
  const auto make = [&](Sizes sizes) {
    make_problem(spec, {.device = kCpu, .sizes = std::move(sizes)});
  };
  EXPECT_THROW(make({{"rows", 0}}), Error);
  EXPECT_THROW(make({{"rows", -4}}), Error);
  EXPECT_THROW(make({{"rows", int64_t{1} << 40}}), Error);
  EXPECT_THROW(make({{"heads", 4}}), Error);
}

TEST(Problem, SizesThat32BitsCannotCountAreRefused) {
  const int64_t big = 1 << 16, huge = 1 << 30;
  const struct {
    const char* problem;
    Sizes sizes;
    const char* words;
  } cases[] = {
      {"vector_add", {{"n", INT32_MAX}}, "--n 2147483647 is out of range"},
      {"attention",
       {{"batch", big}, {"heads", big}, {"seq", 1}},
       "--batch 65536 times --heads 65536 times --seq 1 times 2 is more than"},
      {"attention_backward", {{"batch", big}, {"heads", big}}, "--batch 65536 times --heads 65536"},
      {"attention_decode", {{"batch", big}, {"heads", big}}, "--batch 65536 times --heads 65536"},
      {"attention_decode", {{"heads", huge}, {"kv-heads", 1}}, "--heads 1073741824"},
      {"rope", {{"heads", huge}, {"head-dim", 64}}, "--heads 1073741824 times --head-dim 64"},
      {"rope_backward", {{"batch", big}, {"seq", big}}, "--batch 65536 times --seq 65536"},
      {"qkv", {{"batch", big}, {"seq", big}}, "--batch 65536 times --seq 65536"},
      {"qkv", {{"kv-heads", huge}}, "--kv-heads 1073741824 times --head-dim 64 times 3"},
      {"copy_heads", {{"batch", big}, {"heads", big}}, "--batch 65536 times --heads 65536"},
      {"copy_heads", {{"heads", huge}}, "--heads 1073741824 times --head-dim 64"},
      {"causal_mask", {{"batch", big}, {"heads", big}}, "--batch 65536 times --heads 65536"},
      {"causal_mask", {{"heads", huge}, {"seq", huge}}, "no memory holds"},
      {"gate_up", {{"ffn", huge}}, "--ffn 1073741824 times 2"},
      {"gate_up_backward", {{"ffn", huge}}, "--ffn 1073741824 times 2"},
      {"gemm_group", {{"ffn", huge}}, "--ffn 1073741824 times 2"},
      {"gemm_group", {{"dim", huge}}, "--dim 1073741824 times 2"}};
  for (const auto& c : cases)
    test::expect_error(
        [&] { make_problem(find_problem(c.problem), {.device = kCpu, .sizes = c.sizes}); },
        c.words);
}

// The sixteen bits that bf16 weights lack are checked: without them the step is far too coarse.
TEST(Problem, AdamWChecksBothHalvesOfItsWeights) {
  const ProblemSpec& spec = find_problem("adamw");
  const std::unique_ptr<Problem> problem =
      make_problem(spec, {.device = kCpu, .dtype = DType::bf16, .sizes = {{"n", 1000}}, .sets = 1});
  const Variant& variant = problem->variants().at(0);
  const auto args = static_cast<const kernels::AdamWArgs<bf16>*>(variant.calls.at(0).args);
  const auto step = [&](Stream& s, int turn) { variant.run(s, turn); };
  EXPECT_TRUE(problem->check(step).ok);
  const auto without_rest = [&](Stream& s, int turn) {
    step(s, turn);
    s.fill(args->rest.data, 0, args->rest.bytes());
  };
  EXPECT_FALSE(problem->check(without_rest).ok);
}

// Of the configurations that there are, a refusal names those that run these sizes.
TEST(Problem, UnknownConfigurationsAreAnsweredWithThoseThatFit) {
  ProblemRequest request{.device = kCpu, .sizes = {{"rows", 8}, {"cols", 4096}}, .sets = 1};
  const ProblemSpec& spec = find_problem("rmsnorm");
  const std::unique_ptr<Problem> problem = make_problem(spec, request);
  const auto message = [](auto&& f) {
    try {
      f();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  const std::string refusals[] = {
      message([&] { bench(spec, request, {.config = "block64"}); }),
      message([&] { inspect(*problem, {.config = "block64"}); }),
      message([&] { problem->variants().at(0).run(problem->stream(), 0, "block64"); })};
  for (const std::string& refusal : refusals) {
    EXPECT_NE(refusal.find("no configuration 'block64' for rows=8 cols=4096"), std::string::npos)
        << refusal;
    int others = 0;
    for (const Kernel& kernel : kernel_registry().all()) {
      if (kernel.name != "rmsnorm_forward" || kernel.target != Target::cpu) continue;
      if (kernel.dtype != DType::f32) continue;
      for (const KernelConfig& config : kernel.configs) {
        const bool fits = config.fits(problem->variants().at(0).calls.at(0).args, 0);
        others += !fits;
        EXPECT_EQ(refusal.find(" " + config.name) != std::string::npos, fits)
            << config.name << " in: " << refusal;
      }
    }
    EXPECT_GT(others, 0) << "every configuration fits: choose other sizes";
  }
}

// A configuration that some of a problem's kernels have leaves the others out.
TEST(Problem, AConfigurationNamesTheKernelsThatHaveIt) {
  ProblemRequest request{.device = kCpu, .sizes = {{"rows", 64}, {"cols", 64}}, .sets = 1};
  const std::unique_ptr<Problem> problem = make_problem(find_problem("transpose"), request);
  const std::vector<Inspection> padded = inspect(*problem, {.config = "tile32x32_threads128"});
  ASSERT_EQ(padded.size(), 1u);
  EXPECT_EQ(padded[0].kernel, "transpose_padded");
}

TEST(Bench, RowsAreRelatedToCeilingAndRival) {
  BenchOptions options{.config = "all"};
  options.measure = {.budget_s = 0, .min_rounds = 2, .max_rounds = 2, .sample_us = 0};
  options.final_race = FinalRace::rival;
  const ProblemSpec& spec = find_problem("gemm");
  const BenchResult result = bench(spec, small_request(spec), options);
  ASSERT_TRUE(result.all_right());
  EXPECT_EQ(result.unit, "TFLOP/s");
  EXPECT_EQ(result.rows.back().kind, BenchRow::Kind::ceiling);
  EXPECT_DOUBLE_EQ(result.rows.back().of_ceiling.median, 1);
  const BenchRow* ours = result.best(BenchRow::Kind::kernel);
  ASSERT_NE(ours, nullptr);
  EXPECT_GT(ours->rate, 0);
  EXPECT_GT(ours->over_rival.median, 0);
  EXPECT_GT(result.final_over_rival.median, 0);
  const std::string text = to_json(result).dump();
  EXPECT_EQ(text.find("null"), std::string::npos) << text;
  EXPECT_NE(to_table(result).find("(ceiling)"), std::string::npos);
}

TEST(Bench, TheFastestOfEachKernelRacesTheCeilingOnceMore) {
  BenchOptions options{.config = "all"};
  options.measure = {.budget_s = 0, .min_rounds = 2, .max_rounds = 2, .sample_us = 0};
  options.final_race = FinalRace::ceiling;
  const ProblemSpec& spec = find_problem("transpose");
  const BenchResult result = bench(spec, small_request(spec), options);
  std::map<std::string, int> finalists;
  for (const BenchRow& row : result.rows) {
    EXPECT_EQ(row.timing.samples_us.size(), 2u);
    if (row.final_timing.samples_us.empty()) continue;
    ++finalists[row.name];
    EXPECT_GE(row.final_timing.samples_us.size(), 21u) << row.name;
    if (row.kind == BenchRow::Kind::kernel) {
      EXPECT_EQ(&row, result.best(BenchRow::Kind::kernel, row.name));
      EXPECT_GT(row.final_of_ceiling.median, 0) << row.name;
    }
  }
  EXPECT_EQ(finalists.size(), spec.kernels.size() + 1);  // and the ceiling
  for (const auto& [name, count] : finalists) EXPECT_EQ(count, 1) << name;
  EXPECT_NE(to_json(result).dump().find("final_of_ceiling"), std::string::npos);
}

// Tables and JSON say that operands were packed, and nothing of it otherwise.
TEST(Bench, ResultsSayWhenOperandsWerePacked) {
  BenchOptions options;
  options.measure = {.budget_s = 0, .min_rounds = 2, .max_rounds = 2, .sample_us = 0};
  const ProblemSpec& spec = find_problem("rmsnorm");
  for (const bool packed : {false, true}) {
    const BenchResult result = bench(spec, odd_request(spec, DType::f32, packed), options);
    EXPECT_EQ(to_table(result).find("rows=77 cols=77 packed") != std::string::npos, packed);
    EXPECT_EQ(to_json(result).contains("packed"), packed);
    const auto problem = make_problem(spec, odd_request(spec, DType::f32, packed));
    const std::vector<Inspection> inspections = inspect(*problem, {});
    EXPECT_EQ(to_table(inspections.at(0)).find(" packed\n") != std::string::npos, packed);
    EXPECT_EQ(to_json(inspections.at(0)).contains("packed"), packed);
  }
}

TEST(Tune, WinnerIsOneOfTheConfigurations) {
  const ProblemSpec& spec = find_problem("transpose");
  const MeasureOptions quick{.budget_s = 0, .min_rounds = 2, .max_rounds = 2, .sample_us = 0};
  const std::vector<TuneResult> results = tune(spec, small_request(spec), quick);
  ASSERT_EQ(results.size(), spec.kernels.size());
  for (const TuneResult& result : results) {
    const Kernel& kernel = kernel_registry().get(result.kernel, DType::f32, Target::cpu);
    EXPECT_NO_THROW(kernel.config(result.winner.config));
    EXPECT_GE(result.gain, 0.5);
    EXPECT_FALSE(result.winner.shape_class.empty());
  }
}

}  // namespace
}  // namespace cria

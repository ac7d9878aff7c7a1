// What the built program prints, and how it takes bad input: one sentence and exit code 2.
#include "cli/cli.h"

#include "lab/describe_run.h"
#include "runtime/device.h"

namespace cria::test {
namespace {

constexpr const char* kQuick = " --device cpu --seconds 0";

TEST_F(Cli, HelpIsTheDocumentation) {
  if (!exists(in_repository("docs/cli")))
    GTEST_SKIP() << "the sources are not here: this is a bundle";
  for (const char* command : {"", "compare", "train", "generate", "logits", "tokenize", "diff",
                              "devices", "bench", "inspect", "tune"}) {
    const std::string name = *command ? command : "cria";
    const CliOutput output = run(std::string(command) + " --help");
    ASSERT_EQ(output.exit_code, 0);
    EXPECT_NE(output.out.find("For example: cria " + std::string(command)), std::string::npos)
        << output.out;
    const fs::path page = in_repository("docs/cli") / (name + ".md");
    const std::string title = *command ? "cria " + name : name;
    // Versions of CLI11 differ in the empty lines at the end.
    const std::string help = output.out.substr(0, output.out.find_last_not_of('\n') + 1);
    const std::string text = read_text(page);
    EXPECT_EQ(text.substr(0, text.find_last_not_of("\n`") + 1), "# " + title + "\n\n```\n" + help)
        << page << " is not what --help says: run tools/cli-docs " << cria_program();
  }
}

TEST_F(Cli, VersionIsShown) {
  const CliOutput output = run("--version");
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_TRUE(output.out.starts_with("cria ")) << output.out;
  EXPECT_NE(output.out.find(", commit " + build_commit()), std::string::npos) << output.out;
}

TEST_F(Cli, DevicesNamesTheCpu) {
  const CliOutput output = run("devices --device cpu --quick --json " + file("devices.json"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("cpu: "), std::string::npos);
  const Json json = read_json(file("devices.json"));
  EXPECT_EQ(json.at(0).at("device"), "cpu");
  EXPECT_EQ(json.at(0).at("commit"), build_commit());
}

TEST_F(Cli, BenchWritesTableAndJson) {
  const CliOutput output = run("bench rmsnorm --rows 64,65 --cols 256 --config all --json " +
                               file("bench.json") + kQuick);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("copy (ceiling)"), std::string::npos) << output.out;
  const Json json = read_json(file("bench.json"));
  ASSERT_EQ(json.at("results").size(), 2u);
  for (const Json& row : json["results"][0]["rows"]) EXPECT_GT(row.at("time_us").get<double>(), 0);
}

TEST_F(Cli, InspectDrawsAWarp) {
  const CliOutput output =
      run("inspect transpose --rows 128 --cols 128 --colour always --json " + file("i.json"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("not coalesced"), std::string::npos);
  EXPECT_NE(output.out.find("\x1b[31m"), std::string::npos);
  EXPECT_EQ(read_json(file("i.json")).at("results").size(), 4u);
}

TEST_F(Cli, TuneKeepsTheWinner) {
  const CliOutput output = run(std::string("tune rmsnorm --rows 64 --cols 256") + kQuick);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const Json table = read_json(file("tuned.json"));
  EXPECT_EQ(table.at("devices").begin()->at("rmsnorm_forward").at("f32").size(), 1u)
      << table.dump(2);
}

TEST_F(Cli, PackedOperandsAreSaidToBeSo) {
  for (const char* command : {"bench rmsnorm", "inspect rmsnorm", "tune rmsnorm --dry-run"}) {
    const std::string sizes = std::string(command) + " --rows 5 --cols 77 --json " + file("r.json");
    const std::string quick = std::string(command).starts_with("inspect") ? "" : kQuick;
    for (const bool packed : {false, true}) {
      const CliOutput output = run(sizes + (packed ? " --packed" : "") + quick);
      EXPECT_EQ(output.exit_code, 0) << output.err;
      EXPECT_EQ(output.out.find("rows=5 cols=77 packed\n") != std::string::npos, packed)
          << output.out;
      EXPECT_EQ(read_json(file("r.json")).at("results").at(0).contains("packed"), packed);
    }
  }
}

TEST_F(Cli, CorruptCacheIsAWarningOnly) {
  write_text(file("tuned.json"), "{");
  const CliOutput output = run(std::string("bench vector_add --n 1000") + kQuick);
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
  EXPECT_NE(output.err.find("warning"), std::string::npos) << output.err;
}

TEST_F(Cli, BadInputGetsOneSentence) {
  expect_refused("", "a command is missing");
  expect_refused("frobnicate", "frobnicate");
  expect_refused("bench", "KERNEL");
  expect_refused("bench rmsnrm", "did you mean rmsnorm?");
  expect_refused("bench quicksort", "choose one of");
  expect_refused("bench rmsnorm --rows 0", "out of range");
  expect_refused("bench rmsnorm --rows -3", "out of range");
  expect_refused("bench rmsnorm --rows many", "rows");
  expect_refused("bench rmsnorm --rows 99999999999999999999", "rows");
  expect_refused("bench rmsnorm --rows 2000000000 --cols 2000000000 --device cpu", "use");
  expect_refused("bench rmsnorm --heads 4", "--heads does not apply to rmsnorm");
  expect_refused("bench rmsnorm --dtype f64", "f64");
  expect_refused("bench rmsnorm --dtype i32 --device cpu", "i32");
  expect_refused("bench rmsnorm --config fastest --device cpu", "fastest");
  expect_refused("bench rmsnorm --device tpu", "use cpu, cuda");
  expect_refused("bench attention --head-dim 300 --device cpu", "out of range");
  expect_refused("bench attention --heads 4 --kv-heads 3 --device cpu", "--kv-heads");
  expect_refused("bench rope --head-dim 63 --device cpu", "even");
  expect_refused("inspect rmsnrm", "did you mean rmsnorm?");
  expect_refused("inspect rmsnorm --programs 0", "programs");
  expect_refused("tune rmsnorm --rows 0", "out of range");
}

// The seeds of this project called options by other names, and anyone mistypes.
TEST_F(Cli, NearMissesAreAnsweredWithWhatWasMeant) {
  expect_refused("train --batch-size 8", "not expected: --batch-size 8; did you mean --batch?");
  expect_refused("train --config debug --seq-len=8", "did you mean --seq?");
  expect_refused("train --num-steps 8", "did you mean --steps?");
  expect_refused("compare --num-steps 8", "did you mean --steps?");
  expect_refused("compare --plan flash", "did you mean --plans?");
  expect_refused("generate --modle run/latest Hello", "did you mean --model?");
  expect_refused("bench rmsnorm --row 8", "did you mean --rows?");
  expect_refused("trian --config debug", "did you mean train? 'cria --help'");
  expect_refused("--versoin", "did you mean --version?");
  expect_refused("train --config smal", "did you mean small?");
  expect_refused("train --plan flahs", "did you mean flash?");
  const CliOutput output = run("diff --quantise");
  EXPECT_EQ(output.err.find("did you mean"), std::string::npos) << output.err;
}

TEST_F(Cli, PlansHaveVersions) {
  CliOutput output =
      run("compare --config debug --device cpu --steps 1 --plans v3,v1 --json " + file("c.json"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  const Json plans = read_json(file("c.json")).at("plans");
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0]["plan"], "flash");
  EXPECT_EQ(plans[1]["plan"], "baseline");
  output = run("diff --plan v2 --against v1 --device cpu");
  EXPECT_NE(output.out.find("fused and baseline agree"), std::string::npos) << output.out;
  output = run("train --config debug --device cpu --plan v2 --steps 1");
  EXPECT_NE(output.out.find("plan fused"), std::string::npos) << output.out;
  expect_refused("train --config debug --plan v9", "no plan called 'v9'");
}

TEST_F(Cli, ModelsHaveAnySize) {
  CliOutput output =
      run("compare --config debug --device cpu --steps 1 --plans flash --dim 96 "
          "--layers 1 --heads 3 --kv-heads 1 --ffn 100 --vocab 300");
  EXPECT_NE(output.out.find("debug with dim 96, layers 1, heads 3, kv-heads 1, ffn 100, vocab 300: "
                            "0.1 M parameters"),
            std::string::npos)
      << output.out << output.err;
  output = run("diff --device cpu --dim 96 --head-dim 48 --layers 1");
  EXPECT_NE(output.out.find("flash and baseline agree"), std::string::npos) << output.err;
  EXPECT_EQ(output.out.find("layers.1."), std::string::npos) << output.out;
  for (const std::string command : {"train", "compare", "diff"}) {
    const std::string debug = command + " --config debug --device cpu ";
    expect_refused(debug + "--dim 100", "heads 16 wide do not divide a dim of 100");
    expect_refused(debug + "--heads 5", "5 heads do not divide a dim of 64");
    expect_refused(debug + "--kv-heads 3", "4 heads cannot share 3 key/value heads");
    expect_refused(debug + "--layers 0", "--layers");
    expect_refused(debug + "--dim 1024 --heads 2", "heads of at most 256 columns");
    expect_refused(debug + "--dim 16777216 --vocab 16777216", "a model");
  }
}

// What it reads depends on the tokens; and the size has two names.
TEST_F(Cli, InspectSaysWhereACostIsABound) {
  const CliOutput output = run("inspect embedding --rows 64 --cols 64 --vocabulary 100");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("bytes read: 7424 of at most 16640\n"), std::string::npos)
      << output.out;
  EXPECT_EQ(output.out.find("DIFFERENT"), std::string::npos) << output.out;
  EXPECT_EQ(run("inspect embedding --rows 64 --cols 64 --vocab 100").out, output.out);
}

TEST_F(Cli, UnwritableFilesAreRefusedAtOnce) {
  write_text(file("plain"), "");
  expect_refused("bench rmsnorm --rows 8 --cols 8 --device cpu --json " + file("plain/x.json"),
                 "cannot write");
  expect_refused("tune rmsnorm --rows 8 --cols 8 --device cpu --cache " + file("plain/x.json"),
                 "--cache");
}

TEST_F(Cli, CompareRefusesAnUnknownPlanAtOnce) {
  const CliOutput output = run("compare --config debug --device cpu --plans flash,nosuch");
  EXPECT_NE(output.exit_code, 0);
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.err.find("no plan called 'nosuch'"), std::string::npos) << output.err;
}

TEST_F(Cli, CompareShowsEveryPlan) {
  const CliOutput output =
      run("compare --config debug --device cpu --steps 2 --kernels --json " + file("c.json"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const Json json = read_json(file("c.json"));
  ASSERT_EQ(json.at("plans").size(), 3u);
  for (const Json& plan : json["plans"]) {
    EXPECT_NE(output.out.find(plan.at("plan").get<std::string>()), std::string::npos);
    EXPECT_NEAR(plan.at("losses").back().get<double>(),
                json["plans"][0]["losses"].back().get<double>(), 1e-4);
    EXPECT_GT(plan.at("launches_per_step").get<int>(), 0);
    EXPECT_GT(plan.at("memory_bytes").at("total").get<int64_t>(), 0);
    EXPECT_GT(plan.at("memory_bytes").at("measured_peak").get<int64_t>(), 0);
    double share = 0;
    for (const Json& kernel : plan.at("kernels")) {
      EXPECT_NE(output.out.find(kernel.at("kernel").get<std::string>()), std::string::npos);
      share += kernel.at("share").get<double>();
    }
    EXPECT_NEAR(share, 1, 1e-9);
  }
  EXPECT_EQ(output.out.find("optimizer"), std::string::npos) << output.out;
  const CliOutput wide = run("compare --config debug --device cpu --steps 2 --plans flash --wide");
  EXPECT_NE(wide.out.find("optimizer"), std::string::npos) << wide.out;
}

TEST_F(Cli, DiffFindsThePlansEqual) {
  const CliOutput output = run("diff --plan fused --against flash --device cpu");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("agree to rounding"), std::string::npos) << output.out;
}

TEST_F(Cli, CudaWithoutAGpuIsRefused) {
  if (devices().size() > 1) GTEST_SKIP() << "this machine has a CUDA device";
  expect_refused("bench rmsnorm --device cuda", "--device cpu");
}

TEST_F(Cli, APresetIsNoFolder) {
  fs::create_directory(file("debug"));
  const fs::path here = fs::current_path();
  fs::current_path(folder_);
  const CliOutput output = run("diff --config debug --plan fused --against flash --device cpu");
  expect_refused("diff --config ./debug --device cpu", "./debug/config.json");
  fs::current_path(here);
  EXPECT_EQ(output.exit_code, 0) << output.err;
}

TEST_F(Cli, OutputThatIsLostIsAnError) {
  const int status = std::system(
      (quoted(cria_program()) + " devices --quick > /dev/full 2> " + file("err")).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(read_text(file("err")).find("the output could not be written"), std::string::npos);
}

TEST_F(Cli, ErrorsNameTheCommandAndWhatIsUnexpected) {
  expect_refused("inspect softmax --device cpu",
                 "not expected: --device cpu; 'cria inspect --help'");
  expect_refused("logits --model x --tokens \"\"", "--tokens: a value is missing");
  expect_refused("train --config debug --model x", "--config");
}

}  // namespace
}  // namespace cria::test
